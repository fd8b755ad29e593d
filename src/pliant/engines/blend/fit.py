"""Fitting: from shapes back to sliders. Weights and a rigid motion for which a rig's shape is where it was seen.

    min over w, R, t of   E (1 + |w|² / (3 K σ²)) + sparsity Σ_s |w_s|,     bounds on w,
    E = 1/(K D²) Σ_k |S_k (R p_k(w) + t - y_k)|²,

with p_k points of the blended surface (vertices, or points on its faces), y_k where each was seen, D the diagonal. The
factor of E is the most likely fit for noise of unknown size and sliders of spread σ: it vanishes where E does.
What is seen may be the whole mesh, some markers, or a scan of which nobody knows what belongs to what: then p_k is the
point of the surface that is closest to y_k now, and S_k counts the distance along the normal there in full and that
across it by `ACROSS`, so that a surface slides along itself.

Gauss–Newton, bounded: the shape's derivative by the sliders is exact (`pliant.engines.blend.jacobian`) where it is
taken, and is updated from shape to shape by Broyden's formula until a step is worse than predicted. It starts from the
fit of linear blending, which has constant derivatives and costs next to nothing.

In a clip each frame starts from the one before. Then, with smoothness s, ``s Σ_f |w_f+1 - 2 w_f + w_f-1|²`` is added,
and all frames take some steps together, so that what a frame does not show is taken from its neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS, Animation, WeightClip
from pliant.core.errors import InputError, PliantWarning
from pliant.core.topology import Floats
from pliant.core.validation import positive_number
from pliant.core.values import Displayed, as_array
from pliant.engines.blend.fitted_models import SHAPE_ACCURACY, FittedModel, LinearModel, PhysicalModel
from pliant.engines.blend.observations import Marked, Scanned, Seen, SurfaceRows, observed, taking_part

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

RIDGE = 1e-10
"""Weight, over the mean of the others, by which sliders that nothing shows stay where they are."""
SPREAD = 0.5
"""Of sliders in general: what is lost in noise is taken to be near 0."""
MOST_FIT_STEPS = 40
"""Of a frame."""
POOR, STALE, EXACT = 0.5, 0.5, 0.01
"""Share of the predicted decrease below which the derivative is taken anew; change of a slider from which it is; and
change up to which it counts as exact, as it has to be at the end."""
MOST_ERROR, OUTLYING_MARKER = 0.02, 10.0
"""Of a fit, over the diagonal; and distance of one marker over the median, from which it is named."""
MAX_PIVOTED_SETS, BOUND_ROUNDING = 200, 1e-12
"""Sets of bounds, at most, that a step is tried with; how far beyond one is rounding."""
MOST_DAMPING = 10.0
"""At which no step helps."""
DOUBTFUL_ERROR = 0.01
"""Distance, over the diagonal, above which a scan is fitted from another start, too."""
STUCK_ERROR = 1e-3
"""Distance, over the diagonal, above which a frame that linear blending fits twice as well is fitted from there too."""
SMOOTHING_ROUNDS = 4
"""Steps of a clip's frames together."""


@dataclass(frozen=True, eq=False)
class SliderFit(Displayed):
    """Sliders and rigid motions, a row for each frame."""

    weights: WeightClip
    """Of the rig's sliders."""
    rotations: Floats
    """(frames, 3, 3) from the rig's world to the observed one."""
    translations: Floats
    """(frames, 3)"""
    errors: Floats
    """(frames,) root mean square distance of what was seen to the fitted shape, in its units."""
    linear_errors: Floats
    """(frames,) the same for linear blending with sliders of its own."""
    converged: tuple[bool, ...]
    far: tuple[int, ...]
    """Frames that are too far from what was seen for a fit."""
    clip: Animation
    """The fitted shapes, where they were seen."""

    def __repr__(self) -> str:
        frames, sliders = self.weights.values.shape
        return f"SliderFit({frames} frames of {sliders} sliders, error {self.errors.max():.3g})"


# One frame


