"""Gradients of a source made to fit the target: G = T S B (Section 3.1 of Chen et al. 2010).

B turns the target's rest into the source's reference pose, such as an arm that hangs into one that is stretched out; S
is the source's gradient; T turns the result, such as the whole body from where the source faces to where the target
does. Both are rotations, one of each for a control, the same in all frames. A source whose axes are not the target's,
``target = A source``, has B = Aᵀ and T = A.

`before_from` and `after_from` find them from two or more points on each side: the ends of a bone, the corners of a
shoulder. `bone_controls` does so for the bones of two skeletons.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant import rotations
from pliant.checks import as_points
from pliant.errors import InputError
from pliant.topology import Floats
from pliant.values import as_array, locked

ORTHOGONAL = 1e-4
"""How far from orthogonal a rotation matrix may be, entry by entry; files hold few digits."""
FLAT = 1e-6
"""Second extent of points, over the first, at which they are on a line and cannot tell a turn about it."""


def as_rotation(value: ArrayLike | None, what: str) -> Floats:
    """(3, 3) of a rotation matrix, a unit quaternion (w, x, y, z), or None for no turn."""
    if value is None:
        return locked(np.eye(3))
    array = as_array(value, what, np.float64)
    if array.shape == (4,) and np.isfinite(array).all() and np.linalg.norm(array) > 0:
        return locked(rotations.matrix(rotations.normalize(array)))
    if array.shape != (3, 3) or not np.isfinite(array).all():
        raise InputError(
            f"{what} has shape {array.shape}; expected a rotation matrix (3, 3) or a quaternion w, x, y, z"
        )
    if np.abs(array @ array.T - np.eye(3)).max() > ORTHOGONAL or np.linalg.det(array) < 0:
        raise InputError(f"{what} is no rotation: its columns are not at right angles, of length 1, and right-handed")
    return locked(rotations.polar(array))


def turn_between(start: ArrayLike, end: ArrayLike) -> Floats:
    """(3, 3) the rotation that turns points (n, 3) the way of others, wherever they are and whatever their size.

    Two points, or more on a line, tell a direction: the shortest turn. Three or more that are not tell all.
    """
    a, b = as_points(start, "points"), as_points(end, "points")
    if len(a) != len(b) or len(a) < 2:
        raise InputError(f"got {len(a)} and {len(b)} points; expected as many on each side, two or more")
    p, q = a - a.mean(axis=0), b - b.mean(axis=0)
    for points, side in ((p, "first"), (q, "second")):
        if not np.abs(points).max() > 0:
            raise InputError(f"the {side} points are all at one place; expected points that are apart")
    if min(_flatness(p), _flatness(q)) > FLAT:
        return locked(rotations.match_rigid(p / np.abs(p).max(), q / np.abs(q).max())[0])
    return locked(rotations.matrix(rotations.between(a[-1] - a[0], b[-1] - b[0])))


def _flatness(centred: Floats) -> float:
    extents = np.linalg.svd(centred, compute_uv=False)
    return float(extents[1] / extents[0])


def before_from(target: ArrayLike, source: ArrayLike) -> Floats:
    """B (3, 3), from points of the target at rest, and the same points of the source in its reference pose.

    Two on each side, such as the ends of a bone: (2, 3); or three and more that are not on a line.
    """
    return turn_between(target, source)


def after_from(source: ArrayLike, target: ArrayLike) -> Floats:
    """T (3, 3), from points of the source as it moves, and the same points of the target as they should be instead."""
    return turn_between(source, target)


def adapted(S: Floats, before: Any, after: Any, what: str) -> Floats:
    """(frames, 3, 3) G = T S B."""
    G: Floats = as_rotation(after, f"{what}: after") @ S @ as_rotation(before, f"{what}: before")
    return G
