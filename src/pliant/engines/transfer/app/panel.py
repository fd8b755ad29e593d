"""A shape in its cage on the page: posed by hand, or following a motion that plays beside it.

Posed by hand, controls are placed by clicking on the shape and dragged by handles. While something is dragged, the cage
takes two steps from where it was; at rest, the scene's own solve is shown, from the rest cage on. Following a motion,
the whole clip is solved in the background and played when done.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import pliant
from pliant.app.studio.desk import Document
from pliant.app.studio.history import State
from pliant.app.studio.opening import kinds_of
from pliant.app.studio.panel import Panel
from pliant.app.studio.viewport import Phase
from pliant.app.studio.widgets import OptionWidget
from pliant.app.studio.worker import Job
from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS
from pliant.core.errors import InputError, PliantError, PliantWarning
from pliant.core.options import Option
from pliant.core.shapes import Shape, bounding_diagonal
from pliant.core.topology import Floats
from pliant.engines.transfer.app import panel_document as documents
from pliant.engines.transfer.app.panel_controls import CONTROL_NODES, ControlNodes, point_hit
from pliant.engines.transfer.app.panel_document import Chosen, ControlKind, RestPoint
from pliant.engines.transfer.app.panel_editing import CageEditing, share_inside
from pliant.engines.transfer.app.panel_motion import PIECE_NODES, SourcesBeside
from pliant.engines.transfer.app.panel_posing import Posing
from pliant.engines.transfer.app.panel_widgets import CageWidgets
from pliant.engines.transfer.app.posed_scene import CageScene, reposed
from pliant.engines.transfer.app.rigged_scene import RiggedScene
from pliant.engines.transfer.app.scene import TransferScene
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.options import WEIGHTS_TABLE, TransferOptions
from pliant.engines.transfer.rig import CagePose
from pliant.geometry.axes import SignedAxis, up_axis
from pliant.geometry.body_plan.matching import UnsureMatchError

Change = Callable[[Document, Document], tuple[Document, Document]]
"""From a document and what is put aside to others."""
RESOLVE_DELAY = 0.5
"""Seconds that a slider rests before a whole clip is solved anew."""
CAGE = "/cage/wires"
TRANSLUCENT = 0.45
"""Opacity of a shape that is seen through."""
TRY = (
    "**Drag the arrows** of a handle to move the shape there, **the rings** to turn it. "
    "**Click on the shape** to place another control."
)
SECOND = "**Click on the shape** again, where the length that is to be kept ends."
PLAYS = "The shape **follows the motion** beside it. Choose another **motion**, or nothing to pose it by hand."
CAGED_SHARE = 0.9
"""Share of a shape that is inside a mesh that is its cage: those that artists draw leave some tips outside."""
SET_UP = ("target", "cage", "lattice", "outside")
"""Keys that a rig depends on."""


class CagePanel(Panel):
    """See `pliant.app.studio.panel.Panel`."""

    key_names = MappingProxyType(
        {
            "sources": "Motion", "cage": "Cage", "positions": "Point", "gradients": "Turn", "lengths": "Length",
            "weights": "Weight", "frames": "Frames", "controls": "Controls", "map": "Pairing",
        }
    )  # fmt: skip

    guide = (
        (
            "Controls",
            "**Drag the arrows** of the handle: the shape follows. Click it for more handles.",
        ),
        ("Follow a motion", "Choose a **motion**, or drop a .bvh on the page: the shape follows it."),
        ("timeline", "**Space** plays the motion; drag here to scrub."),
    )

    def build(self) -> None:
        """All widgets, before the shape is read."""
        self._aside = Document()
        self._lock = threading.RLock()
        self._chosen: Chosen | None = None
        self._first_end: RestPoint | None = None
        self._cage_shown = self._pieces_shown = True
        self._changes: dict[str, Change] = {"set up": _unchanged}
        self._unfinished = False  # whether a scene began to be set up, and that was stopped
        self._opacity: float | None = None
        self.posing: Posing | None = None
        self.nodes: ControlNodes | None = None
        self._sources: SourcesBeside | None = None
        self._result: Transfer | None = None
        self._made: Document = {}
        self._camera_set: bool | None = None
        self._cage_now: Floats = np.zeros((0, 3))
        self.editing = CageEditing(self, self._use_cage)
        self.controls = CageWidgets(self)
        self.controls.show(self._document, None)
        self.desk.hint("One moment: a cage is put around the shape.")

    # What the window asks for

    def document(self) -> Document:
        """The scene as it is."""
        return documents.effective(self._document)

    def state(self) -> State:
        """See `pliant.app.studio.panel.Panel`."""
        with self._lock:
            return super().state() | {"given": self._document, "aside": self._aside}

    def restore(self, state: State) -> bool:
        """See `pliant.app.studio.panel.Panel`."""
        if "given" not in state or not self.shows(state["scene"]):
            return False
        with self._lock:
            before, self._document, self._aside = self._document, state["given"], state["aside"]
            self._changes.clear()
        self._first_end = None
        self.show_options()
        self._refresh()
        posed = documents.by_hand(before) and documents.by_hand(self._document)
        if posed and all(before.get(key) == self._document.get(key) for key in SET_UP):
            self.request()
        else:
            self._set_up_anew("set up", _unchanged)
        return True

    def take(self, file: Path) -> bool:
        """A motion or a clip becomes what the shape follows; a closed mesh around the shape, its cage."""
        kinds = kinds_of(file)
        if {"motion", "animation"} & set(kinds):
            self._follow({"file": str(file)})
            return True
        shape = self._target
        if "mesh" not in kinds or shape is None:
            return False
        inside = share_inside(pliant.read_mesh(file), shape)
        if not inside >= CAGED_SHARE:
            return False
        if inside < 1:
            share = f"{1 - inside:.2g} of the shape's vertices"
            warnings.warn(f"{share} are outside {file.name}; outside is allowed for them", PliantWarning, stacklevel=2)
        self._use_cage({"file": str(file)}, {} if inside == 1 else {"outside": "allow"})
        return True

    # What the widgets ask for

    def choose(self, which: Chosen | None) -> None:
        """Turn to a control."""
        self._chosen = which
        self._refresh()
        self.request(clip=False)

    def stretch(self, factor: float) -> None:
        """Have the chosen control stretch."""
        which, nodes = self._chosen, self.nodes
        if which is None or which.kind != "gradients" or nodes is None or which.number >= len(nodes.scene.gradients):
            return
        rotation = rotations.exp(nodes.scene.gradients[which.number].turn)
        self._change(lambda document: documents.stretched(document, which.number, factor, rotation), of=which)

    def reset(self) -> None:
        """Have the chosen control ask for the rest shape."""
        which = self._chosen
        if which is not None:
            self._change(lambda document: documents.at_rest(document, which), of=which)
            self._refresh()

    def remove(self) -> None:
        """Remove the chosen control."""
        which = self._chosen
        if which is not None:
            self._change(lambda document: documents.removed(document, which), of=which)
            self._first_end = None
            self.choose(next(iter(documents.controls_in(self._document)), None))

    def remove_selected(self) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        if documents.by_hand(self._document):
            self.remove()

    def remove_all(self) -> None:
        """Remove all controls, but for those a shape without any gets."""
        shape = self._target
        if shape is not None:
            bare: Document = {"positions": [], "gradients": [], "lengths": []}
            self._change(lambda document: documents.first_controls(document | bare, shape, up_axis(shape)))
            self._first_end = None
            self.choose(Chosen("positions", len(self._document["positions"]) - 1))

    def set_option(self, about: Option, value: Any) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        if documents.by_hand(self._document) and about.table == WEIGHTS_TABLE:  # needs no other set-up
            self._change(lambda document: about.put(document, value))
        else:
            self._set_up_anew(
                about.name, lambda document, aside: (about.put(document, value), aside), after=RESOLVE_DELAY
            )

    def set_frames(self, count: int) -> None:
        """Have so many frames from the rest to the pose."""
        self._change(lambda document: document | {"frames": count})

    def show_cage(self, shown: bool) -> None:
        """Show or hide the cage."""
        self._cage_shown = shown
        self.act(lambda: self.draw_cage(self._cage_now))

    def edit_cage(self, on: bool) -> None:
        """Have the cage's vertices dragged, or the shape posed."""
        if on and not documents.by_hand(self._document):
            raise InputError("a shape that follows a motion is not at rest; choose no motion, then edit its cage")
        self.editing.on = on
        self.request(clip=False)

    def _edit_cage(self, nodes: ControlNodes) -> None:
        """Show the rest shape in its cage, whose vertices can be dragged."""
        with self.drawing():
            self.desk.stage.remove(CONTROL_NODES)
            self.drawn.move(nodes.scene.target.points)
            self.editing.show(nodes.scene.cage, nodes.scene.target)
        self.desk.hint("**Click a vertex of the cage** and drag its arrows; the cage has to stay around the shape.")

    def see_through(self, through: bool) -> None:
        """Show the shape translucent or solid."""
        self._opacity = TRANSLUCENT if through else None
        self.act(lambda: None if self._target is None else self.drawn.fade(self._opacity))

    def show_pieces(self, shown: bool) -> None:
        """Show or hide which piece moves what."""
        self._pieces_shown = shown
        self.desk.stage.show(PIECE_NODES, shown)

    def build_cage(self, options: dict[str, OptionWidget]) -> None:
        """Build a cage."""
        self._use_cage({name: round(option.value, 4) for name, option in options.items()})

    def follow(self, gallery: str | None) -> None:
        """Have the shape follow a built-in motion, or none."""
        if gallery is not None:
            self._follow({"gallery": gallery})
        else:
            self._set_up_anew("motion", partial(documents.switched, posed=True))

    def pair(self, limbs: dict[str, str]) -> None:
        """Have limbs of the target follow others of the source."""
        listed = ", ".join(f"{theirs}={ours}" for ours, theirs in limbs.items() if theirs)
        self.set_option(next(about for about in TransferOptions.all() if about.name == "map"), listed or None)

    # What changes the document

    def _change(self, change: Callable[[Document], Document], *, of: Chosen | None = None) -> None:
        """Have another document; of: the control that is changed, if it is still there: it may have gone just now."""
        with self._lock:
            if of is not None and of not in documents.controls_in(self._document):
                return
            self._document = change(self._document)
        if documents.by_hand(self._document):
            self.request()

    def _follow(self, source: dict[str, Any]) -> None:
        self._set_up_anew("motion", partial(documents.following, source=source))

    def _use_cage(self, cage: dict[str, Any], options: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._set_up_anew("cage", lambda document, aside: (document | {"cage": cage, **options}, aside))

    def _set_up_anew(self, what: str, change: Change, *, after: float = 0.0) -> None:
        """Set up the scene with a change and those that wait; a newer one replaces its like."""
        with self._lock:
            self._changes[what] = change
        self.request(clip=False, after=after)

    def _refresh(self) -> None:
        """Bring the widgets up to date."""
        if self._chosen not in documents.controls_in(self._document):
            self._chosen = None
        self.controls.show(self._document, self._chosen)

    # What is done on the stage

    def _dragged(self, which: Chosen, position: Floats, rotation: Floats, phase: Phase) -> None:
        if which not in documents.controls_in(self._document):
            return  # its handle is about to go
        if which != self._chosen:
            self.choose(which)
        if phase == "start" or self._target is None:
            return
        if which.kind == "positions":
            to = documents.rounded(position, bounding_diagonal(self._target.points))
            self._change(lambda document: documents.moved(document, which.number, to), of=which)
        else:
            self._change(lambda document: documents.rotated(document, which.number, rotation), of=which)

    def _clicked(self, start: Floats, direction: Floats) -> None:
        kind = self.controls.click
        self.act(lambda: self._click(start, direction, kind))

    def _click(self, start: Floats, direction: Floats, kind: ControlKind) -> None:
        """Place a control where the shape was hit, or choose the one whose ball is in front of that."""
        if self.nodes is None or not documents.by_hand(self._document) or self.editing.on:
            return
        hit = point_hit(self.drawn, start, direction)
        if hit is None:
            return
        found = self.nodes.at(start, direction, within=hit[1])
        if found is not None:
            self.choose(found)
        else:
            self._add(hit[0], kind)

    def _add(self, point: RestPoint, kind: ControlKind) -> None:
        if kind == "lengths" and self._first_end is None:
            self._first_end = point
            self.request(clip=False)
            return
        if kind == "lengths" and point == self._first_end:
            raise InputError("a length has two ends; click on the shape where the other one is to be")
        entry: Any = [self._first_end, point] if kind == "lengths" else {"at": point}
        self._first_end = None
        with self._lock:
            self._change(lambda document: documents.added(document, kind, entry))
            self.choose(Chosen(kind, len(self._document[kind]) - 1))

    # What takes time

    @property
    def _target(self) -> Shape | None:
        return None if self.nodes is None and self._sources is None else self.drawn.shape

    def update(self, job: Job) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        if self._changes or self._unfinished:
            scene = self._changed_scene()
            if scene is not None:
                self._set_up(scene)
        if self.nodes is not None and self.posing is not None:
            self._edit_cage(self.nodes) if self.editing.on else self._pose(job, self.nodes, self.posing)

    def _set_up(self, scene: CageScene | TransferScene) -> None:
        """Show another scene."""
        up, self._unfinished = up_axis(scene.target), True
        self.frames.drop()
        self.frames.resize(1, DEFAULT_FPS, frame=0)
        self.desk.stage.remove("/cage")
        self.nodes, self._sources, self._result = None, None, None
        self._checked, self._cage_now = Cage.of(scene.cage), scene.cage.points
        if isinstance(scene, TransferScene):
            self._set_up_motion(scene, up)
        else:
            self._set_up_by_hand(scene, up)
        self._unfinished = False

    def _changed_scene(self) -> CageScene | TransferScene | None:
        """The scene with each change that makes a valid one, which is the document then; None if none does."""
        self.desk.say("Reading the shape and its cage ...")
        with self._lock:
            changes, self._changes = list(self._changes.values()), {}
        scene = None
        for change in changes:
            try:
                scene = self._with_change(change)
            except (PliantError, OSError) as error:
                self.desk.fail(error)
                self._refresh()
        return self._scene(self._document) if scene is None and self._unfinished else scene

    def _with_change(self, change: Change) -> CageScene | TransferScene:
        read = change(self._document, self._aside)[0]
        scene = self._scene(read)
        with self._lock:  # what was changed meanwhile counts
            changed, self._aside = change(self._document, self._aside)
            self._document = documents.first_controls(changed, scene.target, up_axis(scene.target))
        return scene if changed == read else self._scene(self._document)

    def _scene(self, given: Document) -> CageScene | TransferScene:
        """The scene of a document; one whose target and cage are those of the last pose is quickly made."""
        document = documents.effective(given)
        made = {key: given.get(key) for key in SET_UP}
        if self.posing is not None and documents.by_hand(document) and made == self._made:
            return self.posing.scene(document)
        scene: CageScene | TransferScene | RiggedScene = self.desk.scene(document)
        if isinstance(scene, RiggedScene):
            raise InputError("the studio moves targets in cages; set target.skeleton to none")
        if documents.by_hand(document):
            self._made, self.posing = made, None
        return scene

    def _look_at(self, points: Floats, up: SignedAxis) -> None:
        """Fit the stage to what there is; the camera stays where it was for scenes of the same kind."""
        posed = documents.by_hand(self._document)
        self.desk.stage.look_at(points, up, camera=posed != self._camera_set)
        self._camera_set = posed

    def _set_up_by_hand(self, scene: CageScene, up: SignedAxis) -> None:
        self._look_at(scene.target.points, up)
        self._draw_target(scene.target)
        self.nodes = ControlNodes(self.desk, scene, self._dragged, self.choose)
        if self._chosen is None:
            self._chosen = _to_drag(self._document)
        self.nodes.draw(reposed(scene, self.document(), self._checked), None, self._cage_now, self._chosen)
        self.desk.hint(TRY)
        if self.posing is None:
            self.desk.say("Binding the shape to its cage ...")
            self.posing = Posing(scene)
        self._refresh()

    def _set_up_motion(self, scene: TransferScene, up: SignedAxis) -> None:
        self._sources = sources = SourcesBeside(self.desk, scene, up)
        self._look_at(np.concatenate([scene.target.points, sources.around()]), up)
        self._draw_target(scene.target)
        sources.draw(0, 1)
        self.controls.show_pieces(None)
        self.controls.show(self._document, None)
        self.frames.resize(sources.frames, sources.fps, frame=0)
        self.desk.timeline.play()
        self.desk.hint("The motion plays beside the shape, which **follows it in a moment**.")
        self.desk.say("Finding which piece of the motion moves what ...")
        self.frames.watched = True
        self.frames.solve(scene, partial(self._transfer, scene))

    def _transfer(self, scene: TransferScene, job: Job) -> Iterator[tuple[int, tuple[Floats, Floats]]]:
        """All frames of the target and its cage, at once."""

        def report(done: int, total: int) -> None:
            job.check()
            self.desk.say(f"The shape follows the motion: {done} of {total} frames." if done else "Finding pieces ...")

        try:
            result = self._result = scene.run(report)
        except InputError as error:
            if isinstance(error.__cause__, UnsureMatchError):
                self.controls.show_unsure(error.__cause__)
                self.desk.hint(
                    "The motion's limbs are others: say **which limb follows which**, under *Follow a motion*."
                )
            raise
        self.frames.resize(len(result), result.clip.fps, frame=min(self.frames.frame, len(result) - 1))
        self.controls.show_pieces(result)
        self.desk.hint(PLAYS)
        yield from enumerate(zip(result.clip.points, result.cage.points, strict=True))

    def _pose(self, job: Job, nodes: ControlNodes, posing: Posing) -> None:
        """Show the document: roughly at once, and at rest as the scene has it."""
        self.editing.hide()
        document = self.document()
        self.desk.timeline.stop()
        scene = posing.scene(document)
        self._draw_pose(job, scene, nodes, posing, posing.solve(scene))
        if not job.settled():
            return
        pose = posing.solve(scene, job)
        self._draw_pose(job, scene, nodes, posing, pose)
        try_next = TRY if self._first_end is None else SECOND
        self.desk.hint(try_next if pose.converged else f"The controls pull against each other: {pose.message}.")
        self.frames.resize(len(scene), scene.options.fps, frame=len(scene) - 1)
        if len(scene) > 1:
            self.frames.solve(document, partial(self._path, scene, posing))

    def _path(self, scene: CageScene, posing: Posing, job: Job) -> Iterator[tuple[int, tuple[Floats, Floats]]]:
        """The frames from the rest to the pose."""
        result = scene.run(job.check, rig=posing.free)
        yield from enumerate(zip(result.clip.points, result.cage.points, strict=True))

    # What is drawn

    def _draw_target(self, target: Shape) -> None:
        self.drawn = self.desk.stage.shape("/cage/target", target)
        self.drawn.on_click(self._clicked)
        self.drawn.fade(self._opacity)
        self.draw_cage(self._cage_now)

    def _draw_pose(self, job: Job, scene: CageScene, nodes: ControlNodes, posing: Posing, pose: CagePose) -> None:
        with self.drawing(job):
            self.drawn.move(pose.points)
            self.draw_cage(posing.last)
            nodes.draw(scene, posing.free, posing.last, self._chosen)
            first = self._first_end
            if isinstance(first, list):
                first = posing.free.carried([first], posing.last)[0]
            nodes.mark(pose.points[first] if isinstance(first, int) else first)

    def draw(self, frame: int) -> None:
        """See `pliant.app.studio.panel.Panel`: the target, its cage, and the motion that it follows."""
        sources, result, solved = self._sources, self._result, self.frames.solved.get(frame)
        with self.drawing():
            if solved is not None:
                self.drawn.move(solved[0])
                self.draw_cage(solved[1])
            if sources is not None:
                sources.draw(frame, self.frames.count)
            if sources is not None and result is not None and solved is not None:
                sources.draw_pieces(result, frame)
                self.desk.stage.show(PIECE_NODES, self._pieces_shown)

    def draw_cage(self, points: Floats) -> None:
        """Show the cage, if it is to be seen, somewhere else."""
        self._cage_now = points
        if self._cage_shown and len(points):
            if not self.desk.stage.has(CAGE):
                self._wires = self.desk.stage.wires(CAGE, self._checked.mesh)
            self._wires.move(points)
        self.desk.stage.show(CAGE, self._cage_shown)


def _unchanged(document: Document, aside: Document) -> tuple[Document, Document]:
    """The change that changes nothing."""
    return document, aside


def _to_drag(document: Document) -> Chosen | None:
    """The control that a visitor is shown first: the last point, which is not fixed if another is."""
    return Chosen("positions", len(document["positions"]) - 1) if document.get("positions") else None
