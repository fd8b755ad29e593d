"""Cages: coarse closed triangle meshes that enclose a body with some clearance, a tube for each limb.

They are built as for any shape (`pliant.engines.transfer.build`), around the body's surface at several sizes, so that a
body of any number of vertices fits in. The narrowest margin is taken whose cage has no handles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from pliant.core.errors import InputError, PliantError
from pliant.core.shapes import Mesh
from pliant.core.validation import whole_number
from pliant.engines.transfer.build import build_cage
from pliant.gallery.creatures import body as creature_body
from pliant.gallery.dinosaurs import body as dinosaur_body
from pliant.gallery.gingerbread_man import body as gingerbread_body
from pliant.gallery.hands import body as hand_body
from pliant.gallery.implicit import ImplicitBody, cone
from pliant.gallery.quadruped import body as animal_body
from pliant.gallery.surface_nets import body_mesh

CageName = Literal["hand", "animal", "creature", "dinosaur", "gingerbread"]
FEWEST_CAGE_VERTICES, MOST_CAGE_VERTICES = 40, 400
SURFACE_SIZES = (8000, 12_000, 30_000)
"""Vertices of the surfaces that a cage encloses."""


def cage(name: CageName, *, vertices: int = 120) -> Mesh:
    """A cage with about so many vertices around the base shape of the body called `name`."""
    if name not in get_args(CageName):
        raise InputError(f'no cage is called "{name}"; there are {", ".join(get_args(CageName))}')
    count = whole_number(vertices, "vertices", FEWEST_CAGE_VERTICES, MOST_CAGE_VERTICES)
    return _made(name, count, SURFACE_SIZES)


@lru_cache(maxsize=8)
def _made(name: CageName, vertices: int, sizes: tuple[int, ...]) -> Mesh:
    """Made once: cages never change."""

    inside = _surfaces(_body(name), sizes)
    for margin in np.geomspace(0.015, 0.06, 7):
        around = build_cage(inside, faces=2 * vertices - 4, margin=float(margin))
        if len(around.points) - len(around.triangles) // 2 == 2:
            return around
    raise PliantError(f"no cage of {vertices} vertices fits the {name}; ask for more vertices")


def _surfaces(body: ImplicitBody, sizes: tuple[int, ...]) -> Mesh:
    """The body's surface in several sizes, all in one mesh."""
    meshes = [body_mesh(body, n) for n in sizes]
    first = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    triangles = [mesh.triangles + start for mesh, start in zip(meshes, first, strict=False)]
    return Mesh(np.concatenate([mesh.points for mesh in meshes]), np.concatenate(triangles))


def _body(name: CageName) -> ImplicitBody:
    """The body to be enclosed; the dinosaur's mouth counts as full, so that the cage closes over its teeth."""
    if name == "dinosaur":
        body = dinosaur_body()
        mouthful = cone("head", "body", (0, 1.57, 1.00), (0, 1.50, 1.24), (0.070, 0.060), blend=0.03)
        return replace(body, parts=(*body.parts, mouthful))
    makers: dict[str, Callable[[], ImplicitBody]] = {
        "hand": hand_body,
        "animal": animal_body,
        "creature": creature_body,
        "gingerbread": gingerbread_body,
    }
    return makers[name]()
