"""Correctives: extra morph targets with which an engine that only blends linearly comes near a rig's equilibria.

    x(s) ≈ base + Σ_i s_i d_i + Σ_c a_c(s) C_c,      a_c(s) = Σ_m coefficient_cm Π_i s_i^power_mi,

with s the sliders from 0 to 1, d_i their displacements, C_c the correctives and a_c their driving curves. A curve is a
sum of polynomials: of single sliders, which vanish at 0 and 1 as in-betweens do, and of several, which vanish where one
of them is 0 as combinations do. So every shape of the rig stays exact.

The rig is solved at poses: each slider alone at several values, those that affect each other together, random ones, and
the frames of a clip. With R the rows of what linear blending misses there (poses × 3 n) and Φ all polynomials at the
poses, the fewest targets that leave least of R in the sense of least squares are known (reduced-rank regression;
Izenman 1975): with ΦᵀΦ = L Lᵀ and the singular values of

    L⁻¹ Φᵀ R = X S Yᵀ,

targets are the rows of S Yᵀ, the largest first, and the coefficients of their curves the columns of L⁻ᵀ X. As many are
taken as it needs for the largest distance of a vertex in any pose. Poses that were not among them decide whether that
is enough; if it is not, they join them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core.clips import Shapes, WeightClip
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.validation import positive_number
from pliant.core.values import Displayed, locked
from pliant.engines.blend.equilibrium import SolveOptions

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

POSE_ACCURACY = 1e-6
"""To which the poses are solved."""
ALONE = np.arange(1, 8) / 8
"""Values of one slider."""
ALONE_DEGREE = 5
"""Polynomials of one slider."""
DEGREES = ((0.5, 1), (3.0, 2), (10.0, 3), (50.0, 5))
"""What two sliders do together, over the error, from which powers up to this are used for each; below, none."""
LARGER_DEGREE = 1
"""The same for more sliders."""
RANDOM_POSES, CHECK_ROUNDS = 24, 4
"""Poses, beside one for each slider, that a result is checked with; and how often."""
SAFETY = 0.9
"""Share of the error that is aimed at: poses that were not used are a little farther."""
FIRST_RANK = 16
"""Singular vectors that are computed at first; more and more until there are enough."""
NEGLIGIBLE = 0.02
"""Share of the error below which a polynomial is left out of a curve."""
COEFFICIENT_DIGITS = 7
"""Of coefficients in files."""
MOST_TOGETHER = 4
CORRECTIVE_NAME = re.compile(r"pliant_corrective\d+")
"""What correctives are called."""

Powers = tuple[tuple[int, int], ...]
"""Of sliders, which are numbers of shapes."""


@dataclass(frozen=True)
class Driver:
    """The weight of a corrective: a polynomial of sliders, which count from 0 to 1."""

    name: str
    terms: tuple[tuple[float, dict[str, int]], ...]
    """Coefficients, and powers by slider."""

    def weights(self, table: Floats, names: Sequence[str]) -> Floats:
        """(frames,) for values (frames, names) of sliders."""
        column = {name: np.clip(values, 0, 1) for name, values in zip(names, table.T, strict=True)}
        total = np.zeros(len(table))
        for coefficient, powers in self.terms:
            term = np.full(len(table), coefficient)
            for name, power in powers.items():
                term *= column[name] ** power
            total += term
        return total


@dataclass(frozen=True, eq=False)
class LinearRig(Displayed):
    """A rig for engines that blend linearly: its shapes, and correctives with their driving curves."""

    shapes: Shapes
    """The rig's, as engines add them up (a combination is a correction), then the correctives."""
    drivers: tuple[Driver, ...]
    """Of the correctives, the most useful first."""
    errors: Floats
    """(correctives + 1,) largest distance of a vertex to the rig, over the diagonal, with 0, 1, 2, ... of them."""
    checked: float
    """The same, with all of them, at poses that were not used."""
    converged: bool
    """Whether both are below the error that was asked for."""
    _rig: Blendshapes

    def __repr__(self) -> str:
        return f"LinearRig({len(self.drivers)} correctives, error {self.errors[-1]:.2e}, {self.errors[0]:.2e} without)"

    def weights(self, clip: WeightClip) -> WeightClip:
        """The weights of all targets, the base first, for a clip of the rig's sliders."""
        return WeightClip(self.shapes.names, locked(self._all(slider_table(self._rig, clip))), clip.fps, clip.name)

    def points(self, weights: Any) -> Floats:
        """(n, 3) the shape at the rig's sliders, blended linearly."""
        found: Floats = np.einsum("s,snk->nk", self._all(self._rig.row(weights)[None])[0], self.shapes.points)
        return found

    def _all(self, table: Floats) -> Floats:
        """(frames, targets) from sliders (frames, shapes)."""
        driven = [each.weights(table, self._rig.shapes.names) for each in self.drivers]
        values = np.column_stack([self._rig.sliders.stored_weights(table), *driven])
        values[:, 0] = 1 - values[:, 1:].sum(axis=1)
        return values

    def to_dict(self) -> dict[str, Any]:
        """The driving curves, for JSON: products of sliders, which curves share, and how much of which is in each."""
        number: dict[tuple[tuple[str, int], ...], int] = {}
        curves = {
            driver.name: [
                [number.setdefault(tuple(powers.items()), len(number)), float(f"{coefficient:.{COEFFICIENT_DIGITS}g}")]
                for coefficient, powers in driver.terms
            ]
            for driver in self.drivers
        }
        return {
            "about": "products: of sliders, cut to 0..1, to these powers; "
            "the weight of a corrective: sum of coefficient * product, of pairs of product number and coefficient",
            "error": float(self.errors[-1]),
            "error without": float(self.errors[0]),
            "products": [dict(powers) for powers in number],
            "correctives": curves,
        }


