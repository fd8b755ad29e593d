"""Initial guess of a frame: the cage of the last frame, rotated with its gradient controls.

From the last frame to this one, gradient control k rotates by ``R_k = polar(G_k) polar(∇F_k)ᵀ``. These rotations are
interpolated smoothly over the cage, ``(L + α ΦᵀΦ) Q = α Φᵀ R``, with the Laplacian L of its edges and the coordinates Φ
of the controls, and projected to rotations. Then every edge e = v_i − v_j has the target ``(Q_i + Q_j) e / 2``, met in
the least-squares sense by one solve with L (as-rigid-as-possible; Sorkine and Alexa 2007). Where limbs rotate far in
one frame, this is much nearer to the solution than the last frame, from which straight steps would stretch the limbs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.rotations import polar
from pliant.core.topology import Floats, Ints, unique_pairs
from pliant.core.values import Value
from pliant.engines.transfer.energies import Basis

CONTROL_WEIGHT = 1000.0
"""α: weight of the controls' rotations relative to smoothness."""
REGULARISATION = 1e-6
"""Added to the diagonal of L: parts of a cage without a control stay as they are."""


@dataclass(frozen=True, eq=False)
class RotationGuess(Value):
    """How a cage rotates with its gradient controls."""

    edges: Ints
    """(e, 2)"""
    weights: Floats
    """(e,)"""
    spread: Floats
    """(c, k) weights of the controls' rotations at each vertex"""
    inverse: Floats
    """(c, c) of L"""

    @classmethod
    def of(cls, basis: Basis, phi: Floats) -> RotationGuess:
        """phi: (k, c) coordinates of the gradient controls."""
        points, triangles = basis.cage.points, basis.cage.triangles
        edges = unique_pairs(np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]), len(points))
        long = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
        weights = np.median(long) / long
        L = np.zeros((len(points), len(points)))
        L[edges[:, 0], edges[:, 1]] = L[edges[:, 1], edges[:, 0]] = -weights
        L[np.diag_indices_from(L)] = REGULARISATION - L.sum(axis=1)
        shares = np.maximum(phi, 0)
        shares = shares / shares.sum(axis=1, keepdims=True)
        spread = np.linalg.solve(L + CONTROL_WEIGHT * shares.T @ shares, CONTROL_WEIGHT * shares.T)
        return cls(edges, weights, spread, np.linalg.inv(L).astype(np.float64))

    def rotated(self, points: Floats, rotations: Floats) -> Floats:
        """Cage vertices (c, 3) if the controls rotate by (k, 3, 3), up to a translation."""
        Q = np.einsum("ck,kij->cij", self.spread, rotations)
        Q = polar(Q + REGULARISATION * np.eye(3))
        i, j = self.edges.T
        wanted = self.weights[:, None] * np.einsum("eij,ej->ei", 0.5 * (Q[i] + Q[j]), points[i] - points[j])
        sums = REGULARISATION * points
        np.add.at(sums, i, wanted)
        np.add.at(sums, j, -wanted)
        out: Floats = self.inverse @ sums
        return out
