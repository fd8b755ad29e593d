"""Deformation transfer: pieces of sources drive gradient controls in the target's cage (Section 3 of Chen et al. 2010).

    motion = pliant.read_motion("walk.bvh")
    moved = pliant.transfer(motion, target, cage, [Control(at=120, track="LeftArm"), ...], held=[0])
    pliant.write("out.glb", moved.clip)

Each gradient control has the target G = T S B (`adapt`) of the track that it follows; position controls follow a
track's point or are fixed; lengths are constrained. The cage that meets these with the least variation of its gradients
is solved for frame by frame (`CageRig`), and the target is interpolated in it.

With ``controls="auto"``, near-rigid groups of a mesh sequence, or the bones of a motion, are matched to the target
automatically (`pliant.engines.transfer.automatic`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.signatures import takes_arguments_of
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.core.validation import check_extent
from pliant.core.values import Displayed, Value, locked, stack_frames
from pliant.engines.transfer.build import build_cage
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.controls import Weights
from pliant.engines.transfer.green import not_inside, outside_error
from pliant.engines.transfer.options import CageSolverOptions, Ends, Outside, TransferOptions
from pliant.engines.transfer.plan import Control, Follow, TransferPlan, make_plan
from pliant.engines.transfer.rig import CageRig, CageSolution
from pliant.engines.transfer.source_tracks import Groups, Sources, read_sources
from pliant.engines.transfer.sources import Track
from pliant.geometry.axes import SignedAxis, axis_name, with_up

if TYPE_CHECKING:
    from pliant.engines.transfer.judgement import Judgement
    from pliant.geometry.body_plan.retargeted import Retargeted

JACOBIAN_BATCH = 8
"""Frames whose Jacobians are computed together."""


@dataclass(frozen=True, eq=False)
class Transfer(Displayed, Value):
    """The result of a transfer."""

    clip: Animation
    solutions: tuple[CageSolution, ...]
    """For each frame: energies, and residuals of the controls."""
    cage: Animation
    rig: CageRig
    tracks: Mapping[str, Track]
    """Those that were followed, by the controls' names for them, with the clip's frames."""
    controls: tuple[Control, ...]
    follow: tuple[Follow, ...]
    gradients: Floats
    """(frames, k, 3, 3) targets of the gradient controls: G = T S B."""
    positions: Floats
    """(frames, k, 3) targets of the position controls: those that follow a track, then the fixed ones."""
    registered: Retargeted | None = None
    """How source and target stand, and which limbs follow which, where automatic controls found that."""
    source: Animation | Motion | None = None
    """What automatic controls follow."""
    times: Floats = field(default_factory=lambda: np.zeros(0))
    """(frames,) in the source's frames."""

    def __repr__(self) -> str:
        return f"Transfer({self.clip!r}, {len(self.controls)} gradient controls)"

    def __len__(self) -> int:
        return len(self.clip)

    @property
    def converged(self) -> bool:
        """Whether every frame converged."""
        return all(solution.converged for solution in self.solutions)

    @cached_property
    def judgement(self) -> Judgement:
        """What can be seen of the result, and what is wrong with it; of controls that were given, the volume alone."""
        from pliant.engines.transfer.judgement import judge

        return judge(self.clip, self.source, self.registered, self.times)

    def shape(self, frame: int) -> Shape:
        """The target in a frame; normals and splats are transformed by the Jacobian."""
        return next(self.shapes([frame]))

    def shapes(self, frames: Sequence[int] | None = None) -> Iterator[Shape]:
        """The target in several frames or in all, as in `shape`, computed in batches."""
        numbers = [range(len(self))[frame] for frame in (range(len(self)) if frames is None else frames)]
        for start in range(0, len(numbers), JACOBIAN_BATCH):
            some = numbers[start : start + JACOBIAN_BATCH]
            for frame, jacobians in zip(some, self.rig.jacobian_blocks(self.cage.points[some]), strict=True):
                yield self.rig.deformer.deformed(self.clip.points[frame], jacobians)


