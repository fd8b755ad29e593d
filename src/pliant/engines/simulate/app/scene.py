"""Scenes of the engine "simulate": a shape, its bones and their motion, and what the flesh is made of.

Materials and gravity are in metres, kilograms and seconds, whatever the shape's units are: its size in metres says how
long a unit u is. In the shape's own lengths, Young's modulus is then E u, density ρ u³ and gravity g / u, and energies
times u² are joules. So a model in millimetres and the same model in metres move alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

import pliant
from pliant import gallery
from pliant.app.scene.located_toml import KeyPath, TomlText, located
from pliant.app.scene.media import chosen_frames, from_scene, part_of, read_source, read_target
from pliant.app.scene.obstacles import read_obstacles
from pliant.app.scene.posing import read_bones, read_keys
from pliant.app.scene.regions import read_region
from pliant.app.scene.schema import EngineScene, read_as
from pliant.contact.solids import HalfSpace
from pliant.core.clips import DEFAULT_FPS, Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate import BodyState, ElasticBody, ElasticPose, Material, Muscle, options as simulate_options
from pliant.engines.simulate.app.handles import read_handles
from pliant.engines.simulate.app.muscles import muscle_keys, read_muscles
from pliant.engines.simulate.app.scene_keys import MATERIAL_KEYS, SIMULATE
from pliant.engines.simulate.bracing import checked_accelerations, motion_accelerations
from pliant.engines.simulate.options import GROUND_FRICTION, SimulateOptions
from pliant.engines.simulate.reduced import ReducedBody
from pliant.engines.simulate.simulation import Pace, States, StoppedWarning
from pliant.geometry.axes import SignedAxis, Up, axis_name, up_axis, up_vector, with_up
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.joints import body_skeleton
from pliant.geometry.regions import Region
from pliant.geometry.retargeting import MappedMotion, retargeted
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.source import find

STANDARD_GRAVITY = 9.81
"""Metres per second squared."""
SolvedFrame: TypeAlias = ElasticPose | BodyState
ARGUMENT_KEYS: dict[KeyPath, KeyPath] = {(name,): (name,) for name in SIMULATE.keys}
"""Of the arguments of `ElasticBody` and its `simulate`."""


@dataclass(frozen=True, eq=False)
class Moved:
    """What came of a scene."""

    body: ElasticBody
    clip: Animation
    frames: tuple[SolvedFrame, ...]
    """What the solver knows of each frame."""
    stopped: str = ""
    """Where and why it stopped before the end; empty if it did not."""
    notes: tuple[str, ...] = ()
    """What is wrong with the motion."""


@dataclass(frozen=True, eq=False)
class ElasticScene(EngineScene):
    """A body, its bones and their motion, ready to run."""

    shape: Shape
    skeleton: Skeleton
    motion: Motion
    """Of this skeleton."""
    options: SimulateOptions = field(default_factory=SimulateOptions)
    regions: Sequence[tuple[Region, Material]] = ()
    """Parts that are made of something else."""
    rigid: Sequence[Region] = ()
    """Parts that move with their bones."""
    soft: Sequence[Region] = ()
    """Parts that are flesh, though the file binds them to one bone."""
    muscles: Sequence[Muscle] = ()
    """With tensions in pascals."""
    obstacles: Sequence[Any] = ()
    obstacle_names: tuple[str, ...] = ()
    title: str = "simulate"
    engine: Literal["simulate"] = "simulate"
    mapped: MappedMotion | None = None
    """Which joints follow which, where the motion is another skeleton's."""
    region_keys: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    """By argument of `ElasticBody` and its `simulate`, the keys of the scene that say its regions and muscles."""

    def __post_init__(self) -> None:
        if self.static and self.obstacles:
            problem = "obstacles need inertia to give way with; leave them out, or do without static"
            raise InputError(problem, argument="obstacles")
        for name in ("obstacles", "muscles"):
            if self.options.modes and getattr(self, name):
                raise InputError(f"{name} do not act on eigenmodes; leave them out, or do without modes", argument=name)

    @property
    def static(self) -> bool:
        """Whether every frame is at rest."""
        return self.options.static

    @property
    def material(self) -> Material:
        """In pascals and kilograms per cubic metre."""
        return Material(**self.options.taken_by(Material))

    @property
    def up(self) -> SignedAxis | Literal["auto"]:
        """The axis that gravity as a number pulls against."""
        return self.options.up

    @property
    def unit(self) -> float:
        """Metres that one unit of the shape is long."""
        return metres_per_unit(self.shape, self.options.size)

    def body(self, like: ElasticBody | None = None) -> ElasticBody:
        """The body, in the shape's own lengths. like: one that differs in its material at most, to be quick."""
        u = self.unit

        def here(material: Material) -> Material:
            return Material(material.young * u, material.poisson, material.density * u**3, material.sliding / u)

        layers = [(None, here(self.material)), *((region, here(made)) for region, made in self.regions)]
        made = here(self.material) if not self.regions else layers
        with located(self.text, ("shape",), ARGUMENT_KEYS | dict(self.region_keys)):
            if like is not None:
                return like.with_material(made, self.withstand)
            return ElasticBody(
                self.shape, self.skeleton, material=made, rigid=self.rigid, soft=self.soft,
                withstand=self.withstand, **self.options.taken_by(ElasticBody),
            )  # fmt: skip

    @cached_property
    def withstand(self) -> Floats:
        """(joints, 2) accelerations in the shape's lengths: as asked, or the motion's, and with a skin gravity's."""
        if self.options.brace != "auto":
            return checked_accelerations(self.options.brace / self.unit, len(self.skeleton))
        skinned = isinstance(self.shape, Mesh) and not set(self.shape.vertex_groups).isdisjoint(self.skeleton.names)
        always = STANDARD_GRAVITY / self.unit if skinned else 0.0
        moving = 0.0 if self.static else motion_accelerations(self.motion, self.shape.diagonal)
        return np.tile([always, 0.0], (len(self.skeleton), 1)) + moving

    def prepare(self) -> ElasticBody:
        """The body, with all checked that can be before frames are solved."""
        len(self)  # whether time can be cut so
        made = self.body()
        with located(self.text, ("motion",), ARGUMENT_KEYS | dict(self.region_keys)):
            made.gravity(self.pull)
            if self.static:
                made.fibres(self.pulling)
            elif self.options.modes is None:
                self.states(made)
        return made

    def run(self, report: ReportFrames | None = None, *, body: ElasticBody | None = None) -> Moved:
        """Move it."""
        made = self.prepare() if body is None else body
        return self._posed(made, report) if self.static else self._simulated(made, report)

    @property
    def pace(self) -> Pace:
        """How dynamics cut time into steps and frames."""
        return Pace.of(self.motion, **self.options.taken_by(Pace.of))

    @property
    def fps(self) -> float:
        """Of the clip."""
        return (self.options.fps or self.motion.fps) if self.static else self.pace.fps

    @property
    def frame_poses(self) -> Motion:
        """The bones at the clip's frames; while the last pose is held, at the first of those."""
        return self.motion if self.fps == self.motion.fps else self.motion.resampled(self.fps)

    def __len__(self) -> int:
        """Frames of the clip."""
        with located(self.text, ("motion",), ARGUMENT_KEYS):
            return len(self.frame_poses) if self.static else self.pace.count(self.motion)

    def states(self, body: ElasticBody, **more: Any) -> States:
        """Of dynamics, the state at every frame as soon as it is known; the last has a problem if it cannot go on.

        more: further options of `ElasticBody.states`.
        """
        return self._moving(body).states(self.driving(body), **self._arguments(body), **more)

    def driving(self, body: ElasticBody) -> Motion:
        """The motion, with its feet planted where there is a ground."""
        return body.planted(self.motion, self._ground(body)) if self.options.ground else self.motion

    def _ground(self, body: ElasticBody) -> HalfSpace:
        return body.ground(self.motion, up_vector(up_axis(self.shape, self.up)))

    def _moving(self, body: ElasticBody) -> ElasticBody | ReducedBody:
        """What is simulated."""
        return body if self.options.modes is None else body.reduced(self.options.modes)

    def _arguments(self, body: ElasticBody) -> dict[str, Any]:
        """Of `ElasticBody.simulate`, or that of a reduced body."""
        if self.options.modes is not None:
            return self.options.taken_by(ReducedBody.simulate) | {"gravity": self.pull}
        own = {"gravity": self.pull, "muscles": self.pulling}
        return self.options.taken_by(ElasticBody.simulate) | own | self.surroundings(body)

    def surroundings(self, body: ElasticBody) -> dict[str, Any]:
        """What it meets, the ground among it, and the friction there."""
        friction = self.options.friction
        if not self.options.ground:
            return {"obstacles": self.obstacles, "friction": friction or 0.0}
        ground = self._ground(body)
        return {"obstacles": (*self.obstacles, ground), "friction": GROUND_FRICTION if friction is None else friction}

    @property
    def pull(self) -> Any:
        """Gravity in the shape's own lengths, a vector; None if there is none."""
        if self.options.gravity is None:
            return None
        value = np.asarray(self.options.gravity, dtype=np.float64) / self.unit
        return value if value.ndim else -value * up_vector(up_axis(self.shape, self.up))

    @cached_property
    def pulling(self) -> tuple[Muscle, ...]:
        """The muscles with tensions in the shape's own lengths."""
        tensions = [muscle.tension and muscle.tension * self.unit for muscle in self.muscles]
        return tuple(replace(muscle, tension=T) for muscle, T in zip(self.muscles, tensions, strict=True))

    def posed(self, body: ElasticBody, pose: SkeletonPose, frame: int, **more: Any) -> ElasticPose:
        """The body at rest in a pose of its bones, that of a frame. more: further options of `ElasticBody.pose`."""
        own = {"gravity": self.pull, "muscles": self.pulling, "stretch_limit": self.options.stretch_limit}
        return body.pose(pose, time=frame / self.fps, **own, **more)

    def _posed(self, body: ElasticBody, report: ReportFrames | None) -> Moved:
        """Every frame at rest."""
        motion, poses = self.frame_poses, list[ElasticPose]()
        for pose in motion:
            poses.append(self.posed(body, pose, len(poses)))
            if report is not None:
                report(len(poses), len(motion))
        return self.at_rest(body, poses)

    def _simulated(self, body: ElasticBody, report: ReportFrames | None) -> Moved:
        return self.moved(body, self.states(body, report=report))

    def at_rest(self, body: ElasticBody, poses: Sequence[ElasticPose]) -> Moved:
        """Poses as the frames of a clip."""
        points = locked(np.stack([pose.points for pose in poses]))
        motion = self.frame_poses
        notes = body.binding.scale_notes(motion)
        clip = self._upright(Animation(self.shape, points, motion.fps, motion.name))
        return Moved(body, clip, tuple(poses), notes=notes)

    def moved(self, body: ElasticBody, states: Iterable[BodyState]) -> Moved:
        """States as the frames of a clip, which ends before one that has a problem."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedWarning)  # the result says so
            if not isinstance(states, States):
                states = States(self._moving(body), self.driving(body), self.pace, iter(states))
            found = states.clip()
        return Moved(body, self._upright(found), found.states, found.stopped, found.notes)

    def _upright(self, clip: Animation) -> Animation:
        """A clip that says which axis is up, as the options do; the scene's shape stays as it was read."""
        return replace(clip, shape=with_up(clip.shape, self.up))


