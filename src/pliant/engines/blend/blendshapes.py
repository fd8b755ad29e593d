"""`Blendshapes`: poses of one mesh, blended as a body (Ma et al. 2011).

    rig = Blendshapes(shapes)
    pose = rig.solve([0.5, 0.5])            # one shape
    clip = rig.animate(steps=36)            # from the first shape to the last

Weights are an artist's sliders, relative to the base, whose own weight is ``w_0 = 1 - Σ w_s``; they may go below 0 or
above 1. Without contact, every frame is solved independently, from a start that depends on its weights only, so that
the same weights give the same shape in any order.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.clips import DEFAULT_FPS, MOST_FRAMES, POSE_MEASURES, Pose, Shapes, SolvedAnimation, WeightClip
from pliant.core.errors import InputError, PliantWarning, about_argument
from pliant.core.options import refuse
from pliant.core.shapes import Mesh, Weld
from pliant.core.signatures import takes_keywords_of
from pliant.core.topology import Floats, Ints
from pliant.core.validation import check_extent, positive_number
from pliant.core.values import Displayed, as_array, locked
from pliant.engines.blend.anchor import make_anchors
from pliant.engines.blend.body import SpringBody, spring_body
from pliant.engines.blend.contacts import inversion, make_contact_solver, pose_in_contact, poses_in_contact
from pliant.engines.blend.correctives import LinearRig, correctives
from pliant.engines.blend.derived_names import GivenCombinations, GivenInBetweens
from pliant.engines.blend.detail import Detail, coarse_count, coarsened
from pliant.engines.blend.equilibrium import SolveOptions, Watch
from pliant.engines.blend.fit import SliderFit, fit
from pliant.engines.blend.interior import fill_parts
from pliant.engines.blend.jacobian import Jacobian, jacobian_at
from pliant.engines.blend.learning import LearnedStiffness, learn_stiffness
from pliant.engines.blend.options import MOST_CORRECTIVES, BlendOptions, InteriorMethod, Method, Model, impossible
from pliant.engines.blend.pulls import ExternalLoad, Pull, listed, read_load
from pliant.engines.blend.reference import mean_extent, reference_shape
from pliant.engines.blend.sliders import RigSliders
from pliant.engines.blend.springs import SpringKind, Springs, positive_factors
from pliant.engines.blend.statics import STATIC_TOLERANCE, StaticSolver
from pliant.engines.blend.targets import target_problems
from pliant.geometry.regions import Region, vertex_weight
from pliant.geometry.spatial import SurfaceTree

AIMS = 4
"""Solves with which a vertex that is carried comes to where it is pulled: its carriers rotate on the way."""
log = logging.getLogger("pliant.engines.blend")

Pulls = Iterable[Pull] | Callable[[int], Iterable[Pull]]


class Blendshapes(Displayed):
    """Physical blendshapes over two or more shapes of one topology.

    shapes: meshes, or `Shapes`; the first is the base.
    anchor: where parts without fixed vertices are anchored: "auto" inside each, near its centre of mass; a point
        (x, y, z) inside the base, for the part it lies in; or "none". A part without one follows the blend of its
        rigid motion, and cannot be pulled.
    pins: vertices that move on straight lines between their positions in the shapes (static vertices are fixed).
    interior: how the inside is filled: "lattice", "tetgen", "none", or "auto".
    stiffness: factors on the spring constants, by kind ({"bending": 0.5}) or one for each vertex.
    regions: factors for parts of the surface, and what is inside below them: pairs of a region
        (`pliant.geometry.regions`) and a factor, each mixed by the region's weight with what those before it give.
    model: how rest lengths are blended: "turned", or "paper" for Eq. (1) alone; see `pliant.engines.blend.body`.
    inbetweens, combinations: shapes that are no sliders: "auto" finds them by name, "none" makes them sliders. Of
        combinations, "corrective" says that they are added to their parts, and "full" that they are whole shapes. Or
        {"half smile": ("smile", 0.5)} and {"both": ("jawOpen", "smile")}; see `pliant.engines.blend.sliders`.
    coarse: about how many vertices are solved for, if there are more, which carry the others with their details; "auto"
        for large meshes; see `pliant.engines.blend.detail`.
    """

    def __init__(
        self,
        shapes: Sequence[Mesh] | Shapes,
        *,
        anchor: Literal["auto", "none"] | ArrayLike = BlendOptions.anchor,
        pins: ArrayLike | None = None,
        interior: InteriorMethod = BlendOptions.interior,
        stiffness: Mapping[SpringKind, float] | ArrayLike | None = None,
        regions: Sequence[tuple[Region, float]] = (),
        model: Model = BlendOptions.model,
        inbetweens: GivenInBetweens = "auto",
        combinations: GivenCombinations = "auto",
        coarse: int | Literal["auto", "none"] = BlendOptions.coarse,
    ) -> None:
        BlendOptions.check(model=model, coarse=coarse)
        given = Shapes.of(shapes)
        if len(given) < 2:
            raise InputError("got one shape; expected a base and at least one more to blend with", argument="shapes")
        _check_extents(given.points)
        self.sliders = RigSliders(given, inbetweens=inbetweens, combinations=combinations)
        self.shapes: Shapes = self.sliders.shapes
        """Each in full: a combination that was given as a correction is added to its parts."""
        for problem in target_problems(self.shapes):
            warnings.warn(problem, PliantWarning, stacklevel=2)
        self._weld: Weld = self.shapes.base.welded(poses=list(self.shapes.points[1:]))
        points = np.ascontiguousarray(self.shapes.points[:, self._weld.kept])
        if not len(self._weld.mesh.triangles):
            raise InputError("the base has no faces; expected a mesh", argument="shapes")
        self._pins = self._vertices(pins)
        self.detail: Detail | None = None
        """The surface, where it is carried by a coarse body."""
        if (count := coarse_count(coarse, points.shape[1])) is not None:
            self._weld, self.detail = coarsened(self._weld, points, count, self._pins)
            self._pins, points = self._vertices(pins), np.ascontiguousarray(points[:, self.detail.vertices])
        mesh = self._weld.mesh
        fixed = _static(points, mesh)
        self.static: NDArray[np.bool_] = fixed.copy()
        """(n,) welded vertices that no shape moves and that are not pinned."""
        self.static[self._pins] = False
        fixed[self._pins] = True
        reference = reference_shape(points)
        filling, part = fill_parts(mesh, points, interior, reference)
        self.interior = filling.method
        log.info("interior: %s, %d vertices added", filling.method, len(filling.points))
        anchors = make_anchors(mesh, points, fixed, anchor, reference)
        if not anchors and isinstance(stiffness, Mapping) and "anchor" in stiffness:
            raise InputError(
                'stiffness names "anchor", and no part has one: all have fixed vertices, are open, or anchor is "none"'
                "; leave it out",
                argument="stiffness",
            )
        self.body: SpringBody = spring_body(
            points,
            mesh.edges,
            mesh.triangles[np.isin(mesh.parts[mesh.triangles[:, 0]], part[filling.tets[:, 0]])],
            filling.points,
            filling.tets,
            fixed=fixed,
            part=part,
            reference=reference,
            anchors=anchors,
            stiffness=stiffness if isinstance(stiffness, Mapping) else None,
            factors=self._factors(stiffness, regions, mesh.with_points(points[reference]), filling.points),
            model=model,
        )
        self.anchors: Floats = self.body.frames.centres[0, [a.part for a in anchors]].reshape(-1, 3)
        """(anchors, 3) their centres in the base."""
        self.statics = StaticSolver(self.body, self._weld, self.shapes.base, self.detail)

    def __repr__(self) -> str:
        added = self.body.network.count - len(self._weld.mesh.points)
        carried = f" for {self.detail.points.shape[1]}" if self.detail is not None else ""
        return (
            f"Blendshapes({len(self.shapes)} shapes, {self.body.network.count} vertices of which {added} inside"
            f"{carried}, {len(self.springs)} springs)"
        )

    @property
    def still(self) -> NDArray[np.bool_]:
        """The former name of `static`."""
        warnings.warn("Blendshapes.still is now Blendshapes.static", DeprecationWarning, stacklevel=2)
        return self.static

    def need_all_vertices(self, what: str) -> None:
        """Refuse a coarse body, for what needs all vertices."""
        if self.detail is not None:
            raise InputError(
                f"{what} needs a body of all vertices, and this has {len(self.detail.vertices):,} of "
                f'{self.detail.points.shape[1]:,}; expected coarse="none"',
                argument="coarse",
            )

    @property
    def springs(self) -> Springs:
        """The spring network."""
        return self.body.springs

    def _vertices(self, pins: ArrayLike | None) -> Ints:
        """(k,) the network's vertices of the user's vertex numbers."""
        if pins is None:
            return np.zeros(0, np.int64)
        vertices = np.asarray(pins)
        count = len(self.shapes.base.points)
        if vertices.dtype == bool and vertices.shape == (count,):
            vertices = np.flatnonzero(vertices)
        if vertices.ndim != 1 or (vertices.size and not np.issubdtype(vertices.dtype, np.integer)):
            raise InputError(
                f"pins have shape {vertices.shape} and type {vertices.dtype}; expected vertex numbers", argument="pins"
            )
        wrong = vertices[(vertices < 0) | (vertices >= count)]
        if len(wrong):
            raise InputError(
                f"pins name vertex {int(wrong[0])}; the mesh has {count}, numbered from 0", argument="pins"
            )
        return self._weld.index[vertices.astype(np.int64)]

    def _factors(
        self, stiffness: Any, regions: Sequence[tuple[Region, float]], mesh: Mesh, added: Floats
    ) -> Floats | None:
        """(welded vertices and those added to `mesh`,) factors on the stiffness, inside those of the nearest place."""
        base = self.shapes.base
        by_vertex = stiffness is not None and not isinstance(stiffness, Mapping)
        if not by_vertex and not len(regions):
            return None
        values = as_array(stiffness, "stiffness factors", np.float64) if by_vertex else np.ones(len(base.points))
        if values.shape != (len(base.points),):
            raise InputError(
                f"stiffness has shape {values.shape}; expected one factor for each of {len(base.points)} vertices",
                argument="stiffness",
            )
        positive_factors(values, "stiffness")
        for k, layer in enumerate(regions):
            if not isinstance(layer, (tuple, list)) or len(layer) != 2:
                raise InputError(f"regions has {layer!r:.40}; expected pairs of a region and a factor")
            with about_argument("regions", k):
                factor = positive_number(layer[1], "the stiffness of a region")
                weight = vertex_weight(base, layer[0])
            values = (1 - weight) * values + weight * factor
        values = values[self._weld.kept]
        if not len(added):
            return values
        foot = SurfaceTree(mesh).closest(added)
        return np.concatenate([values, np.einsum("qk,qk->q", foot.barycentric, values[mesh.triangles[foot.triangle]])])

    def weights(self, weights: ArrayLike | Mapping[str, float]) -> Floats:
        """(shapes,) weights of all shapes from sliders: by name, one for each shape, or one for each but the base.

        Sliders with in-betweens and combinations become the weights of those; see `pliant.engines.blend.sliders`.
        """
        return self.sliders.weights(self.row(weights)[None])[0]

    def row(self, weights: ArrayLike | Mapping[str, float]) -> Floats:
        """(shapes,) sliders, checked."""
        count = len(self.shapes)
        if isinstance(weights, Mapping):
            unknown = sorted(set(weights) - set(self.shapes.names))
            if unknown:
                raise InputError(f'no shape is called "{unknown[0]}"; there are {", ".join(self.shapes.names)}')
            full = as_array([weights.get(name, 0.0) for name in self.shapes.names], "weights", np.float64)
        else:
            full = as_array(weights, "weights", np.float64).copy()
            if full.shape == (count - 1,):
                full = np.concatenate([[0.0], full])
        if full.shape != (count,):
            raise InputError(
                f"weights have shape {full.shape}; expected {count} numbers, one for each shape, or one less"
            )
        if not np.isfinite(full).all():
            raise InputError("weights hold NaN or infinite values; expected finite numbers", argument="weights")
        return full

    def path(self, steps: int = 36) -> Floats:
        """(steps, shapes) sliders from the first shape through all others to the last, in equal steps."""
        if not isinstance(steps, (int, np.integer)) or steps < 1:
            raise InputError(f"steps is {steps}; expected a whole number, 1 or more")
        if steps > MOST_FRAMES:
            raise InputError(f"steps is {steps}; expected at most {MOST_FRAMES:,} frames in one clip")
        at = np.linspace(0, len(self.shapes) - 1, steps)
        return np.maximum(1 - np.abs(at[:, None] - np.arange(len(self.shapes))), 0) @ self.sliders.defining()

    def solve(
        self,
        weights: ArrayLike | Mapping[str, float],
        *,
        pulls: Iterable[Pull] = (),
        pinned: ArrayLike | None = None,
        obstacles: Iterable[Any] = (),
        friction: float = BlendOptions.friction,
        self_contact: bool = BlendOptions.self_contact,
        thickness: float | None = BlendOptions.thickness,
        method: Method = BlendOptions.method,
        accuracy: float = BlendOptions.accuracy,
        iterations: int | None = BlendOptions.iterations,
        start: Floats | None = None,
        watch: Watch | None = None,
    ) -> Pose:
        """The shape at these weights.

        pulls: position constraints and forces on vertices.
        pinned: (pins, 3) positions of the pins, instead of their straight lines.
        obstacles, friction, self_contact, thickness: contact; see `poses`. With self-contact the shape is reached from
            the base in small steps.
        accuracy: how far a vertex may be from equilibrium, over the extent of the shape or, with small pulls, over ten
            times the motion that they cause; in contact, the predicted decrease of the energy over the elastic energy.
        iterations: most iterations of the solver; a shape that has not converged by then is marked so.
        start: (n, 3) initial positions of the network's vertices instead of the guess: in the base's frame or, with
            pulls, in the world.
        watch: called with such positions and the energy after each iteration.
        """
        options = SolveOptions.of(method, accuracy, iterations, watch)
        w = self.weights(weights)
        solver = make_contact_solver(self, obstacles, friction, self_contact, thickness)
        load = read_load(self, listed(pulls), pinned)
        if solver is not None:
            refuse(impossible({"method": method, "self_contact": True}))
            if start is not None:
                raise InputError("start is given; with contact a shape starts from the frame before")
            return pose_in_contact(self, solver, w, load, options)
        return self.solve_frame(w, load, options, None if start is None else self._checked_start(start))

    def solve_frame(self, w: Floats, load: ExternalLoad, options: SolveOptions, given: Floats | None = None) -> Pose:
        """The shape at weights (shapes,) of all shapes, without contact; given: (n, 3) the start as in `solve`."""
        statics = self.statics
        x = statics.start(w, options.accuracy)
        if not load:
            x = x if given is None else given
            return statics.pose(statics.outcome(self.body.network, w, x, self.body.rest(w), None, options), w)
        free, rest = statics.free(w, x, options.accuracy)
        x = free if given is None else given
        for _ in range(AIMS if self.detail is not None and len(load.vertices) else 1):
            network, x = statics.loaded(statics.aimed(load, x, w), x)
            share = statics.share_moved(network, x - free, load.force)
            found = statics.outcome(
                network, w, x, rest, load.force, replace(options, accuracy=options.accuracy * share)
            )
            x = found.x
        return statics.pose(found, w, world=True)

    def jacobian(
        self,
        weights: ArrayLike | Mapping[str, float],
        *,
        pulls: Iterable[Pull] = (),
        pinned: ArrayLike | None = None,
        obstacles: Iterable[Any] = (),
        thickness: float | None = BlendOptions.thickness,
        method: Method = "newton",
        accuracy: float = 1e-12,
    ) -> Jacobian:
        """How the shape at these sliders moves with each of them; see `pliant.engines.blend.jacobian`.

        pulls, pinned, obstacles, thickness: as in `solve`; they stay where they are, and the shape slides on obstacles.
        method, accuracy: of the pose, by default to machine precision, since the derivative is that of an equilibrium.
        """
        load = read_load(self, listed(pulls), pinned)
        solver = make_contact_solver(self, obstacles, 0.0, False, thickness)
        return jacobian_at(self, self.row(weights), load, SolveOptions.of(method, accuracy, None), solver)

    def fit(
        self,
        target: Any,
        *,
        markers: Any = None,
        bounds: tuple[float, float] | ArrayLike = (0.0, 1.0),
        rigid: bool = True,
        sparsity: float = 0.0,
        smoothness: float = 0.0,
        accuracy: float = 1e-4,
        progress: Callable[[int, int], None] | None = None,
    ) -> SliderFit:
        """Sliders, and a rigid motion, for which the shape is where it was seen; see `pliant.engines.blend.fit`.

        target: a mesh with the rig's vertices, or points (n, 3); with other points a scan, which need not be aligned;
            an `Animation`, or (frames, k, 3). Points that are NaN are missing.
        markers: which vertices the target's points are, (k,); or points on faces: (triangles (k,), weights (k, 3)).
        bounds: of the sliders: lowest and highest, for all or for each (sliders, 2).
        rigid: whether the shape may move as a whole.
        sparsity: cost of a slider at 1, as a mean square distance over the diagonal squared, such as 1e-7.
        smoothness: of a clip in time: cost of a second difference of 1, in the same unit.
        accuracy: change of the sliders at which a fit has converged.
        """
        return fit(
            self,
            target,
            markers=markers,
            bounds=bounds,
            rigid=rigid,
            sparsity=sparsity,
            smoothness=smoothness,
            accuracy=accuracy,
            progress=progress,
        )

    def correctives(
        self,
        *,
        error: float = 2e-3,
        together: int = 2,
        weights: ArrayLike | WeightClip | None = None,
        most: int = MOST_CORRECTIVES,
        progress: Callable[[int, int], None] | None = None,
    ) -> LinearRig:
        """Morph targets with which linear blending gives this rig's shapes; see `pliant.engines.blend.correctives`.

        error: distance to these shapes, over the diagonal, that is accepted.
        together: how many sliders may act on the same places at once, 1 to 4.
        weights: sliders (frames, shapes), or a clip, where it has to hold as well.
        most: targets, at most.
        """
        return correctives(self, error=error, together=together, weights=weights, most=most, progress=progress)

    def learn_stiffness(
        self,
        frames: Any,
        weights: ArrayLike,
        *,
        smoothness: float = 0.05,
        iterations: int = 20,
        progress: Callable[[int, int], None] | None = None,
    ) -> LearnedStiffness:
        """Factors on the stiffness for which shapes are nearest to true frames; see `pliant.engines.blend.learning`.

        frames: (frames, n, 3), or an `Animation`. weights: (frames, shapes) the sliders of each frame.
        smoothness: of the factors from vertex to vertex. iterations: of the optimiser.
        """
        return learn_stiffness(self, frames, weights, smoothness=smoothness, iterations=iterations, progress=progress)

    def prepare(self, weights: ArrayLike, *, accuracy: float = BlendOptions.accuracy) -> None:
        """Compute the warm starts of frames at these weights (frames, shapes) in advance."""
        BlendOptions.check(accuracy=accuracy)
        for row in self.weight_table(weights):
            self.statics.start(row, accuracy)

    def _checked_start(self, start: ArrayLike) -> Floats:
        x = as_array(start, "start", np.float64, copy=True)
        if x.shape != (self.body.network.count, 3) or not np.isfinite(x).all():
            raise InputError(f"start has shape {x.shape}; expected finite ({self.body.network.count}, 3)")
        if (np.ptp(x, axis=0) < 1e-9 * self.body.diagonal).all():
            raise InputError("start has all vertices at one point, where springs have no direction; start from a shape")
        return x

    @takes_keywords_of(solve, without=("start",))
    def poses(
        self,
        weights: ArrayLike,
        *,
        pulls: Pulls = (),
        pinned: ArrayLike | None = None,
        obstacles: Iterable[Any] = (),
        jobs: int = BlendOptions.jobs,
        only: Sequence[int] | None = None,
        watch: Watch | None = None,
        **options: Any,
    ) -> Iterator[Pose]:
        """The shapes at weights (frames, shapes), one after the other; further options are those of `solve`.

        pulls: the same for every frame, or a function from a frame's number to its pulls. pinned: (frames, pins, 3).
        obstacles: closed meshes, clips of them, or spheres, boxes and the like of `pliant.contact` that push the shape
            away. Frames then depend on the ones before.
        friction: Coulomb's coefficient. self_contact: whether the shape must not pass through itself.
        thickness: the distance kept in contact; a thousandth of the diagonal if not given.
        jobs: number of processes that solve frames in parallel.
        only: the numbers of the frames to solve, without contact; the others are left out.
        watch: as in `solve`, with one process only.
        """
        table = self.weight_table(weights)
        at: Any = [None] * len(table)
        if pinned is not None:
            at = as_array(pinned, "pinned positions", np.float64)
            if at.ndim != 3 or len(at) != len(table):
                raise InputError(
                    f"pinned has shape {at.shape}; expected ({len(table)}, {len(self._pins)}, 3), "
                    "as many frames as there are weights",
                    argument="pinned",
                )
        constant = [] if callable(pulls) else listed(pulls)
        pulled = [list(pulls(k)) if callable(pulls) else constant for k in range(len(table))]
        if only is not None:
            table, at, pulled = table[list(only)], [at[k] for k in only], [pulled[k] for k in only]
        checked = BlendOptions(jobs=jobs, **options)
        solving = checked.taken_by(SolveOptions)
        solver = make_contact_solver(self, obstacles, **checked.taken_by(make_contact_solver))
        for k in range(len(table) if callable(pulls) or pinned is not None else 1):  # before the first is solved
            read_load(self, pulled[k], at[k])
        frames = ((row, read_load(self, pulled[k], at[k])) for k, row in enumerate(table))
        if solver is not None:
            refuse(impossible({**solving, "jobs": jobs, "self_contact": True}))
            return poses_in_contact(self, solver, frames, SolveOptions(**solving, watch=watch))
        if jobs == 1 or len(table) == 1:
            return (self.solve_frame(row, load, SolveOptions(**solving, watch=watch)) for row, load in frames)
        from pliant.engines.blend.processes import solve_in_processes

        return solve_in_processes(self, table, list(zip(pulled, at, strict=True)), SolveOptions(**solving), jobs)

    def weight_table(self, weights: ArrayLike) -> Floats:
        """(frames, shapes) weights of all shapes from sliders (frames, shapes), as `weights` gives them for one."""
        return self.sliders.weights(self._rows(weights))

    def _rows(self, weights: ArrayLike) -> Floats:
        """(frames, shapes) sliders, checked."""
        table = as_array(weights, "weights", np.float64)
        if table.ndim != 2 or not len(table):
            raise InputError(
                f"weights have shape {table.shape}; expected (frames, {len(self.shapes)})", argument="weights"
            )
        return np.stack([self.row(row) for row in table])

    @takes_keywords_of(poses, without=("only", "watch"))
    def animate(
        self,
        weights: ArrayLike | WeightClip | None = None,
        *,
        steps: int = 36,
        fps: float | None = BlendOptions.fps,
        progress: Callable[[int, int, Pose], None] | None = None,
        **options: Any,
    ) -> SolvedAnimation:
        """A clip: at sliders (frames, shapes), or in `steps` frames from the first shape through all to the last.

        weights: also a `WeightClip` of shapes by name, from `pliant.read_weights`, which has a frame rate of its own.
        Further options are those of `poses`; progress is called with the frames done, their number, and the last pose.
        """
        if isinstance(weights, WeightClip):
            fps = weights.fps if fps is None else fps
            weights = np.stack([self.row(dict(zip(weights.names, row, strict=True))) for row in weights.values])
        table = self.path(steps) if weights is None else self._rows(weights)
        frames: list[Floats] = []
        measures: list[list[float]] = []
        for pose in self.poses(table, **options):
            measures.append([getattr(pose, name) for name in POSE_MEASURES])
            frames.append(pose.points)
            if progress is not None:
                progress(len(frames), len(table), pose)
        known = dict(zip(POSE_MEASURES, np.array(measures, dtype=np.float64).T, strict=True))
        failed = np.flatnonzero(known["converged"] == 0)
        if len(failed):
            warnings.warn(
                f"{len(failed)} of {len(table)} frames did not converge, the first of them frame {failed[0]}; "
                "rig.poses says why for each",
                PliantWarning,
                stacklevel=3,
            )
        for problem in inversion(known["crushed"], len(self.body.tets)):
            warnings.warn(problem, PliantWarning, stacklevel=3)
        rate = DEFAULT_FPS if fps is None else fps
        return SolvedAnimation(self.shapes.base, locked(np.stack(frames)), rate, "blend", known)


def _check_extents(points: Floats) -> None:
    """Check the largest of the shapes (s, n, 3); others may have shrunk to a point."""
    if not points.size:
        return
    largest = points[np.argmax(np.ptp(points, axis=1).max(axis=1))]
    if (largest != largest[0]).any():
        check_extent(largest, "the largest shape", poses=points)


def _static(points: Floats, mesh: Mesh) -> NDArray[np.bool_]:
    """(n,) vertices that no shape moves, in parts where there are at least three of them."""
    away = np.linalg.norm(points - points.mean(axis=0), axis=2).max(axis=0)
    static = away <= STATIC_TOLERANCE * mean_extent(points)
    enough = np.bincount(mesh.parts[static], minlength=mesh.parts.max() + 1) >= 3
    return static & enough[mesh.parts]
