"""Smooth steps, and steps along a line that crowd where detail is."""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats


def smoothstep(value: Floats, start: float, stop: float) -> Floats:
    """0 before `start`, 1 after `stop`, smooth between."""
    q = np.clip((value - start) / (stop - start), 0, 1)
    return q * q * q * (q * (6 * q - 15) + 10)


def spread(knots: list[float], counts: list[int], crowd: Floats) -> Floats:
    """Positions along a line: `counts` steps between consecutive knots, closer together where `crowd` is high.

    crowd: (k, 3) rows of position, extra density (0 gives even steps) and reach.
    """
    pieces = [np.array([knots[0]])]
    for start, stop, count in zip(knots[:-1], knots[1:], counts, strict=True):
        fine = np.linspace(start, stop, 400)
        bumps = np.exp(-(((fine[:, None] - crowd[:, 0]) / crowd[:, 2]) ** 2)) @ crowd[:, 1]
        density = 1 + (bumps[1:] + bumps[:-1]) / 2
        total = np.concatenate([[0], np.cumsum(density)])
        pieces.append(np.interp(np.linspace(0, total[-1], count + 1)[1:], total, fine))
    return np.concatenate(pieces)
