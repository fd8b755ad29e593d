"""A theropod dinosaur as tall as a man, in metres, facing +z: standing, roaring, crouching, running, looking back."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.gallery.coats import striped_reptile
from pliant.gallery.gaits import grounded, looped, stride
from pliant.gallery.implicit import BodyPart, ConePart, ImplicitBody, ball, chain, cone, scale_parts, symmetric_body
from pliant.gallery.sizes import kept
from pliant.gallery.skinning import JointRotations, mirrored_rotations, posed_shapes, rotated, skinned

_DINOSAUR_JOINTS = {
    "hips": ("", (0.0, 1.17, -0.12)),
    "back": ("hips", (0.0, 1.20, 0.14)),
    "chest": ("back", (0.0, 1.24, 0.38)),
    "neck1": ("chest", (0.0, 1.34, 0.60)),
    "neck2": ("neck1", (0.0, 1.50, 0.74)),
    "head": ("neck2", (0.0, 1.66, 0.84)),
    "jaw": ("head", (0.0, 1.595, 0.97)),
    "tail1": ("hips", (0.0, 1.17, -0.40)),
    "tail2": ("tail1", (0.0, 1.14, -0.70)),
    "tail3": ("tail2", (0.0, 1.11, -1.00)),
    "tail4": ("tail3", (0.0, 1.10, -1.30)),
    "tail5": ("tail4", (0.0, 1.11, -1.58)),
    "upperarm.L": ("chest", (0.150, 1.08, 0.50)),
    "forearm.L": ("upperarm.L", (0.190, 0.93, 0.44)),
    "hand.L": ("forearm.L", (0.185, 0.86, 0.59)),
    "thigh.L": ("hips", (0.150, 1.10, -0.10)),
    "shin.L": ("thigh.L", (0.215, 0.76, 0.16)),
    "foot.L": ("shin.L", (0.230, 0.40, -0.18)),
    "toes.L": ("foot.L", (0.235, 0.105, 0.00)),
}
_DINOSAUR_ENDS = {
    "head": (0.0, 1.68, 1.42),
    "jaw": (0.0, 1.39, 1.29),
    "tail5": (0.0, 1.125, -1.78),
    "hand.L": (0.175, 0.81, 0.66),
    "toes.L": (0.235, 0.055, 0.20),
}


@kept
def dinosaur(n: int = 8000) -> Shapes:
    """A dinosaur with about n vertices: standing, roaring, crouching, running, looking back."""
    return posed_shapes(skinned(body(), n, striped_reptile), _poses(), "standing", grounded=True)


def dinosaur_skeleton() -> Skeleton:
    """The dinosaur's joints; the root is "hips"."""
    return body().skeleton


def dinosaur_walk(frames: int = 32) -> Motion:
    """A walk on the spot, one stride of 1.2 seconds that loops."""
    return looped(dinosaur_skeleton(), _walk, frames=frames, seconds=1.2, name="walk")


@lru_cache(maxsize=1)
def body() -> ImplicitBody:
    """The implicit body: joints, groups and parts."""
    groups = [
        BodyPart("body"),
        BodyPart("jaw", "body", 0.05, 0.02),
        BodyPart("scutes", "body", 0.015, 0.0),
        BodyPart("arm.L", "body", 0.05, 0.02),
        BodyPart("leg.L", "body", 0.10, 0.03),
    ]
    parts = [*_trunk(), *_head(), *_scutes(), *_arm(), *_leg()]
    return symmetric_body(_DINOSAUR_JOINTS, groups, parts, sturdy=6000, ends=_DINOSAUR_ENDS)


