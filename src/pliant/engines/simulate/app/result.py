"""What came of a simulation or of static poses: the clip, what the solver knows of each frame, as text and numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from pliant.app.report.contact import Contact
from pliant.app.report.outcome import EngineRun, known, percent
from pliant.app.scene.obstacles import obstacle_summary
from pliant.core.clips import Animation
from pliant.core.frame_ranges import step_of
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.registry import Division
from pliant.engines.simulate import BodyState, ElasticBody, ElasticPose
from pliant.engines.simulate.app.scene import ElasticScene, Moved
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.simulate.simulation import shots_of
from pliant.engines.simulate.statics import VOLUME_LIMITS
from pliant.geometry.retargeting import MappedMotion


@dataclass(frozen=True, eq=False)
class SimulateRun(EngineRun):
    """Frames of a body, what moved it, and how long they took."""

    body: ElasticBody
    clip: Animation
    frames: Sequence[ElasticPose | BodyState]
    """What the solver knows of each frame: poses at rest, or states of a body that moves."""
    motion: Motion | None = None
    """Of the skeleton, to be shown beside the body."""
    stopped: str = ""
    """Where and why it stopped before the end."""
    title: str = "simulate"
    setup_seconds: float = math.nan
    solve_seconds: float = math.nan
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was asked for, as text."""
    contact: Contact = field(default_factory=Contact)
    unit: float = 1.0
    """Metres that a unit of the shape is long; energies are told in joules."""
    notes: tuple[str, ...] = ()
    """What is wrong with the motion."""
    mapped: MappedMotion | None = None
    """Which joints follow which, where the motion is another skeleton's."""
    muscles: tuple[str, ...] = ()
    """The names of muscles."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", tuple(self.frames))
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    def __repr__(self) -> str:
        return f"SimulateRun({len(self.frames)} frames of {self.body!r}, {len(self.failed)} not converged)"

    @property
    def dynamic(self) -> bool:
        """Whether it moves by inertia, and is not at rest in every frame."""
        return not any(isinstance(frame, ElasticPose) for frame in self.frames)

    def measured(self, name: str) -> Floats:
        """(frames,) volume, energy, kinetic, inverted, overstrained, iterations, penetration or contacts."""
        values = np.array([getattr(frame, name, 0.0) for frame in self.frames], dtype=np.float64)
        return values * self.unit**2 if name in ("energy", "kinetic") else values

    def of_muscle(self, name: str) -> tuple[Floats, Floats]:
        """(frames,) its activation, and the share by which its fibres are shorter than at rest in the mean."""
        k = self.muscles.index(name)
        values = np.array([(frame.activation[k], frame.shortening[k]) for frame in self.frames])
        return values[:, 0], values[:, 1]

    @property
    def solved(self) -> Sequence[Any]:
        """See `EngineRun`."""
        return self.frames

    @property
    def failure(self) -> str:
        """Where it stopped, or which frames did not converge, in one line; empty if all went well."""
        if self.stopped:
            return self.stopped
        if not self.failed:
            return ""
        shown = ", ".join(map(str, self.failed[:8])) + (", ..." if len(self.failed) > 8 else "")
        first = self.frames[self.failed[0]]
        why = getattr(first, "message", "") or f"not there after {first.iterations} iterations"
        if first.penetration > 0:
            why = f"{percent(first.penetration)} of the diagonal inside an obstacle"
        return f"{len(self.failed)} of {len(self.frames)} frames did not converge (frame {shown}: {why})"

    @cached_property
    def lag(self) -> Floats:
        """(frames,) how far flesh is from where its bones alone would carry it, over the diagonal: the farthest."""
        return np.array(
            [
                np.linalg.norm(frame.nodes - frame.carried, axis=1).max() / self.body.diagonal
                if isinstance(frame, BodyState)
                else np.nan
                for frame in self.frames
            ]
        )

    def facts(self) -> dict[str, str]:
        """The set-up, as text."""
        body = self.body
        bones = len(body.bones) - body.bones.carriers
        samples = len(body.discretisation.nodes) - body.nodes.free
        rows = {
            "shape": repr(body.shape),
            "skeleton": f"{len(body.skeleton)} joints, {bones} bones, {samples} samples",
            "motion": "" if self.motion is None else f"{self.motion.name} {self.motion!r}".lstrip(),
            **self._mapping,
            "parts": body.binding.summary(),
            "muscles": "; ".join(map(self._muscle_summary, self.muscles)),
            "nodes": f"{body.nodes.free:,}, {len(body.quadrature.points):,} quadrature points",
        }
        return self.with_times(rows)

    def _muscle_summary(self, name: str) -> str:
        activation, shortening = self.of_muscle(name)
        spans = (f"{percent(values.min())} to {percent(values.max())}" for values in (activation, shortening))
        return "{}: activation {}, fibres shorter by {}".format(name, *spans)

    @property
    def _mapping(self) -> dict[str, str]:
        """How the motion's skeleton was mapped to the body's, as text; empty if the two are one."""
        if self.mapped is None or not self.mapped.names:
            return {}
        limbs = {} if self.mapped.limbs is None else self.mapped.limbs.facts()
        return limbs | {"map": ", ".join(f"{joint}={other}" for joint, other in self.mapped.names.items())}

    @property
    def warnings(self) -> list[str]:
        """What is wrong with motion and flesh, in sentences that begin with a name: jump, scale, volume, ..."""
        volume, inverted, overstrained = map(self.measured, ("volume", "inverted", "overstrained"))
        sentences, points = [f"{n}." for n in self.notes], f"{len(self.body.quadrature.points):,} quadrature points"
        if volume.min() < VOLUME_LIMITS[0] or volume.max() > VOLUME_LIMITS[1]:
            frame = int(np.argmax(np.abs(volume - 1)))
            sentences.append(f"volume: in the worst frame, {frame}, it is {percent(volume[frame])} of that at rest.")
        if inverted.any():
            frame = int(np.argmax(inverted))
            share = f"{int(inverted[frame])} of {points} are turned inside out"
            sentences.append(f"inversion: in the worst frame, {frame}, {share}.")
        if overstrained.any():
            frame = int(np.argmax(overstrained))
            share = f"{int(overstrained[frame])} of {points} are far beyond their limits"
            sentences.append(f"stretch: in the worst frame, {frame}, {share}.")
        return sentences

    def findings(self) -> list[str]:
        """How the flesh fared over all frames, in sentences."""
        volume = self.measured("volume")
        sentences = [f"Volume stays between {percent(volume.min())} and {percent(volume.max())} of that at rest."]
        sentences += self.warnings
        sentences += [] if self.measured("inverted").any() else ["Nothing is turned inside out."]
        if self.dynamic and np.isfinite(self.lag).all():
            sentences.append(
                f"Flesh is up to {percent(self.lag.max())} of the diagonal from where bones would carry it."
            )
        if self.contact.obstacles:
            deepest, most = self.measured("penetration").max(), int(self.measured("contacts").max())
            sentences.append(
                f"Up to {most} vertices are pushed, and none is deeper than {percent(deepest)} in an obstacle."
            )
        return sentences

    def lines(self) -> list[str]:
        """A summary for a terminal."""
        iterations = self.measured("iterations")
        went = self.failure or ("every step converged" if self.dynamic else "every pose converged")
        return [
            *(f"{name:>9}: {value}" for name, value in self.facts().items()),
            f"   frames: {len(self.frames)}; {went}",
            f"    steps: {np.median(iterations):.0f} iterations in the median, {iterations.max():.0f} at most",
            *(f"    flesh: {sentence}" for sentence in self.findings()),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts, lists and None, ready for JSON."""
        body = self.body
        names = ["volume", "energy", "inverted", "overstrained", "iterations"]
        names += ["kinetic"] if self.dynamic else []
        names += ["penetration", "contacts"] if self.contact.obstacles else []
        columns = {name: self.measured(name) for name in names}
        whole = ("inverted", "overstrained", "iterations", "contacts")
        return {
            "title": self.title,
            "vertices": len(body.shape.points),
            "joints": list(body.skeleton.names),
            "motion": None if self.motion is None else self.motion.name,
            "map": {} if self.mapped is None else dict(self.mapped.names),
            "limbs": None if self.mapped is None or self.mapped.limbs is None else self.mapped.limbs.to_dict(),
            "bones": list(body.bones.names),
            "samples": len(body.samples),
            "nodes": body.nodes.free,
            "quadrature_points": len(body.quadrature.points),
            "static": not self.dynamic,
            "metres_per_unit": self.unit,
            **self.figures(self.clip.fps),
            "stopped": self.stopped,
            "warnings": self.warnings,
            "frames": [
                {name: int(column[k]) if name in whole else known(column[k]) for name, column in columns.items()}
                | {"converged": frame.converged}
                | ({"muscles": self._muscles_in(frame)} if self.muscles else {})
                for k, frame in enumerate(self.frames)
            ],
        }

    def _muscles_in(self, frame: ElasticPose | BodyState) -> dict[str, dict[str, float]]:
        """Activation and shortening by muscle."""
        rows = zip(self.muscles, frame.activation, frame.shortening, strict=True)
        return {name: {"activation": float(a), "shortening": float(s)} for name, a, s in rows}


