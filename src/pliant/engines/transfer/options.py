"""The options of transfer, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from math import nextafter
from typing import Any, Literal

from pliant.core.clips import MOST_FRAMES
from pliant.core.options import POSITIVE, Choice, Either, Flag, Number, Options, Share, Text, Whole, option
from pliant.geometry.axes import SignedAxis

AXIS = Choice.of(SignedAxis)
FOUND = "found"
Outside = Literal["refuse", "allow"]
Ends = Literal["rigid", "soft"]
SOURCE_GROUP = "without a scene file"
STANDING_GROUP = "how source and target stand"
RESULT_GROUP = "how"
CAGE_FOLDER = "Cage"
WEIGHTS_TABLE = "weights"
WEIGHTS_FOLDER = "What counts how much"
FRAME_RANGE = Text('"A:B", the first frame and the last, counted from 0', "A:B", pattern=r"\d*:\d*")
AT_LEAST_ZERO = Number(-nextafter(0, 1), expected="a number, 0 or more")
AUTOMATIC = ("automatic controls",)
OF_WEIGHTS: dict[str, Any] = {"slider": (0.1, 100.0), "table": WEIGHTS_TABLE, "folder": WEIGHTS_FOLDER, "group": None}


@dataclass(frozen=True)
class CageOptions(Options):
    """The cage around a target, and how it acts."""

    outside: Outside = option(
        "refuse", Choice.of(Outside), "what to do with points on or outside the cage: refuse them, or continue there",
        group=SOURCE_GROUP,
    )  # fmt: skip
    lattice: int = option(
        60, Whole(4, 400), "samples of the smoothness along the cage's longest side", group=SOURCE_GROUP
    )
    margin: float = option(
        0.016, Number(0.0039, 0.501, "a number from 0.004 to 0.5"), "clearance of a built cage, over the diagonal",
        slider=(0.004, 0.15), group=SOURCE_GROUP, table="cage", folder=CAGE_FOLDER, label="Clearance",
    )  # fmt: skip
    faces: int = option(
        400, Whole(12, 20_000), "triangles of a built cage, at most", slider=(40, 1000), group=RESULT_GROUP,
        overrides=True, table="cage", folder=CAGE_FOLDER, label="Faces at most",
    )  # fmt: skip
    error: float | None = option(
        None, Share(0, 0.5, "a number between 0 and 0.5, such as 0.01 or 1%"),
        "distance of a built cage beyond its clearance, over the diagonal, that it gets faces for, 2000 at most",
        default_text="as the faces allow", group=SOURCE_GROUP, table="cage", folder=None,
    )  # fmt: skip


@dataclass(frozen=True)
class TransferOptions(CageOptions):
    """How a motion is carried over."""

    groups: int = option(
        24, Whole(1, 1000), "pieces to divide a mesh sequence into, at most", group=SOURCE_GROUP, needs=AUTOMATIC
    )
    blocks: bool = option(
        False, Flag(), "whether each connected part of the target moves as a rigid block", group=SOURCE_GROUP
    )
    ends: Ends = option(
        "rigid", Choice.of(Ends), "whether feet, hands and heads move rigidly, or as soft as the rest of the cage",
        group=SOURCE_GROUP, needs=AUTOMATIC, label="Feet, hands, heads",
    )  # fmt: skip
    frames: int | str | None = option(
        None, Either((Whole(1, MOST_FRAMES), FRAME_RANGE)),
        "how many to make, over all of the sources' or of those from A to B",
        default_text="all of the sources'", group=RESULT_GROUP, overrides=True,
    )  # fmt: skip
    speed: float = option(
        1.0, POSITIVE, "how many times as fast as the sources", slider=(0.1, 4.0), group=RESULT_GROUP, overrides=True
    )
    fps: float | None = option(
        None, POSITIVE, "frames a second of the result", default_text="the sources'", group=RESULT_GROUP,
        overrides=True, label="Frames a second",
    )  # fmt: skip
    target_up: SignedAxis | None = option(
        None, AXIS, "axis of the target that points up", default_text="the file's, or found", group=STANDING_GROUP,
        needs=AUTOMATIC,
    )  # fmt: skip
    heading: SignedAxis | None = option(
        None, AXIS, "axis that the target faces along, about", default_text=FOUND, group=STANDING_GROUP, needs=AUTOMATIC
    )
    source_up: SignedAxis | None = option(
        None, AXIS, "axis of the source at rest that points up", default_text=FOUND, group=STANDING_GROUP,
        needs=AUTOMATIC,
    )  # fmt: skip
    source_heading: SignedAxis | None = option(
        None, AXIS, "axis that the source faces along at rest, about", default_text=FOUND, group=STANDING_GROUP,
        needs=AUTOMATIC,
    )  # fmt: skip
    map: str | None = option(
        None, Text('"order" (along the spine), or pairs SOURCE LIMB=TARGET LIMB with commas between'),
        "which limbs of the target follow which of the source", default_text="legs legs, arms arms",
        group=STANDING_GROUP, needs=AUTOMATIC, label="Limbs that follow",
    )  # fmt: skip


@dataclass(frozen=True)
class PosedOptions(CageOptions):
    """How a target that is posed by hand gets there."""

    frames: int = option(
        1, Whole(1, MOST_FRAMES),
        "how many, evenly from the rest to what the controls say: positions go straight, rotations at one speed; 1: "
        "the pose alone",
        overrides=True, folder=None, group=None,
    )  # fmt: skip
    fps: float = option(24.0, POSITIVE, "frames a second", overrides=True, group=None)


@dataclass(frozen=True)
class Weights(Options):
    """ω of Eq. 12, for energies scaled to Hessians of equal size at rest: the paper's values, and the rigidity's."""

    smooth: float = option(1.0, POSITIVE, "ω of Eq. 12 for smoothness", label="Smoothness", **OF_WEIGHTS)
    gradient: float = option(
        5.0, POSITIVE, "ω of Eq. 12 for gradient controls", label="Turns count", needs=("gradients",), **OF_WEIGHTS
    )
    position: float = option(0.5, POSITIVE, "ω of Eq. 12 for position controls", label="Points count", **OF_WEIGHTS)
    length: float = option(
        0.5, POSITIVE, "ω of Eq. 12 for lengths", label="Lengths count", needs=("lengths",), **OF_WEIGHTS
    )
    rigidity: float = option(
        0.1, AT_LEAST_ZERO, "weight of the rigidity, by which bends keep their volume; 0: the paper's energy",
        label="Shape kept", **OF_WEIGHTS,
    )  # fmt: skip


@dataclass(frozen=True)
class CageSolverOptions(Options):
    """How a frame is solved for."""

    accuracy: float = option(
        1e-3, Number(0, 1, "a number between 0 and 1, such as 0.001"),
        "how far a full step may still move the target, over the cage's diagonal, at convergence",
    )  # fmt: skip
    iterations: int = option(60, Whole(1), "most iterations of a frame")
    step: Any = option(
        "search",
        Either((Choice(("search",)), Number(0, nextafter(1, 2), "a fixed share of the full step, such as 0.2"))),
        "line search, or a fixed share of every step",
    )  # fmt: skip
