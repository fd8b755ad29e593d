"""Controls in the bones of a figure that follow the bones of a motion.

Both skeletons may have any names, sizes and rest poses: the rotation that takes each bone of the target to the source's
bone in its reference pose is B of G = T S B (`pliant.engines.transfer.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.alignment import as_rotation
from pliant.core.errors import InputError
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose, bone_vector
from pliant.core.topology import Floats
from pliant.core.validation import expect
from pliant.engines.transfer.plan import Control
from pliant.engines.transfer.sources import joint_number, joint_tracks


def bone_controls(
    skeleton: Skeleton,
    motion: Motion,
    bones: Mapping[str, str],
    *,
    along: float = 0.5,
    rest: int | SkeletonPose | None = None,
    turn: ArrayLike | None = None,
) -> list[Control]:
    """Gradient controls on the target's bones.

    skeleton: of the target, at rest in it.
    bones: {joint of the target: joint of the motion}, each with the bone that starts there.
    along: where on the bone a control is, from 0 at the joint to 1 at the bone's end.
    rest: the motion's reference pose, as in `joint_tracks`.
    turn: A, a rotation from the source's axes to the target's, where they face in different directions.
    """
    if not isinstance(skeleton, Skeleton):
        raise InputError(f"the target's skeleton is a {type(skeleton).__name__}; expected a Skeleton")
    expect(bones, Mapping, "bones", " from joints of the target to joints of the motion")
    A = as_rotation(turn, "turn")
    positions, joint_rotations = skeleton.rest_pose().world()
    sources = joint_tracks(motion, list(dict.fromkeys(bones.values())), rest=rest)
    ends = joint_tracks(motion, list(sources), rest=rest, along=1.0)
    controls = []
    for name, other in bones.items():
        j = joint_number(skeleton, name)
        bone = rotations.rotate(joint_rotations[j], bone_vector(skeleton, j))
        B = _before(bone, ends[other].rest - sources[other].rest, A)
        controls.append(Control(positions[j] + along * bone, sources[other], B, A))
    return controls


def _before(bone: Floats, other: Floats, A: Floats) -> Floats:
    """B, for the direction of a target's bone at rest, and of the source's; a joint without a bone is not turned."""
    seen: Floats = A.T @ bone
    if not np.any(bone) or not np.any(other):
        return A.T
    return rotations.matrix(rotations.between(seen, other)) @ A.T
