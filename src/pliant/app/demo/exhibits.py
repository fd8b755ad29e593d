"""Blends of the demo: shapes, the way through them, and what they meet on it, beside linear blending.

Each `Exhibit` is a set of shapes and the stops on the way through them, solved in even steps that ease in and out. Some
are in contact: with an obstacle, or with themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import gallery
from pliant.app.demo.films import write_pictures
from pliant.app.demo.page import card
from pliant.app.demo.scenes import write_blend_scene
from pliant.app.report import Contact
from pliant.contact import Cylinder
from pliant.core.clips import Shapes
from pliant.core.progress import Progress
from pliant.core.topology import Floats
from pliant.engines.blend.app.report import OURS, THEIRS, Comparison, findings, write_blend_report
from pliant.engines.blend.app.result import BlendRun

Meets = Callable[[Shapes, int], Contact]
"""From the shapes and a number of frames to what they touch."""


@dataclass(frozen=True)
class Exhibit:
    """One blend of the demo."""

    name: str
    """What its files are called."""
    title: str
    text: str
    """What to look at, in a sentence."""
    shapes: Callable[[int], Shapes]
    """From a number of vertices to the shapes."""
    stops: tuple[str, ...]
    """The shapes it goes through, by name."""
    vertices: int
    view: tuple[float, float] = (30.0, 15.0)
    steps: int = 18
    """Frames from each stop to the next."""
    meets: Meets | None = None

    def smaller(self) -> Exhibit:
        """The same for a first look."""
        return replace(self, vertices=self.vertices // 4, steps=8)

    def write(self, folder: Path, show: Progress) -> str:
        """Solve it and write its files; its part of the page."""
        name, run = self.name, self.run(show)
        found = Comparison.of(run)
        pliant.write(folder / f"{name}.glb", run.clip)
        write_blend_scene(folder, name, run, self.document(), self.title)
        clips = {THEIRS: found.linear, OURS: run.clip}
        write_pictures(folder, name, clips, self.view, show, extras=run.contact.extras(run.clip), back=True)
        write_blend_report(folder / f"{name}-report.html", run, title=self.title, view=self.view)
        facts = f"{len(run.clip.shape.points):,} vertices, {run.seconds_a_frame:.2f} s a frame"
        sentences = found.touching.findings() if found.touching else []
        if not run.contact.obstacles:  # what is pushed is meant to change its lengths
            sentences = [*findings(found)[1:3], *sentences]
        return card(folder, name, self.title, self.text, facts, sentences)

    def document(self) -> dict[str, Any]:
        """The shapes as a scene names them."""
        return {"gallery": self.shapes.__name__, "names": list(self.stops), "vertices": self.vertices}

    def run(self, show: Progress | None = None) -> BlendRun:
        """Solve all frames."""
        all_shapes = self.shapes(self.vertices)
        shapes = Shapes.of([all_shapes.named(name) for name in self.stops], self.stops)
        weights = through(shapes, self.stops, steps=self.steps)
        contact = self.meets(shapes, len(weights)) if self.meets else Contact()
        begun = time.perf_counter()
        rig = pliant.Blendshapes(shapes)
        ready = time.perf_counter()
        poses: list[pliant.Pose] = []
        for pose in rig.poses(weights, **contact.options):
            poses.append(pose)
            if show is not None:
                show(len(poses), len(weights), "blending")
        seconds = ready - begun, time.perf_counter() - ready
        return BlendRun(rig, weights, poses, 24.0, *seconds, contact=contact)


def through(shapes: Shapes, names: Sequence[str], *, steps: int = 18) -> Floats:
    """Weights (frames, shapes) that lead from each named shape to the next, easing in and out."""
    t = np.linspace(0, 1, steps, endpoint=False)
    eased = t * t * (3 - 2 * t)
    rows = np.zeros(((len(names) - 1) * steps + 1, len(shapes)))
    stops = [shapes.names.index(name) for name in names]
    for k in range(len(stops) - 1):
        rows[k * steps : (k + 1) * steps, stops[k]] += 1 - eased
        rows[k * steps : (k + 1) * steps, stops[k + 1]] += eased
    rows[-1, stops[-1]] = 1
    return rows


def around_a_bar(shapes: Shapes, frames: int) -> Contact:
    """A cylinder across the palm."""
    points, d = shapes.base.points, shapes.base.diagonal
    middle = points.mean(axis=0) + np.array([0, 0.14 * np.ptp(points[:, 1]), 0.09 * d])
    half = np.array([0.3 * d, 0, 0])
    return Contact([Cylinder(middle - half, middle + half, 0.06 * d)], names=("cylinder",))


def itself(shapes: Shapes, frames: int) -> Contact:
    """No obstacle but the shape."""
    return Contact(self_contact=True)


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "bar",
        "A bar bent by 180°",
        "Look at the checks in the middle frames: linear blending shrinks them, pliant keeps their size.",
        gallery.bar,
        ("straight", "bent 180"),
        3000,
    ),
    Exhibit(
        "hand",
        "A hand closes and does not enter itself",
        "Look at the fingers halfway: linear blending shortens them; with pliant they curl at their full length, and "
        "come to rest on the palm and on each other.",
        gallery.hand,
        ("open", "fist"),
        2500,
        (20, 10),
        steps=12,
        meets=itself,
    ),
    Exhibit(
        "animal",
        "A horse gathers and stretches",
        "Look at the lower legs: with pliant they rotate about their joints instead of shrinking.",
        gallery.animal,
        ("gallop 4", "gallop 8"),
        4000,
        (70, 10),
    ),
    Exhibit(
        "grasp",
        "A hand closes around a bar",
        "Look at the fingertips: linear blending sends them through the solid cylinder; with pliant they close around "
        "it.",
        gallery.hand,
        ("open", "fist"),
        3000,
        (70, 10),
        steps=11,
        meets=around_a_bar,
    ),
)
