"""Transfers of the demo: motions of the gallery on other shapes of it, in cages that are built on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

import pliant
from pliant import gallery, render
from pliant.app.demo.films import as_large, beside
from pliant.app.demo.page import card
from pliant.app.scene.media import without_joints
from pliant.core.clips import Animation
from pliant.core.progress import Progress
from pliant.core.shapes import Shape
from pliant.core.skeleton import Motion
from pliant.engines.transfer.app.report import findings, write_transfer_report
from pliant.engines.transfer.app.result import TransferRun
from pliant.engines.transfer.deformation_transfer import prepare_transfer

FACES = 300
"""Of the cages."""
UNMATCHED_JOINTS = ("tail1", "ear.*", "index.*", "middle.*", "little.*", "thumb.*")
"""Joints of the creature that a robot has no limbs for."""


@dataclass(frozen=True)
class TransferExhibit:
    """One transfer of the demo."""

    name: str
    """What its files are called."""
    title: str
    text: str
    """What to look at, in a sentence."""
    source: Callable[[int], Animation | Motion]
    """From a number of vertices to what moves."""
    target: Callable[[int], Shape]
    """From a number of vertices to what is to move."""
    vertices: int
    document: Mapping[str, Any]
    """Source and target as a scene names them."""
    view: tuple[float, float] = (60.0, 10.0)

    def scene(self, *, quick: bool = False) -> dict[str, Any]:
        """What `run` does, as a scene says it."""
        vertices = self.vertices // 4 if quick else self.vertices
        source, target = (dict(self.document[key]) for key in ("source", "target"))
        if source["gallery"] not in gallery.JOINT_MOTIONS:
            source["vertices"] = vertices
        return {
            "sources": {"motion": source},
            "target": target | {"vertices": vertices},
            "cage": {"faces": FACES},
            "lattice": 30 if quick else 60,
        }

    def run(self, show: Progress | None = None, *, quick: bool = False, frames: int | None = None) -> TransferRun:
        """Build the cage and solve all frames."""
        vertices = self.vertices // 4 if quick else self.vertices
        source, target = self.source(vertices), self.target(vertices)
        begun = time.perf_counter()
        prepared = prepare_transfer(
            source, target, None, "auto", faces=FACES, frames=frames, lattice=30 if quick else 60
        )
        ready = time.perf_counter()
        moved = prepared.solve(None if show is None else lambda done, total: show(done, total, "transferring"))
        seconds = ready - begun, time.perf_counter() - ready
        return TransferRun(moved, {"motion": source}, self.title, *seconds)


def show_transfer(exhibit: TransferExhibit, run: TransferRun, folder: Path, show: Progress) -> str:
    """Write the exhibit's files; its part of the page."""
    name, view = exhibit.name, exhibit.view
    source = beside(run.sources["motion"], run.clip, view)
    pliant.write(folder / f"{name}.glb", run.clip)
    render.save(sheet(exhibit, run), folder / f"{name}.png")
    render.movie(
        run.clip,
        folder / f"{name}.gif",
        size=(620, 340),
        view=view,
        title="left: the source; right: the target",
        extra=[source],
        progress=lambda done, total: show(done, total, "drawing"),
    )
    write_transfer_report(folder / f"{name}-report.html", run, title=exhibit.title, view=view)
    size = (folder / f"{name}.glb").stat().st_size / 1e6
    points = f"{len(run.clip.shape.points):,} vertices in a cage of {len(run.transfer.rig.cage.points)}"
    facts = f"{points}, {run.seconds_a_frame:.2f} s a frame, {size:.1f} MB"
    return card(name, exhibit.title, exhibit.text, facts, [*findings(run)[1:], *sameness_summary(run)])


def sheet(
    exhibit: TransferExhibit, run: TransferRun, *, frames: int = 5, size: tuple[int, int] = (300, 260)
) -> Pillow.Image:
    """The target below what it came from, frame by frame."""
    rows = {"source": as_large(run.sources["motion"], run.clip), "target": run.clip}
    return render.contact_sheet(rows, frames=frames, size=size, view=exhibit.view)


def sameness_summary(run: TransferRun) -> list[str]:
    """How near the target comes to the source, where both are the same shape."""
    source = run.sources["motion"]
    if not isinstance(source, Animation) or source.points.shape != run.clip.points.shape:
        return []
    away = np.linalg.norm(run.clip.points - source.points, axis=2).mean() / run.clip.shape.diagonal
    return [f"Its vertices are {100 * away:.2g} % of the diagonal from the source's own, in the mean over all frames."]


TRANSFERS: tuple[TransferExhibit, ...] = (
    TransferExhibit(
        "robot-walk",
        "A robot walks like a creature",
        "Look at knees and elbows: the robot has no skeleton, only a cage around its 37 parts that follows the walk.",
        lambda n: without_joints(gallery.creature_walk(), list(UNMATCHED_JOINTS)),
        gallery.robot,
        6000,
        {"source": {"gallery": "creature_walk", "without": list(UNMATCHED_JOINTS)}, "target": {"gallery": "robot"}},
    ),
    TransferExhibit(
        "gallop-again",
        "A gallop carried over to the same animal",
        "Look at the legs: a few near-rigid pieces of the source drive the standing animal, and the gallop comes back.",
        gallery.animal_gait,
        lambda n: gallery.animal(n).base,
        4000,
        {"source": {"gallery": "animal_gait"}, "target": {"gallery": "animal"}},
    ),
)
