"""Weights painted into an image: the brightness at the surface's UVs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.core.validation import finite_values
from pliant.core.values import Value, owned
from pliant.geometry.spatial import SurfaceTree


@dataclass(frozen=True, eq=False)
class GreyMap(Value):
    """A picture of weights, from 0 (black) to 1 (white), that a mesh's UVs lay on its surface; it repeats."""

    values: Floats
    """(height, width), the top row first."""

    def __init__(self, values: ArrayLike) -> None:
        grey = finite_values(owned(values, "the map", np.float64), "the map")
        if grey.ndim != 2 or not grey.size or grey.min() < 0 or grey.max() > 1:
            raise InputError(f"the map has shape {grey.shape}; expected (height, width) numbers from 0 to 1")
        object.__setattr__(self, "values", grey)

    def __repr__(self) -> str:
        return f"GreyMap({self.values.shape[1]} x {self.values.shape[0]})"

    def at(self, positions: Floats, mesh: Mesh) -> Floats:
        """(q,) the weight at the nearest point of a mesh's surface, bilinear between the pixels' middles."""
        if mesh.uvs is None:
            raise InputError("the mesh has no UVs, which say where a map lies on it; expected a mesh with UVs")
        foot = SurfaceTree(mesh).closest(positions)
        uv = mesh.uvs.at_corners[mesh.triangle_corners[foot.triangle], :2]
        u, v = np.einsum("qk,qkd->dq", foot.barycentric, uv)
        left, right, a = _pixels(u, self.values.shape[1])
        top, bottom, b = _pixels(1 - v, self.values.shape[0])
        upper, lower = ((1 - a) * self.values[row, left] + a * self.values[row, right] for row in (top, bottom))
        return (1 - b) * upper + b * lower


def _pixels(at: Floats, count: int) -> tuple[Ints, Ints, Floats]:
    """(q,) the two of `count` pixels whose middles a coordinate lies between, and the share of the second."""
    at = np.where((at >= 0) & (at <= 1), at, at % 1) * count - 0.5
    first = np.floor(at).astype(np.int64)
    return np.clip(first, 0, count - 1), np.clip(first + 1, 0, count - 1), at - first
