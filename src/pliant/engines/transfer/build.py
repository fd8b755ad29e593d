"""Cages built automatically: closed, coarse, free of crossings, around anything.

1. The target, whatever it is, gets a shell: the surface at 0.8 margins or so from its points and triangles, filled
   (`shell`). Gaps wider than about two margins stay open, so limbs and fingers have tubes of their own.
   Of a few offsets the one with the fewest handles is taken: fingers that all but touch are better apart or together.
2. Edges of the shell are collapsed, the cheapest first, down to the faces asked for, and only where every triangle
   still keeps half of that from the target and crosses no other (`pliant.geometry.simplify`). So the cage encloses the
   target and does not cross itself at every step.
3. The result is checked against the target's own points. Where too many faces are left, since tubes and handles need
   some, the margin is widened, which closes gaps, and in the end the cage is a box.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.caching import ResultCache, content_key
from pliant.core.errors import InputError, PliantWarning
from pliant.core.interop import takes_meshes
from pliant.core.normals import triangle_normals
from pliant.core.rotations import as_rotation
from pliant.core.shapes import Mesh, PointCloud, TetMesh, as_points, bounding_diagonal
from pliant.core.topology import Floats
from pliant.engines.transfer.options import CageOptions
from pliant.geometry.axes import OwnFrame
from pliant.geometry.cloud_surface import cloud_surface
from pliant.geometry.shell import Field, Shell, Target, distance_field, filled, shell
from pliant.geometry.simplify import Space, collapsed
from pliant.geometry.spatial import SurfaceTree

NARROWEST, WIDEST = 0.004, 0.5
"""The smallest and the largest margin.

A rig has 60 samples of the smoothness along the longest side of its cage. With the smallest margin, even the tube
around a wire or an ear is wide enough to contain samples, without which its deformation would be arbitrary.
"""
OFFSETS = (0.8, 0.7, 0.9, 0.6, 1.0, 0.5)
"""Distances of the shell from the target, in margins; of those with the fewest handles the first is taken."""
CAGE_CLEARANCE = 0.5
"""Least distance of the cage from the target, over the shell's."""
POINT_CLEARANCE = 0.2
"""Least depth of the target's points inside the cage, in margins."""
CELLS_PER_MARGIN = 2.0
"""Grid cells in a margin."""
PUSHES = (0.0, 0.2, 0.4, 0.7, 1.0, 1.5, 2.2)
"""Outward displacements of a vertex that are tried to keep the clearance, in margins."""
FEWEST_CAGE_FACES, MOST_CAGE_FACES = 60, 2000
"""Of cages that are chosen by their error."""
COVERED = 0.95
"""Share of the points that a cage's error is about."""
WIDENING = 1.35
"""Factor on the margin from one attempt to the next."""


@takes_meshes("target")
def build_cage(
    target: Mesh | TetMesh | PointCloud | ArrayLike,
    *,
    faces: int = CageOptions.faces,
    margin: float = CageOptions.margin,
    error: float | None = CageOptions.error,
    axes: ArrayLike | None = None,
) -> Mesh:
    """A cage of at most so many triangles around any shape, or points (n, 3): closed, facing out, not crossing itself.

    margin: how far the cage keeps from the target, over the diagonal of its box, about; every point keeps at least a
    fifth of it. Gaps of more than about twice the margin stay open; sparse clouds have the surface that is seen in
    them (`cloud_surface`). Where the faces are too few for that, or a cloud has no such surface, the margin is
    widened. Pieces that are farther apart have cages of their own, all in one mesh. error: choose as few faces as
    bring nearly all points as near to the cage as the margin and this, over the diagonal (`cage_error`), at most
    `faces`, or `MOST_CAGE_FACES` where that is the default. axes: (3, 3) rows at right angles, the directions of the
    grid that is used; the world's by default.
    """
    CageOptions.check(faces=faces, margin=margin, error=error)
    if error is not None:
        return _by_error(target, MOST_CAGE_FACES if faces == CageOptions.faces else faces, margin, error, axes)
    if axes is not None:
        R = as_rotation(axes, "axes", mirrored=True)
        shape = (
            target
            if isinstance(target, (Mesh, TetMesh, PointCloud))
            else PointCloud(as_points(target, "target points"))
        )
        own = OwnFrame.of(shape.points, R)
        rotated = build_cage(shape.with_points(own.points), faces=faces, margin=margin)
        faces_out = rotated.triangles if np.linalg.det(R) > 0 else rotated.triangles[:, ::-1]
        return Mesh(own.back(rotated.points), faces_out)
    inside = Target.of(target)
    key = content_key(inside.points, inside.triangles), int(faces), float(margin)
    return _in_target_units(_cages.get(key, lambda: _cage_around(inside, int(faces), float(margin))), inside)


_cages: ResultCache[Mesh] = ResultCache(32)
"""A target is opened again, switched to, and solved with other options."""


