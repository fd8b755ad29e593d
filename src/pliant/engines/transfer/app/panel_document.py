"""Scenes of cages as the page changes them: documents in, documents out (`posed_scene_keys`).

A document is never changed in place: whoever solves for one beside the page has it whole. Numbers that are dragged are
kept to a few digits below what can be seen, so that a saved scene reads well; the page shows what those say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pliant.app.studio.desk import Document
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.shapes import Shape
from pliant.core.topology import Floats
from pliant.engines.transfer.app.scene_keys import CAGE_SCENE, TRANSFER
from pliant.engines.transfer.options import Weights
from pliant.gallery import MOTIONS

ControlKind = Literal["positions", "gradients", "lengths"]
RestPoint = int | list[float]
"""Of the target at rest: a vertex, or coordinates."""
CONTROL_LABELS: dict[ControlKind, str] = {"positions": "Point", "gradients": "Turn", "lengths": "Length"}
"""Keys of a document's lists of controls, and what the page calls one of them."""
BY_HAND, BY_MOTION = (
    {key for key, meaning in some.keys.items() if others.keys.get(key) != meaning}
    for some, others in ((CAGE_SCENE, TRANSFER), (TRANSFER, CAGE_SCENE))
)
"""Keys that only scenes of one kind have, or that mean something else to each."""
POINT_DIGITS = 6
"""Of coordinates, below the target's size."""
MOTION_NAMES = {name: name.replace("_", ": ", 1).capitalize() for name in MOTIONS}


@dataclass(frozen=True)
class Chosen:
    """One of the controls."""

    kind: ControlKind
    number: int

    @property
    def label(self) -> str:
        """What the page calls it."""
        return f"{CONTROL_LABELS[self.kind]} {self.number + 1}"


def controls_in(document: Document) -> list[Chosen]:
    """All controls of a document."""
    return [Chosen(kind, k) for kind in CONTROL_LABELS for k in range(len(document.get(kind, [])))]


def rounded(point: Floats, size: float) -> list[float]:
    """A point with digits enough for a target of this size."""
    digits = POINT_DIGITS - math.floor(math.log10(size))
    return [round(float(x), digits) + 0.0 for x in point]


# Controls


def added(document: Document, kind: ControlKind, entry: Any) -> Document:
    """With one more control."""
    return document | {kind: [*document.get(kind, []), entry]}


def removed(document: Document, which: Chosen) -> Document:
    """Without a control."""
    left = [entry for k, entry in enumerate(document[which.kind]) if k != which.number]
    if which.kind == "positions" and not left:
        raise InputError("this is the only point left, and nothing else says where the target is; place another first")
    return document | {which.kind: left}


def at_rest(document: Document, which: Chosen) -> Document:
    """With a control that asks for what is there at rest."""
    entry = document[which.kind][which.number]
    return document if which.kind == "lengths" else _changed(document, which, {"at": entry["at"]})


def moved(document: Document, number: int, to: list[float]) -> Document:
    """With a point that goes elsewhere."""
    which = Chosen("positions", number)
    return _changed(document, which, {"at": document["positions"][number]["at"], "to": to})


def rotated(document: Document, number: int, rotation: Floats) -> Document:
    """With a gradient control that asks for another rotation (w, x, y, z) since rest; its stretch stays."""
    entry = document["gradients"][number]
    if "matrix" in entry:
        matrix = np.array(entry["matrix"], dtype=np.float64)
        stretch = rotations.polar(matrix).T @ matrix
        made = {"at": entry["at"], "matrix": (rotations.matrix(rotation) @ stretch).tolist()}
    else:
        made = {key: value for key, value in entry.items() if key != "turn"}
        made |= _axis_angle(entry.get("turn"), rotation)
    return _changed(document, Chosen("gradients", number), made)


