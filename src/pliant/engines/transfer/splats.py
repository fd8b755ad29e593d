"""Gaussian splats and normals that follow a deformation (files as of 3D Gaussian Splatting; Kerbl et al. 2023).

A splat is a point of a cloud with the attributes ``rot_0`` to ``rot_3`` (a quaternion w, x, y, z, of any length) and
``scale_0`` to ``scale_2`` (logarithms of the standard deviations along its axes). Its covariance is Σ = R S² Rᵀ. Where
space moves with the Jacobian J, it becomes

    Σ' = J Σ Jᵀ = R' S'² R'ᵀ,

whose axes R' are those nearest to J's rotation times R, so that they rotate smoothly from frame to frame. The
view-dependent colours (``f_rest_*``, spherical harmonics) rotate with J's rotation Q: the colour seen from d is that
which was seen from Qᵀd. Opacities and other attributes do not change.

A normal n becomes cof(J) n, with the cofactor matrix cof(J) = det(J) J⁻ᵀ, and stays orthogonal to the surface.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.normals import cofactors, unit
from pliant.core.shapes import Layer, Mesh, PointCloud, Shape
from pliant.core.topology import Floats
from pliant.core.validation import SINGLE_MAXIMUM
from pliant.core.values import locked

ROTATION_ATTRIBUTES = ("rot_0", "rot_1", "rot_2", "rot_3")
SCALE_ATTRIBUTES = ("scale_0", "scale_1", "scale_2")
FLAT_VARIANCE = 1e-30
"""Least variance of a splat, when it is flattened."""
LARGEST_SCALE = 300.0
"""Logarithm of a standard deviation whose square, and that of its inverse, are still numbers."""
COVARIANCE_ROUNDING = 1e-12
"""Covariance between two axes, relative to the total variance, that is rounding; it would rotate a round splat."""
HARMONICS_CHUNK = 20_000
"""Splats whose harmonics are rotated at a time."""


def is_splats(cloud: PointCloud) -> bool:
    """Whether a cloud has the attributes of Gaussian splats."""
    return set(ROTATION_ATTRIBUTES) <= set(cloud.attributes) and set(SCALE_ATTRIBUTES) <= set(cloud.attributes)


def splat_axes(cloud: PointCloud) -> tuple[Floats, Floats]:
    """(n, 3, 3) the splats' axes as columns, and (n, 3) their standard deviations along them."""
    if not is_splats(cloud):
        missing = [name for name in (*ROTATION_ATTRIBUTES, *SCALE_ATTRIBUTES) if name not in cloud.attributes]
        raise InputError(f"the cloud has no {missing[0]}; expected Gaussian splats with rot_0 to rot_3, scale_0 to 2")
    q = np.stack([cloud.attributes[name] for name in ROTATION_ATTRIBUTES], axis=1).astype(np.float64)
    log_s = np.stack([cloud.attributes[name] for name in SCALE_ATTRIBUTES], axis=1).astype(np.float64)
    for values, what, most in ((q, "rotation", SINGLE_MAXIMUM), (log_s, "scale", LARGEST_SCALE)):
        usable = (np.abs(values) <= most).all(axis=1)
        if not usable.all():
            k = int(np.argmin(usable))
            raise InputError(f"splat {k} has a {what} of {values[k].tolist()}; expected numbers up to {most:.3g}")
    return rotations.matrix(rotations.normalize(q)), np.exp(log_s)


def covariances(cloud: PointCloud) -> Floats:
    """(n, 3, 3) Σ = R S² Rᵀ."""
    R, s = splat_axes(cloud)
    return (R * (s**2)[:, None, :]) @ np.swapaxes(R, 1, 2)


def deformed_splats(cloud: PointCloud, points: Floats, J: Floats) -> PointCloud:
    """The splats at other points (n, 3), turned and stretched by Jacobians (n, 3, 3)."""
    R, s = splat_axes(cloud)
    Q = rotations.polar(J)
    axes, deviations = _principal(J @ R * s[:, None, :], Q @ R)
    q = rotations.quaternion(axes)
    made: dict[str, NDArray[np.generic]] = dict(cloud.attributes)
    made |= {name: _like(q[:, k], cloud.attributes[name]) for k, name in enumerate(ROTATION_ATTRIBUTES)}
    made |= {name: _like(np.log(deviations[:, k]), cloud.attributes[name]) for k, name in enumerate(SCALE_ATTRIBUTES)}
    made |= _rotated_harmonics(cloud, Q)
    indices = points.astype(np.float32).astype(np.float64)  # as splat files hold them; viewers read nothing else
    return replace(cloud.with_points(locked(indices)), attributes=made)


def _like(values: Floats, old: NDArray[np.generic]) -> NDArray[np.generic]:
    return locked(values.astype(old.dtype))


