"""The sizes that built-in shapes come in."""

from __future__ import annotations

from pliant.errors import InputError

FEWEST, MOST = 500, 200_000


def check_count(n: int, what: str) -> None:
    """Refuse a number of vertices that no built-in shape is made for."""
    if isinstance(n, bool) or not FEWEST <= n <= MOST or n != int(n):
        raise InputError(f"{what}: {n} vertices asked for; expected a whole number from {FEWEST} to {MOST}")
