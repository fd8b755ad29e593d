"""The options of ``pliant blend`` for what a shape gives way to: obstacles, their motions, friction, itself."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.errors import InputError

if TYPE_CHECKING:
    from pliant.contact import MovingObstacle

STAYS = "none"
"""In place of a motion, for an obstacle that stays where it is."""


def add_contact(parser: Any) -> None:
    """Make the options known."""
    group = parser.add_argument_group("what it gives way to (frames are then solved in order)")
    add_obstacles(group)
    group.add_argument("--self-contact", action="store_true", help="the shape does not pass through itself")
    group.add_argument("--thickness", type=not_negative, help="distance kept (default: a thousandth of the diagonal)")


def add_obstacles(group: Any) -> None:
    """Those for obstacles alone."""
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
    group.add_argument(
        "--friction", type=not_negative, help="Coulomb's coefficient on obstacles (default: 0, they slip)"
    )


def not_negative(text: str) -> float:
    """A number from 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number from 0')
    return value


def read_obstacles(options: argparse.Namespace) -> tuple[list[MovingObstacle], tuple[str, ...]]:
    """The obstacles, and what they are called."""
    from pliant.contact.named import named_obstacle

    if len(options.obstacle_motion) > len(options.obstacle):
        given = f"{len(options.obstacle_motion)} for {len(options.obstacle)} obstacles"
        raise InputError(f"there are more --obstacle-motion than --obstacle: {given}; expected at most one each")
    if options.friction is not None and not options.obstacle:
        raise InputError("--friction acts on obstacles, and there is none; give one with --obstacle")
    motions = [*options.obstacle_motion, *[STAYS] * len(options.obstacle)]
    obstacles = [named_obstacle(what, motion) for what, motion in zip(options.obstacle, motions, strict=False)]
    return obstacles, tuple(Path(what).name for what in options.obstacle)


def check_contact(options: argparse.Namespace) -> None:
    """Whether the options make sense beside each other."""
    touches = bool(options.obstacle) or options.self_contact
    if options.thickness is not None and not touches:
        raise InputError("--thickness is given, but nothing to keep away from; add --obstacle or --self-contact")
    if touches and options.jobs > 1:
        raise InputError("--jobs cannot be used with contact: frames depend on the ones before; leave it out")
    if touches and options.method != "lbfgs":
        raise InputError(f'--method is "{options.method}"; contact is solved by "lbfgs" alone; leave it out')


def obstacle_words(options: argparse.Namespace) -> dict[str, str]:
    """The options for obstacles in words, for summaries."""
    words = {}
    if options.obstacle:
        motions = [*options.obstacle_motion, *[STAYS] * len(options.obstacle)]
        pairs = zip(options.obstacle, motions, strict=False)
        words["obstacles"] = "; ".join(what if way == STAYS else f"{what} moved by {way}" for what, way in pairs)
    if options.friction:
        words["friction"] = f"{options.friction:g}"
    return words
