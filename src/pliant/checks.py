"""What values ask of what they are made from: finite points, whole numbers that refer to something, a frame rate.

Each check gives the checked array back, read-only, or says in an `InputError` what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import InputError
from pliant.topology import Floats, Ints
from pliant.values import as_array, locked, owned


def as_points(points: ArrayLike, what: str = "points") -> Floats:
    """Check and convert to a read-only (n, 3) float64 array of finite coordinates."""
    array = owned(points, what, np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"{what} have shape {array.shape}; expected (n, 3)")
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(np.flatnonzero(~finite.all(axis=1))[0])
        raise InputError(f"{what}: point {bad} is {array[bad].tolist()}; expected finite coordinates")
    return array


def check_indices(indices: NDArray[Any], count: int, what: str) -> None:
    """Vertex numbers have to be those of `count` points."""
    if indices.size and (indices.min() < 0 or indices.max() >= count):
        bad = int(indices[(indices < 0) | (indices >= count)].flat[0])
        raise InputError(f"{what} refer to point {bad}; there are {count} points, numbered from 0")


def index_table(values: ArrayLike, width: int, what: str) -> Ints:
    """Check and convert to a read-only (m, width) table of vertex numbers."""
    table = as_array(values, what)
    if not table.size:
        return locked(np.zeros((0, width), dtype=np.int64))
    if table.ndim != 2 or table.shape[1] != width or not np.issubdtype(table.dtype, np.integer):
        raise InputError(f"{what} have shape {table.shape} of {table.dtype}; expected (m, {width}) vertex numbers")
    return owned(table, what, np.int64)


def whole_numbers(values: ArrayLike, what: str) -> Ints:
    """Check and convert to a read-only (m,) list of whole numbers."""
    index = as_array(values, what)
    if index.ndim != 1 or (index.size and not np.issubdtype(index.dtype, np.integer)):
        raise InputError(f"{what} have shape {index.shape} of {index.dtype}; expected (m,) whole numbers")
    return owned(index, what, np.int64)


def check_partition(index: NDArray[Any], count: int, values: int, what: str, per: str) -> None:
    """One position in a list of `values` for each of `count` corners or faces."""
    if len(index) != count:
        raise InputError(f"{what} have {len(index)} entries; expected one for each of {count} {per}")
    if count and (index.min() < 0 or index.max() >= values):
        bad = int(index[(index < 0) | (index >= values)][0])
        raise InputError(f"{what} refer to entry {bad} of {values}, numbered from 0")


def check_attributes(attributes: Mapping[str, NDArray[Any]], count: int, what: str) -> None:
    """Per-vertex values have one row for each of `count` points."""
    for name, values in attributes.items():
        if len(np.atleast_1d(values)) != count:
            raise InputError(
                f'{what} "{name}" has {len(np.atleast_1d(values))} rows; expected one for each of {count} points'
            )


def frame_rate(fps: Any) -> float:
    """A positive number of frames a second."""
    if not isinstance(fps, Real) or not 0 < float(fps) < np.inf:
        raise InputError(f"fps is {fps!r}; expected a positive number of frames a second", argument="fps")
    return float(fps)


def closest_names(name: str, known: Iterable[str]) -> str:
    """What to say to a name that is not known: those that are most like it, or some of those there are."""
    names = list(known)
    lower = {one.lower(): one for one in reversed(names)}
    near = [lower[word] for word in get_close_matches(name.lower(), list(lower), cutoff=0.3)]
    if near:
        return f"the closest are {', '.join(near)}"
    more = f", ... ({len(names)} in all)" if len(names) > 12 else ""
    return f"there are {', '.join(names[:12])}{more}" if names else "there are none"
