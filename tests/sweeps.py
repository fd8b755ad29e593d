"""Sweeps of which `make test` runs a part, and `make slow` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for `pytest.mark.parametrize`: the first of each `step` are in `make test`."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.slow] * (number % step > 0))
        for number, case in enumerate(cases)
    ]
