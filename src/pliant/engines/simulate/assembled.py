"""The warpings that are kept to compare with, by assembled matrices that are factorised anew for every pose and step.

They are the paper's Eq. (11) and Müller's form with one rotation a node; see `pliant.engines.simulate.warping`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.options import Warping
from pliant.engines.simulate.warping import node_system
from pliant.numerics.linalg import Kind, factorize


def solve_assembled(
    K: Any,
    X: Floats,
    R: Floats,
    warping: Warping,
    x: Floats,
    load: Floats,
    mass: Floats,
    stiffness: float,
    *,
    before: tuple[Floats, float] | None = None,
) -> Floats:
    """(n, 3) nodes with ``mass x + stiffness (A x - b) = load`` at the free ones; x holds the places of the others.

    load: (free, 3), mass: (free,). R: (n, 3, 3) rotations at the nodes. before: places (n, 3) whose forces are added to
    the load, times a number: where Rayleigh's damping is measured from.
    """
    from scipy.sparse import diags

    free = 3 * len(load)
    A, b = node_system(K, X, R, warping)
    fixed = np.where(np.arange(x.size) < free, 0, x.ravel())
    right = load.ravel() + stiffness * (b - A @ fixed)[:free]
    if before is not None:
        right += before[1] * (A @ before[0].ravel() - b)[:free]
    matrix = stiffness * A[:free, :free] + diags(np.repeat(mass, 3))
    kind: Kind = "definite" if warping == "paper" else "general"
    out = x.copy()
    out.ravel()[:free] = factorize(matrix, kind=kind, check=False).solve(right)
    return out
