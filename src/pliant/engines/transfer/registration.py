"""One shape's points brought onto another's: Coherent Point Drift (Myronenko and Song 2010).

The source's points y_m are centres of a mixture of Gaussians of one width σ that the target's points x_n are drawn
from, beside a share w of strays. In turn, each x_n is shared out among the centres, with probabilities P, and the
centres move to where they explain the target best:

    affine      y → B y + t, which solves weighted least squares,
    bending     y → y + G W, G_ij = exp(-|y_i - y_j|² / 2β²), (diag(P1) G + λ σ² 1) W = P X - diag(P1) Y,

so that near points move alike, and parts that the target lacks go along with their neighbours. Before, the axes are
turned and stretched so that the boxes agree: of the 24 ways to do so, the one that an affine fit makes nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from pliant.core.topology import Floats

STRAYS = 0.1
"""w: the share of points that belong to nothing."""
BETA, LAMBDA = 0.5, 3.0
"""Distance over which points move alike, over the root mean square size; and how much they do."""
SAMPLES, FEW = 400, 120
"""Points that shapes are brought together by, and those by which ways to turn are compared."""
START, NARROWEST, SETTLED = 0.1, 1e-5, 1e-3
"""σ² at first, over the mean squared distance; the least; and the change of it, over itself, that ends the search."""
RELUCTANCE = (1.1, 1.25)
"""How much nearer a turn about the upright axis (y) has to bring a shape, and one that tips it over."""


@dataclass(frozen=True, eq=False)
class Registration:
    """Where a source's points come to lie on the target: turned to its axes, then bent to its shape."""

    turn: Floats
    """(3, 3) A, which takes axes to axes"""
    scale: float
    """Target units for a source unit"""
    places: Floats
    """(n, 3) of the source's points, on the target"""


def register(
    source: Floats, target: Floats, *, bend: bool = True, reluctance: tuple[float, float] = RELUCTANCE
) -> Registration:
    """Bring source points (n, 3) onto target points (m, 3).

    bend: bend it, after the affine fit.
    reluctance: how much nearer a turn about the upright axis has to bring it, and one that tips it over.
    """
    fits = [box_fit(turn, source, target) for turn in axis_turns()]
    few, goal = _some(source, FEW), _some(target, FEW)
    fit = min(fits, key=lambda fit: _affine_misfit(fit(few), goal) * _reluctance(fit.turn, reluctance))
    start = fit(source)
    centre, size = target.mean(axis=0), float(np.sqrt(((target - target.mean(axis=0)) ** 2).sum(axis=1).mean()))
    scale = float(np.exp(np.log(fit.stretch).mean()))
    X, every = (_some(target, SAMPLES) - centre) / size, (start - centre) / size
    Y = _some(every, SAMPLES)
    B, t, width = affine(X, Y)
    Y, every = Y @ B.T + t, every @ B.T + t
    if bend:
        every = every + bent(X, Y, width, every)
    return Registration(fit.turn, scale, every * size + centre)


def _some(points: Floats, count: int) -> Floats:
    """At most so many points, far from each other."""
    if len(points) <= count:
        return points
    near = np.full(len(points), np.inf)
    chosen = np.zeros(count, dtype=np.int64)
    for k in range(1, count):
        near = np.minimum(near, ((points - points[chosen[k - 1]]) ** 2).sum(axis=1))
        chosen[k] = int(np.argmax(near))
    return points[chosen]


@dataclass(frozen=True, eq=False)
class BoxFit:
    """Brings a source's box to the target's: turned, then stretched along the axes."""

    turn: Floats
    stretch: Floats
    start: Floats
    """(3,) the middle of the turned source's box"""
    end: Floats
    """(3,) the middle of the target's box"""

    def __call__(self, points: Floats) -> Floats:
        return (points @ self.turn.T - self.start) * self.stretch + self.end


def axis_turns() -> list[Floats]:
    """The 24 rotations that take axes to axes; the first is none."""
    turns = []
    for order, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3)):
        turn = np.eye(3)[list(order)] * np.array(signs)[:, None]
        if np.linalg.det(turn) > 0:
            turns.append(turn)
    return turns


