"""Pulls: position constraints and forces on single vertices (Ma et al. 2011, Section 4 and Figure 5).

A vertex pulled to a position is fixed there, as a boundary condition. A force f adds ``-f · x`` to the energy. Spring
constants are inverse lengths, so a force has no unit: 1 stretches a single spring by three quarters of its length
(``1 / (1 + μ)``), in the paper's model by all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import as_array

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes


@dataclass(frozen=True, eq=False)
class Pull:
    """A pull on one vertex: `to` a position (x, y, z), or with a `force` (x, y, z), both in the world."""

    vertex: int
    to: ArrayLike | None = None
    force: ArrayLike | None = None

    def __post_init__(self) -> None:
        if (self.to is None) == (self.force is None):
            raise InputError(
                "a pull needs a position or a force: Pull(vertex, to=(x, y, z)) or Pull(vertex, force=(x, y, z))"
            )
        if isinstance(self.vertex, bool) or not isinstance(self.vertex, (int, np.integer)):
            raise InputError(f"a pull's vertex is {self.vertex!r:.60}; expected a vertex number, counted from 0")
        what, value = ("to", self.to) if self.to is not None else ("force", self.force)
        array = as_array(value, f"{what} of a pull", np.float64) if value is not None else np.zeros(0)
        if array.shape != (3,) or not np.isfinite(array).all():
            raise InputError(f"{what} of a pull is {value!r:.60}; expected three finite numbers, x, y and z")
        object.__setattr__(self, what, tuple(array.tolist()))


@dataclass(frozen=True, eq=False)
class ExternalLoad:
    """Position constraints and forces on the network, in the world."""

    vertices: Ints
    """(k,) vertices that are fixed at `positions`."""
    positions: Floats
    """(k, 3)"""
    force: Floats | None
    """(n, 3) external force, or None."""
    carried: Ints | None = None
    """(k,) where vertices carry a fine surface: the fine ones that `positions` are meant for."""

    def __bool__(self) -> bool:
        return len(self.vertices) > 0 or self.force is not None


def checked_pulls(pulls: Iterable[Pull], count: int) -> Sequence[Pull]:
    """Check pulls on a mesh of `count` vertices."""
    if not isinstance(pulls, Iterable):
        raise InputError(f"pulls are {pulls!r:.60}; expected a list of Pull(vertex, to=...) or Pull(vertex, force=...)")
    taken = list(pulls)
    for k, pull in enumerate(taken):
        if not isinstance(pull, Pull):
            raise InputError(f"pulls hold {pull!r:.60}; expected Pull(vertex, to=...) or Pull(vertex, force=...)")
        if not 0 <= pull.vertex < count:
            raise InputError(
                f"a pull names vertex {pull.vertex}; the mesh has {count}, numbered from 0",
                argument=("pulls", k, "vertex"),
            )
    return taken


def read_load(rig: Blendshapes, pulls: Iterable[Pull], pinned: ArrayLike | None) -> ExternalLoad:
    """The load on a rig's network of pulls and of given positions of pins."""
    vertices, positions, meant, force = [], [], [], None
    numbers_of = rig._weld if rig.detail is None else rig.detail.weld
    if pinned is not None:
        at = as_array(pinned, "pinned positions", np.float64)
        if at.shape != (len(rig._pins), 3) or not np.isfinite(at).all():
            raise InputError(
                f"pinned has shape {at.shape}; expected finite ({len(rig._pins)}, 3), one for each pin",
                argument="pinned",
            )
        vertices += list(rig._pins)
        positions += list(at)
        meant += list(rig._pins if rig.detail is None else rig.detail.vertices[rig._pins])
    for k, pull in enumerate(checked_pulls(pulls, len(rig.shapes.base.points))):
        vertex = rig._weld.index[pull.vertex]
        if not rig.body.grounded[rig.body.frames.part[vertex]]:
            raise InputError(
                f"vertex {pull.vertex} is pulled, but its part of the mesh has no fixed vertices; give pins there, or "
                "an anchor at a point (x, y, z) of it",
                argument=("pulls", k),
            )
        if pull.to is not None:
            vertices.append(vertex)
            positions.append(np.array(pull.to))
            meant.append(numbers_of.index[pull.vertex])
        elif rig.body.network.fixed[vertex]:
            raise InputError(
                f"a force pulls vertex {pull.vertex}, which is fixed: a pin, or a vertex that no shape moves; "
                "pull another vertex, or pull it to a position",
                argument=("pulls", k),
            )
        elif np.any(pull.force):
            force = np.zeros((rig.body.network.count, 3)) if force is None else force
            force[vertex] += pull.force
    numbers, first = np.unique(np.array(vertices, dtype=np.int64), return_index=True)
    table = np.array(positions).reshape(-1, 3)
    at_once = np.searchsorted(numbers, vertices)
    if rig.detail is not None and (np.array(meant)[first][at_once] != meant).any():
        raise InputError(
            "two vertices are pulled, and one vertex of the coarse body carries both; pull one of them, or solve for "
            'more vertices: coarse="none", or a larger number',
            argument="pulls",
        )
    if (table != table[first][at_once]).any():  # both sides of a seam may be named
        raise InputError(
            "one vertex is given two positions, by pulls, pins or both; expected one for each vertex", argument="pulls"
        )
    carried = None if rig.detail is None else np.array(meant, dtype=np.int64)[first]
    return ExternalLoad(numbers, table[first], force, carried)


def listed(pulls: Any) -> list[Any]:
    """Pulls as a list; a single pull becomes a list of one."""
    if not isinstance(pulls, Iterable):
        return [pulls]
    return list(pulls)
