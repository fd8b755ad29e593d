"""Procedural shapes, poses, skeletons and cages that ship with pliant.

Every shape can be asked for at about n vertices, from 500 to 200,000. Poses share one topology and come from an
articulated skeleton or an exact map, with turns of 90° and more. y is up, shapes face +z, their left is +x.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "primitives": ("bar", "bar_tets", "box", "cylinder", "sphere", "tube"),
    "maps": ("bend", "twist"),
    "face": ("face",),
    "hands": ("hand", "hand_skeleton"),
    "quadruped": ("animal", "animal_gait", "animal_skeleton"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

if TYPE_CHECKING:
    from pliant.gallery.face import face
    from pliant.gallery.hands import hand, hand_skeleton
    from pliant.gallery.maps import bend, twist
    from pliant.gallery.primitives import bar, bar_tets, box, cylinder, sphere, tube
    from pliant.gallery.quadruped import animal, animal_gait, animal_skeleton


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"the gallery has no {name!r}; it has {', '.join(sorted(_MODULE_OF))}")
    return getattr(importlib.import_module(f"pliant.gallery.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)


__all__ = [
    "animal",
    "animal_gait",
    "animal_skeleton",
    "bar",
    "bar_tets",
    "bend",
    "box",
    "cylinder",
    "face",
    "hand",
    "hand_skeleton",
    "sphere",
    "tube",
    "twist",
]
