"""A horse, in metres, facing +z: standing, and a gallop that loops.

The gallop is keyed by hand: eight angles a joint over one stride, a periodic cubic through them, and each leg at its
own phase (the footfall order of a rotary gallop: hind left, hind right, fore right, fore left, then all in the air).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from pliant.core.clips import Animation, Shapes
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.gallery.coats import bay
from pliant.gallery.gaits import looped, stride
from pliant.gallery.implicit import BodyPart, ConePart, ImplicitBody, ball, chain, cone, symmetric_body
from pliant.gallery.sizes import kept
from pliant.gallery.skinning import animated, posed_shapes, rotated, skinned

_SPINE = {
    "hips": ("", (0.0, 1.27, -0.50)),
    "loins": ("hips", (0.0, 1.27, -0.22)),
    "back": ("loins", (0.0, 1.25, 0.06)),
    "chest": ("back", (0.0, 1.22, 0.34)),
    "neck1": ("chest", (0.0, 1.30, 0.56)),
    "neck2": ("neck1", (0.0, 1.50, 0.74)),
    "neck3": ("neck2", (0.0, 1.70, 0.88)),
    "head": ("neck3", (0.0, 1.87, 0.98)),
    "tail1": ("hips", (0.0, 1.28, -0.745)),
    "tail2": ("tail1", (0.0, 1.18, -0.90)),
    "tail3": ("tail2", (0.0, 0.97, -0.95)),
    "tail4": ("tail3", (0.0, 0.74, -0.96)),
    "ear.L": ("head", (0.055, 1.955, 0.970)),
    "shoulder.L": ("chest", (0.120, 1.32, 0.36)),
    "upperarm.L": ("shoulder.L", (0.155, 1.03, 0.57)),
    "forearm.L": ("upperarm.L", (0.160, 0.86, 0.40)),
    "cannon.L": ("forearm.L", (0.155, 0.49, 0.43)),
    "pastern.L": ("cannon.L", (0.155, 0.20, 0.42)),
    "hoof.L": ("pastern.L", (0.155, 0.095, 0.475)),
    "thigh.L": ("hips", (0.130, 1.17, -0.54)),
    "gaskin.L": ("thigh.L", (0.165, 0.88, -0.36)),
    "hindcannon.L": ("gaskin.L", (0.150, 0.54, -0.68)),
    "hindpastern.L": ("hindcannon.L", (0.150, 0.21, -0.63)),
    "hindhoof.L": ("hindpastern.L", (0.150, 0.095, -0.575)),
}
_QUADRUPED_ENDS = {
    "head": (0.0, 1.56, 1.36),
    "tail4": (0.0, 0.52, -0.95),
    "ear.L": (0.064, 1.975, 0.966),
    "hoof.L": (0.155, 0.05, 0.50),
    "hindhoof.L": (0.150, 0.05, -0.55),
}


@kept
def animal(n: int = 8000) -> Shapes:
    """A horse with about n vertices: standing, then eight poses of a gallop, evenly spaced over one stride."""
    poses = {f"gallop {k + 1}": _gallop(k / 8) for k in range(8)}
    return posed_shapes(skinned(body(), n, bay), poses, "standing")


def animal_gait(n: int = 8000, frames: int = 24) -> Animation:
    """One stride of the gallop, 0.8 seconds long; the frame after the last is the first."""
    return animated(skinned(body(), n, bay), animal_gallop(frames))


def animal_gallop(frames: int = 24) -> Motion:
    """The gallop's skeleton motion: one stride that loops."""
    return looped(animal_skeleton(), _gallop, frames=frames, seconds=0.8, name="gallop")


def animal_skeleton() -> Skeleton:
    """The horse's joints; the root is "hips"."""
    return body().skeleton


