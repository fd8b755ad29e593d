"""Which material holds where: parts of a body by name, and what each point is made of.

A region is one of a surface (`pliant.geometry.regions`), or the name of a joint: its weight is 1 in the flesh that is
nearer to its bones, to its children or its own end, than to any other.

Regions are layers: each mixes its material, by its weight, with what the layers before it give. The first one lies on
the default `Material`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError, about_argument
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points
from pliant.core.values import Value, locked
from pliant.engines.simulate.bones import rest_segments
from pliant.engines.simulate.material import Material
from pliant.geometry import regions
from pliant.geometry.regions import Region, region_names, unknown_region
from pliant.geometry.segments import nearest_segment

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
    sliding: Floats
    """(q,) thickness of a skin that slides; 0 where there is none."""

    @property
    def young(self) -> Floats:
        """(q,) Young's modulus."""
        return self.mu * (3 * self.lam + 2 * self.mu) / (self.lam + self.mu)

    @property
    def poisson(self) -> Floats:
        """(q,) Poisson's ratio."""
        return self.lam / (2 * (self.lam + self.mu))


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
    return MaterialField(*(locked(np.ascontiguousarray(column)) for column in values.T))


def _row(material: Material) -> tuple[float, ...]:
    return (*material.lame, material.density, material.sliding)


def _layer(layer: object) -> tuple[Region, Material]:
    if isinstance(layer, (tuple, list)) and len(layer) == 2 and isinstance(layer[1], Material):
        return layer[0], layer[1]
    raise InputError(f"material is {layer!r:.60}; expected a Material, or pairs of a region and a Material")


def region_weight(positions: Floats, region: Region, mesh: Mesh | None, skeleton: Skeleton | None) -> Floats:
    """(q,) the weight, from 0 to 1, that a region has at points (q, 3)."""
    names = [] if mesh is None else region_names(mesh)
    if not isinstance(region, str) or region in names:
        return regions.region_weight(positions, region, mesh)
    joints = () if skeleton is None else skeleton.names
    if skeleton is None or region not in joints:
        raise unknown_region(region, [*names, *joints], "vertex group, face label, colour or joint")
    return (nearest_joint(positions, skeleton) == skeleton.index(region)).astype(np.float64)


def nearest_joint(positions: Floats, skeleton: Skeleton) -> Ints:
    """(q,) the joint whose bones come nearest to each point; a joint without bones is a point."""
    starts, stops, owner = rest_segments(skeleton)
    return owner[nearest_segment(positions, starts, stops)[0]]
