"""Stiffness learned from frames: factors on the springs for which a rig's shapes are nearest to true in-betweens.

    min over θ of  Σ_f |x_f(θ) - y_f|² / Σ_f |x_f(0) - y_f|² + s mean_edges (θ_i - θ_j)² + r mean_i θ_i²,

with y_f a true frame, x_f the rig's shape at its sliders, and exp(θ_i) the factor of a vertex of the surface; what is
inside follows the surface, and a spring takes the mean of its ends. The gradient comes from one adjoint solve a frame:

    H λ = ∂(loss)/∂x,      ∂(loss)/∂k_q = -(λ_i - λ_j) · [(l - r) u + μ (d - (d · p) p)],

the bracket being the force of a spring over its constant (`pliant.engines.blend.equilibrium`). L-BFGS minimises it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.validation import positive_number
from pliant.core.values import Displayed, as_array
from pliant.engines.blend.body import SpringBody
from pliant.engines.blend.equilibrium import Network, SolveOptions
from pliant.engines.blend.jacobian import FreeDerivative
from pliant.engines.blend.statics import StaticSolver
from pliant.geometry.spatial import SurfaceTree

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

LEARNING_ACCURACY = 1e-6
"""Of the shapes."""
MOST_FACTOR = 30.0
"""And its inverse: the bounds of factors."""
NEAR_ONE = 1e-3
"""r: factors that nothing tells stay 1."""


@dataclass(frozen=True, eq=False)
class LearnedStiffness(Displayed):
    """Factors on a rig's stiffness, and how near its shapes come to the frames."""

    factors: Floats
    """(n,) for each vertex, on top of the stiffness that the rig has: where it has none of its own,
    `Blendshapes(shapes, stiffness=factors)`."""
    errors: Floats
    """(frames,) root mean square distance to each frame, over the diagonal."""
    errors_before: Floats
    """(frames,) the same with the stiffness that the rig has."""

    def __repr__(self) -> str:
        before, after = (float(np.sqrt((each**2).mean())) for each in (self.errors_before, self.errors))
        factors = f"{self.factors.min():.2g} to {self.factors.max():.2g}"
        return f"LearnedStiffness(factors {factors}, error {after:.2e}, {before:.2e} before)"


