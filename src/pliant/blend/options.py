"""How one shape is solved for, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, get_args

import numpy as np

from pliant.blend.equilibrium import Method, Watch
from pliant.errors import InputError


@dataclass(frozen=True)
class Options:
    """How one shape is solved for."""

    method: Method = "lbfgs"
    accuracy: Any = 1e-4
    iterations: int | None = None
    watch: Watch | None = None

    def checked(self) -> Options:
        """The same, or an error that names what is wrong."""
        if not (isinstance(self.accuracy, Real) and 0 < float(self.accuracy) < 1):
            raise InputError(
                f"accuracy is {self.accuracy!r}; expected a number between 0 and 1, such as 1e-4", argument="accuracy"
            )
        if self.method not in get_args(Method):
            raise InputError(f'method is "{self.method}"; expected lbfgs, newton or paper', argument="method")
        most = self.iterations
        if most is not None and not (isinstance(most, (int, np.integer)) and most >= 1):
            raise InputError(
                f"iterations is {most!r}; expected a whole number, 1 or more, or None", argument="iterations"
            )
        return self


def listed(pulls: Any) -> list[Any]:
    """Pulls as a list; one by itself is one."""
    if not isinstance(pulls, Iterable):
        return [pulls]
    return list(pulls)
