"""An upright, friendly monster with an armoured back, in metres, facing +z, arms away from the body at rest."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.gallery.coats import monster
from pliant.gallery.gaits import grounded, looped, stride
from pliant.gallery.implicit import BodyPart, ConePart, ImplicitBody, ball, chain, cone, symmetric_body
from pliant.gallery.sizes import kept
from pliant.gallery.skinning import JointRotations, mirrored_rotations, posed_shapes, rotated, skinned

_CREATURE_JOINTS = {
    "hips": ("", (0.0, 0.70, -0.02)),
    "spine": ("hips", (0.0, 0.86, -0.02)),
    "chest": ("spine", (0.0, 1.02, -0.03)),
    "neck": ("chest", (0.0, 1.20, -0.01)),
    "head": ("neck", (0.0, 1.32, 0.02)),
    "ear.L": ("head", (0.115, 1.50, -0.03)),
    "tail1": ("hips", (0.0, 0.62, -0.18)),
    "tail2": ("tail1", (0.0, 0.48, -0.34)),
    "tail3": ("tail2", (0.0, 0.36, -0.52)),
    "tail4": ("tail3", (0.0, 0.30, -0.72)),
    "upperarm.L": ("chest", (0.215, 1.12, -0.02)),
    "forearm.L": ("upperarm.L", (0.395, 0.98, -0.03)),
    "hand.L": ("forearm.L", (0.560, 0.845, 0.02)),
    "index.L": ("hand.L", (0.625, 0.800, 0.075)),
    "middle.L": ("hand.L", (0.645, 0.780, 0.030)),
    "little.L": ("hand.L", (0.625, 0.780, -0.015)),
    "thumb.L": ("hand.L", (0.565, 0.830, 0.080)),
    "thigh.L": ("hips", (0.125, 0.66, -0.02)),
    "shin.L": ("thigh.L", (0.165, 0.38, 0.04)),
    "foot.L": ("shin.L", (0.175, 0.105, -0.04)),
    "toes.L": ("foot.L", (0.190, 0.050, 0.09)),
}
_TIPS = {
    "ear.L": (0.235, 1.66, -0.06),
    "index.L": (0.690, 0.735, 0.105),
    "middle.L": (0.725, 0.705, 0.035),
    "little.L": (0.695, 0.710, -0.035),
    "thumb.L": (0.585, 0.775, 0.140),
    "toes.L": (0.200, 0.045, 0.18),
}


@kept
def creature(n: int = 8000) -> Shapes:
    """A creature with about n vertices: standing, cheering, sneaking, stomping, flexing."""
    return posed_shapes(skinned(body(), n, monster), _poses(), "standing", grounded=True)


def creature_skeleton() -> Skeleton:
    """The creature's joints; the root is "hips"."""
    return body().skeleton


def creature_walk(frames: int = 32) -> Motion:
    """A walk on the spot, one stride of 1.1 seconds that loops."""
    return looped(creature_skeleton(), _walk, frames=frames, seconds=1.1, name="walk")


@lru_cache(maxsize=1)
def body() -> ImplicitBody:
    """The implicit body: joints, groups and parts."""
    ends = {"head": (0.0, 1.36, 0.33), "tail4": (0.0, 0.30, -0.85)}
    for name, tip in _TIPS.items():
        x, y, z = (a + 0.7 * (b - a) for a, b in zip(_CREATURE_JOINTS[name][1], tip, strict=True))
        ends[name] = (x, y, z)
    groups = [
        BodyPart("body"),
        BodyPart("shell", "body", 0.03),
        BodyPart("tail", "body", 0.06, 0.02),
        BodyPart("ear.L", "body", 0.03),
        BodyPart("horn.L", "body", 0.015),
        BodyPart("arm.L", "body", 0.06, 0.02),
        BodyPart("leg.L", "body", 0.07, 0.04),
    ]
    groups += [BodyPart(f"{finger}.L", "arm.L", 0.02, 0.01) for finger in ("index", "middle", "little", "thumb")]
    parts = [*_trunk(), *_shell(), *_head(), *_arm(), *_leg()]
    return symmetric_body(_CREATURE_JOINTS, groups, parts, sturdy=6000, ends=ends)