def slider_table(rig: Blendshapes, clip: WeightClip) -> Floats:
    """(frames, shapes) the sliders of a clip by name; those of correctives are left out."""
    kept = [k for k, name in enumerate(clip.names) if name in rig.shapes.names or not CORRECTIVE_NAME.fullmatch(name)]
    return np.stack([rig.row({clip.names[k]: row[k] for k in kept}) for row in clip.values])


def without_correctives(shapes: Shapes) -> Shapes:
    """Shapes without those that this module has added before."""
    kept = [k for k, name in enumerate(shapes.names) if not (k and CORRECTIVE_NAME.fullmatch(name))]
    return Shapes(shapes.base, locked(shapes.points[kept]), tuple(shapes.names[k] for k in kept))


# Curves and targets


@dataclass(frozen=True, eq=False)
class Polynomials:
    """What curves are made of."""

    parts: tuple[tuple[tuple[float, Powers], ...], ...]
    """Each a sum of monomials: coefficients and powers."""

    @classmethod
    def of(cls, degrees: dict[tuple[int, ...], int]) -> Polynomials:
        """Of one slider s^m (1 - s); of several all products with powers from 1 to their degree."""
        parts: list[tuple[tuple[float, Powers], ...]] = []
        for sliders, degree in degrees.items():
            for powers in product(range(1, degree + 1), repeat=len(sliders)):
                own = tuple(zip(sliders, powers, strict=True))
                higher = ((sliders[0], powers[0] + 1),)
                parts.append(((1.0, own), (-1.0, higher)) if len(sliders) == 1 else ((1.0, own),))
        return cls(tuple(parts))

    def values(self, table: Floats) -> Any:
        """(poses, polynomials), sparse, at sliders (poses, shapes)."""
        s = np.clip(table, 0, 1)
        columns = []
        for part in self.parts:
            at = np.flatnonzero(np.prod([s[:, k] for k, _ in part[0][1]], axis=0))
            value = sum(c * np.prod([s[at, k] ** power for k, power in powers], axis=0) for c, powers in part)
            columns.append(sp.csc_matrix((value, (at, np.zeros(len(at), int))), shape=(len(s), 1)))
        return sp.hstack(columns, format="csr")

    def driver(self, names: Sequence[str], number: int, coefficients: Floats) -> Driver:
        """The curve of coefficients (polynomials,)."""
        total: dict[Powers, float] = {}
        for a, part in zip(coefficients, self.parts, strict=True):
            for c, powers in part if a else ():
                total[powers] = total.get(powers, 0.0) + float(a * c)
        terms = tuple((c, {names[k]: power for k, power in powers}) for powers, c in total.items())
        return Driver(f"pliant_corrective{number}", terms)


