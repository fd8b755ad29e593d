"""Hinges: the dihedral angles between neighbouring triangles, which bend from shape to shape.

Springs keep lengths, and directions in the mean over a neighbourhood; single edges may crease all the same. So every
edge between two triangles is a hinge whose angle is drawn to the blended one (discrete shells, Grinspun et al. 2003),

    E = ½ Σ_h κ_h (θ_h(x) - Σ_s w_s θ_hs)²,

with θ linearised about the guess, where J_h is its gradient: E is quadratic in x, and vanishes at every shape. The
stiffness is that of shells of one thickness (area over edge length), but no more than that of the springs along with
it, as between triangles without height. A hinge whose angle the guess misses by far is in a fold that cannot be had: as
in robust fitting, its weight is lower, so that its neighbours do not pay for it:

    κ_h = STIFFNESS · min(a_h, LIMIT k_h / |J_h|²) / (1 + (miss / SPREAD)²)².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.engines.blend import kernels

STIFFNESS = 2.0
"""Stiffness of a hinge, over that of the springs along its edge."""
LIMIT = 4.0
"""The same, at most."""
SPREAD = 0.6
"""Miss in radians from which on a hinge counts less."""


@dataclass(frozen=True, eq=False)
class LinearHinges:
    """Hinges linearised about a shape: the energy ``½ Σ k (Σ_c J_c · (x_c - x_a) - offset)²``."""

    corners: Ints
    """(h, 4) the edge a, b and the opposite vertices c, d."""
    lists: tuple[Ints, Ints]
    """The hinges of every vertex: from where to where (n + 1,), and 4 hinge + corner."""
    gradients: Floats
    """(h, 4, 3) J"""
    offsets: Floats
    """(h,)"""
    stiffness: Floats
    """(h,) κ"""


@dataclass(frozen=True, eq=False)
class Hinges:
    """The hinges of a surface."""

    corners: Ints
    """(h, 4) the edge a, b and the opposite vertices c, d."""
    lists: tuple[Ints, Ints]
    """See `LinearHinges`."""
    angles: Floats
    """(shapes, h) dihedral angles, within half a turn of the base's."""
    edge_stiffness: Floats
    """(h,) k: stiffness of a spring along the edge."""
    shell_stiffness: Floats
    """(h,) a: as of a shell, scaled to that of the springs."""

    def linear(self, x: Floats, weights: Floats) -> LinearHinges:
        """The hinges at these weights, linearised about x (n, 3)."""
        wanted = np.einsum("s,sh->h", weights, self.angles)
        J, offsets, misses = kernels.linear_hinges(x, self.corners, wanted)
        limit = LIMIT * _compliant(self.edge_stiffness, J)
        kappa = STIFFNESS * np.minimum(self.shell_stiffness, limit) / (1 + (misses / SPREAD) ** 2) ** 2
        return LinearHinges(self.corners, self.lists, J, offsets, kappa)


def make_hinges(points: Floats, triangles: Ints, scale: Floats, count: int, shortest: float) -> Hinges:
    """The hinges of triangles over shapes (s, n, 3), but for those with sides that are no longer than `shortest`.

    scale: (n,) factors on the stiffness. count: all vertices.
    """
    corners = hinge_corners(triangles)
    sides = corners[:, [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3]]]
    lengths = np.mean([np.linalg.norm(p[sides[:, :, 0]] - p[sides[:, :, 1]], axis=2) for p in points], axis=0)
    corners = corners[(lengths > shortest).all(axis=1)]
    angles = np.stack([kernels.hinge_angles(shape, corners) for shape in points])
    angles[1:] = angles[0] + np.remainder(angles[1:] - angles[0] + np.pi, 2 * np.pi) - np.pi
    a, b, c, d = (points[:, corners[:, corner]] for corner in range(4))
    length = bounded_lengths(np.linalg.norm(b - a, axis=2).mean(axis=0))
    area = sum(np.linalg.norm(np.cross(b - a, other - a), axis=2).mean(axis=0) for other in (c, d))
    factor = scale[corners[:, :2]].mean(axis=1)
    k, shell = factor / length, factor * area / length
    gradients = (kernels.linear_hinges(shape, corners, angle)[0] for shape, angle in zip(points, angles, strict=True))
    usual = np.mean([np.median(_compliant(k, J)) for J in gradients]) if len(corners) else 0.0
    shell *= usual / max(float(np.median(shell)) if len(corners) else 1.0, 1e-300)
    order = np.argsort(corners.ravel(), kind="stable")
    start = np.searchsorted(corners.ravel()[order], np.arange(count + 1))
    return Hinges(corners, (start, order), angles, k, shell)


def bounded_lengths(mean: Floats) -> Floats:
    """Lengths that stiffness is the inverse of: that of a nearly collapsed one would exceed all others together."""
    return np.maximum(mean, max(1e-3 * float(np.median(mean)), 1e-300)) if len(mean) else mean


def _compliant(k: Floats, J: Floats) -> Floats:
    """(h,) stiffness against a change of angle that moves the corners as springs of constant k would; 0 without one."""
    square = np.einsum("hck,hck->h", J, J)
    return np.divide(k, square, out=np.zeros_like(k), where=square > 0)


def hinge_corners(triangles: Ints) -> Ints:
    """(h, 4) for every edge between two triangles its ends a < b and the vertices opposite."""
    start, end, other = (
        triangles.ravel(),
        np.roll(triangles, -1, axis=1).ravel(),
        np.roll(triangles, -2, axis=1).ravel(),
    )
    low, high = np.minimum(start, end), np.maximum(start, end)
    key = low * (int(triangles.max(initial=0)) + 1) + high
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    a, b = order[first[count == 2]], order[first[count == 2] + 1]
    return np.stack([low[a], high[a], other[a], other[b]], axis=1)
