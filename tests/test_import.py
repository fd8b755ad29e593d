"""What importing pliant costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pliant

HEAVY = ("scipy", "PIL", "rich", "typer", "pypardiso", "cholespy", "pxr", "imageio_ffmpeg")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "statement",
    [
        "import pliant",
        "import pliant.io",
        "import pliant.gallery",
        "import pliant.app.cli; pliant.app.cli.parser_of_all()",
        "from pliant import Mesh, Animation, Skeleton, Shapes, TetMesh, rotations",
        "import pliant; pliant.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).with_points([[0, 0, 1]] * 3).area",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    loaded = json.loads(python(code).stdout)
    assert [name for name in HEAVY if name in loaded] == []


def test_every_public_name_is_there() -> None:
    code = """
        import pliant
        for name in pliant.__all__:
            assert getattr(pliant, name) is not None, name
            assert name in dir(pliant), name
    """
    python(code)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="squash"):
        _ = pliant.squash


def test_the_package_is_typed() -> None:
    assert (Path(pliant.__file__).parent / "py.typed").is_file()


def test_workers_that_solve_frames_load_nothing_to_draw_with() -> None:
    code = """
        import sys
        import pliant.engines.blend.app.result
        print([name for name in ("scipy.linalg", "scipy.spatial", "pliant.render") if name in sys.modules])
    """
    assert python(code).stdout.strip() == "[]"
