"""The options of ``pliant blend`` for what a shape gives way to: obstacles, their motions, friction, itself."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pliant
from pliant.errors import FileError, InputError
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.sequence import is_numbered
from pliant.io.source import find

if TYPE_CHECKING:
    from pliant.contact import MovingObstacle
    from pliant.report import Contact

KEYS = (".csv", ".json", ".txt")
"""Suffixes of files with keyframes; others hold clips."""
STAYS = "none"
"""In place of a motion, for an obstacle that stays where it is."""


def add_contact(parser: Any) -> None:
    """Make the options known."""
    group = parser.add_argument_group("what it gives way to (frames are then solved in order)")
    more: dict[str, Any] = {"action": "append", "default": []}
    group.add_argument(
        "--obstacle",
        metavar="WHAT",
        help="a closed mesh, a clip of one, sphere:X,Y,Z,R, capsule:X,Y,Z,X,Y,Z,R, cylinder:X,Y,Z,X,Y,Z,R, "
        "box:X,Y,Z,SX,SY,SZ or plane:X,Y,Z,NX,NY,NZ (solid below); may be given again",
        **more,
    )
    group.add_argument(
        "--obstacle-motion",
        metavar="FILE",
        help="keyframes (.csv, .json), or a clip or point cache of the mesh (.pc2, .mdd, .glb, ...); the first is that "
        'of the first obstacle, and so on; "none": it stays',
        **more,
    )
    group.add_argument("--friction", type=_number, help="Coulomb's coefficient on obstacles (default: 0, they slip)")
    group.add_argument("--self-contact", action="store_true", help="the shape does not pass through itself")
    group.add_argument("--thickness", type=_number, help="distance kept (default: a thousandth of the diagonal)")


def _number(text: str) -> float:
    """A number from 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number from 0')
    return value


def read_contact(options: argparse.Namespace) -> Contact:
    """What the options say, checked before anything is solved."""
    _check_together(options)
    from pliant.report import Contact

    motions = [*options.obstacle_motion, *[STAYS] * len(options.obstacle)]
    obstacles = [_moving(what, motion) for what, motion in zip(options.obstacle, motions, strict=False)]
    names = tuple(Path(what).name for what in options.obstacle)
    return Contact(obstacles, options.friction or 0.0, options.self_contact, options.thickness, names)


def _check_together(options: argparse.Namespace) -> None:
    """Whether the options make sense beside each other."""
    touches = bool(options.obstacle) or options.self_contact
    if len(options.obstacle_motion) > len(options.obstacle):
        given = f"{len(options.obstacle_motion)} for {len(options.obstacle)} obstacles"
        raise InputError(f"there are more --obstacle-motion than --obstacle: {given}; expected at most one each")
    if options.friction is not None and not options.obstacle:
        raise InputError("--friction acts on obstacles, and there is none; give one with --obstacle")
    if options.thickness is not None and not touches:
        raise InputError("--thickness is given, but nothing to keep away from; add --obstacle or --self-contact")
    if touches and options.jobs > 1:
        raise InputError("--jobs cannot be used with contact: frames depend on the ones before; leave it out")
    if touches and options.method != "lbfgs":
        raise InputError(f'--method is "{options.method}"; contact is solved by "lbfgs" alone; leave it out')


def _moving(what: str, motion: str) -> MovingObstacle:
    """An obstacle as named, with its motion."""
    from pliant.contact import MovingObstacle, as_obstacle, parse_obstacle, read_motion

    if _is_clip(what):
        if motion != STAYS:
            raise InputError(f'--obstacle "{what}" is a clip already; leave out its --obstacle-motion, or say "none"')
        return _deforming(what, pliant.read_animation(what))
    if motion == STAYS:
        return as_obstacle(parse_obstacle(what))
    if Path(motion).suffix.lower() in KEYS:
        return MovingObstacle(parse_obstacle(what), read_motion(motion))
    if _is_solid(what):
        raise FileError(motion, f'a clip cannot move "{what}"; expected keyframes in a .csv or .json file')
    mesh = pliant.read_mesh(what)
    clip = pliant.read_animation(motion)
    if len(mesh.points) != clip.points.shape[1]:
        raise FileError(motion, f"moves {clip.points.shape[1]} points; the obstacle {what} has {len(mesh.points)}")
    return _deforming(motion, pliant.Animation(mesh, clip.points, clip.fps))


def _deforming(path: str, clip: pliant.Animation) -> MovingObstacle:
    from pliant.contact import as_obstacle

    if isinstance(clip.shape, pliant.PointCloud):
        raise FileError(path, "moves points, not a mesh; give the mesh as --obstacle and this as --obstacle-motion")
    try:
        return as_obstacle(clip)
    except FileError:
        raise
    except InputError as error:
        raise FileError(path, str(error)) from None


def _is_solid(what: str) -> bool:
    from pliant.contact.motion import KINDS

    return what.partition(":")[0].strip().lower() in KINDS


def _is_clip(what: str) -> bool:
    """Whether a name means a clip, and not a solid or a mesh that stays as it is."""
    if _is_solid(what) or not what.strip():
        return False
    try:
        sources = find(what, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
    except FileError:  # no such file: whoever reads it will say so
        return False
    if len(sources) > 1:
        return is_numbered([source.stem for source in sources])
    return bool(sources) and kinds_in(sources[0])[0] == "animation"


def contact_words(options: argparse.Namespace) -> dict[str, str]:
    """The options in words, for summaries."""
    words = {}
    if options.obstacle:
        motions = [*options.obstacle_motion, *[STAYS] * len(options.obstacle)]
        pairs = zip(options.obstacle, motions, strict=False)
        words["obstacles"] = "; ".join(what if way == STAYS else f"{what} moved by {way}" for what, way in pairs)
    if options.friction:
        words["friction"] = f"{options.friction:g}"
    if options.self_contact:
        words["itself"] = "does not pass through itself"
    if options.thickness is not None:
        words["thickness"] = f"{options.thickness:g}"
    return words
