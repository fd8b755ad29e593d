"""Pulls: vertices dragged to a place or with a force while the shape blends (Ma et al. 2011, Section 4 and Figure 5).

A vertex pulled to a place is one more boundary condition: held there, the equilibrium of all others follows. A force f
adds ``-f · x`` to the energy. Spring constants are inverse lengths, so a force has no unit: 1 stretches a single spring
to twice its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pliant.errors import InputError
from pliant.topology import Floats, Ints
from pliant.values import as_array


@dataclass(frozen=True, eq=False)
class Pull:
    """One vertex dragged: `to` a place (x, y, z), or with a `force` (x, y, z), both in the world."""

    vertex: int
    to: ArrayLike | None = None
    force: ArrayLike | None = None

    def __post_init__(self) -> None:
        if (self.to is None) == (self.force is None):
            raise InputError(
                "a pull needs a place or a force: Pull(vertex, to=(x, y, z)) or Pull(vertex, force=(x, y, z))"
            )
        if isinstance(self.vertex, bool) or not isinstance(self.vertex, (int, np.integer)):
            raise InputError(f"a pull's vertex is {self.vertex!r}; expected a vertex number, counted from 0")
        what, value = ("to", self.to) if self.to is not None else ("force", self.force)
        array = as_array(value, f"{what} of a pull", np.float64) if value is not None else np.zeros(0)
        if array.shape != (3,) or not np.isfinite(array).all():
            raise InputError(f"{what} of a pull is {value!r}; expected three finite numbers, x, y and z")
        object.__setattr__(self, what, tuple(array.tolist()))


@dataclass(frozen=True, eq=False)
class Load:
    """What acts on the network besides its springs, in the base's frame."""

    vertices: Ints
    """(k,) vertices that are held at `places`."""
    places: Floats
    """(k, 3)"""
    force: Floats | None
    """(n, 3) external force, or None."""

    def __bool__(self) -> bool:
        return len(self.vertices) > 0 or self.force is not None


def checked_pulls(pulls: Iterable[Pull], count: int) -> Sequence[Pull]:
    """Pulls of a mesh of `count` vertices."""
    if not isinstance(pulls, Iterable):
        raise InputError(f"pulls are {pulls!r}; expected a list of Pull(vertex, to=...) or Pull(vertex, force=...)")
    taken = list(pulls)
    for pull in taken:
        if not isinstance(pull, Pull):
            raise InputError(f"pulls hold {pull!r}; expected Pull(vertex, to=...) or Pull(vertex, force=...)")
        if not 0 <= pull.vertex < count:
            raise InputError(f"a pull names vertex {pull.vertex}; the mesh has {count}, numbered from 0")
    return taken
