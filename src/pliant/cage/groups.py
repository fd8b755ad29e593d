"""Groups of a source's points: by number, within a sphere, by the name of a vertex group, or near-rigid clusters.

`rigid_groups` divides the points of a sequence into connected groups that each move nearly as one rigid piece. A group
k has the rigid motion (R_kf, t_kf) that fits its points best in every frame f, and a point i of it the error

    e_i = Σ_f |R_kf q_i + t_kf - x_if|².

Groups grow from seeds over the graph of neighbours, always taking the cheapest point next, and each then starts again
from its best fitting point (Cohen-Steiner, Alliez and Desbrun 2004, with rigid motions as proxies). The first group is
everything; each further one starts at the worst fitting point of all, until there are as many as asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from pliant.checks import as_points, check_indices, whole_numbers
from pliant.errors import InputError
from pliant.shapes import Mesh, Shape
from pliant.topology import Floats, Ints
from pliant.values import Value, as_array

NEIGHBOURS = 8
"""Of a point, where no faces or tetrahedra join it to others."""
MOST_KEYS = 24
"""Frames that the groups are found from; of a longer sequence, those that differ most."""


@dataclass(frozen=True, eq=False)
class Sphere(Value):
    """The points at rest within `radius` of `centre`."""

    centre: Floats
    """(3,)"""
    radius: float

    def __post_init__(self) -> None:
        centre = as_points(as_array(self.centre, "the sphere's centre", np.float64).reshape(1, -1), "sphere")[0]
        if not (np.isfinite(self.radius) and self.radius > 0):
            raise InputError(f"the sphere's radius is {self.radius}; expected a positive number")
        object.__setattr__(self, "centre", centre)

    def __repr__(self) -> str:
        return f"Sphere({self.centre.tolist()}, {self.radius:g})"


Group = ArrayLike | Sphere | str
"""Numbers of points (or one True or False a point), a sphere around some, or the name of the mesh's vertex group."""


def named_groups(groups: Mapping[str, Group] | Sequence[Group] | Group) -> dict[str, Group]:
    """Groups by name; those without are numbered."""
    if isinstance(groups, Mapping):
        return dict(groups)
    if isinstance(groups, (Sphere, str)):
        return {groups if isinstance(groups, str) else "group 0": groups}
    if not isinstance(groups, (Sequence, np.ndarray)) or not len(groups):
        raise InputError(f"groups are {groups!r:.60}; expected one or more lists of vertices, spheres or group names")
    if all(isinstance(group, (int, np.integer, np.bool_)) for group in groups):
        return {"group 0": np.asarray(groups)}
    return {group if isinstance(group, str) else f"group {k}": group for k, group in enumerate(groups)}


def members(group: Group, name: str, shape: Shape, rest: Floats) -> tuple[Ints, Floats]:
    """Numbers of a group's points, and how much each counts."""
    if isinstance(group, str):
        return _vertex_group(group, shape)
    if isinstance(group, Sphere):
        inside = np.flatnonzero(np.linalg.norm(rest - group.centre, axis=1) <= group.radius)
        nearest = float(np.linalg.norm(rest - group.centre, axis=1).min(initial=np.inf))
        if not len(inside):
            raise InputError(f'group "{name}": {group} holds no point; the nearest is {nearest:.4g} from its centre')
        return inside, np.ones(len(inside))
    numbers = as_array(group, f'group "{name}"')
    if numbers.dtype == bool and numbers.shape == (len(rest),):
        numbers = np.flatnonzero(numbers)
    numbers = np.unique(whole_numbers(numbers, f'group "{name}"'))
    if not len(numbers):
        raise InputError(f'group "{name}" is empty; expected two or more points')
    check_indices(numbers, len(rest), f'group "{name}"')
    return numbers, np.ones(len(numbers))


def _vertex_group(name: str, shape: Shape) -> tuple[Ints, Floats]:
    table = shape.vertex_groups if isinstance(shape, Mesh) else {}
    if name not in table:
        near = get_close_matches(name, list(table), cutoff=0.0)
        there = f"the closest are {', '.join(near)}" if near else "the shape has none"
        raise InputError(f'no vertex group is called "{name}"; {there}')
    numbers = np.flatnonzero(table[name] > 0)
    if not len(numbers):
        raise InputError(f'vertex group "{name}" has no vertex with a weight above 0')
    return numbers, table[name][numbers]
