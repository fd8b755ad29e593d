"""The range of vertex counts of gallery shapes, and the last shapes that were made."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from pliant.core.caching import ResultCache
from pliant.core.errors import InputError

FEWEST_VERTICES, MOST_VERTICES = 500, 1_000_000
LARGEST_KEPT, MOST_KEPT = 20_000, 12
"""Vertices of the largest shape that is kept, and how many of one function are."""
Sizes = ParamSpec("Sizes")
Made = TypeVar("Made")


def check_count(n: Any, what: str) -> None:
    """Refuse a number of vertices outside the range of the gallery's shapes."""
    low, high = FEWEST_VERTICES, MOST_VERTICES
    if isinstance(n, bool) or not isinstance(n, Real) or not low <= float(n) <= high or float(n) % 1:
        raise InputError(f"{what}: {n!r:.60} vertices asked for; expected a whole number from {low} to {high}")


def kept(make: Callable[Sizes, Made]) -> Callable[Sizes, Made]:
    """Gives the last few shapes again, unless they are large, instead of making them anew: shapes never change."""
    last: ResultCache[Made] = ResultCache(MOST_KEPT)

    @wraps(make)
    def shape(*given: Sizes.args, **named: Sizes.kwargs) -> Made:
        small = all(type(value) is int and value <= LARGEST_KEPT for value in (*given, *named.values()))
        if not small:
            return make(*given, **named)
        return last.get((make.__qualname__, given, tuple(sorted(named.items()))), lambda: make(*given, **named))

    return shape