@dataclass(frozen=True, eq=False)
class PreparedTransfer:
    """A transfer with checked input and everything precomputed; one solve for each frame remains."""

    rig: CageRig
    plan: TransferPlan
    accuracy: float
    registered: Retargeted | None = None
    source: Animation | Motion | None = None
    """What automatic controls follow"""
    ends: Ends = TransferOptions.ends
    report: ReportFrames | None = None
    """Called with the number of frames done, and of all; first with 0 done."""

    def __len__(self) -> int:
        """Frames."""
        return len(self.plan.positions)

    def _solutions(self) -> Iterator[CageSolution]:
        plan = self.plan
        return self.rig.solutions(positions=plan.positions, gradients=plan.gradients, accuracy=self.accuracy)

    def solve(self, report: ReportFrames | None = None) -> Transfer:
        """Solve every frame; report: called instead of its own."""
        rig, plan, report = self.rig, self.plan, report or self.report
        solutions: list[CageSolution] = []
        if report is not None:
            report(0, len(self))
        for found in self._solutions():
            solutions.append(found)
            if report is not None:
                report(len(solutions), len(self))
        from pliant.engines.transfer.extremities import with_rigid_ends

        cages = np.array([found.points for found in solutions])
        clip = rig.play(cages, fps=plan.fps, name="transfer")
        if self.registered is not None and self.ends == "rigid":
            clip = with_rigid_ends(clip, self.registered, plan.times)
        lift = self._lift(clip.points)
        if lift.any():
            cages += lift
            clip = replace(clip, points=stack_frames(map(np.add, clip.points, lift)))
            solutions = [replace(found, points=locked(cage)) for found, cage in zip(solutions, cages, strict=True)]
        cages = locked(cages)
        return Transfer(
            clip,
            tuple(solutions),
            Animation(rig.cage.mesh, cages, plan.fps, "cage"),
            rig,
            MappingProxyType(plan.tracks),
            plan.controls,
            plan.follow,
            locked(plan.gradients),
            locked(plan.positions + lift),
            self.registered,
            self.source,
            plan.times,
        )

    def _lift(self, points: Floats) -> Floats:
        """(frames, 1, 3) by how much the target (frames, n, 3) is raised so that nothing of it is below the floor."""
        found = self.registered
        if found is None or not found.follower.legs:
            return np.zeros((len(points), 1, 3))
        up = found.target.frame[1]
        sunk = np.maximum(found.target.ground - (points @ up).min(axis=1), 0)
        return (sunk[:, None] * up)[:, None]


def prepare_transfer(
    sources: Sources,
    target: Shape | ArrayLike,
    cage: Mesh | Cage | Literal["auto"] | None,
    controls: Sequence[Control] | Literal["auto"],
    *,
    follow: Sequence[Follow] = (),
    lengths: ArrayLike | Sequence[Any] = (),
    held: ArrayLike | Sequence[Any] = (),
    groups: Groups = TransferOptions.groups,
    rest: Any = None,
    frames: int | ArrayLike | None = None,
    fps: float | None = TransferOptions.fps,
    weights: Weights | None = None,
    lattice: int = TransferOptions.lattice,
    faces: int = TransferOptions.faces,
    outside: Outside = TransferOptions.outside,
    target_up: SignedAxis | None = TransferOptions.target_up,
    heading: SignedAxis | None = TransferOptions.heading,
    source_up: SignedAxis | None = TransferOptions.source_up,
    source_heading: SignedAxis | None = TransferOptions.source_heading,
    map: str | None = TransferOptions.map,
    skeleton: Skeleton | None = None,
    ends: Ends = TransferOptions.ends,
    accuracy: float = CageSolverOptions.accuracy,
    report: ReportFrames | None = None,
) -> PreparedTransfer:
    """Check and precompute a transfer, with the arguments of `transfer`."""
    shape = _target(target)
    TransferOptions.check(
        target_up=target_up, heading=heading, source_up=source_up, source_heading=source_heading, map=map, ends=ends
    )
    named_sources = read_sources(sources, groups, rest)
    if not isinstance(controls, str):  # report their errors before the long computation
        make_plan(named_sources, shape, _listed(controls, Control), _listed(follow, Follow), held, frames, fps)
    elif controls != "auto":
        raise InputError(f'controls are "{controls}"; expected a list of Control, or "auto"', argument="controls")
    registered: Retargeted | None = None
    axes: Floats | None = None
    automatic = isinstance(controls, str)
    if isinstance(controls, str):
        from pliant.engines.transfer.automatic import automatic_motion, base_first, cage_axes
        from pliant.geometry.body_plan.retargeted import Hints

        hints = Hints(target_up, heading, source_up, source_heading, map or "")
        named_sources = base_first(named_sources)
        registered = automatic_motion(named_sources, shape, hints, skeleton)
        axes = cage_axes(named_sources[0].source, shape, target_up, heading)
        shape = with_up(shape, target_up if registered is None else axis_name(registered.target.frame[1]))
    around = cage
    if cage is None or (isinstance(cage, str) and cage == "auto"):
        around = build_cage(shape, faces=faces, axes=axes)
    if not isinstance(around, (Mesh, Cage)):
        raise InputError(f'cage is a {type(around).__name__}; expected a closed Mesh, or "auto" to build one')
    around = Cage.of(around)
    stray = not_inside(shape.points, around) if outside == "refuse" else ()
    if len(stray):
        raise outside_error(shape.points, np.asarray(stray), "points of the target")
    if isinstance(controls, str):
        from pliant.engines.transfer.automatic import found_controls

        found = found_controls(named_sources, shape, around, groups, registered)
        controls, follow = found.controls, tuple(follow) or (() if np.size(held) else found.follow)
    plan = make_plan(named_sources, shape, _listed(controls, Control), _listed(follow, Follow), held, frames, fps)
    rig = CageRig(
        shape,
        around,
        positions=plan.position_points,
        gradients=plan.gradient_points,
        lengths=lengths,
        lattice=lattice,
        axes=axes,
        weights=weights,
        outside=outside,
    )
    ready = PreparedTransfer(
        rig, plan, accuracy, registered, named_sources[0].source if automatic else None, ends, report
    )
    ready._solutions()  # checks what is asked for
    return ready


