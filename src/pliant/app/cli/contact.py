"""The flags for what a shape gives way to: obstacles and their motions."""

from __future__ import annotations

import argparse
from typing import Any

from pliant.core.errors import InputError
from pliant.core.options import Path

NO_MOTION = "none"
"""In place of a motion, for an obstacle that stays where it is."""
OBSTACLE_NAMES: dict[Path, str] = {
    ("obstacles", "what"): "--obstacle",
    ("obstacles", "motion"): "--obstacle-motion",
    ("obstacles",): "--obstacle",
}
"""The flags for keys of the table [[obstacles]]."""


def add_obstacles(group: Any) -> None:
    """Add the flags."""
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


def obstacles_of(options: argparse.Namespace) -> dict[str, Any]:
    """The key "obstacles" of a scene, if there are any."""
    things, motions = options.obstacle, options.obstacle_motion
    if len(motions) > len(things):
        given = f"{len(motions)} for {len(things)} obstacles"
        raise InputError(f"there are more --obstacle-motion than --obstacle: {given}; expected at most one each")
    entries: list[dict[str, str]] = [{"what": what} for what in things]
    for entry, motion in zip(entries, motions, strict=False):
        entry |= {} if motion == NO_MOTION else {"motion": motion}
    return {"obstacles": entries} if entries else {}
