"""`CageRig`: any geometry in a cage that follows position, gradient and length controls (Chen et al. 2010).

    rig = CageRig(target, cage, positions=[0], gradients=[120, 540])
    pose = rig.solve(positions=[[0, 1, 0]], gradients=[R0, R1])
    clip = rig.animate(positions=(frames, 1, 3), gradients=(frames, 2, 3, 3), fps=30)

Smoothness, the target's coordinates and the controls' rows are computed once. A frame is a few dense solves in the
cage's vertices, independent of the target's size, and one matrix product. `with_controls` replaces the controls only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import DEFAULT_FPS, Animation, Pose
from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.progress import ReportFrames
from pliant.core.rotations import as_rotation, polar
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.signatures import takes_keywords_of
from pliant.core.topology import Floats
from pliant.core.validation import check_indices, frame_rate, whole_numbers
from pliant.core.values import Displayed, Value, as_array, locked, stack_frames
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.controls import Controls, ControlTargets, Weights, read_targets
from pliant.engines.transfer.energies import Basis, Coordinates, samples, smoothness
from pliant.engines.transfer.green import point_array
from pliant.engines.transfer.options import CageSolverOptions, Outside, TransferOptions
from pliant.engines.transfer.rigidity import RigidPoints
from pliant.engines.transfer.solver import Minimum, Step, minimise
from pliant.engines.transfer.target_points import TargetPoints
from pliant.engines.transfer.terms import Terms, control_rows, hessian_norm
from pliant.geometry.splats import FillJacobians, ShapeDeformer, is_splats

PROBES = 300
"""Points of the target whose motion the convergence test measures."""


@dataclass(frozen=True, eq=False)
class CageSolution(Value):
    """A deformed cage, and the residuals of the controls."""

    points: Floats
    """(mesh vertices, 3) of the cage"""
    energies: Floats
    """(iterations + 1,) Eq. 12 before the first iteration and after each"""
    converged: bool
    residual: float
    """How far the last full step would have moved the target, over the cage's diagonal"""
    position_errors: Floats
    """(k,) distances from the targets, over the cage's diagonal"""
    gradient_angles: Floats
    """(k,) degrees between the rotation at each gradient control and its target"""
    gradient_stretches: Floats
    """(k,) size (the cube root of the volume) at each gradient control over its target, minus one"""
    gradient_strains: Floats
    """(k,) the largest stretch along any direction at each gradient control, relative to its target, minus one"""
    length_errors: Floats
    """(k,) lengths over their targets, minus one"""

    collapsed: int
    """Number of triangles of the cage with less than a hundredth of their area at rest"""

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return len(self.energies) - 1

    @property
    def message(self) -> str:
        """Why it did not converge; empty if it did."""
        if self.converged:
            return ""
        moves = f"after {self.iterations} iterations the target would still move by {self.residual:.1e} of the diagonal"
        if not self.collapsed:
            return moves
        return f"{moves}; {self.collapsed} of the cage's triangles have collapsed: give it more room, or fewer controls"


@dataclass(frozen=True, eq=False)
class CagePose(Pose):
    """One solved shape; `solution` has its cage, the energies and the residuals of the controls."""

    solution: CageSolution | None = None


