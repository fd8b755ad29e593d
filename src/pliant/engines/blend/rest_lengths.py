"""What the springs of a network strive for: at given weights (`Rest`), and once a load acts (`Flesh`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.blend.springs import Springs


@dataclass(frozen=True, eq=False)
class Rest:
    """What the springs of a network strive for."""

    lengths: Floats
    """(q,)"""
    directions: Floats
    """(q, 3) unit vectors; (0, 3) if `memory` is 0."""
    memory: float = 0.0
    """μ: how strongly a spring keeps its direction, over how strongly it keeps its length."""


NO_DIRECTIONS = np.zeros((0, 3))


@dataclass(frozen=True, eq=False)
class Flesh:
    """What the springs strive for when a load acts: the shape they have without it, however its pieces turn.

        E(x) = ½ Σ_q k_q [(l - r)² + ½ μ (|d - R_i v|² + |d - R_j v|²)],    R_i the rotation at vertex i that is best,

    v the springs' vectors in the unloaded shape and r their lengths. That shape has no energy and no force, so the
    smallest load starts from it; and since each R_i is where E is least, the gradient may take them for fixed.
    """

    vectors: Floats
    """(q, 3)"""
    lengths: Floats
    """(q,)"""
    memory: float
    """μ"""
    turns: Floats
    """(n, 3, 3) the rotations R that were found last: where the search for the next ones starts."""

    @classmethod
    def of(cls, free: Floats, springs: Springs, memory: float) -> Flesh:
        """Of the unloaded shape (n, 3)."""
        vectors = free[springs.edges[:, 0]] - free[springs.edges[:, 1]]
        return cls(vectors, np.linalg.norm(vectors, axis=1), memory, np.tile(np.eye(3), (len(free), 1, 1)))
