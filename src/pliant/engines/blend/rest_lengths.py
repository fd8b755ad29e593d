"""Rest lengths and directions of springs: blended by the weights (`Rest`), or of a free shape under load
(`CorotatedRest`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.blend.springs import Springs


@dataclass(frozen=True, eq=False)
class Rest:
    """Rest lengths and directions at given weights: the springs' energy is zero where both are met."""

    lengths: Floats
    """(q,)"""
    directions: Floats
    """(q, 3) unit vectors p; (0, 3) if `direction_stiffness` is 0."""
    direction_stiffness: float = 0.0
    """μ: stiffness against a change of direction, relative to that against a change of length."""


NO_DIRECTIONS = np.zeros((0, 3))


@dataclass(frozen=True, eq=False)
class CorotatedRest:
    """The shape without load as rest state, up to a rotation R_i of each vertex (corotated, as in ARAP).

        E(x) = ½ Σ_q k_q [(l - r)² + ½ μ (|d - R_i v|² + |d - R_j v|²)],    R_i = argmin E

    v are the springs' vectors in the shape without load and r their lengths. Energy and forces vanish there, so the
    deformation goes to zero with the load. As each R_i minimises E, the gradient can treat the R_i as constants.
    """

    vectors: Floats
    """(q, 3)"""
    lengths: Floats
    """(q,)"""
    direction_stiffness: float
    """μ"""
    rotations: Floats
    """(n, 3, 3) the rotations R found last: the warm start for the next ones."""

    @classmethod
    def of(cls, free: Floats, springs: Springs, direction_stiffness: float) -> CorotatedRest:
        """From the shape without load (n, 3)."""
        vectors = free[springs.edges[:, 0]] - free[springs.edges[:, 1]]
        return cls(vectors, np.linalg.norm(vectors, axis=1), direction_stiffness, np.tile(np.eye(3), (len(free), 1, 1)))
