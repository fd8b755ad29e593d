"""Running a blend's scene, and its result: the clip, and what the solver found in each frame, as text and numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from pliant.app.report.contact import Contact, crossings
from pliant.app.report.outcome import EngineRun, known
from pliant.app.scene.obstacles import obstacle_summary
from pliant.core.clips import DEFAULT_FPS, Animation, Pose
from pliant.core.errors import InputError
from pliant.core.frame_ranges import step_of
from pliant.core.shapes import Weld
from pliant.core.topology import Floats
from pliant.engines.blend import Blendshapes
from pliant.engines.blend.anchor import CORNERS
from pliant.engines.blend.app.scene import BlendScene
from pliant.engines.blend.contacts import inversion
from pliant.engines.blend.springs import SPRING_KINDS
from pliant.engines.registry import Division


@dataclass(frozen=True, eq=False)
class BlendRun(EngineRun):
    """The frames that a rig gave for a table of weights."""

    rig: Blendshapes
    weights: Floats
    """(frames, shapes) given as sliders; of all shapes, as they were blended."""
    poses: Sequence[Pose]
    """(frames,)"""
    fps: float = DEFAULT_FPS
    setup_seconds: float = math.nan
    """Time to build the rig; NaN if unknown."""
    solve_seconds: float = math.nan
    """Time of all frames."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The solver's settings as text."""
    contact: Contact = field(default_factory=Contact)
    """Obstacles and contact options."""
    frames: Sequence[int] | None = None
    """Which rows of the weights the poses are at; None: all."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "poses", tuple(self.poses))
        table = self.rig.weight_table(self.weights)
        put(self, "weights", table if self.frames is None else table[list(self.frames)])
        put(self, "settings", MappingProxyType(dict(self.settings)))
        if len(self.weights) != len(self.poses) or not self.poses:
            raise InputError(f"got {len(self.poses)} poses for {len(self.weights)} rows of weights; expected one each")

    def __repr__(self) -> str:
        return f"BlendRun({len(self.poses)} frames of {self.rig!r}, {len(self.failed)} not converged)"

    @cached_property
    def clip(self) -> Animation:
        """The frames in a row."""
        points = np.stack([pose.points for pose in self.poses])
        return Animation(self.rig.shapes.base, points, self.fps, "blend")

    @property
    def title(self) -> str:
        """What is blended: from which shape to which, or which sliders move."""
        names = self.rig.shapes.names
        first, last = (int(np.argmax(row)) for row in self.weights[[0, -1]])
        if self.weights[0, first] == self.weights[-1, last] == 1 and first != last:
            return f"{names[first]} to {names[last]}"
        used = [name for name, column in zip(names[1:], self.weights.T[1:], strict=True) if column.any()]
        return f"{names[0]} with {', '.join(used[:4])}{', ...' if len(used) > 4 else ''}" if used else names[0]

    @property
    def solved(self) -> Sequence[Pose]:
        """See `EngineRun`."""
        return self.poses

    @cached_property
    def weld(self) -> Weld:
        """The base with its split vertices welded, as it is solved."""
        shapes = self.rig.shapes
        return shapes.base.welded(poses=list(shapes.points[1:]))

    @property
    def has_inside(self) -> bool:
        """Whether there are tetrahedra inside."""
        return len(self.rig.body.tets) > 0

    @property
    def inverted(self) -> int:
        """Largest number of inverted tetrahedra in a frame."""
        return max(pose.inverted for pose in self.poses)

    @cached_property
    def inverted_in_shapes(self) -> int:
        """Largest number of inverted tetrahedra in one of the shapes."""
        return max(self.rig.body.inverted(points) for points in self.rig.body.points)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the shapes, in sentences that begin with a name."""
        return [f"inversion: {w}." for w in inversion([p.crushed for p in self.poses], len(self.rig.body.tets))]

    @property
    def failure(self) -> str:
        """See `EngineRun`."""
        return "; ".join(filter(None, (self.unconverged, *(sentence.rstrip(".") for sentence in self.warnings))))

    @cached_property
    def forces(self) -> Floats:
        """(frames, obstacles) strength of the force on each obstacle."""
        count = len(self.contact.obstacles)
        rows = [np.zeros((count, 3)) if pose.reactions is None else pose.reactions for pose in self.poses]
        return np.linalg.norm(np.reshape(rows, (len(rows), count, 3)), axis=2)

    @cached_property
    def crossings(self) -> Floats:
        """(frames,) pairs of the shape's own triangles that cross, counted apart from the solver."""
        return crossings(self.clip)

    @property
    def touching(self) -> str:
        """Summary of the contacts, in one line."""
        parts = [f"{max(pose.contacts for pose in self.poses)} contacts at most"]
        if self.contact.obstacles:
            deepest = max(pose.penetration for pose in self.poses)
            parts.append(f"{deepest:.1e} of the diagonal inside an obstacle at most" if deepest else "nothing inside")
        if self.contact.self_contact:
            parts.append(f"{max(pose.crossings for pose in self.poses)} new pairs of faces that cross at most")
        return ", ".join(parts)

    def facts(self) -> dict[str, str]:
        """The set-up as text."""
        rig, base = self.rig, self.rig.shapes.base
        names = ", ".join(rig.shapes.names[:12]) + (", ..." if len(rig.shapes) > 12 else "")
        kinds = ((kind, int(rig.springs.of_kind(kind).sum())) for kind in SPRING_KINDS)
        rows = {
            "shapes": f"{len(rig.shapes)}: {names}",
            "vertices": f"{len(base.points):,} in {len(base.polygons):,} faces",
            **({"coarse body": f"{len(rig.detail.vertices):,} vertices carry the others"} if rig.detail else {}),
            "interior": f"{rig.interior}, {self._added:,} vertices added",
            "springs": f"{len(rig.springs):,}: " + ", ".join(f"{count:,} {kind}" for kind, count in kinds if count),
        }
        rows |= self.rig.sliders.facts
        points = ["(" + ", ".join(f"{x:.4g}" for x in point) + ")" for point in rig.anchors[:4]]
        rows["anchors"] = " ".join([*points, "..." if len(rig.anchors) > 4 else ""]).strip() or "none"
        return self.with_times(rows)

    @property
    def _added(self) -> int:
        """Vertices inside, without those of the anchors."""
        return self.rig.body.network.count - self.rig.body.surface - CORNERS * len(self.rig.anchors)

    def lines(self) -> list[str]:
        """A summary for a terminal."""
        iterations = [pose.iterations for pose in self.poses]
        facts = self.facts()
        converged = self.unconverged or "all frames converged"
        inverted = f"{self.inverted} tetrahedra in the worst frame; {self.inverted_in_shapes} in the worst shape"
        touching = [f"  contact: {self.touching}"] if self.contact else []
        return [
            *(f"{name:>9}: {value}" for name, value in facts.items()),
            f"   frames: {len(self.poses)}; {converged}",
            f"    steps: {np.median(iterations):.0f} a frame in the median, {max(iterations)} at most",
            *touching,
            f" inverted: {inverted if self.has_inside else 'no inside, so no tetrahedra'}",
            *(f"  warning: {sentence}" for sentence in self.warnings),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts, lists and None, ready for JSON."""
        rig = self.rig
        return {
            "shapes": list(rig.shapes.names),
            "inbetweens": {name: {"slider": at[0], "value": at[1]} for name, at in rig.sliders.inbetweens.items()},
            "combinations": dict(rig.sliders.combinations),
            "vertices": len(rig.shapes.base.points),
            "added_vertices": self._added,
            "interior": rig.interior,
            "springs": {kind: int(rig.springs.of_kind(kind).sum()) for kind in SPRING_KINDS},
            "anchors": rig.anchors.tolist(),
            **self.figures(self.fps),
            "inverted": self.inverted if self.has_inside else None,
            "inverted_in_shapes": self.inverted_in_shapes if self.has_inside else None,
            "warnings": self.warnings,
            "frames": [
                {
                    "weights": row.tolist(),
                    "iterations": pose.iterations,
                    "residual": known(pose.residual),
                    "converged": pose.converged,
                    "inverted": pose.inverted if self.has_inside else None,
                    "crushed": pose.crushed if self.has_inside and self.contact else None,
                    "message": pose.message,
                    **self._contact_values(frame),
                }
                for frame, (row, pose) in enumerate(zip(self.weights, self.poses, strict=True))
            ],
        }

    def _contact_values(self, frame: int) -> dict[str, Any]:
        """Contact in one frame; None for what was not enabled."""
        pose = self.poses[frame]
        reactions = pose.reactions if self.contact.obstacles else None
        return {
            "penetration": pose.penetration if self.contact.obstacles else None,
            "contacts": pose.contacts if self.contact else None,
            "crossings": int(self.crossings[frame]) if self.contact.self_contact else None,
            "new_crossings": pose.crossings if self.contact.self_contact else None,
            "reactions": None if reactions is None else reactions.tolist(),
        }


def solve(scene: BlendScene, rig: Any, show: Any, seconds: float) -> BlendRun:
    """Solve all frames; seconds: time of the set-up."""
    ready = time.perf_counter()
    poses: list[Pose] = []
    for pose in scene.poses(rig):
        poses.append(pose)
        steps = f"{pose.iterations} iteration{'s' if pose.iterations != 1 else ''}"
        contacts = f", {pose.contacts} contacts" if scene.obstacles or scene.options.self_contact else ""
        show(len(poses), len(scene), f"{steps}, residual {pose.residual:.0e}{contacts}")
    return gathered(scene, rig, range(len(poses)), poses, seconds, time.perf_counter() - ready)


def gathered(
    scene: BlendScene, rig: Blendshapes, frames: Sequence[int], poses: Sequence[Pose], seconds: float, solved: float
) -> BlendRun:
    """The run of some frames; those that leave others out are played as slowly. See `Engine.frames`."""
    contact = Contact(scene.obstacles, names=scene.obstacle_names, **scene.options.taken_by(Contact))
    fps = scene.fps / step_of(frames)
    return BlendRun(rig, scene.table(rig), poses, fps, seconds, solved, _settings(scene), contact, frames)


def division(scene: BlendScene) -> Division:
    """Frames in contact depend on those before, and on what the contact solver has seen there."""
    return "whole" if scene.obstacles or scene.options.self_contact else "any"


def prepare_frames(scene: BlendScene, rig: Blendshapes, frames: Sequence[int]) -> None:
    """Solve for what many of these frames start from."""
    rig.statics.prepare(rig.weight_table(scene.table(rig)[list(frames)]), scene.options.accuracy)


def solve_frames(scene: BlendScene, rig: Blendshapes, frames: Sequence[int], before: None) -> tuple[list[Pose], bool]:
    """The poses of some frames; none of them ends the clip."""
    return list(scene.poses(rig, frames=frames)), False


def _settings(scene: BlendScene) -> dict[str, str]:
    """The scene's settings as text."""
    how = scene.options
    settings = {"scene": scene.file} if scene.file else {}
    settings |= {"weights": scene.weights_from} if scene.weights_from else {}
    settings["model"] = how.model
    settings["method"] = f"{how.method}, to an accuracy of {how.accuracy:g}"
    if scene.pins is not None:
        lines = "on straight lines" if scene.pins.path is None else "on given paths"
        settings["pins"] = f"{len(scene.pins.vertices)}, {lines}"
    for name, key in (("pulls", "to"), ("forces", "force")):
        pulled = [f"{pull.vertex} {getattr(pull, key)}" for pull in scene.pulls if getattr(pull, key) is not None]
        settings |= {name: "; ".join(pulled)} if pulled else {}
    parts = [f"{region if isinstance(region, str) else repr(region)} × {factor:g}" for region, factor in scene.regions]
    settings |= {"stiffness": ", ".join(parts)} if parts else {}
    settings |= obstacle_summary(scene)
    settings |= {"itself": "does not pass through itself"} if how.self_contact else {}
    listed = ("model", "method", "accuracy", "self_contact", "frames", "fps")
    return settings | {name: str(value) for name, value in how.changed().items() if name not in listed}
