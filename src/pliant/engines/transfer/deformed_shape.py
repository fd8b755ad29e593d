"""Normals and Gaussian splats of a deformed shape, transformed by the Jacobians of the deformation.

A normal n becomes cof(J) n, with the cofactor matrix cof(J) = det(J) J⁻ᵀ, and stays orthogonal to the surface. A
splat's covariance becomes J Σ Jᵀ (`pliant.engines.transfer.splats`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.normals import cofactors, unit
from pliant.core.shapes import Layer, Mesh, PointCloud, Shape
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.transfer.splats import deformed_splats, is_splats


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