@lru_cache(maxsize=1)
def body() -> ImplicitBody:
    """The implicit body: joints, groups and parts."""
    groups = [
        BodyPart("body"),
        BodyPart("tail", "body", 0.05, 0.02),
        BodyPart("mane", "body", 0.02, 0.0),
        BodyPart("ear.L", "body", 0.03, 0.0),
        BodyPart("foreleg.L", "body", 0.09, 0.03),
        BodyPart("hindleg.L", "body", 0.09, 0.03),
    ]
    parts = [*_trunk(), *_head(), *_hair(), *_foreleg(), *_hindleg()]
    return symmetric_body(_SPINE, groups, parts, sturdy=5000, ends=_QUADRUPED_ENDS)


def _trunk() -> list[ConePart]:
    side = (1.0, 0.0, 0.0)
    return [
        ball("hips", "body", (0, 1.175, -0.50), (0.235, 0.245, 0.305), tilt=(12, 0, 0), soft=0.14),
        ball("loins", "body", (0, 1.115, -0.22), (0.235, 0.250, 0.280), blend=0.10, soft=0.14),
        ball("back", "body", (0, 1.070, 0.06), (0.255, 0.295, 0.300), blend=0.10, soft=0.14),
        ball("chest", "body", (0, 1.085, 0.34), (0.225, 0.305, 0.270), blend=0.10, soft=0.14),
        cone("chest", "body", (0, 1.33, 0.10), (0, 1.36, 0.34), (0.07, 0.07), blend=0.10, flat=0.8, toward=side),
        ball("chest", "body", (0.075, 0.98, 0.56), (0.085, 0.12, 0.09), blend=0.08, soft=0.10),
        cone("neck1", "body", (0, 1.20, 0.46), (0, 1.46, 0.72), (0.245, 0.180), blend=0.07, flat=0.60, toward=side),
        cone("neck2", "body", (0, 1.46, 0.72), (0, 1.67, 0.88), (0.180, 0.135), blend=0.03, flat=0.62, toward=side),
        cone("neck3", "body", (0, 1.67, 0.88), (0, 1.82, 0.99), (0.135, 0.105), blend=0.03, flat=0.72, toward=side),
    ]


def _head() -> list[ConePart]:
    side = (1.0, 0.0, 0.0)
    mouth = [
        (0.0, 1.548, 1.380),
        (0.040, 1.551, 1.362),
        (0.0555, 1.562, 1.335),
        (0.0565, 1.570, 1.305),
        (0.049, 1.58, 1.28),
    ]
    return [
        ball("head", "body", (0, 1.835, 1.05), (0.080, 0.095, 0.110), tilt=(40, 0, 0), blend=0.05),
        cone("head", "body", (0, 1.80, 1.09), (0, 1.60, 1.315), (0.098, 0.062), blend=0.04, flat=0.78, toward=side),
        ball("head", "body", (0.030, 1.715, 1.075), (0.042, 0.100, 0.085), tilt=(35, 0, 0), blend=0.03),
        cone("head", "body", (0, 1.665, 1.12), (0, 1.545, 1.285), (0.050, 0.036), blend=0.04, flat=0.80, toward=side),
        ball("head", "body", (0, 1.585, 1.335), (0.058, 0.062, 0.056), tilt=(45, 0, 0), blend=0.035),
        ball("head", "body", (0, 1.535, 1.305), (0.040, 0.030, 0.040), tilt=(45, 0, 0), blend=0.02),
        *(cone("head", "body", a, b, (0.007, 0.006), blend=0.007, carve=True) for a, b in pairwise(mouth)),
        ball("head", "body", (0.040, 1.600, 1.382), (0.013, 0.022, 0.016), tilt=(30, 0, 0), blend=0.012, carve=True),
        ball("head", "body", (0.070, 1.820, 1.120), (0.032, 0.024, 0.038), tilt=(40, 0, 0), blend=0.025),
        ball("head", "body", (0.090, 1.805, 1.130), (0.018, 0.020, 0.022), blend=0.003),
        cone(
            "ear.L", "ear.L", (0.052, 1.920, 0.985), (0.066, 1.990, 0.972), (0.028, 0.036), flat=0.6, toward=(0.5, 0, 1)
        ),
        cone(
            "ear.L",
            "ear.L",
            (0.066, 1.990, 0.972),
            (0.072, 2.080, 0.985),
            (0.036, 0.010),
            blend=0.01,
            flat=0.6,
            toward=(0.5, 0, 1),
        ),
        ball("ear.L", "ear.L", (0.075, 2.005, 1.006), (0.016, 0.050, 0.014), tilt=(-4, 20, -8), blend=0.01, carve=True),
    ]


