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

from collections.abc import Callable
from dataclasses import replace
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.normals import cofactors, unit
from pliant.core.shapes import Layer, Mesh, PointCloud, Shape
from pliant.core.topology import Floats
from pliant.core.validation import SINGLE_MAXIMUM
from pliant.core.values import Buffers, locked
from pliant.native import in_blocks, kernels

ROTATION_ATTRIBUTES = ("rot_0", "rot_1", "rot_2", "rot_3")
SCALE_ATTRIBUTES = ("scale_0", "scale_1", "scale_2")
LARGEST_SCALE = 300.0
"""Logarithm of a standard deviation whose square, and that of its inverse, are still numbers."""
HARMONIC_DEGREES = {9: 1, 24: 2, 45: 3}
"""Of the harmonics, by how many coefficients f_rest_* there are."""
LEAST_LOG_THICKNESS = -34.0
"""Logarithm of the least deviation over a splat's largest."""
LANE_BYTES = 32
"""Of the numbers that splats.cpp computes at once."""
JACOBIAN_BLOCK = 1 << 13
"""Points whose Jacobians are asked for at a time: they stay in the cache until they are used."""
FillJacobians = Callable[[Floats, int], None]
"""Writes the Jacobians (m, 3, 3) of a block of points, or of some blocks, from the number of their first on."""


def is_splats(cloud: PointCloud) -> bool:
    """Whether a cloud has the attributes of Gaussian splats."""
    return set(ROTATION_ATTRIBUTES) <= set(cloud.attributes) and set(SCALE_ATTRIBUTES) <= set(cloud.attributes)


def splat_axes(cloud: PointCloud) -> tuple[Floats, Floats]:
    """(n, 3, 3) the splats' axes as columns, and (n, 3) their standard deviations along them."""
    q, log_s = _checked(cloud)
    return rotations.matrix(rotations.normalize(q)), np.exp(log_s)


def _checked(cloud: PointCloud) -> tuple[Floats, Floats]:
    """(n, 4) quaternions of any length, and (n, 3) logarithms of deviations."""
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
    return q, log_s


def covariances(cloud: PointCloud) -> Floats:
    """(n, 3, 3) Σ = R S² Rᵀ."""
    R, s = splat_axes(cloud)
    return (R * (s**2)[:, None, :]) @ np.swapaxes(R, 1, 2)