def _reluctance(turn: Floats, given: tuple[float, float]) -> float:
    if np.trace(turn) == 3:
        return 1.0
    return given[0] if turn[1, 1] == 1 else given[1]


def box_fit(turn: Floats, source: Floats, target: Floats) -> BoxFit:
    """The turned source's box brought to the target's."""
    turned = source @ turn.T
    sizes, wanted = np.ptp(turned, axis=0), np.ptp(target, axis=0)
    thin = (sizes <= 1e-6 * sizes.max()) | (wanted <= 1e-6 * wanted.max())
    whole = float(np.linalg.norm(wanted) / np.linalg.norm(sizes))
    stretch = np.where(thin, whole, wanted / np.where(thin, 1.0, sizes))
    return BoxFit(turn, stretch, (turned.min(axis=0) + turned.max(axis=0)) / 2, (target.min(0) + target.max(0)) / 2)


def _affine_misfit(Y: Floats, X: Floats) -> float:
    """Mean distance between two sets of points, both ways, after an affine fit."""
    size = float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))
    Y, X = (Y - X.mean(axis=0)) / size, (X - X.mean(axis=0)) / size
    B, t, _ = affine(X, Y, rounds=10)
    d = np.sqrt(_squares(X, Y @ B.T + t))
    return float(d.min(axis=0).mean() + d.min(axis=1).mean())


def _squares(X: Floats, Y: Floats) -> Floats:
    """(n, m) squared distances."""
    d: Floats = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * X @ Y.T
    return np.maximum(d, 0)


def _shares(X: Floats, Y: Floats, width: float) -> Floats:
    """(m, n) P: how much of each x belongs to each y."""
    P = np.exp(-_squares(Y, X) / (2 * width))
    stray = (2 * np.pi * width) ** 1.5 * STRAYS / (1 - STRAYS) * len(Y) / len(X)
    P /= P.sum(axis=0) + stray + 1e-300
    return P


def _width(X: Floats, Y: Floats, P: Floats) -> float:
    """σ² that explains X best by Y, with the shares P."""
    apart = P.sum(axis=0) @ (X**2).sum(axis=1) - 2 * ((P @ X) * Y).sum() + P.sum(axis=1) @ (Y**2).sum(axis=1)
    return max(float(apart / max(3 * P.sum(), 1e-300)), NARROWEST)


def affine(X: Floats, Y: Floats, *, rounds: int = 40) -> tuple[Floats, Floats, float]:
    """B (3, 3), t (3,) and σ² that bring Y onto X."""
    B, t = np.eye(3), np.zeros(3)
    width = float(_squares(X, Y).mean() / 3) * START
    for _ in range(rounds):
        P = _shares(X, Y @ B.T + t, width)
        per, total = P.sum(axis=1), max(float(P.sum()), 1e-300)
        x0, y0 = P.sum(axis=0) @ X / total, per @ Y / total
        little = 1e-6 * total * np.eye(3)  # so that flat shapes do not fail
        B = ((P @ (X - x0)).T @ (Y - y0) + little) @ np.linalg.inv(((Y - y0) * per[:, None]).T @ (Y - y0) + little)
        t = x0 - B @ y0
        last, width = width, _width(X, Y @ B.T + t, P)
        if abs(last - width) < SETTLED * last:
            break
    return B, t, width


def bent(X: Floats, Y: Floats, width: float, points: Floats, *, rounds: int = 60) -> Floats:
    """(n, 3) how points move along when Y is bent onto X."""
    G = np.exp(-_squares(Y, Y) / (2 * BETA**2))
    W = np.zeros_like(Y)
    for _ in range(rounds):
        P = _shares(X, Y + G @ W, width)
        per = P.sum(axis=1)
        W = np.linalg.solve(per[:, None] * G + LAMBDA * width * np.eye(len(Y)), P @ X - per[:, None] * Y)
        last, width = width, _width(X, Y + G @ W, P)
        if abs(last - width) < SETTLED * last:
            break
    return np.asarray(np.exp(-_squares(points, Y) / (2 * BETA**2)) @ W)
