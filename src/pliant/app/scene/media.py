"""Shapes and motions that a scene names: files, relative to the scene's own folder, or what the gallery has."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import gallery
from pliant.app.scene.located_toml import ArgumentKeys, KeyPath, TomlText
from pliant.app.scene.schema import FileName, Key, ListOf, Record, Text
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError, InputError
from pliant.core.options import POSITIVE, Choice, Either, Whole, closest
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose, bone_vector
from pliant.core.topology import Ints
from pliant.gallery import MOTIONS, SHAPES
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.archive import is_archive
from pliant.io.source import find

FILE = Key(FileName("the name of a file, folder, glob or archive, from the scene's folder"), "what to read")
GALLERY_VERTICES = Key(Whole(500, 200_000), "how many vertices the gallery's shape has, about")

SOURCE_KEYS = {
    "file": FILE,
    "gallery": Key(Choice(MOTIONS), "a built-in motion instead of a file"),
    "vertices": GALLERY_VERTICES,
    "clip": Key(Either((Text("a clip's name"), Whole())), "which clip, where a file has several"),
    "as": Key(
        Choice(("animation", "motion")),
        "what to take from a file that has points and bones that move; with automatic controls, the bones by default",
    ),
    "fps": Key(POSITIVE, "frames a second to sample at, or that the frames of a sequence were made at"),
    "rest": Key(
        Either((Whole(), FileName("the name of a file with the same points or joints"))),
        "the frame, numbered from 0, that counts as the rest pose, or a file that holds it; by default its own",
    ),
    "without": Key(
        ListOf(Text('a joint\'s name, or a pattern such as "tail*"'), "names of joints"),
        "joints to leave out, with all that hang on them, such as fingers for a target that has none",
        default=[],
    ),
    "first": Key(Whole(), "the first frame to take, numbered from 0", default=0),
    "last": Key(Whole(), "the last frame to take"),
}
SHAPE = Record(
    {
        "file": FILE,
        "gallery": Key(Choice(SHAPES), "a built-in shape instead of a file"),
        "vertices": GALLERY_VERTICES,
        "pose": Key(Text("a pose's name"), "which of the gallery's poses"),
    },
    one_of=("file", "gallery"),
    only_with={"vertices": "gallery", "pose": "gallery"},
)


def from_scene(text: TomlText, name: str) -> str:
    """A path of the scene's, from where the scene is."""
    return from_folder(text.source.path.parent, name)


def from_folder(folder: Path, name: str) -> str:
    """What a name of a file, folder, glob or archive means in a folder; letters of the folder's own are no pattern."""
    if Path(name).is_absolute() or folder == Path():
        return name
    whole = folder / name
    if not glob.has_magic(name) or os.path.exists(whole) or any(map(_is_packed, whole.parents)):
        return str(whole)
    return str(Path(glob.escape(str(folder))) / name)


def _is_packed(path: Path) -> bool:
    return is_archive(path) and os.path.isfile(path)


def read_source(text: TomlText, table: dict[str, Any], path: KeyPath, *, bones: bool = False) -> Animation | Motion:
    """The motion of one source, its frames chosen and its rest pose set; see `motion_in`."""
    keys: ArgumentKeys = {(name,): (*path, name) for name in table}
    bones |= bool(table["without"])  # names joints
    if table["gallery"]:
        with text.about((*path, "gallery"), keys):
            made = _from_gallery(table["gallery"], table["vertices"])
            motion = made.resampled(table["fps"]) if table["fps"] else made
    else:
        with text.about((*path, "file"), keys):
            file, kind = from_scene(text, table["file"]), table["as"]
            motion = motion_in(file, clip=table["clip"], fps=table["fps"], kind=kind, bones=bones)
    first, last = chosen_frames(text, table, len(motion), path)
    if table["without"]:
        if not isinstance(motion, Motion):
            raise text.error("a sequence of points has no joints to leave out", (*path, "without"))
        with text.about((*path, "without")):
            motion = without_joints(motion, table["without"])
    with text.about((*path, "rest")):
        rest = from_scene(text, table["rest"]) if isinstance(table["rest"], str) else table["rest"]
        return part_of(motion if rest is None else with_rest(motion, rest), first, last)


def chosen_frames(text: TomlText, table: dict[str, Any], count: int, path: KeyPath) -> tuple[int, int]:
    """The first and the last of a motion's frames to take; the frame of its rest, if one is named, has to be there."""
    for key in ("rest", "first", "last"):
        if isinstance(table.get(key), int) and table[key] >= count:
            raise text.error(f"is {table[key]}; there are {count} frames, numbered from 0", (*path, key))
    last = count - 1 if table["last"] is None else table["last"]
    if last < table["first"]:
        raise text.error(f"is {last}; the first frame to take is {table['first']}", (*path, "last"))
    return table["first"], last


