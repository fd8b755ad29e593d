"""Mean value coordinates in closed triangle meshes (Ju, Schaefer, Warren 2005), robust: to compare Green's with.

Each triangle of the cage is seen from p as a spherical triangle; with the unit vectors u_l to its corners, the arcs θ_l
opposite them, ``h = Σ θ / 2`` and

    c_l = 2 sin h sin(h − θ_l) / (sin θ_{l+1} sin θ_{l−1}) − 1,    s_l = det(u) / (sin θ_{l+1} sin θ_{l−1})

corner l receives ``(θ_l − c_{l+1} θ_{l−1} − c_{l−1} θ_{l+1}) / (r_l sin θ_{l+1} s_{l−1})``, and the weights are divided
by their sum. On a triangle p has its barycentric coordinates there; in a triangle's plane beside it, that triangle
contributes nothing. These coordinates interpolate the cage's vertices and are linear in them: shapes shear and stretch
where Green coordinates rotate. They are defined outside as well.

Derivatives are central differences (of fourth order, mixed ones of second): only the comparison needs them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.topology import Floats
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.green import not_inside, outside_error, point_array, spread_columns
from pliant.engines.transfer.options import Outside
from pliant.native import in_threads, kernels

DIFFERENCE = 1e-3
"""Step of the differences, over the cage's diagonal."""
TRIANGLES_PER_THREAD = 2000
"""Least number of pairs of a triangle and a point for another thread."""


@takes_meshes("points", "cage")
def mean_value_coordinates(
    points: ArrayLike | Mesh | TetMesh | PointCloud, cage: Mesh | Cage, *, outside: Outside = "allow"
) -> Floats:
    """(n, cage vertices) coordinates of points (n, 3), or of a shape's points, in a closed cage.

    outside: whether points on or outside the cage are allowed, as these coordinates are defined there too, or refused.
    """
    checked = Cage.of(cage)
    return spread_columns(mean_value_rows(point_array(points), checked, outside=outside)[0], checked, cage)


def mean_value_rows(
    points: Floats, cage: Cage, *, order: int = 0, outside: Outside = "refuse", what: str = "points"
) -> tuple[Floats, ...]:
    """(n, c), and up to `order` gradients (n, 3, c) and Hessians (n, 6, c) as xx, yy, zz, xy, xz, yz."""
    if outside not in ("refuse", "allow"):
        raise InputError(f'outside is "{outside}"; expected refuse or allow')
    if outside == "refuse":
        stray = not_inside(points, cage)
        if len(stray):
            raise outside_error(points, stray, what)
    values = _values(points, cage)
    if order == 0:
        return (values,)
    step = DIFFERENCE * cage.diagonal
    along = [[_values(points + k * step * axis, cage) for k in (-2, -1, 1, 2)] for axis in np.eye(3)]
    gradient = np.stack([8 * (c - b) - (d - a) for a, b, c, d in along], axis=1) / (12 * step)
    if order == 1:
        return values, gradient
    pure = [(16 * (b + c) - (a + d) - 30 * values) / 12 for a, b, c, d in along]
    mixed = [_mixed(points, cage, step, x, y, along, values) for x, y in ((0, 1), (0, 2), (1, 2))]
    return values, gradient, np.stack([*pure, *mixed], axis=1) / step**2


def _values(points: Floats, cage: Cage) -> Floats:
    contiguous, out = np.ascontiguousarray(points), np.zeros((len(points), len(cage.points)))
    given = contiguous, cage.points, cage.triangles, cage.diagonal
    least = max(1, TRIANGLES_PER_THREAD // len(cage.triangles))
    in_threads(lambda a, b: kernels.mean_value_rows(*given, out, a, b), len(contiguous), least)
    return out


def _mixed(
    points: Floats, cage: Cage, step: float, x: int, y: int, along: list[list[Floats]], values: Floats
) -> Floats:
    """∂²/∂x∂y times the step's square, from the diagonal and the two axes."""
    diagonal = step * (np.eye(3)[x] + np.eye(3)[y])
    ends = _values(points + diagonal, cage) + _values(points - diagonal, cage)
    return (ends + 2 * values - sum(along[axis][k] for axis in (x, y) for k in (1, 2))) / 2