@dataclass(eq=False)
class FrameFit:
    """Sliders and rigid motion of a frame, and the derivative at hand."""

    row: Floats
    """(shapes,) sliders."""
    R: Floats
    t: Floats
    columns: Floats | None = None
    """(k, 3, sliders) the derivative at the vertices that take part, exact or updated."""
    felt: NDArray[np.bool_] | None = None
    """(k, sliders) whether a slider moves a vertex to speak of."""
    taken: Floats | None = None
    """(shapes,) the sliders where it was exact."""
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """(n, 3) the shape, where it was seen."""
    error: float = np.inf
    converged: bool = False

    def placed(self, x: Floats) -> Floats:
        """(n, 3) a shape where it is seen."""
        return x @ self.R.T + self.t

    def take(self, model: FittedModel) -> None:
        """The exact derivative."""
        (self.columns, self.felt), self.taken = model.columns(self.row), self.row

    def update(self, change: Floats, moved: Floats) -> None:
        """The derivative by what a change (sliders,) has moved, (k, 3).

        Broyden's update, with each point's share for the sliders that move it at all (Schubert 1970): one that nothing
        shows must not seem to be of use.
        """
        assert self.columns is not None
        assert self.felt is not None
        own = change * self.felt
        total = (own**2).sum(axis=1, keepdims=True)
        share = np.divide(own, total, out=np.zeros_like(own), where=total > 0)
        self.columns = self.columns + (moved - self.columns @ change)[:, :, None] * share[:, None, :]


@dataclass(frozen=True, eq=False)
class Linearised:
    """The objective about a state: dᵀ N d + 2 gᵀ d more, for a change d of (sliders, rotation, translation)."""

    N: Floats
    g: Floats
    diagonal: Floats
    """Of N, at least the mean for sliders: what damping is a multiple of."""
    middle: Floats
    """What the shape rotates about."""

    def predicted(self, step: Floats) -> float:
        """The decrease by a step."""
        return -float(2 * self.g @ step + step @ self.N @ step)


