"""Compiled vector steps of conjugate gradients; see `pliant.elastic.conjugate`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel

Singles = NDArray[np.float32]


@kernel
def dot(a: Singles, b: Singles) -> float:
    """Σ a b over the rows of b, in double precision."""
    total = 0.0
    for i in range(len(b)):
        total += float(a[i, 0]) * b[i, 0] + float(a[i, 1]) * b[i, 1] + float(a[i, 2]) * b[i, 2]
    return total


@kernel
def largest(a: Singles) -> float:
    """The longest row."""
    most = np.float32(0)
    for i in range(len(a)):
        most = max(most, a[i, 0] * a[i, 0] + a[i, 1] * a[i, 1] + a[i, 2] * a[i, 2])
    return float(np.sqrt(most))


@kernel
def advance(length: float, p: Singles, Ap: Singles, d: Singles, r: Singles) -> None:
    """d += length p, r -= length Ap."""
    step = np.float32(length)
    for i in range(len(r)):
        for k in range(3):
            d[i, k] += step * p[i, k]
            r[i, k] -= step * Ap[i, k]


@kernel
def redirect(share: float, z: Singles, p: Singles) -> None:
    """p = z + share p."""
    factor = np.float32(share)
    for i in range(len(z)):
        for k in range(3):
            p[i, k] = z[i, k] + factor * p[i, k]
