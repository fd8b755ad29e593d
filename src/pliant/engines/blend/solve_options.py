"""Solver options of a single shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pliant.engines.blend.options import BlendOptions, Method

if TYPE_CHECKING:
    from pliant.engines.blend.equilibrium import Watch


@dataclass(frozen=True)
class SolveOptions:
    """Solver options of a single shape, checked."""

    method: Method = BlendOptions.method
    accuracy: float = BlendOptions.accuracy
    iterations: int | None = BlendOptions.iterations
    watch: Watch | None = None

    @classmethod
    def of(cls, method: Method, accuracy: float, iterations: int | None, watch: Watch | None = None) -> SolveOptions:
        """Check and collect them."""
        return cls(**BlendOptions.check(method=method, accuracy=accuracy, iterations=iterations), watch=watch)


def listed(pulls: Any) -> list[Any]:
    """Pulls as a list; a single pull becomes a list of one."""
    if not isinstance(pulls, Iterable):
        return [pulls]
    return list(pulls)
