"""What the names of joints say: which part of a body, and which side.

In the conventions of CMU, Mixamo, Blender, Unity, 3ds Max, Poser and others: LeftUpLeg, mixamorig:LeftArm, thigh.L,
upperarm_r, Bip01 L Thigh, lThigh, Foot.R.001.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Part = Literal["leg", "arm", "head", "tail", "trunk", ""]
FINGER_NAMES = ("finger", "thumb", "index", "middle", "ring", "pinky", "little", "metacarpal")
SIDES = {"l": 1, "left": 1, "lft": 1, "r": -1, "right": -1, "rgt": -1}
PARTS: tuple[tuple[Part, tuple[str, ...]], ...] = (
    ("tail", ("tail",)),
    ("arm", ("forearm", "uparm", "upperarm", "lowerarm", "arm", "hand", "wrist", "elbow", "shoulder", "collar",
             "clavicle", "shldr", "humerus", "radius", "wing", "finger", "thumb")),
    ("leg", ("upleg", "upperleg", "lowerleg", "leg", "thigh", "shin", "calf", "knee", "foot", "ankle", "toe", "femur",
             "tibia", "hipjoint", "butt")),
    ("head", ("head", "neck", "jaw", "skull")),
    ("trunk", ("spine", "hips", "hip", "pelvis", "chest", "torso", "abdomen", "abdoman", "back", "body", "root")),
)  # fmt: skip


def tokens(name: str) -> list[str]:
    """Lower-case words of a joint's name, without what stands before a colon and without numbers."""
    plain = name.rpartition(":")[2]
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", plain)
    split = re.sub(r"([A-Z])([A-Z][a-z])", r"\1 \2", split)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", split)]


def side(name: str) -> int:
    """1 for left, -1 for right, 0 if the name says neither."""
    found = tokens(name)
    sides = {SIDES[word] for word in found if word in SIDES}
    sides |= {SIDES[start] for word in found for start in ("left", "right") if word.startswith(start)}
    return sides.pop() if len(sides) == 1 else 0


def part(name: str) -> Part:
    """Which part of a body a name means; "" if none."""
    text = "".join(word for word in tokens(name) if word not in SIDES)
    for found, known in PARTS:
        if any(word in text for word in known):
            return found
    return ""


def joins_trunk(name: str) -> bool:
    """Whether a joint's bone, a collarbone or half of a pelvis, joins a limb to the trunk."""
    text = "".join(word for word in tokens(name) if word not in SIDES)
    return any(word in text for word in ("clavicle", "collar", "shoulder", "hipjoint", "butt", "pelvis"))


def is_finger(name: str) -> bool:
    """Whether a joint belongs to a finger."""
    text = "".join(tokens(name))
    return any(word in text for word in FINGER_NAMES)


def mirrored(names: Sequence[str]) -> list[tuple[int, int]]:
    """Joints, left and right, whose names differ in their side alone."""
    left: dict[tuple[str, ...], int] = {}
    right: dict[tuple[str, ...], int] = {}
    for j, name in enumerate(names):
        if side(name):
            key = tuple(re.sub(r"^(left|right)", "", word) for word in tokens(name) if word not in SIDES)
            (left if side(name) > 0 else right).setdefault((*key, *re.findall(r"\d+", name)), j)
    return [(left[key], right[key]) for key in left if key in right]
