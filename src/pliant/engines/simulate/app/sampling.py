"""Poses of flesh on bones for data sets: joints rotated at random, or as a motion turns them; each at rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.app.batch.data_set import POINTS_ARRAY, Sampled, SampleOptions, chosen
from pliant.core import rotations
from pliant.core.skeleton import SkeletonPose
from pliant.core.topology import Floats
from pliant.engines.simulate import ElasticBody
from pliant.engines.simulate.app.scene import ElasticScene


def document(rig: str, options: SampleOptions) -> dict[str, Any]:
    """See `Engine.samples`."""
    moved: dict[str, Any] = (
        {"hold": 1.0} if options.motion is None else {"motion": {"file": options.motion}, "static": True}
    )
    return {"shape": {"file": rig}, **moved}


def dimensions(scene: ElasticScene, options: SampleOptions) -> int:
    """Three for each joint but roots, or one for the moment."""
    return 3 * int((scene.skeleton.parents >= 0).sum()) if options.motion is None else 1


def posed(scene: ElasticScene, body: ElasticBody, numbers: Floats, k: int, options: SampleOptions) -> Sampled:
    """The shape at rest in a pose that was drawn, about that at rest, or in that of the motion at a moment."""
    skeleton = scene.skeleton
    if options.motion is None:
        limbs = skeleton.parents >= 0
        angles = np.radians(options.degrees) * (2 * numbers.reshape(-1, 3) - 1)
        angles[~chosen(len(angles), k, options)] = 0
        rotated = skeleton.rest_rotations.copy()
        rotated[limbs] = rotations.multiply(rotated[limbs], rotations.exp(angles))
        pose = SkeletonPose(skeleton, rotated, skeleton.offsets)
    else:
        motion = scene.frame_poses
        at = numbers[0] * (len(motion) - 1)
        before, after = int(at), min(int(at) + 1, len(motion) - 1)
        share = at - before
        rotated = rotations.slerp(motion.rotations[before], motion.rotations[after], share)
        moved = (1 - share) * motion.translations[before] + share * motion.translations[after]
        pose = SkeletonPose(skeleton, rotated, moved)
    found = scene.posed(body, pose, 0)
    return {
        "rotations": pose.rotations.astype(np.float32),
        "translations": pose.translations.astype(np.float32),
        "converged": np.bool_(found.converged),
        POINTS_ARRAY: found.points.astype(np.float32),
    }


def facts(scene: ElasticScene, body: ElasticBody) -> dict[str, Any]:
    """The skeleton: names, parents (-1: none) and offsets of joints, and their rotations at rest (w, x, y, z)."""
    bones = scene.skeleton
    return {
        "joints": list(bones.names),
        "parents": bones.parents.tolist(),
        "offsets": bones.offsets.tolist(),
        "rest_rotations": bones.rest_rotations.tolist(),
    }
