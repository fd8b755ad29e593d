"""The sizes that built-in shapes come in."""

from __future__ import annotations

from numbers import Real
from typing import Any

from pliant.core.errors import InputError

FEWEST, MOST = 500, 200_000


def check_count(n: Any, what: str) -> None:
    """Refuse a number of vertices that no built-in shape is made for."""
    if isinstance(n, bool) or not isinstance(n, Real) or not FEWEST <= float(n) <= MOST or float(n) % 1:
        raise InputError(f"{what}: {n!r:.60} vertices asked for; expected a whole number from {FEWEST} to {MOST}")
