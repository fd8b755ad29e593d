"""From a rig's sliders to the weights of its shapes: in-between and combination shapes.

Most shapes are sliders. An in-between is sculpted at some value of one slider, a combination where several sliders are
at given values. All weights are those of shapes in full, so that a weight of 1 is the sculpted shape exactly.

In-betweens. A slider has the base at 0, its in-betweens at a_1 < a_2 < ..., itself at 1. The weights of these are the
cardinal functions of a cubic Hermite spline through them,

    h_k(a_j) = δ_kj,    Σ_k h_k = 1,    continuous with their first derivative,

whose tangents are those of the parabolas through three neighbours, at the ends the secants; beyond the ends it goes on
straight. If in-betweens lie evenly on the way, it moves evenly: Σ_k h_k(s) a_k = s. Where an in-between is ahead of its
value or behind it, tangents are scaled down to the monotone ones of Fritsch and Butland (1984), taken of the progress
``q_k = <x_k - x_0, x_m - x_0> / |x_m - x_0|²``, so that nothing moves back and forth. Without in-betweens, h_1(s) = s.

Combinations. A combination c of sliders i at values v_i is active by ``α_c(s) = Π_i g_i(s_i)``, the product of the
cardinal functions over the values that the combinations of the same sliders have; for full values simply Π s_i. Where
such combinations leave a place of their grid undefined, that of full values acts by the product. With the points σ_c
where combinations are defined, ``A_cd = α_d(σ_c)``, and the sliders' weights there ``P_c = h(σ_c)``, the weights

    w_combinations = α A⁻¹,      w_sliders = h(s) - w_combinations P

are those of one shape at each σ_c, and blended linearly they give what rigs do: the sum of the sliders' displacements,
and α_c times the correction of each combination.

A file has a combination either as that correction, to be added (`corrective`: as engines blend, and so as glTF and USD
have it), or as the whole sculpted shape (`full`: as folders of meshes do). It is taken to be full if it is nearer to
what its parts give together than to the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pliant.core.clips import Shapes
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import locked
from pliant.engines.blend.derived_names import (
    Combinations,
    GivenCombinations,
    GivenInBetweens,
    InBetweens,
    given_combinations,
    given_inbetweens,
)


@dataclass(frozen=True, eq=False)
class Knots:
    """The values of a slider at which there are shapes, and how it goes from one to the next."""

    at: Floats
    """(k,) increasing."""
    tangents: Floats
    """(k, k) the derivative at each knot, as weights of the shapes at all of them."""

    @classmethod
    def of(cls, at: Sequence[float], progress: Floats | None = None) -> Knots:
        """Knots at increasing values. progress: (k,) how far the shapes there have come; by default evenly."""
        knots = np.asarray(at, dtype=np.float64)
        d = np.diff(knots)
        secants = np.diff(np.eye(len(knots)), axis=0) / d[:, None]
        tangents = np.vstack([secants[0], secants[-1]])
        if len(d) > 1:
            parabolas = (d[1:, None] * secants[:-1] + d[:-1, None] * secants[1:]) / (d[1:] + d[:-1])[:, None]
            scale = np.ones(len(d) - 1) if progress is None else _monotone(d, secants @ progress, parabolas @ progress)
            tangents = np.vstack([secants[:1], scale[:, None] * parabolas, secants[-1:]])
        return cls(knots, tangents)

    def weights(self, values: Floats) -> Floats:
        """(frames, k) the weights h of the shapes at the knots, for values (frames,) of the slider."""
        last = len(self.at) - 1
        low = np.clip(np.searchsorted(self.at, values, side="right") - 1, 0, last - 1)
        d = self.at[low + 1] - self.at[low]
        u = np.clip((values - self.at[low]) / d, 0, 1)[:, None]
        eye = np.eye(last + 1)
        beyond = np.minimum(values - self.at[0], 0) + np.maximum(values - self.at[-1], 0)
        end = np.where(values < self.at[0], 0, last)
        return (
            (2 * u**3 - 3 * u**2 + 1) * eye[low]
            + (3 * u**2 - 2 * u**3) * eye[low + 1]
            + d[:, None] * ((u**3 - 2 * u**2 + u) * self.tangents[low] + (u**3 - u**2) * self.tangents[low + 1])
            + beyond[:, None] * self.tangents[end]
        )


def _monotone(d: Floats, secants: Floats, slopes: Floats) -> Floats:
    """(k - 2,) factors from 0 to 1 on the inner slopes of a curve that make it monotone wherever its knots are."""
    before, after = secants[:-1], secants[1:]
    w_before, w_after = d[:-1] + 2 * d[1:], 2 * d[:-1] + d[1:]
    same = before * after > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        limited = (w_before + w_after) / (w_before / before + w_after / after)
        return np.where(same, np.clip(limited / slopes, 0, 1), 0.0)


@dataclass(frozen=True, eq=False)
class CombinationGrid:
    """All combinations of the same sliders."""

    sliders: tuple[int, ...]
    """Shapes."""
    knots: tuple[Knots, ...]
    """Of each slider: 0, the values that combinations have, and 1."""
    number: NDArray[np.int64]
    """(knots of the first, knots of the second, ...) the combination that is defined there, or -1."""

    @classmethod
    def of(cls, sliders: tuple[int, ...], defined: Mapping[tuple[float, ...], int]) -> CombinationGrid:
        """From the values at which combinations are defined, and their numbers."""
        values = [sorted({0.0, 1.0, *column}) for column in zip(*defined, strict=True)]
        number = np.full([len(column) for column in values], -1, dtype=np.int64)
        for at, combination in defined.items():
            number[tuple(column.index(value) for column, value in zip(values, at, strict=True))] = combination
        return cls(sliders, tuple(Knots.of(column) for column in values), number)

    def activate(self, table: Floats, out: Floats) -> None:
        """Put activations α into `out` (frames, combinations), for sliders (frames, shapes)."""
        factors = [knots.weights(table[:, k]) for k, knots in zip(self.sliders, self.knots, strict=True)]
        full = int(self.number[(-1,) * len(self.knots)])
        for node in product(*(range(len(knots.at)) for knots in self.knots)):
            values = [float(knots.at[j]) for knots, j in zip(self.knots, node, strict=True)]
            number, share = int(self.number[node]), 1.0
            if number < 0:
                number, share = full, float(np.prod(values))
            if number >= 0 and share:
                out[:, number] += share * np.prod(
                    [factor[:, j] for factor, j in zip(factors, node, strict=True)], axis=0
                )


@dataclass(frozen=True, eq=False)
class InBetweenTrack:
    """A slider with in-betweens."""

    slider: int
    """Its shape."""
    members: Ints
    """(k,) the shapes at its knots; the base is 0."""
    knots: Knots


class RigSliders:
    """The sliders of a rig, and the weights of its shapes that they mean.

    inbetweens: "auto" finds them by name, "none" makes them sliders of their own; or {name: (slider, value)}.
    combinations: likewise; "corrective" and "full" say what those found are; or {name: (slider, slider)}, or
        {name: {slider: value}}.
    """

    def __init__(
        self,
        shapes: Shapes,
        *,
        inbetweens: GivenInBetweens = "auto",
        combinations: GivenCombinations = "auto",
    ) -> None:
        number = {name: k for k, name in enumerate(shapes.names)}
        self.inbetweens = given_inbetweens(shapes.names, inbetweens)
        """By name, the slider and its value."""
        self.combinations = given_combinations(shapes.names, combinations, self.inbetweens)
        """By name, the sliders and their values."""
        self._derived = np.array([number[n] for n in (*self.inbetweens, *self.combinations)], dtype=np.int64)
        self._combined: Ints = self._derived[len(self.inbetweens) :]
        self._tracks = _tracks(shapes, self.inbetweens, number)
        self._grids = _grids(self.combinations, number)
        defined = np.zeros((len(self.combinations), len(shapes)))
        for row, parts in zip(defined, self.combinations.values(), strict=True):
            row[[number[name] for name in parts]] = list(parts.values())
        self._parts = self._slid(defined)
        self._at_defined = self._active(defined)
        self._inverse = np.linalg.inv(self._at_defined)
        kind = combinations if isinstance(combinations, str) else "auto"
        self.shapes: Shapes
        """Each in full."""
        self.full: NDArray[np.bool_]
        """(combinations,) which of them the file has so."""
        self.shapes, self.full = self._in_full(shapes, kind)

    @property
    def numbers(self) -> list[int]:
        """The shapes that are sliders, without the base."""
        return [k for k in range(1, len(self.shapes)) if k not in self._derived]

    @property
    def names(self) -> tuple[str, ...]:
        """What these are called."""
        return tuple(self.shapes.names[k] for k in self.numbers)

    @property
    def facts(self) -> dict[str, str]:
        """What is not a slider, as text."""
        between = [f"{name} ({slider} at {value:g})" for name, (slider, value) in self.inbetweens.items()]
        combined = []
        for (name, parts), full in zip(self.combinations.items(), self.full, strict=True):
            made = " + ".join(part if value == 1 else f"{part} at {value:g}" for part, value in parts.items())
            combined.append(f"{name} ({made}, {'full' if full else 'corrective'})")
        return {name: _listed(texts) for name, texts in (("between", between), ("combined", combined)) if texts}

    def weights(self, table: Floats) -> Floats:
        """(frames, shapes) weights of the shapes in full, with the base's, for sliders (frames, shapes).

        A derived shape whose own column is not all zero has been animated by hand, or baked: that column counts.
        """
        slid, active = self._parted(table)
        combined = active @ self._inverse
        weights = slid - combined @ self._parts
        weights[:, self._combined] = combined
        weights[:, 0] = 1 - weights[:, 1:].sum(axis=1)
        return weights

    def stored_weights(self, table: Floats) -> Floats:
        """The same for `stored_shapes`."""
        weights, active = self._parted(table)
        weights[:, self._combined] = active
        weights[:, 0] = 1 - weights[:, 1:].sum(axis=1)
        return weights

    def stored_shapes(self) -> Shapes:
        """The shapes as engines add them up: a combination is a correction."""
        points, base = self.shapes.points.copy(), self.shapes.points[0]
        moved = (points - base).reshape(len(points), -1)
        corrections = self._inverse @ (moved[self._combined] - self._parts @ moved)
        points[self._combined] = base + corrections.reshape(-1, *base.shape)
        return Shapes(self.shapes.base, locked(points), self.shapes.names)

    def _parted(self, table: Floats) -> tuple[Floats, Floats]:
        """(frames, shapes) weights h of sliders and in-betweens, and (frames, combinations) activations α."""
        if not len(self._derived):
            return table.copy(), np.zeros((len(table), 0))
        given = np.zeros(table.shape[1], dtype=bool)
        given[self._derived] = table[:, self._derived].any(axis=0)
        sliders, slid = table.copy(), self._slid(table)
        for track in self._tracks:
            if given[track.members].any():
                slid[:, track.members] = table[:, track.members]
                sliders[:, track.slider] = table[:, track.members] @ track.knots.at
        active = self._active(sliders)
        baked, direct = given[self._combined] & ~self.full, given[self._combined] & self.full
        active[:, baked], active[:, direct] = table[:, self._combined[baked]], 0
        whole = table[:, self._combined[direct]]  # of shapes in full
        return slid + whole @ self._parts[direct], active + whole @ self._at_defined[direct]

    def defining(self) -> Floats:
        """(shapes, shapes) the sliders at which each shape is met."""
        table = np.eye(len(self.shapes))
        number = {name: k for k, name in enumerate(self.shapes.names)}
        table[self._derived] = 0
        for name, (slider, value) in self.inbetweens.items():
            table[number[name], number[slider]] = value
        for name, parts in self.combinations.items():
            table[number[name], [number[part] for part in parts]] = list(parts.values())
        return table

    def _slid(self, table: Floats) -> Floats:
        """(frames, shapes) weights h of sliders and in-betweens, for sliders (frames, shapes)."""
        weights = table.copy()
        weights[:, self._derived] = 0
        for track in self._tracks:
            weights[:, track.members] = track.knots.weights(table[:, track.slider])
        weights[:, 0] = 0
        return weights

    def _active(self, table: Floats) -> Floats:
        """(frames, combinations) activations α."""
        active = np.zeros((len(table), len(self._combined)))
        for grid in self._grids:
            grid.activate(table, active)
        return active

    def _in_full(self, shapes: Shapes, kind: str) -> tuple[Shapes, NDArray[np.bool_]]:
        full = np.zeros(len(self._combined), dtype=bool)
        base, points = shapes.points[0], shapes.points.copy()
        corrections = np.zeros((len(self._combined), base.size))
        sizes = [len(parts) for parts in self.combinations.values()]
        for c in np.argsort(sizes, kind="stable"):
            together = self._parts[c] @ (shapes.points - base).reshape(len(shapes), -1)
            together += self._at_defined[c] @ corrections  # of those with fewer sliders; its own is still 0
            moved = (shapes.points[self._combined[c]] - base).ravel()
            full[c] = kind == "full" or (kind == "auto" and moved @ together > 0.5 * (together @ together))
            corrections[c] = moved - together if full[c] else moved
            points[self._combined[c]] = base + (together + corrections[c]).reshape(base.shape)
        whole = shapes if full.all() else Shapes(shapes.base, locked(points), shapes.names)
        return whole, full


MOST_SUMMARISED = 8
"""Derived shapes that a summary lists."""


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_SUMMARISED
    return ", ".join(texts[:MOST_SUMMARISED]) + (f" and {more} more" if more > 0 else "")


def _tracks(shapes: Shapes, inbetweens: InBetweens, number: Mapping[str, int]) -> list[InBetweenTrack]:
    found: dict[str, dict[float, int]] = {}
    for name, (slider, value) in inbetweens.items():
        at = found.setdefault(slider, {0.0: 0, 1.0: number[slider]})
        if value in at:
            raise InputError(f'"{name}" is at {value:g} of "{slider}", where there is another shape already')
        at[value] = number[name]
    tracks = []
    for slider, at in found.items():
        members = np.array([at[value] for value in sorted(at)])
        moved = (shapes.points[members] - shapes.points[0]).reshape(len(members), -1)
        whole = (shapes.points[number[slider]] - shapes.points[0]).ravel()
        size = float(whole @ whole)
        tracks.append(
            InBetweenTrack(number[slider], members, Knots.of(sorted(at), moved @ whole / size if size else None))
        )
    return tracks


def _grids(combinations: Combinations, number: Mapping[str, int]) -> list[CombinationGrid]:
    found: dict[tuple[int, ...], dict[tuple[float, ...], int]] = {}
    for k, (name, parts) in enumerate(combinations.items()):
        values = {number[part]: float(value) for part, value in parts.items()}
        sliders = tuple(sorted(values))
        defined = found.setdefault(sliders, {})
        at = tuple(values[slider] for slider in sliders)
        if at in defined:
            raise InputError(f'"{name}" is a combination that another shape is already, of {", ".join(parts)}')
        defined[at] = k
    return [CombinationGrid.of(sliders, defined) for sliders, defined in found.items()]
