"""`Blendshapes`: poses of one mesh, blended as a body (Ma et al. 2011).

    rig = Blendshapes(shapes)
    pose = rig.solve([0.5, 0.5])            # one shape
    clip = rig.animate(steps=36)            # from the first shape to the last

Weights are an artist's sliders: the base takes up what the others leave, ``w_0 = 1 - Σ w_s``, and they may go below 0
or above 1. Every frame is solved for itself, from the rotation-aware guess, so that the same weights give the same
shape in any order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.blend.body import SpringBody, spring_body
from pliant.blend.equilibrium import Method, Outcome, lbfgs, newton, paper_newton
from pliant.blend.interior import InteriorMethod, fill_parts
from pliant.blend.springs import SpringKind, Springs
from pliant.clips import Animation, Pose, Shapes
from pliant.errors import InputError
from pliant.shapes import Mesh, Weld
from pliant.topology import Floats

log = logging.getLogger("pliant.blend")

STILL = 1e-9
"""Motion, over the diagonal, below which a vertex counts as static."""


class Blendshapes:
    """Physical blendshapes over two or more shapes of one topology.

    shapes: meshes, or `Shapes`; the first is the base.
    pins: vertices that move on straight lines between their places in the shapes (static vertices always do).
    interior: how the inside is filled: "lattice", "tetgen", "none", or "auto".
    stiffness: factors on the spring constants, by kind ({"bending": 0.5}) or one for each vertex.
    """

    def __init__(
        self,
        shapes: Sequence[Mesh] | Shapes,
        *,
        pins: ArrayLike | None = None,
        interior: InteriorMethod = "auto",
        stiffness: Mapping[SpringKind, float] | ArrayLike | None = None,
    ) -> None:
        self.shapes = Shapes.of(shapes)
        if len(self.shapes) < 2:
            raise InputError("got one shape; expected a base and at least one more to blend with")
        self._weld: Weld = self.shapes.base.welded(poses=list(self.shapes.points[1:]))
        points = np.ascontiguousarray(self.shapes.points[:, self._weld.kept])
        mesh = self._weld.mesh
        if not len(mesh.triangles):
            raise InputError("the base has no faces; expected a mesh")
        held = _static(points, mesh) | self._pinned(pins)
        filling, part = fill_parts(mesh, points, interior)
        self.interior = filling.method
        log.info("interior: %s, %d vertices added", filling.method, len(filling.points))
        self.body: SpringBody = spring_body(
            points, mesh.edges, filling.points, filling.tets, held=held, part=part, stiffness=stiffness
        )

    def __repr__(self) -> str:
        added = self.body.network.count - len(self._weld.mesh.points)
        return (
            f"Blendshapes({len(self.shapes)} shapes, {self.body.network.count} vertices of which {added} inside, "
            f"{len(self.springs)} springs)"
        )

    @property
    def springs(self) -> Springs:
        """The spring network."""
        return self.body.springs

    def _pinned(self, pins: ArrayLike | None) -> NDArray[np.bool_]:
        mask = np.zeros(len(self._weld.mesh.points), dtype=bool)
        if pins is None:
            return mask
        vertices = np.asarray(pins)
        if vertices.dtype == bool and vertices.shape == self.shapes.base.points.shape[:1]:
            vertices = np.flatnonzero(vertices)
        if vertices.ndim != 1 or (vertices.size and not np.issubdtype(vertices.dtype, np.integer)):
            raise InputError(f"pins have shape {vertices.shape} and type {vertices.dtype}; expected vertex numbers")
        count = len(self.shapes.base.points)
        if vertices.size and not (vertices.min() >= 0 and vertices.max() < count):
            raise InputError(f"pins name vertex {int(vertices.max())}; the mesh has {count}, numbered from 0")
        mask[self._weld.index[vertices]] = True
        return mask

    def weights(self, weights: ArrayLike | Mapping[str, float]) -> Floats:
        """(shapes,) full weights from sliders: by name, one for each shape, or one for each shape but the base."""
        count = len(self.shapes)
        if isinstance(weights, Mapping):
            unknown = sorted(set(weights) - set(self.shapes.names))
            if unknown:
                raise InputError(f'no shape is called "{unknown[0]}"; there are {", ".join(self.shapes.names)}')
            full = np.array([float(weights.get(name, 0.0)) for name in self.shapes.names])
        else:
            full = np.array(weights, dtype=np.float64)
            if full.shape == (count - 1,):
                full = np.concatenate([[0.0], full])
        if full.shape != (count,) or not np.isfinite(full).all():
            raise InputError(f"weights have shape {full.shape}; expected {count} finite numbers, one for each shape")
        full[0] = 1 - full[1:].sum()
        return full

    def solve(
        self,
        weights: ArrayLike | Mapping[str, float],
        *,
        method: Method = "lbfgs",
        accuracy: float = 1e-4,
        iterations: int | None = None,
        start: Floats | None = None,
        watch: Callable[[Floats, float], None] | None = None,
    ) -> Pose:
        """The shape at these weights.

        accuracy: how near to equilibrium: the remaining energy over that of linear blending, about.
        start: (n, 3) places of the network's vertices in the base's frame to start from, in place of the guess.
        """
        if not 0 < accuracy < 1:
            raise InputError(f"accuracy is {accuracy}; expected a number between 0 and 1, such as 1e-4")
        outcome = self._outcome(self.weights(weights), method, accuracy, iterations, start, watch)
        return self._pose(outcome, self.weights(weights))

    def _outcome(
        self,
        w: Floats,
        method: Method,
        accuracy: float,
        iterations: int | None,
        start: Floats | None,
        watch: Callable[[Floats, float], None] | None,
    ) -> Outcome:
        body = self.body
        x = body.guess(w) if start is None else np.array(start, dtype=np.float64)
        r = body.rest(w)
        scale = body.network.energy(body.linear(w), r, np.empty_like(x))
        scale = max(scale, 1e-12 * float(np.sum(self.springs.stiffness * r * r)))
        if method == "lbfgs":
            return lbfgs(
                body.network, x, r, tolerance=accuracy, scale=scale, iterations=iterations or 1000, watch=watch
            )
        if method == "newton":
            return newton(
                body.network, x, r, tolerance=accuracy, scale=scale, iterations=iterations or 200, watch=watch
            )
        if method == "paper":
            tolerance = accuracy * body.diagonal
            return paper_newton(body.network, x, r, tolerance=tolerance, iterations=iterations or 60, watch=watch)
        raise InputError(f'method is "{method}"; expected lbfgs, newton or paper')

    def _pose(self, outcome: Outcome, w: Floats) -> Pose:
        placed = self.body.frames.placed(outcome.x, w)
        surface = placed[: len(self._weld.mesh.points)]
        return Pose(
            self.shapes.base.with_points(self._weld.restore(surface)),
            outcome.residual,
            outcome.iterations,
            outcome.converged,
            inverted=int(inverted(self.body, outcome.x)),
            message=outcome.message,
        )

    def animate(
        self,
        weights: ArrayLike | None = None,
        *,
        steps: int = 36,
        fps: float = 30.0,
        method: Method = "lbfgs",
        accuracy: float = 1e-4,
        progress: Callable[[int, int, Pose], None] | None = None,
    ) -> Animation:
        """A clip: weights (frames, shapes), or `steps` frames from the first shape to the last."""
        if weights is None:
            t = np.linspace(0, 1, steps)
            table = np.zeros((steps, len(self.shapes)))
            table[:, 0], table[:, -1] = 1 - t, t
        else:
            table = np.asarray(weights, dtype=np.float64)
            if table.ndim != 2:
                raise InputError(f"weights have shape {table.shape}; expected (frames, {len(self.shapes)})")
        frames = []
        for k, row in enumerate(table):
            pose = self.solve(row, method=method, accuracy=accuracy)
            frames.append(pose.points)
            if progress is not None:
                progress(k + 1, len(table), pose)
        return Animation(self.shapes.base, np.stack(frames), fps, "blend")


def inverted(body: SpringBody, x: Floats) -> int:
    """How many tetrahedra are turned inside out."""
    if not len(body.tets):
        return 0
    a, b, c, d = (x[body.tets[:, k]] for k in range(4))
    return int((np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) < 0).sum())


def _static(points: Floats, mesh: Mesh) -> NDArray[np.bool_]:
    """(n,) vertices that no shape moves, in parts where there are at least three of them."""
    diagonal = float(np.linalg.norm(np.ptp(points[0], axis=0)))
    still = np.abs(points - points[0]).max(axis=(0, 2)) <= STILL * diagonal
    enough = np.bincount(mesh.parts[still], minlength=mesh.parts.max() + 1) >= 3
    return still & enough[mesh.parts]