def solve(scene: ElasticScene, body: Any, show: Any, seconds: float) -> SimulateRun:
    """Move the body; seconds: what it took to set up."""
    ready = time.perf_counter()
    moved = scene.run(show, body=body)
    return _run_of(scene, moved, seconds, time.perf_counter() - ready)


def prepare_frames(scene: ElasticScene, body: ElasticBody, frames: Sequence[int]) -> None:
    """Poses at rest share nothing but the body."""


def division(scene: ElasticScene) -> Division:
    """Poses at rest are each for itself; states go on from the one before, but those of eigenmodes are not kept."""
    if scene.static:
        return "any"
    return "order" if scene.options.modes is None else "whole"


def shots(scene: ElasticScene, body: ElasticBody) -> list[int]:
    """The frames of dynamics behind a cut of the motion, where flesh starts anew, and the first."""
    return shots_of(body, scene.driving(body), scene.pace)


def solve_frames(
    scene: ElasticScene, body: ElasticBody, frames: Sequence[int], before: BodyState | None
) -> tuple[list[ElasticPose | BodyState], bool]:
    """Poses at rest, or the states of frames that follow each other; the clip ends at one that has a problem."""
    if scene.static:
        motion = scene.frame_poses
        return [scene.posed(body, motion[k], k) for k in frames], False
    resume = frames[0] or None if before is None else before
    states = scene.states(body) if resume is None else scene.states(body, resume=resume)
    found: list[ElasticPose | BodyState] = list(islice(states, len(frames) + (before is not None)))
    found = found[before is not None :]
    return found, bool(found and getattr(found[-1], "problem", ""))


