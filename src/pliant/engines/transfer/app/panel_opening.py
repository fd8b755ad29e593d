"""What the studio opens in a cage."""

from __future__ import annotations

from typing import Any

from pliant import gallery
from pliant.app.studio.desk import Document
from pliant.core.errors import InputError

TRANSFER_EXAMPLES: dict[str, Document] = {
    "Gingerbread man in a cage": {
        "engine": "transfer",
        "target": {"gallery": "gingerbread"},
        "cage": {"faces": 250},
        "lattice": 30,
        "weights": {"position": 10.0, "gradient": 20.0},
        "gradients": [{"at": [0.0, 0.45, 0.05]}, {"at": [0.0, 0.93, 0.05]}],
        "positions": [
            {"at": [-0.165, 0.07, 0.05]},
            {"at": [0.165, 0.07, 0.05]},
            {"at": [0.0, 0.45, 0.05]},
            {"at": [0.42, 0.59, 0.05]},
        ],
    },
    "Gingerbread man in a cage, walking": {
        "engine": "transfer",
        "target": {"gallery": "gingerbread"},
        "sources": {"motion": {"gallery": "creature_walk", "without": ["tail1", "ear*"]}},
        "cage": {"faces": 250},
        "lattice": 30,
        "controls": "auto",
    },
}


def opens(shape: dict[str, Any], kinds: tuple[str, ...]) -> tuple[int, Document]:
    """See `pliant.engines.registry.Engine.opens`: any one shape, posed by hand."""
    if "files" in shape:
        raise InputError("a cage is put around one shape; open one file")
    name = shape.get("gallery")
    return 1, {"engine": "transfer", "target": shape} | ({"cage": {"gallery": name}} if name in gallery.CAGES else {})
