"""A first guess at a frame: the cage of the last one, turned along with its controls.

From the last frame to this one, the place of gradient control k is to turn by ``R_k = polar(G_k) polar(∇F_k)ᵀ``. Over
the cage, these turns are spread as smoothly as its edges allow, ``(L + α ΦᵀΦ) Q = α Φᵀ R``, with the Laplacian L of its
edges and the coordinates Φ of the controls, and made rotations again. Then every edge e = v_i − v_j wants to become
``(Q_i + Q_j) e / 2``, which one solve with L grants as well as can be (as-rigid-as-possible; Sorkine and Alexa 2007).
Where limbs turn far in a frame, that is much nearer to the solution than the last frame is: straight steps from there
would stretch the limbs first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.rotations import polar
from pliant.core.topology import Floats, Ints, unique_pairs
from pliant.core.values import Value
from pliant.engines.transfer.energies import Basis

HOLD = 1000.0
"""α: how much the controls' turns count beside smoothness."""
TRACE = 1e-6
"""Added to L, over its mean: parts of a cage that no edge joins stay where they are, and as they are."""


@dataclass(frozen=True, eq=False)
class Turning(Value):
    """How a cage turns with its gradient controls."""

    edges: Ints
    """(e, 2)"""
    weights: Floats
    """(e,)"""
    spread: Floats
    """(c, k) shares of the controls' turns at each vertex"""
    inverse: Floats
    """(c, c) of L"""

    @classmethod
    def of(cls, basis: Basis, phi: Floats) -> Turning:
        """phi: (k, c) coordinates of the gradient controls."""
        points, triangles = basis.cage.points, basis.cage.triangles
        edges = unique_pairs(np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]), len(points))
        long = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
        weights = np.median(long) / long
        L = np.zeros((len(points), len(points)))
        L[edges[:, 0], edges[:, 1]] = L[edges[:, 1], edges[:, 0]] = -weights
        L[np.diag_indices_from(L)] = TRACE - L.sum(axis=1)
        shares = np.maximum(phi, 0)
        shares = shares / shares.sum(axis=1, keepdims=True)
        spread = np.linalg.solve(L + HOLD * shares.T @ shares, HOLD * shares.T)
        return cls(edges, weights, spread, np.linalg.inv(L).astype(np.float64))

    def turned(self, points: Floats, turns: Floats) -> Floats:
        """Cage vertices (c, 3) where the controls turn by (k, 3, 3); where all of it is, is not said."""
        Q = np.einsum("ck,kij->cij", self.spread, turns)
        Q = polar(Q + TRACE * np.eye(3))
        i, j = self.edges.T
        wanted = self.weights[:, None] * np.einsum("eij,ej->ei", 0.5 * (Q[i] + Q[j]), points[i] - points[j])
        sums = TRACE * points
        np.add.at(sums, i, wanted)
        np.add.at(sums, j, -wanted)
        out: Floats = self.inverse @ sums
        return out
