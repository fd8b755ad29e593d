"""Rotations of the whole body from those of its bones (Eq. 12-14).

Each entry R_i of the quaternion field is a steady temperature: ∇²R_i = 0 with the samples' rotations as the boundary
values (12), so it minimises Π = ½ ∫ |∇R_i|² (13), in the nodes' functions ½ R_iᵀ K R_i with K_IJ = ∫ ∇φ_I·∇φ_J (14).
That is linear in the bones' quaternions, and the samples do not move in the material. So the weights

    w = -K_ff⁻¹ K_fs blend        (n, bones)

are found once, and a pose's rotations are one small product and a normalisation.

A temperature lies between those of its sources: all w >= 0, Σ_b w = 1. Functions of moving least squares do not keep to
that (-0.8 and 1.7 are seen next to the samples), so weights are clipped and scaled, at nodes and at quadrature points;
without it rotations overshoot beside the bones. Weights below `LEAST` are dropped. Where weighted quaternions cancel,
the bone of the largest weight has its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.linalg import factorize
from pliant.topology import Floats, Ints
from pliant.values import Value, locked

LEAST = 1e-3
"""Weight below which a bone does not count."""


@dataclass(frozen=True, eq=False)
class RotationWeights(Value):
    """The share of each bone in the rotation at p places, row by row: those of place i are at start[i]:start[i + 1]."""

    start: Ints
    """(p + 1,)"""
    bone: Ints
    """(nnz,) int32"""
    weight: Floats
    """(nnz,) positive; those of a place sum to 1."""

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def of(cls, table: Floats) -> RotationWeights:
        """From weights (p, bones) of any sign: clipped to positive ones that sum to 1."""
        from scipy.sparse import csr_array

        sparse = csr_array(bounded(table))
        return cls(*(locked(a) for a in (sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data)))

    def quaternions(self, turns: Floats) -> Floats:
        """(p, 4) unit quaternions for those of the bones (b, 4), whose signs have to be consistent."""
        from pliant.elastic.diffusion_kernels import blended

        return blended(self.start, self.bone, self.weight, np.ascontiguousarray(turns))

    def matrices(self, turns: Floats) -> Floats:
        """(p, 9) rotation matrices, row by row, for the quaternions of the bones (b, 4)."""
        from pliant.elastic.diffusion_kernels import blended_matrices

        return blended_matrices(self.start, self.bone, self.weight, np.ascontiguousarray(turns))


def bounded(table: Floats) -> Floats:
    """Weights (p, b) with the maximum principle restored: none below 0, none above 1, each row's sum 1."""
    positive = np.maximum(table, 0)
    positive /= positive.sum(axis=1, keepdims=True)
    positive[positive < LEAST] = 0
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def diffuse(K: Any, free: int, blend: Any) -> Floats:
    """(n, b) weights at the nodes: the free ones first, then the samples, whose weights `blend` (s, b) gives.

    K: sparse (n, n) with K_IJ = ∫ ∇φ_I·∇φ_J.
    """
    held = blend.toarray()
    K = K.tocsr()
    inner = factorize(K[:free, :free]).solve(-(K[:free, free:] @ held))
    return np.concatenate([bounded(inner), held])