def metres_per_unit(shape: Shape, size: float | Literal["file"]) -> float:
    """Metres that one unit of a shape is long. size: metres of the longest side of its box, or as its file says."""
    if size == "file":
        return (shape.world.metres if shape.world is not None else None) or 1.0
    longest = float(np.ptp(shape.points, axis=0).max(initial=0.0))
    return float(size) / longest if longest > 0 else 1.0


# What files have


def own_kinds(file: str) -> tuple[str, ...]:
    """What a shape's file holds besides the shape."""
    sources = find(file, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
    return tuple(kinds_in(sources[0])) if len(sources) == 1 else ()


def skeleton_of(
    shape: Shape,
    file: str | None,
    joints: int | None = None,
    up: SignedAxis | None = None,
    known: Skeleton | None = None,
) -> tuple[Skeleton, OrientedBody | None]:
    """The skeleton in a shape's own file, or else the one that is found in the shape, with the body that it is of.

    known: the skeleton, if it was found before.
    """
    if file is not None and joints is None and "skeleton" in own_kinds(file):
        return known or pliant.read_skeleton(file), None
    if not isinstance(shape, (Mesh, TetMesh)):
        raise InputError("points without faces do not show their bones; expected a skeleton's file")
    planned = None if joints is not None else body_skeleton(shape, up)
    if planned is not None and (known is None or known.names == planned[0].names):
        return planned
    return known or extract_skeleton(shape, joints=joints), None


def known_up(shape: Shape, up: Up) -> SignedAxis | None:
    """The axis that points up, if it is given or the shape's file says it."""
    return up_axis(shape, up) if up != "auto" or shape.world is not None else None


def motion_of(file: str | None, clip: str | int | None) -> Motion | None:
    """The motion in a shape's own file; None if there is none."""
    return pliant.read_motion(file, clip=clip) if file is not None and "motion" in own_kinds(file) else None


def static_motion(skeleton: Skeleton) -> Motion:
    """One frame: the rest pose."""
    rest = skeleton.rest_pose()
    return Motion(skeleton, rest.rotations[None], rest.translations[None], DEFAULT_FPS, name="rest")


def motion_on(
    motion: Motion,
    skeleton: Skeleton,
    names: Mapping[str, str] | None,
    *,
    shape: Shape,
    up: SignedAxis | None,
    body: OrientedBody | None = None,
    first: int = 0,
    last: int | None = None,
) -> MappedMotion:
    """Frames of a motion on a skeleton. All of it is retargeted first: frames are the same, whichever are taken.

    shape: what the skeleton moves. body: that of a skeleton which was found in the shape.
    """
    whole = retargeted(motion, skeleton, names, up=up, mesh=shape, body=body)
    stop = len(whole.motion) - 1 if last is None else last
    return replace(whole, motion=part_of(whole.motion, first, stop))  # type: ignore[arg-type]


# Scene files


def read_elastic(
    text: TomlText, *, shape: Shape | None = None, skeleton: Skeleton | None = None, **changes: Any
) -> ElasticScene:
    """The scene in a document; options that are given here count instead of what the document says.

    shape, skeleton: those that it names, if they have been read before.
    """
    table = read_as(SIMULATE, text, text.content, ())
    check_elastic_effects(text)
    shape = shape or read_target(text, table["shape"], ("shape",))
    if isinstance(shape, PointCloud) and not table["skeleton"]:
        raise text.error("points without faces do not show their bones; expected a skeleton", ("skeleton",))
    file = from_scene(text, table["shape"]["file"]) if table["shape"]["file"] else None
    obstacles = read_obstacles(text, table["obstacles"])
    with text.about(("engine",), ARGUMENT_KEYS):
        options = SimulateOptions.read(table, **changes)
    found, body = _skeleton(text, table["skeleton"] or {}, shape, file, options.up, skeleton)
    acting = "gravity pulls it" if options.gravity is not None else "the ground lies" if options.ground else ""
    if acting and body is not None and body.frame[1] @ up_vector(up_axis(shape, options.up)) < 0.5:
        what = f"the body stands along {axis_name(body.frame[1])}, and {acting} along another axis; set up"
        warnings.warn(what, PliantWarning, stacklevel=2)
    material = Material(**options.taken_by(Material))
    mapped = _motion(text, table["motion"] or {}, options, found, body, file, shape)
    regions = [_region(text, entry, ("regions", k), material) for k, entry in enumerate(table["regions"])]
    rigid, soft = ([k for k, region in enumerate(regions) if region[2] is how] for how in (True, False))
    layers = [k for k in range(len(regions)) if k not in rigid]
    muscles = read_muscles(text, table["muscles"], mapped.motion)
    with text.about(("shape",), ARGUMENT_KEYS):
        return ElasticScene(
            shape,
            found,
            mapped.motion,
            options,
            mapped=mapped,
            regions=[regions[k][:2] for k in layers],
            rigid=[regions[k][0] for k in rigid],
            soft=[regions[k][0] for k in soft],
            muscles=muscles,
            region_keys=_region_keys({"material": [0, *layers], "rigid": rigid, "soft": soft}) | muscle_keys(muscles),
            obstacles=obstacles,
            obstacle_names=tuple(Path(entry["what"]).name for entry in table["obstacles"]),
            title=table["title"] or text.source.stem,
            text=text,
        )


def _skeleton(
    text: TomlText, table: dict[str, Any], shape: Shape, file: str | None, up: Up, known: Skeleton | None
) -> tuple[Skeleton, OrientedBody | None]:
    """The skeleton that a document says or that is known, and the body where it is one that is found in the shape."""
    if table.get("bones"):
        return known or read_bones(text, table["bones"]), None
    if table.get("file"):
        with text.about(("skeleton", "file")):
            return known or pliant.read_skeleton(from_scene(text, table["file"])), None
    if table.get("gallery"):
        made: Skeleton = getattr(gallery, f"{table['gallery']}_skeleton")()
        return known or made, None
    with text.about(("skeleton",), {("joints",): ("skeleton", "joints")}):
        return skeleton_of(shape, file, table.get("joints"), known_up(shape, up), known)


def _motion(
    text: TomlText,
    table: dict[str, Any],
    scene: SimulateOptions,
    skeleton: Skeleton,
    body: OrientedBody | None,
    file: str | None,
    shape: Shape,
) -> MappedMotion:
    names = table.get("map")
    if table.get("handles"):
        unit = metres_per_unit(shape, scene.size)
        return MappedMotion(read_handles(text, table, skeleton, unit=unit, one_frame=scene.static))
    if table.get("keys"):
        return MappedMotion(read_keys(text, table["keys"], skeleton, fps=table["fps"], one_frame=scene.static))
    if not table.get("file") and not table.get("gallery"):
        if file is None or "motion" not in own_kinds(file):
            if scene.hold:
                return MappedMotion(static_motion(skeleton))
            expected = f"expected a motion, or {text.name(('hold',))} to hold the rest pose for some seconds"
            raise text.error(f"nothing moves the bones; {expected}", ("motion",))
        table = dict.fromkeys(("clip", "fps", "gallery", "rest", "last")) | {"first": 0} | table | {"file": file}
    every = {"vertices": None, "as": "motion", "without": []} | table | {"first": 0, "last": None}
    found = read_source(text, every, ("motion",))
    if not isinstance(found, Motion):
        raise text.error("holds points that move, not joints", ("motion",))
    first, last = chosen_frames(text, table, len(found), ("motion",))
    up = known_up(shape, scene.up)
    with text.about(("motion", "map"), {("names",): ("motion", "map")}):
        return motion_on(found, skeleton, names, shape=shape, up=up, body=body, first=first, last=last)


def _region(
    text: TomlText, table: dict[str, Any], path: KeyPath, body: Material
) -> tuple[Region, Material, bool | None]:
    """Where it is, what it is made of, and whether it is rigid (True), flesh (False) or as the file binds it."""
    where = read_region(text, table, path)
    given = {key: table[key] for key in MATERIAL_KEYS if table[key] is not None}
    if table["rigid"] and given:
        raise text.error("has no effect: the region is rigid", (*path, next(iter(given))))
    return where, replace(body, **given), table["rigid"]


def _region_keys(chosen: Mapping[str, Sequence[int]]) -> dict[KeyPath, KeyPath]:
    """By argument, which of the regions it has; the first layer of the material is that of the body."""
    skipped = {"material": 1}
    return {
        (name, k): ("regions", region, "name")
        for name, regions in chosen.items()
        for k, region in enumerate(regions)
        if k >= skipped.get(name, 0)
    }


OF_MOTIONS = ("clip", "rest", "first", "last", "map")
"""Keys of the table [motion] that are for motions which are not written into the scene."""


def check_elastic_effects(text: TomlText) -> None:
    """Refuse the first key of an elastic scene that nothing comes of."""
    for key, why in simulate_options.idle(text.content):
        raise text.error(f"has no effect: {why}", (key,))
    skeleton, motion = (text.content.get(table, {}) for table in ("skeleton", "motion"))
    given = [key for key in ("file", "gallery", "bones") if key in skeleton]
    if "joints" in skeleton and given:
        raise text.error(f'has no effect: "{given[0]}" says which bones there are', ("skeleton", "joints"))
    for poses in ("keys", "handles"):
        for key in OF_MOTIONS:
            if key in motion and poses in motion:
                reason = f"it is for motions of files, and {text.name(('motion', poses))} gives the poses"
                raise text.error(f"has no effect: {reason}", ("motion", key))
