"""`ElasticBody`: a shape filled with flesh, on a skeleton.

Everything that does not depend on the pose is prepared once: nodes, their functions, the quadrature, the weights of the
rotation diffusion, the preconditioner and the surface's embedding. A pose is then one linear solve (`pose`), a motion
one for each step (`simulate`). No weights are painted or asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.clips import Pose
from pliant.core.errors import InputError, PliantWarning, about_argument
from pliant.core.interop import takes_meshes
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.signatures import former_arguments, takes_arguments_of
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats, Ints
from pliant.core.validation import check_extent, vector
from pliant.core.values import Displayed, locked
from pliant.engines.simulate.anchors import hold
from pliant.engines.simulate.binding import Binding, bind
from pliant.engines.simulate.bone_samples import BoneSamples
from pliant.engines.simulate.bones import Bones, Frames
from pliant.engines.simulate.bracing import checked_accelerations, leash_rates
from pliant.engines.simulate.carrying import carried_surface, frame_points
from pliant.engines.simulate.conjugate_gradients import Posed
from pliant.engines.simulate.cuts import Foreign
from pliant.engines.simulate.diffusion import RotationWeights, diffuse
from pliant.engines.simulate.discretisation import discretise
from pliant.engines.simulate.dynamics import BodyState, Forces, Stepper
from pliant.engines.simulate.fibres import Fibres, find_fibres
from pliant.engines.simulate.interior import enclosed_volume
from pliant.engines.simulate.material import Material
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.multigrid import Hierarchy, Preconditioner, build_multigrid
from pliant.engines.simulate.muscles import Muscle
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes, sample_nodes
from pliant.engines.simulate.options import SimulateOptions, StaticOptions, StretchLimit
from pliant.engines.simulate.quadrature import Quadrature
from pliant.engines.simulate.regions import Materials, material_at
from pliant.engines.simulate.simulation import (
    Pace,
    Simulation,
    States,
    check_forces,
    check_motion,
    check_start,
    play,
)
from pliant.engines.simulate.sliding import sliding
from pliant.engines.simulate.statics import Balance, balanced, failure_of
from pliant.engines.simulate.stiffness import laplacian, lumped_mass
from pliant.engines.simulate.strain_limits import StrainLimits
from pliant.engines.simulate.warping import CorotatedOperator
from pliant.geometry.regions import Region

if TYPE_CHECKING:
    from pliant.contact.solids import HalfSpace
    from pliant.engines.simulate.contacts import ContactSurface
    from pliant.engines.simulate.reduced import ReducedBody

LARGEST_SIZE = 1e9
"""Diagonal up to which volumes times stiffnesses are numbers in single precision, in which steps are solved."""
FARTHEST_ORIGIN = 1e3
"""Distance of a shape from the origin, over its diagonal, up to which all of it is known to be as it is there."""
WARPINGS = (
    "flesh is corotated at the quadrature points, by diffused rotations; the paper's and Müller's schemes, to compare "
    "with, are in benchmarks/warping_schemes.py"
)
SKIN_SMOOTHING = 1.5
"""Distance, over that of the nodes, over which rotations that the skin says are smoothed."""
LEAST_WHOLE = 0.5
"""What is left of the stiffness of flesh, above which it is not as good as cut."""
UNSEEN = 1e-9
"""Support of a frame's points, over the diagonal: no flesh is moved by them."""


@dataclass(frozen=True, eq=False)
class ElasticPose(Pose):
    """A body at rest in a pose of its skeleton."""

    volume: float = 1.0
    """Of the flesh, over that at rest."""
    overstrained: int = 0
    """Quadrature points far beyond their stretch limits."""
    energy: float = 0.0
    """Elastic, in the units of Young's modulus times volume."""
    nodes: Floats | None = None
    """(n, 3) where the nodes are."""
    activation: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,) of muscles."""
    shortening: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,) share by which their fibres are shorter than at rest, in the mean."""


