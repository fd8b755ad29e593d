"""The options of blending, each declared once, and which of them cannot stand beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pliant.core.clips import MOST_FRAMES
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

InteriorMethod = Literal["auto", "lattice", "tetgen", "none"]
Model = Literal["turned", "paper"]
Method = Literal["lbfgs", "newton", "paper"]


@dataclass(frozen=True)
class BlendOptions(Options):
    """How shapes are blended."""

    frames: int | None = option(
        None,
        Whole(1, MOST_FRAMES),
        "how many; rows of weights are then keys, spread evenly over them",
        default_text="36 for two shapes",
    )
    fps: float = option(30.0, POSITIVE, "frames a second")
    anchor: Any = option(
        "auto",
        Either((Choice(("auto", "none")), POINT)),
        "what parts that nothing holds are anchored at: a point in each, none, or a point inside the base",
    )
    friction: float = option(0.0, NOT_NEGATIVE, "Coulomb's coefficient on obstacles", slider=(0.0, 1.0))
    self_contact: bool = option(False, Flag(), "whether the shape does not pass through itself")
    thickness: float | None = option(
        None, NOT_NEGATIVE, "distance kept in contact", default_text="a thousandth of the diagonal"
    )
    interior: InteriorMethod = option("auto", Choice.of(InteriorMethod), "what fills the shape")
    model: Model = option("turned", Choice.of(Model), "what the springs minimise")
    method: Method = option("lbfgs", Choice.of(Method), "which solver")
    accuracy: float = option(1e-4, Number(0, 1, "a number between 0 and 1"), "how near to equilibrium")
    iterations: int | None = option(
        None, Whole(1), "most iterations a frame may take", default_text="1000, or 200 of Newton's"
    )
    jobs: int = option(1, Whole(1), "processes to solve frames in")


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
    if "friction" in given and not given.get("obstacles"):
        yield "friction", "it acts on obstacles, and there are none"
    if "thickness" in given and not has_contact(given):
        yield "thickness", "there are no obstacles and no self-contact to keep a distance in"


def has_contact(given: Mapping[str, Any]) -> bool:
    """Whether there is contact."""
    return bool(given.get("obstacles")) or bool(given.get("self_contact"))