def _cage_around(target: Target, faces: int, margin: float) -> Mesh:
    target, spacing = _closed(target, margin)
    width = max(margin, spacing)
    while width < WIDEST:
        cage = _attempt(target, faces, width)
        if cage is not None:
            return cage
        width *= WIDENING
    return _box(target.points, margin)


def cage_distances(cage: Mesh, points: ArrayLike) -> Floats:
    """(n,) how far points (n, 3) are from a cage, over the diagonal of their box."""
    at = as_points(points, "points")
    distances: Floats = SurfaceTree(cage).closest(at).distance / max(bounding_diagonal(at), 1e-300)
    return distances


def cage_error(cage: Mesh, points: ArrayLike, margin: float = CageOptions.margin) -> float:
    """How much farther than the margin a cage is from all but 5 % of the points, over their diagonal.

    Where it is far, it does not follow the shape, and can neither bend nor turn it there by itself.
    """
    return max(0.0, float(np.quantile(cage_distances(cage, points), COVERED)) - margin)


def _by_error(target: Any, most: int, margin: float, error: float, axes: ArrayLike | None) -> Mesh:
    """The first of cages with more and more faces whose error is small enough; the last, with a warning, if none is."""
    shape = (
        target if isinstance(target, (Mesh, TetMesh, PointCloud)) else PointCloud(as_points(target, "target points"))
    )
    faces = FEWEST_CAGE_FACES
    while True:
        faces = min(faces, most)
        cage = build_cage(shape, faces=faces, margin=margin, axes=axes)
        found = cage_error(cage, shape.points, margin)
        if found <= error:
            return cage
        if faces >= most:
            warnings.warn(
                f"with {len(cage.triangles)} faces the cage is still {100 * found:.2g} % of the diagonal farther from "
                f"the target than its clearance; asked for {100 * error:.2g} %: allow more faces, or more error",
                PliantWarning,
                stacklevel=3,
            )
            return cage
        faces = int(1.4 * faces)


def _closed(target: Target, margin: float) -> tuple[Target, float]:
    """A target, and how wide its holes are: a sparse cloud gets its surface, if that keeps it in one piece."""
    spacing = _spacing(target)
    if spacing <= margin:
        return target, spacing
    try:
        points, triangles = cloud_surface(target.points)
    except InputError:  # it is flat
        return target, spacing
    surfaced = replace(target, points=np.concatenate([target.points, points]), triangles=triangles + len(target.points))
    pieces = [
        shell(filled(distance_field(some, width / CELLS_PER_MARGIN, 1.5 * width, 4 * width), width), width).part.max()
        for some, width in ((surfaced, margin), (target, spacing))
    ]
    return (surfaced, 0.0) if pieces[0] <= pieces[1] else (target, spacing)


def _spacing(target: Target) -> float:
    """How far the points of a cloud are from their neighbours, so that its shell has no holes; 0 for surfaces."""
    from scipy.spatial import cKDTree

    if len(target.triangles) or len(target.points) < 5:
        return 0.0
    away = cKDTree(target.points).query(target.points, k=5)[0][:, 4]
    return float(np.quantile(away, 0.9))


def _attempt(target: Target, faces: int, margin: float) -> Mesh | None:
    """A cage with this margin; None if it has too many faces, or does not pass the checks."""
    distance = distance_field(target, margin / CELLS_PER_MARGIN, 1.5 * margin, 4 * margin)
    around, field = _fewest_handles(distance, margin)
    space = Space(
        field.values, field.origin, field.cell, CAGE_CLEARANCE * around.offset, margin * np.array(PUSHES), 1.0
    )
    cage = collapsed(Mesh(around.points, around.quads), faces, space)
    if len(cage.triangles) > faces:
        return None
    return cage if encloses(cage, target.points, POINT_CLEARANCE * margin) else None


def _fewest_handles(distance: Field, margin: float) -> tuple[Shell, Field]:
    """A shell, and the field that has its inside filled."""
    tried = []
    for offset in OFFSETS:
        field = filled(distance, offset * margin)
        around = shell(field, offset * margin)
        tried.append((around, field))
        if around.handles == 0:
            break
    return min(tried, key=lambda pair: pair[0].handles)


def encloses(cage: Mesh, points: Floats, margin: float) -> bool:
    """Whether a cage is closed, faces out, does not cross itself, and has all points inside by at least the margin."""
    if not cage.is_watertight or not (np.linalg.norm(triangle_normals(cage.points, cage.triangles), axis=1) > 0).all():
        return False
    tree = SurfaceTree(cage)
    if len(tree.crossings(coplanar=True)):
        return False
    return bool(tree.signed_distance(points).max() <= -margin)


def _in_target_units(cage: Mesh, target: Target) -> Mesh:
    return Mesh(cage.points * target.size + target.centre, cage.polygons)


def _box(points: Floats, margin: float) -> Mesh:
    """The box around the points, as twelve triangles."""
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    quads = ([0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3])
    return Mesh(corners, [[q[0], q[k], q[k + 1]] for q in quads for k in (1, 2)])
