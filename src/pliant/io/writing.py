"""Writing by suffix: each file is staged and renamed, so that none is left half-written."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import DEFAULT_FPS, Animation, Pose, Shapes
from pliant.core.errors import FileError, InputError, PliantWarning
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.skeleton import Motion
from pliant.core.skinned import SkinnedAnimation
from pliant.core.topology import Floats
from pliant.core.validation import target_path
from pliant.core.values import as_array, stack_frames
from pliant.io.archive import is_archive
from pliant.io.formats import BY_SUFFIX, KIND_NAMES, KIND_OF, Content, Format, format_of
from pliant.io.naming import frame_names, shape_names, stale_frames
from pliant.io.output import staged
from pliant.io.source import PathLike

QUANTIZED = (".glb", ".gltf")
"""Suffixes of files that hold quantised coordinates."""


@takes_meshes("content")
def write(path: PathLike, content: Content | Pose, *, quantize: bool = False) -> list[Path]:
    """Write by suffix, and return the files written. Nothing is left half-written, and no old file is lost on failure.

    An animation given to a mesh format (.obj .ply .stl .off) becomes a numbered sequence: ``walk.obj`` gives
    ``walk_0001.obj``, ..., and a name without suffix gives a folder of OBJ files. Frames that pliant wrote under that
    name before and that are beyond the new end are removed with it; if others' files are there, it refuses. Shapes
    become one file each: ``face.obj`` gives ``face_smile.obj``, ..., and ``face`` gives ``face/smile.obj``, ...

    quantize: coordinates of 16 bits and normals of 8 in a glTF file (KHR_mesh_quantization), half its size.
    """
    target = target_path(path)
    if quantize and target.suffix.lower() not in QUANTIZED:
        raise FileError(path, f"has no quantised form; expected {' or '.join(QUANTIZED)}", argument="quantize")
    more = {"quantize": True} if quantize else {}
    content = content.shape if isinstance(content, Pose) else content
    if isinstance(content, SkinnedAnimation) and (put := skin_writer(target)):
        with staged(target) as staging:
            put(staging, content, **more)
            return _placed(target, staging)
    if isinstance(content, Animation) and type(content) is not Animation:  # an engine's, which knows more
        content = Animation(content.shape, content.points, content.fps, content.name)
    if type(content) not in KIND_OF:
        raise InputError(f"cannot write a {type(content).__name__}; expected {', '.join(t.__name__ for t in KIND_OF)}")
    kind = KIND_OF[type(content)]
    if is_archive(target):
        raise FileError(path, "archives are read, not written; name a folder or a file such as .glb")
    if isinstance(content, (Animation, Shapes)) and not target.suffix:
        return _write_sequence(target, "" if isinstance(content, Shapes) else "frame", BY_SUFFIX[".obj"], content)
    format = format_of(path, target.suffix.lower(), written=True)
    if isinstance(content, Motion) and content.scales is not None:
        scaled = ", ".join(content.scaled_joints)
        warnings.warn(f"{target}: left out how joints are scaled: {scaled}", PliantWarning, stacklevel=2)
    if kind in format.writes:
        with staged(target) as staging:
            format.function("write", kind)(staging, content, **more)
            return _placed(target, staging)
    if isinstance(content, (Animation, Shapes)) and "mesh" in format.writes:
        return _write_sequence(target.parent, target.stem, format, content, target.suffix.lower())
    if isinstance(content, TetMesh) and "mesh" in format.writes:
        return write(target, content.surface)
    if isinstance(content, Motion) and "skeleton" in format.writes:
        return write(target, content.skeleton)
    contents = ", ".join(KIND_NAMES[k] for k in format.writes) or "nothing that pliant writes"
    raise FileError(path, f"a {format.name} file cannot hold {KIND_NAMES[kind]}; it can hold {contents}")


def skin_writer(target: Path) -> Any:
    """What writes a skinned animation to such a file; None if the format has no skins."""
    format = BY_SUFFIX.get(target.suffix.lower())
    return getattr(importlib.import_module(f"pliant.io.{format.module}"), "write_skinned", None) if format else None


def write_clip(path: PathLike, clip: Animation) -> list[Path]:
    """Write an animation as `write` does, but a single frame as a shape, where the format has such."""
    format = BY_SUFFIX.get(Path(path).suffix.lower())
    alone = len(clip) == 1 and format is not None and "mesh" in format.writes
    return write(path, clip[0] if alone else clip)


def write_stream(
    path: PathLike,
    shape: Mesh | TetMesh | PointCloud,
    frames: Iterable[ArrayLike],
    *,
    fps: float = DEFAULT_FPS,
    name: str = Animation.name,
) -> list[Path]:
    """Write frames, (n, 3) points of a shape, as they come; the files are those that `write` makes of the whole clip.

    A clip longer than memory is in a file without a name beside the target until all frames are there, in double
    precision.
    """
    target = target_path(path)
    beside = target.parent if target.parent.is_dir() else None
    points = stack_frames(_checked(frames, shape), folder=beside)
    return write_clip(target, Animation(shape, points, fps, name))


def _checked(frames: Iterable[ArrayLike], shape: Mesh | TetMesh | PointCloud) -> Iterator[Floats]:
    """The frames of a shape, one or more."""
    k = -1
    for k, frame in enumerate(frames):
        points = as_array(frame, f"frame {k}", np.float64)
        if points.shape != shape.points.shape:
            raise InputError(f"frame {k} has shape {points.shape}; expected {shape.points.shape}")
        yield points
    if k < 0:
        raise InputError("got no frames; expected one or more")


def write_frames(path: PathLike, frames: Sequence[Mesh | TetMesh | PointCloud]) -> list[Path]:
    """Write shapes as a numbered sequence, one file each, as `write` does with an animation.

    For frames that differ in more than their points, such as normals or splats that rotate with them.
    """
    target = Path(path)
    format = format_of(path, target.suffix.lower() or ".obj", written=True)
    folder, stem = (target.parent, target.stem) if target.suffix else (target, "frame")
    return _write_sequence(folder, stem, format, frames, target.suffix.lower() or ".obj")


def _write_sequence(
    folder: Path,
    stem: str,
    format: Format,
    content: Animation | Shapes | Sequence[Mesh | TetMesh | PointCloud],
    suffix: str = ".obj",
) -> list[Path]:
    """One file a frame or shape, all staged before the first appears."""
    if isinstance(content, Shapes):
        names, stale = shape_names(stem, content.names), []
    else:
        names = frame_names(stem, len(content))
        stale = stale_frames(folder, stem, suffix, len(content))
    with staged(folder / f"{names[0]}{suffix}", obsolete=stale) as staging:
        for name, shape in zip(names, content, strict=True):
            kind = KIND_OF[type(shape)]
            if kind not in format.writes:
                raise FileError(folder / f"{stem}{suffix}", f"a {format.name} file cannot hold {KIND_NAMES[kind]}")
            format.function("write", kind)(staging.with_name(f"{name}{suffix}"), shape)
        return _placed(folder / staging.name, staging)


def _placed(target: Path, stage: Path) -> list[Path]:
    """Where the staged files will be, the main one first."""
    staged_files = sorted(p for p in stage.parent.rglob("*") if p.is_file())
    return sorted((target.parent / p.relative_to(stage.parent) for p in staged_files), key=lambda p: p != target)