def _trunk() -> list[ConePart]:
    side = (1.0, 0.0, 0.0)
    tail = [(0, 1.15, -0.34), (0, 1.13, -0.70), (0, 1.10, -1.00), (0, 1.09, -1.30), (0, 1.10, -1.58), (0, 1.14, -1.90)]
    names = [f"tail{k}" for k in range(1, 6)]
    return [
        ball("hips", "body", (0, 1.12, -0.14), (0.195, 0.225, 0.280), soft=0.12),
        ball("back", "body", (0, 1.10, 0.12), (0.210, 0.235, 0.270), blend=0.10, soft=0.12),
        ball("chest", "body", (0, 1.14, 0.38), (0.190, 0.215, 0.240), tilt=(-18, 0, 0), blend=0.10, soft=0.12),
        *chain(names, "body", tail, [0.190, 0.140, 0.105, 0.076, 0.050, 0.018], blend=0.03, flat=0.85, toward=side),
        cone("neck1", "body", (0, 1.24, 0.50), (0, 1.46, 0.73), (0.175, 0.132), blend=0.06, flat=0.85, toward=side),
        cone("neck2", "body", (0, 1.46, 0.73), (0, 1.62, 0.86), (0.132, 0.122), blend=0.03, flat=0.88, toward=side),
        ball("neck1", "body", (0, 1.30, 0.66), (0.085, 0.14, 0.09), tilt=(35, 0, 0), blend=0.05),
    ]


def _head() -> list[ConePart]:
    side, g = (1.0, 0.0, 0.0), "body"
    parts = [
        ball("head", g, (0, 1.700, 0.915), (0.128, 0.118, 0.140), blend=0.05),
        cone("head", g, (0, 1.710, 0.96), (0, 1.690, 1.290), (0.118, 0.082), blend=0.03, flat=0.86, toward=side),
        ball("head", g, (0, 1.675, 1.300), (0.070, 0.068, 0.075), blend=0.03),
        ball("head", g, (0.075, 1.665, 0.965), (0.055, 0.070, 0.085), blend=0.03),
        cone("head", g, (0.080, 1.800, 0.930), (0.066, 1.785, 1.065), (0.034, 0.026), blend=0.02),
        cone("head", g, (0.040, 1.770, 1.080), (0.034, 1.742, 1.270), (0.026, 0.018), blend=0.02),
        ball("head", g, (0.030, 1.752, 1.325), (0.020, 0.020, 0.024), blend=0.02),
        ball("head", g, (0.045, 1.722, 1.358), (0.016, 0.012, 0.018), blend=0.01, carve=True),
        ball("head", g, (0.102, 1.750, 1.020), (0.030, 0.026, 0.036), blend=0.012, carve=True),
        ball("head", g, (0.094, 1.750, 1.015), 0.030, blend=0.002),
        cone("jaw", "jaw", (0, 1.600, 0.92), (0, 1.455, 1.200), (0.074, 0.044), flat=0.72, toward=(0, 1, 0.5)),
        ball("jaw", "jaw", (0, 1.440, 1.215), (0.048, 0.038, 0.045), blend=0.02),
        ball("jaw", "jaw", (0.045, 1.600, 0.960), (0.050, 0.060, 0.065), blend=0.03),
    ]
    for x, z, low in ((0.062, 1.175, 0.036), (0.056, 1.275, 0.044)):
        parts.append(cone("head", g, (x, 1.628, z), (x, 1.614 - low, z - 0.008), (0.030, 0.012), blend=0.006))
    parts.append(cone("jaw", "jaw", (0.028, 1.455, 1.215), (0.028, 1.500, 1.235), (0.026, 0.012), blend=0.006))
    return scale_parts(parts, _DINOSAUR_JOINTS["head"][1], 1.22)


def _scutes() -> list[ConePart]:
    """A row of small plates along the back, from the neck to the tail."""
    row = [
        ("neck2", 1.705, 0.735, 0.030),
        ("neck1", 1.590, 0.630, 0.036),
        ("neck1", 1.475, 0.520, 0.042),
        ("chest", 1.405, 0.395, 0.046),
        ("back", 1.372, 0.260, 0.050),
        ("back", 1.352, 0.120, 0.052),
        ("hips", 1.352, -0.030, 0.052),
        ("hips", 1.350, -0.180, 0.052),
        ("hips", 1.338, -0.330, 0.050),
        ("tail1", 1.305, -0.475, 0.046),
        ("tail1", 1.280, -0.610, 0.042),
        ("tail2", 1.250, -0.740, 0.038),
        ("tail2", 1.225, -0.860, 0.034),
        ("tail3", 1.205, -0.975, 0.032),
        ("tail3", 1.190, -1.085, 0.030),
        ("tail4", 1.172, -1.190, 0.027),
    ]
    parts = []
    for joint, y, z, size in row:
        root, tip = (0.0, y - 0.9 * size, z), (0.0, y + 1.0 * size, z - 0.9 * size)
        parts.append(cone(joint, "scutes", root, tip, (1.1 * size, 0.3 * size), flat=0.5, toward=(1, 0, 0), soft=0.08))
    return parts