@dataclass(frozen=True, eq=False)
class Fitting:
    """What is the same for all frames."""

    rig: Blendshapes
    low: Floats
    """(sliders,)"""
    high: Floats
    rigid: bool
    sparsity: float
    accuracy: float

    @cached_property
    def numbers(self) -> list[int]:
        """The sliders among the shapes."""
        return self.rig.sliders.numbers

    def fit(self, model: FittedModel, seen: Seen, state: FrameFit) -> FrameFit:
        """The fit from a start, which it changes."""
        for stage in seen.stages:
            self._frame(model, stage, state)
        return state

    def _frame(self, model: FittedModel, seen: Seen, state: FrameFit) -> None:
        x = model.points(state.row)
        if state.columns is None:
            state.take(model)
        rows = seen.at(state.placed(x))
        cost, damping = self._cost(rows, x, state), 0.0
        for _ in range(MOST_FIT_STEPS):
            about = self.linearised(rows, x, state)
            step = self._step(about, state, damping)
            trial = self.moved(state, step, about.middle)
            y = model.points(trial.row)
            there = seen.at(trial.placed(y))
            reached = self._cost(there, y, trial)
            exact, before = state.row is state.taken, cost
            poor = cost - reached < POOR * about.predicted(step)
            if reached <= cost:
                if not poor:
                    state.update(trial.row[self.numbers] - state.row[self.numbers], y - x)
                state.row, state.R, state.t, x, rows, cost = trial.row, trial.R, trial.t, y, there, reached
                damping /= 10
            elif exact:
                damping = max(10 * damping, 1e-3)
            small = float(np.abs(step[: len(self.numbers)]).max(initial=0)) <= self.accuracy
            gained = about.predicted(step) if reached > before else before - reached
            settled = small or gained <= seen.stalled * before
            away = float(np.abs(state.row - (state.row if state.taken is None else state.taken)).max(initial=0))
            # With next to nothing left, any derivative has its product with it vanish.
            state.converged = settled and (model.constant or away <= EXACT or cost <= 3 * SHAPE_ACCURACY**2)
            if state.converged or damping > MOST_DAMPING:
                break
            if not model.constant and state.row is not state.taken and (poor or settled or away > STALE):
                state.take(model)
        state.error = seen.error(state.placed(x))

    def _cost(self, rows: SurfaceRows, x: Floats, state: FrameFit) -> float:
        gap, w = rows.weighed(rows.of(state.placed(x)) - rows.targets), state.row[self.numbers]
        data = float((gap**2).mean()) / self._unit
        return data * (1 + float(w @ w) / (gap.size * SPREAD**2)) + self.sparsity * float(np.abs(w).sum())

    @cached_property
    def _unit(self) -> float:
        """Of squared distances: a coordinate's share of the diagonal's."""
        return self.rig.body.diagonal**2 / 3

    def linearised(self, rows: SurfaceRows, x: Floats, state: FrameFit) -> Linearised:
        """The objective about a state, of which x is the shape."""
        assert state.columns is not None
        count, p = len(self.numbers), rows.of(state.placed(x))
        middle = p.mean(axis=0)
        A = np.zeros((len(p), 3, count + 6 * self.rigid))
        A[:, :, :count] = np.einsum("ab,kbs->kas", state.R, rows.of(state.columns))
        if self.rigid:
            A[:, :, count : count + 3] = np.cross(np.eye(3), (p - middle)[:, None, :]).transpose(0, 2, 1)
            A[:, :, count + 3 :] = np.eye(3)
        J = rows.weighed(A).reshape(3 * len(p), -1)
        unit = len(J) * self._unit
        r, w = rows.weighed(p - rows.targets).ravel(), state.row[self.numbers]
        N, g = J.T @ J / unit, J.T @ r / unit
        prior = float(r @ r) / unit / (len(r) * SPREAD**2)
        N[range(count), range(count)] += prior
        g[:count] += prior * w + 0.5 * self.sparsity * np.where(w < 0, -1.0, 1.0)
        diagonal = np.diag(N).copy()
        diagonal[:count] = np.maximum(diagonal[:count], diagonal[:count].mean())
        return Linearised(N + RIDGE * np.diag(np.maximum(diagonal, 1e-300)), g, np.maximum(diagonal, 1e-300), middle)

    def _step(self, about: Linearised, state: FrameFit, damping: float) -> Floats:
        """(unknowns,) the bounded Gauss–Newton step."""
        value = state.row[self.numbers]
        far = np.full(len(about.g) - len(value), np.inf)
        low, high = np.concatenate([self.low - value, -far]), np.concatenate([self.high - value, far])
        return bounded_step(about.N + damping * np.diag(about.diagonal), about.g, low, high)

    def moved(self, state: FrameFit, step: Floats, middle: Floats) -> FrameFit:
        """The state after a step."""
        count = len(self.numbers)
        row = state.row.copy()
        row[self.numbers] = np.clip(row[self.numbers] + step[:count], self.low, self.high)
        if not self.rigid:
            return FrameFit(row, state.R, state.t)
        rotation = rotations.matrix(rotations.exp(step[count : count + 3]))
        return FrameFit(row, rotation @ state.R, rotation @ (state.t - middle) + middle + step[count + 3 :])


def bounded_step(N: Floats, g: Floats, low: Floats, high: Floats) -> Floats:
    """The minimum of ½ dᵀ N d + gᵀ d within bounds.

    All that are on the wrong side of what bounds them change it at once (Hintermüller, Ito and Kunisch 2003); if that
    leads nowhere three times, one at a time, which always ends (Júdice and Pires 1994).
    """
    at, fewest, patience = np.zeros(len(g)), len(g) + 1, 3
    for _ in range(MAX_PIVOTED_SETS):
        step, free = np.where(at < 0, low, np.where(at > 0, high, 0.0)), at == 0
        step[free] = np.linalg.solve(N[np.ix_(free, free)], -(g + N @ step)[free])
        wished = step - (N @ step + g) / np.diag(N)
        below, above = wished < low - BOUND_ROUNDING * (1 + 2 * at), wished > high + BOUND_ROUNDING * (1 - 2 * at)
        beyond = np.where(below, -1.0, np.where(above, 1.0, 0.0))
        wrong = np.flatnonzero(beyond != at)
        if not len(wrong):
            break
        patience = 3 if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        change = wrong if patience > 0 else wrong[-1:]
        at[change] = beyond[change]
    return np.clip(step, low, high)