class Splats:
    """Splats of a cloud, read once, to be deformed again and again."""

    def __init__(self, cloud: PointCloud) -> None:
        self.cloud = cloud
        q, log_s = _checked(cloud)
        self._names = (*ROTATION_ATTRIBUTES, *SCALE_ATTRIBUTES, *_harmonic_names(cloud))
        single = all(cloud.attributes[name].dtype == np.float32 for name in self._names)
        self._deform = kernels.splats_deform_single if single else kernels.splats_deform_double
        self._type = np.float32 if single else np.float64
        self._buffers = Buffers()
        largest = log_s.max(axis=1)
        thickness = np.exp(np.maximum(log_s - largest[:, None], LEAST_LOG_THICKNESS))
        columns = [
            *rotations.normalize(q).T,
            *thickness.T,
            largest,
            *(cloud.attributes[name] for name in self._names[7:]),
        ]
        self._lanes = lanes = LANE_BYTES // np.dtype(self._type).itemsize
        groups = -(-len(q) // lanes)
        self._groups = np.zeros((groups, len(columns), lanes), self._type)
        self._groups[:, 0] = 1  # what fills the last group up is a splat, too
        full = len(q) // lanes
        for k, column in enumerate(columns):
            self._groups[:full, k] = column[: full * lanes].reshape(full, lanes)
            self._groups[full:, k, : len(q) - full * lanes] = column[full * lanes :]

    def deformed(self, points: Floats, jacobians: FillJacobians) -> PointCloud:
        """The splats at other points (n, 3), rotated and stretched by Jacobians."""
        cloud, n = self.cloud, len(self.cloud.points)
        rows = self._buffers.empty((len(self._names), n), self._type)

        def work(begin: int, end: int) -> None:
            J = np.empty((end - begin, 3, 3))
            jacobians(J, begin)
            groups = self._groups[begin // self._lanes : -(-end // self._lanes)]
            if not self._deform(groups, J.reshape(-1, 9), rows, begin):
                k = begin + int(np.argmin(np.isfinite(J).all(axis=(1, 2))))
                raise InputError(f"the Jacobian of splat {k} is not finite")

        in_blocks(work, n, JACOBIAN_BLOCK)
        made: dict[str, NDArray[np.generic]] = dict(cloud.attributes)
        for name, row in zip(self._names, rows, strict=True):
            made[name] = locked(row.astype(made[name].dtype, copy=False))
        positions = points.astype(np.float32).astype(np.float64)  # as splat files hold them; viewers read nothing else
        return replace(cloud, points=locked(positions), normals=None, attributes=made)


def deformed_splats(cloud: PointCloud, points: Floats, J: Floats) -> PointCloud:
    """The splats at other points (n, 3), rotated and stretched by Jacobians (n, 3, 3)."""
    n = len(cloud.points)
    if points.shape != (n, 3) or J.shape != (n, 3, 3):
        raise InputError(f"points have shape {points.shape}, Jacobians {J.shape}; expected ({n}, 3), ({n}, 3, 3)")

    def given(out: Floats, begin: int) -> None:
        out[:] = J[begin : begin + len(out)]

    return Splats(cloud).deformed(points, given)


def all_jacobians(jacobians: FillJacobians, out: Floats) -> Floats:
    """(n, 3, 3) those of all points, written to `out`."""
    in_blocks(lambda a, b: jacobians(out[a:b], a), len(out), JACOBIAN_BLOCK)
    return out


# Spherical harmonics


def _harmonic_names(cloud: PointCloud) -> list[str]:
    """The attributes f_rest_* in order: three colours after one another, 3, 8 or 15 coefficients each; or none."""
    names = [name for name in cloud.attributes if name.startswith("f_rest_")]
    names.sort(key=lambda name: int(name.removeprefix("f_rest_")) if name[7:].isdigit() else 0)
    if names and len(names) not in HARMONIC_DEGREES:
        warn(
            f"the splats have {len(names)} coefficients f_rest_*, which are left as they are; expected 9, 24 or 45",
            PliantWarning,
            stacklevel=2,
        )
        return []
    return names


def harmonics(d: Floats, degree: int) -> Floats:
    """(n, 3, 8 or 15) real spherical harmonics from degree 1 on of directions (n, 3), in 3DGS's order and signs."""
    values = np.empty((len(d), (degree + 1) ** 2 - 1))
    kernels.splats_harmonics(d, degree, values)
    return values


class ShapeDeformer:
    """A shape, read once, to be deformed again and again with its normals or splats."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._splats = Splats(shape) if isinstance(shape, PointCloud) and is_splats(shape) else None

    def deformed(self, points: Floats, jacobians: FillJacobians) -> Shape:
        """The shape at other points (n, 3), with Jacobians there."""
        shape = self.shape
        if isinstance(shape, Mesh) and shape.normals is not None:
            J = all_jacobians(jacobians, np.empty((len(points), 3, 3)))
            rotated = unit(np.einsum("nij,nj->ni", cofactors(J)[shape.polygons.corners], shape.normals.at_corners))
            layer = Layer(locked(rotated), locked(np.arange(len(rotated))))
            return replace(replace(shape, normals=None).with_points(points), normals=layer)
        if not isinstance(shape, PointCloud):
            return shape.with_points(points)
        cloud = shape.with_points(points) if self._splats is None else self._splats.deformed(points, jacobians)
        if shape.normals is None:
            return cloud
        J = all_jacobians(jacobians, np.empty((len(points), 3, 3)))
        return replace(cloud, normals=locked(unit(np.einsum("nij,nj->ni", cofactors(J), shape.normals))))