def _trunk() -> list[ConePart]:
    tail = [(0, 0.66, -0.12), (0, 0.47, -0.34), (0, 0.355, -0.52), (0, 0.295, -0.72), (0, 0.295, -0.93)]
    return [
        ball("hips", "body", (0, 0.70, 0.0), (0.215, 0.165, 0.175), soft=0.09),
        ball("spine", "body", (0, 0.84, 0.035), (0.225, 0.190, 0.195), blend=0.08, soft=0.09),
        ball("chest", "body", (0, 1.05, -0.01), (0.225, 0.180, 0.160), blend=0.10, soft=0.09),
        ball("chest", "body", (0.085, 1.075, 0.085), (0.100, 0.080, 0.065), tilt=(0, 20, 0), blend=0.04, soft=0.08),
        cone("neck", "body", (0, 1.17, -0.01), (0, 1.33, 0.01), (0.125, 0.110), blend=0.06, soft=0.07),
        *chain([f"tail{k}" for k in (1, 2, 3, 4)], "tail", tail, [0.130, 0.105, 0.080, 0.055, 0.022], blend=0.03),
    ]


def _shell() -> list[ConePart]:
    """Overlapping bands across the back and rings on the tail."""
    bands = [
        ("chest", 1.155, -0.085, 0.190, 0.078),
        ("chest", 1.065, -0.108, 0.215, 0.082),
        ("spine", 0.970, -0.108, 0.218, 0.084),
        ("spine", 0.875, -0.100, 0.216, 0.084),
        ("hips", 0.780, -0.098, 0.210, 0.084),
        ("hips", 0.690, -0.105, 0.190, 0.080),
    ]
    parts = [
        ball(joint, "shell", (0, y, z), (width, 0.056, depth), tilt=(-16, 0, 0), blend=0.02, soft=0.08)
        for joint, y, z, width, depth in bands
    ]
    rings = [("tail1", 0.560, -0.250, 0.128), ("tail2", 0.425, -0.420, 0.104), ("tail3", 0.328, -0.600, 0.080)]
    for joint, y, z, width in rings:
        parts.append(ball(joint, "tail", (0, y, z), (width, 0.046, width), tilt=(-48, 0, 0), blend=0.02, soft=0.06))
    return parts


def _head() -> list[ConePart]:
    g, ahead = "body", (-0.3, 0.0, 1.0)
    mouth = [
        (0.0, 1.319, 0.342),
        (0.047, 1.322, 0.320),
        (0.066, 1.328, 0.270),
        (0.076, 1.333, 0.230),
        (0.1, 1.34, 0.19),
    ]
    return [
        ball("head", g, (0, 1.425, 0.025), (0.150, 0.140, 0.150), blend=0.05),
        cone("head", g, (0, 1.385, 0.100), (0, 1.350, 0.285), (0.112, 0.066), blend=0.04, flat=0.85, toward=(0, 1, 0)),
        ball("head", g, (0.070, 1.350, 0.110), (0.070, 0.062, 0.085), blend=0.03),
        ball("head", g, (0, 1.382, 0.345), (0.040, 0.032, 0.030), blend=0.012),
        *(cone("head", g, a, b, (0.011, 0.011), blend=0.01, carve=True) for a, b in pairwise(mouth)),
        ball("head", g, (0.020, 1.384, 0.374), (0.010, 0.009, 0.012), blend=0.006, carve=True),
        cone("head", g, (0.040, 1.500, 0.140), (0.118, 1.495, 0.090), (0.026, 0.022), blend=0.02),
        ball("head", g, (0.078, 1.452, 0.140), 0.040, blend=0.003),
        cone("head", "horn.L", (0.050, 1.540, 0.030), (0.062, 1.610, 0.040), (0.034, 0.024)),
        cone("head", "horn.L", (0.062, 1.610, 0.040), (0.056, 1.668, 0.066), (0.024, 0.008), blend=0.006),
        cone("ear.L", "ear.L", (0.105, 1.47, -0.03), (0.180, 1.585, -0.045), (0.040, 0.064), flat=0.45, toward=ahead),
        cone(
            "ear.L", "ear.L", (0.180, 1.585, -0.045), (0.232, 1.690, -0.060), (0.064, 0.014),
            blend=0.02, flat=0.45, toward=ahead,
        ),
        ball("ear.L", "ear.L", (0.176, 1.582, -0.01), (0.036, 0.085, 0.02), tilt=(0, -16, -30), blend=0.01, carve=True),
    ]  # fmt: skip