def stretch_of(entry: Document) -> float | None:
    """How many times larger a gradient control asks for; None if that differs from one direction to another."""
    matrix = np.array(entry["matrix"] if "matrix" in entry else np.diag(np.broadcast_to(entry.get("stretch", 1.0), 3)))
    sizes = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    even = np.ptp(sizes) <= 1e-6 * sizes.max() and np.linalg.det(matrix) > 0
    return float(sizes.mean()) if even else None


def stretched(document: Document, number: int, factor: float, rotation: Floats) -> Document:
    """With a gradient control that asks for so many times the size; rotation: (w, x, y, z) it has already."""
    entry = document["gradients"][number]
    if stretch_of(entry) is None:
        raise InputError("this control stretches each direction in its own way; reset it first")
    made = {"at": entry["at"]} | _axis_angle(entry.get("turn"), rotation)
    return _changed(document, Chosen("gradients", number), made | ({"stretch": factor} if factor != 1 else {}))


def _axis_angle(before: Any, rotation: Floats) -> dict[str, Any]:
    """The key "turn": an axis and an angle, which goes on past 180 degrees where it was near there before."""
    vector = rotations.log(rotations.shortest(rotations.normalize(rotation)))
    angle = float(np.linalg.norm(vector))
    if angle < 1e-6:
        return {}
    axis, degrees = vector / angle, math.degrees(angle)
    if isinstance(before, dict) and "degrees" in before:
        last = np.array(before["axis"], dtype=np.float64)
        if last @ axis < 0:
            axis, degrees = -axis, -degrees
        degrees += 360 * round((before["degrees"] - degrees) / 360)
    return {"turn": {"axis": [round(float(x), POINT_DIGITS) + 0.0 for x in axis], "degrees": round(degrees, 4)}}


def _changed(document: Document, which: Chosen, entry: Any) -> Document:
    entries = list(document[which.kind])
    entries[which.number] = entry
    return document | {which.kind: entries}


# What else there is to set


def effective(document: Document) -> Document:
    """Without what has no effect, which scenes refuse: empty lists, and weights of controls that are not there."""
    kept = {
        key: value for key, value in document.items() if key != "weights" and not (key in CONTROL_LABELS and not value)
    }
    lacking = {kind: "" for kind in ("lengths", "gradients") if kind not in kept}
    if not by_hand(document):
        lacking.pop("gradients", None)
    idle = {name for name, _ in Weights.idle(Weights.names(), lacking)}
    weights = {name: value for name, value in Weights.read(document).changed().items() if name not in idle}
    return kept | ({"weights": weights} if weights else {})


def by_hand(document: Document) -> bool:
    """Whether a scene is posed by hand, and follows no sources."""
    return not (BY_MOTION - BY_HAND) & set(document)


def switched(document: Document, aside: Document, *, posed: bool) -> tuple[Document, Document]:
    """The scene posed by hand or following a motion, with what was put aside for it, and what is put aside now."""
    if by_hand(document) == posed:
        return document, aside
    own = BY_MOTION if posed else BY_HAND
    kept = {key: value for key, value in document.items() if key not in own}
    put = {key: document[key] for key in own if key in document}
    return kept | aside, put


def following(document: Document, aside: Document, source: dict[str, Any]) -> tuple[Document, Document]:
    """A scene in which the target follows a source by itself, and what is put aside."""
    made, put = switched(document, aside, posed=False)
    kept = {key: value for key, value in made.items() if key not in BY_MOTION}
    return kept | {"sources": {"motion": source}, "controls": "auto"}, put


def first_controls(document: Document, target: Shape, up: str) -> Document:
    """With a point that fixes the target and one to drag, where a scene that is posed by hand has none."""
    if not by_hand(document) or document.get("positions"):
        return document
    points = target.points
    low = int(np.argmin(points[:, "xyz".index(up)]))
    far = int(np.argmax(np.linalg.norm(points - points[low], axis=1)))
    first: list[Any] = [{"at": low}, *([{"at": far}] if not document.get("gradients") else [])]
    return document | {"positions": first}
