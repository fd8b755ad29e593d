"""Procedural shapes, poses, skeletons and cages that ship with pliant.

Every shape can be made with about n vertices, from 500 to 200,000. Poses share one topology and come from an
articulated skeleton or an exact map, with rotations of 90° and more. y is up, shapes face +z, their left is +x.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "cages": ("cage",),
    "creatures": ("creature", "creature_skeleton", "creature_walk"),
    "dinosaurs": ("dinosaur", "dinosaur_skeleton", "dinosaur_walk"),
    "faces": ("face",),
    "gingerbread_man": ("gingerbread", "gingerbread_skeleton"),
    "hands": ("hand", "hand_skeleton"),
    "bend_twist": ("Centreline", "bend", "twist"),
    "soup_cloud_tets": ("cloud", "soup", "tets"),
    "primitives": ("bar", "bar_tets", "box", "cylinder", "sphere", "tube"),
    "quadruped": ("animal", "animal_gait", "animal_gallop", "animal_skeleton"),
    "robots": ("robot",),
    "tentacles": ("tentacle", "tentacle_curl", "tentacle_skeleton"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

SHAPES = (
    "animal", "bar", "bar_tets", "box", "cloud", "creature", "cylinder", "dinosaur", "face", "gingerbread", "hand",
    "robot", "soup", "sphere", "tentacle", "tets", "tube",
)  # fmt: skip
"""What can be made with a number of vertices."""
POSED = ("animal", "bar", "creature", "dinosaur", "face", "gingerbread", "hand", "tentacle", "tube")
"""Those that come in several poses."""
SKELETONS = tuple(name.removesuffix("_skeleton") for name in sorted(_MODULE_OF) if name.endswith("_skeleton"))
"""Those that have bones."""
JOINT_MOTIONS = ("animal_gallop", "creature_walk", "dinosaur_walk")
"""Motions of bones."""
MOTIONS = ("animal_gait", *JOINT_MOTIONS, "tentacle_curl")
"""All that moves: bones, or points."""
CAGES = ("animal", "creature", "dinosaur", "gingerbread", "hand")
"""Shapes that have a cage."""

if TYPE_CHECKING:
    from pliant.gallery.bend_twist import Centreline, bend, twist
    from pliant.gallery.cages import cage
    from pliant.gallery.creatures import creature, creature_skeleton, creature_walk
    from pliant.gallery.dinosaurs import dinosaur, dinosaur_skeleton, dinosaur_walk
    from pliant.gallery.faces import face
    from pliant.gallery.gingerbread_man import gingerbread, gingerbread_skeleton
    from pliant.gallery.hands import hand, hand_skeleton
    from pliant.gallery.primitives import bar, bar_tets, box, cylinder, sphere, tube
    from pliant.gallery.quadruped import animal, animal_gait, animal_gallop, animal_skeleton
    from pliant.gallery.robots import robot
    from pliant.gallery.soup_cloud_tets import cloud, soup, tets
    from pliant.gallery.tentacles import tentacle, tentacle_curl, tentacle_skeleton


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"the gallery has no {name!r}; it has {', '.join(sorted(_MODULE_OF))}")
    return getattr(importlib.import_module(f"pliant.gallery.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)


__all__ = [
    "Centreline",
    "animal",
    "animal_gait",
    "animal_gallop",
    "animal_skeleton",
    "bar",
    "bar_tets",
    "bend",
    "box",
    "cage",
    "cloud",
    "creature",
    "creature_skeleton",
    "creature_walk",
    "cylinder",
    "dinosaur",
    "dinosaur_skeleton",
    "dinosaur_walk",
    "face",
    "gingerbread",
    "gingerbread_skeleton",
    "hand",
    "hand_skeleton",
    "robot",
    "soup",
    "sphere",
    "tentacle",
    "tentacle_curl",
    "tentacle_skeleton",
    "tets",
    "tube",
    "twist",
]
