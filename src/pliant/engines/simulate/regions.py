"""Which material holds where: parts of a body by name, and what each point is made of.

A region gives every place a weight from 0 to 1. It is one of

- the name of a vertex group: the weight of the nearest point of the surface, as it is painted;
- the name of a label of the faces (an object, group or material of the file): 1 nearest to those faces;
- the name of a joint: 1 in the flesh that is nearer to its bones, to its children or its own end, than to any other;
- a `pliant.Sphere`: 1 inside;
- a `GreyMap`: the brightness of an image where the surface's UVs put it, at the nearest point of the surface;
- None: 1 everywhere.

Regions are layers: each mixes its material, by its weight, with what the layers before it give. The first one lies on
the default `Material`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError, about_argument
from pliant.core.regions import Sphere
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points, closest_names
from pliant.core.values import Value, locked
from pliant.engines.simulate.bones import rest_segments
from pliant.engines.simulate.grey_map import GreyMap
from pliant.engines.simulate.material import Material
from pliant.geometry.segments import nearest_segment
from pliant.geometry.spatial import SurfaceTree

Region = str | Sphere | GreyMap | None
Materials = Material | Sequence[tuple[Region, Material]]


@dataclass(frozen=True, eq=False)
class MaterialField(Value):
    """What each of q points is made of."""

    lam: Floats
    """(q,) Lamé's λ."""
    mu: Floats
    """(q,) Lamé's μ."""
    density: Floats
    """(q,)"""

    @property
    def young(self) -> Floats:
        """(q,) Young's modulus."""
        return self.mu * (3 * self.lam + 2 * self.mu) / (self.lam + self.mu)


def material_at(
    points: ArrayLike,
    material: Materials,
    *,
    mesh: Mesh | None = None,
    skeleton: Skeleton | None = None,
) -> MaterialField:
    """What points (q, 3) are made of: one material, or a sequence of (region, material), each laid over the last."""
    positions = as_points(points)
    layers: Sequence[tuple[Region, Material]] = [(None, material)] if isinstance(material, Material) else material
    values = np.tile(_row(Material()), (len(positions), 1))
    for k, layer in enumerate(layers):
        region, stuff = _layer(layer)
        with about_argument("material", k):
            weight = region_weight(positions, region, mesh, skeleton)[:, None]
            values = (1 - weight) * values + weight * np.array(_row(stuff))
    lam, mu, density = (locked(np.ascontiguousarray(column)) for column in values.T)
    return MaterialField(lam, mu, density)


def _row(material: Material) -> tuple[float, float, float]:
    return (*material.lame, material.density)


def _layer(layer: object) -> tuple[Region, Material]:
    if isinstance(layer, (tuple, list)) and len(layer) == 2 and isinstance(layer[1], Material):
        return layer[0], layer[1]
    raise InputError(f"material is {layer!r:.60}; expected a Material, or pairs of a region and a Material")


def region_weight(positions: Floats, region: Region, mesh: Mesh | None, skeleton: Skeleton | None) -> Floats:
    """(q,) the weight, from 0 to 1, that a region has at points (q, 3)."""
    if region is None:
        return np.ones(len(positions))
    if isinstance(region, Sphere):
        return (np.linalg.norm(positions - np.array(region.centre), axis=1) <= region.radius).astype(np.float64)
    if isinstance(region, GreyMap):
        if mesh is None:
            raise InputError("a map needs a mesh with UVs; the shape has none")
        return region.at(positions, mesh)
    if not isinstance(region, str):
        raise InputError(f"region is {region!r:.40}; expected a name, a Sphere, a GreyMap, or None for everywhere")
    if mesh is not None and region in mesh.vertex_groups:
        foot = SurfaceTree(mesh).closest(positions)
        weights = mesh.vertex_groups[region][mesh.triangles[foot.triangle]]
        return np.clip(np.einsum("qk,qk->q", foot.barycentric, weights), 0, 1)
    labels = mesh.labels if mesh is not None else {}
    for label in labels.values():
        if mesh is not None and region in label.names:
            wanted = label.index == label.names.index(region)
            return wanted[mesh.triangle_polygon[SurfaceTree(mesh).closest(positions).triangle]].astype(np.float64)
    if skeleton is not None and region in skeleton.names:
        return (nearest_joint(positions, skeleton) == skeleton.index(region)).astype(np.float64)
    known = [*(mesh.vertex_groups if mesh is not None else ()), *(skeleton.names if skeleton is not None else ())]
    known += [name for label in labels.values() for name in label.names]
    raise InputError(f'no vertex group, face label or joint is called "{region}"; {closest_names(region, known)}')


def nearest_joint(positions: Floats, skeleton: Skeleton) -> Ints:
    """(q,) the joint whose bones come nearest to each point; a joint without bones is a point."""
    starts, stops, owner = rest_segments(skeleton)
    return owner[nearest_segment(positions, starts, stops)[0]]
