"""Validation of input arrays and numbers: finite points, indices in range, a frame rate.

Each check returns the checked array, read-only, or raises an `InputError` that names what is wrong.

Points that are not finite are refused: nothing can be computed with them. What only decorates a shape (colours,
normals, UVs, weights of vertex groups, colours of materials) is repaired where it enters, with a `RepairWarning` that
counts what was replaced by 0; so what draws or writes it need not look again. Attributes of other names may hold
anything: NaN often stands for "not measured".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import hypot
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError, RepairWarning
from pliant.core.topology import Floats, Ints
from pliant.core.values import as_array, locked, owned, owned_table

SINGLE_MAXIMUM = float(np.finfo(np.float32).max)

LARGEST_DIAGONAL = 1e20
"""Diagonal, in any unit, up to which squares, cubes and their products do not overflow; nor vanish, down to 1 / it."""
ROUNDING_TOLERANCE = 1e-7
"""What double precision may round off of coordinates far from the origin, over the diagonal."""


def as_points(points: ArrayLike, what: str = "points") -> Floats:
    """Check and convert to a read-only (n, 3) float64 array of finite coordinates."""
    if isinstance(points, (list, tuple)) and [np.ndim(part) for part in points if isinstance(part, np.ndarray)] == [
        2,
        2,
    ]:
        raise InputError(f"{what} are two arrays; expected points (n, 3), or a mesh: pliant.Mesh(points, faces)")
    array = owned(points, what, np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"{what} have shape {array.shape}; expected (n, 3)")
    found = not_finite(array, "point")
    if found is not None:
        raise InputError(f"{what}: {found[1]}")
    return array


def not_finite(points: Floats, what: str, when: str = "") -> tuple[int, str] | None:
    """The first of some points (n, d) with NaN or infinity, and what to say of it; None if all are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(points.sum()):  # quicker than to look at each
            return None
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if not len(bad):
        return None
    others = f"; {len(bad):,} of {len(points):,} are not finite" if len(bad) > 1 else ""
    k = int(bad[0])
    return k, f"{what} {k} is {points[k].tolist()}{when} (numbered from 0{others}); expected finite coordinates"


def as_many_points(points: ArrayLike, count: int, owner: str) -> Floats:
    """As `as_points`, if there are `count` of them, as `owner` has."""
    array = as_points(points)
    if len(array) != count:
        raise InputError(f"got {len(array)} points; {owner} has {count}")
    return array


def check_extent(points: Floats, what: str, *, poses: Floats | None = None, largest: float = LARGEST_DIAGONAL) -> None:
    """Refuse shapes too small, too large, or too far from the origin to be represented in double precision.

    points: (n, 3), one or more. poses: (..., 3) the positions that they move to, checked alike.
    largest: diagonal that the engine can compute with; the smallest is 1 / it.
    """
    with np.errstate(over="ignore"):
        sides = np.ptp(points, axis=0).tolist()
    if not any(sides):
        raise InputError(f"{what} has {len(points)} points at one position; expected points that are apart")
    size = hypot(*sides)  # unlike a sum of squares, of any size
    if not 1 / largest <= size <= largest:
        raise InputError(
            f"{what} is {size:.3g} units across; expected {1 / largest:g} to {largest:g}: scale it to a sensible unit"
        )
    farthest = float(np.abs(points if poses is None else poses).max())
    if farthest * np.finfo(np.float64).eps > ROUNDING_TOLERANCE * size:
        raise InputError(
            f"{what} is {size:.3g} units across but up to {farthest:.3g} from the origin, where double precision has "
            "too few digits for its form; move it to the origin before it is saved"
        )


def check_indices(indices: NDArray[Any], count: int, what: str) -> None:
    """Refuse vertex numbers outside of `count` points."""
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


def checked_attributes(
    attributes: Mapping[str, ArrayLike] | None, count: int, what: str = "attribute", *, finite: bool = False
) -> Mapping[str, NDArray[Any]]:
    """A read-only table of values, one row for each of `count` points; all `finite`, or only those of "color"."""
    if attributes is not None and not isinstance(attributes, Mapping):
        raise InputError(f"{what}s are a {type(attributes).__name__}; expected a dictionary from names to arrays")
    table = {}
    for name, values in owned_table(attributes, what).items():
        title = f'{what} "{name}"'
        rows = len(np.atleast_1d(values))
        if rows != count:
            raise InputError(f"{title} has {rows} rows; expected one for each of {count} points")
        if name == "color" and not finite and not (values.ndim == 2 and values.shape[1] in (3, 4)):
            raise InputError(f"{title} has shape {values.shape}; expected ({count}, 3) or ({count}, 4)")
        table[name] = finite_values(values, title) if finite or name == "color" else values
    return MappingProxyType(table)


def finite_values(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The array itself if single precision, as in most files, can represent all its numbers; else a copy with 0 instead
    of the others, and a warning.
    """
    if values.dtype.kind not in "biuf":
        raise InputError(f"{what} holds {values.dtype}; expected numbers")
    usable = np.abs(values) <= SINGLE_MAXIMUM
    if usable.all():
        return values
    bad = values.size - int(np.count_nonzero(usable))
    warn(f"{what}: {bad:,} of {values.size:,} values are not finite; replaced by 0", RepairWarning, stacklevel=3)
    return locked(np.where(usable, values, 0).astype(values.dtype))


def expect(value: Any, kinds: type | tuple[type, ...], what: str, hint: str = "") -> None:
    """Refuse a value that is not of one of these types; `hint` adds to what was expected."""
    if not isinstance(value, kinds):
        names = [kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
        expected = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        raise InputError(f"{what} is a {type(value).__name__}; expected a {expected}{hint}")


def positive_number(value: Any, what: str) -> float:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{what} is {value!r:.60}; expected a positive number")
    return float(value)


def whole_number(value: Any, what: str, low: int, high: int, *, argument: str | tuple[int | str, ...] = ()) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise InputError(
            f"{what} is {value!r:.60}; expected a whole number from {low:,} to {high:,}", argument=argument
        )
    return int(value)


def name_list(names: Any, what: str) -> tuple[str, ...]:
    """A tuple of texts."""
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} are {names!r:.60}; expected a list of texts")
    return tuple(names)


def target_path(path: Any) -> Path:
    """Where to write."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path is {path!r:.60}; expected the name of a file to write")
    return Path(path)


def frame_rate(fps: Any) -> float:
    """A positive number of frames a second."""
    if not isinstance(fps, Real) or not 0 < float(fps) < np.inf:
        raise InputError(f"fps is {fps!r:.60}; expected a positive number of frames a second", argument="fps")
    return float(fps)


def closest_names(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the names that are most like it, or some of those there are."""
    names = list(known)
    lower = {one.lower(): one for one in reversed(names)}
    near = [lower[word] for word in get_close_matches(name.lower(), list(lower), cutoff=0.3)]
    if near:
        return f"the closest are {', '.join(near)}"
    more = f", ... ({len(names)} in all)" if len(names) > 12 else ""
    return f"there are {', '.join(names[:12])}{more}" if names else "there are none"


def vector(values: Any, what: str) -> Floats:
    """(3,) finite numbers, read-only."""
    array = as_array(values, what, np.float64, copy=True)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise InputError(f"{what} is {np.array2string(array, threshold=6):.60}; expected three finite numbers")
    return locked(array)
