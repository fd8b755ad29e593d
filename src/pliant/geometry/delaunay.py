"""The Delaunay tetrahedralisation of points; of those in general position in a quarter of the time that Qhull takes."""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.native import kernels

TETS_PER_POINT = 8
"""Room for a first try: points in space have about 6.8."""


def delaunay(points: Floats) -> Ints | None:
    """(t, 4) tetrahedra over the convex hull of points (n, 3), oriented; None where points coincide or all are flat.

    Points count as rounded to 2^-50 of their range: those thinner than that may be inverted in the points as given.
    """
    tets = np.empty((TETS_PER_POINT * len(points), 4), np.int64)
    count = kernels.delaunay(points, tets)
    if count > len(tets):
        tets = np.empty((count, 4), np.int64)
        kernels.delaunay(points, tets)
    return None if count < 0 else tets[:count]