def _arm() -> list[ConePart]:
    g = "arm.L"
    return [
        ball("upperarm.L", g, (0.155, 1.08, 0.49), (0.062, 0.085, 0.075), soft=0.05),
        cone("upperarm.L", g, (0.160, 1.06, 0.49), (0.190, 0.93, 0.44), (0.060, 0.044), blend=0.02),
        cone("forearm.L", g, (0.190, 0.93, 0.44), (0.185, 0.86, 0.59), (0.044, 0.034), blend=0.015),
        ball("hand.L", g, (0.184, 0.850, 0.610), (0.036, 0.034, 0.042), blend=0.015),
        cone("hand.L", g, (0.200, 0.845, 0.620), (0.220, 0.802, 0.690), (0.026, 0.024), blend=0.008),
        cone("hand.L", g, (0.220, 0.802, 0.690), (0.220, 0.752, 0.712), (0.024, 0.010), blend=0.006),
        cone("hand.L", g, (0.166, 0.845, 0.620), (0.142, 0.802, 0.690), (0.026, 0.024), blend=0.008),
        cone("hand.L", g, (0.142, 0.802, 0.690), (0.142, 0.752, 0.712), (0.024, 0.010), blend=0.006),
    ]


def _leg() -> list[ConePart]:
    g = "leg.L"
    parts = [
        ball("thigh.L", g, (0.155, 1.00, -0.02), (0.120, 0.270, 0.190), tilt=(-30, 0, 6), soft=0.16),
        ball("thigh.L", g, (0.192, 0.84, 0.09), (0.100, 0.140, 0.140), tilt=(-35, 0, 0), blend=0.07, soft=0.10),
        cone("shin.L", g, (0.208, 0.77, 0.12), (0.229, 0.43, -0.150), (0.112, 0.060), blend=0.06),
        ball("shin.L", g, (0.213, 0.66, -0.030), (0.080, 0.140, 0.095), tilt=(38, 0, 0), blend=0.05),
        cone("foot.L", g, (0.230, 0.41, -0.170), (0.235, 0.12, -0.010), (0.062, 0.058), blend=0.03),
        ball("toes.L", g, (0.235, 0.085, 0.010), (0.075, 0.060, 0.080), blend=0.03),
        cone("toes.L", g, (0.235, 0.060, -0.04), (0.235, 0.045, -0.100), (0.040, 0.020), blend=0.02),
    ]
    for x, z in ((0.138, 0.170), (0.240, 0.225), (0.340, 0.170)):
        knuckle = np.array([x, 0.052, z])
        ahead = np.array([x - 0.235, 0.0, 0.25])
        claw = knuckle + 0.085 * ahead / np.linalg.norm(ahead) + np.array([0, -0.022, 0])
        parts.append(cone("toes.L", g, (0.235 + 0.4 * (x - 0.235), 0.075, 0.04), knuckle, (0.050, 0.044), blend=0.015))
        parts.append(cone("toes.L", g, knuckle + np.array([0, 0.010, 0.012]), claw, (0.032, 0.009), blend=0.006))
    parts.append(ball("toes.L", g, (0.235, -1.500, 0.08), 1.5, carve=True, blend=0.01))
    return parts


