"""Vertex colours of the gallery's shapes, as linear light, from where a vertex is at rest and which limb it belongs to.

Patterns are a few edges wide at the default sizes, so that stretching and twisting can be seen on the surface.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.normals import vertex_normals
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.gallery.ramps import smoothstep

Limbs = NDArray[np.str_]
"""(n,) the name of each vertex's limb, without its side."""
Coat = Callable[[Mesh, Limbs], Floats]
"""From a mesh at rest and its limbs to colours (n, 3)."""


def painted(count: int, base: ArrayLike, *layers: tuple[Floats, ArrayLike]) -> Floats:
    """(n, 3) one colour, and layers of opacity (n,) and colour over it."""
    colors = np.tile(np.asarray(base, dtype=np.float64), (count, 1))
    for opacity, color in layers:
        colors += opacity[:, None] * (np.asarray(color) - colors)
    return colors


def stripes(along: Floats, period: float) -> Floats:
    """From 0 to 1 and back over each period."""
    return smoothstep(np.sin(2 * np.pi / period * along), -0.35, 0.35)


def one_side(points: Floats) -> Floats:
    """Points with x < 0 mirrored to the other side."""
    return np.where(points[:, :1] < 0, points * np.array([-1.0, 1.0, 1.0]), points)


def near(points: Floats, centre: ArrayLike, radius: float) -> Floats:
    """1 within a radius of a point or its mirror image at x = 0, 0 from 1.3 times that on."""
    away = np.linalg.norm(one_side(points) - np.asarray(centre), axis=1)
    return 1 - smoothstep(away / radius, 1.0, 1.3)


def checkered(mesh: Mesh, cell: float) -> Mesh:
    """The mesh coloured as if cut from a chessboard of cubes."""
    odd = np.floor(0.999 * mesh.points / cell + 1e-9).sum(axis=1) % 2
    colors = painted(len(odd), (0.70, 0.56, 0.40), (odd, (0.06, 0.17, 0.24)))
    return Mesh(mesh.points, mesh.polygons, uvs=mesh.uvs, attributes={"color": colors})


def bay(mesh: Mesh, limbs: Limbs) -> Floats:
    """A bay horse: chestnut with a black mane, tail and lower legs, and a white blaze."""
    x, y, z = mesh.points.T
    legs = np.isin(limbs, ("foreleg", "hindleg"))
    hooves = legs * (1 - smoothstep(y, 0.09, 0.12))
    muzzle = smoothstep(z - 0.4 * (y - 1.55), 1.27, 1.36)
    down = 1 - smoothstep(vertex_normals(mesh.points, mesh.triangles)[:, 1], -0.7, 0.1)
    blaze = smoothstep(z + 0.95 * y, 2.80, 2.86) * (1 - smoothstep(np.abs(x), 0.015, 0.035)) * (y > 1.58)
    black = np.maximum(np.isin(limbs, ("mane", "tail")), legs * (1 - smoothstep(y, 0.35, 0.62)))
    socks = legs * (z < 0) * (1 - smoothstep(y, 0.22, 0.30))
    return painted(
        len(y), (0.25, 0.085, 0.03), (0.5 * down, (0.36, 0.17, 0.08)), (0.9 * muzzle, (0.05, 0.03, 0.025)),
        (black, (0.022, 0.016, 0.014)), (np.maximum(blaze, socks), (0.78, 0.72, 0.64)),
        (np.maximum(hooves, near(mesh.points, (0.098, 1.805, 1.135), 0.022)), (0.02, 0.015, 0.012)),
    )  # fmt: skip


def striped_reptile(mesh: Mesh, limbs: Limbs) -> Floats:
    """The dinosaur: green with dark bands across back and tail, a pale underside, rusty scutes."""
    y, z = mesh.points[:, 1:].T
    upward = vertex_normals(mesh.points, mesh.triangles)[:, 1]
    trunk = np.isin(limbs, ("body", "scutes")) * (1 - smoothstep(z + y, 2.30, 2.45))
    bands = trunk * stripes(z + 0.7 * np.maximum(y - 1.2, 0), 0.25) * smoothstep(upward, -0.45, 0.15)
    legs = 0.7 * (limbs == "leg") * stripes(y, 0.22) * smoothstep(y, 0.15, 0.3)
    pale = (1 - smoothstep(upward, -0.75, -0.15)) * smoothstep(y, 0.3, 0.8)
    mouth = (limbs == "jaw") * smoothstep(upward, 0.2, 0.6)
    claws = (limbs == "leg") * smoothstep(z, 0.19, 0.22) * (y < 0.09)
    return painted(
        len(y), (0.15, 0.22, 0.06), (pale, (0.58, 0.52, 0.28)), (np.maximum(bands, legs), (0.035, 0.07, 0.03)),
        (0.9 * (limbs == "scutes") * (upward > -0.2), (0.40, 0.12, 0.03)), (mouth, (0.42, 0.10, 0.09)),
        (claws, (0.05, 0.04, 0.03)), (near(mesh.points, (0.118, 1.77, 1.055), 0.042), (0.03, 0.02, 0.01)),
    )  # fmt: skip


def monster(mesh: Mesh, limbs: Limbs) -> Floats:
    """The creature: teal with a pale front, a banded shell and tail, ivory horns and claws."""
    x, y, z = one_side(mesh.points).T
    ahead = vertex_normals(mesh.points, mesh.triangles)[:, 2]
    front = (limbs == "body") * smoothstep(ahead, 0.25, 0.75) * (1 - smoothstep(x, 0.10, 0.17)) * (y < 1.2)
    bands = (limbs == "tail") * stripes(y - z, 0.21)
    limb = 0.8 * np.isin(limbs, ("arm", "leg")) * stripes(np.where(limbs == "arm", 1.2 * x, y), 0.16)
    claws = np.isin(limbs, ("index", "middle", "little", "thumb")) * (1 - smoothstep(y, 0.74, 0.77))
    return painted(
        len(y), (0.05, 0.27, 0.26), (np.maximum(limb, bands), (0.02, 0.12, 0.15)), (front, (0.66, 0.58, 0.36)),
        (1.0 * (limbs == "shell"), (0.30, 0.12, 0.07)), ((limbs == "shell") * stripes(y, 0.185), (0.50, 0.26, 0.12)),
        (np.maximum(limbs == "horn", claws), (0.75, 0.68, 0.50)),
        (0.8 * (limbs == "ear") * smoothstep(ahead, 0.3, 0.7), (0.45, 0.16, 0.15)),
        (near(mesh.points, (0.084, 1.455, 0.165), 0.024), (0.02, 0.02, 0.02)),
    )  # fmt: skip


def biscuit(mesh: Mesh, limbs: Limbs) -> Floats:
    """The gingerbread man: brown, with a face of white icing and red buttons where it stands out in front."""
    x, y, z = mesh.points.T
    icing = (limbs == "head") * smoothstep(z, 0.064, 0.072)
    buttons = (limbs == "body") * smoothstep(z, 0.073, 0.080) * (np.abs(x) < 0.05)
    edge = 0.35 * smoothstep(np.abs(vertex_normals(mesh.points, mesh.triangles)[:, 2]), 0.2, 0.9)
    return painted(
        len(y), (0.24, 0.085, 0.025), (edge, (0.46, 0.21, 0.08)), (icing, (0.85, 0.80, 0.75)),
        (buttons, (0.55, 0.02, 0.03)),
    )  # fmt: skip