class Learning:
    """The loss of factors, and its gradient, for a rig and frames (frames, welded vertices, 3) at weights."""

    def __init__(self, rig: Blendshapes, weights: Floats, frames: Floats, smoothness: float) -> None:
        self.rig, self.weights, self.frames, self.smoothness = rig, weights, frames, smoothness
        body, mesh = rig.body, rig._weld.mesh
        edges = body.springs.edges
        rows = np.arange(len(edges))
        ends = sp.csr_matrix(
            (np.full(2 * len(edges), 0.5), (np.tile(rows, 2), edges.T.ravel())), (len(edges), body.network.count)
        )
        self.spread = ends @ self._inside(body, mesh)
        """(springs, surface vertices) a spring's factor from those of the surface."""
        self.base = 1 - np.asarray(self.spread.sum(axis=1)).ravel()  # of anchors' corners, whose factor is 1
        self.edges = mesh.edges
        self.errors: Floats = np.zeros(len(frames))

    @staticmethod
    def _inside(body: SpringBody, mesh: Any) -> Any:
        """(network, surface vertices): vertices inside take after the nearest point outside."""
        count, free = len(mesh.points), np.flatnonzero(~body.network.fixed)
        within = free[free >= len(mesh.points)]
        foot = SurfaceTree(mesh).closest(body.points[0][within]) if len(within) else None
        rows, columns, shares = [np.arange(count)], [np.arange(count)], [np.ones(count)]
        if foot is not None:
            rows.append(np.repeat(within, 3))
            columns.append(mesh.triangles[foot.triangle].ravel())
            shares.append(foot.barycentric.ravel())
        at = np.concatenate(rows), np.concatenate(columns)
        return sp.csr_matrix((np.concatenate(shares), at), (body.network.count, count))

    def body(self, theta: Floats) -> SpringBody:
        """The rig's with these factors."""
        own = self.rig.body
        springs = replace(own.springs, stiffness=own.springs.stiffness * (self.base + self.spread @ np.exp(theta)))
        network = Network(springs, own.network.count, own.network.fixed)
        network.__dict__["fans"] = own.network.fans
        return replace(own, springs=springs, network=network)

    def misfit(self, theta: Floats) -> tuple[float, Floats]:
        """Σ_f |x_f - y_f|² over that of no factors, and its gradient by θ (surface vertices,)."""
        body, own = self.body(theta), self.rig.body.springs.stiffness
        statics = StaticSolver(body, self.rig._weld, self.rig.shapes.base)
        by_constant = np.zeros(len(own))
        i, j = body.springs.edges.T
        for k, (w, seen) in enumerate(zip(self.weights, self.frames, strict=True)):
            rest = body.rest(w)
            options = SolveOptions(accuracy=LEARNING_ACCURACY)
            x = statics.outcome(body.network, w, statics.start(w, LEARNING_ACCURACY), rest, None, options).x
            away = np.zeros_like(x)
            away[: body.surface] = (body.frames.placed(body.centred(x), w))[: body.surface] - seen
            self.errors[k] = float(np.sqrt((away**2).sum() / body.surface))
            free, unknown = FreeDerivative(body, w, x), body.network.unknown
            adjoint = np.zeros_like(x)
            adjoint[unknown] = free.factor.solve(free.unplaced(2 * away)[unknown].ravel()).reshape(-1, 3)
            d = x[i] - x[j]
            length = np.maximum(np.linalg.norm(d, axis=1), 1e-300)[:, None]
            force = d - rest.lengths[:, None] * d / length
            if rest.direction_stiffness:
                across = d - (d * rest.directions).sum(axis=1)[:, None] * rest.directions
                force += rest.direction_stiffness * across
            by_constant -= ((adjoint[i] - adjoint[j]) * force).sum(axis=1)
        total = float((self.errors**2).sum()) * body.surface / self.unit
        gradient: Floats = self.spread.T @ (by_constant * own) * np.exp(theta) / self.unit
        return total, gradient

    @cached_property
    def unit(self) -> float:
        """The misfit without factors, in squared distances."""
        self.__dict__["unit"] = 1.0
        return max(self.misfit(np.zeros(self.spread.shape[1]))[0], 1e-300)

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """What is minimised, and its gradient."""
        total, gradient = self.misfit(theta)
        a, b = self.edges.T
        apart, s, r = theta[a] - theta[b], self.smoothness / len(a), NEAR_ONE / len(theta)
        gradient = gradient + 2 * r * theta
        np.add.at(gradient, a, 2 * s * apart)
        np.add.at(gradient, b, -2 * s * apart)
        return total + s * float(apart @ apart) + r * float(theta @ theta), gradient


def learn_stiffness(
    rig: Blendshapes,
    frames: Any,
    weights: Any,
    *,
    smoothness: float,
    iterations: int,
    progress: Callable[[int, int], None] | None,
) -> LearnedStiffness:
    """Factors for which the rig is nearest to the frames; see `Blendshapes.learn_stiffness`."""
    from scipy.optimize import minimize

    rig.need_all_vertices("learning a stiffness")
    positive_number(smoothness, "smoothness")
    points = as_array(frames.points if isinstance(frames, Animation) else frames, "frames", np.float64)
    table = rig.weight_table(weights)
    expected = (len(table), *rig.shapes.base.points.shape)
    if points.shape != expected or not np.isfinite(points).all():
        raise InputError(
            f"frames have shape {points.shape}; expected finite {expected}, a frame for each row of weights",
            argument="frames",
        )
    if not isinstance(iterations, (int, np.integer)) or iterations < 1:
        raise InputError(f"iterations is {iterations!r}; expected a whole number, 1 or more", argument="iterations")
    learning = Learning(rig, table, points[:, rig._weld.kept], smoothness)
    assert learning.unit
    before, done = learning.errors.copy(), 0

    def step(_: Any) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, iterations)

    theta = np.zeros(learning.spread.shape[1])
    limit = float(np.log(MOST_FACTOR))
    found = minimize(
        learning.loss,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-limit, limit)] * len(theta),
        callback=step,
        options={"maxiter": int(iterations)},
    )
    learning.misfit(found.x)
    scale = rig.body.diagonal
    return LearnedStiffness(np.exp(found.x)[rig._weld.index], learning.errors / scale, before / scale)
