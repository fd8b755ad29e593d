"""Reading by suffix: meshes, shapes, animations, motions and skeletons from a file, folder, glob or archive."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np

from pliant.core.clips import DEFAULT_FPS, Animation, Shapes, topology_mismatch
from pliant.core.errors import FileError, InputError, TopologyError, about_argument
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.validation import frame_rate
from pliant.core.values import stack_frames
from pliant.io.formats import BY_SUFFIX, KIND_NAMES, Content, ContentKind, format_of, kinds_in
from pliant.io.naming import is_numbered
from pliant.io.source import PathLike, Source, find

BASE_NAMES = ("neutral", "base", "rest", "ref", "reference", "default")
"""What a base shape's file is called; the first of these that occurs decides."""


def _read_one(source: Source, kind: ContentKind, **options: Any) -> Any:
    format = format_of(source.label, source.suffix)
    if kind not in format.reads:
        contents = ", ".join(KIND_NAMES[k] for k in format.reads)
        raise source.error(f"a {format.name} file cannot hold {KIND_NAMES[kind]}; it can hold {contents}")
    with _about(source), np.errstate(all="ignore"):  # readers look for NaN and infinity themselves
        return format.function("read", kind)(source, **options)


@contextmanager
def _about(source: Source) -> Iterator[None]:
    """Adds the file to errors that do not name it."""
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise source.error(str(error), argument=error.argument) from error


def _accepts(kind: ContentKind) -> Any:
    """File names that may hold this kind."""
    return lambda name: kind in getattr(BY_SUFFIX.get(Path(name).suffix.lower()), "reads", ())


def _only(path: PathLike, kind: ContentKind) -> Source:
    """The one file that `path` stands for."""
    sources = find(path, _accepts(kind))
    if len(sources) != 1:
        names = ", ".join(s.name for s in sources[:3]) + (", ..." if len(sources) > 3 else "")
        found = f"holds {len(sources)} files ({names})" if sources else f"holds no file with {KIND_NAMES[kind]}"
        raise FileError(path, f"{found}; expected one with {KIND_NAMES[kind]}")
    return sources[0]


def read_mesh(path: PathLike) -> Mesh:
    """One polygon mesh: .obj .ply .stl .off .glb .gltf .usd* .npz, or the surface of a tetrahedral .mesh."""
    return cast(Mesh, _read_one(_only(path, "mesh"), "mesh"))


def read_tets(path: PathLike) -> TetMesh:
    """Tetrahedra: .mesh .npz."""
    return cast(TetMesh, _read_one(_only(path, "tets"), "tets"))


def read_points(path: PathLike) -> PointCloud:
    """A point cloud: .ply .obj .usd* .npz; a mesh's vertices if the file has faces."""
    return cast(PointCloud, _read_one(_only(path, "points"), "points"))


def read_skeleton(path: PathLike) -> Skeleton:
    """A skeleton: .bvh .tgf .glb .gltf .json .out (Pinocchio) .npz."""
    return cast(Skeleton, _read_one(_only(path, "skeleton"), "skeleton"))


def read_motion(path: PathLike, *, clip: str | int | None = None) -> Motion:
    """A skeleton's motion: .bvh .glb .gltf .npz. `clip` names or numbers one of several; the first if not given."""
    source = _only(path, "motion")
    options = {} if clip is None else {"clip": clip}
    return cast(Motion, _read_one(source, "motion", **options))


@takes_meshes("base")
def read_shapes(path: PathLike | Iterable[PathLike], *, base: Mesh | PathLike | None = None) -> Shapes:
    """Named shapes of one mesh, the base first.

    path: a rig with morph targets (.glb .gltf .usd* .npz), or a folder, glob, archive or list of mesh files, one a
        shape, or of sparse .target files.
    base: the base mesh, its file, or the name of one of the shapes. If not given: the rig's own, or the first file
        whose name has the word neutral, base, rest, ref, reference or default in it, or else the first.
    """
    if not isinstance(base, (Mesh, str, os.PathLike, type(None))):
        raise InputError(f"base is {base!r:.60}; expected a Mesh, its file, or the name of a shape")
    sources = find(path, lambda name: _accepts("mesh")(name) or _accepts("shapes")(name))
    if not sources:
        raise FileError(path, "holds no mesh files; expected one for each shape")
    if all(source.suffix == ".target" for source in sources):
        if base is None:
            raise FileError(path, "holds sparse targets; give the mesh they apply to with base=", argument="base")
        with about_argument("base"):
            mesh = base if isinstance(base, Mesh) else read_mesh(base)
        return _shapes_from_targets(mesh, sources)
    if len(sources) > 1 or isinstance(base, Mesh):
        return _shapes_from_files(sources, base)
    source = sources[0]
    if "shapes" in format_of(source.label, source.suffix).reads:
        return _shapes_from_rig(source, base)
    if base is None:
        raise source.error("holds one shape; give a folder, glob, archive or list of files, or a rig such as .glb")
    return _shapes_from_files(sources, base)


def _shapes_from_rig(source: Source, base: PathLike | None) -> Shapes:
    """A file's own shapes, that called `base` first; if `base` is a file, the rig's mesh is a shape of that."""
    if base is not None and Path(base).is_file():
        return _shapes_from_files([source], base)
    shapes = cast(Shapes, _read_one(source, "shapes"))
    if base is None:
        return shapes
    name = os.fspath(base)
    if name not in shapes.names:
        raise source.error(
            f'has no shape "{name}" (nor is that a file); it has {_listed(shapes.names)}', argument="base"
        )
    first = shapes.names.index(name)
    order = [first, *(k for k in range(len(shapes)) if k != first)]
    return Shapes(shapes[first], shapes.points[order], tuple(shapes.names[k] for k in order))


