"""Transfers of the demo: motions of the gallery on other shapes of it, in cages that are built on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

import pliant
from pliant import gallery, render
from pliant.app.demo.films import CELL_SIZE, as_large, beside, write_film
from pliant.app.demo.page import card
from pliant.app.demo.scenes import write_transfer_scene
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
    lattice: int = 60
    frames: int | None = None
    """How many to make; None: all."""

    def smaller(self) -> TransferExhibit:
        """The same for a first look."""
        return replace(self, vertices=self.vertices // 4, lattice=self.lattice // 2)

    def write(self, folder: Path, show: Progress) -> str:
        """Transfer it and write its files; its part of the page."""
        name, run = self.name, self.run(show)
        write_transfer_scene(folder, name, self.scene(), self.title)
        pliant.write(folder / f"{name}.glb", run.clip)
        render.save(sheet(self, run), folder / f"{name}.png")
        source = beside(run.sources["motion"], run.clip, self.view)
        write_film(folder, name, run.clip, self.view, show, title="left: the source; right: the target", extra=[source])
        write_transfer_report(folder / f"{name}-report.html", run, title=self.title, view=self.view)
        points = f"{len(run.clip.shape.points):,} vertices in a cage of {len(run.transfer.rig.cage.points)}"
        facts = f"{points}, {run.seconds_a_frame:.2f} s a frame"
        return card(folder, name, self.title, self.text, facts, findings(run)[1:])

    def scene(self) -> dict[str, Any]:
        """What `run` does, as a scene says it."""
        source, target = (dict(self.document[key]) for key in ("source", "target"))
        if source["gallery"] not in gallery.JOINT_MOTIONS:
            source["vertices"] = self.vertices
        return {
            "sources": {"motion": source},
            "target": target | {"vertices": self.vertices},
            "cage": {"faces": FACES},
            "lattice": self.lattice,
            **({"frames": self.frames} if self.frames else {}),
        }

    def run(self, show: Progress | None = None) -> TransferRun:
        """Build the cage and solve all frames."""
        source, target = self.source(self.vertices), self.target(self.vertices)
        begun = time.perf_counter()
        prepared = prepare_transfer(source, target, None, "auto", faces=FACES, frames=self.frames, lattice=self.lattice)
        ready = time.perf_counter()
        moved = prepared.solve(None if show is None else lambda done, total: show(done, total, "transferring"))
        seconds = ready - begun, time.perf_counter() - ready
        return TransferRun(moved, {"motion": source}, self.title, *seconds)


def sheet(
    exhibit: TransferExhibit, run: TransferRun, *, frames: int = 5, size: tuple[int, int] = CELL_SIZE
) -> Pillow.Image:
    """The target below what it came from, frame by frame."""
    rows = {"source": as_large(run.sources["motion"], run.clip), "target": run.clip}
    return render.contact_sheet(rows, frames=frames, size=size, view=exhibit.view)


def walk_without_small_limbs(vertices: int) -> Motion:
    """The creature's walk, without the joints that a robot has no limbs for."""
    return without_joints(gallery.creature_walk(), UNMATCHED_JOINTS)


TRANSFERS: tuple[TransferExhibit, ...] = (
    TransferExhibit(
        "robot-walk",
        "A robot walks like a creature",
        "Look at knees and elbows: the robot has no skeleton, only a cage around its 37 parts that follows the walk.",
        walk_without_small_limbs,
        gallery.robot,
        6000,
        {"source": {"gallery": "creature_walk", "without": list(UNMATCHED_JOINTS)}, "target": {"gallery": "robot"}},
    ),
)