def _principal(M: Floats, near: Floats) -> tuple[Floats, Floats]:
    """Axes R' (n, 3, 3) and deviations (n, 3) of M Mᵀ, in the order, and with the signs, of the axes they are near."""
    local = np.swapaxes(near, 1, 2) @ M
    C = local @ np.swapaxes(local, 1, 2)
    small = np.abs(C) < COVARIANCE_ROUNDING * np.trace(C, axis1=1, axis2=2)[:, None, None]
    values, V = np.linalg.eigh(np.where(small & ~np.eye(3, dtype=bool), 0.0, C))
    orders = np.array(list(permutations(range(3))))
    fit = np.abs(V)[:, np.arange(3), orders].sum(axis=2)  # (n, 6): how well each order keeps the axes
    order = orders[np.argmax(fit, axis=1)]
    V = np.take_along_axis(V, order[:, None, :], axis=2)
    values = np.take_along_axis(values, order, axis=1)
    along = np.einsum("nii->ni", V)
    V = V * np.where(along < 0, -1.0, 1.0)[:, None, :]
    weakest = np.argmin(np.abs(along), axis=1)
    mirrored = np.linalg.det(V) < 0
    V[mirrored, :, weakest[mirrored]] *= -1
    return near @ V, np.sqrt(np.maximum(values, FLAT_VARIANCE))


# Spherical harmonics


def _rotated_harmonics(cloud: PointCloud, Q: Floats) -> dict[str, NDArray[np.generic]]:
    """The attributes f_rest_*, turned: three colours after one another, 3, 8 or 15 coefficients each."""
    names = [name for name in cloud.attributes if name.startswith("f_rest_")]
    names.sort(key=lambda name: int(name.removeprefix("f_rest_")) if name[7:].isdigit() else 0)
    degree = {9: 1, 24: 2, 45: 3}.get(len(names))
    if degree is None:
        if names:
            warn(
                f"the splats have {len(names)} coefficients f_rest_*, which are left as they are; expected 9, 24 or 45",
                PliantWarning,
                stacklevel=2,
            )
        return {}
    table = np.stack([cloud.attributes[name] for name in names], axis=1).astype(np.float64)
    coefficients = table.reshape(len(table), 3, -1)
    d = _directions()
    back = np.linalg.pinv(harmonics(d, degree))
    out = np.empty_like(coefficients)
    for start in range(0, len(Q), HARMONICS_CHUNK):
        part = slice(start, start + HARMONICS_CHUNK)
        seen = harmonics(np.einsum("nji,mj->nmi", Q[part], d), degree)
        out[part] = np.einsum("km,nmj,ncj->nck", back, seen, coefficients[part])
    flat = out.reshape(len(out), -1)
    return {name: _like(flat[:, k], cloud.attributes[name]) for k, name in enumerate(names)}


def _directions() -> Floats:
    """(32, 3) spread over the sphere; the harmonics are fitted exactly from their values there."""
    k = np.arange(32) + 0.5
    height, around = 1 - 2 * k / 32, np.pi * (1 + np.sqrt(5.0)) * k
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(around), across * np.sin(around), height], axis=1)


def harmonics(d: Floats, degree: int) -> Floats:
    """(..., 3, 8 or 15) real spherical harmonics from degree 1 on of directions (..., 3), in 3DGS's order and signs."""
    x, y, z = np.moveaxis(d, -1, 0)
    c1, c3 = np.sqrt(3 / (4 * np.pi)), np.sqrt(15 / (4 * np.pi))
    bands = [-c1 * y, c1 * z, -c1 * x]
    if degree > 1:
        bands += [
            c3 * x * y,
            -c3 * y * z,
            np.sqrt(5 / (16 * np.pi)) * (2 * z * z - x * x - y * y),
            -c3 * x * z,
            c3 / 2 * (x * x - y * y),
        ]
    if degree > 2:
        a, b, c = np.sqrt(35 / (32 * np.pi)), np.sqrt(105 / (4 * np.pi)), np.sqrt(21 / (32 * np.pi))
        bands += [
            -a * y * (3 * x * x - y * y),
            b * x * y * z,
            -c * y * (4 * z * z - x * x - y * y),
            np.sqrt(7 / (16 * np.pi)) * z * (2 * z * z - 3 * x * x - 3 * y * y),
            -c * x * (4 * z * z - x * x - y * y),
            b / 2 * z * (x * x - y * y),
            -a * x * (x * x - 3 * y * y),
        ]
    return np.stack(bands, axis=-1)


def deformed_shape(shape: Shape, points: Floats, J: Floats) -> Shape:
    """A shape at other points (n, 3), with Jacobians (n, 3, 3) there."""
    if isinstance(shape, Mesh) and shape.normals is not None:
        rotated = unit(np.einsum("nij,nj->ni", cofactors(J)[shape.polygons.corners], shape.normals.at_corners))
        layer = Layer(locked(rotated), locked(np.arange(len(rotated))))
        return replace(replace(shape, normals=None).with_points(points), normals=layer)
    if not isinstance(shape, PointCloud):
        return shape.with_points(points)
    cloud = deformed_splats(shape, points, J) if is_splats(shape) else shape.with_points(points)
    if shape.normals is None:
        return cloud
    return replace(cloud, normals=locked(unit(np.einsum("nij,nj->ni", cofactors(J), shape.normals))))
