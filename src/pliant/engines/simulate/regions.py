"""Which material holds where: parts of a body by name, and what each place is made of.

A region is one of

- the name of a vertex group: the flesh nearest to vertices whose weight is above one half;
- the name of a label of the faces (an object, group or material of the file): the flesh nearest to those faces;
- the name of a joint: the flesh that is nearer to its bones, to its children or its own end, than to any other;
- a `pliant.Sphere`;
- None: everywhere.

Where regions overlap, the last one named holds. What no region covers is made of the default `Material`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError, about_argument
from pliant.core.regions import Sphere
from pliant.core.rotations import rotate
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points, closest_names
from pliant.core.values import Value, locked
from pliant.engines.simulate.material import Material
from pliant.geometry.segments import nearest_segment
from pliant.geometry.spatial import SurfaceTree

Region = str | Sphere | None
Materials = Material | Sequence[tuple[Region, Material]]


@dataclass(frozen=True, eq=False)
class MaterialField(Value):
    """What each of q places is made of."""

    lam: Floats
    """(q,) Lamé's λ."""
    mu: Floats
    """(q,) Lamé's μ."""
    density: Floats
    """(q,)"""


def material_at(
    points: ArrayLike,
    material: Materials,
    *,
    mesh: Mesh | None = None,
    skeleton: Skeleton | None = None,
) -> MaterialField:
    """What places (q, 3) are made of: one material, or a sequence of (region, material), the last that holds."""
    positions = as_points(points)
    layers: Sequence[tuple[Region, Material]] = [(None, material)] if isinstance(material, Material) else material
    values = np.tile(_row(Material()), (len(positions), 1))
    for k, layer in enumerate(layers):
        region, stuff = _layer(layer)
        with about_argument("material", k):
            values[_members(positions, region, mesh, skeleton)] = _row(stuff)
    lam, mu, density = (locked(np.ascontiguousarray(column)) for column in values.T)
    return MaterialField(lam, mu, density)


def _row(material: Material) -> tuple[float, float, float]:
    return (*material.lame, material.density)


def _layer(layer: object) -> tuple[Region, Material]:
    if isinstance(layer, (tuple, list)) and len(layer) == 2 and isinstance(layer[1], Material):
        return layer[0], layer[1]
    raise InputError(f"material is {layer!r:.60}; expected a Material, or pairs of a region and a Material")


def _members(positions: Floats, region: Region, mesh: Mesh | None, skeleton: Skeleton | None) -> NDArray[np.bool_]:
    """(q,) which places a region holds."""
    if region is None:
        return np.ones(len(positions), dtype=bool)
    if isinstance(region, Sphere):
        return np.linalg.norm(positions - np.array(region.centre), axis=1) <= region.radius
    if not isinstance(region, str):
        raise InputError(f"region is {region!r:.40}; expected a name, a Sphere, or None for everywhere")
    if mesh is not None and region in mesh.vertex_groups:
        return _near_group(positions, mesh, mesh.vertex_groups[region])
    labels = mesh.labels if mesh is not None else {}
    for label in labels.values():
        if mesh is not None and region in label.names:
            wanted = label.index == label.names.index(region)
            return wanted[mesh.triangle_polygon[SurfaceTree(mesh).closest(positions).triangle]]
    if skeleton is not None and region in skeleton.names:
        return nearest_joint(positions, skeleton) == skeleton.index(region)
    known = [*(mesh.vertex_groups if mesh is not None else ()), *(skeleton.names if skeleton is not None else ())]
    known += [name for label in labels.values() for name in label.names]
    raise InputError(f'no vertex group, face label or joint is called "{region}"; {closest_names(region, known)}')


def _near_group(positions: Floats, mesh: Mesh, weights: Floats) -> NDArray[np.bool_]:
    """(q,) whether the nearest place of the surface has a weight above one half."""
    foot = SurfaceTree(mesh).closest(positions)
    return np.einsum("qk,qk->q", foot.barycentric, weights[mesh.triangles[foot.triangle]]) > 0.5


def nearest_joint(positions: Floats, skeleton: Skeleton) -> Ints:
    """(q,) the joint whose bones come nearest to each place; a joint without bones is a point."""
    joints, quaternions = skeleton.rest_pose().world()
    starts, stops, owner = [joints[skeleton.bones[:, 0]]], [joints[skeleton.bones[:, 1]]], [skeleton.bones[:, 0]]
    leaves = np.setdiff1d(np.arange(len(skeleton)), skeleton.bones[:, 0])
    ends = np.array(joints)
    for joint, end in skeleton.ends.items():
        ends[joint] = joints[joint] + rotate(quaternions[joint], end)
    owner.append(leaves)
    starts.append(joints[leaves])
    stops.append(ends[leaves])
    # From the last one on: what lies beyond a joint without bones is its own, not its parent's.
    a, b = (np.concatenate(parts)[::-1] for parts in (starts, stops))
    return np.concatenate(owner)[::-1][nearest_segment(positions, a, b)[0]]
