"""Flesh in a few eigenmodes, for live use: what a step costs does not depend on the number of nodes.

Nodes are where the bones carry what n vibrations φ_k of the body at rest make of it,

    x_I = Σ_b w_Ib (R_b (X_I + Σ_k φ_Ik z_k) + t_b),      K φ_k = ω_k² M φ_k,      bones held

with the weights w of the diffused rotations. So modes bend along with the bones, rigid motions are exact, and x is
linear in the n unknowns z. Steps and poses minimise what those of the whole body do, strain limits included, over z: a
full system of n equations (`pliant.engines.simulate.dynamics`). With M = Σ_b w_b R_b, the product rule gives

    F = Σ_b (R_b ⊗ ∇(w_b X) + t_b ⊗ ∇w_b) + Σ_k (M ∇φ_k + φ_k · ∇M) z_k

in which the tables of X, w, φ and their gradients are known beforehand.

*Cubature.* Sums over nodes, quadrature points and springs are taken over some of them, each for the cluster that it is
in the middle of. Weights are then fitted, none below 0, so that forces on the modes are those of the whole sums in
random poses with random z, and in random motions (An, Kim and James 2008).

*Modal derivatives.* A part that swings far rotates, and its tip comes back: of second order, and stiff against what the
lowest modes do. A share of the n shapes are such motions (Barbič and James 2005), so that strain limits find them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Pose
from pliant.core.errors import InputError
from pliant.core.progress import ReportFrames
from pliant.core.signatures import takes_arguments_of
from pliant.core.skeleton import Motion, SkeletonPose
from pliant.core.topology import Floats, Ints
from pliant.core.values import Displayed, Value, locked
from pliant.engines.simulate.bone_samples import BoneSamples
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.conjugate_gradients import Posed, solve
from pliant.engines.simulate.diffusion import RotationWeights
from pliant.engines.simulate.dynamics import DIAGONAL, FARTHEST, GAMMA, ITERATIONS, rate_of
from pliant.engines.simulate.newton import NEWTON_STEPS, TRIALS
from pliant.engines.simulate.options import SimulateOptions, StretchLimit
from pliant.engines.simulate.simulation import Pace, Simulation, States, check_motion, mended, player_of, stepped
from pliant.engines.simulate.stages import BACK
from pliant.engines.simulate.statics import failure_of
from pliant.engines.simulate.strain_limits import far_beyond, imposed_ranges, limit_walls
from pliant.engines.simulate.warping import UNSTRAINED, Singles
from pliant.native import kernels
from pliant.numerics.linalg import one_blas_thread

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody

STRAIN_POINTS, MASS_POINTS, SPRING_POINTS = 800, 600, 300
"""Clusters of quadrature points, nodes and springs."""
COARSE_NODES = 700
"""Of the level that modes start from, at most."""
MODE_ITERATIONS, MODE_ACCURACY = 12, 1e-3
"""Of the eigenvalue solve."""
TRAINING_POSES, TRAINING_ANGLE, TRAINING_MOTION = 24, 0.6, 0.05
"""Random poses that weights are fitted to; by how much joints turn in these, in radians, and flesh moves, over the
diagonal."""
DERIVATIVES, PAIRED, DERIVATIVE_ACCURACY = 0.4, 8, 1e-2
"""Share of modes that are modal derivatives, how many of the lowest modes these are of, and what they may lack."""
SHARE_RIDGE = 1e-3
"""How much weights stay near those of their clusters."""
SMALL_STEP = 3e-5
"""Where strain limits act: a motion over the diagonal, root mean square, that ends Newton's method."""
SYMMETRIC = ((1, 2), (0, 2), (0, 1))


