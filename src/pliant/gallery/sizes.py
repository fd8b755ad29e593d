"""The range of vertex counts of gallery shapes."""

from __future__ import annotations

from numbers import Real
from typing import Any

from pliant.core.errors import InputError

FEWEST_VERTICES, MOST_VERTICES = 500, 200_000


def check_count(n: Any, what: str) -> None:
    """Refuse a number of vertices outside the range of the gallery's shapes."""
    low, high = FEWEST_VERTICES, MOST_VERTICES
    if isinstance(n, bool) or not isinstance(n, Real) or not low <= float(n) <= high or float(n) % 1:
        raise InputError(f"{what}: {n!r:.60} vertices asked for; expected a whole number from {low} to {high}")
