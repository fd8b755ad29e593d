"""Validated rotations from user input, and the rotation that aligns two sets of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.validation import as_points
from pliant.core.values import as_array, locked

ORTHOGONALITY_TOLERANCE = 1e-4
"""How far from orthogonal a rotation matrix may be, entry by entry; files hold few digits."""
COLLINEAR = 1e-6
"""Second extent of points, over the first, below which they lie on a line; the rotation about it is then arbitrary."""


def as_rotation(value: ArrayLike | None, what: str) -> Floats:
    """(3, 3) of a rotation matrix, a unit quaternion (w, x, y, z), or None for the identity."""
    if value is None:
        return locked(np.eye(3))
    array = as_array(value, what, np.float64)
    if array.shape == (4,) and np.isfinite(array).all() and np.linalg.norm(array) > 0:
        return locked(rotations.matrix(rotations.normalize(array)))
    if array.shape != (3, 3) or not np.isfinite(array).all():
        raise InputError(
            f"{what} has shape {array.shape}; expected a rotation matrix (3, 3) or a quaternion w, x, y, z"
        )
    if np.abs(array @ array.T - np.eye(3)).max() > ORTHOGONALITY_TOLERANCE or np.linalg.det(array) < 0:
        raise InputError(f"{what} is no rotation: its columns are not at right angles, of length 1, and right-handed")
    return locked(rotations.polar(array))


def aligning_rotation(start: ArrayLike, end: ArrayLike) -> Floats:
    """(3, 3) the rotation that aligns points (n, 3) with others, whatever their position and size.

    Two points, or more on a line, give a direction, and so the smallest rotation; three or more that are not collinear
    determine it fully.
    """
    a, b = as_points(start, "points"), as_points(end, "points")
    if len(a) != len(b) or len(a) < 2:
        raise InputError(f"got {len(a)} and {len(b)} points; expected as many on each side, two or more")
    p, q = a - a.mean(axis=0), b - b.mean(axis=0)
    for points, side in ((p, "first"), (q, "second")):
        if not np.abs(points).max() > 0:
            raise InputError(f"the {side} points are all at one place; expected points that are apart")
    if min(_flatness(p), _flatness(q)) > COLLINEAR:
        return locked(rotations.match_rigid(p / np.abs(p).max(), q / np.abs(q).max())[0])
    return locked(rotations.matrix(rotations.between(a[-1] - a[0], b[-1] - b[0])))


def _flatness(centred: Floats) -> float:
    extents = np.linalg.svd(centred, compute_uv=False)
    return float(extents[1] / extents[0])
