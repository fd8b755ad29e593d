"""Clips whose shape is carried by bones: what game engines play.

    x_f = Σ_j w_j (R_jf (p + Σ_m c_fm d_m) + t_jf)          [R | t]_jf = world_jf · world_j,rest⁻¹

A vertex p at rest is first moved by the correctives d, morph targets with curves c, then by its joints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.validation import expect
from pliant.core.values import locked, owned

WEIGHT_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class SkinnedAnimation(Animation):
    """An animation as joints, weights and correctives; its points are what these give."""

    motion: Motion
    """Of the joints, in as many frames."""
    joints: Ints
    """(n, k) the joints that carry each vertex."""
    weights: Floats
    """(n, k) how much, in sum 1; 0 fills the rows."""
    correctives: Floats
    """(m, n, 3) what each adds to the shape at rest."""
    curves: Floats
    """(frames, m) how much of it."""
    error: float = 0.0
    """Root mean square distance to the clip that it was made of, over the diagonal."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self.motion, Motion, "the motion of a skin")
        n, frames, put = self.points.shape[1], len(self), object.__setattr__
        put(self, "joints", owned(self.joints, "joints of a skin", np.int64))
        for name in ("weights", "correctives", "curves"):
            put(self, name, owned(getattr(self, name), f"{name} of a skin", np.float64))
        m = len(self.correctives)
        if self.joints.ndim != 2 or self.joints.shape != self.weights.shape or len(self.joints) != n:
            raise InputError(
                f"joints and weights have shapes {self.joints.shape}, {self.weights.shape}; expected {n} rows"
            )
        if self.correctives.shape != (m, n, 3) or self.curves.shape != (frames, m) or len(self.motion) != frames:
            raise InputError(
                f"correctives have shape {self.correctives.shape}, curves {self.curves.shape} and the motion has "
                f"{len(self.motion)} frames; expected (m, {n}, 3), ({frames}, m) and {frames}"
            )
        if self.joints.size and not 0 <= self.joints.min() <= self.joints.max() < len(self.motion.skeleton):
            raise InputError(f"joints reach {self.joints.max()}; the skeleton has {len(self.motion.skeleton)}")

        total = self.weights.sum(axis=1)
        if self.weights.min(initial=0) < 0 or np.abs(total - 1).max(initial=0) > WEIGHT_SUM_TOLERANCE:
            raise InputError(
                f"weights of a skin are at least {self.weights.min():.3g} and add up to {total.min():.3g} to "
                f"{total.max():.3g} at a vertex; expected none below 0, and 1 together"
            )

    def __repr__(self) -> str:
        more = f" and {len(self.correctives)} correctives" if len(self.correctives) else ""
        return (
            f"SkinnedAnimation({len(self)} frames of {self.shape!r} at {self.fps:g} fps on "
            f"{len(self.motion.skeleton)} joints{more}, {100 * self.error:.2g} % from the clip)"
        )


def joint_transforms(motion: Motion) -> tuple[Floats, Floats]:
    """R (joints, frames, 3, 3) and t (joints, frames, 3) that carry what is at rest to each frame."""
    rest_positions, rest_rotations = motion.skeleton.rest_world
    positions, quaternions = motion.world()
    R = rotations.matrix(rotations.multiply(quaternions, rotations.inverse(rest_rotations)))
    t = positions - np.einsum("fjab,jb->fja", R, rest_positions)
    return R.transpose(1, 0, 2, 3), t.transpose(1, 0, 2)


def motion_of(skeleton: Skeleton, R: Floats, t: Floats, fps: float, name: str) -> Motion:
    """The motion of a skeleton that carries what is at rest by R and t; see `joint_transforms`."""
    rest_positions, rest_rotations = skeleton.rest_world
    positions = np.einsum("jfab,jb->fja", R, rest_positions) + t.transpose(1, 0, 2)
    quaternions = rotations.multiply(rotations.quaternion(R.transpose(1, 0, 2, 3)), rest_rotations)
    has_parent = skeleton.parents >= 0
    above = rotations.inverse(np.where(has_parent[:, None], quaternions[:, skeleton.parents], rotations.IDENTITY))
    base = np.where(has_parent[:, None], positions[:, skeleton.parents], 0.0)
    local = rotations.multiply(above, quaternions)
    for frame in range(1, len(local)):  # so that players that do not look for the shorter arc take it
        local[frame] = rotations.align_signs(local[frame], local[frame - 1])
    moved = rotations.rotate(above, positions - base)
    return Motion(skeleton, locked(local), locked(moved), fps, name=name)
