"""Other ways to rotate Hooke's law, to compare `ElasticBody` with: by assembled matrices, factorised anew every time.

With the stiffness k of the body at rest (Eq. 9 of Song et al. 2006) and rotations R at the nodes:

- "paper", Eq. (11):  f_i = R_i Σ_j k_ij (R_jᵀ x_j - X_j), which depends on where the origin is;
- "per_node" (Müller 2002):  f_i = R_i Σ_j k_ij (R_iᵀ x_j - X_j), which has no energy and no symmetric matrix.

Rotations are diffused from the bones, or "polar", Müller's: those of the deformation of the step before. Steps are
implicit Euler's with Rayleigh damping, as in both papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from pliant import ElasticBody, Motion, SkeletonPose, rotations
from pliant.core.topology import Floats
from pliant.engines.simulate.bones import Frames
from pliant.numerics.linalg import MatrixKind, factorize

Warping = Literal["paper", "per_node"]
Rotations = Literal["diffused", "polar"]
SUBSTEPS = 12
"""From rest to a pose, with polar rotations."""


class Scheme:
    """A body moved by one of the other warpings."""

    def __init__(self, body: ElasticBody, warping: Warping, rotations: Rotations = "diffused") -> None:
        self.body, self.warping, self.rotations = body, warping, rotations
        self.stiffness = body.operator.rest_stiffness().tocsr()

    def pose(self, pose: SkeletonPose) -> Floats:
        """(n, 3) the nodes at rest in a pose."""
        frames, x = self.body.frames_of(pose), self.body.nodes.points
        none = np.zeros(self.body.nodes.free)
        for frame in self._way_to(frames) if self.rotations == "polar" else [frames]:
            x = self._solved(frame, 0, x, np.zeros((len(none), 3)), none, 1.0)
        return x

    def steps(self, motion: Motion, dt: float, damping: float = 0.005) -> Iterator[Floats]:
        """(n, 3) the nodes after every step, from rest in the first pose."""
        body, free = self.body, self.body.nodes.free
        at = np.arange(round(motion.duration / dt) + 1) * dt * motion.fps
        frames = body.bones.posed(*motion_at(motion, at))
        x, velocity = self.pose(motion[0]), np.zeros((free, 3))
        mass = body.mass[:free]
        for k in range(1, len(at)):
            load = (mass / dt**2)[:, None] * (x[:free] + dt * velocity)
            new = self._solved(frames, k, x, load, mass / dt**2, 1 + damping / dt, (x, damping / dt))
            x, velocity = new, (new - x)[:free] / dt
            yield x

    def _solved(
        self, frames: Frames, k: int, before: Floats, load: Floats, mass: Floats, stiffness: float,
        damped: tuple[Floats, float] | None = None,
    ) -> Floats:  # fmt: skip
        """(n, 3) nodes with ``mass x + stiffness (A x - b) = load`` at the free ones; damped: places whose forces are
        added to the load, times a number."""
        from scipy.sparse import diags

        free, x = 3 * len(load), self.body.carried(frames, k)
        A, b = self._system(self._rotations(frames, k, before))
        fixed = np.where(np.arange(x.size) < free, 0, x.ravel())
        right = load.ravel() + stiffness * (b - A @ fixed)[:free]
        if damped is not None:
            right += damped[1] * (A @ damped[0].ravel() - b)[:free]
        matrix = stiffness * A[:free, :free] + diags(np.repeat(mass, 3))
        kind: MatrixKind = "definite" if self.warping == "paper" else "general"
        x.ravel()[:free] = factorize(matrix, kind=kind, check=False).solve(right)
        return x

    def _rotations(self, frames: Frames, k: int, before: Floats) -> Floats:
        """(n, 3, 3) at the nodes."""
        body, free = self.body, self.body.nodes.free
        found = body.node_weights.matrices(frames.quaternions[k]).reshape(-1, 3, 3)
        if self.rotations == "polar":
            F = body.operator.gradients(before).reshape(-1, 9)
            mean = abs(body.discretisation.inner.matrix.copy()).T @ (body.operator.weights[:, None] * F)
            found[:free] = rotations.polar(mean[:free].reshape(-1, 3, 3))
        return found

    def _system(self, R: Floats) -> tuple[Any, Floats]:
        """The matrix A (3n, 3n) and the vector b (3n,) of forces ``A x - b``."""
        from scipy.sparse import block_diag, bsr_array

        rotation = block_diag(list(R), format="csr")
        b = rotation @ (self.stiffness @ self.body.nodes.points.ravel())
        if self.warping == "paper":
            return (rotation @ self.stiffness @ rotation.T).tocsr(), b
        blocks = bsr_array(self.stiffness, blocksize=(3, 3))
        row = np.repeat(np.arange(len(R)), np.diff(blocks.indptr))
        rotated = R[row] @ blocks.data @ np.swapaxes(R[row], 1, 2)
        return bsr_array((rotated, blocks.indices, blocks.indptr), shape=blocks.shape).tocsr(), b

    def _way_to(self, frames: Frames) -> Iterator[Frames]:
        """The bones on their way from rest to a pose."""
        bones, unit = self.body.bones, np.broadcast_to(rotations.IDENTITY, frames.quaternions.shape)
        for t in np.arange(1, SUBSTEPS) / SUBSTEPS:
            heads, tails = (1 - t) * bones.heads + t * frames.heads, (1 - t) * bones.tails + t * frames.tails
            yield Frames(heads, tails, rotations.slerp(unit, frames.quaternions, np.full(1, t)), frames.joints)
        yield frames


def motion_at(motion: Motion, at: Floats) -> tuple[Floats, Floats]:
    """Rotations (f, j, 4) and translations (f, j, 3) at frames `at` (f,), with fractions."""
    k = np.minimum(at.astype(int), len(motion) - 2) if len(motion) > 1 else np.zeros(len(at), int)
    after, t = np.minimum(k + 1, len(motion) - 1), at - k
    turned = np.stack([rotations.slerp(motion.rotations[i], motion.rotations[j], np.full(motion.rotations.shape[1], s))
                       for i, j, s in zip(k, after, t, strict=True)])  # fmt: skip
    weight = t[:, None, None]
    return turned, (1 - weight) * motion.translations[k] + weight * motion.translations[after]
