"""`ElasticBody`: a shape filled with flesh, on a skeleton.

Everything that does not depend on the pose is prepared once: nodes, their functions, the quadrature, the weights of the
rotation diffusion, the preconditioner and the surface's embedding. A pose is then one linear solve (`pose`), a motion
one for each step (`simulate`). No weights are painted or asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import Pose
from pliant.core.errors import InputError
from pliant.core.progress import Report
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats, Ints
from pliant.core.validation import check_extent
from pliant.core.values import locked
from pliant.engines.simulate.anchors import hold, with_points
from pliant.engines.simulate.binding import Binding, bind
from pliant.engines.simulate.bones import Bones, Frames
from pliant.engines.simulate.bracing import braced, checked_brace
from pliant.engines.simulate.carrying import TOO_THIN, carried_surface, frame_points, thickness
from pliant.engines.simulate.conjugate_gradients import Posed
from pliant.engines.simulate.consistency import consistent
from pliant.engines.simulate.cuts import Foreign
from pliant.engines.simulate.diffusion import RotationWeights, diffuse
from pliant.engines.simulate.dynamics import BodyState, Forces
from pliant.engines.simulate.interior import enclosed_volume
from pliant.engines.simulate.material import Material
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.multigrid import Hierarchy, Preconditioner, build_multigrid
from pliant.engines.simulate.nodes import Nodes, sample_nodes
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.simulate.quadrature import Quadrature, quadrature
from pliant.engines.simulate.regions import Materials, Region, material_at
from pliant.engines.simulate.simulation import (
    Pace,
    Simulation,
    check_forces,
    check_motion,
    check_numbers,
    check_start,
    simulated,
    states,
)
from pliant.engines.simulate.statics import Balance, balanced, failure_of
from pliant.engines.simulate.stiffness import laplacian, lumped_mass
from pliant.engines.simulate.warping import CorotatedOperator

STATIC_ACCURACY = 1e-3
"""What strains may lack in a static pose, root mean square."""
STATIC_ITERATIONS = 400
LARGEST_SIZE = 1e9
"""Diagonal up to which volumes times stiffnesses are numbers in single precision, in which steps are solved."""
UNSEEN = 1e-9
"""Support of a frame's points, over the diagonal: no flesh is moved by them."""
FEWEST_POINTS = 4
"""Quadrature points that a node has to be seen by: with fewer, tips have motions that cost no energy."""


@dataclass(frozen=True, eq=False)
class ElasticPose(Pose):
    """A body at rest in a pose of its skeleton."""

    volume: float = 1.0
    """Of the flesh, over that at rest."""
    energy: float = 0.0
    """Elastic, in the units of Young's modulus times volume."""
    nodes: Floats | None = None
    """(n, 3) where the nodes are."""


