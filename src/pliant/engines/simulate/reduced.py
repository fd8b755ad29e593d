"""Flesh in a few eigenmodes, for live use: what a step costs does not depend on the number of nodes.

Nodes are where the bones carry what n modes φ_k of the body at rest (`pliant.engines.simulate.modes`) make of it,

    x_I = Σ_b w_Ib (R_b (X_I + Σ_k φ_Ik z_k) + t_b)

with the weights w of the diffused rotations. So modes bend along with the bones, rigid motions are exact, and x is
linear in the n unknowns z. Steps and poses minimise what those of the whole body do, strain limits included, over z: a
full system of n equations (`pliant.engines.simulate.reduced_dynamics`). With M = Σ_b w_b R_b, the product rule gives

    F = Σ_b (R_b ⊗ ∇(w_b X) + t_b ⊗ ∇w_b) + Σ_k (M ∇φ_k + φ_k · ∇M) z_k

in which the tables of X, w, φ and their gradients are known beforehand, at the points of a cubature
(`pliant.engines.simulate.cubature`) whose weights are fitted in random poses with random z, and in random motions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Pose
from pliant.core.errors import InputError
from pliant.core.signatures import takes_arguments_of, takes_keywords_of
from pliant.core.skeleton import Motion, SkeletonPose
from pliant.core.topology import Floats
from pliant.core.values import Displayed, locked
from pliant.engines.simulate.body import ElasticBody
from pliant.engines.simulate.bone_samples import BoneSamples
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.cubature import Carried, CubatureFit, PosedBones, StrainPoints, clustered
from pliant.engines.simulate.modes import bending_modes
from pliant.engines.simulate.options import SimulateOptions, StretchLimit
from pliant.engines.simulate.simulation import Pace, Simulation, States, check_motion, play
from pliant.engines.simulate.strain_limits import imposed_ranges, stretches_of
from pliant.engines.simulate.warping import Singles
from pliant.numerics.linalg import one_blas_thread

if TYPE_CHECKING:
    from pliant.engines.simulate.reduced_dynamics import ReducedState

STRAIN_POINTS, MASS_POINTS, SPRING_POINTS = 800, 600, 300
"""Clusters of quadrature points, nodes and springs."""
TRAINING_POSES, TRAINING_ANGLE, TRAINING_MOTION = 24, 0.6, 0.05
"""Random poses that weights are fitted to; by how much joints turn in these, in radians, and flesh moves, over the
diagonal."""
WHOLE_BODY_ONLY = (
    "forces", "muscles", "obstacles", "friction", "self_contact", "start", "resume", "accuracy",
)  # fmt: skip
"""Arguments of `ElasticBody.states` that do not act on eigenmodes."""


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """Everything at a moment that is linear in z."""

    posed: PosedBones
    position: Floats
    """(3 m,) at z = 0, which is where bones carry the mass points."""
    moved: Floats
    """(3 m, k)"""
    strain: Floats
    """(r,) at z = 0."""
    strained: Singles
    """(r, k)"""
    S: Floats
    """(p, 3, 3) Rᵀ F at z = 0."""
    S_moved: Singles
    """(p, 3, 3, k)"""

    @cached_property
    def imposed(self) -> Floats:
        """(p, 2) the smallest and the largest stretch that bones impose."""
        return imposed_ranges(stretches_of(self.S.reshape(-1, 9)))

    def gradients(self, z: Floats) -> Floats:
        """(p, 9) Rᵀ F."""
        flat = self.S_moved.reshape(-1, len(z)) @ z.astype(np.float32)
        return self.S.reshape(-1, 9) + flat.reshape(-1, 9)


class ReducedBody(Displayed):
    """An `ElasticBody` in its lowest eigenmodes: quick, whatever its number of nodes. It meets no obstacles, and has no
    muscles."""

    def __init__(self, body: ElasticBody, modes: int) -> None:
        SimulateOptions.check(modes=modes)
        if 3 * int((~body.loose).sum()) < 5 * modes:
            raise InputError(
                f"modes is {modes}, of a body of {body.nodes.free} nodes; expected at most "
                f"{3 * int((~body.loose).sum()) // 5}",
                argument="modes",
            )
        if len(body.operator.sliding):
            raise InputError("a skin that slides does not act on eigenmodes; leave it out, or do without modes")
        self.body, self.shape, self.skeleton = body, body.shape, body.skeleton
        self.bones, self.binding, self.diagonal = body.bones, body.binding, body.diagonal
        with one_blas_thread():
            self.frequencies, shapes = bending_modes(body, modes)
            """(k,) angular, of the modes."""
            self._tabulate(shapes)
            self._fit(shapes)

    def __repr__(self) -> str:
        return f"ReducedBody({self.body!r}, {len(self.frequencies)} modes)"

    @cached_property
    def _blend(self) -> Any:
        """Sparse (free, b): the bones' weights at the nodes."""
        return self.body.node_weights.table(len(self.bones))[: self.body.nodes.free].tocsr()

    @cached_property
    def _skinned(self) -> Any:
        """Sparse (free, 4 b): nodes as bones carry them, over the bones' transforms."""
        from scipy.sparse import csr_array

        entries = self._blend.tocoo()
        X = self.body.nodes.points[: self.body.nodes.free]
        values = entries.data[:, None] * np.concatenate([X, np.ones((len(X), 1))], axis=1)[entries.row]
        where = np.repeat(entries.row, 4), (4 * entries.col[:, None] + np.arange(4)).ravel()
        return csr_array((values.ravel(), where), shape=(len(X), 4 * len(self.bones)))

    def _carried(self, N: Any, shapes: Floats, weights: Floats) -> Carried:
        """Points that are sums N, sparse (p, free), over the nodes."""
        total = np.asarray(N.sum(axis=1)).reshape(-1, 1, 1)
        field = (N @ shapes.reshape(len(shapes), -1)).reshape(-1, *shapes.shape[1:])
        field /= np.where(np.abs(total) > 1e-9, total, 1.0)  # the blend has it already
        return Carried((N @ self._skinned).tocsr(), (N @ self._blend).tocsr(), field.astype(np.float32), weights)

    def _tabulate(self, shapes: Floats) -> None:
        """The tables of points that stand for the others."""
        from scipy.sparse import identity

        body, free = self.body, self.body.nodes.free
        operator, every = body.operator, identity(free, format="csr")
        q, ends = len(operator.weights), body.discretisation.ends

        chosen, mass = clustered(body.nodes.points[:free], body.mass[:free], MASS_POINTS)
        self.mass = replace(self._carried(every[chosen], shapes, mass), modes=locked(shapes[chosen]))
        heavy = body.mass[chosen] > 0
        self._leash_rates = np.divide(body.leash[chosen], body.mass[chosen], out=np.zeros(len(heavy)), where=heavy)

        chosen, volumes = clustered(body.quadrature.points, operator.weights, STRAIN_POINTS, self._straining(shapes))
        near = operator.functions.chosen(chosen)
        N, D = near.matrix[:, :free], [near.derivative(axis)[:, :free] for axis in range(3)]
        flat = shapes.reshape(free, -1)
        tables = [(part @ flat).reshape(-1, *shapes.shape[1:]).astype(np.float32) for part in (N, *D)]
        w = body.point_weights
        self.strains = StrainPoints(
            tuple((part @ self._skinned).tocsr() for part in D),
            tuple((part @ self._blend).tocsr() for part in (N, *D)),
            tables[0], np.stack(tables[1:], axis=2), w.chosen(chosen), volumes,
            (operator.lam[:q] / operator.weights)[chosen], (operator.mu[:q] / operator.weights)[chosen],
            body.whole[chosen].astype(np.float64), volumes,
        )  # fmt: skip

        fixed = np.flatnonzero(ends >= free)
        length = 1 / np.abs(operator.gradient[operator.functions.start[q + fixed + 1] - 1, 0])
        chosen, stiffness = clustered(body.nodes.points[ends[fixed]], operator.mu[q + fixed] / length**2, SPRING_POINTS)
        rows = operator.functions.chosen(q + fixed[chosen])
        self._springs = self._carried(_scaled(rows.derivative(0)[:, :free], length[chosen]), shapes, stiffness)
        self._ends: BoneSamples = body.samples.chosen(ends[fixed[chosen]] - free)

        N = body.surface.matrix
        rigid = np.unique(N[:, free:].tocoo().col)
        self._surface = self._carried(N[:, :free], shapes, np.ones(N.shape[0]))
        self._rigid, self.rigid_ends = N[:, free:][:, rigid], body.samples.chosen(rigid)

    def _straining(self, shapes: Floats) -> Floats:
        """(q,) how much quadrature points are strained, root mean square, by the modes under one load."""
        inner = self.body.operator.inner.functions
        D = [inner.derivative(axis)[:, : len(shapes)] for axis in range(3)]
        total = np.zeros(len(inner))
        for k, omega in enumerate(np.maximum(self.frequencies, 1e-3 * self.frequencies[-1])):
            total += sum(np.square(part @ shapes[:, :, k]).sum(axis=1) for part in D) / omega**4
        return np.sqrt(total)

    def _fit(self, shapes: Floats) -> None:
        """Weights with which forces on the modes are those of the whole body."""
        body, free, k = self.body, self.body.nodes.free, len(self.frequencies)
        rng, slow = np.random.default_rng(0), 1 / np.maximum(self.frequencies, 1e-3 * self.frequencies[-1])
        joints = rng.standard_normal((TRAINING_POSES, len(self.skeleton), 3))
        angles = TRAINING_ANGLE * rng.random(joints.shape[:2]) * (np.arange(TRAINING_POSES) >= 4)[:, None]
        quaternions = rotations.multiply(self.skeleton.rest_rotations, rotations.from_axis_angle(joints, angles))
        frames = self.bones.posed(quaternions, np.repeat(self.skeleton.offsets[None], TRAINING_POSES, axis=0))
        elastic, inertial = CubatureFit(), CubatureFit()
        for pose in range(TRAINING_POSES):
            system = self.system(frames, pose)
            M = (self._blend @ system.posed.R).reshape(-1, 3, 3)

            def on_modes(forces: Floats, M: Floats = M) -> Floats:
                return np.einsum("nik,ni->k", shapes, np.einsum("nji,nj->ni", M, forces), optimize=True)

            z = slow**2 * rng.standard_normal(k)
            moved = shapes @ z
            z, moved = (v * (TRAINING_MOTION * self.diagonal / np.abs(moved).max()) for v in (z, moved))
            x = body.carried(frames, pose)
            x[:free] += np.einsum("nij,nj->ni", M, moved)
            strain = (system.strain + system.strained @ z).astype(np.float32)
            rows, p = strain[:, None] * system.strained, 7 * len(self.strains.mu)
            springs = rows[p : p + 3 * len(self._springs.weights)].reshape(-1, 3, k).sum(axis=1)
            parts = np.concatenate([rows[:p].reshape(7, -1, k).sum(axis=0), springs])
            elastic.add(parts * slow, on_modes(body.operator.forces(x, body.posed(frames, pose).R)) * slow)

            mass, root = body.mass[:free, None], np.repeat(np.sqrt(self.mass.weights), 3)
            stir = rng.standard_normal(system.posed.transforms.shape)
            stir[3::4] *= self.diagonal
            z = slow * rng.standard_normal(k)
            for here, there in (
                (root * (self.mass.skinned @ stir).ravel(), self._skinned @ stir),
                (system.moved @ z, np.einsum("nij,nj->ni", M, shapes @ z)),
            ):
                parts = (system.moved * here[:, None]).reshape(-1, 3, k).sum(axis=1)
                inertial.add(parts, on_modes(mass * there))
        share, p = elastic.shares(), len(self.strains.mu)
        self.strains = replace(self.strains, weights=locked(self.strains.volumes * share[:p]))
        self._springs = replace(self._springs, weights=locked(self._springs.weights * share[p:]))
        self.mass = replace(self.mass, weights=locked(self.mass.weights * inertial.shares()))

    # Moments

    def _posed(self, frames: Frames, frame: int) -> PosedBones:
        R, shift = frames.transforms(self.bones, frame)
        transforms = np.concatenate([np.swapaxes(R.reshape(-1, 3, 3), 1, 2), shift[:, None]], axis=1).reshape(-1, 3)
        return PosedBones(R, transforms, frames.quaternions[frame], frames.chosen(slice(frame, frame + 1)))

    def system(self, frames: Frames, frame: int) -> ReducedSystem:
        posed = self._posed(frames, frame)
        position, moved = self.mass.at(posed)
        S, S_moved = self.strains.at(posed)
        strain, strained = self.strains.strains(S, S_moved)
        spring, sprung = self._springs.at(posed)
        spring = np.sqrt(self._springs.weights)[:, None] * (spring - self._ends.posed(posed.frames)[0])
        strains, derivatives = [strain, spring.ravel()], [strained, sprung]
        if self._leash_rates.any():
            derivatives.append((np.repeat(np.sqrt(self._leash_rates), 3)[:, None] * moved).astype(np.float32))
            strains.append(np.zeros(len(moved)))
        position = (np.sqrt(self.mass.weights)[:, None] * position).ravel()
        return ReducedSystem(
            posed, position, moved, np.concatenate(strains), np.concatenate(derivatives), S, S_moved
        )  # fmt: skip

    def points_of(self, state: ReducedState) -> Floats:
        """(vertices, 3) the shape's points at a moment."""
        return self._points(state.z, state.transforms, state.ends)

    def _points(self, z: Floats, transforms: Floats, ends: Floats) -> Floats:
        surface, blended = self._surface, np.swapaxes(transforms.reshape(-1, 4, 3)[:, :3], 1, 2).reshape(-1, 9)
        moved = (surface.modes.reshape(-1, len(z)) @ z.astype(np.float32)).reshape(-1, 3)
        points = surface.skinned @ transforms
        points += np.einsum("pij,pj->pi", (surface.blend @ blended).reshape(-1, 3, 3), moved)
        return np.asarray(points + self._rigid @ ends)

    def carried_points(self, state: ReducedState) -> Floats:
        """(vertices, 3) the shape's points where the bones alone would carry them."""
        return self._points(0 * state.z, state.transforms, state.ends)

    # Poses and motion

    def pose(
        self, pose: SkeletonPose, *, gravity: Any = None, stretch_limit: StretchLimit = SimulateOptions.stretch_limit
    ) -> Pose:
        """The shape at rest in a pose of the skeleton; the arguments are those of `ElasticBody.pose`."""
        from pliant.engines.simulate.reduced_dynamics import ReducedStepper

        stepper = ReducedStepper(self, SimulateOptions.dt, gravity=gravity, stretch_limit=stretch_limit)
        state = stepper.begin(self.body.frames_of(pose))
        shape = self.shape.with_points(locked(self.points_of(state)))
        return Pose(shape, 0.0, state.iterations, state.converged, inverted=state.inverted, message=state.message)

    @takes_keywords_of(ElasticBody.states, without=WHOLE_BODY_ONLY, filled=True)
    def states(self, motion: Motion, **options: Any) -> States:
        """The state at every frame, as soon as it is known; the arguments are those of `ElasticBody.simulate`."""
        from pliant.engines.simulate.reduced_dynamics import ReducedStepper

        check_motion(self.body, motion)
        dt, fps, hold, pre_roll, following, report = (
            options.pop(name) for name in ("dt", "fps", "hold", "pre_roll", "following", "report")
        )
        pace = Pace.of(motion, dt, fps, hold)
        stepper = ReducedStepper(self, pace.step, **options)
        return play(stepper, motion, pace, following=following, pre_roll=pre_roll, report=report)

    @takes_arguments_of(states)
    def simulate(self, *arguments: Any, **options: Any) -> Simulation:
        """The body following a motion of its skeleton; the arguments are those of `ElasticBody.simulate`."""
        return self.states(*arguments, **options).clip()


def _scaled(rows: Any, by: Floats) -> Any:
    """A sparse matrix whose rows are multiplied."""
    from scipy.sparse import diags

    return (diags(by) @ rows).tocsr()
