"""Meshes in many colours: viser's own have one, so they are sent as small GLB files."""

from __future__ import annotations

import numpy as np

from pliant.core.normals import vertex_normals
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.build import INDICES, VERTICES, Builder

PAINT_MATERIAL = {
    "pbrMetallicRoughness": {"baseColorFactor": [1.0, 1.0, 1.0, 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.85},
    "doubleSided": True,
}


def painted_glb(points: Floats, triangles: Ints, colors: Floats) -> bytes:
    """A GLB file of points (n, 3), triangles and linear colours (n, 3) from 0 to 1."""
    builder = Builder()
    attributes = {
        "POSITION": builder.accessor(points.astype("<f4"), target=VERTICES, bounds=True),
        "NORMAL": builder.accessor(vertex_normals(points, triangles).astype("<f4"), target=VERTICES),
        "COLOR_0": builder.accessor(colors.astype("<f4"), target=VERTICES),
    }
    indices = builder.accessor(triangles.astype("<u4").ravel(), target=INDICES)
    material = builder.add("materials", PAINT_MATERIAL)
    primitive = {"attributes": attributes, "indices": indices, "material": material}
    builder.add("nodes", {"mesh": builder.add("meshes", {"primitives": [primitive]})})
    builder.json |= {"scenes": [{"nodes": [0]}], "scene": 0}
    return b"".join(builder.glb())


def heat(shares: Floats) -> Floats:
    """(n, 3) linear colours for shares (n,) from 0 (pale) over a half (orange) to 1 and more (dark red)."""
    at = np.linspace(0.0, 1.0, len(HEAT_SCALE))
    known = np.clip(np.nan_to_num(shares), 0.0, 1.0)
    encoded = np.stack([np.interp(known, at, HEAT_SCALE[:, k]) for k in range(3)], axis=1)
    return encoded**2.2


HEAT_SCALE = np.array([[232, 230, 222], [250, 214, 120], [240, 134, 50], [204, 44, 36], [110, 8, 40]]) / 255
"""What `heat` goes through, evenly, as screens encode it."""