def targets_and_curves(
    polynomials: Polynomials, table: Floats, missed: NDArray[np.float32], enough: float, most: int
) -> tuple[Floats, Floats, list[float]]:
    """Targets (targets, n, 3), coefficients (polynomials, targets), and the largest distances with 0, 1, ... of them.

    table: (poses, shapes) sliders. missed: (poses, n, 3). enough: distance that ends it.
    """
    values, left = polynomials.values(table), missed.reshape(len(missed), -1).copy()
    errors = [_largest(left)]
    scale = np.sqrt(np.maximum(np.asarray(values.multiply(values).sum(axis=0)).ravel(), 1e-300))
    N = (values.T @ values).toarray() / np.outer(scale, scale)
    L = np.linalg.cholesky(N + 1e-10 * np.eye(len(N)))
    M = np.linalg.solve(L, (values.T @ left) / scale[:, None])
    rank, count = FIRST_RANK, 0
    chosen: list[Floats] = []
    targets: list[Floats] = []
    while True:
        X, S, Y = _leading(M, min(rank, *M.shape))
        curves = values @ (np.linalg.solve(L.T, X) / scale[:, None])
        while count < min(len(S), most) and errors[-1] > enough and S[count] > 1e-12 * S[0]:
            peak = curves[np.argmax(np.abs(curves[:, count])), count]  # weights go up to 1
            targets.append(S[count] * Y[count] * peak)
            chosen.append(np.linalg.solve(L.T, X[:, count]) / scale / peak)
            left -= np.outer(curves[:, count] / peak, targets[-1]).astype(np.float32)
            errors.append(_largest(left))
            count += 1
        if count < rank or rank >= min(M.shape) or errors[-1] <= enough or count >= most:
            break
        rank, count = 2 * rank, 0  # vectors are a little different with more of them
        targets, chosen, errors, left = [], [], errors[:1], missed.reshape(len(missed), -1).copy()
    shape = -1, *missed.shape[1:]
    coefficients = np.stack(chosen, axis=1) if chosen else np.zeros((len(scale), 0))
    return np.array(targets).reshape(shape), coefficients, errors


def _leading(M: Floats, rank: int) -> tuple[Floats, Floats, Floats]:
    """The leading singular vectors and values of a matrix, by subspace iteration from random vectors."""
    more = min(rank + 8, *M.shape)
    Q = np.linalg.qr(M @ np.random.default_rng(0).normal(size=(M.shape[1], more)))[0]
    for _ in range(3):
        Q = np.linalg.qr(M @ (M.T @ Q))[0]
    X, S, Y = np.linalg.svd(Q.T @ M, full_matrices=False)
    return (Q @ X)[:, :rank], S[:rank], Y[:rank]


def _largest(left: Floats) -> float:
    """Largest distance of (poses, 3 n)."""
    return float(np.sqrt((left.reshape(len(left), -1, 3) ** 2).sum(axis=2).max(initial=0)))


# Poses