def _poses() -> dict[str, JointRotations]:
    """Turns by the pose's name; about x, positive swings a leg backwards and a head down."""
    crouch: JointRotations = {
        "thigh.L": [("x", -34)],
        "shin.L": [("x", 56)],
        "foot.L": [("x", -58)],
        "toes.L": [("x", 36)],
    }
    arms_out: JointRotations = {
        "upperarm.L": [("z", 35), ("x", -50)],
        "forearm.L": [("x", -25)],
        "hand.L": [("x", -25)],
    }
    roar: JointRotations = {
        "hips": [("x", -14)], "back": [("x", -6)], "neck1": [("x", -10)], "neck2": [("x", -14)], "head": [("x", 6)],
        "jaw": [("x", 24)], "thigh.L": [("x", 4)], "thigh.R": [("x", 30)], "shin.R": [("x", -14)],
        "toes.R": [("x", -2)], "toes.L": [("x", 10)], "tail1": [("x", 4)],
        "tail3": [("x", -10)], "tail4": [("x", -14)], "tail5": [("x", -16)],
        **arms_out, **mirrored_rotations(arms_out),
    }  # fmt: skip
    low: JointRotations = {
        "hips": [("x", 6)], "neck1": [("x", 38)], "neck2": [("x", 22)], "head": [("x", -46)], "jaw": [("x", -8)],
        **crouch, **mirrored_rotations(crouch), "thigh.R": [("x", -24)],
        **{f"tail{k}": [("y", 16)] for k in range(1, 6)},
    }  # fmt: skip
    run: JointRotations = {
        "hips": [("x", 6), ("y", 6)], "neck1": [("x", 14)], "head": [("x", -16)], "jaw": [("x", 6)],
        "thigh.L": [("x", -44)], "shin.L": [("x", 20)], "foot.L": [("x", -24)], "toes.L": [("x", 22)],
        "thigh.R": [("x", 36)], "shin.R": [("x", 44)], "foot.R": [("x", -12)], "toes.R": [("x", 74)],
        "upperarm.L": [("x", 40)], "upperarm.R": [("x", -30)], "forearm.R": [("x", -40)],
        **{f"tail{k}": [("y", -8), ("x", -3)] for k in range(1, 6)},
    }  # fmt: skip
    back: JointRotations = {
        "back": [("y", 24)], "chest": [("y", 28)], "neck1": [("y", 40), ("x", -8)], "neck2": [("y", 40)],
        "head": [("y", 30), ("x", 8)], "jaw": [("x", 10)], "thigh.R": [("x", -20)], "shin.R": [("x", 24)],
        "foot.R": [("x", -22)], "toes.R": [("x", 18)],
        **{f"tail{k}": [("y", -34)] for k in range(1, 6)},
    }  # fmt: skip
    return {"roaring": roar, "crouching": low, "running": run, "looking back": back}


# Degrees about x at eight moments of a leg's stride, from the moment its foot lands.
_DINOSAUR_STRIDE = {
    "thigh": (-24, -12, 2, 18, 22, -8, -36, -34),
    "shin": (2, 6, 4, 4, 26, 44, 26, 4),
    "foot": (-6, -8, 0, 8, -10, -30, -26, -8),
    "toes": (28, 14, -6, -28, 22, 40, 26, 24),
}


def _walk(phase: float) -> SkeletonPose:
    joint_rotations = stride(_DINOSAUR_STRIDE, {"L": phase, "R": phase - 0.5})
    angle = 2 * np.pi * phase
    sway, nod = float(np.sin(angle)), float(np.cos(2 * angle))
    joint_rotations |= {
        "hips": [("y", 5 * sway), ("z", -3 * sway)],
        "back": [("y", -3 * sway)],
        "chest": [("y", -4 * sway)],
        "neck1": [("x", 3 * nod)],
        "head": [("x", -4 * nod)],
        "jaw": [("x", 3 + 3 * nod)],
        "upperarm.L": [("x", 10 * sway)],
        "upperarm.R": [("x", -10 * sway)],
    }
    joint_rotations |= {f"tail{k}": [("y", 10 * float(np.sin(angle - 0.7 * k)))] for k in range(1, 6)}
    x, y, z = _DINOSAUR_JOINTS["hips"][1]
    return grounded(rotated(dinosaur_skeleton(), joint_rotations, root=(x + 0.02 * sway, y, z)), ("toes.L", "toes.R"))
