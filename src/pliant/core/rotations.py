"""Rotations: unit quaternions ``(w, x, y, z)`` and 3×3 matrices, batch axes leading.

A quaternion q rotates a column vector v to ``R v`` with ``R = matrix(q)``; ``multiply(p, q)`` rotates by q first, then
by p. q and -q are the same rotation; functions that interpolate say which of the two they mean.

    R = U diag(1, 1, det(U Vᵀ)) Vᵀ   for  F = U Σ Vᵀ       the rotation nearest to F      `polar`
    q = exp(v / 2)                   v = axis · angle      `exp`, `log`
    exp(Σ w_k log q_k)                                     `blend`
    argmin_R,t Σ m_i |R p_i + t - q_i|²                    `match_rigid`
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.normals import cross
from pliant.core.topology import Floats
from pliant.core.validation import as_points
from pliant.core.values import as_array, locked

IDENTITY = locked(np.array([1.0, 0.0, 0.0, 0.0]))
_UNIT_ERROR = 8 * np.finfo(float).eps  # of a squared length, as rounding leaves it


def _quaternions(q: ArrayLike) -> Floats:
    array = as_array(q, "quaternions", np.float64)
    if array.ndim == 0 or array.shape[-1] != 4:
        raise InputError(f"quaternions have shape {array.shape}; expected (..., 4) as w, x, y, z")
    return array


def _vectors(v: ArrayLike) -> Floats:
    array = as_array(v, "vectors", np.float64)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise InputError(f"vectors have shape {array.shape}; expected (..., 3)")
    return array


def _matrices(m: ArrayLike) -> Floats:
    array = as_array(m, "matrices", np.float64)
    if array.ndim < 2 or array.shape[-2:] != (3, 3):
        raise InputError(f"matrices have shape {array.shape}; expected (..., 3, 3)")
    return array


def normalize(q: ArrayLike) -> Floats:
    """Quaternions scaled to unit length; a zero quaternion becomes the identity, one of unit length stays as it is."""
    q = _quaternions(q)
    largest = np.abs(q).max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        raise InputError("quaternions hold NaN or infinite values; expected finite w, x, y, z")
    scaled = np.where(largest > 0, q / np.where(largest > 0, largest, 1), IDENTITY)  # so that no square overflows
    with np.errstate(over="ignore"):
        unit = np.abs(np.square(q).sum(axis=-1, keepdims=True) - 1) <= _UNIT_ERROR
    return np.where(unit, q, scaled / np.linalg.norm(scaled, axis=-1, keepdims=True))


def multiply(p: ArrayLike, q: ArrayLike) -> Floats:
    """The product p q: rotate by q, then by p."""
    p, q = _quaternions(p), _quaternions(q)
    pw, px, py, pz = (p[..., k] for k in range(4))
    qw, qx, qy, qz = (q[..., k] for k in range(4))
    pq = np.empty(np.broadcast(p, q).shape)
    pq[..., 0] = pw * qw - px * qx - py * qy - pz * qz
    pq[..., 1] = pw * qx + px * qw + py * qz - pz * qy
    pq[..., 2] = pw * qy - px * qz + py * qw + pz * qx
    pq[..., 3] = pw * qz + px * qy - py * qx + pz * qw
    return pq


def inverse(q: ArrayLike) -> Floats:
    """The inverse rotation of a unit quaternion."""
    return _quaternions(q) * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: ArrayLike, v: ArrayLike) -> Floats:
    """Vectors v rotated by unit quaternions q (batch axes broadcast)."""
    q, v = _quaternions(q), _vectors(v)
    axis = q[..., 1:]
    twice = 2 * cross(axis, v)
    return v + q[..., :1] * twice + cross(axis, twice)


def matrix(q: ArrayLike) -> Floats:
    """(..., 3, 3) rotation matrices of unit quaternions."""
    q = _quaternions(q)
    w, x, y, z = (q[..., k] for k in range(4))
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion(R: ArrayLike) -> Floats:
    """(..., 4) unit quaternions of rotation matrices, with w >= 0.

    All four of the classical formulas are evaluated and the one with the largest pivot is taken (Shepperd's method).
    """
    R = _matrices(R)
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    wx, wy, wz = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    candidates = np.stack(
        [
            np.stack([1 + a + b + c, wx, wy, wz], axis=-1),
            np.stack([wx, 1 + a - b - c, xy, xz], axis=-1),
            np.stack([wy, xy, 1 - a + b - c, yz], axis=-1),
            np.stack([wz, xz, yz, 1 - a - b + c], axis=-1),
        ],
        axis=-2,
    )
    pivot = np.argmax(np.stack([candidates[..., k, k] for k in range(4)], axis=-1), axis=-1)
    q = np.take_along_axis(candidates, pivot[..., None, None], axis=-2)[..., 0, :]
    return normalize(np.where(q[..., :1] < 0, -q, q))


def exp(v: ArrayLike) -> Floats:
    """Unit quaternions of rotation vectors (axis times angle in radians)."""
    v = _vectors(v)
    half = np.linalg.norm(v, axis=-1, keepdims=True) / 2
    return np.concatenate([np.cos(half), v * np.sinc(half / np.pi) / 2], axis=-1)


def log(q: ArrayLike) -> Floats:
    """Rotation vectors (axis times angle, angle in [0, 2π]) of unit quaternions.

    The sign of q counts: q with w < 0 is a rotation by more than 180°, and (-1, 0, 0, 0) a full one, about x. Use
    ``log(shortest(q))`` for the shorter rotation.
    """
    q = _quaternions(q)
    cosine, sine = q[..., :1], np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    small = sine < 1e-150
    scale = np.where(small, 2, 2 * np.arctan2(sine, cosine) / np.where(small, 1, sine))
    return np.where(small & (cosine < 0), 2 * np.pi * np.array([1.0, 0.0, 0.0]), q[..., 1:] * scale)


def shortest(q: ArrayLike) -> Floats:
    """Of q and -q, the one with w >= 0: a rotation by at most 180°."""
    q = _quaternions(q)
    return np.where(q[..., :1] < 0, -q, q)


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Floats:
    """Unit quaternions that rotate by `angle` radians about `axis` (any length but zero)."""
    axis = _vectors(axis)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    if not ((length > 0) & np.isfinite(length)).all():
        raise InputError("a rotation axis is zero or not finite; expected a direction")
    return exp(axis / length * np.asarray(angle, dtype=np.float64)[..., None])


def from_euler(angles: ArrayLike, order: str) -> Floats:
    """Unit quaternions of Euler angles in radians (..., k), about the axes named in `order`, as BVH means them.

    ``order="ZXY"`` with angles (a, b, c) is ``Rz(a) Rx(b) Ry(c)``: the last-named rotation acts first.
    """
    angles = np.asarray(angles, dtype=np.float64)
    if angles.ndim == 0 or angles.shape[-1] != len(order) or not set(order) <= set("XYZ"):
        raise InputError(f'angles have shape {angles.shape} for order "{order}"; expected one for each of X, Y, Z')
    q = np.broadcast_to(IDENTITY, (*angles.shape[:-1], 4))
    for k, name in enumerate(order):
        q = multiply(q, from_axis_angle(np.eye(3)["XYZ".index(name)], angles[..., k]))
    return q


def to_euler(q: ArrayLike, order: str) -> Floats:
    """Euler angles in radians (..., 3), order a permutation of XYZ: ``from_euler(to_euler(q, order), order) == ±q``."""
    if sorted(order) != ["X", "Y", "Z"]:
        raise InputError(f'order is "{order}"; expected a permutation of XYZ')
    i, j, k = ("XYZ".index(name) for name in order)
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    R = matrix(q)
    middle = np.arctan2(sign * R[..., i, k], np.hypot(R[..., i, i], R[..., i, j]))
    locked = np.hypot(R[..., j, k], R[..., k, k]) < 1e-10  # gimbal lock: the first angle takes it all
    first = np.where(
        locked,
        np.arctan2(sign * R[..., k, j], R[..., j, j]),
        np.arctan2(-sign * R[..., j, k], R[..., k, k]),
    )
    c, s = np.cos(first)[..., None], sign * np.sin(first)[..., None]
    rest = c * R[..., j, :] + s * R[..., k, :]  # row j after undoing the first rotation
    last = np.arctan2(sign * rest[..., i], rest[..., j])
    return np.stack([first, middle, last], axis=-1)


def between(start: ArrayLike, end: ArrayLike) -> Floats:
    """(..., 4) the smallest rotations that take directions to others (batch axes broadcast).

    For opposite ones that is 180° about some perpendicular axis; where either vanishes, the identity.
    """
    a, b = np.broadcast_arrays(_vectors(start), _vectors(end))
    a, b = (v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300) for v in (a, b))
    cosine = np.sum(a * b, axis=-1, keepdims=True)
    across = np.cross(a, np.eye(3)[np.argmin(np.abs(a), axis=-1)])
    half = np.concatenate([1 + cosine, np.cross(a, b)], axis=-1)
    half = np.where(cosine < -1 + 1e-12, np.concatenate([0 * cosine, across], axis=-1), half)
    known = a.any(axis=-1, keepdims=True) & b.any(axis=-1, keepdims=True)
    return normalize(np.where(known, half, IDENTITY))


def slerp(p: ArrayLike, q: ArrayLike, t: ArrayLike) -> Floats:
    """From p (t = 0) to q (t = 1) along the shorter arc, at constant speed."""
    p, q = _quaternions(p), _quaternions(q)
    step = log(shortest(multiply(inverse(p), q)))
    return multiply(p, exp(step * np.asarray(t, dtype=np.float64)[..., None]))


def align_signs(q: ArrayLike, reference: ArrayLike) -> Floats:
    """Of q and -q, the one nearer to `reference`."""
    q = _quaternions(q)
    return np.where(np.sum(q * _quaternions(reference), axis=-1, keepdims=True) < 0, -q, q)


def blend(q: ArrayLike, weights: ArrayLike) -> Floats:
    """``exp(Σ w_k log q_k)`` over the second-last axis of q (..., k, 4); the signs of q count, as in `log`."""
    w, v = np.asarray(weights, dtype=np.float64), log(q)
    if v.ndim < 2 or w.ndim < 1 or w.shape[-1] != v.shape[-2]:
        raise InputError(f"weights have shape {w.shape} for quaternions of shape {np.shape(q)}; expected one for each")
    return exp(np.einsum("...k,...ki->...i", w, v))


def polar(F: ArrayLike) -> Floats:
    """The rotations nearest to the matrices F (..., 3, 3), never reflections."""
    F = _matrices(F)
    finite = np.isfinite(F).all(axis=(-2, -1))
    if not finite.all():
        raise InputError(f"matrix {int(np.argmin(finite))} of {finite.size} is not finite; it has no nearest rotation")
    U, _, Vt = np.linalg.svd(F)
    flip = np.linalg.det(U) * np.linalg.det(Vt) < 0
    U[..., :, 2] = np.where(flip[..., None], -U[..., :, 2], U[..., :, 2])
    return np.asarray(U @ Vt)


def match_rigid(points: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """The rotation R (..., 3, 3) and translation t (..., 3) that bring points (..., n, 3) nearest to targets."""
    p, q = _vectors(points), _vectors(targets)
    if p.shape[-2:] != q.shape[-2:] or p.ndim < 2:
        raise InputError(f"points have shape {p.shape} and targets {q.shape}; expected the same (..., n, 3)")
    if not p.shape[-2]:
        raise InputError("got 0 points to match; expected one or more")
    if not (np.isfinite(p).all() and np.isfinite(q).all()):
        raise InputError("some points or targets to match are not finite")
    w = np.ones(p.shape[-2]) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape[-1:] != p.shape[-2:-1] or (w < 0).any() or not (w.sum(-1) > 0).all():
        raise InputError(f"weights have shape {w.shape}; expected {p.shape[-2]} that are >= 0 and not all 0")
    w = (w / w.sum(-1, keepdims=True))[..., None]
    centre_p, centre_q = (w * p).sum(-2, keepdims=True), (w * q).sum(-2, keepdims=True)
    R = polar(np.swapaxes(q - centre_q, -1, -2) @ (w * (p - centre_p)))
    return R, (centre_q - centre_p @ np.swapaxes(R, -1, -2))[..., 0, :]


ORTHOGONALITY_TOLERANCE = 1e-4
"""How far from orthogonal a rotation matrix may be, entry by entry; files hold few digits."""
COLLINEAR = 1e-6
"""Second extent of points, over the first, below which they lie on a line; the rotation about it is then arbitrary."""


def as_rotation(value: ArrayLike | None, what: str, *, mirrored: bool = False) -> Floats:
    """(3, 3) of a rotation matrix, a unit quaternion (w, x, y, z), or None for the identity.

    mirrored: whether it may be left-handed.
    """
    if value is None:
        return locked(np.eye(3))
    array = as_array(value, what, np.float64)
    if array.shape == (4,) and np.isfinite(array).all() and np.linalg.norm(array) > 0:
        return locked(rotations.matrix(rotations.normalize(array)))
    if array.shape != (3, 3) or not np.isfinite(array).all():
        raise InputError(
            f"{what} has shape {array.shape}; expected a rotation matrix (3, 3) or a quaternion w, x, y, z"
        )
    left_handed = np.linalg.det(array) < 0
    if np.abs(array @ array.T - np.eye(3)).max() > ORTHOGONALITY_TOLERANCE or (left_handed and not mirrored):
        raise InputError(f"{what} is no rotation: its columns are not at right angles, of length 1, and right-handed")
    hand = np.array([1.0, 1.0, -1.0 if left_handed else 1.0])
    return locked(rotations.polar(array * hand) * hand)


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
            raise InputError(f"the {side} points are all at one position; expected points that are apart")
    if min(_flatness(p), _flatness(q)) > COLLINEAR:
        return locked(rotations.match_rigid(p / np.abs(p).max(), q / np.abs(q).max())[0])
    return locked(rotations.matrix(rotations.between(a[-1] - a[0], b[-1] - b[0])))


def _flatness(centred: Floats) -> float:
    extents = np.linalg.svd(centred, compute_uv=False)
    return float(extents[1] / extents[0])


def axis_rotations() -> Floats:
    """(24, 3, 3) all rotations that map axes to axes, the identity first."""
    signed = (np.eye(3)[list(order)] * signs for order in permutations(range(3)) for signs in _SIGNS)
    return np.array([matrix for matrix in signed if np.linalg.det(matrix) > 0])


_SIGNS = [np.array(signs)[:, None] for signs in product((1.0, -1.0), repeat=3)]
