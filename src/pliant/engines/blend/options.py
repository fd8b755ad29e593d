"""The options of blending, each declared once, and which of them cannot stand beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pliant.core.clips import DEFAULT_FPS, MOST_FRAMES
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
    Text,
    Whole,
    option,
)

NO_CLIP = "none"
"""In place of a clip's name: the rig's own does not count."""
InteriorMethod = Literal["auto", "lattice", "tetgen", "none"]
Model = Literal["turned", "paper"]
Method = Literal["lbfgs", "newton", "paper"]
InBetweenKind = Literal["auto", "none"]
CombinationKind = Literal["auto", "corrective", "full", "none"]


MOST_ITERATIONS: dict[Method, int] = {"lbfgs": 1000, "newton": 200, "paper": 60}
MOST_CONTACT_ITERATIONS = 300
"""Unless others are given."""
MOST_CORRECTIVES = 200
LARGE_COUNT, COARSE_COUNT = 50_000, 6_000
"""Vertices from which on a coarse body is solved unless told otherwise, and about how many that has."""
SHAPES_GROUP = "what to blend"
CONSTRAINTS_GROUP = "what holds and what pulls (vertices are numbered from 0)"


@dataclass(frozen=True)
class BlendOptions(Options):
    """How shapes are blended."""

    frames: int | None = option(
        None, Whole(1, MOST_FRAMES), "how many; rows of weights are then keys, spread evenly over them",
        default_text="36 for two shapes", group=SHAPES_GROUP, overrides=True, folder=None,
    )  # fmt: skip
    fps: float | None = option(
        None, POSITIVE, "frames a second", default_text=f"those of the clip of weights, or {DEFAULT_FPS:g}",
        group=SHAPES_GROUP, overrides=True, label="Frames a second",
    )  # fmt: skip
    clip: str | int | None = option(
        None, Either((Text("a clip's name"), Whole())),
        "which clip of weights, by name, part of a name or number; none: through all shapes, not the rig's own clip",
        default_text="the first that moves weights", group=SHAPES_GROUP, folder=None,
    )  # fmt: skip
    inbetweens: InBetweenKind = option(
        "auto", Choice.of(InBetweenKind), "whether smile50 is the slider smile at 0.5, and not a slider of its own",
        group=SHAPES_GROUP, table="shapes", folder=None,
    )  # fmt: skip
    combinations: CombinationKind = option(
        "auto", Choice.of(CombinationKind),
        "whether jaw_smile is the sliders jaw and smile together: added to both (corrective) or instead of them (full)",
        group=SHAPES_GROUP, table="shapes", folder=None,
    )  # fmt: skip
    anchor: Any = option(
        "auto", Either((Choice(("auto", "none")), POINT)),
        "what parts that nothing holds are anchored at: a point in each, none, or a point inside the base",
        group=CONSTRAINTS_GROUP,
    )  # fmt: skip
    friction: float = option(
        0.0, NOT_NEGATIVE, "Coulomb's coefficient on obstacles", slider=(0.0, 1.0), group=CONTACT_GROUP,
        needs=("obstacles",), folder=OBSTACLES_FOLDER,
    )  # fmt: skip
    self_contact: bool = option(
        False, Flag(), "whether the shape does not pass through itself", group=CONTACT_GROUP, folder=OBSTACLES_FOLDER,
        label="Not through itself",
    )  # fmt: skip
    thickness: float | None = option(
        None, NOT_NEGATIVE, "distance kept in contact", default_text="a thousandth of the diagonal",
        group=CONTACT_GROUP, needs=("contact",),
    )  # fmt: skip
    interior: InteriorMethod = option(
        "auto", Choice.of(InteriorMethod), "what fills the shape", group=SOLVER_GROUP, table="springs"
    )
    coarse: Any = option(
        "auto", Either((Choice(("auto", "none")), Whole(100))),
        "about how many vertices to solve for, which carry the others with their details",
        default_text=f"{COARSE_COUNT:,} of a mesh of more than {LARGE_COUNT:,} vertices", group=SOLVER_GROUP,
        table="springs",
    )  # fmt: skip
    model: Model = option("turned", Choice.of(Model), "what the springs minimise", group=SOLVER_GROUP, table="springs")
    method: Method = option("lbfgs", Choice.of(Method), "which solver", group=SOLVER_GROUP, table="springs")
    accuracy: float = option(
        1e-4, Number(0, 1, "a number between 0 and 1"), "how near to equilibrium", slider=(1e-8, 0.1),
        group=SOLVER_GROUP, table="springs",
    )  # fmt: skip
    iterations: int | None = option(
        None, Whole(1), "most iterations a frame may take",
        default_text=", ".join(f"{most} of {method}" for method, most in MOST_ITERATIONS.items())
        + f", {MOST_CONTACT_ITERATIONS} in contact",
        group=SOLVER_GROUP, table="springs",
    )  # fmt: skip
    jobs: int = option(
        1, Whole(1), "processes to solve frames in; in contact they are solved in order, by one", group=SOLVER_GROUP,
        table=None, overrides=True,
    )  # fmt: skip


def impossible(given: Mapping[str, Any]) -> Iterator[Conflict]:
    """Options that cannot be met beside the others. given: those that are, with "obstacles" among them."""
    if not has_contact(given):
        return
    if given.get("method", BlendOptions.method) != BlendOptions.method:
        yield "method", f'contact is solved by "{BlendOptions.method}" alone'
    if given.get("jobs", 1) > 1:
        yield "jobs", "frames in contact depend on the ones before"


def idle(given: Mapping[str, Any]) -> Iterator[Conflict]:
    """Options that have no effect beside the others."""
    lacking = {}
    if not given.get("obstacles"):
        lacking["obstacles"] = "it acts on obstacles, and there are none"
    if not has_contact(given):
        lacking["contact"] = "there are no obstacles and no self-contact to keep a distance in"
    return BlendOptions.idle(given, lacking)


def has_contact(given: Mapping[str, Any]) -> bool:
    """Whether there is contact."""
    return bool(given.get("obstacles")) or bool(given.get("self_contact"))