class CageRig(Displayed):
    """A target inside a cage, with controls.

    target: a mesh of any kind, a point cloud, tetrahedra, or points (n, 3); only its points matter.
    cage: a closed mesh around it.
    positions, gradients: (k,) vertices of the target, or (k, 3) points inside the cage: the controls' rest points.
    lengths: (k, 2) vertices or (k, 2, 3) points whose distance is constrained.
    coordinates: "green", or "mean_value" for comparison.
    lattice: samples of the smoothness along the cage's longest side. axes: (3, 3) rows at right angles, the
        directions of their lattice; the world's by default.
    weights: ω of Eq. 12, the paper's by default, and that of the rigidity.
    outside: whether points on or outside the cage are an error ("refuse") or their coordinates are continued
        ("allow"), as in `green_coordinates`.
    report: called with the number of samples of the smoothness that are done, and of all.
    """

    @takes_meshes("target", "cage")
    def __init__(
        self,
        target: Shape | ArrayLike,
        cage: Mesh | Cage,
        *,
        positions: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        coordinates: Coordinates = "green",
        lattice: int = TransferOptions.lattice,
        axes: ArrayLike | None = None,
        weights: Weights | None = None,
        outside: Outside = TransferOptions.outside,
        report: ReportFrames | None = None,
    ) -> None:
        if coordinates not in get_args(Coordinates):
            raise InputError(f'coordinates are "{coordinates}"; expected green or mean_value')
        TransferOptions.check(outside=outside, lattice=lattice)
        known = isinstance(target, (Mesh, TetMesh, PointCloud))
        self.target: Shape = target if known else PointCloud(point_array(target, "target"))  # type: ignore[assignment]
        if not len(self.target.points):
            raise InputError("the target has no points; expected one or more", argument="target")
        self.cage = Cage.of(cage)
        self.controls = Controls.of(self.target.points, positions, gradients, lengths)
        self.weights = weights or Weights()
        self._allow = outside == "allow"
        self._basis = Basis.of(self.cage, coordinates)
        control_rows(self._basis, self.controls, allow=self._allow)  # report errors before the long computation
        self._target_points = TargetPoints(self.target.points, self._basis, outside=outside)
        directions = None if axes is None else as_rotation(axes, "axes", mirrored=True)
        positions, depths, numbers = samples(self.cage, int(lattice), directions)
        self.samples: Floats = locked(positions)
        Q = smoothness(self._basis, positions, depths, report)
        self._smooth: Floats = locked(Q / hessian_norm(self._basis, Q))
        self._rigid_points = RigidPoints.of(self._basis, positions, depths, numbers)
        some = np.linspace(0, len(self.target.points) - 1, min(PROBES, len(self.target.points))).astype(int)
        rows = self._basis.rows(self.target.points[some], 0, allow=self._allow)[0]
        self._probes: Floats = locked(np.ascontiguousarray(rows.T))
        self._terms = self._with_terms()

    def __repr__(self) -> str:
        c = self.controls
        return (
            f"CageRig({self.target!r} in {self.cage!r}, {len(c.positions)} positions, {len(c.gradients)} gradients, "
            f"{len(c.lengths)} lengths)"
        )

    def _with_terms(self) -> Terms:
        return Terms.of(
            self._basis, self.controls, self._smooth, self._rigid_points, self._probes, self.weights, allow=self._allow
        )

    def with_controls(
        self,
        *,
        positions: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        weights: Weights | None = None,
    ) -> CageRig:
        """The same target and cage with other controls: None keeps a kind as it is, an empty list removes it."""
        other = object.__new__(CageRig)
        other.__dict__.update(self.__dict__)
        given = {"positions": positions, "gradients": gradients, "lengths": lengths}
        other.controls = self.controls.replaced(self.target.points, **given)
        other.weights = weights or self.weights
        other._terms = other._with_terms()
        return other

    def solve(
        self,
        *,
        positions: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        start: ArrayLike | None = None,
        accuracy: float = CageSolverOptions.accuracy,
        iterations: int = CageSolverOptions.iterations,
        step: Step = CageSolverOptions.step,
        watch: Callable[[int], None] | None = None,
    ) -> CagePose:
        """The target for given control targets: positions (k, 3), gradients (k, 3, 3), lengths (k,); None is rest.

        start: warm start: cage vertices such as the last frame's ``pose.solution.points``; by default the rest cage.
        accuracy: iterate until a full step moves the target by at most this part of the cage's diagonal.
        step: "search" for a line search, or a fixed share of every step; the paper takes 0.2.
        watch: called before each iteration with the number done; an exception that it raises ends the solve.
        """
        targets = read_targets(self.controls, positions, gradients, lengths, one=True)
        start_points = self.cage.points if start is None else self._cage_points(start)
        solver = CageSolverOptions(accuracy, iterations, step)
        found = self._solution(self._minimised(targets, start_points, solver, watch=watch), targets)
        shape = self.deform_shape(found.points)
        return CagePose(shape, found.residual, found.iterations, found.converged, message=found.message, solution=found)

    @takes_keywords_of(solve, without=("start", "watch"))
    def solutions(self, **options: Any) -> Iterator[CageSolution]:
        """The deformed cage of every frame, each warm-started from the one before; targets as in `animate`."""
        return self._frames(*self._asked(**options))

    def _asked(
        self,
        *,
        positions: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        **options: Any,
    ) -> tuple[ControlTargets, CageSolverOptions]:
        """Targets and options of several frames, checked."""
        targets = read_targets(self.controls, positions, gradients, lengths, one=False)
        solver = CageSolverOptions(**options)
        self._require_positions()
        return targets, solver

    def _frames(self, targets: ControlTargets, solver: CageSolverOptions) -> Iterator[CageSolution]:
        last, curved = self.cage.points, False
        for k in range(len(targets)):
            frame = targets.frame(k)
            minimum = self._minimised(frame, last, solver, curved)
            last, curved = minimum.points, minimum.curved
            yield self._solution(minimum, frame)

    @takes_keywords_of(solutions)
    def animate(self, *, fps: float = DEFAULT_FPS, report: ReportFrames | None = None, **options: Any) -> Animation:
        """A clip: positions (frames, k, 3), gradients (frames, k, 3, 3), lengths (frames, k); None is rest throughout.

        A kind with one frame only is the same in all frames. Each frame is warm-started from the one before.
        """
        fps = frame_rate(fps)
        targets, solver = self._asked(**options)
        cages = []
        for k, found in enumerate(self._frames(targets, solver)):
            cages.append(found.points)
            if report is not None:
                report(k + 1, len(targets))
        return self.play(np.array(cages), fps=fps)

    def play(self, cages: ArrayLike, *, fps: float = DEFAULT_FPS, name: str = "cage") -> Animation:
        """The target in a moving cage (frames, cage vertices, 3)."""
        frames = as_array(cages, "cages", np.float64)
        if frames.ndim != 3 or not len(frames):
            raise InputError(f"cages have shape {frames.shape}; expected (frames, {len(self.cage.mesh.points)}, 3)")
        points = stack_frames(self._target_points.deform(np.stack([self._cage_points(frame) for frame in frames])))
        return Animation(self.target, points, fps, name)

    def deform(self, cage_points: ArrayLike) -> Floats:
        """(n, 3) the target in a deformed cage (cage vertices, 3)."""
        return locked(next(self._target_points.deform(self._cage_points(cage_points)[None])))

    def carried(self, places: ArrayLike, cage_points: ArrayLike) -> Floats:
        """(k, 3) points (k, 3) inside the cage at rest, mapped by a deformed cage (cage vertices, 3)."""
        rows = self._basis.rows(point_array(places, "places"), 0, allow=self._allow, what="places")[0]
        return locked(rows @ self._basis.state(self._cage_points(cage_points)))

    def jacobians(self, cage_points: ArrayLike, *, points: ArrayLike | None = None) -> Floats:
        """(k, 3, 3) ∂p'/∂p in a deformed cage (cage vertices, 3), at all of the target's points or at those numbered.

        They transform normals, blocks and splats. Several cages (frames, cage vertices, 3) at once, which give
        (frames, k, 3, 3), cost little more than one.
        """
        cages = as_array(cage_points, "cage points", np.float64)
        several = np.stack([self._cage_points(cage) for cage in (cages if cages.ndim == 3 else cages[None])])
        chosen = None if points is None else whole_numbers(points, "points")
        if chosen is not None:
            check_indices(chosen, len(self.target.points), "points")
        out = self._target_points.jacobians(several, chosen)
        return out if cages.ndim == 3 else out[0]

    def jacobian_blocks(self, cages: ArrayLike) -> Iterator[FillJacobians]:
        """As `jacobians` in several cages (frames, cage vertices, 3), but not of all points at once.

        For each cage a function ``fill(out, begin)``, which writes those from point `begin` on into `out` (k, 3, 3):
        whole blocks of `JACOBIAN_BLOCK` points, of which the target's last one may be shorter.
        """
        frames = as_array(cages, "cages", np.float64)
        return self._target_points.jacobian_blocks(np.stack([self._cage_points(cage) for cage in frames]))

    @cached_property
    def deformer(self) -> ShapeDeformer:
        """The target with its normals or splats."""
        return ShapeDeformer(self.target)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "deformer"}

    # Inside

    def _require_positions(self) -> None:
        if not len(self.controls.positions):
            raise InputError(
                "the rig has no position control, so nothing fixes the position of the target; give positions=... to "
                "CageRig or with_controls, such as one vertex that stays where it is"
            )

    def _cage_points(self, points: ArrayLike) -> Floats:
        """(c, 3) of the checked cage, from those of the mesh or of the checked cage."""
        array = point_array(points, "cage points")
        if len(array) == len(self.cage.mesh.points):
            return self.cage.taken(array)
        raise InputError(f"got {len(array)} cage points; the cage has {len(self.cage.mesh.points)}")

    def deform_shape(self, cage_points: ArrayLike) -> Shape:
        """The target in a deformed cage (cage vertices, 3); a cloud's normals and splats follow the Jacobians."""
        target = self.target
        if isinstance(target, PointCloud) and (target.normals is not None or is_splats(target)):
            return self.deformer.deformed(*self._target_points.frame(self._cage_points(cage_points)))
        return target.with_points(self.deform(cage_points))

    def _minimised(
        self,
        targets: ControlTargets,
        start: Floats,
        solver: CageSolverOptions,
        curved: bool = False,
        watch: Callable[[int], None] | None = None,
    ) -> Minimum:
        self._require_positions()
        origin = targets.positions[0].mean(axis=0)  # far from it, the energy would lose precision
        near = replace(targets, positions=targets.positions - origin)
        energy = self._terms.energy(near)
        guesses = self._terms.guesses(near, start - origin)
        start_points = min(guesses, key=lambda points: energy.energy(self._basis.state(points)))
        found = minimise(
            energy,
            start_points,
            accuracy=solver.accuracy,
            iterations=solver.iterations,
            step=solver.step,
            curved=curved,
            watch=watch,
        )
        return replace(found, points=found.points + origin)

    def _solution(self, found: Minimum, targets: ControlTargets) -> CageSolution:
        """The solution with the residuals of the controls."""
        positions, gradients, lengths = self._terms.reached(found.points)
        asked = targets.gradients[0]
        between = np.swapaxes(polar(asked), 1, 2) @ polar(gradients)
        trace = np.clip((np.trace(between, axis1=1, axis2=2) - 1) / 2, -1, 1)
        volume = np.abs(np.linalg.det(asked))
        size = np.cbrt(np.abs(np.linalg.det(gradients)) / np.where(volume > 0, volume, 1.0))
        sound = volume > 0
        strains = np.full(len(asked), np.inf)
        relative = np.linalg.solve(asked[sound], gradients[sound])
        strains[sound] = np.abs(np.linalg.svd(relative, compute_uv=False) - 1).max(axis=1, initial=0.0)
        return CageSolution(
            points=locked(self.cage.restored(found.points)),
            energies=locked(found.energies),
            converged=found.converged,
            residual=found.residual,
            position_errors=np.linalg.norm(positions - targets.positions[0], axis=1) / self.cage.diagonal,
            gradient_angles=np.degrees(np.arccos(trace)),
            gradient_stretches=size - 1,
            gradient_strains=strains,
            length_errors=lengths / targets.lengths[0] - 1,
            collapsed=self._basis.normals.collapsed(found.points),
        )