@takes_arguments_of(prepare_transfer)
def transfer(*arguments: Any, **options: Any) -> Transfer:
    """Transfer the motion of pieces of sources to a target in its cage.

    sources: an Animation, a Motion, tracks, or several of these by name.
    target: a mesh of any kind, a point cloud (splats too), tetrahedra, or points (n, 3).
    cage: a closed mesh around the target; "auto" or None builds one with at most `faces` triangles.
    controls: gradient controls; "auto" finds them and the tracks that they follow.
    follow: position controls that follow a source's point. held: vertices or points that are fixed.
    lengths: pairs of vertices (k, 2), or of points (k, 2, 3), whose distance is constrained.
    groups: of a mesh sequence: the number of near-rigid ones, or {name: vertices, `Sphere` or vertex group}.
    rest: the reference of an animation or motion: its own rest, a frame by number, points, or a pose.
    frames, fps: the number of frames, or times of the sources; and the frame rate. Sources of different lengths are
        resampled to one rate by `fps`, and stretched to one length by `frames`.
    target_up, heading, source_up, source_heading: of automatic controls: axes that the target, and the source at rest,
        stand and face along. map: which limbs of the target follow which of the source. All are found unless given.
    skeleton: of automatic controls: joints inside the target, whose bones are then followed, instead of those that are
        found. Where the target has a skin, `transfer_to_rig` moves it. ends: whether its feet, hands and heads are
        rigid.
    weights, lattice, outside, accuracy: as in `CageRig`.
    report: called with the number of frames done, and of all; first with 0 done, after the set-up.
    """
    return prepare_transfer(*arguments, **options).solve()


@takes_meshes("target")
def _target(target: Any) -> Shape:
    if isinstance(target, Animation):
        raise InputError("the target is an Animation; expected the shape that is to move, such as animation.shape")
    shape = target if isinstance(target, (Mesh, TetMesh, PointCloud)) else PointCloud(target)
    if not len(shape.points):
        raise InputError("the target has no points; expected a shape")
    check_extent(shape.points, "the target")
    return shape


def _listed(given: Any, kind: type) -> tuple[Any, ...]:
    items = (given,) if isinstance(given, kind) else given
    if not isinstance(items, Sequence) or not all(isinstance(item, kind) for item in items):
        raise InputError(f"expected a list of {kind.__name__}; got {given!r:.60}")
    return tuple(items)