def eigenmodes(body: ElasticBody, count: int) -> tuple[Floats, Floats]:
    """(k,) angular frequencies, ascending, and (free, 3, k) shapes of the lowest vibrations of a body at rest.

    Shapes have a mass of 1. They are found by LOBPCG (Knyazev 2001) with the body's preconditioner, from the modes of a
    coarse level.
    """
    import warnings

    from scipy.linalg import eigh
    from scipy.sparse import identity, kron
    from scipy.sparse.linalg import LinearOperator, lobpcg

    free, operator, root = body.nodes.free, body.operator, np.sqrt(body.mass[: body.nodes.free, None])
    moving, same = ~body.loose[:, None], np.tile(np.eye(3, dtype=np.float32).ravel(), (free, 1))
    inverse_root = np.divide(moving, root, out=np.zeros_like(root), where=root > 0)

    def columns(function: Any) -> Any:
        def product(v: Floats) -> Floats:
            parts = [function(column.reshape(free, 3)).ravel() for column in v.reshape(3 * free, -1).T]
            return np.stack(parts, axis=1)

        return LinearOperator((3 * free, 3 * free), product, matmat=product, dtype=np.float64)

    def stiffness(v: Floats) -> Floats:
        return inverse_root * _rest_product(body, inverse_root * v)

    def precondition(v: Floats) -> Floats:
        return root * body.static.apply((moving * root * v).astype(np.float32), same)

    P, level = identity(free, format="csr"), None
    for level in body.multigrid.levels:
        P = P @ level.P
        if P.shape[1] <= COARSE_NODES:
            break
    if level is None:
        start = np.random.default_rng(0).standard_normal((3 * free, count))
    else:
        mass = kron(level.mass, identity(3)).toarray()
        mass[np.diag_indices_from(mass)] += 1e-9 * np.trace(mass) / len(mass)
        coarse = eigh(level.stiffness.toarray(), mass, subset_by_index=[0, count - 1])[1]
        start = (root[:, :, None] * (P @ coarse.reshape(P.shape[1], -1)).reshape(free, 3, -1)).reshape(3 * free, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so where the last modes are not as exact as the first
        squares, shapes = lobpcg(
            columns(stiffness), start, M=columns(precondition), largest=False, maxiter=MODE_ITERATIONS,
            tol=MODE_ACCURACY * np.sqrt(operator.stiffest),
        )  # fmt: skip
    order = np.argsort(squares)
    shapes = inverse_root[:, :, None] * shapes[:, order].reshape(free, 3, -1)
    return np.sqrt(np.maximum(squares[order], 0)), shapes


def bending_modes(body: ElasticBody, count: int) -> tuple[Floats, Floats]:
    """Vibrations and modal derivatives together, as `eigenmodes` gives them; frequencies are of motions in these."""
    from scipy.linalg import eigh

    second = min(int(DERIVATIVES * count), PAIRED * (PAIRED + 1) // 2)
    omega, shapes = eigenmodes(body, count - second)
    found = np.concatenate([shapes, modal_derivatives(body, omega, shapes, second)], axis=2)
    mass = np.repeat(body.mass[: len(found), None], 3, axis=1).ravel()
    flat = found.reshape(len(mass), -1)
    flat = flat / np.sqrt(np.einsum("ik,ik,i->k", flat, flat, mass))
    K = flat.T @ np.stack([_rest_product(body, column).ravel() for column in flat.T], axis=1)
    squares, rotated = eigh(0.5 * (K + K.T), flat.T @ (mass[:, None] * flat))
    return np.sqrt(np.maximum(squares, 0)), (flat @ rotated).reshape(len(found), 3, -1)


def modal_derivatives(body: ElasticBody, omega: Floats, shapes: Floats, count: int) -> Floats:
    """(free, 3, count) the motions of second order that go with pairs of the lowest modes (free, 3, k).

    Each makes up for the strain ½ sym(∇φ_iᵀ ∇φ_j) that a rotation in modes i and j would have.
    """
    operator, free, q = body.operator, len(shapes), len(body.operator.weights)
    D = [operator.inner.functions.derivative(axis)[:, :free] for axis in range(3)]
    slopes = [np.stack([part @ shapes[:, :, k] for part in D], axis=2) for k in range(min(PAIRED, shapes.shape[2]))]
    same = np.tile(np.eye(3).ravel(), (max(len(operator.mu), free), 1))
    at_rest = Posed(
        operator, same[: len(operator.mu)], same[: len(operator.mu)].astype(np.float32),
        same[:free].astype(np.float32), body.diagonal,
    )  # fmt: skip
    nothing, found = np.zeros((operator.functions.nodes, 3)), []
    for i, one in enumerate(slopes):
        for j, other in enumerate(slopes[: i + 1]):
            strain = 0.5 * np.einsum("qli,qlj->qij", one, other)
            strain = 0.5 * (strain + np.swapaxes(strain, 1, 2))
            shift = np.tile(UNSTRAINED, (len(operator.mu), 1))  # springs have none
            shift[:q] = -np.stack(
                [*(strain[:, k, k] for k in range(3)), *(strain[:, a, b] for a, b in SYMMETRIC)], axis=1
            )
            load = -operator.forces(nothing, at_rest.R, shift)
            load[body.loose] = 0
            solved = solve(
                at_rest, load, body.leash.astype(np.float32), 1.0, body.static,
                accuracy=0.0, reduction=DERIVATIVE_ACCURACY, iterations=ITERATIONS,
            )  # fmt: skip
            found.append(solved.d / (omega[i] * omega[j]) ** 2)
    mass = np.repeat(np.sqrt(np.maximum(body.mass[:free, None], 0)), 3, axis=1)
    flat = np.stack([(mass * one).ravel() for one in found], axis=1)
    known = (mass[:, :, None] * shapes).reshape(len(flat), -1)
    flat -= known @ (known.T @ flat)
    rotated = np.linalg.eigh(flat.T @ flat)[1][:, ::-1][:, :count]
    inverse = np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)  # a node may have no share of the volume
    return (flat @ rotated).reshape(free, 3, -1) * inverse[:, :, None]


def _rest_product(body: ElasticBody, d: Floats) -> Floats:
    """(free, 3) K d at rest, with leashes, for displacements (free * 3,) of the nodes."""
    operator, moved = body.operator, np.zeros((body.operator.functions.nodes, 3), np.float32)
    moved[: body.nodes.free] = d.reshape(-1, 3)
    same = np.tile(np.eye(3, dtype=np.float32).ravel(), (len(operator.mu), 1))
    return operator.product(moved, same, 1.0, body.leash.astype(np.float32)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Carried(Value):
    """Points of the field: where bones carry them, and how they move with the modes."""

    skinned: Any
    """Sparse (p, 4 b): what multiplies the bones' transforms."""
    blend: Any
    """Sparse (p, b): w."""
    modes: Any
    """(p, 3, k) φ; in double precision for masses, whose accelerations are differences."""
    weights: Floats
    """(p,) masses, or stiffnesses of springs."""

    def at(self, posed: PosedBones) -> tuple[Floats, Any]:
        """(p, 3) the points at z = 0, and (3 p, k) their derivatives by z times the roots of the weights."""
        rotated = np.sqrt(self.weights)[:, None, None] * (self.blend @ posed.R).reshape(-1, 3, 3)
        moved = rotated.astype(self.modes.dtype) @ self.modes
        return self.skinned @ posed.transforms, moved.reshape(-1, self.modes.shape[2])


@dataclass(frozen=True, eq=False)
class StrainPoints(Value):
    """Quadrature points, with the tables of the product rule."""

    skinned: tuple[Any, ...]
    """Three sparse (p, 4 b), the derivatives of those of `Carried`."""
    blend: tuple[Any, ...]
    """Four sparse (p, b): w, and its derivatives."""
    modes: Singles
    """(p, 3, k) φ."""
    slopes: Singles
    """(p, 3, 3, k) ∇φ: component, then axis."""
    rotations: RotationWeights
    volumes: Floats
    """(p,) of the clusters."""
    lam: Floats
    """(p,) Lamé's constants."""
    mu: Floats
    limited: Floats
    """(p,) 1 where there are strain limits, else 0."""
    weights: Floats
    """(p,) volumes that were fitted."""

    def at(self, posed: PosedBones) -> tuple[Floats, Singles]:
        """Rᵀ F: (p, 3, 3) at z = 0, and (p, 3, 3, k) its derivatives by z."""
        back = np.swapaxes(self.rotations.matrices(posed.quaternions).reshape(-1, 3, 3), 1, 2)
        rotated = [(back @ (w @ posed.R).reshape(-1, 3, 3)).astype(np.float32) for w in self.blend]
        F = np.stack([table @ posed.transforms for table in self.skinned], axis=2)
        moved = (rotated[0] @ self.slopes.reshape(len(F), 3, -1)).reshape(self.slopes.shape)
        for axis in range(3):
            moved[:, :, axis] += rotated[1 + axis] @ self.modes
        return back @ F, moved

    def strains(self, S: Floats, moved: Singles) -> tuple[Floats, Singles]:
        """(7 p,) strains times the roots of their stiffness, so that half of their square is the energy, and the same
        of derivatives (7 p, k): xx, yy, zz, yz, xz, xy and the trace."""
        shear, bulk = np.sqrt(2 * self.mu * self.weights), np.sqrt(self.lam * self.weights)
        own = [shear * (S[:, i, i] - 1) for i in range(3)]
        own += [shear / 2**0.5 * (S[:, i, j] + S[:, j, i]) for i, j in SYMMETRIC]
        own.append(bulk * (np.trace(S, axis1=1, axis2=2) - 3))
        p, (shear, bulk) = len(S), (shear.astype(np.float32)[:, None], bulk.astype(np.float32)[:, None])
        rows = np.empty((7, p, moved.shape[3]), np.float32)
        for i in range(3):
            np.multiply(shear, moved[:, i, i], out=rows[i])
        for k, (i, j) in enumerate(SYMMETRIC):
            np.multiply(shear * np.float32(0.5**0.5), moved[:, i, j] + moved[:, j, i], out=rows[3 + k])
        np.multiply(bulk, moved[:, 0, 0] + moved[:, 1, 1] + moved[:, 2, 2], out=rows[6])
        return np.concatenate(own), rows.reshape(7 * p, -1)


@dataclass(frozen=True, eq=False)
class PosedBones:
    """Bones at a moment."""

    R: Floats
    """(b, 9)"""
    transforms: Floats
    """(4 b, 3) of each, Rᵀ and then the translation."""
    quaternions: Floats
    """(b, 4)"""
    frames: Frames
    """This one."""


@dataclass(frozen=True, eq=False)
class Rates:
    """A moment's values and rates; what is not described is as in `BodyState`."""

    time: float
    z: Floats
    """(k,) the modes' coordinates."""
    position: Floats
    """(3 m,) where the mass points are, times the roots of their masses."""
    velocity: Floats
    """(3 m,) the rate of that."""
    acceleration: Floats
    """(3 m,)"""
    strain: Floats
    """(r,) of quadrature points, springs and leashes, times the roots of their stiffness."""
    strain_rate: Floats
    carried: Floats
    """(3 m,) the position that bones alone would carry to."""
    carried_rate: Floats


@dataclass(frozen=True, eq=False)
class ReducedState(Rates):
    """A reduced body at one moment; what is not described is as in `BodyState`."""

    transforms: Floats
    """(4 b, 3) of the bones."""
    ends: Floats
    """(s, 3) of parts that bones carry rigidly."""
    volume: float
    inverted: int
    overstrained: int
    energy: float
    kinetic: float
    iterations: int = 0
    """Of Newton's method."""
    converged: bool = True
    penetration: float = 0.0
    contacts: int = 0
    problem: str = ""
    message: str = ""
    activation: Floats = field(default_factory=lambda: np.zeros(0))
    shortening: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class _System:
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
        return imposed_ranges(_stretches(self.S.reshape(-1, 9)))

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
        self.bones, self.diagonal = body.bones, body.diagonal
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

        chosen, mass = _clustered(body.nodes.points[:free], body.mass[:free], MASS_POINTS)
        self._mass = replace(self._carried(every[chosen], shapes, mass), modes=locked(shapes[chosen]))
        heavy = body.mass[chosen] > 0
        self._leash_rates = np.divide(body.leash[chosen], body.mass[chosen], out=np.zeros(len(heavy)), where=heavy)

        chosen, volumes = _clustered(body.quadrature.points, operator.weights, STRAIN_POINTS, self._straining(shapes))
        near = operator.functions.chosen(chosen)
        N, D = near.matrix[:, :free], [near.derivative(axis)[:, :free] for axis in range(3)]
        flat = shapes.reshape(free, -1)
        tables = [(part @ flat).reshape(-1, *shapes.shape[1:]).astype(np.float32) for part in (N, *D)]
        w = body.point_weights
        self._strains = StrainPoints(
            tuple((part @ self._skinned).tocsr() for part in D),
            tuple((part @ self._blend).tocsr() for part in (N, *D)),
            tables[0], np.stack(tables[1:], axis=2), w.chosen(chosen), volumes,
            (operator.lam[:q] / operator.weights)[chosen], (operator.mu[:q] / operator.weights)[chosen],
            body.whole[chosen].astype(np.float64), volumes,
        )  # fmt: skip

        fixed = np.flatnonzero(ends >= free)
        length = 1 / np.abs(operator.gradient[operator.functions.start[q + fixed + 1] - 1, 0])
        chosen, stiffness = _clustered(
            body.nodes.points[ends[fixed]], operator.mu[q + fixed] / length**2, SPRING_POINTS
        )
        rows = operator.functions.chosen(q + fixed[chosen])
        self._springs = self._carried(_scaled(rows.derivative(0)[:, :free], length[chosen]), shapes, stiffness)
        self._ends: BoneSamples = body.samples.chosen(ends[fixed[chosen]] - free)

        N = body.surface.matrix
        rigid = np.unique(N[:, free:].tocoo().col)
        self._surface = self._carried(N[:, :free], shapes, np.ones(N.shape[0]))
        self._rigid, self._rigid_ends = N[:, free:][:, rigid], body.samples.chosen(rigid)

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
        elastic, inertial = _Fit(), _Fit()
        for pose in range(TRAINING_POSES):
            system = self._system(frames, pose)
            M = (self._blend @ system.posed.R).reshape(-1, 3, 3)

            def on_modes(forces: Floats, M: Floats = M) -> Floats:
                return np.einsum("nik,ni->k", shapes, np.einsum("nji,nj->ni", M, forces), optimize=True)

            z = slow**2 * rng.standard_normal(k)
            moved = shapes @ z
            z, moved = (v * (TRAINING_MOTION * self.diagonal / np.abs(moved).max()) for v in (z, moved))
            x = body.carried(frames, pose)
            x[:free] += np.einsum("nij,nj->ni", M, moved)
            strain = (system.strain + system.strained @ z).astype(np.float32)
            rows, p = strain[:, None] * system.strained, 7 * len(self._strains.mu)
            springs = rows[p : p + 3 * len(self._springs.weights)].reshape(-1, 3, k).sum(axis=1)
            parts = np.concatenate([rows[:p].reshape(7, -1, k).sum(axis=0), springs])
            elastic.add(parts * slow, on_modes(body.operator.forces(x, body.posed(frames, pose).R)) * slow)

            mass, root = body.mass[:free, None], np.repeat(np.sqrt(self._mass.weights), 3)
            stir = rng.standard_normal(system.posed.transforms.shape)
            stir[3::4] *= self.diagonal
            z = slow * rng.standard_normal(k)
            for here, there in (
                (root * (self._mass.skinned @ stir).ravel(), self._skinned @ stir),
                (system.moved @ z, np.einsum("nij,nj->ni", M, shapes @ z)),
            ):
                parts = (system.moved * here[:, None]).reshape(-1, 3, k).sum(axis=1)
                inertial.add(parts, on_modes(mass * there))
        share, p = elastic.shares(), len(self._strains.mu)
        self._strains = replace(self._strains, weights=locked(self._strains.volumes * share[:p]))
        self._springs = replace(self._springs, weights=locked(self._springs.weights * share[p:]))
        self._mass = replace(self._mass, weights=locked(self._mass.weights * inertial.shares()))

    # Moments

    def _posed(self, frames: Frames, frame: int) -> PosedBones:
        R, shift = frames.transforms(self.bones, frame)
        transforms = np.concatenate([np.swapaxes(R.reshape(-1, 3, 3), 1, 2), shift[:, None]], axis=1).reshape(-1, 3)
        return PosedBones(R, transforms, frames.quaternions[frame], frames.chosen(slice(frame, frame + 1)))

    def _system(self, frames: Frames, frame: int) -> _System:
        posed = self._posed(frames, frame)
        position, moved = self._mass.at(posed)
        S, S_moved = self._strains.at(posed)
        strain, strained = self._strains.strains(S, S_moved)
        spring, sprung = self._springs.at(posed)
        spring = np.sqrt(self._springs.weights)[:, None] * (spring - self._ends.posed(posed.frames)[0])
        strains, derivatives = [strain, spring.ravel()], [strained, sprung]
        if self._leash_rates.any():
            derivatives.append((np.repeat(np.sqrt(self._leash_rates), 3)[:, None] * moved).astype(np.float32))
            strains.append(np.zeros(len(moved)))
        position = (np.sqrt(self._mass.weights)[:, None] * position).ravel()
        return _System(
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
        stepper = ReducedStepper(self, SimulateOptions.dt, gravity=gravity, stretch_limit=stretch_limit)
        state = stepper.begin(self.body.frames_of(pose))
        shape = self.shape.with_points(locked(self.points_of(state)))
        return Pose(
            shape, 0.0, state.iterations, state.converged, inverted=state.inverted, message=state.message
        )  # fmt: skip

    def states(
        self,
        motion: Motion,
        *,
        dt: float = SimulateOptions.dt,
        fps: float | None = SimulateOptions.fps,
        hold: float = SimulateOptions.hold,
        gravity: Any = SimulateOptions.gravity,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        following: bool = True,
        stretch_limit: StretchLimit = SimulateOptions.stretch_limit,
        report: ReportFrames | None = None,
    ) -> States:
        """The state at every frame, as soon as it is known; the arguments are those of `ElasticBody.simulate`."""
        check_motion(self.body, motion)
        pace = Pace.of(motion, dt, fps, hold)
        stepper = ReducedStepper(
            self, pace.step, gravity=gravity, damping=damping, drag=drag, stretch_limit=stretch_limit
        )
        motion, notes = mended(self, motion)
        player = player_of(stepper, motion, pace)
        steps = stepped(player, pace, lambda: player.begun(0, following=following))
        return States(self, motion, pace, steps, report, notes=notes)

    @takes_arguments_of(states)
    def simulate(self, *arguments: Any, **options: Any) -> Simulation:
        """The body following a motion of its skeleton; the arguments are those of `ElasticBody.simulate`."""
        return self.states(*arguments, **options).clip()


class ReducedStepper:
    """Steps of one length h of a reduced body, as those of `dynamics.Stepper`."""

    passes_itself = False

    def __init__(
        self,
        body: ReducedBody,
        step: float,
        *,
        gravity: Any = None,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        stretch_limit: StretchLimit = SimulateOptions.stretch_limit,
    ) -> None:
        SimulateOptions.check(damping=damping, drag=drag, stretch_limit=stretch_limit)
        self.body, self.h, self.g, self.damping, self.drag = body, step, DIAGONAL * step, damping, drag
        self.walls = limit_walls(stretch_limit)
        self.weight = np.outer(np.sqrt(body._mass.weights), body.body.gravity(gravity)).ravel()
        self.small = SMALL_STEP * body.diagonal * float(body._mass.weights.sum()) ** 0.5

    def begin(self, frames: Frames, *, time: float = 0.0, following: bool = True, path: Any = None) -> ReducedState:
        """At rest in the first of the frames, moving with the bones or not; the next are the ends of stages."""
        systems = [self.body._system(frames, k) for k in range(len(frames.quaternions))]
        here = systems[0]
        z, iterations, reached = self._minimised(
            here, here.strained.T @ here.strained, here.moved.T @ self.weight - here.strained.T @ _single(here.strain),
            np.zeros(here.moved.shape[1]),
        )  # fmt: skip
        begun = self._rated(systems, z, time, None if following else 0.0)
        return self._state(begun, here, iterations, reached)

    def _rated(self, systems: list[_System], z: Floats, time: float, swing: Floats | float | None) -> Rates:
        """The rates at the first of some moments. swing: (3 m,) velocity, if not that of the bones."""
        here, times = systems[0], np.array([0.0, GAMMA * self.h, self.h])[: len(systems)]
        velocity = rate_of([one.position + one.moved @ z for one in systems], times)
        strain_rate = rate_of([one.strain + one.strained @ _single(z) for one in systems], times)
        carried_rate = rate_of([one.position for one in systems], times)
        if swing is not None:
            velocity = np.broadcast_to(swing, velocity.shape).copy()
        strain = here.strain + here.strained @ _single(z)
        force = here.moved.T @ (self.weight - self.drag * (velocity - carried_rate))
        force = force - here.strained.T @ _single(strain + self.damping * strain_rate)
        mass = here.moved.T @ here.moved
        acceleration = here.moved @ np.linalg.solve(mass, force)
        position = here.position + here.moved @ z
        return Rates(
            time, z, position, velocity, acceleration, strain, strain_rate, here.position, carried_rate
        )  # fmt: skip

    def step(self, before: ReducedState, frames: Frames, frame: int) -> ReducedState:
        """The state after one step; the bones are at `frame` at its end, and at the frame before between its stages."""
        with one_blas_thread():
            return self._stepped(before, frames, frame)

    def _stepped(self, before: ReducedState, frames: Frames, frame: int) -> ReducedState:
        g, start = self.g, before
        known = (
            before.position + g * before.velocity, before.velocity + g * before.acceleration,
            before.strain + g * before.strain_rate, before.carried + g * before.carried_rate,
        )  # fmt: skip
        middle, _, first, well = self._stage(before.time + GAMMA * self.h, before.z, known, frames, frame - 1)
        pairs = zip(
            (middle.position, middle.velocity, middle.strain, middle.carried),
            (start.position, start.velocity, start.strain, start.carried),
            strict=True,
        )
        known = tuple(y + BACK * (y - y_0) for y, y_0 in pairs)  # type: ignore[assignment]
        end, system, second, converged = self._stage(before.time + self.h, middle.z, known, frames, frame)
        return self._state(end, system, first + second, well and converged)

    def _stage(
        self, time: float, z: Floats, known: tuple[Floats, Floats, Floats, Floats], frames: Frames, frame: int
    ) -> tuple[Rates, _System, int, bool]:
        """The end of a stage, from what `dynamics` calls ŷ and from z before it."""
        g, (x, v, e, c), system = self.g, known, self.body._system(frames, frame)
        stiff, viscous, inertia = 1 + self.damping / g, self.damping / g, 1 / g**2 + self.drag / g
        A = inertia * (system.moved.T @ system.moved) + stiff * (system.strained.T @ system.strained)
        force = self.weight + (x + g * v - system.position) / g**2
        force = force + self.drag / g * (x - c)
        b = system.moved.T @ force - system.strained.T @ _single(stiff * system.strain - viscous * e)
        z, iterations, reached = self._minimised(system, A, b, z)
        position = system.position + system.moved @ z
        strain = system.strain + system.strained @ _single(z)
        velocity = (position - x) / g
        ended = Rates(
            time, z, position, velocity, (velocity - v) / g, strain, (strain - e) / g, system.position,
            (system.position - c) / g,
        )  # fmt: skip
        return ended, system, iterations, reached

    def _minimised(self, system: _System, A: Any, b: Any, start: Floats) -> tuple[Floats, int, bool]:
        """z where ½ zᵀ A z - bᵀ z and the energy of strain limits are least."""
        from scipy.linalg import cho_factor, cho_solve

        A, b = A.astype(np.float64), b.astype(np.float64)
        A[np.diag_indices_from(A)] *= 1 + 1e-9
        z = cho_solve(cho_factor(A), b)
        points = self.body._strains
        if not len(self.walls):
            return z, 1, True
        ranges = system.imposed, self.walls
        stiffness = points.limited * points.mu * points.weights
        if not kernels.limits_outside(system.gradients(z), ranges):
            return z, 1, True
        derivative = system.S_moved.reshape(-1, len(b))

        def at(z: Floats) -> tuple[float, Floats, Floats, Floats]:
            F = system.gradients(z)
            energies, P = np.empty(len(F)), np.empty_like(F)
            kernels.limits_stresses(F, ranges, stiffness, energies, P, 1)
            return float(0.5 * z @ A @ z - b @ z + energies.sum()), F, energies, P

        z = start
        value, F, energies, P = at(z)
        for done in range(NEWTON_STEPS):
            left = b - A @ z - derivative.T @ _single(P.ravel())
            active = np.flatnonzero(energies > 0).astype(np.int32)
            frame = np.empty((len(active), 27), np.float32)
            kernels.limits_curvatures(F, ranges, stiffness, active, frame)
            rows = _curvature_rows(frame, system.S_moved[active])
            d = cho_solve(cho_factor(A + rows.T @ rows), left)
            if np.linalg.norm(d) <= self.small:
                return z + d, done + 1, True
            share, slope = 1.0, float(left @ d)
            for _ in range(TRIALS):
                trial = at(z + share * d)
                if trial[0] <= value - 1e-4 * share * slope + 1e-9 * abs(value):
                    break
                share *= 0.5
            else:
                return z, done + 1, False
            z, (value, F, energies, P) = z + share * d, trial
        return z, NEWTON_STEPS, False

    def teleported(self, state: ReducedState, frames: Frames, R: Floats, shift: Floats) -> ReducedState:
        """As `dynamics.Stepper.teleported`."""
        systems = [self.body._system(frames, k) for k in range(len(frames.quaternions))]
        bones = self._rated(systems, state.z, 0.0, None).velocity
        swing = (state.velocity - state.carried_rate).reshape(-1, 3) @ R.T
        begun = self._rated(systems, state.z, state.time + self.h, bones + swing.ravel())
        return self._state(begun, systems[0], 1, True)

    def _state(self, rates: Rates, system: _System, iterations: int, converged: bool) -> ReducedState:
        points, body = self.body._strains, self.body
        F = system.gradients(rates.z)
        J = np.linalg.det(F.reshape(-1, 3, 3))
        beyond = far_beyond(_stretches(F), system.imposed, self.walls)
        volume, inverted = (
            float(points.volumes @ J / points.volumes.sum()),
            int(((J <= 0) & (points.limited > 0)).sum()),
        )
        overstrained = int((beyond & (points.limited > 0)).sum())
        finite = bool(np.isfinite(rates.z).all())
        away = np.abs((rates.position - rates.carried) / np.repeat(np.sqrt(np.maximum(body._mass.weights, 1e-300)), 3))
        problem = "" if finite else "a position is not a finite number"
        if finite and float(away[np.repeat(body._mass.weights > 0, 3)].max()) > FARTHEST * body.diagonal:
            problem = "flesh has flown away from its bones"
        message = failure_of(volume, inverted, overstrained, len(J)) if finite else problem
        return ReducedState(
            **vars(rates), transforms=system.posed.transforms, ends=body._rigid_ends.posed(system.posed.frames)[0],
            volume=volume, inverted=inverted, overstrained=overstrained,
            energy=0.5 * float(rates.strain @ rates.strain), kinetic=0.5 * float(rates.velocity @ rates.velocity),
            iterations=iterations, converged=converged and not message, problem=problem, message=message,
        )  # fmt: skip


@dataclass
class _Fit:
    """Shares of what points contribute to sums, that give those sums."""

    parts: list[Floats] = field(default_factory=list)
    sums: list[Floats] = field(default_factory=list)

    def add(self, parts: Floats, sums: Floats) -> None:
        """Contributions (p, k) of points, which should sum to (k,)."""
        size = float(np.linalg.norm(sums)) or 1.0
        self.parts.append(parts.T / size)
        self.sums.append(sums / size)

    def shares(self) -> Floats:
        """(p,) none below 0, and near 1 where nothing speaks against it."""
        C, t = np.concatenate(self.parts).astype(np.float64), np.concatenate(self.sums)
        share, kept = np.ones(C.shape[1]), np.ones(C.shape[1], dtype=bool)
        while True:
            A = C[:, kept]
            share[kept] = np.linalg.solve(A.T @ A + SHARE_RIDGE * np.eye(A.shape[1]), A.T @ t + SHARE_RIDGE)
            if (share >= 0).all():
                return share
            kept &= share >= 0
            share[~kept] = 0


def _clustered(points: Floats, sizes: Floats, count: int, dense: Floats | None = None) -> tuple[Ints, Floats]:
    """Points in the middle of about `count` clusters, and the clusters' sizes. dense: (p,) there are more where this is
    large."""
    from scipy.spatial import cKDTree

    if len(points) <= count:
        return np.arange(len(points)), sizes
    wanted = sizes if dense is None else sizes * dense
    rng = np.random.default_rng(0)
    centres = points[np.sort(rng.choice(len(points), count, replace=False, p=wanted / wanted.sum()))]
    for _ in range(4):
        owner = cKDTree(centres).query(points)[1]
        size = np.bincount(owner, wanted, minlength=len(centres))
        middle = np.stack([np.bincount(owner, wanted * x, minlength=len(centres)) for x in points.T], axis=1)
        centres = middle[size > 0] / size[size > 0, None]
    chosen = np.unique(cKDTree(points).query(centres)[1])
    owner = cKDTree(points[chosen]).query(points)[1]
    return chosen, np.asarray(np.bincount(owner, sizes, minlength=len(chosen)), dtype=np.float64)


def _curvature_rows(frames: Singles, moved: Singles) -> Singles:
    """(9 a, k) whose square is the second derivative of limits at points, for `StrainLimits.curvature`'s frames."""
    U, V = frames[:, :9].reshape(-1, 3, 3), frames[:, 9:18].reshape(-1, 3, 3)
    M = np.einsum("aji,ajlk->ailk", U, moved, optimize=True)
    M = np.einsum("ailk,alm->aimk", M, V, optimize=True)
    roots = np.sqrt(frames[:, 18:, None])
    rows = [roots[:, k] * M[:, k, k] for k in range(3)]
    for k, (i, j) in enumerate(SYMMETRIC):
        even, odd = (0.5**0.5 * (M[:, i, j] + sign * M[:, j, i]) for sign in (1, -1))
        rows += [roots[:, 6 + k] * even, roots[:, 3 + k] * odd]
    return np.concatenate(rows)


def _stretches(F: Floats) -> Floats:
    """(p, 3) of deformation gradients (p, 9)."""
    sigma = np.empty((len(F), 3))
    kernels.limits_stretches(F, sigma)
    return sigma


def _scaled(rows: Any, by: Floats) -> Any:
    """A sparse matrix whose rows are multiplied."""
    from scipy.sparse import diags

    return (diags(by) @ rows).tocsr()


def _single(values: Floats) -> Singles:
    return values.astype(np.float32)