def _hair() -> list[ConePart]:
    """Tail and mane."""
    side = (1.0, 0.0, 0.0)
    tail = [(0, 1.30, -0.72), (0, 1.17, -0.89), (0, 0.97, -0.94), (0, 0.74, -0.95), (0, 0.50, -0.94)]
    parts = chain(["tail1", "tail2", "tail3", "tail4"], "tail", tail, [0.050, 0.062, 0.080, 0.070, 0.022], blend=0.03)
    locks = [
        ("neck1", (0, 1.43, 0.46), (0, 1.58, 0.56)),
        ("neck1", (0, 1.55, 0.53), (0, 1.68, 0.64)),
        ("neck2", (0, 1.65, 0.61), (0, 1.78, 0.72)),
        ("neck2", (0, 1.74, 0.69), (0, 1.86, 0.80)),
        ("neck3", (0, 1.83, 0.77), (0, 1.93, 0.88)),
        ("neck3", (0, 1.89, 0.86), (0, 1.97, 0.96)),
    ]
    for joint, low, high in locks:
        parts.append(cone(joint, "mane", low, high, (0.042, 0.042), blend=0.02, flat=0.55, toward=side, soft=0.08))
    parts.append(cone("head", "mane", (0, 1.955, 0.97), (0, 1.885, 1.115), (0.036, 0.020), blend=0.02))
    return parts


def _hoof(joint: str, pastern: str, group: str, x: float, z: float) -> list[ConePart]:
    """Fetlock, pastern and a hoof with a flat sole, below a fetlock joint at (x, 0.2, z)."""
    return [
        ball(pastern, group, (x, 0.200, z), (0.046, 0.054, 0.052), blend=0.03),
        cone(pastern, group, (x, 0.195, z), (x, 0.110, z + 0.050), (0.042, 0.044), blend=0.02),
        cone(joint, group, (x, 0.100, z + 0.052), (x, 0.030, z + 0.080), (0.052, 0.068), blend=0.008),
        ball(joint, group, (x, -0.600, z + 0.07), 0.6, carve=True, blend=0.006),
    ]


def _foreleg() -> list[ConePart]:
    g = "foreleg.L"
    return [
        ball("shoulder.L", g, (0.130, 1.17, 0.46), (0.085, 0.240, 0.140), tilt=(-34, 0, 6), soft=0.10),
        ball("upperarm.L", g, (0.160, 0.98, 0.50), (0.080, 0.135, 0.130), blend=0.08, soft=0.09),
        cone("upperarm.L", g, (0.155, 1.02, 0.54), (0.155, 0.87, 0.42), (0.095, 0.085), blend=0.06, soft=0.08),
        cone("forearm.L", g, (0.155, 0.86, 0.42), (0.155, 0.52, 0.43), (0.088, 0.052), blend=0.05),
        ball("cannon.L", g, (0.155, 0.49, 0.437), (0.052, 0.062, 0.055), blend=0.03),
        cone("cannon.L", g, (0.155, 0.49, 0.430), (0.155, 0.22, 0.420), (0.046, 0.040), blend=0.03),
        *_hoof("hoof.L", "pastern.L", g, 0.155, 0.42),
    ]


