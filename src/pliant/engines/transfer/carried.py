"""What a shape carries besides its points, turned by the Jacobians of a deformation.

A normal n becomes cof(J) n, where cof(J) has the columns' cross products; so it stays at right angles to what it was at
right angles to. A Gaussian splat's covariance becomes J Σ Jᵀ (`pliant.engines.transfer.splats`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.normals import cofactors, unit
from pliant.core.shapes import Layer, Mesh, PointCloud, Shape
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.transfer.splats import carried_splats, is_splats


def carried_shape(shape: Shape, points: Floats, J: Floats) -> Shape:
    """A shape at other points (n, 3), with Jacobians (n, 3, 3) there."""
    if isinstance(shape, Mesh) and shape.normals is not None:
        turned = unit(np.einsum("nij,nj->ni", cofactors(J)[shape.polygons.corners], shape.normals.at_corners))
        layer = Layer(locked(turned), locked(np.arange(len(turned))))
        return replace(replace(shape, normals=None).with_points(points), normals=layer)
    if not isinstance(shape, PointCloud):
        return shape.with_points(points)
    cloud = carried_splats(shape, points, J) if is_splats(shape) else shape.with_points(points)
    if shape.normals is None:
        return cloud
    return replace(cloud, normals=locked(unit(np.einsum("nij,nj->ni", cofactors(J), shape.normals))))