def _arm() -> list[ConePart]:
    g = "arm.L"
    parts = [
        ball("upperarm.L", g, (0.215, 1.115, -0.02), (0.095, 0.095, 0.092), soft=0.07),
        cone("upperarm.L", g, (0.220, 1.105, -0.02), (0.395, 0.98, -0.03), (0.082, 0.066), blend=0.03),
        ball("upperarm.L", g, (0.300, 1.060, 0.005), (0.085, 0.066, 0.062), tilt=(0, 0, -38), blend=0.03),
        cone("forearm.L", g, (0.395, 0.98, -0.03), (0.560, 0.845, 0.02), (0.068, 0.054), blend=0.02),
        ball("forearm.L", g, (0.455, 0.938, -0.012), (0.090, 0.074, 0.072), tilt=(0, -14, -40), blend=0.03),
        ball("hand.L", g, (0.598, 0.815, 0.030), (0.072, 0.044, 0.070), tilt=(0, -10, -40), blend=0.025),
    ]
    for finger, size in (("index", 0.030), ("middle", 0.031), ("little", 0.028), ("thumb", 0.029)):
        root, tip = np.array(_CREATURE_JOINTS[f"{finger}.L"][1]), np.array(_TIPS[f"{finger}.L"])
        inward = 0.35 * (np.array([0.598, 0.815, 0.03]) - root)
        middle = 0.35 * root + 0.65 * tip
        parts += [
            cone(f"{finger}.L", f"{finger}.L", root + inward, middle, (size, 0.9 * size)),
            cone(
                f"{finger}.L",
                f"{finger}.L",
                middle,
                tip - np.array([0, 0.012, 0]),
                (0.9 * size, 0.35 * size),
                blend=0.006,
            ),
        ]
    return parts


def _leg() -> list[ConePart]:
    g = "leg.L"
    parts = [
        ball("thigh.L", g, (0.130, 0.590, 0.0), (0.120, 0.180, 0.130), tilt=(-10, 0, 8), soft=0.10),
        cone("thigh.L", g, (0.140, 0.560, 0.01), (0.165, 0.39, 0.035), (0.112, 0.088), blend=0.04),
        cone("shin.L", g, (0.165, 0.38, 0.035), (0.175, 0.13, -0.03), (0.088, 0.066), blend=0.03),
        ball("shin.L", g, (0.168, 0.300, -0.015), (0.080, 0.110, 0.080), tilt=(12, 0, 0), blend=0.03),
        cone("foot.L", g, (0.175, 0.085, -0.055), (0.188, 0.065, 0.075), (0.070, 0.066), blend=0.03),
    ]
    for x, z in ((0.130, 0.165), (0.196, 0.185), (0.258, 0.155)):
        root = np.array([0.19 + 0.55 * (x - 0.19), 0.058, 0.080])
        parts.append(cone("toes.L", g, root, (x, 0.048, z), (0.050, 0.040), blend=0.012))
        parts.append(cone("toes.L", g, (x, 0.055, z + 0.012), (x, 0.032, z + 0.060), (0.026, 0.010), blend=0.005))
    parts.append(ball("foot.L", g, (0.185, -1.200, 0.02), 1.2, carve=True, blend=0.012))
    return parts


