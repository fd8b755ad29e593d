"""What importing pliant costs, and what its compiler says while it works."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import pliant

HEAVY = ("numba", "scipy", "PIL", "rich", "typer", "pypardiso", "cholespy", "pxr", "imageio_ffmpeg")
NOTICE = "pliant: compiling for this machine"


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
        "import pliant.cli; pliant.cli._parser()",
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
    with pytest.raises(AttributeError, match="module 'pliant' has no attribute 'squash'"):
        _ = pliant.squash


def test_the_package_is_typed() -> None:
    assert (Path(pliant.__file__).parent / "py.typed").is_file()


# The notice while kernels compile


def compiling(module: str) -> SimpleNamespace:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


def test_a_long_compilation_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    from pliant.jit import _CompileNotice

    notice = _CompileNotice(patience=0.05)
    for _ in range(2):
        notice.on_start(compiling("pliant.render"))
        time.sleep(0.3)
        notice.on_end(compiling("pliant.render"))
    assert capsys.readouterr().err.count(NOTICE) == 1


def test_short_compilations_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    from pliant.jit import _CompileNotice

    notice = _CompileNotice(patience=0.5)
    for k in range(8):
        notice.on_start(compiling(f"pliant.part{k}"))
        time.sleep(0.1)
        notice.on_end(compiling(f"pliant.part{k}"))
    assert capsys.readouterr().err.count(NOTICE) == 1


def test_short_and_foreign_compilations_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    from pliant.jit import _CompileNotice

    notice = _CompileNotice(patience=0.2)
    notice.on_start(compiling("pliant.render"))
    notice.on_start(compiling("pliant.render"))  # a kernel that calls a kernel
    notice.on_end(compiling("pliant.render"))
    notice.on_end(compiling("pliant.render"))
    notice.on_start(compiling("somebody.else"))
    time.sleep(0.4)
    notice.on_end(compiling("somebody.else"))
    assert capsys.readouterr().err == ""


def test_helper_processes_do_not_announce_it_again() -> None:
    """Each of them compiles for itself, while the first process has said so."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(_said_of_itself) == ""
    assert _said_of_itself().count(NOTICE) == 1


def _said_of_itself() -> str:
    from pliant.jit import _CompileNotice

    with contextlib.redirect_stderr(io.StringIO()) as printed:
        notice = _CompileNotice()
        notice.say()
        notice.say()
    return printed.getvalue()


KERNEL = """
    import numpy as np
    from pliant import jit
    {setup}
    from pliant_sample import total
    print(total(np.arange(5.0)))
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder with a module that has a kernel, and room for Numba's cache."""
    (tmp_path / "pliant_sample.py").write_text(
        textwrap.dedent(
            """
            from pliant import jit

            def total(values):
                sum = 0.0
                for value in values:
                    sum += value
                return sum

            total = jit.kernel(total)
            """
        )
    )
    return tmp_path


def test_numba_reports_to_the_notice(sample: Path) -> None:
    impatient = "jit.notice.patience = 0.0"
    patient = "jit.notice.patience = 60.0"
    environment = {"PYTHONPATH": str(sample), "NUMBA_CACHE_DIR": str(sample / "cache")}
    run = python(KERNEL.format(setup=patient), PYTHONPATH=str(sample), NUMBA_CACHE_DIR=str(sample / "other"))
    assert (run.stdout, run.stderr) == ("10.0\n", "")
    first = python(KERNEL.format(setup=impatient), **environment)
    assert first.stdout == "10.0\n"
    assert first.stderr.count(NOTICE) == 1
    second = python(KERNEL.format(setup=impatient), **environment)  # now from the disk
    assert (second.stdout, second.stderr) == ("10.0\n", "")
