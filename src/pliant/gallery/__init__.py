"""Procedural shapes, poses, skeletons and cages that ship with pliant.

Every shape can be made with about n vertices, from 500 to 200,000. Poses share one topology and come from an
articulated skeleton or an exact map, with rotations of 90° and more. y is up, shapes face +z, their left is +x.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

SHAPES = (
    "animal", "bar", "bar_tets", "box", "cloud", "creature", "cylinder", "dinosaur", "face", "gingerbread", "hand",
    "robot", "soup", "sphere", "tentacle", "tets", "tube",
)  # fmt: skip
"""What can be made with a number of vertices."""
POSED = ("animal", "bar", "creature", "dinosaur", "face", "gingerbread", "hand", "tentacle", "tube")
"""Those that come in several poses."""
SKELETONS = tuple(name.removesuffix("_skeleton") for name in __all__ if name.endswith("_skeleton"))
"""Those that have bones."""
JOINT_MOTIONS = ("animal_gallop", "creature_walk", "dinosaur_walk")
"""Motions of bones."""
MOTIONS = ("animal_gait", *JOINT_MOTIONS, "tentacle_curl")
"""All that moves: bones, or points."""
CAGES = ("animal", "creature", "dinosaur", "gingerbread", "hand")
"""Shapes that have a cage."""
