"""Gaits that loop: joint angles keyed over one stride, and the motions made of them.

A joint's keys are its angles at evenly spaced moments of a stride. Between them runs the trigonometric polynomial of
least degree through the keys, which has no beginning and no end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pliant.core import rotations
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.core.validation import whole_number
from pliant.gallery.skinning import RotationAxis


def keyed(keys: Sequence[float], phase: float) -> float:
    """The value at a phase, in strides, of the periodic curve through evenly spaced keys."""
    waves = np.fft.rfft(keys) / len(keys)
    share = np.full(len(waves), 2.0)
    share[0] = 1.0
    if len(keys) % 2 == 0:
        share[-1] = 1.0
    basis = np.exp(2j * np.pi * np.arange(len(waves)) * phase)
    return float((share * waves * basis).real.sum())


def stride(
    keys: Mapping[str, Sequence[float]], phases: Mapping[str, float]
) -> dict[str, list[tuple[RotationAxis, float]]]:
    """Rotations about x of a leg's joints, by keys, on each side ("L" and "R") at its own phase."""
    return {
        f"{joint}.{side}": [("x", keyed(angles, phase))]
        for side, phase in phases.items()
        for joint, angles in keys.items()
    }


def grounded(pose: SkeletonPose, feet: Sequence[str]) -> SkeletonPose:
    """The pose with its root moved up or down until the lowest of the feet is as low as at rest."""
    skeleton, translations = pose.skeleton, pose.translations.copy()
    translations[0, 1] += _lowest(skeleton, skeleton.rest_world, feet) - _lowest(skeleton, pose.world(), feet)
    return replace(pose, translations=translations)


def _lowest(skeleton: Skeleton, world: tuple[Floats, Floats], feet: Sequence[str]) -> float:
    """Height of the lowest of some joints and their bones' ends, where the joints are in the world."""
    positions, quaternions = world
    numbers = [skeleton.index(name) for name in feet]
    ends = [positions[j] + rotations.rotate(quaternions[j], skeleton.ends[j]) for j in numbers if j in skeleton.ends]
    return min(float(position[1]) for position in (*positions[numbers], *ends))


def looped(
    skeleton: Skeleton, pose_at: Callable[[float], SkeletonPose], *, frames: int, seconds: float, name: str
) -> Motion:
    """A stride of `seconds` as `frames` poses, evenly spaced; the pose after the last is the first."""
    whole_number(frames, "frames", 2, 10_000)
    poses = [pose_at(k / frames) for k in range(frames)]
    quaternions = np.stack([pose.rotations for pose in poses])
    translations = np.stack([pose.translations for pose in poses])
    return Motion(skeleton, quaternions, translations, fps=frames / seconds, name=name)