def _poses() -> dict[str, JointRotations]:
    """Turns by the pose's name. About z, positive raises the left arm; about x, positive swings a leg backwards."""
    up: JointRotations = {"upperarm.L": [("z", 82)], "forearm.L": [("z", 42), ("y", -18)], "hand.L": [("z", 12)]}
    curl: JointRotations = {f"{finger}.L": [("z", -52)] for finger in ("index", "middle", "little")}
    flex: JointRotations = {
        "upperarm.L": [("z", 44), ("y", -12)],
        "forearm.L": [("z", 112), ("y", -10)],
        "hand.L": [("y", -12)],
        **curl,
    }
    sneak: JointRotations = {
        "hips": [("x", 14)], "spine": [("x", 16)], "chest": [("x", 14)], "neck": [("x", -14)], "head": [("x", -22)],
        "thigh.L": [("x", -84)], "shin.L": [("x", 74)], "foot.L": [("x", -6)], "thigh.R": [("x", -34)],
        "shin.R": [("x", 48)], "foot.R": [("x", -24)], "upperarm.L": [("y", -52), ("z", 14)],
        "forearm.L": [("y", -34), ("z", 52)], "hand.L": [("z", -50)],
        "upperarm.R": [("y", 30), ("z", -14)], "forearm.R": [("y", 44), ("z", -52)],
        "hand.R": [("z", 50)], "tail1": [("x", 26)], "tail2": [("x", 8)], "tail3": [("x", -18)],
    }  # fmt: skip
    stomp: JointRotations = {
        "hips": [("z", -6)], "thigh.L": [("x", -88), ("z", 10)], "shin.L": [("x", 92)], "foot.L": [("x", 4)],
        "spine": [("y", 14)], "chest": [("y", 16)], "head": [("y", -18), ("x", -6)],
        "upperarm.L": [("y", 30), ("z", -10)], "upperarm.R": [("y", 58), ("z", -34)],
        "forearm.R": [("y", 20), ("z", -30)], "thigh.R": [("z", 6)],
        **{f"tail{k}": [("y", 24)] for k in (1, 2, 3, 4)},
    }  # fmt: skip
    return {
        "cheering": {**up, **mirrored_rotations(up), "head": [("x", -16)], "chest": [("x", -6)]},
        "sneaking": sneak,
        "stomping": stomp,
        "flexing": {
            **flex,
            **mirrored_rotations(flex),
            "chest": [("x", -6)],
            "tail1": [("y", 20)],
            "tail2": [("y", 24)],
        },
    }


# Degrees about x at eight moments of a leg's stride, from the moment its foot lands.
_CREATURE_STRIDE = {
    "thigh": (-30, -18, 0, 18, 24, -2, -30, -36),
    "shin": (4, 14, 8, 12, 40, 62, 44, 10),
    "foot": (14, 6, -6, -6, 4, 8, 2, 12),
    "toes": (0, 0, 0, -26, -42, -12, 0, -4),
}


def _walk(phase: float) -> SkeletonPose:
    joint_rotations = stride(_CREATURE_STRIDE, {"L": phase, "R": phase - 0.5})
    angle = 2 * np.pi * phase
    swing, nod = float(np.cos(angle)), float(np.cos(2 * angle))
    joint_rotations |= {
        "hips": [("y", -8 * swing)],
        "spine": [("y", 6 * swing), ("x", 4)],
        "chest": [("y", 9 * swing)],
        "neck": [("y", -4 * swing), ("x", 2 * nod)],
        "head": [("y", -3 * swing)],
        "upperarm.L": [("x", 26 * swing), ("z", -34)],
        "upperarm.R": [("x", -26 * swing), ("z", 34)],
        "forearm.L": [("y", -22 + 12 * swing)],
        "forearm.R": [("y", 22 + 12 * swing)],
    }
    joint_rotations |= {f"tail{k}": [("y", 12 * float(np.sin(angle - 0.8 * k)))] for k in range(1, 5)}
    return grounded(rotated(creature_skeleton(), joint_rotations), ("foot.L", "toes.L", "foot.R", "toes.R"))
