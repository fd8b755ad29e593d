"""The options of simulation, each declared once, and which of them cannot stand beside each other.

Those of the material are in metres, kilograms and seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pliant.core.options import (
    NOT_NEGATIVE,
    POINT,
    POSITIVE,
    Choice,
    Conflict,
    Either,
    Flag,
    Number,
    Options,
    Whole,
    option,
)

Warping = Literal["corotated", "per_node", "paper"]
Rotations = Literal["diffused", "polar"]
Up = Literal["auto", "x", "y", "z", "-x", "-y", "-z"]


@dataclass(frozen=True)
class SimulateOptions(Options):
    """How flesh follows bones."""

    static: bool = option(False, Flag(), "whether every frame is at rest, without inertia")
    hold: float = option(0.0, NOT_NEGATIVE, "how long to go on in the last pose", "seconds")
    young: float = option(1e5, POSITIVE, "Young's modulus", "pascals", default_words="1e5, soft flesh")
    poisson: float = option(0.4, Number(-1, 0.5, "a number above -1 and below 0.5"), "Poisson's ratio")
    density: float = option(1000.0, POSITIVE, "density", "kilograms per cubic metre")
    size: float | Literal["file"] = option(
        2.0,
        Either((POSITIVE, Choice(("file",)))),
        "the longest side of the shape's box in metres; file: its units are as it says",
    )
    gravity: Any = option(
        None,
        Either((Number(), POINT)),
        "down the up axis, such as 9.81, or a vector",
        "metres per second squared",
        default_words="none",
    )
    up: Up = option("auto", Choice.of(Up), "the axis that points up; auto: as the shape's file says, or y")
    damping: float = option(0.005, NOT_NEGATIVE, "viscosity over stiffness", "seconds")
    drag: float = option(0.0, NOT_NEGATIVE, "what slows flesh against its bones, per second")
    friction: float = option(0.0, NOT_NEGATIVE, "Coulomb's coefficient on obstacles")
    self_contact: bool = option(False, Flag(), "whether flesh keeps clear of itself")
    nodes: int = option(3000, Whole(50, 1_000_000), "points that carry the deformation")
    dt: float = option(1 / 60, POSITIVE, "the longest step", "seconds", default_words="1/60")
    fps: float | None = option(
        None, POSITIVE, "frames a second of the clip", default_words="the motion's, but no finer than the steps"
    )
    warping: Warping = option("corotated", Choice.of(Warping), "how Hooke's law is rotated, to compare with")
    rotations: Rotations = option("diffused", Choice.of(Rotations), "where rotations come from, to compare with")


INERTIA = ("hold", "damping", "drag", "dt", "friction", "self_contact")
"""Options of dynamics alone."""


def idle(given: Mapping[str, Any]) -> Iterator[Conflict]:
    """Options that have no effect beside the others. given: those that are, with "obstacles" among them."""
    if given.get("static"):
        yield from ((name, "static leaves out inertia; leave out one of them") for name in INERTIA if name in given)
    if "friction" in given and not given.get("obstacles"):
        yield "friction", "it acts on obstacles, and there are none"
