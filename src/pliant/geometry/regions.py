"""Parts of a surface by name, and how much each place is in one of them.

A region gives every place a weight from 0 to 1. It is one of

- the name of a vertex group: as it is painted;
- the name of a label of the faces (an object, group or material of the file): 1 on those faces;
- ``"color"``, the brightness of the vertex colours, or a channel of them: ``"color.red"``, ``.green``, ``.blue``,
  ``.alpha``;
- a `pliant.Sphere`: 1 inside;
- a `GreyMap`: the brightness of an image where the surface's UVs put it;
- None: 1 everywhere.

A place that is not on the surface has the weight of the nearest one that is.
"""

from __future__ import annotations

import numpy as np

from pliant.core.errors import InputError
from pliant.core.regions import Sphere
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.core.validation import closest_names
from pliant.geometry.grey_map import GreyMap
from pliant.geometry.spatial import SurfaceTree

Region = str | Sphere | GreyMap | None

COLOR = "color"
COLOR_CHANNELS = ("red", "green", "blue", "alpha")
BRIGHTNESS = (0.2126, 0.7152, 0.0722)
"""Of linear red, green and blue (Rec. 709)."""


def region_weight(positions: Floats, region: Region, mesh: Mesh | None) -> Floats:
    """(q,) the weight of a region at places (q, 3)."""
    if region is None:
        return np.ones(len(positions))
    if isinstance(region, Sphere):
        return (np.linalg.norm(positions - np.array(region.centre), axis=1) <= region.radius).astype(np.float64)
    if not isinstance(region, (str, GreyMap)):
        raise InputError(f"region is {region!r:.40}; expected a name, a Sphere, a GreyMap, or None for everywhere")
    if isinstance(region, GreyMap):
        if mesh is None:
            raise InputError("a map needs a mesh with UVs; the shape has none")
        return region.at(positions, mesh)
    if mesh is None or region not in region_names(mesh):
        raise unknown_region(region, [] if mesh is None else region_names(mesh), "vertex group, face label or colour")
    foot = SurfaceTree(mesh).closest(positions)
    painted = _painted(mesh, region)
    if painted is not None:
        weights = np.einsum("qk,qk->q", foot.barycentric, painted[mesh.triangles[foot.triangle]])
        return np.clip(weights, 0, 1)
    label = next(label for label in mesh.labels.values() if region in label.names)
    wanted = label.index == label.names.index(region)
    return wanted[mesh.triangle_polygon[foot.triangle]].astype(np.float64)


def vertex_weight(mesh: Mesh, region: Region) -> Floats:
    """(n,) the weight of a region at a mesh's own vertices; one that two parts share is in both."""
    painted = _painted(mesh, region) if isinstance(region, str) else None
    if painted is not None:
        return np.clip(painted, 0, 1)
    for label in mesh.labels.values():
        if isinstance(region, str) and region in label.names and region not in mesh.vertex_groups:
            inside = np.zeros(len(mesh.points))
            inside[mesh.polygons.corners[(label.index == label.names.index(region))[mesh.polygons.of_corner]]] = 1
            return inside
    return region_weight(mesh.points, region, mesh)


def region_names(mesh: Mesh) -> list[str]:
    """What regions of a mesh may be called."""
    color = mesh.attributes.get(COLOR)
    channels = [] if color is None else [COLOR, *(f"{COLOR}.{name}" for name in COLOR_CHANNELS[: color.shape[1]])]
    return [*mesh.vertex_groups, *(name for label in mesh.labels.values() for name in label.names), *channels]


def unknown_region(name: str, known: list[str], what: str) -> InputError:
    """An error about a name that no region has."""
    return InputError(f'no {what} is called "{name}"; {closest_names(name, known)}')


def _painted(mesh: Mesh, region: str) -> Floats | None:
    """(n,) the values of a vertex group or colour; None if it is neither."""
    if region in mesh.vertex_groups:
        return mesh.vertex_groups[region]
    color = mesh.attributes.get(COLOR)
    labelled = any(region in label.names for label in mesh.labels.values())
    if color is None or labelled or region not in region_names(mesh):
        return None
    values = color.astype(np.float64)
    if region == COLOR:
        return np.asarray(values[:, :3] @ BRIGHTNESS)
    return np.asarray(values[:, COLOR_CHANNELS.index(region.removeprefix(f"{COLOR}."))])