def _shapes_from_targets(base: Mesh, sources: list[Source]) -> Shapes:
    from pliant.io.target import apply_targets

    moved = []
    for source in sources:
        with _about(source):
            moved.append(apply_targets(base, [source]).points[1])
    return Shapes(base, np.stack([base.points, *moved]), ("base", *(source.stem for source in sources)))


def _shapes_from_files(sources: list[Source], base: Mesh | PathLike | None) -> Shapes:
    names = [source.stem for source in sources]
    first = None
    if base is None:
        tokens = [{word.lower() for word in re.split(r"[\W\d_]+|(?<=[a-z])(?=[A-Z])", name)} for name in names]
        first = next((k for word in BASE_NAMES for k in range(len(names)) if word in tokens[k]), 0)
    elif not isinstance(base, Mesh):
        wanted = os.fspath(base)
        first = next((k for k, s in enumerate(sources) if wanted in (s.stem, s.name, s.label)), None)
        if first is None and len(Path(wanted).parts) == 1 and not Path(wanted).exists():
            raise FileError(wanted, f"is neither a file nor one of the shapes {_listed(names)}", argument="base")
        with about_argument("base"):
            base = read_mesh(base) if first is None else None
    if first is not None:
        sources.insert(0, sources.pop(first))
        names.insert(0, names.pop(first))
        mesh = cast(Mesh, _read_one(sources[0], "mesh"))
        points = [mesh.points, *(_matching_points(mesh, s, sources[0].name) for s in sources[1:])]
    else:
        assert isinstance(base, Mesh)
        mesh, names = base, ["base", *names]
        points = [mesh.points, *(_matching_points(mesh, s, "the base") for s in sources)]
    return Shapes(mesh, np.stack(points), tuple(names))


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _matching_points(base: Mesh, source: Source, base_name: str) -> Any:
    mesh = cast(Mesh, _read_one(source, "mesh"))
    problem = topology_mismatch(base, mesh)
    if problem:
        raise TopologyError(source.label, f"does not match {base_name}: {problem}")
    return mesh.points


@takes_meshes("mesh")
def read_animation(
    path: PathLike | Iterable[PathLike],
    *,
    clip: str | int | None = None,
    fps: float | None = None,
    mesh: Mesh | PathLike | None = None,
) -> Animation:
    """A moving shape: a folder, glob, archive or list of mesh files, or .glb .gltf .usd* .pc2 .mdd .npz.

    clip: name or number of one of several clips in the file; the first if not given.
    fps: frames a second to sample at (clips), or that the frames were made at (sequences; 30 if not given).
    mesh: what a point cache moves; without it the frames are point clouds.
    """
    rate = DEFAULT_FPS if fps is None else frame_rate(fps)
    if not isinstance(mesh, (Mesh, str, os.PathLike, type(None))):
        raise InputError(f"mesh is {mesh!r:.60}; expected a Mesh or its file")
    sources = find(path, lambda name: _accepts("animation")(name) or _accepts("mesh")(name))
    if not sources:
        raise FileError(path, "holds no frames; expected mesh files or a clip")
    if len(sources) == 1 and "animation" in format_of(sources[0].label, sources[0].suffix).reads:
        options = {"clip": clip, "fps": fps}
        moved: Animation = _read_one(sources[0], "animation", **{k: v for k, v in options.items() if v is not None})
        if mesh is None:
            return moved
        shape = mesh if isinstance(mesh, Mesh) else read_mesh(mesh)
        if len(shape.points) != moved.points.shape[1]:
            raise sources[0].error(f"moves {moved.points.shape[1]} points; the mesh has {len(shape.points)}")
        return Animation(shape, moved.points, moved.fps, moved.name)
    if clip is not None:
        description = f"{len(sources)} files, a frame each" if len(sources) > 1 else "a mesh that does not move"
        raise FileError(
            path, f"holds {description}; clip={clip!r} needs a file with clips, such as .glb", argument="clip"
        )
    first = cast(Mesh, _read_one(sources[0], "mesh"))
    points = stack_frames(chain([first.points], (_matching_points(first, s, sources[0].name) for s in sources[1:])))
    shape = first if mesh is None else mesh if isinstance(mesh, Mesh) else read_mesh(mesh)
    return Animation(shape, points, rate, sources[0].path.name.split(".")[0])


def read(path: PathLike, kind: ContentKind | None = None) -> Content:
    """Whatever a path holds, or the given kind of it.

    A folder, glob or archive of several meshes is an animation if their names are numbered, else a set of shapes.
    """
    if kind is None:
        sources = find(path, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
        if not sources:
            raise FileError(path, f"holds nothing readable; expected {' '.join(sorted(BY_SUFFIX))}")
        several: ContentKind = "animation" if is_numbered([source.stem for source in sources]) else "shapes"
        kind = several if len(sources) > 1 else kinds_in(sources[0])[0]
    if kind not in KIND_NAMES:
        raise InputError(f"kind is {kind!r:.60}; expected one of {', '.join(KIND_NAMES)}")
    reader: Any = globals()[f"read_{kind}"]
    return cast(Content, reader(path))


def convertible_kind(path: PathLike, target: PathLike) -> ContentKind | None:
    """The richest kind that `path` holds and a file called `target` can hold; None leaves it to `read`."""
    sources = find(path, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
    suffix = Path(target).suffix.lower()
    if len(sources) != 1 or not suffix:
        return None
    writes = format_of(target, suffix, written=True).writes
    return next((kind for kind in kinds_in(sources[0]) if kind in writes), None)