def _hindleg() -> list[ConePart]:
    g = "hindleg.L"
    return [
        ball("thigh.L", g, (0.125, 1.10, -0.55), (0.110, 0.250, 0.200), tilt=(-14, 0, 4), soft=0.11),
        ball("thigh.L", g, (0.130, 0.98, -0.64), (0.080, 0.190, 0.110), tilt=(-10, 0, 0), blend=0.08, soft=0.11),
        ball("thigh.L", g, (0.150, 0.96, -0.42), (0.088, 0.150, 0.120), tilt=(-30, 0, 0), blend=0.08, soft=0.10),
        cone(
            "gaskin.L",
            g,
            (0.160, 0.87, -0.42),
            (0.150, 0.57, -0.66),
            (0.108, 0.054),
            blend=0.07,
            flat=0.85,
            toward=(1, 0, 0),
        ),
        cone("hindcannon.L", g, (0.150, 0.61, -0.715), (0.150, 0.53, -0.680), (0.036, 0.050), blend=0.03),
        cone("hindcannon.L", g, (0.150, 0.54, -0.680), (0.150, 0.22, -0.632), (0.050, 0.042), blend=0.03),
        *_hoof("hindhoof.L", "hindpastern.L", g, 0.150, -0.63),
    ]


# Degrees about x at eight moments of a leg's stride, from the moment its foot lands. Positive swings a foot backwards.
_FORE = {
    "shoulder": (-12, 0, 12, 9, 0, -8, -15, -16),
    "upperarm": (-16, 2, 26, 22, 2, -16, -26, -25),
    "forearm": (-6, 2, 4, -24, -54, -60, -36, -12),
    "cannon": (0, 0, 8, 62, 108, 88, 32, 2),
    "pastern": (-12, -26, 4, 46, 56, 40, 10, -4),
    "hoof": (6, 12, 10, 18, 20, 10, 4, 4),
}
_HIND = {
    "thigh": (-34, -6, 26, 28, 4, -24, -44, -44),
    "gaskin": (6, 4, -8, 12, 42, 48, 30, 14),
    "hindcannon": (-4, -4, 16, -22, -62, -70, -42, -16),
    "hindpastern": (-10, -24, 6, 40, 48, 32, 8, -2),
    "hindhoof": (6, 12, 8, 16, 18, 10, 4, 4),
}


def _gallop(phase: float) -> SkeletonPose:
    """The horse at a phase (0 to 1) of its stride; phase 0 is the landing of the left hind foot."""
    joint_rotations = stride(_FORE, {"L": phase - 0.52, "R": phase - 0.40})
    joint_rotations |= stride(_HIND, {"L": phase, "R": phase - 0.10})
    wave = _wave(phase)
    joint_rotations |= {
        "hips": [("x", 5 * wave[1])],
        "loins": [("x", -8 * wave[0])],
        "back": [("x", -5 * wave[0])],
        "chest": [("x", -2 * wave[0] - 3 * wave[1])],
        "neck1": [("x", 16 - 7 * wave[1])],
        "neck2": [("x", 6 - 4 * wave[1])],
        "neck3": [("x", -6 + 3 * wave[1])],
        "head": [("x", -14 + 5 * wave[1])],
        "tail1": [("x", 42 + 8 * wave[1])],
        "tail2": [("x", 18 + 8 * wave[2])],
        "tail3": [("x", -8 + 10 * wave[3])],
        "tail4": [("x", -10 + 12 * wave[0])],
        "ear.L": [("x", -25)],
        "ear.R": [("x", -25)],
    }
    skeleton = animal_skeleton()
    return rotated(skeleton, joint_rotations, root=skeleton.offsets[0] + [0, 0.03 + 0.05 * wave[4], 0.0])


def _wave(phase: float) -> Floats:
    """Gathering, pitching and two lags of the stride, and the bounce of the body."""
    angle = 2 * np.pi * phase
    return np.array([np.cos(angle), np.sin(angle), np.sin(angle - 0.8), np.sin(angle - 1.6), -np.cos(angle - 0.9)])