# All frames


def fit(
    rig: Blendshapes,
    target: Any,
    *,
    markers: Any,
    bounds: Any,
    rigid: bool,
    sparsity: float,
    smoothness: float,
    accuracy: float,
    progress: Callable[[int, int], None] | None,
) -> SliderFit:
    """SliderFit every frame, and smooth the clip; see `Blendshapes.fit`."""
    rig.need_all_vertices("fitting sliders")
    positive_number(accuracy, "accuracy")
    for name, value in (("sparsity", sparsity), ("smoothness", smoothness)):
        if not (isinstance(value, (int, float)) and np.isfinite(value) and value >= 0):
            raise InputError(f"{name} is {value!r}; expected a number, 0 or more", argument=name)
    limits, count = as_array(bounds, "bounds", np.float64), len(rig.sliders.names)
    if limits.shape not in ((2,), (count, 2)):
        raise InputError(
            f"bounds have shape {limits.shape}; expected lowest and highest, or ({count}, 2)", argument="bounds"
        )
    if not (limits[..., 0] <= limits[..., 1]).all():
        raise InputError(
            f"bounds are {limits.tolist()}; expected the lowest first, then the highest", argument="bounds"
        )
    low, high = np.broadcast_to(limits, (count, 2)).T
    seen, fps = observed(rig, target, markers)
    fitting = Fitting(rig, low, high, rigid, sparsity, accuracy)
    parts, vertices = taking_part(seen, len(rig.shapes.base.points))
    linear, physical, base = LinearModel(rig, vertices), PhysicalModel(rig, vertices), rig.shapes.points[0, vertices]
    row = np.zeros(len(rig.shapes))
    row[fitting.numbers] = np.clip(0.0, low, high)
    frames: list[FrameFit] = []
    linear_errors: list[float] = []
    for k, each in enumerate(parts):
        if each is None:  # too little is seen: as before, until the clip is smoothed
            frames.append(replace(frames[-1], columns=None))
            linear_errors.append(linear_errors[-1])
            continue
        if not frames:
            motions = each.motions(base) if rigid else [(np.eye(3), np.zeros(3))]
            fits = sorted((fitting.fit(linear, each, FrameFit(row, *m)) for m in motions), key=lambda f: f.error)
            plain = fits[0]
            starts = [FrameFit(f.row, f.R, f.t) for f in (fits if isinstance(each, Scanned) else fits[:1])]
            if isinstance(each, Scanned):  # the closest points may mislead
                starts.append(FrameFit(row, *motions[0]))
        else:
            before = frames[-1]
            plain = fitting.fit(linear, each, FrameFit(before.row, before.R, before.t))
            known = None if before.columns is None else before.taken
            starts = [FrameFit(before.row, before.R, before.t, before.columns, before.felt, known)]
            before.columns = None
        linear_errors.append(plain.error)
        found = fitting.fit(physical, each, starts[0])
        for start in starts[1:]:
            if found.error > DOUBTFUL_ERROR * rig.body.diagonal:
                found = min(found, fitting.fit(physical, each, start), key=lambda f: f.error)
        if frames and found.error > 2 * plain.error + STUCK_ERROR * rig.body.diagonal:
            again = fitting.fit(physical, each, FrameFit(plain.row, plain.R, plain.t))
            found = min(found, again, key=lambda f: f.error)
        found.points = found.placed(physical.shape(found.row))
        frames.append(found)
        if progress is not None:
            progress(k + 1, len(seen))
    if smoothness and len(frames) > 2:
        for _ in range(SMOOTHING_ROUNDS):
            _smooth(fitting, physical, parts, frames, smoothness)
    values = np.stack([frame.row for frame in frames])[:, fitting.numbers]
    points = [frame.points for frame in frames]
    _warn(rig, seen, frames)
    rate = DEFAULT_FPS if fps is None else fps
    return SliderFit(
        WeightClip(rig.sliders.names, values, rate, "fit"),
        np.stack([frame.R for frame in frames]),
        np.stack([frame.t for frame in frames]),
        np.array([frame.error for frame in frames]),
        np.array(linear_errors),
        tuple(frame.converged for frame in frames),
        tuple(k for k, frame in enumerate(frames) if frame.error > MOST_ERROR * rig.body.diagonal),
        Animation(rig.shapes.base, np.stack(points), rate, "fit"),
    )