def gathered(
    scene: ElasticScene,
    body: ElasticBody,
    frames: Sequence[int],
    results: Sequence[Any],
    seconds: float,
    solved: float,
) -> SimulateRun:
    """The run of some frames; those that leave others out are played as slowly. See `Engine.frames`."""
    moved = scene.at_rest(body, results) if scene.static else scene.moved(body, results)
    clip = moved.clip
    slower = Animation(clip.shape, clip.points, clip.fps / step_of(frames), clip.name)
    return _run_of(scene, replace(moved, clip=slower), seconds, solved)


def _run_of(scene: ElasticScene, moved: Moved, seconds: float, solved: float) -> SimulateRun:
    """seconds, solved: of the set-up and of all frames."""
    return SimulateRun(
        moved.body,
        moved.clip,
        moved.frames,
        scene.motion,
        moved.stopped,
        scene.title,
        seconds,
        solved,
        _settings(scene),
        Contact(scene.obstacles, names=scene.obstacle_names, **scene.options.taken_by(Contact)),
        scene.unit,
        moved.notes,
        scene.mapped,
        tuple(muscle.name for muscle in scene.muscles),
    )


def _settings(scene: ElasticScene) -> dict[str, str]:
    """What was asked for, as text."""
    made = scene.material
    settings = {"scene": scene.file} if scene.file else {}
    settings["material"] = f"E {made.young:g} Pa, ν {made.poisson:g}, {made.density:g} kg/m³"
    settings |= {"regions": str(len(scene.regions))} if scene.regions else {}
    settings["size"] = f"1 unit is {scene.unit:.4g} m"
    settings |= obstacle_summary(scene)
    listed = ("size", *SimulateOptions.names(table="material"))
    return settings | {name: str(value) for name, value in scene.options.changed().items() if name not in listed}