def without_joints(motion: Motion, patterns: Sequence[str]) -> Motion:
    """The motion without joints of these names or patterns, and without all that hang on them."""
    skeleton = motion.skeleton
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in skeleton.names):
            raise InputError(f'no joint is called "{pattern}"; {closest(pattern, list(skeleton.names))}')
    drop: list[bool] = []
    for name, parent in zip(skeleton.names, skeleton.parents.tolist(), strict=True):
        drop.append((parent >= 0 and drop[parent]) or any(fnmatchcase(name, pattern) for pattern in patterns))
    kept = np.flatnonzero(~np.array(drop))
    if not len(kept):
        raise InputError(f"{', '.join(patterns)} would leave no joint; expected that some are left")
    number = np.cumsum(~np.array(drop)) - 1
    bare = [j for j in kept.tolist() if j in skeleton.parents and not np.isin(kept, _children(skeleton, j)).any()]
    ends = {j: bone_vector(skeleton, j) for j in bare} | dict(skeleton.ends)  # a hand keeps its length without fingers
    smaller = Skeleton(
        tuple(skeleton.names[j] for j in kept),
        np.where(skeleton.parents[kept] >= 0, number[skeleton.parents[kept]], -1),
        skeleton.offsets[kept],
        skeleton.rest_rotations[kept],
        {int(number[j]): end for j, end in ends.items() if not drop[j]},
        skeleton.world,
    )
    rotated, positions = motion.rotations[:, kept], motion.translations[:, kept]
    scales = None if motion.scales is None else motion.scales[:, kept]
    return replace(motion, skeleton=smaller, rotations=rotated, translations=positions, channels=None, scales=scales)


def _children(skeleton: Skeleton, joint: int) -> Ints:
    return np.flatnonzero(skeleton.parents == joint)


def motion_in(
    file: str,
    *,
    clip: str | int | None = None,
    fps: float | None = None,
    kind: str | None = None,
    bones: bool = False,
) -> Animation | Motion:
    """A motion of points or bones, whatever the file has; of both, the points, or the `bones`, unless told."""
    if kind is None:
        sources = find(file, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
        kinds = kinds_in(sources[0]) if len(sources) == 1 else ()
        kind = "motion" if "motion" in kinds and (bones or "animation" not in kinds) else "animation"
    if kind == "motion":
        motion = pliant.read_motion(file, clip=clip)
        return motion.resampled(fps) if fps else motion
    moved = pliant.read_animation(file, clip=clip, fps=fps)
    if len(moved) == 1 and Path(file).is_file():
        raise FileError(file, "holds one shape that does not move; expected a sequence, a clip or a skeleton's motion")
    return moved


def _from_gallery(name: str, vertices: int | None) -> Animation | Motion:
    make = getattr(gallery, name)
    has_points = name in ("animal_gait", "tentacle_curl")
    made: Animation | Motion = make(vertices) if has_points and vertices is not None else make()
    return made


def part_of(motion: Animation | Motion, first: int, last: int) -> Animation | Motion:
    """The frames from `first` to `last`."""
    some = slice(first, last + 1)
    if isinstance(motion, Motion):
        return motion.chosen(some)
    return replace(motion, points=motion.points[some])


def with_rest(motion: Animation | Motion, rest: int | str) -> Animation | Motion:
    """The same motion, with another rest that it is measured against: one of its frames, or what a file holds.

    A file has a shape with as many points, or, for a motion of joints, a motion of the same joints, whose first frame
    it is.
    """
    if isinstance(motion, Motion):
        pose = motion[rest] if isinstance(rest, int) else _pose_in(rest, motion.skeleton)
        bones = replace(motion.skeleton, rest_rotations=pose.rotations, offsets=pose.translations)
        return replace(motion, skeleton=bones)
    if isinstance(rest, int):
        return replace(motion, shape=motion[rest])
    points = shape_in(rest).points
    if len(points) != len(motion.shape.points):
        found = f"has {len(points)} points; the sequence whose rest it is to be has {len(motion.shape.points)}"
        raise FileError(rest, found)
    return replace(motion, shape=motion.shape.with_points(points))


def _pose_in(file: str, skeleton: Skeleton) -> SkeletonPose:
    other = pliant.read_motion(file)
    lacks = [name for name in skeleton.names if name not in other.skeleton.names]
    if lacks:
        raise FileError(file, f'has no joint "{lacks[0]}", which the motion has whose rest it is to be')
    kept = [other.skeleton.names.index(name) for name in skeleton.names]
    first = other[0]
    return SkeletonPose(skeleton, first.rotations[kept], first.translations[kept])


def read_target(text: TomlText, table: dict[str, Any], path: KeyPath) -> Shape:
    """A shape to be moved."""
    if not table["gallery"]:
        with text.about((*path, "file")):
            return shape_in(from_scene(text, table["file"]))
    make = getattr(gallery, table["gallery"])
    with text.about((*path, "vertices")):
        made = make() if table["vertices"] is None else make(table["vertices"])
    if isinstance(made, Shapes):
        if table["pose"] and table["pose"] not in made.names:
            raise text.error(f"no pose has this name; {closest(table['pose'], list(made.names))}", (*path, "pose"))
        return made.named(table["pose"]) if table["pose"] else made.base
    if table["pose"]:
        raise text.error(f"the gallery's {table['gallery']} has no poses", (*path, "pose"))
    return made


def shape_in(file: str) -> Shape:
    """A shape; of a clip or a rig, the shape that moves."""
    content = pliant.read(file)
    if isinstance(content, Animation):
        return content.shape
    if isinstance(content, Shapes):
        return content.base
    if isinstance(content, (Mesh, TetMesh, PointCloud)):
        return content
    return pliant.read_mesh(file)
