"""Cages: coarse closed triangle meshes that enclose a body with room to spare, a tube for each limb.

The body's field is sampled at an offset, meshed, and simplified to a few dozen vertices. Simplifying cuts corners, so
vertices near a place where the body comes too close are pushed outwards, until every point of the body has its room;
if that makes the cage cross itself, a wider offset is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from pliant.errors import InputError, PliantError
from pliant.gallery.implicit import Body, cone
from pliant.gallery.simplify import simplified
from pliant.gallery.surface_nets import body_mesh, dilated_mesh, neighbour_mean
from pliant.normals import vertex_normals
from pliant.shapes import Mesh
from pliant.topology import Floats

CageName = Literal["hand", "animal", "creature", "dinosaur", "gingerbread"]
FEWEST, MOST = 40, 400


def cage(name: CageName, *, vertices: int = 120) -> Mesh:
    """A cage with about so many vertices around the base shape of the body called `name`."""
    if name not in get_args(CageName):
        raise InputError(f'no cage is called "{name}"; there are {", ".join(get_args(CageName))}')
    if isinstance(vertices, bool) or not isinstance(vertices, (int, np.integer)) or not FEWEST <= vertices <= MOST:
        raise InputError(f"vertices is {vertices!r}; expected a whole number from {FEWEST} to {MOST}")
    body = _body(name)
    inside = np.concatenate([body_mesh(body, n).points for n in (8000, 12_000, 30_000)])
    size = float(np.linalg.norm(np.ptp(inside, axis=0)))
    for margin in size * np.geomspace(0.012, 0.045, 12):
        fitted = _fitted(dilated_mesh(body, margin, max(0.7 * margin, 0.012 * size)), inside, int(vertices), margin)
        if fitted is not None:
            return fitted
    raise PliantError(f"no cage of {vertices} vertices fits the {name}; ask for more vertices")


def _body(name: CageName) -> Body:
    """The body to be enclosed; the dinosaur's mouth counts as full, so that the cage closes over its teeth."""
    from pliant.gallery.creatures import body as creature_body
    from pliant.gallery.dinosaurs import body as dinosaur_body
    from pliant.gallery.gingerbread_man import body as gingerbread_body
    from pliant.gallery.hands import body as hand_body
    from pliant.gallery.quadruped import body as animal_body

    if name == "dinosaur":
        body = dinosaur_body()
        mouthful = cone("head", "body", (0, 1.57, 1.00), (0, 1.50, 1.24), (0.070, 0.060), blend=0.03)
        return replace(body, parts=(*body.parts, mouthful))
    makers: dict[str, Callable[[], Body]] = {
        "hand": hand_body,
        "animal": animal_body,
        "creature": creature_body,
        "gingerbread": gingerbread_body,
    }
    return makers[name]()


def _fitted(around: Mesh, inside: Floats, vertices: int, margin: float) -> Mesh | None:
    """The offset surface simplified and pushed out to clear all points; None if that does not come out clean."""
    from pliant.spatial import SurfaceTree

    coarse = simplified(around, vertices)
    if len(coarse.points) - len(coarse.triangles) // 2 != 2 or len(coarse.points) > 1.1 * vertices:
        return None
    close, neighbours = inside, neighbour_mean(coarse.polygons, len(coarse.points))
    for _ in range(12):
        tree = SurfaceTree(coarse)
        depth = -tree.signed_distance(close)
        if depth.min() > 0.2 * margin:
            done = len(tree.crossings()) == 0 and -tree.signed_distance(inside).max() > 0.15 * margin
            return coarse if done else None
        # The cage only grows, so points with room enough need no second look.
        close, depth = close[depth < margin], depth[depth < margin]
        push = np.zeros(len(coarse.points))
        short = np.maximum(0.4 * margin - depth, 0)
        np.maximum.at(push, coarse.triangles[tree.closest(close).triangle], short[:, None])
        push = np.maximum(push, 0.7 * (neighbours @ push))
        normals = vertex_normals(coarse.points, coarse.triangles)
        coarse = coarse.with_points(coarse.points + (0.6 * push + 0.05 * margin * (push > 0))[:, None] * normals)
    return None
