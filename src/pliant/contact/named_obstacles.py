"""Obstacles that a command or a scene names, with their motions: solids, meshes that stay, keyframes, clips."""

from __future__ import annotations

from pathlib import Path

import pliant
from pliant.contact import MovingObstacle, as_obstacle, parse_obstacle, read_motion
from pliant.contact.obstacle_files import OBSTACLE_KINDS
from pliant.core.errors import FileError, InputError, about_argument
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.sequence import is_numbered
from pliant.io.source import find

KEYFRAME_SUFFIXES = (".csv", ".json", ".txt")
"""Suffixes of files with keyframes; others hold clips."""


def named_obstacle(what: str, motion: str | None = None) -> MovingObstacle:
    """An obstacle as named, with its motion; without one, it stays where it is."""
    if _is_clip(what):
        if motion is not None:
            problem = f'the obstacle "{what}" is a clip already; leave out its motion, or say "none"'
            raise InputError(problem, argument="motion")
        return _deforming(what, pliant.read_animation(what))
    if motion is None:
        return as_obstacle(parse_obstacle(what))
    if Path(motion).suffix.lower() in KEYFRAME_SUFFIXES:
        obstacle = parse_obstacle(what)
        with about_argument("motion"):
            return MovingObstacle(obstacle, read_motion(motion))
    with about_argument("motion"):
        if is_solid(what):
            raise FileError(motion, f'a clip cannot move "{what}"; expected keyframes in a .csv or .json file')
        clip = pliant.read_animation(motion)
    mesh = pliant.read_mesh(what)
    with about_argument("motion"):
        if len(mesh.points) != clip.points.shape[1]:
            raise FileError(motion, f"moves {clip.points.shape[1]} points; the obstacle {what} has {len(mesh.points)}")
        return _deforming(motion, pliant.Animation(mesh, clip.points, clip.fps))


def _deforming(path: str, clip: pliant.Animation) -> MovingObstacle:
    if isinstance(clip.shape, pliant.PointCloud):
        raise FileError(path, "moves points, not a mesh; give the mesh, and this as its motion (--obstacle-motion)")
    try:
        return as_obstacle(clip)
    except FileError:
        raise
    except InputError as error:
        raise FileError(path, str(error)) from None


def is_solid(what: str) -> bool:
    """Whether words mean a solid, such as ``sphere:0,0,0,1``, and not a file."""
    return what.partition(":")[0].strip().lower() in OBSTACLE_KINDS


def _is_clip(what: str) -> bool:
    """Whether a name means a clip, and not a solid or a mesh that stays as it is."""
    if is_solid(what) or not what.strip():
        return False
    try:
        sources = find(what, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
    except FileError:  # no such file: whoever reads it will say so
        return False
    if len(sources) > 1:
        return is_numbered([source.stem for source in sources])
    return bool(sources) and kinds_in(sources[0])[0] == "animation"
