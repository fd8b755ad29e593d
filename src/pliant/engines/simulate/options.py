"""The options of simulation, each declared once, and which of them cannot stand beside each other.

Those of the material are in metres, kilograms and seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pliant.core.options import (
    CONTACT_GROUP,
    NOT_NEGATIVE,
    OBSTACLES_FOLDER,
    POINT,
    POSITIVE,
    SOLVER_GROUP,
    Choice,
    Conflict,
    Either,
    Flag,
    Number,
    Options,
    Row,
    Whole,
    option,
)
from pliant.geometry.axes import Up

Root = Literal["held", "free"]
MATERIAL_NUMBER = Number(0, 1e300, "a positive number")
"""In the units of the shape, which may be far from metres."""
StretchLimit = float | Literal["none"]
USUAL_SIZE = 2.0
"""Metres, of the longest side of a shape whose unit nobody says."""
GROUND_FRICTION = 0.8
"""Of a ground, if nothing else is said."""


MOTION_GROUP = "what moves it"
MATERIAL_GROUP = "what it is made of (metres, kilograms, seconds)"
MATERIAL_FOLDER = "Material"
POSES_FOLDER = "Poses over time"
OF_RODS: dict[str, Any] = {"table": "motion.rod", "folder": None, "group": None}


@dataclass(frozen=True)
class SimulateOptions(Options):
    """How flesh follows bones."""

    static: bool = option(
        False, Flag(), "whether every frame is at rest, without inertia", group=MOTION_GROUP, folder=None
    )
    hold: float = option(
        0.0, NOT_NEGATIVE, "how long to go on in the last pose", "seconds", slider=(0.0, 5.0), group=MOTION_GROUP,
        needs=("inertia",), folder=POSES_FOLDER, label="Go on at the end",
    )  # fmt: skip
    pre_roll: float = option(
        0.0, NOT_NEGATIVE,
        "how long before the clip bones take from rest to the first pose; 0: flesh starts at rest in that pose",
        "seconds", slider=(0.0, 3.0), group=MOTION_GROUP, needs=("inertia",), label="Pre-roll",
    )  # fmt: skip
    young: float = option(
        1e5, MATERIAL_NUMBER, "Young's modulus", "pascals", default_text="1e5, soft flesh", slider=(1e3, 1e7),
        group=MATERIAL_GROUP, table="material", folder=MATERIAL_FOLDER, label="Firmness",
    )  # fmt: skip
    poisson: float = option(
        0.4, Number(-1, 0.5, "a number above -1 and below 0.5"), "Poisson's ratio", slider=(0.0, 0.49),
        group=MATERIAL_GROUP, table="material", folder=MATERIAL_FOLDER, label="Keeps its volume",
    )  # fmt: skip
    density: float = option(
        1000.0, MATERIAL_NUMBER, "density", "kilograms per cubic metre", slider=(100.0, 3000.0), group=MATERIAL_GROUP,
        table="material", folder=MATERIAL_FOLDER,
    )  # fmt: skip
    sliding: float = option(
        0.0, NOT_NEGATIVE, "thickness of skin that slides over the flesh below it; 0: none does", "metres",
        slider=(0.0, 0.2), group=MATERIAL_GROUP, table="material", folder=MATERIAL_FOLDER, label="Skin that slides",
    )  # fmt: skip
    brace: float | Literal["auto"] = option(
        "auto", Either((NOT_NEGATIVE, Choice(("auto",)))),
        "acceleration under which flesh stays near where its bones carry it; auto: that of the motion; 0: none",
        "metres per second squared", group=MATERIAL_GROUP,
    )  # fmt: skip
    size: float | Literal["file"] = option(
        USUAL_SIZE, Either((POSITIVE, Choice(("file",)))),
        "the longest side of the shape's box in metres; file: its units are as it says", group=MATERIAL_GROUP,
    )  # fmt: skip
    gravity: Any = option(
        None, Either((Number(), POINT)), "down the up axis, such as 9.81, or a vector", "metres per second squared",
        default_text="none", slider=(0.0, 30.0), group=MATERIAL_GROUP, folder=MATERIAL_FOLDER,
    )  # fmt: skip
    up: Up = option(
        "auto", Choice.of(Up), "the axis that points up; auto: as the shape's file says, or y", group=MATERIAL_GROUP
    )
    damping: float = option(
        0.005, NOT_NEGATIVE, "viscosity over stiffness", "seconds", slider=(0.0, 0.1), group=MATERIAL_GROUP,
        needs=("inertia",), folder=POSES_FOLDER,
    )  # fmt: skip
    stretch_limit: StretchLimit = option(
        0.5, Either((POSITIVE, Choice(("none",)))),
        "share by which flesh may stretch beyond what bones impose; none: no limit, and it may invert",
        slider=(0.02, 0.5), group=MATERIAL_GROUP,
    )  # fmt: skip
    drag: float = option(
        0.0, NOT_NEGATIVE, "what slows flesh against its bones, per second", group=MATERIAL_GROUP, needs=("inertia",)
    )
    friction: float | None = option(
        None, NOT_NEGATIVE, "Coulomb's coefficient on obstacles",
        default_text=f"0, or with a ground {GROUND_FRICTION:g}", slider=(0.0, 1.0),
        group=CONTACT_GROUP, needs=("inertia", "nodes", "obstacles"), folder=OBSTACLES_FOLDER,
    )  # fmt: skip
    ground: bool = option(
        False, Flag(), "whether it stands on a floor, with friction, where its motion stands", group=CONTACT_GROUP,
        needs=("inertia", "nodes"), folder=OBSTACLES_FOLDER, label="On the ground",
    )  # fmt: skip
    self_contact: bool = option(
        False, Flag(), "whether flesh keeps clear of itself", group=CONTACT_GROUP, needs=("inertia", "nodes"),
        folder=OBSTACLES_FOLDER, label="Not through itself",
    )  # fmt: skip
    nodes: int = option(
        3000, Whole(50, 1_000_000), "points that carry the deformation", slider=(300, 10_000), group=SOLVER_GROUP,
        overrides=True, folder=MATERIAL_FOLDER, label="Detail",
    )  # fmt: skip
    modes: int | None = option(
        None, Whole(4, 500), "eigenmodes to simulate in, such as 60: a quick preview, without contact and muscles",
        default_text="all nodes move freely", group=SOLVER_GROUP, needs=("inertia",), folder=None,
    )  # fmt: skip
    dt: float = option(
        1 / 60, Number(1e-7, expected="a number above 1e-7"), "the longest step", "seconds", default_text="1/60",
        group=SOLVER_GROUP, needs=("inertia",), label="Longest step",
    )  # fmt: skip
    fps: float | None = option(
        None, Number(1e-4, expected="a number above 1e-4"), "frames a second of the clip",
        default_text="the motion's, but no finer than the steps", group=SOLVER_GROUP, overrides=True,
        label="Frames a second",
    )  # fmt: skip
    accuracy: float = option(
        3e-2, Number(0, 1, "a number above 0 and below 1"), "what a step's solve may lack, over what the step changes",
        slider=(1e-5, 0.1), group=SOLVER_GROUP, needs=("inertia", "nodes"),
    )  # fmt: skip


@dataclass(frozen=True)
class StaticOptions(Options):
    """How a pose at rest is solved for."""

    accuracy: float = option(1e-3, NOT_NEGATIVE, "what strains may lack")
    iterations: int = option(400, Whole(1), "most iterations of a pose")


@dataclass(frozen=True)
class MuscleOptions(Options):
    """How fibres in flesh pull."""

    tension: float | None = option(
        None, MATERIAL_NUMBER,
        "stress along the fibres at full activation; free ones shorten by its share of Young's modulus", "pascals",
        default_text="half of Young's modulus there",
    )  # fmt: skip
    angles: tuple[float, float] = option(
        (0.0, 90.0), Row((2,), "two angles, [from, to]"),
        "by which the joint has turned from rest where the activation is 0 and where it is 1", "degrees",
        default_text="[0, 90]",
    )  # fmt: skip


@dataclass(frozen=True)
class RodOptions(Options):
    """How bones bend that handles pull: each is an elastic rod."""

    joints: float | Literal["free"] | None = option(
        None, Either((POSITIVE, Choice(("free",)))),
        "bending stiffness of the joints over that of the bones, such as 0.02; free: next to none",
        default_text="bones go on into each other", flag_name="joint_stiffness", **OF_RODS | {"group": MOTION_GROUP},
    )  # fmt: skip
    radius: float | None = option(
        None, POSITIVE, "of the bones, in the shape's own units", default_text="0.08 of their mean length", **OF_RODS
    )
    young: float = option(
        1e9, MATERIAL_NUMBER, "Young's modulus of the bones, which counts against forces", "pascals",
        default_text="1e9", **OF_RODS,
    )  # fmt: skip
    poisson: float = option(0.3, SimulateOptions.about("poisson").kind, "Poisson's ratio of the bones", **OF_RODS)
    segments: int = option(8, Whole(1, 1000), "elements of each bone", **OF_RODS)
    root: Root = option(
        "held", Choice.of(Root),
        "held: roots stay at rest, unless a handle moves them; free: handles hold the skeleton", **OF_RODS,
    )  # fmt: skip


def idle(given: Mapping[str, Any]) -> Iterator[Conflict]:
    """Options that have no effect beside the others. given: those that are, with "obstacles" among them."""
    lacking = {}
    if given.get("static"):
        lacking["inertia"] = "static leaves out inertia; leave out one of them"
    if given.get("modes"):
        lacking["nodes"] = "modes leave it out; leave out one of them"
    if not given.get("obstacles") and not given.get("ground"):
        lacking["obstacles"] = "it acts on obstacles, and there are none"
    return SimulateOptions.idle(given, lacking)