@dataclass(eq=False)
class SolvedPoses:
    """Sliders, and what linear blending misses there."""

    rig: Blendshapes
    show: Callable[[int, int], None] | None
    table: Floats = field(init=False)
    """(poses, shapes)"""
    missed: NDArray[np.float32] = field(init=False)
    """(poses, n, 3)"""
    unconverged: int = 0

    def __post_init__(self) -> None:
        self.table = np.zeros((0, len(self.rig.shapes)))
        self.missed = np.zeros((0, *self.rig.shapes.points.shape[1:]), np.float32)

    def solve(self, table: Floats) -> NDArray[np.float32]:
        """(poses, n, 3) what linear blending misses at sliders (poses, shapes)."""
        rig, options = self.rig, SolveOptions(accuracy=POSE_ACCURACY)
        found = np.empty((len(table), *rig.shapes.points.shape[1:]), np.float32)
        for k, w in enumerate(rig.sliders.weights(table)):
            start = rig.statics.start(w, POSE_ACCURACY)
            outcome = rig.statics.outcome(rig.body.network, w, start, rig.body.rest(w), None, options)
            self.unconverged += not outcome.converged
            found[k] = rig.statics.surface(outcome.x, w) - np.einsum("s,snk->nk", w, rig.shapes.points)
            if self.show is not None:
                self.show(k + 1, len(table))
        return found

    def add(self, table: Floats, missed: NDArray[np.float32] | None = None) -> None:
        """Take more, solved or not."""
        found = self.solve(table) if missed is None else missed
        self.table, self.missed = np.concatenate([self.table, table]), np.concatenate([self.missed, found])


def _rows(count: int, sets: Sequence[tuple[int, ...]], values: Sequence[Sequence[float]]) -> Floats:
    """(sets · values, count) every set of sliders at all of the values."""
    rows = np.zeros((len(sets), len(values), count))
    for row, sliders in zip(rows, sets, strict=True):
        row[:, list(sliders)] = np.reshape(values, (-1, len(sliders)))
    return rows.reshape(-1, count)


def affecting(rig: Blendshapes, least: float) -> list[tuple[int, ...]]:
    """Pairs of sliders that may move a vertex by more than a distance together than each by itself.

    To second order that is what one rotates of what the other moves.
    """
    points, body, numbers = rig.shapes.points[:, rig._weld.kept], rig.body, rig.sliders.numbers
    count = points.shape[1]
    moved = np.linalg.norm(points[numbers] - points[0], axis=2)
    rotated = np.linalg.norm(body.rotvecs[numbers, :count], axis=2)
    rotated += np.linalg.norm(body.frames.rotvecs[numbers], axis=2)[:, body.frames.part[:count]]
    return [
        (numbers[a], numbers[b])
        for a, b in combinations(range(len(numbers)), 2)
        if np.max(rotated[a] * moved[b] + rotated[b] * moved[a]) > least
    ]


def _sampled(rig: Blendshapes, poses: SolvedPoses, error: float, together: int) -> dict[tuple[int, ...], int]:
    """Solve poses of single sliders and of those that affect each other; the degrees of polynomials for these."""
    numbers, count = rig.sliders.numbers, len(rig.shapes)
    poses.add(_rows(count, [(k,) for k in numbers], ALONE[:, None].tolist()))
    degrees: dict[tuple[int, ...], int] = dict.fromkeys([(k,) for k in numbers], ALONE_DEGREE)
    pairs = affecting(rig, DEGREES[0][0] * error) if together > 1 else []
    full = _rows(count, pairs, [(1.0, 1.0)])
    missed = poses.solve(full)
    poses.add(full, missed)
    sizes = np.sqrt((missed**2).sum(axis=2).max(axis=1, initial=0)) / error
    for pair, size in zip(pairs, sizes, strict=True):
        if size > DEGREES[0][0]:
            degrees[pair] = max(degree for least, degree in DEGREES if size >= least)
    for size in range(3, together + 1):
        smaller = [each for each in degrees if len(each) == size - 1]
        larger = [(*each, k) for each in smaller for k in numbers if k > each[-1]]
        found = [each for each in larger if all(pair in degrees for pair in combinations(each, 2))]
        degrees |= dict.fromkeys(found, LARGER_DEGREE)
    more = []
    for sliders, degree in degrees.items():
        if len(sliders) > 1:
            values = np.arange(1, degree + 1 + (degree > 2)) / (degree + (degree > 2))
            grid = [at for at in product(values, repeat=len(sliders)) if len(sliders) > 2 or min(at) < 1]
            more.append(_rows(count, [sliders], grid).reshape(-1, count))
    poses.add(np.concatenate([np.zeros((0, count)), *more]))
    return degrees


