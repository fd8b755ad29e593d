"""Registration of one shape's points to another's by Coherent Point Drift (Myronenko and Song 2010).

The source's points y_m are the centres of a mixture of Gaussians with variance σ² from which the target's points x_n
are drawn, with a share w of outliers. Expectation maximisation alternates between the posterior probabilities P of the
centres given each x_n and the transformation that maximises the likelihood:

    affine      y → B y + t, weighted least squares,
    non-rigid   y → y + G W, G_ij = exp(-|y_i - y_j|² / 2β²), (diag(P1) G + λ σ² 1) W = P X - diag(P1) Y,

so that near points move alike, and parts that the target lacks move with their neighbours. The start is one of the 24
rotations of the axes, with the bounding boxes scaled to agree: the one with the least distance after an affine fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats

OUTLIERS = 0.1
"""w: the share of outliers."""
KERNEL_WIDTH, KERNEL_WEIGHT = 0.5, 3.0
"""β, over the root mean square size; and λ."""
FINE_SAMPLES, COARSE_SAMPLES = 400, 120
"""Points used for the registration, and for the comparison of rotations."""
INITIAL_VARIANCE, SMALLEST_VARIANCE, VARIANCE_TOLERANCE = 0.1, 1e-5, 1e-3
"""Initial σ², over the mean squared distance; its lower bound; and its relative change at convergence."""
RELUCTANCE = (1.1, 1.25)
"""Penalty factors on rotations about the upright axis (y), and on those that tip a shape over."""


@dataclass(frozen=True, eq=False)
class Registration:
    """A source's points registered to the target."""

    rotation: Floats
    """(3, 3) A, a rotation of axes to axes"""
    scale: float
    """Target units for a source unit"""
    points: Floats
    """(n, 3) the source's points on the target"""


def register(
    source: Floats, target: Floats, *, bend: bool = True, reluctance: tuple[float, float] = RELUCTANCE
) -> Registration:
    """Register source points (n, 3) to target points (m, 3).

    bend: whether a non-rigid registration follows the affine one.
    reluctance: penalty factors on rotations about the upright axis, and on those that tip the source over.
    """
    fits = [box_fit(rotation, source, target) for rotation in rotations.axis_rotations()]
    few, goal = _some(source, COARSE_SAMPLES), _some(target, COARSE_SAMPLES)
    fit = min(fits, key=lambda fit: _affine_misfit(fit(few), goal) * _reluctance(fit.rotation, reluctance))
    start = fit(source)
    centre, size = target.mean(axis=0), float(np.sqrt(((target - target.mean(axis=0)) ** 2).sum(axis=1).mean()))
    scale = float(np.exp(np.log(fit.stretch).mean()))
    X, every = (_some(target, FINE_SAMPLES) - centre) / size, (start - centre) / size
    Y = _some(every, FINE_SAMPLES)
    B, t, width = affine(X, Y)
    Y, every = Y @ B.T + t, every @ B.T + t
    if bend:
        every = every + bent(X, Y, width, every)
    return Registration(fit.rotation, scale, every * size + centre)


def _some(points: Floats, count: int) -> Floats:
    """At most `count` points, by farthest-point sampling."""
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
    """Maps a source's bounding box to the target's: rotated, then scaled along the axes."""

    rotation: Floats
    stretch: Floats
    start: Floats
    """(3,) the centre of the rotated source's box"""
    end: Floats
    """(3,) the centre of the target's box"""

    def __call__(self, points: Floats) -> Floats:
        return (points @ self.rotation.T - self.start) * self.stretch + self.end


def _reluctance(rotation: Floats, given: tuple[float, float]) -> float:
    if np.trace(rotation) == 3:
        return 1.0
    return given[0] if rotation[1, 1] == 1 else given[1]


def box_fit(rotation: Floats, source: Floats, target: Floats) -> BoxFit:
    """The fit of the rotated source's box to the target's."""
    rotated = source @ rotation.T
    sizes, wanted = np.ptp(rotated, axis=0), np.ptp(target, axis=0)
    thin = (sizes <= 1e-6 * sizes.max()) | (wanted <= 1e-6 * wanted.max())
    whole = float(np.linalg.norm(wanted) / np.linalg.norm(sizes))
    stretch = np.where(thin, whole, wanted / np.where(thin, 1.0, sizes))
    return BoxFit(
        rotation, stretch, (rotated.min(axis=0) + rotated.max(axis=0)) / 2, (target.min(0) + target.max(0)) / 2
    )


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
    """(m, n) P: posterior probabilities of each y given each x."""
    P = np.exp(-_squares(Y, X) / (2 * width))
    stray = (2 * np.pi * width) ** 1.5 * OUTLIERS / (1 - OUTLIERS) * len(Y) / len(X)
    P /= P.sum(axis=0) + stray + 1e-300
    return P


def _width(X: Floats, Y: Floats, P: Floats) -> float:
    """σ² of greatest likelihood, given P."""
    apart = P.sum(axis=0) @ (X**2).sum(axis=1) - 2 * ((P @ X) * Y).sum() + P.sum(axis=1) @ (Y**2).sum(axis=1)
    return max(float(apart / max(3 * P.sum(), 1e-300)), SMALLEST_VARIANCE)


def affine(X: Floats, Y: Floats, *, rounds: int = 40) -> tuple[Floats, Floats, float]:
    """B (3, 3), t (3,) and σ² of the affine registration of Y to X."""
    B, t = np.eye(3), np.zeros(3)
    width = float(_squares(X, Y).mean() / 3) * INITIAL_VARIANCE
    for _ in range(rounds):
        P = _shares(X, Y @ B.T + t, width)
        per, total = P.sum(axis=1), max(float(P.sum()), 1e-300)
        x0, y0 = P.sum(axis=0) @ X / total, per @ Y / total
        little = 1e-6 * total * np.eye(3)  # regularises flat shapes
        B = ((P @ (X - x0)).T @ (Y - y0) + little) @ np.linalg.inv(((Y - y0) * per[:, None]).T @ (Y - y0) + little)
        t = x0 - B @ y0
        last, width = width, _width(X, Y @ B.T + t, P)
        if abs(last - width) < VARIANCE_TOLERANCE * last:
            break
    return B, t, width


def bent(X: Floats, Y: Floats, width: float, points: Floats, *, rounds: int = 60) -> Floats:
    """(n, 3) displacements of points by the non-rigid registration of Y to X."""
    G = np.exp(-_squares(Y, Y) / (2 * KERNEL_WIDTH**2))
    W = np.zeros_like(Y)
    for _ in range(rounds):
        P = _shares(X, Y + G @ W, width)
        per = P.sum(axis=1)
        W = np.linalg.solve(per[:, None] * G + KERNEL_WEIGHT * width * np.eye(len(Y)), P @ X - per[:, None] * Y)
        last, width = width, _width(X, Y + G @ W, P)
        if abs(last - width) < VARIANCE_TOLERANCE * last:
            break
    return np.asarray(np.exp(-_squares(points, Y) / (2 * KERNEL_WIDTH**2)) @ W)
