"""What can be known of an output before the work whose result it takes: an hour of solving is not to end in a typo."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import pliant
from pliant.app.inspection import size_text
from pliant.core.errors import FileError, PliantWarning
from pliant.core.shapes import Shape
from pliant.io import BY_SUFFIX
from pliant.io.archive import is_archive
from pliant.io.naming import stale_frames
from pliant.io.output import check_target
from pliant.io.weights import WRITTEN

ReadScene = TypeVar("ReadScene", bound=Any)
Located = Callable[[str], AbstractContextManager[None]]
"""Around checks of the "file" or the "report" of an output: says where these names come from, if that is a scene."""


def named_by_user(key: str) -> AbstractContextManager[None]:
    """Of names on the command line: errors stay as they are."""
    return nullcontext()


def check_clip(output: str, shape: Shape | None = None, *, joints: bool = False) -> None:
    """Whether a clip can be written by this name: in its format, to its folder, with what is installed.

    shape: what moves, where it is not a mesh. joints: whether a motion of joints can be written instead.
    """
    target = Path(output)
    if joints and target.suffix.lower() in set(_suffixes("motion")) - set(_suffixes("animation", "mesh")):
        _check_writable(output)
        return
    if target.suffix and not is_archive(target):
        clips, frames = " ".join(_suffixes("animation")), " ".join(_suffixes("mesh", but="animation"))
        _check_suffix(
            output, "clips", _suffixes("animation", "mesh"), f"{clips}, one file a frame {frames}, or a folder"
        )
    _check_writable(output, "" if target.suffix else "frame_0001.obj")
    little = _TRIANGLE if shape is None else _LITTLE[type(shape)]
    _try(output, pliant.Animation(little, np.stack([little.points, little.points + 1])))


def check_mesh(output: str) -> None:
    """Whether a mesh can be written by this name."""
    _check_suffix(output, "meshes", _suffixes("mesh"))
    _check_writable(output)
    _try(output, _TRIANGLE)


def check_skeleton(output: str) -> None:
    """Whether a skeleton can be written by this name."""
    _check_suffix(output, "skeletons", _suffixes("skeleton"))
    _check_writable(output)


def check_shapes(output: str) -> None:
    """Whether a rig can be written by this name."""
    _check_suffix(output, "shapes", _suffixes("shapes"))
    _check_writable(output)


def check_weights(output: str) -> None:
    """Whether sliders can be written by this name."""
    _check_suffix(output, "weights", list(WRITTEN))
    _check_writable(output)


def check_picture(output: str) -> None:
    """Whether a picture can be written by this name."""
    if Path(output).suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise FileError(output, "a picture is an image file; expected a name that ends in .png, .jpg or .webp")
    _check_writable(output)


_TRIANGLE = pliant.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
_LITTLE: dict[type, Shape] = {
    pliant.Mesh: _TRIANGLE,
    pliant.PointCloud: pliant.PointCloud(_TRIANGLE.points),
    pliant.TetMesh: pliant.TetMesh(np.eye(4, 3, k=-1), np.arange(4)[None]),
}


def _try(output: str, content: pliant.Mesh | pliant.Animation) -> None:
    """Write something small by the same name elsewhere."""
    target = Path(output)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        try:
            pliant.write(Path(folder) / target.name, content)
        except FileError as error:
            raise FileError(output, error.problem) from error


def _check_suffix(output: str, what: str, suffixes: list[str], expected: str = "") -> None:
    """Whether the name has one of the suffixes; what: that files of these formats hold."""
    suffix = Path(output).suffix
    if suffix.lower() not in suffixes:
        problem = f"does not hold {what}" if suffix.lower() in BY_SUFFIX else "is no format that pliant knows"
        raise FileError(output, f'"{suffix}" {problem}; expected one of {expected or " ".join(suffixes)}')


def _suffixes(*kinds: str, but: str = "") -> list[str]:
    """Those of the formats that can hold something of these kinds, `but` none of that one."""
    return [s for s, format in BY_SUFFIX.items() if set(kinds) & set(format.writes) and but not in format.writes]


def check_frames(output: str, count: int) -> None:
    """Whether that many frames, if each is a file of its own, would mix with others' files."""
    target = Path(output)
    if not target.suffix:
        stale_frames(target, "frame", ".obj", count)
    elif count > 1 and target.suffix.lower() in _suffixes("mesh", but="animation"):
        stale_frames(target.parent, target.stem, target.suffix.lower(), count)


def set_up(
    output: str,
    report: str | None,
    read: Callable[[], ReadScene],
    located: Located,
    *,
    joints: bool = False,
) -> tuple[ReadScene, Any]:
    """A scene and what solves it, with all checked that can be before it is solved, and that it can be written.

    joints: whether a motion of joints can be written instead of a clip.
    """
    with located("file"):
        check_clip(output, joints=joints)
    with located("report"):
        if report:
            check_page(report)
    scene = read()
    frames = len(scene) if hasattr(scene, "__len__") else None  # those of a transfer are known once it is prepared
    with located("file"):
        check_clip(output, scene.shape, joints=joints)
        if frames is not None:
            check_frames(output, frames)
    solver = scene.prepare()
    with located("file"):
        if frames is None:
            check_frames(output, len(solver))
    return scene, solver


def check_page(report: str) -> None:
    """Whether a report can be written by this name."""
    if Path(report).suffix.lower() not in (".html", ".htm"):
        raise FileError(report, "a report is a web page; expected a name that ends in .html")
    _check_writable(report)


def say_missing(output: str) -> None:
    """Say that an output's folder is missing and will be made, for its name may be a typo."""
    folder = Path(output).parent
    if not folder.exists():
        warnings.warn(f"{folder}: there is no such folder; it will be made", PliantWarning, stacklevel=2)


def _check_writable(output: str, frame: str = "") -> None:
    """Whether a file can be made there, or a frame in that folder; folders that are missing would be made."""
    target = Path(output, frame)
    check_target(target)
    say_missing(output)
    there = next((parent for parent in target.parents if parent.exists()), target.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=".pliant-", dir=there):
            pass
    except OSError as error:
        raise FileError(target, f"cannot be written ({(error.strerror or str(error)).lower()})") from error


def written_line(content: Any, written: Sequence[Path]) -> str:
    """What was written, where to, and how large it is."""
    size = size_text(sum(path.stat().st_size for path in written if path.is_file()))
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    return f"{content!r} -> {written[0]}{more} ({size})"