class ElasticBody(Displayed):
    """A shape that follows a skeleton as flesh does.

    shape: a closed surface, also of several parts or with small holes, tetrahedra, or a point cloud with normals.
    skeleton: joints inside it. material: one `Material`, or pairs of region and material; None: soft flesh that suits
    its length, whatever its unit (`Material.of_length`). nodes: how many points carry the deformation. rigid: regions
    that move with their joints, as stiff as bones; parts that a skin binds to one joint alone are rigid by themselves,
    unless a region of `soft` names them. withstand: an acceleration, or one for each joint (linear, or linear and
    angular), against which springs keep flesh near to where the bones carry it.
    """

    @former_arguments(WARPINGS, warping="corotated", rotations="diffused")
    @takes_meshes("shape")
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
    ) -> None:
        _check_options(shape, skeleton, nodes)
        self.shape, self.skeleton = shape, skeleton
        self.binding: Binding = bind(shape, skeleton, rigid, soft)
        tree = self.binding.surface
        self.diagonal = tree.diagonal
        length = float(np.ptp(tree.points, axis=0).max())
        self.material: Materials = Material.of_length(length) if material is None else material
        spacing = (enclosed_volume(tree) / nodes) ** (1 / 3)
        samples, carriers = hold(self.binding, skeleton, spacing)
        self.samples: BoneSamples = samples
        self.bones: Bones = samples.bones
        self.nodes: Nodes = sample_nodes(tree, nodes, fixed=samples.points)
        rows = discretise(tree, self.nodes, samples.areas, samples.radii)
        self.discretisation = rows = rows.tied(rows.weak(thin=self.binding.skin is not None))
        self.quadrature: Quadrature = rows.quadrature
        foreign = self._foreign()
        cut = np.ones(len(rows.weights)) if foreign is None else foreign.stiffness(rows.functions, rows.points)
        self.cut: Floats = locked(cut)
        """(rows,) what is left of the stiffness of flesh that overlaps without belonging together."""
        self._fill()
        K = laplacian(rows.functions, self.cut * rows.weights)
        table, loose = diffuse(K, self.nodes, samples.blend, self._skin())
        self.loose = locked(loose)
        """(free,) nodes that go along with the bones: nothing says how they move."""
        self.node_weights = RotationWeights.of(table)
        self.point_weights = RotationWeights.of(np.concatenate([rows.inner.matrix @ table, table[rows.ends]]))
        """Of the operator's rows: quadrature points, then springs."""
        self._brace(withstand)
        self.multigrid: Hierarchy = self._multigrid()
        elastic = self.binding.elastic(len(shape.points))
        self.surface: Interpolation = mls(shape.points[elastic], self.nodes)
        if len(carriers):
            mixed = np.zeros(len(elastic)) if foreign is None else foreign.shares(self.surface, shape.points[elastic])
            self._add_frames(table, carriers, mixed)

    def _foreign(self) -> Foreign | None:
        """Which nodes do not belong to a point, if a skin says so."""
        if self.binding.skin is None or not isinstance(self.shape, Mesh):
            return None
        return Foreign(self.shape, self.binding, self.nodes.points)

    def _skin(self) -> tuple[Floats, Floats] | None:
        """What `diffuse` has to know of the file's skin."""
        if self.binding.skin is None:
            return None
        free, inner = self.nodes.free, self.discretisation.inner
        weights = self.binding.by_bones(self.nodes.points[:free], self.bones)
        smooth = SKIN_SMOOTHING * self.nodes.radii[:free] / SUPPORT_FACTOR
        return weights, weights.sum(axis=1) * lumped_mass(inner, self.quadrature.weights)[:free] / smooth**2

    def limits(self, stretch_limit: StretchLimit) -> StrainLimits:
        """Strain limits of whole flesh."""
        return StrainLimits.of(self.operator, stretch_limit, whole=self.whole)

    @property
    def whole(self) -> NDArray[np.bool_]:
        """(q,) which quadrature points are neither as good as cut, nor below a skin that slides: what moves apart is
        not strained."""
        whole = self.cut[: len(self.quadrature)] > LEAST_WHOLE
        return whole & (self.operator.inner.sliding == 0) if len(self.operator.sliding) else whole

    def inverted(self, stretch: Floats) -> int:
        """How many quadrature points, with J (q,) as given, are turned inside out."""
        return int(np.count_nonzero(self.whole & (stretch <= 0)))

    def _add_frames(self, table: Floats, carriers: Ints, foreign: Floats) -> None:
        """Let vertices that joints carry follow the frames of these bones, which are the last nodes."""
        assert isinstance(self.shape, Mesh)
        nodes = self.discretisation.nodes
        carrying = [] if self.binding.skin is None else [np.unique(self.node_weights.bone)]
        framed = np.concatenate([carriers, *carrying])
        self.surface = carried_surface(
            self.surface, self.shape, self.binding, self.bones, carriers, nodes, self.node_weights, foreign
        )
        added = frame_points(self.bones, framed, self.diagonal).reshape(-1, 3)
        nothing = np.zeros(len(added))
        scaled = np.repeat(np.arange(len(framed)) < len(carriers), 4)
        self.samples = self.samples.with_points(added, np.repeat(framed, 4), nothing, nothing, scaled)
        points, radii = np.concatenate([nodes.points, added]), np.full(len(added), UNSEEN * self.diagonal)
        self.nodes = replace(nodes, points=locked(points), radii=locked(np.concatenate([nodes.radii, radii])))
        rows = self.samples.blend[len(self.samples) - len(added) :].toarray()
        self.node_weights = RotationWeights.of(np.concatenate([table, rows]))

    def _fill(self) -> None:
        """What the material makes: at every row, the operator, and the mass (n,) of the nodes."""
        rows = self.discretisation
        self.made = made = material_at(rows.points, self.material, mesh=self._mesh, skeleton=self.skeleton)
        operator = rows.operator(self.cut * made.lam, self.cut * made.mu)
        self.operator: CorotatedOperator = sliding(operator, made.sliding, self.nodes, self.quadrature.points)
        self.mass = rows.mass(made.density)
        self._fibres: Fibres | None = None
        self._reduced: dict[int, ReducedBody] = {}

    @property
    def _mesh(self) -> Mesh | None:
        return self.shape if isinstance(self.shape, Mesh) else None

    def _brace(self, withstand: ArrayLike) -> None:
        """What keeps flesh near to its bones."""
        self.withstand: Floats = checked_accelerations(withstand, len(self.skeleton))
        rows, weights = self.discretisation, self.node_weights.table(len(self.bones))[: self.nodes.free]
        self._leash_rates = leash_rates(rows.functions, rows.nodes, weights.toarray(), self.bones, self.withstand)

    def with_material(self, material: Materials, withstand: ArrayLike | None = None) -> ElasticBody:
        """The same body made of something else: as a new one would be, in a tenth of the time.

        withstand: if it is to withstand something else, too.
        """
        other = copy(self)
        other.material = material
        other._fill()
        if withstand is not None:
            other._brace(withstand)
        other.multigrid = other._multigrid()
        return other

    def fibres(self, muscles: Sequence[Muscle] = (), fps: float | None = None) -> Fibres:
        """Where muscles pull; those that were asked for last are kept. fps: of the motion that they act in."""
        known = self._fibres
        if isinstance(muscles, Muscle):
            raise InputError("muscles is a Muscle; expected a list of them", argument="muscles")
        if known is None or known.muscles != tuple(muscles) or known.fps != fps:
            known = self._fibres = find_fibres(
                muscles, self.operator, self.quadrature.points, self.made, mesh=self._mesh, skeleton=self.skeleton,
                fps=fps,
            )  # fmt: skip
        return known

    def _multigrid(self) -> Hierarchy:
        return build_multigrid(self.operator, self.discretisation.nodes, self.mass, self.leash, self.loose)

    @property
    def leash(self) -> Floats:
        """(free,) stiffness of the springs from nodes to where the bones would carry them."""
        return self.mass[: self.nodes.free] * self._leash_rates

    def reduced(self, modes: int = 60) -> ReducedBody:
        """The same body in so many of its eigenmodes, for live use; it is built once, and pickled with this one."""
        from pliant.engines.simulate.reduced import ReducedBody

        SimulateOptions.check(modes=modes)  # before it is looked up
        if modes not in self._reduced:
            self._reduced[modes] = ReducedBody(self, modes)
        return self._reduced[modes]

    def __repr__(self) -> str:
        return f"ElasticBody({self.shape!r}, {self.skeleton!r}, {self.nodes.free} nodes)"

    @property
    def volume(self) -> float:
        """Of the flesh at rest."""
        return float(self.quadrature.weights.sum())

    @cached_property
    def static(self) -> Preconditioner:
        """Of poses at rest."""
        return self.multigrid.preconditioner(0.0, 1.0)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in ("static", "contact_surface")}
        return kept | {"_fibres": None}

    # Poses

    def pose(
        self,
        pose: SkeletonPose,
        *,
        gravity: Any = None,
        muscles: Sequence[Muscle] = (),
        time: float = 0.0,
        accuracy: float = StaticOptions.accuracy,
        iterations: int = StaticOptions.iterations,
        stretch_limit: StretchLimit = SimulateOptions.stretch_limit,
    ) -> ElasticPose:
        """The shape at rest in a pose of the skeleton, in one step and whatever came before.

        gravity: a vector, or an acceleration down the shape's up axis. muscles: `pliant.Muscle`s, as they are activated
        at a time in seconds. accuracy: what strains may lack. iterations: at most. stretch_limit: as in `simulate`.
        """
        frames = self.frames_of(pose)
        how = StaticOptions(accuracy, iterations)
        SimulateOptions.check(stretch_limit=stretch_limit)
        weight, fibres = self.mass[: self.nodes.free, None] * self.gravity(gravity), self.fibres(muscles)
        start, posed = self.carried(frames, 0), self.posed(frames, 0)
        pull = partial(fibres.contraction, time, frames.joints[0], posed.R)
        found = balanced(posed, start, weight, pull, self.leash, self.static, self.limits(stretch_limit), how)
        return self._result(found, posed.R, fibres)

    def _result(self, found: Balance, R: Floats, fibres: Fibres) -> ElasticPose:
        strain, stretch = self.operator.strains(found.x, R)
        volume, inverted = float(self.operator.weights @ stretch) / self.volume, self.inverted(stretch)
        message = "" if found.converged else f"stopped after {found.iterations} iterations, short by {found.strain:.1e}"
        message = message or failure_of(volume, inverted, found.overstrained, len(stretch))
        return ElasticPose(
            self.shape.with_points(locked(self.embed(found.x))),
            found.residual,
            found.iterations,
            found.converged and not message,
            inverted=inverted,
            message=message,
            volume=volume,
            overstrained=found.overstrained,
            energy=self.operator.energy(strain - found.contraction.strain) + found.further_energy,
            nodes=locked(found.x),
            activation=locked(found.contraction.activation),
            shortening=locked(fibres.shortening(found.x)),
        )

    # Motion

    def states(
        self,
        motion: Motion,
        *,
        dt: float = SimulateOptions.dt,
        fps: float | None = SimulateOptions.fps,
        hold: float = SimulateOptions.hold,
        pre_roll: float = SimulateOptions.pre_roll,
        gravity: Any = SimulateOptions.gravity,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        forces: Forces = None,
        muscles: Sequence[Muscle] = (),
        obstacles: Iterable[Any] = (),
        friction: float | None = SimulateOptions.friction,
        self_contact: bool = SimulateOptions.self_contact,
        start: BodyState | None = None,
        resume: BodyState | int | None = None,
        following: bool = True,
        accuracy: float = SimulateOptions.accuracy,
        stretch_limit: StretchLimit = SimulateOptions.stretch_limit,
        report: ReportFrames | None = None,
    ) -> States:
        """The body's state at every frame, as soon as it is known; the arguments are those of `simulate`."""
        from pliant.engines.simulate.contacts import make_collisions

        self.gravity(gravity)
        check_motion(self, motion)
        check_forces(self, forces)
        check_start(self, start)
        if not isinstance(resume, int):
            check_start(self, resume, "resume")
        if start is not None and resume is not None:
            raise InputError("start and resume are given; expected one of them", argument="resume")
        SimulateOptions.check(
            damping=damping, drag=drag, friction=friction, self_contact=self_contact, accuracy=accuracy,
            stretch_limit=stretch_limit, pre_roll=pre_roll,
        )  # fmt: skip
        pace, fibres = Pace.of(motion, dt, fps, hold), self.fibres(muscles, motion.fps)
        for k, muscle in enumerate(fibres.muscles):
            with about_argument("muscles", k):
                muscle.check_frames(len(motion))
        stepper = Stepper(
            self, pace.step, gravity=gravity, damping=damping, drag=drag, forces=forces, fibres=fibres,
            collisions=make_collisions(self, obstacles, friction or 0.0, pace.fps, self_contact),
            accuracy=accuracy, stretch_limit=stretch_limit,
        )  # fmt: skip
        return play(
            stepper, motion, pace, start=start, resume=resume, following=following, pre_roll=pre_roll, report=report
        )

    @takes_arguments_of(states)
    def simulate(self, *arguments: Any, **options: Any) -> Simulation:
        """The body following a motion of its skeleton, with what the solver knows of every frame.

        dt: the longest step, in seconds. fps: of the clip; the motion's, but no finer than the steps. hold: seconds to
        go on in the last pose; pre_roll: seconds in which bones come from rest to the first pose before the clip.
        gravity: a vector, or an acceleration down the up axis. damping: seconds, the viscosity over the stiffness;
        drag: per second, against the motion of the bones. forces: (vertices, 3), or a function of time and points that
        gives them. muscles: `pliant.Muscle`s that act meanwhile. obstacles, friction: what it meets, as in
        `pliant.contact`; self_contact: whether it does not pass through itself. start: a state to go on from, else the
        static shape of the first pose, in contact, moving with the bones (following) or at rest. resume: the state of a
        frame of this same simulation, to go on as if it had never stopped, bit for bit; or the number of a frame behind
        a jump, to begin there. accuracy: what a step's solve
        may lack, over what the step changes. stretch_limit: share by which flesh may stretch beyond what its bones
        impose, or "none". report: called with the number of frames done, and of all. Where the motion jumps, flesh
        starts anew, with a warning. A simulation that flies apart ends with the frames before, a warning, and
        `stopped`; one whose flesh fails (its volume, or what is turned inside out) is not called converged, and warns.
        """
        return self.states(*arguments, **options).clip()

    def frames_of(self, pose: SkeletonPose) -> Frames:
        """The bones in one pose."""
        if not isinstance(pose, SkeletonPose):
            raise InputError(f"the pose is a {type(pose).__name__}; expected a SkeletonPose, as skeleton.pose gives")
        self.check_skeleton(pose.skeleton)
        scales = None if pose.scales is None else pose.scales[None]
        return self.bones.posed(pose.rotations[None], pose.translations[None], scales)

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
        """(n, 3) the nodes as the bones carry them along; the bones' samples at their positions."""
        x = self.node_weights.carried(self.nodes.points, *frames.transforms(self.bones, frame))
        x[self.nodes.free :] = self.samples.posed(frames.chosen(slice(frame, frame + 1)))[0]
        return x

    def embed(self, x: Floats) -> Floats:
        """(vertices, 3) the shape's points for nodes (n, 3)."""
        return self.surface.interpolated(x)

    def points_of(self, state: BodyState) -> Floats:
        """(vertices, 3) the shape's points at a moment, in contact where it is."""
        points = self.embed(state.nodes)
        return points if state.contact is None else self.contact_surface.spread(state.contact.x, points)

    def carried_points(self, state: BodyState) -> Floats:
        """(vertices, 3) the shape's points where the bones alone would carry them."""
        return self.embed(state.carried)

    @cached_property
    def contact_surface(self) -> ContactSurface:
        """What of it touches."""
        from pliant.engines.simulate.contacts import ContactSurface

        return ContactSurface.of(self.shape)

    def ground(self, motion: Motion, up: ArrayLike | None = None) -> HalfSpace:
        """The floor that a motion of its skeleton stands on, as an obstacle. up: a vector; the shape's up axis."""
        from pliant.engines.simulate.contacts import ground_under

        check_motion(self, motion)
        upwards = -self.gravity(1.0) if up is None else vector(up, "up")
        return ground_under(self, motion, upwards / np.linalg.norm(upwards))

    def planted(self, motion: Motion, ground: HalfSpace) -> Motion:
        """The motion with feet that stay where they stand on a ground, and are not below it."""
        from scipy.sparse import csr_array

        from pliant.geometry.planting import CarriedPoints, planted

        check_motion(self, motion)
        known, bones = self.node_weights, self.bones
        owner = np.asarray((csr_array(self.surface.matrix) @ known.table(len(bones))).argmax(axis=1)).ravel()
        carried = CarriedPoints(self.shape.points, bones.joint[owner])
        return planted(motion, carried, ground.normal, float(ground.point @ ground.normal))

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
    far = float(np.abs(shape.points).max(initial=0.0))
    if far > FARTHEST_ORIGIN * shape.diagonal:
        found = f"the shape is {far / shape.diagonal:.1g} diagonals away from the origin"
        what = "where rounding may decide what its bones hold; move it and its motion nearer"
        warnings.warn(f"{found}, {what}", PliantWarning, stacklevel=5)
    SimulateOptions.check(nodes=nodes)