def _warn(rig: Blendshapes, seen: Sequence[Seen | None], frames: Sequence[FrameFit]) -> None:
    """Of what cannot be vouched for."""
    unseen = [k for k, each in enumerate(seen) if each is None]
    if unseen:
        text = (
            f"{len(unseen)} frames show less than 3 points, the first of them frame {unseen[0]}; they have the sliders "
        )
        warnings.warn(text + "of the frames around them", PliantWarning, stacklevel=4)
    worst = int(np.argmax([frame.error for frame in frames]))
    far, each = frames[worst].error / rig.body.diagonal, seen[worst]
    if far > MOST_ERROR:
        text = f"frame {worst} is {far:.1%} of the diagonal away from what was seen; is that of another rig, "
        warnings.warn(text + "with other vertices (they count from 0) or units?", PliantWarning, stacklevel=4)
    elif isinstance(each, Marked) and len(each.rows.targets) < len(rig.shapes.base.points):
        rows = each.rows
        away = np.linalg.norm(rows.of(frames[worst].points) - rows.targets, axis=1)
        k = int(np.argmax(away))
        if away[k] > max(OUTLYING_MARKER * float(np.median(away)), MOST_ERROR * rig.body.diagonal):
            far = float(away[k]) / rig.body.diagonal
            text = f"frame {worst}: vertex {rows.corners[k, 0]} was seen {far:.1%} of the diagonal away from the fit"
            warnings.warn(f"{text}, far more than most", PliantWarning, stacklevel=4)


def _smooth(
    fitting: Fitting, model: PhysicalModel, seen: Sequence[Seen | None], frames: list[FrameFit], smoothness: float
) -> None:
    """A Gauss–Newton step of all frames together, with s Σ |w_f+1 - 2 w_f + w_f-1|² added to the objective."""
    from pliant.numerics.linalg import solve

    about: list[Linearised] = []
    size = len(fitting.numbers) + 6 * fitting.rigid
    for each, frame in zip(seen, frames, strict=True):
        if each is None:
            about.append(Linearised(RIDGE * np.eye(size), np.zeros(size), np.ones(size), frame.t))
            continue
        x = model.points(frame.row)
        frame.take(model)
        about.append(fitting.linearised(each.stages[-1].at(frame.placed(x)), x, frame))
        frame.columns = None
    count = len(fitting.numbers)
    second = sp.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(len(frames) - 2, len(frames)))
    curved = smoothness * sp.kron(second.T @ second, sp.diags(np.arange(size) < count, dtype=float))
    values = np.zeros((len(frames), size))
    values[:, :count] = np.stack([frame.row for frame in frames])[:, fitting.numbers]
    right = np.concatenate([each.g for each in about]) + curved @ values.ravel()
    steps = -solve((sp.block_diag([each.N for each in about]) + curved).tocsc(), right).reshape(values.shape)
    for k, frame in enumerate(frames):
        moved = fitting.moved(frame, steps[k], about[k].middle)
        frame.row, frame.R, frame.t = moved.row, moved.R, moved.t
        frame.points = frame.placed(model.shape(frame.row))
        each = seen[k]
        frame.error = frame.error if each is None else each.error(frame.placed(model.points(frame.row)))
