"""What the names of joints say: which part of a body a joint belongs to, and on which side.

Names are written in many conventions (CMU, Mixamo, Blender, Unity, 3ds Max, Poser, MakeHuman): LeftUpLeg,
mixamorig:LeftArm, thigh.L, upperarm_r, Bip01 L Thigh, lThigh, Foot.R.001.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

AnatomicalPart = Literal["leg", "arm", "head", "tail", "trunk", ""]
SIDES = {"l": 1, "left": 1, "lft": 1, "r": -1, "right": -1, "rgt": -1}
PARTS: tuple[tuple[AnatomicalPart, tuple[str, ...]], ...] = (
    ("tail", ("tail",)),
    ("arm", ("forearm", "uparm", "upperarm", "lowerarm", "arm", "hand", "wrist", "elbow", "shoulder", "collar",
             "clavicle", "shldr", "humerus", "radius", "wing", "finger", "thumb", "fist", "palm", "flipper", "fin")),
    ("leg", ("upleg", "upperleg", "lowerleg", "leg", "thigh", "shin", "calf", "knee", "foot", "ankle", "toe", "femur",
             "tibia", "hipjoint", "butt", "hoof", "paw")),
    ("head", ("head", "neck", "jaw", "skull")),
    ("trunk", ("spine", "hips", "hip", "pelvis", "chest", "torso", "abdomen", "abdoman", "belly", "back", "body",
               "root")),
)  # fmt: skip
FINGER_NAMES = ("finger", "thumb", "index", "middle", "ring", "pinky", "little", "metacarpal")
JOIN_TRUNK = ("clavicle", "collar", "shoulder", "hipjoint", "butt", "pelvis")
FEET = ("foot", "feet", "toe", "ball", "hoof", "paw", "ankle")
HELPERS = ("pole", "target", "ik", "pt", "ctrl", "control", "helper", "locator", "nub", "dummy", "ground")
"""Words, or starts of words, in the names of joints that steer others and carry no part of a body."""
APPENDAGES = ("ear", "eye", "jaw", "tongue", "hair", "mouth", "lip", "brow", "weapon", "gun", "sword", "cape", "nose",
              "cheek", "eyelid", "breast", "horn", "antler", "mane", "teeth", "hat")  # fmt: skip
"""Words in the names of joints whose bones are no limbs."""

OVERLAYS: dict[str, tuple[str, ...]] = {
    "arms": ("arm",),
    "head": ("head",),
    "tail": ("tail",),
    "upper": ("arm", "head", "spine"),
    "legs": ("leg", "tail"),
    "lower": ("leg", "tail"),
}
"""What a source that is called so gives of the body, where there are several."""


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


def _joined(name: str) -> str:
    return "".join(word for word in tokens(name) if word not in SIDES and word not in ("armature", "skeleton"))


def part(name: str) -> AnatomicalPart:
    """Which part of a body a name means; "" if none."""
    text = _joined(name)
    for found, known in PARTS:
        if any(word in text for word in known if len(word) > 3) or any(word in tokens(name) for word in known):
            return found
    return ""


def joins_trunk(name: str) -> bool:
    """Whether a joint's bone, a collarbone or half of a pelvis, joins a limb to the trunk."""
    return any(word in _joined(name) for word in JOIN_TRUNK)


def is_finger(name: str) -> bool:
    """Whether a joint belongs to a finger."""
    return any(word in _joined(name) for word in FINGER_NAMES)


def is_middle(name: str) -> bool:
    """Whether a joint is an elbow or a knee."""
    return any(word in _joined(name) for word in ("elbow", "forearm", "lowerarm", "knee", "shin", "calf", "lowerleg"))


def is_digit(name: str) -> bool:
    """Whether a joint belongs to a finger, a toe, or the bones before them."""
    return is_finger(name) or any(word in _joined(name) for word in ("palm", "toe", "metatarsal", "claw"))


def is_foot(name: str) -> bool:
    """Whether a joint belongs to a foot."""
    return any(word in _joined(name) for word in FEET)


def is_fin(name: str) -> bool:
    """Whether a joint belongs to a wing or a fin, which nothing stands on."""
    return any(word in tokens(name) for word in ("wing", "fin", "flipper", "fluke"))


def is_helper(name: str) -> bool:
    """Whether a joint steers others, as pole targets do."""
    found = tokens(name)
    return any(word in found for word in HELPERS) or any(word.startswith(("pole", "ctrl")) for word in found)


def helper_groups(groups: Sequence[str]) -> set[str]:
    """Groups of faces that are no part of the body that is seen, as MakeHuman calls them: helpers, and beside these
    marks where joints are."""
    helpers = {name for name in groups if name.startswith("helper-")}
    return helpers | {name for name in groups if helpers and name.startswith("joint-")}


def is_appendage(name: str) -> bool:
    """Whether a joint belongs to an ear, a jaw, a weapon: what hangs on a body and is no limb."""
    return any(word in APPENDAGES for word in tokens(name))


def plain(name: str) -> str:
    """A name without what stands before a colon, in lower case, without dots, dashes, underscores and blanks."""
    return "".join(letter for letter in name.rpartition(":")[2].lower() if letter.isalnum())


def mirrored(names: Sequence[str]) -> list[tuple[int, int]]:
    """Joints, left and right, whose names differ in their side alone; or in their side and in running numbers."""
    parts = {j: [word for word in tokens(name) if word not in SIDES] for j, name in enumerate(names) if side(name)}
    unsided = {j: tuple(re.sub(r"^(left|right)", "", word) for word in found) for j, found in parts.items()}
    pairs: dict[int, int] = {}
    for digits in (slice(None), slice(1), slice(0)):  # of the numbers in a name: all, the first, none
        sides: dict[int, dict[tuple[str, ...], list[int]]] = {1: {}, -1: {}}
        for j, found in unsided.items():
            if j not in pairs and j not in pairs.values():
                key = (*found, *re.findall(r"\d+", names[j])[digits])
                sides[side(names[j])].setdefault(key, []).append(j)
        for key, lefts in sides[1].items():
            rights = sides[-1].get(key, [])
            if len(lefts) == len(rights) == 1:
                pairs[lefts[0]] = rights[0]
    return sorted(pairs.items())
