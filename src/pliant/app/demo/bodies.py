"""Bodies of the demo: flesh on bones, beside what the bones alone would make of the skin.

Beside each stands linear blend skinning on the same bones, with the weights that the rotations diffuse by: what every
game does, and where elbows collapse.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

import pliant
from pliant import gallery, render
from pliant.app.demo.films import CELL_SIZE, write_pictures
from pliant.app.demo.page import card
from pliant.app.demo.scenes import write_simulate_scene
from pliant.app.report.outcome import percent
from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.progress import Progress
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.engines.blend.app.report import OURS
from pliant.engines.simulate import ElasticBody, Material
from pliant.engines.simulate.app.report import findings, write_simulate_report
from pliant.engines.simulate.app.result import SimulateRun
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.options import SimulateOptions
from pliant.gallery.coats import checkered

SKINNING_LABEL = "linear blend skinning"
BodyMotion = tuple[Mesh, Motion]
"""A shape, and the motion of the bones in it."""


@dataclass(frozen=True)
class BodyExhibit:
    """One body of the demo."""

    name: str
    """What its files are called."""
    title: str
    text: str
    """What to look at, in a sentence."""
    make: Callable[[int], BodyMotion]
    """From a number of vertices to what moves."""
    vertices: int
    nodes: int = 3000
    view: tuple[float, float] = (60.0, 10.0)
    static: bool = False
    material: Material = field(default_factory=Material)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of a scene: gravity, hold."""
    gallery: str = ""
    """The name that shape and skeleton have in the gallery, if they are from there."""
    back: bool = False
    """Whether the film goes there and back, where the motion does not return."""
    frames: int | None = None
    """How many of the motion; None: all."""

    def smaller(self) -> BodyExhibit:
        """The same for a first look."""
        return replace(self, vertices=self.vertices // 4, nodes=self.nodes // 3)

    def write(self, folder: Path, show: Progress) -> str:
        """Simulate it and write its files; its part of the page."""
        name, run = self.name, self.run(show)
        write_simulate_scene(folder, name, run, self.scene(), self.title)
        pliant.write(folder / f"{name}.glb", run.clip)
        write_pictures(folder, name, {SKINNING_LABEL: skinned(run), OURS: run.clip}, self.view, show, back=self.back)
        write_simulate_report(folder / f"{name}-report.html", run, title=self.title, view=self.view)
        body = run.body
        points = f"{len(run.clip.shape.points):,} vertices on {body.nodes.free:,} nodes and {len(body.bones)} bones"
        sentences = [*findings(run)[1:], *joint_summary(run)]
        return card(folder, name, self.title, self.text, f"{points}, {run.seconds_a_frame:.3f} s a frame", sentences)

    def scene(self) -> dict[str, Any]:
        """All but the motion, and a shape that is not of the gallery, as a scene says it."""
        material = vars(self.material)
        static = {"static": True} if self.static else {}
        document = {"nodes": self.nodes, **static, **self.options, "material": material}
        if self.gallery:
            named = {"gallery": self.gallery}
            document |= {"shape": named | {"vertices": self.vertices}, "skeleton": named}
        return document

    def run(self, show: Progress | None = None) -> SimulateRun:
        """Fill the shape, and solve all frames."""
        mesh, motion = self.make(self.vertices)
        motion = motion.chosen(slice(self.frames))
        options = SimulateOptions.read(self.scene())
        scene = ElasticScene(mesh, motion.skeleton, motion, options, title=self.title)
        begun = time.perf_counter()
        body = scene.body()
        ready = time.perf_counter()
        moved = scene.run(None if show is None else lambda done, of: show(done, of, "simulating"), body=body)
        seconds = ready - begun, time.perf_counter() - ready
        return SimulateRun(body, moved.clip, moved.frames, motion, moved.stopped, self.title, *seconds, unit=scene.unit)


def skinned(run: SimulateRun) -> Animation:
    """The same bones with linear blend skinning, at the clip's frames."""
    body, clip = run.body, run.clip
    W, frames = skin_weights(body), posed_bones(run)
    matrices = rotations.matrix(frames.quaternions)
    shifts = frames.heads - np.einsum("fbij,bj->fbi", matrices, body.bones.heads)
    points = []
    for k in range(len(clip)):
        at = min(k, len(matrices) - 1)
        mixed = np.tensordot(W, matrices[at], axes=(1, 0))
        points.append(np.einsum("vij,vj->vi", mixed, body.shape.points) + W @ shifts[at])
    return Animation(clip.shape, np.stack(points), clip.fps, SKINNING_LABEL)


def skin_weights(body: ElasticBody) -> Floats:
    """(vertices, bones) how much each bone moves each vertex: the weights by which rotations diffuse."""
    from scipy.sparse import csr_array

    w = body.node_weights
    table = csr_array((w.weight, w.bone, w.start), shape=(len(body.nodes), len(body.bones)))
    W: Floats = np.maximum((body.surface.matrix @ table).toarray(), 0)
    return W / W.sum(axis=1, keepdims=True)


def posed_bones(run: SimulateRun) -> Frames:
    """The bones at the clip's frames, up to the motion's end."""
    assert run.motion is not None
    motion = run.motion.resampled(run.clip.fps) if len(run.motion) > 1 else run.motion
    return run.body.bones.posed(motion.rotations, motion.translations)


def sheet(
    exhibit: BodyExhibit, run: SimulateRun, *, frames: int = 5, size: tuple[int, int] = CELL_SIZE
) -> Pillow.Image:
    """The body below skinning, frame by frame."""
    rows = {SKINNING_LABEL: skinned(run), OURS: run.clip}
    return render.contact_sheet(rows, frames=frames, size=size, view=exhibit.view)


def joint_summary(run: SimulateRun) -> list[str]:
    """How much volume the joint that turns most keeps, beside skinning."""
    kept = joint_volumes(run)
    frame = int(np.argmin(kept[SKINNING_LABEL]))
    ours, theirs = (percent(kept[name][frame]) for name in (OURS, SKINNING_LABEL))
    return [f"In frame {frame} the joint that turns most keeps {ours} of its volume; with skinning, {theirs}."]


def joint_volumes(run: SimulateRun) -> dict[str, Floats]:
    """(frames,) volume of the flesh around the joint that turns most, over that at rest, by skinning and here."""
    body = run.body
    assert run.motion is not None
    joint = sharpest_joint(run.motion)
    position = run.motion.skeleton.rest_pose().world()[0][joint]
    near = np.linalg.norm(body.quadrature.points - position, axis=1)
    reach = np.sort(near)[max(20, len(near) // 30)]
    inside = near <= reach
    frames = posed_bones(run)
    weights = body.operator.weights[inside]
    found: dict[str, list[float]] = {SKINNING_LABEL: [], OURS: []}
    for k, frame in enumerate(run.frames):
        at = min(k, len(frames.quaternions) - 1)
        R = body.posed(frames, at).R
        assert frame.nodes is not None
        for name, x in ((SKINNING_LABEL, body.carried(frames, at)), (OURS, frame.nodes)):
            stretch = body.operator.strains(x, R)[1][inside]
            found[name].append(float(weights @ stretch / weights.sum()))
    return {name: np.array(values) for name, values in found.items()}


def sharpest_joint(motion: Motion) -> int:
    """The joint, not a root, that turns by the largest angle from its rest."""
    skeleton = motion.skeleton
    cosine = np.abs(np.einsum("fji,ji->fj", motion.rotations, skeleton.rest_rotations)).min(axis=0)
    cosine[skeleton.parents < 0] = 1.0
    leaves = np.setdiff1d(np.arange(len(skeleton)), skeleton.parents)
    cosine[leaves] = 1.0
    return int(np.argmin(cosine))


def walking_dinosaur(vertices: int) -> BodyMotion:
    """A dinosaur that walks one stride on the spot."""
    return gallery.dinosaur(vertices).base, gallery.dinosaur_walk()


def elbow(vertices: int) -> BodyMotion:
    """An arm of two bones, which bends by 90 degrees."""
    mesh = checkered(gallery.cylinder(vertices, radius=0.36, rounding=0.1), 0.4)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    axis = int(np.argmax(high - low))
    positions = np.tile((low + high) / 2, (3, 1))
    positions[:, axis] = low[axis] + np.array([0.06, 0.5, 0.94]) * (high - low)[axis]
    bones = Skeleton.from_positions(positions, [-1, 0, 1], ["shoulder", "elbow", "hand"])
    quaternions = np.tile(bones.rest_rotations, (19, 1, 1))
    quaternions[:, 1] = rotations.from_axis_angle(np.eye(3)[(axis + 1) % 3], np.radians(np.linspace(0, 90, 19)))
    return mesh, Motion(bones, quaternions, np.tile(bones.offsets, (19, 1, 1)), 24.0)


BODIES: tuple[BodyExhibit, ...] = (
    BodyExhibit(
        "dinosaur-walk",
        "A dinosaur walks, and its flesh follows",
        "Look at belly, neck and tail: they lag behind the bones, swing and settle, and nobody painted weights.",
        walking_dinosaur,
        5000,
        material=Material(3e4, 0.4, 1000.0),
        options={"gravity": 9.81, "hold": 0.6},
        gallery="dinosaur",
    ),
    BodyExhibit(
        "elbow",
        "An elbow that does not collapse",
        "Look at the inside of the elbow at 90°: with linear blend skinning it caves in, with pliant it bulges.",
        elbow,
        3000,
        view=(0.0, 10.0),
        nodes=2000,
        static=True,
        back=True,
    ),
)
