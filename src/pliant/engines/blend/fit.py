"""Fitting: from shapes back to sliders. Weights and a rigid motion for which a rig's shape is where it was seen.

    min over w, R, t of   1/(K D²) Σ_k |S_k (R p_k(w) + t - y_k)|² + sparsity Σ_s |w_s|,     bounds on w,

with p_k points of the blended surface (vertices, or points on its faces), y_k where each was seen, D the diagonal.
What is seen may be the whole mesh, some markers, or a scan of which nobody knows what belongs to what: then p_k is the
point of the surface that is closest to y_k now, and S_k counts the distance along the normal there in full and that
across it by `ACROSS`, so that a surface slides along itself.

Gauss–Newton, bounded: the shape's derivative by the sliders is exact (`pliant.engines.blend.jacobian`) where it is
taken, and is updated from shape to shape by Broyden's formula until a step is worse than predicted. It starts from the
fit of linear blending, which has constant derivatives and costs next to nothing.

In a clip each frame starts from the one before. Smoothness is added once all frames are known: with N_f the frame's
normal matrix at its fit w_f, the clip is the minimum of ``Σ_f (w - w_f)ᵀ N_f (w - w_f) + s Σ_f |w_f+1 - 2 w_f + w_f-1|²``,
so that what a frame does not show is taken from its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS, Animation, WeightClip
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.topology import Floats, Ints
from pliant.core.values import Displayed, as_array
from pliant.engines.blend.equilibrium import SolveOptions
from pliant.engines.blend.jacobian import FreeDerivative, slider_chain
from pliant.geometry.spatial import SurfaceTree

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

SHAPE_ACCURACY = 1e-5
"""Of the blended shapes."""
ACROSS = 0.1
"""How much distances along a scanned surface count beside those along its normal."""
OUTLYING = 4.0
"""Distance over the median from which a scan's point counts as none of this surface."""
MOST_SCAN_POINTS = 6000
"""Of a scan, evenly chosen, that take part."""
RIDGE = 1e-12
"""Weight, over the mean of the others, by which sliders that nothing shows stay where they are."""
MOST_ITERATIONS = 40
"""Of a frame."""
POOR, FAR, EXACT = 0.5, 0.25, 0.01
"""Share of the predicted decrease below which the derivative is taken anew; change of a slider from which it is; and
change up to which it counts as exact, as it has to be at the end."""
MOST_DAMPING = 1e6
"""At which no step helps."""
LEAST_SCAN_POINTS = 100
ALIGNING = ((150, 5, 6), (600, 15, 3))
"""How a scan's rigid motion is found: of so many of its points, rounds of closest points, and the best that are kept."""
CUBE_ROTATIONS = [
    R for order in permutations(range(3)) for signs in product((1, -1), repeat=3)
    if np.linalg.det(R := np.eye(3)[list(order)] * signs) > 0
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fit(Displayed):
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
    clip: Animation
    """The fitted shapes, where they were seen."""

    def __repr__(self) -> str:
        return f"Fit({len(self.weights)} frames of {len(self.weights.names)} sliders, error {self.errors.max():.3g})"


# What is seen


@dataclass(frozen=True, eq=False)
class Rows:
    """Points of the surface and where they are to be."""

    corners: Ints
    """(k, c) vertices."""
    shares: Floats
    """(k, c) their weights."""
    targets: Floats
    """(k, 3)"""
    metric: Floats | None = None
    """(k, 3, 3) S, or None for the distance itself."""

    def of(self, values: Floats) -> Floats:
        """(k, 3, ...) from values (n, 3, ...) of the vertices."""
        return np.einsum("kc,kc...->k...", self.shares, values[self.corners])

    def weighed(self, values: Floats) -> Floats:
        """(k, 3, ...) under the metric."""
        return values if self.metric is None else np.einsum("kab,kb...->ka...", self.metric, values)


@dataclass(frozen=True, eq=False)
class Marked:
    """Known points of the surface, some of them perhaps missing."""

    rows: Rows

    def at(self, points: Floats) -> Rows:
        """The same for all shapes."""
        return self.rows

    def error(self, points: Floats) -> float:
        """Root mean square distance of a shape (n, 3)."""
        gap = self.rows.of(points) - self.rows.targets
        return float(np.sqrt((gap**2).sum(axis=1).mean()))

    def motions(self, points: Floats) -> list[tuple[Floats, Floats]]:
        """The rigid motion that takes a shape (n, 3) nearest to what was seen."""
        return [rigid_motion_between(self.rows.of(points), self.rows.targets)]


@dataclass(frozen=True, eq=False)
class Scanned:
    """Points somewhere on the surface."""

    targets: Floats
    base: Mesh

    @cached_property
    def tree(self) -> SurfaceTree:
        return SurfaceTree(self.base)

    def at(self, points: Floats) -> Rows:
        """The closest points of a shape (n, 3), without those that are none of it."""
        triangles = self.base.triangles
        found = self.tree.moved(points).closest(self.targets)
        near = found.distance <= max(OUTLYING * float(np.median(found.distance)), 1e-12)
        corners = triangles[found.triangle[near]]
        a, b, c = (points[corners[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        along = normal[:, :, None] * normal[:, None, :]
        metric = ACROSS * np.eye(3) + (1 - ACROSS) * along
        return Rows(corners, found.barycentric[near], self.targets[near], metric)

    def error(self, points: Floats) -> float:
        """Root mean square distance of what belongs to the surface, from a shape (n, 3)."""
        distance = self.tree.moved(points).closest(self.targets).distance
        near = distance <= OUTLYING * float(np.median(distance))
        return float(np.sqrt((distance[near] ** 2).mean()))

    def motions(self, points: Floats) -> list[tuple[Floats, Floats]]:
        """Rigid motions that take a shape (n, 3) near, the best first: as it is, and along principal axes, any way."""
        axes = [np.linalg.svd(p - p.mean(axis=0), full_matrices=False)[2] for p in (points, self.targets)]
        axes = [a * np.sign(np.linalg.det(a)) for a in axes]
        starts = [np.eye(3), *(axes[1].T @ turn @ axes[0] for turn in CUBE_ROTATIONS)]
        centre = points.mean(axis=0)
        found = [(R, self.targets.mean(axis=0) - R @ centre) for R in starts]
        for count, rounds, kept in ALIGNING:
            some = Scanned(self.targets[:: max(1, len(self.targets) // count)], self.base)
            some.__dict__["tree"] = self.tree
            found = [some._aligned(points, R, t, rounds) for R, t in found]
            found.sort(key=lambda motion: some._misfit(points @ motion[0].T + motion[1]))
            found = found[:kept]
        return found

    def _aligned(self, points: Floats, R: Floats, t: Floats, rounds: int) -> tuple[Floats, Floats]:
        """Iterated closest points."""
        for _ in range(rounds):
            rows = self.at(points @ R.T + t)
            R, t = rigid_motion_between(rows.of(points), rows.targets)
        return R, t

    def _misfit(self, points: Floats) -> float:
        distances = self.tree.moved(points).closest(self.targets).distance
        return float(np.sort(distances)[: max(1, 4 * len(distances) // 5)].mean())


Seen = Marked | Scanned


def rigid_motion_between(points: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """R, t with least Σ |R p + t - y|²."""
    p, y = points.mean(axis=0), targets.mean(axis=0)
    U, _, V = np.linalg.svd((targets - y).T @ (points - p))
    R = U * [1, 1, np.sign(np.linalg.det(U @ V))] @ V
    return R, y - R @ p


# Shapes and their derivatives by the sliders


class LinearModel:
    """Linear blending."""

    constant = True
    """Its derivative."""

    def __init__(self, rig: Blendshapes) -> None:
        self.rig = rig
        self.deltas: Floats = rig.shapes.points[1:] - rig.shapes.points[0]

    def points(self, row: Floats) -> Floats:
        """(n, 3) at sliders (shapes,)."""
        return self.rig.shapes.points[0] + np.einsum("s,snk->nk", self.rig.weights(row)[1:], self.deltas)

    def columns(self, row: Floats) -> Floats:
        """(n, 3, sliders)"""
        return np.einsum("snk,sm->nkm", self.deltas, slider_chain(self.rig, row), optimize=True)


class PhysicalModel:
    """The rig's equilibria."""

    constant = False

    def __init__(self, rig: Blendshapes) -> None:
        self.rig = rig
        self._last: tuple[Floats, Floats] | None = None

    def points(self, row: Floats) -> Floats:
        """(n, 3) at sliders (shapes,)."""
        rig, w = self.rig, self.rig.weights(row)
        start = rig.statics.start(w, SHAPE_ACCURACY)
        options = SolveOptions(accuracy=SHAPE_ACCURACY)
        x = rig.statics.outcome(rig.body.network, w, start, rig.body.rest(w), None, options).x
        self._last = w, x
        return rig.statics.surface(x, w)

    def columns(self, row: Floats) -> Floats:
        """(n, 3, sliders)"""
        w = self.rig.weights(row)
        if self._last is None or not np.array_equal(self._last[0], w):
            self.points(row)
        assert self._last is not None
        moved = FreeDerivative(self.rig.body, *self._last).surface_columns() @ slider_chain(self.rig, row)
        return moved[self.rig._weld.index]


Model = LinearModel | PhysicalModel


# One frame


@dataclass(eq=False)
class FrameFit:
    """Sliders and rigid motion of a frame, and the derivative at hand."""

    row: Floats
    """(shapes,) sliders."""
    R: Floats
    t: Floats
    columns: Floats | None = None
    """(n, 3, sliders) the derivative, exact or updated."""
    taken: Floats | None = None
    """(shapes,) the sliders where it was exact."""
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """(n, 3) the shape, where it was seen."""
    error: float = np.inf
    converged: bool = False
    normal: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(sliders, sliders) N at the end, for the best rigid motion."""

    def placed(self, x: Floats) -> Floats:
        """(n, 3) a shape where it is seen."""
        return x @ self.R.T + self.t


@dataclass(frozen=True, eq=False)
class Step:
    """A bounded Gauss–Newton step."""

    change: Floats
    """(sliders,)"""
    rotvec: Floats
    shift: Floats
    middle: Floats
    """What it rotates about."""
    predicted: float
    """Decrease of the objective."""
    normal: Floats


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
        return [self.rig.shapes.names.index(name) for name in self.rig.sliders.names]

    def frame(self, model: Model, seen: Seen, state: FrameFit) -> FrameFit:
        """The fit from a start, in place."""
        x = model.points(state.row)
        if state.columns is None:
            state.columns, state.taken = model.columns(state.row), state.row
        cost, damping = self._cost(seen, x, state), 0.0
        for _ in range(MOST_ITERATIONS):
            step = self._step(seen, x, state, damping)
            state.normal = step.normal
            trial = self._moved(state, step)
            y = model.points(trial.row)
            reached = self._cost(seen, y, trial)
            exact = state.row is state.taken
            poor = cost - reached < POOR * step.predicted
            if reached <= cost:
                if not poor:
                    state.columns = _updated(state.columns, trial.row[self.numbers] - state.row[self.numbers], y - x)
                state.row, state.R, state.t, x, cost = trial.row, trial.R, trial.t, y, reached
                damping /= 10
            elif exact:
                damping = max(10 * damping, 1e-3)
            settled = float(np.abs(step.change).max(initial=0)) <= self.accuracy
            away = float(np.abs(state.row - state.taken).max(initial=0))
            state.converged = settled and (model.constant or away <= EXACT)
            if state.converged or damping > MOST_DAMPING:
                break
            if not model.constant and state.row is not state.taken and (poor or settled or away > FAR):
                state.columns, state.taken = model.columns(state.row), state.row
        state.points = state.placed(x)
        state.error = seen.error(state.points)
        return state

    def _cost(self, seen: Seen, x: Floats, state: FrameFit) -> float:
        world = state.placed(x)
        rows = seen.at(world)
        gap = rows.weighed(rows.of(world) - rows.targets)
        return float((gap**2).mean()) / self._unit + self.sparsity * float(np.abs(state.row[self.numbers]).sum())

    @cached_property
    def _unit(self) -> float:
        """Of squared distances: a coordinate's share of the diagonal's."""
        return self.rig.body.diagonal**2 / 3

    def _step(self, seen: Seen, x: Floats, state: FrameFit, damping: float) -> Step:
        assert state.columns is not None
        world = state.placed(x)
        rows, count = seen.at(world), len(self.numbers)
        p = rows.of(world)
        middle = p.mean(axis=0)
        A = np.zeros((len(p), 3, count + 6 * self.rigid))
        A[:, :, :count] = np.einsum("ab,kbs->kas", state.R, rows.of(state.columns))
        if self.rigid:
            A[:, :, count : count + 3] = np.cross(np.eye(3), (p - middle)[:, None, :]).transpose(0, 2, 1)
            A[:, :, count + 3 :] = np.eye(3)
        A = rows.weighed(A).reshape(3 * len(p), -1)
        unit = len(A) * self._unit
        value = state.row[self.numbers]
        N, g = A.T @ A / unit, A.T @ rows.weighed(p - rows.targets).ravel() / unit
        g[:count] += 0.5 * self.sparsity * np.where(value < 0, -1.0, 1.0)
        diagonal = np.diag(N).copy()
        diagonal[:count] = np.maximum(diagonal[:count], diagonal[:count].mean())
        N += np.diag(np.maximum(damping, RIDGE) * np.maximum(diagonal, 1e-300))
        far = np.full(len(g) - count, np.inf)
        step = _bounded(N, g, np.concatenate([self.low - value, -far]), np.concatenate([self.high - value, far]))
        normal = N[:count, :count]
        if self.rigid:
            normal = normal - N[:count, count:] @ np.linalg.solve(N[count:, count:], N[count:, :count])
        rigid = np.concatenate([step[count:], np.zeros(6 * (not self.rigid))])
        return Step(step[:count], rigid[:3], rigid[3:], middle, -float(2 * g @ step + step @ N @ step), normal)

    def _moved(self, state: FrameFit, step: Step) -> FrameFit:
        row = state.row.copy()
        row[self.numbers] = np.clip(row[self.numbers] + step.change, self.low, self.high)
        turn = rotations.matrix(rotations.exp(step.rotvec))
        return FrameFit(row, turn @ state.R, turn @ (state.t - step.middle) + step.middle + step.shift)


def _updated(columns: Floats, change: Floats, moved: Floats) -> Floats:
    """Broyden's update of a derivative (n, 3, sliders) by what a change of the sliders has moved, (n, 3)."""
    size = float(change @ change)
    if not size:
        return columns
    updated: Floats = columns + (moved - columns @ change)[:, :, None] * (change / size)
    return updated


def _bounded(N: Floats, g: Floats, low: Floats, high: Floats) -> Floats:
    """The minimum of ½ dᵀ N d + gᵀ d within bounds, which 0 lies in."""
    from scipy.optimize import lsq_linear

    step: Floats = np.linalg.solve(N, -g)
    if ((step < low) | (step > high)).any():
        L = np.linalg.cholesky(N)
        step = lsq_linear(L.T, -np.linalg.solve(L, g), (low - 1e-12, high + 1e-12), method="bvls").x
    return np.clip(step, low, high)


# All frames


def fit(
    rig: Blendshapes,
    seen: Sequence[Seen],
    *,
    low: Floats,
    high: Floats,
    rigid: bool,
    sparsity: float,
    smoothness: float,
    accuracy: float,
    fps: float | None,
    progress: Callable[[int, int], None] | None = None,
) -> Fit:
    """Fit every frame, and smooth the clip; see `Blendshapes.fit`."""
    fitting = Fitting(rig, low, high, rigid, sparsity, accuracy)
    linear, physical = LinearModel(rig), PhysicalModel(rig)
    row = np.zeros(len(rig.shapes))
    row[fitting.numbers] = np.clip(0.0, low, high)
    frames: list[FrameFit] = []
    linear_errors = []
    for k, each in enumerate(seen):
        if not frames:
            motions = each.motions(rig.shapes.points[0]) if rigid else [(np.eye(3), np.zeros(3))]
            plain = min((fitting.frame(linear, each, FrameFit(row, *m)) for m in motions), key=lambda f: f.error)
            starts = [FrameFit(plain.row, plain.R, plain.t)]
            if isinstance(each, Scanned):  # the closest points may mislead
                starts.append(FrameFit(row, *motions[0]))
        else:
            before = frames[-1]
            plain = fitting.frame(linear, each, FrameFit(before.row, before.R, before.t))
            starts = [FrameFit(before.row, before.R, before.t, before.columns, before.taken)]
            before.columns = None
        linear_errors.append(plain.error)
        frames.append(min((fitting.frame(physical, each, start) for start in starts), key=lambda f: f.error))
        if progress is not None:
            progress(k + 1, len(seen))
    values = np.stack([frame.row for frame in frames])[:, fitting.numbers]
    points = [frame.points for frame in frames]
    if smoothness and len(frames) > 2:
        values = np.clip(_smoothed(values, [frame.normal for frame in frames], smoothness), low, high)
        for k, frame in enumerate(frames):
            frame.row[fitting.numbers] = values[k]
            points[k] = frame.placed(physical.points(frame.row))
            frame.error = seen[k].error(points[k])
    rate = DEFAULT_FPS if fps is None else fps
    return Fit(
        WeightClip(rig.sliders.names, values, rate, "fit"),
        np.stack([frame.R for frame in frames]),
        np.stack([frame.t for frame in frames]),
        np.array([frame.error for frame in frames]),
        np.array(linear_errors),
        tuple(frame.converged for frame in frames),
        Animation(rig.shapes.base, np.stack(points), rate, "fit"),
    )


def _smoothed(values: Floats, normals: Sequence[Floats], smoothness: float) -> Floats:
    """(frames, sliders) the minimum of Σ (w - w_f)ᵀ N_f (w - w_f) + s Σ |second differences|²."""
    from pliant.numerics.linalg import solve

    frames, count = values.shape
    data = sp.block_diag(normals, format="csr")
    second = sp.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(frames - 2, frames))
    curved = sp.kron(second.T @ second, sp.eye(count))
    right = data @ values.ravel()
    found: Floats = solve((data + smoothness * curved).tocsc(), right).reshape(frames, count)
    return found


def observed(rig: Blendshapes, target: Any, markers: Any) -> tuple[list[Seen], float | None]:
    """What is seen in each frame, checked, and the frame rate if there is one."""
    base = rig.shapes.base
    fps = None
    if isinstance(target, Animation):
        fps, frames = target.fps, target.points
        shape: Any = target.shape
    elif isinstance(target, (Mesh, PointCloud)):
        frames, shape = target.points[None], target
    else:
        frames, shape = as_array(target, "target", np.float64), None
        frames = frames[None] if frames.ndim == 2 else frames
        if frames.ndim != 3 or frames.shape[2] != 3 or not frames.size:
            raise InputError(
                f"target has shape {frames.shape}; expected points (k, 3), or (frames, k, 3)", argument="target"
            )
    if markers is not None:
        corners, shares = _marker_rows(base, markers)
    elif frames.shape[1] == len(base.points):
        corners, shares = np.arange(len(base.points))[:, None], np.ones((len(base.points), 1))
    elif shape is None and len(frames) > 1:
        raise InputError(
            f"target has {frames.shape[1]} points in each frame, the rig {len(base.points)}; say which vertices they are: "
            "markers=[...]",
            argument="target",
        )
    else:
        return [_scan(base, points) for points in frames], fps
    if frames.shape[1] != len(corners):
        raise InputError(
            f"target has {frames.shape[1]} points for {len(corners)} markers; expected one for each", argument="target"
        )
    return [_marked(corners, shares, points, k) for k, points in enumerate(frames)], fps


def _marked(corners: Ints, shares: Floats, points: Floats, frame: int) -> Marked:
    there = np.isfinite(points).all(axis=1)
    if there.sum() < 3:
        raise InputError(f"frame {frame} has {there.sum()} points that are not missing; expected at least 3")
    return Marked(Rows(corners[there], shares[there], points[there]))


def _scan(base: Mesh, points: Floats) -> Scanned:
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < LEAST_SCAN_POINTS:
        raise InputError(
            f"target has {len(points)} points, the rig {len(base.points)}; expected as many, or a scan of at least "
            f"{LEAST_SCAN_POINTS}, or say which vertices they are: markers=[...]",
            argument="target",
        )
    chosen = np.linspace(0, len(points) - 1, min(len(points), MOST_SCAN_POINTS)).astype(np.int64)
    return Scanned(points[chosen], base)


def _marker_rows(base: Mesh, markers: Any) -> tuple[Ints, Floats]:
    """Vertices and their shares, of vertex numbers (k,) or of points (triangles (k,), barycentric (k, 3))."""
    if isinstance(markers, tuple) and len(markers) == 2:
        triangle, shares = as_array(markers[0], "markers", np.int64), as_array(markers[1], "markers", np.float64)
        if triangle.ndim != 1 or shares.shape != (len(triangle), 3) or not np.isfinite(shares).all():
            raise InputError("markers on faces need triangles (k,) and barycentric weights (k, 3)", argument="markers")
        _check_numbers(triangle, len(base.triangles), "triangle")
        return base.triangles[triangle], shares
    vertices = as_array(markers, "markers", np.int64)
    if vertices.ndim != 1 or not len(vertices):
        raise InputError(f"markers have shape {vertices.shape}; expected vertex numbers (k,)", argument="markers")
    _check_numbers(vertices, len(base.points), "vertex")
    return vertices[:, None], np.ones((len(vertices), 1))


def _check_numbers(numbers: Ints, count: int, what: str) -> None:
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if len(wrong):
        raise InputError(f"markers name {what} {wrong[0]}; the rig has {count}, numbered from 0", argument="markers")
