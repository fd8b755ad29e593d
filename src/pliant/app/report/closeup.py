"""Where something happens: of a large shape of which little moves, such as a mouth on a whole person, that little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.clips import Animation
from pliant.core.shapes import Mesh, bounding_diagonal
from pliant.core.skeleton import Motion
from pliant.core.topology import Ints, Polygons

MOVING = 0.05
"""A vertex moves if it goes this far, over the farthest."""
CLOSEUP_MARGIN = 0.5
"""How far around what moves is shown too, in diagonals of that."""
CLOSEUP_SIZE = 0.4
"""Above this share of the whole diagonal the whole is shown."""


def moving_part(clip: Animation, part: Ints) -> Ints | None:
    """(k,) the vertices around those that move, in connected parts that move, or None if that is most of the shape.

    part: (n,) number of the connected part of each vertex.
    """
    away = np.linalg.norm(clip.points - clip.shape.points, axis=2).max(axis=0)
    moves = away > MOVING * away.max(initial=0)
    if not moves.any():
        return None
    positions = clip.points[:, moves].reshape(-1, 3)
    low, high = positions.min(axis=0), positions.max(axis=0)
    reach = CLOSEUP_MARGIN * float(np.linalg.norm(high - low))
    if np.linalg.norm(high - low) + 2 * reach > CLOSEUP_SIZE * clip.shape.diagonal:
        return None
    near = ((clip.shape.points >= low - reach) & (clip.shape.points <= high + reach)).all(axis=1)
    return np.flatnonzero(near & np.isin(part, part[moves]))


def cut(clip: Animation, vertices: Ints) -> Animation:
    """The clip of these vertices, and of the faces between them."""
    mesh = clip.shape
    assert isinstance(mesh, Mesh)
    number = np.full(len(mesh.points), -1)
    number[vertices] = np.arange(len(vertices))
    corners = number[mesh.polygons.corners]
    whole = np.minimum.reduceat(corners, mesh.polygons.offsets[:-1]) >= 0
    faces = mesh.polygons.take(whole)
    piece = Mesh(
        mesh.points[vertices],
        Polygons(number[faces.corners], faces.offsets),
        attributes={name: values[vertices] for name, values in mesh.attributes.items()},
        world=mesh.world,
    )
    return replace(clip, shape=piece, points=clip.points[:, vertices])


SHEET_FRAMES = 6
"""Frames on the contact sheet."""


TRAVELS = 1.0
"""Way that the middle goes, over the shape's diagonal, above which the camera goes along."""


def travels(thing: Animation | Motion) -> bool:
    """Whether what moves goes so far that the camera has to go along."""
    points = thing.points if isinstance(thing, Animation) else thing.world()[0]
    middle = points.mean(axis=1)
    return bool(np.linalg.norm(np.ptp(middle, axis=0)) > TRAVELS * bounding_diagonal(points[0]))
