"""Rotations of the whole body from those of its bones (Eq. 12-14).

Each entry R_i of the quaternion field is a steady temperature: ∇²R_i = 0 with the samples' rotations as the boundary
values (12), so it minimises Π = ½ ∫ |∇R_i|² (13), in the nodes' functions ½ R_iᵀ K R_i with K_IJ = ∫ ∇φ_I·∇φ_J (14).
That is linear in the bones' quaternions, and the samples do not move in the material. So the weights

    w = -K_ff⁻¹ K_fs blend        (n, bones)

are found once, and a pose's rotations are one small product and a normalisation.

Where a file's skin says by which weights w' joints move the flesh, weights are drawn to those: Π = ½ ∫ |∇w|² + κ |w -
w'|², which smooths them over a distance of 1/√κ. So a toe that the skin binds to a joint rotates with it, though the
bones beside it are others.

A temperature lies between those of its sources: all w >= 0, Σ_b w = 1. Functions of moving least squares do not keep to
that (-0.8 and 1.7 are seen next to the samples), so weights are clipped and scaled, at nodes and at quadrature points;
otherwise rotations overshoot beside the bones. Weights below `SMALLEST_WEIGHT` are dropped. Where the weighted
quaternions cancel, the rotation is that of the bone with the largest weight. A part of the body without a bone (an eye,
a button) follows the bones of the nearest sample rigidly; so do nodes with too few quadrature points. These nodes
are `loose`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.mls import ROWS_PER_THREAD
from pliant.engines.simulate.nodes import Nodes
from pliant.native import in_threads, kernels
from pliant.numerics.linalg import Factorization, factorize

SMALLEST_WEIGHT = 1e-3
"""Weight below which a bone does not count."""
TIE = 1e-6
"""Weight of the ties between neighbouring nodes, over the mean diagonal of K."""


@dataclass(frozen=True, eq=False)
class RotationWeights(Value):
    """The weight of each bone in the rotation at p points, by rows: those of point i are at start[i]:start[i + 1]."""

    start: Ints
    """(p + 1,)"""
    bone: Ints
    """(nnz,) int32"""
    weight: Floats
    """(nnz,) positive; those of a point sum to 1."""

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def of(cls, table: Floats) -> RotationWeights:
        """From weights (p, bones) of any sign: clipped to positive ones that sum to 1."""
        from scipy.sparse import csr_array

        sparse = csr_array(bounded(table))
        return cls(*(locked(a) for a in (sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data)))

    def table(self, bones: int) -> Any:
        """Sparse (p, bones)."""
        from scipy.sparse import csr_array

        return csr_array((self.weight, self.bone, self.start), shape=(len(self), bones))

    def chosen(self, which: Ints) -> RotationWeights:
        """Those of some points."""
        count = np.diff(self.start)[which]
        start = np.concatenate([[0], np.cumsum(count)])
        entry = np.arange(start[-1]) + np.repeat(self.start[which] - start[:-1], count)
        return RotationWeights(locked(start), locked(self.bone[entry]), locked(self.weight[entry]))

    def quaternions(self, quaternions: Floats) -> Floats:
        """(p, 4) unit quaternions for those of the bones (b, 4), whose signs have to be consistent."""
        out = np.empty((len(self), 4))
        in_threads(
            lambda a, b: kernels.diffusion_quaternions(self._lists, quaternions, out, a, b), len(out), ROWS_PER_THREAD
        )
        return out

    def matrices(self, quaternions: Floats) -> Floats:
        """(p, 9) rotation matrices, row by row, for the quaternions of the bones (b, 4)."""
        out = np.empty((len(self), 9))
        in_threads(
            lambda a, b: kernels.diffusion_matrices(self._lists, quaternions, out, a, b), len(out), ROWS_PER_THREAD
        )
        return out

    def carried(self, X: Floats, R: Floats, shift: Floats) -> Floats:
        """(p, 3) Σ_b w_b (R_b X + shift_b): points X carried by the bones, R (b, 9) and shift (b, 3)."""
        out = np.empty((len(self), 3))
        in_threads(
            lambda a, b: kernels.diffusion_carried(self._lists, X, R, shift, out, a, b), len(out), ROWS_PER_THREAD
        )
        return out

    @property
    def _lists(self) -> tuple[Ints, Ints, Floats]:
        return self.start, self.bone, self.weight


def bounded(table: Floats) -> Floats:
    """Weights (p, b) with the maximum principle restored: none below 0, none above 1, each row's sum 1."""
    positive = np.maximum(table, 0)
    positive /= positive.sum(axis=1, keepdims=True)
    positive[positive < SMALLEST_WEIGHT] = 0
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def diffuse(
    K: Any, nodes: Nodes, blend: Any, skin: tuple[Floats, Floats] | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """(n, b) weights at the nodes, those of the samples as `blend` (s, b) gives them; and (free,) which are loose.

    K: sparse (n, n) with K_IJ = ∫ ∇φ_I·∇φ_J. skin: (free, b) the weights w' of the file's skin, and (free,) κ.
    """
    from scipy.sparse import diags
    from scipy.sparse.csgraph import connected_components

    fixed, free = blend.toarray(), nodes.free
    K = K.tocsr()
    table = np.concatenate([np.zeros((free, fixed.shape[1])), fixed])
    part = connected_components(K != 0, directed=False)[1]
    loose = ~np.isin(part[:free], part[free:])
    inner = np.flatnonzero(~loose)
    if len(inner):
        tied = (K + _ties(K)).tocsr()
        factor = factorize(tied[inner][:, inner])
        loose[inner] = _undetermined(K[inner][:, inner], factor)
        pull = -(tied[inner][:, free:] @ fixed)
        if skin is not None:
            weights, kappa = (values[inner] for values in skin)
            factor = factorize(tied[inner][:, inner] + diags(kappa))
            pull = pull + kappa[:, None] * weights
        table[inner] = bounded(factor.solve(pull))
    for k in np.setdiff1d(part[:free], part[free:]):
        mine = np.flatnonzero(part[:free] == k)
        away = np.linalg.norm(nodes.points[free:] - nodes.points[mine].mean(axis=0), axis=1)
        table[mine] = fixed[np.argmin(away)]
    return table, loose


def _ties(K: Any) -> Any:
    """A weak graph Laplacian over nodes that share a quadrature point: it decides where K is singular."""
    from scipy.sparse import diags

    ties = (K != 0).astype(np.float64)
    ties.setdiag(0)
    ties *= TIE * K.diagonal().mean() / max(ties.sum() / ties.shape[0], 1.0)
    return diags(np.asarray(ties.sum(axis=1)).ravel()) - ties


def _undetermined(K: Any, factor: Factorization) -> NDArray[np.bool_]:
    """(m,) nodes whose values the ties decide, not K: there, solving for K u does not give u back."""
    field = np.random.default_rng(0).standard_normal((K.shape[0], 4))
    return np.asarray(np.abs(factor.solve(K @ field) - field).max(axis=1) > 0.05)
