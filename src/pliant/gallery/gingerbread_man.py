"""A gingerbread man one unit tall, facing +z: a flat, thick biscuit with icing, standing and in lively poses."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.skeleton import Skeleton
from pliant.gallery.coats import biscuit
from pliant.gallery.implicit import BodyPart, ConePart, ImplicitBody, ball, cone, symmetric_body
from pliant.gallery.sizes import kept
from pliant.gallery.skinning import JointRotations, mirrored_rotations, posed_shapes, skinned

_THICK = 0.052
_GINGERBREAD_JOINTS = {
    "hips": ("", (0.0, 0.40, 0.0)),
    "chest": ("hips", (0.0, 0.53, 0.0)),
    "head": ("chest", (0.0, 0.68, 0.0)),
    "upperarm.L": ("chest", (0.115, 0.590, 0.0)),
    "forearm.L": ("upperarm.L", (0.255, 0.590, 0.0)),
    "thigh.L": ("hips", (0.080, 0.345, 0.0)),
    "shin.L": ("thigh.L", (0.125, 0.215, 0.0)),
}
_GINGERBREAD_ENDS = {
    "head": (0.0, 0.90, 0.0),
    "forearm.L": (0.405, 0.590, 0.0),
    "shin.L": (0.165, 0.095, 0.0),
}


@kept
def gingerbread(n: int = 2000) -> Shapes:
    """A gingerbread man with about n vertices: standing, waving, walking, bowing, sitting, splits."""
    return posed_shapes(skinned(body(), n, biscuit), _poses(), "standing", grounded=True)


def gingerbread_skeleton() -> Skeleton:
    """The gingerbread man's joints; the root is "hips"."""
    return body().skeleton


@lru_cache(maxsize=1)
def body() -> ImplicitBody:
    """The implicit body: joints, groups and parts."""
    groups = [
        BodyPart("body"),
        BodyPart("head", "body", 0.04),
        BodyPart("arm.L", "body", 0.07),
        BodyPart("leg.L", "body", 0.07, 0.05),
    ]
    parts = [*_dough(), *_icing()]
    return symmetric_body(_GINGERBREAD_JOINTS, groups, parts, sturdy=1800, ends=_GINGERBREAD_ENDS)


def _dough() -> list[ConePart]:
    def plate(
        joint: str, group: str, start: tuple[float, float], end: tuple[float, float], r: float, s: float
    ) -> ConePart:
        return cone(joint, group, (*start, 0), (*end, 0), (r, s), blend=0.04, soft=0.045, slab=_THICK)

    return [
        plate("chest", "body", (0, 0.530), (0, 0.575), 0.135, 0.120),
        plate("hips", "body", (0, 0.530), (0, 0.400), 0.135, 0.138),
        plate("head", "head", (0, 0.640), (0, 0.740), 0.065, 0.080),
        plate("head", "head", (0, 0.835), (0, 0.836), 0.162, 0.162),
        plate("upperarm.L", "arm.L", (0.100, 0.590), (0.258, 0.590), 0.082, 0.078),
        plate("forearm.L", "arm.L", (0.258, 0.590), (0.405, 0.590), 0.078, 0.088),
        plate("thigh.L", "leg.L", (0.075, 0.360), (0.125, 0.215), 0.090, 0.085),
        plate("shin.L", "leg.L", (0.125, 0.215), (0.165, 0.100), 0.085, 0.098),
    ]


def _icing() -> list[ConePart]:
    """Three buttons and a face."""
    z = 0.85 * _THICK
    parts = [
        ball("chest", "body", (0, 0.595, z), (0.044, 0.044, 0.044), blend=0.006),
        ball("hips", "body", (0, 0.495, z), (0.044, 0.044, 0.044), blend=0.006),
        ball("hips", "body", (0, 0.395, z), (0.044, 0.044, 0.044), blend=0.006),
        ball("head", "head", (0.064, 0.885, z), (0.036, 0.042, 0.032), blend=0.008),
    ]
    smile = [(0.092 * np.sin(a), 0.848 - 0.092 * np.cos(a), z) for a in np.radians([0, 20, 40, 60])]
    for k in range(3):
        parts.append(cone("head", "head", smile[k], smile[k + 1], (0.030, 0.030), blend=0.010, flat=0.9))
    return parts


def _poses() -> dict[str, JointRotations]:
    """Turns by the pose's name. About z, positive raises the left arm; about x, positive bends forwards."""
    bent: JointRotations = {"thigh.L": [("x", -92)], "shin.L": [("x", 18)], "upperarm.L": [("y", -40), ("z", -20)]}
    wide: JointRotations = {
        "thigh.L": [("z", 58)],
        "shin.L": [("z", 10)],
        "upperarm.L": [("z", 36)],
        "forearm.L": [("z", 14)],
    }
    return {
        "waving": {
            "upperarm.L": [("z", 18)], "forearm.L": [("z", 74)], "upperarm.R": [("z", 52)], "forearm.R": [("z", 12)],
            "chest": [("z", -6)], "head": [("z", -10)], "thigh.R": [("z", -8)],
        },
        "walking": {
            "thigh.L": [("x", -52), ("z", -14)], "shin.L": [("x", 22)], "thigh.R": [("x", 38), ("z", 14)],
            "shin.R": [("x", 48)], "upperarm.L": [("x", 62), ("z", -58)], "forearm.L": [("y", -32)],
            "upperarm.R": [("x", -62), ("z", 58)], "forearm.R": [("y", 60)], "chest": [("y", 12)], "head": [("y", -10)],
        },
        "bowing": {
            "hips": [("x", 52)], "chest": [("x", 44)], "head": [("x", 12)], "thigh.L": [("x", -52)],
            "thigh.R": [("x", -52)], "upperarm.L": [("y", -96), ("z", -20)], "forearm.L": [("y", -60)],
            "upperarm.R": [("z", -24), ("y", -30)],
        },
        "sitting": {**bent, **mirrored_rotations(bent), "chest": [("x", 8)], "head": [("z", 8)]},
        "splits": {**wide, **mirrored_rotations(wide)},
    }  # fmt: skip
