"""What the studio opens as a body with bones."""

from __future__ import annotations

from typing import Any

from pliant import gallery
from pliant.app.studio.desk import Document
from pliant.core.errors import InputError

SIMULATE_EXAMPLES: dict[str, Document] = {
    "Creature: flesh on bones": {
        "engine": "simulate",
        "shape": {"gallery": "creature"},
        "skeleton": {"gallery": "creature"},
        "motion": {"keys": [{"time": 0.0}]},
        "static": True,
    },
    "Dinosaur: flesh that walks": {
        "engine": "simulate",
        "shape": {"gallery": "dinosaur"},
        "skeleton": {"gallery": "dinosaur"},
        "motion": {"gallery": "dinosaur_walk"},
        "gravity": 9.81,
    },
}


def opens(shape: dict[str, Any], kinds: tuple[str, ...]) -> tuple[int, Document]:
    """See `pliant.engines.registry.Engine.opens`: one shape, at rest unless its file has a motion."""
    if "files" in shape:
        raise InputError("bones move one shape; open one file")
    name = shape.get("gallery")
    document: Document = {"engine": "simulate", "shape": shape}
    if name in gallery.SKELETONS:
        document["skeleton"] = {"gallery": name}
    return 2, document if "motion" in kinds else document | {"motion": {"keys": [{"time": 0.0}]}, "static": True}