class ElasticBody:
    """A shape that follows a skeleton as flesh does.

    shape: a closed surface, also of several parts or with small holes, tetrahedra, or a point cloud with normals.
    skeleton: joints inside it. material: one `Material`, or pairs of region and material. nodes: how many points carry
    the deformation, bones' samples among them. rigid: regions that move with their joints, as stiff as bones; parts
    that a skin binds to one joint alone are rigid by themselves, unless a region of `soft` names them. withstand: an
    acceleration, or one for each joint, that slender parts without a bone withstand: they are made as stiff as that
    takes. withstand_all: whether other flesh withstands it as well, where it would be torn.
    """

    def __init__(
        self,
        shape: Shape,
        skeleton: Skeleton,
        *,
        material: Materials | None = None,
        nodes: int = SimulateOptions.nodes,
        rigid: Sequence[Region] = (),
        soft: Sequence[Region] = (),
        withstand: ArrayLike = 0.0,
        withstand_all: bool = False,
    ) -> None:
        _check_options(shape, skeleton, nodes)
        self.shape, self.skeleton = shape, skeleton
        self.brace: Floats = checked_brace(withstand, len(skeleton))
        self.brace_all = withstand_all
        self.material: Materials = Material() if material is None else material
        self.binding: Binding = bind(shape, skeleton, rigid, soft)
        tree = self.binding.surface
        self.diagonal = tree.diagonal
        spacing = (enclosed_volume(tree) / nodes) ** (1 / 3)
        self.samples, carriers = hold(self.binding, skeleton, spacing)
        self.bones: Bones = self.samples.bones
        self.nodes: Nodes = sample_nodes(tree, nodes, fixed=self.samples.points)
        self._elastic_nodes = self.nodes
        self.quadrature: Quadrature = quadrature(tree, self.nodes)
        functions = consistent(mls(self.quadrature.points, self.nodes, gradients=True), self.quadrature, self.nodes)
        foreign = None
        if self.binding.skin is not None and isinstance(shape, Mesh):
            foreign = Foreign(shape, self.binding, self.nodes.points)
        cut = np.ones(len(self.quadrature))
        self.cut: Floats = cut if foreign is None else foreign.stiffness(functions, self.quadrature.points)
        """(q,) what is left of the stiffness of flesh that overlaps without belonging together."""
        self.operator, self.mass = self._filled(functions)
        table, loose = diffuse(laplacian(functions, self.cut * self.quadrature.weights), self.nodes, self.samples.blend)
        seen = np.diff(self.operator.lists[0])[: self.nodes.free]
        thin = foreign is not None and (thickness(self.nodes) < TOO_THIN[0])[: self.nodes.free]
        self.loose = locked(loose | (seen < FEWEST_POINTS) | thin)
        """(free,) nodes that go along with the bones: nothing, or too little, says how they move."""
        self.node_weights = RotationWeights.of(table)
        self.point_weights = RotationWeights.of(functions.matrix @ table)
        self.multigrid: Hierarchy = build_multigrid(self.operator, self.nodes, self.mass, self.loose)
        elastic = self.binding.elastic(len(shape.points))
        self.surface: Interpolation = mls(shape.points[elastic], self.nodes)
        if len(carriers):
            mixed = np.zeros(len(elastic)) if foreign is None else foreign.shares(self.surface, shape.points[elastic])
            self._add_frames(table, carriers, mixed)

    def _add_frames(self, table: Floats, carriers: Ints, foreign: Floats) -> None:
        """Let vertices that joints carry follow the frames of these bones, which are the last nodes."""
        assert isinstance(self.shape, Mesh)
        nodes = self._elastic_nodes
        self.surface = carried_surface(self.surface, self.shape, self.binding, self.bones, carriers, nodes, foreign)
        corners = frame_points(self.bones, carriers, self.diagonal)
        self.samples = with_points(self.samples, list(zip(carriers.tolist(), corners, strict=True)))
        added = self.samples.points[len(nodes) - nodes.free :]
        points, radii = np.concatenate([nodes.points, added]), np.full(len(added), UNSEEN * self.diagonal)
        self.nodes = replace(nodes, points=locked(points), radii=locked(np.concatenate([nodes.radii, radii])))
        rows = self.samples.blend[len(self.samples) - len(added) :].toarray()
        self.node_weights = RotationWeights.of(np.concatenate([table, rows]))

    def _filled(self, functions: Interpolation) -> tuple[CorotatedOperator, Floats]:
        """The flesh that the material makes, and the mass (n,) of the nodes."""
        weights, mesh = self.quadrature.weights, self.shape if isinstance(self.shape, Mesh) else None
        made = material_at(self.quadrature.points, self.material, mesh=mesh, skeleton=self.skeleton)
        if self.brace.any():
            volumes, masses = (lumped_mass(functions, weights, made.density**power) for power in (0, 1))
            joint = self.bones.joint[self.samples.bone]
            factor = braced(
                made.young, functions, self._elastic_nodes, volumes, masses, self.brace[joint], compact=self.brace_all
            )
            made = replace(made, lam=factor * made.lam, mu=factor * made.mu)
        stiff = weights * self.cut
        operator = CorotatedOperator(
            functions, weights, locked(stiff * made.lam), locked(stiff * made.mu), self.nodes.free
        )
        return operator, locked(lumped_mass(functions, weights, made.density))

    def with_material(self, material: Materials) -> ElasticBody:
        """The same body made of something else: as a new one would be, in a tenth of the time."""
        other = copy(self)
        other.material = material
        other.operator, other.mass = other._filled(self.operator.functions)
        other.multigrid = build_multigrid(other.operator, other._elastic_nodes, other.mass, other.loose)
        return other

    def __repr__(self) -> str:
        return f"ElasticBody({self.shape!r}, {self.skeleton!r}, {len(self.nodes)} nodes)"

    @property
    def volume(self) -> float:
        """Of the flesh at rest."""
        return float(self.quadrature.weights.sum())

    @cached_property
    def static(self) -> Preconditioner:
        """Of poses at rest."""
        return self.multigrid.preconditioner(0.0, 1.0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "static"}

    # Poses

    def pose(
        self,
        pose: SkeletonPose,
        *,
        gravity: Any = None,
        accuracy: float | None = None,
        iterations: int | None = None,
    ) -> ElasticPose:
        """The shape at rest in a pose of the skeleton, in one step and whatever came before.

        gravity: a vector, or an acceleration down the shape's up axis. accuracy: what strains may lack (1e-3);
        iterations: at most (400).
        """
        frames = self.frames_of(pose)
        finest = STATIC_ACCURACY if accuracy is None else accuracy
        most = STATIC_ITERATIONS if iterations is None else iterations
        check_numbers(accuracy=finest)
        if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1:
            raise InputError(f"iterations is {most!r:.40}; expected a whole number, 1 or more")
        load = self.mass[: self.nodes.free, None] * self.gravity(gravity)
        start, posed = self.carried(frames, 0), self.posed(frames, 0)
        found = balanced(posed, start, load, self.static, accuracy=finest, most=most)
        return self._result(found, posed.R)

    def _result(self, found: Balance, R: Floats) -> ElasticPose:
        strain, stretch = self.operator.strains(found.x, R)
        volume, inverted = float(self.operator.weights @ stretch) / self.volume, int((stretch <= 0).sum())
        message = "" if found.converged else f"stopped after {found.iterations} iterations, short by {found.strain:.1e}"
        message = message or failure_of(volume, inverted, len(stretch))
        return ElasticPose(
            self.shape.with_points(locked(self.embed(found.x))),
            found.residual,
            found.iterations,
            found.converged and not message,
            inverted=inverted,
            message=message,
            volume=volume,
            energy=self.operator.energy(strain),
            nodes=locked(found.x),
        )

    # Motion

    def states(
        self,
        motion: Motion,
        *,
        dt: float = SimulateOptions.dt,
        fps: float | None = None,
        hold: float = SimulateOptions.hold,
        gravity: Any = None,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        forces: Forces = None,
        obstacles: Iterable[Any] = (),
        friction: float = SimulateOptions.friction,
        self_contact: bool = SimulateOptions.self_contact,
        start: BodyState | None = None,
        resume: BodyState | None = None,
        following: bool = True,
        accuracy: float = SimulateOptions.accuracy,
    ) -> Iterator[BodyState]:
        """The body's state at every frame, as soon as it is known; the options are those of `simulate`."""
        self.gravity(gravity)
        check_motion(self, motion)
        check_forces(self, forces)
        check_start(self, start)
        check_start(self, resume, "resume")
        if start is not None and resume is not None:
            raise InputError("start and resume are given; expected one of them", argument="resume")
        SimulateOptions.check(
            damping=damping, drag=drag, friction=friction, self_contact=self_contact, accuracy=accuracy
        )
        pace = Pace.of(motion, dt, fps, hold)
        return states(
            self, motion, pace, start, resume, following, obstacles, friction, self_contact,
            gravity=gravity, damping=damping, drag=drag, forces=forces, accuracy=accuracy,
        )  # fmt: skip

    def simulate(
        self,
        motion: Motion,
        *,
        dt: float = SimulateOptions.dt,
        fps: float | None = None,
        hold: float = SimulateOptions.hold,
        gravity: Any = None,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        forces: Forces = None,
        obstacles: Iterable[Any] = (),
        friction: float = SimulateOptions.friction,
        self_contact: bool = SimulateOptions.self_contact,
        start: BodyState | None = None,
        resume: BodyState | None = None,
        following: bool = True,
        accuracy: float = SimulateOptions.accuracy,
        report: Report | None = None,
    ) -> Simulation:
        """The body following a motion of its skeleton, with what the solver knows of every frame.

        dt: the longest step, in seconds. fps: of the clip; the motion's, but no finer than the steps. hold: seconds to
        go on in the last pose. gravity: a vector, or an acceleration down the up axis. damping: seconds, the viscosity
        over the stiffness; drag: per second, against the motion of the bones. forces: (vertices, 3), or a function of
        time and points that gives them. obstacles, friction: what it meets, as in `pliant.contact`; self_contact:
        whether it does not pass through itself. start: a state to go on from, else the static shape of the first pose,
        in contact, moving with the bones (following) or at rest.
        resume: the state of a frame of this same simulation, to go on as if it had never stopped, bit for bit.
        accuracy: what a step's solve may lack, over what the step changes. A simulation that flies apart ends with the
        frames before, a warning, and `stopped`; one whose flesh fails (its volume, or what is turned inside out) is not
        called converged, and warns.
        """
        steps = self.states(
            motion, dt=dt, fps=fps, hold=hold, gravity=gravity, damping=damping, drag=drag, forces=forces,
            obstacles=obstacles, friction=friction, self_contact=self_contact, start=start, resume=resume,
            following=following, accuracy=accuracy,
        )  # fmt: skip
        pace = Pace.of(motion, dt, fps, hold)
        return simulated(self, motion, pace, steps, report, 0 if resume is None else round(resume.time * pace.fps))

    def frames_of(self, pose: SkeletonPose) -> Frames:
        """The bones in one pose."""
        if not isinstance(pose, SkeletonPose):
            raise InputError(f"the pose is a {type(pose).__name__}; expected a SkeletonPose, as skeleton.pose gives")
        self.check_skeleton(pose.skeleton)
        return self.bones.posed(pose.rotations[None], pose.translations[None])

    def check_skeleton(self, skeleton: Skeleton) -> None:
        """A pose or motion has to be of this body's joints."""
        mine = self.skeleton
        if skeleton is mine:
            return
        if skeleton.names != mine.names or not np.array_equal(skeleton.parents, mine.parents):
            other = [name for name in skeleton.names if name not in mine.names]
            what = f'has joint "{other[0]}"' if other else f"has {len(skeleton)} joints in another order"
            raise InputError(
                f"the motion's skeleton {what}; this body has {len(mine)}: {', '.join(mine.names[:6])}, ...: "
                "map the motion to its skeleton first",
                argument="motion",
            )

    def posed(self, frames: Frames, frame: int) -> Posed:
        """The flesh with the rotations diffused from posed bones."""
        quaternions = frames.quaternions[frame]
        R = self.point_weights.matrices(quaternions)
        nodes = self.node_weights.matrices(quaternions)[: self.nodes.free]
        return Posed(self.operator, R, R.astype(np.float32), nodes.astype(np.float32), self.diagonal)

    def carried(self, frames: Frames, frame: int) -> Floats:
        """(n, 3) the nodes as the bones carry them along; the bones' samples in their places."""
        matrices = rotations.matrix(frames.quaternions[frame])
        shift = frames.heads[frame] - np.einsum("bij,bj->bi", matrices, self.bones.heads)
        x = self.node_weights.carried(self.nodes.points, matrices.reshape(-1, 9), shift)
        x[self.nodes.free :] = self.samples.posed(
            Frames(frames.heads[[frame]], frames.tails[[frame]], frames.quaternions[[frame]])
        )[0]
        return x

    def embed(self, x: Floats) -> Floats:
        """(vertices, 3) the shape's points for nodes (n, 3)."""
        return self.surface.interpolated(x)

    def gravity(self, gravity: Any) -> Floats:
        """(3,) an acceleration, from a vector or a size down the shape's up axis."""
        if gravity is None:
            return np.zeros(3)
        given = gravity.tolist() if isinstance(gravity, np.ndarray) else gravity
        value = np.asarray(SimulateOptions.check(gravity=given)["gravity"])
        if value.shape == (3,):
            return value
        world = self.shape.world
        return np.array([0.0, 0.0, -value]) if world is not None and world.up == "z" else np.array([0.0, -value, 0.0])


def _check_options(shape: Any, skeleton: Any, nodes: Any) -> None:
    if not isinstance(shape, (Mesh, TetMesh, PointCloud)):
        raise InputError(f"the shape is a {type(shape).__name__}; expected a Mesh, a TetMesh or a PointCloud")
    if not isinstance(skeleton, Skeleton):
        raise InputError(f"the skeleton is a {type(skeleton).__name__}; expected a Skeleton")
    if len(shape.points):
        check_extent(shape.points, "the shape", largest=LARGEST_SIZE)
    SimulateOptions.check(nodes=nodes)