def correctives(
    rig: Blendshapes,
    *,
    error: float,
    together: int,
    weights: Any,
    most: int,
    progress: Callable[[int, int], None] | None,
) -> LinearRig:
    """The fewest for an error; see `Blendshapes.correctives`."""
    positive_number(error, "error")
    for name, value, least, highest in (("together", together, 1, MOST_TOGETHER), ("most", most, 0, 10_000)):
        if not isinstance(value, (int, np.integer)) or not least <= value <= highest:
            raise InputError(f"{name} is {value!r}; expected a whole number from {least} to {highest}", argument=name)
    given = None
    if weights is not None:
        given = slider_table(rig, weights) if isinstance(weights, WeightClip) else rig._rows(weights)
    largest = error * rig.body.diagonal
    poses, rng = SolvedPoses(rig, progress), np.random.default_rng(0)
    degrees = _sampled(rig, poses, largest, together)
    if given is not None:
        poses.add(given)
    polynomials, sets = Polynomials.of(degrees), list(degrees)
    for k in range(CHECK_ROUNDS):
        targets, coefficients, distances = targets_and_curves(
            polynomials, poses.table, poses.missed, SAFETY * largest, most
        )
        coefficients = _pruned(polynomials, coefficients, targets, NEGLIGIBLE * largest)
        check = np.zeros((RANDOM_POSES + len(rig.sliders.numbers), len(rig.shapes)))
        for row in check:
            sliders = list(sets[rng.integers(len(sets))])
            row[sliders] = rng.random(len(sliders))
        missed = poses.solve(check)
        distances[-1] = _left(polynomials, poses.table, poses.missed, coefficients, targets)  # without what was pruned
        checked = _left(polynomials, check, missed, coefficients, targets)
        if checked <= largest or distances[-1] > largest or k == CHECK_ROUNDS - 1:
            break
        poses.add(check, missed)
    drivers = [polynomials.driver(rig.shapes.names, k + 1, column) for k, column in enumerate(coefficients.T)]
    stored = rig.sliders.stored_shapes()
    points = np.concatenate([stored.points, stored.points[0] + targets])
    shapes = Shapes(stored.base, locked(points), (*stored.names, *(driver.name for driver in drivers)))
    reached = max(distances[-1], checked) <= largest and not poses.unconverged
    diagonal = rig.body.diagonal
    return LinearRig(shapes, tuple(drivers), np.array(distances) / diagonal, checked / diagonal, reached, rig)


def _left(polynomials: Polynomials, table: Floats, missed: Any, coefficients: Floats, targets: Floats) -> float:
    """The largest distance of a vertex that correctives leave at sliders (p, shapes)."""
    curves = np.asarray(polynomials.values(table) @ coefficients)
    return _largest((missed - np.einsum("pc,cnk->pnk", curves, targets, optimize=True)).reshape(len(table), -1))


def _pruned(polynomials: Polynomials, coefficients: Floats, targets: Floats, least: float) -> Floats:
    """Coefficients without those that move nothing by more than a distance."""
    size = np.abs(coefficients) * np.linalg.norm(targets, axis=2).max(axis=1, initial=0)
    peaks = np.array([0.25 if len(part) > 1 else 1.0 for part in polynomials.parts])  # of s (1 - s)
    return np.where(size * peaks[:, None] > least, coefficients, 0.0)
