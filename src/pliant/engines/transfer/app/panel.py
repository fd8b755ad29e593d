"""A shape in its cage on the page: posed by hand, or following a motion that plays beside it.

Posed by hand, controls are placed by clicking on the shape and dragged by handles. While
something is dragged, the cage takes two steps from where it was; when it rests, the scene's own solve is shown, from
the rest cage on. Following a motion, the whole clip is made beside the page and played when done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant.app.scene.media import up_axis
from pliant.app.studio.panel import Desk, Document
from pliant.app.studio.stage import Phase
from pliant.app.studio.worker import Job
from pliant.core import rotations
from pliant.core.errors import InputError, PliantError
from pliant.core.shapes import Mesh, Shape, bounding_diagonal
from pliant.core.topology import Floats
from pliant.engines.transfer.app import panel_document as documents
from pliant.engines.transfer.app.panel_controls import ControlNodes, place_hit
from pliant.engines.transfer.app.panel_document import Chosen, Kind, Place
from pliant.engines.transfer.app.panel_motion import PIECES, Sources, told_pieces
from pliant.engines.transfer.app.panel_posing import Posing
from pliant.engines.transfer.app.panel_widgets import Widgets
from pliant.engines.transfer.app.posed_scene import CageScene, reposed
from pliant.engines.transfer.app.scene import TransferScene
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.rig import CagePose
from pliant.io import kinds_in
from pliant.io.source import find

Change = Callable[[Document, Document], tuple[Document, Document]]
"""From a document and what is put aside to others."""
PATIENCE = 0.5
"""Seconds that a slider rests before a whole clip is made anew."""
LINES = "/cage/lines"
GLASS = 0.45
"""Opacity of a shape that is seen through."""
TRY = (
    "**Drag the arrows** of a handle to move the shape there, **the rings** to turn it. "
    "**Click on the shape** to place another control."
)
SECOND = "**Click on the shape** again, where the length that is to be kept ends."
PLAYS = "The shape **follows the motion** beside it. Choose another **motion**, or nothing to pose it by hand."
SET_UP = ("target", "cage", "lattice", "outside")
"""Keys that a rig depends on."""


class CagePanel:
    """See `pliant.app.studio.panel.Panel`."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk = desk
        self._document, self._aside = dict(document), Document()
        self._lock = threading.RLock()
        self._chosen: Chosen | None = None
        self._first_end: Place | None = None
        self._clicks = 0
        self._cage_shown = self._pieces_shown = True
        self._wishes: dict[str, Change] = {}
        self._unfinished = False  # whether a scene was begun to be set up, and that was stopped
        self._opacity: float | None = None
        self.posing: Posing | None = None
        self.nodes: ControlNodes | None = None
        self._sources: Sources | None = None
        self._moved: Transfer | None = None
        self._made: Document = {}
        self._looked: bool | None = None
        self._cage_now: Floats = np.zeros((0, 3))
        self.widgets = Widgets(desk, self, document)
        self.widgets.show(self._document, None)
        desk.hint("One moment: a cage is put around the shape.")
        self._want("set up", _as_it_is)

    # What the window asks for

    def document(self) -> Document:
        """The scene as it stands."""
        return documents.effective(self._document)

    def take(self, file: Path) -> bool:
        """A motion or a clip becomes what the shape follows; a closed mesh around the shape, its cage."""
        sources = find(file, lambda name: True)
        kinds = kinds_in(sources[0]) if len(sources) == 1 else ()
        if {"motion", "animation"} & set(kinds):
            self._follow({"file": str(file)})
            return True
        shape = self._target
        if "mesh" not in kinds or shape is None or not _is_around(pliant.read_mesh(file), shape):
            return False
        self._in_cage({"file": str(file)})
        return True

    # What the widgets ask for

    def choose(self, which: Chosen | None) -> None:
        """Turn to a control."""
        self._chosen = which
        self._refresh()

    def stretch(self, factor: float) -> None:
        """Have the chosen control stretch."""
        which, nodes = self._chosen, self.nodes
        if which is not None and which.kind == "gradients" and nodes is not None:
            turn = rotations.exp(nodes.scene.gradients[which.number].turn)
            self._change(lambda said: documents.stretched(said, which.number, factor, turn))

    def let_rest(self) -> None:
        """Have the chosen control ask for the rest."""
        which = self._chosen
        if which is not None:
            self._change(lambda said: documents.at_rest(said, which))
            self._refresh()

    def remove(self) -> None:
        """Remove the chosen control."""
        which = self._chosen
        if which is not None:
            self._change(lambda said: documents.removed(said, which))
            self._first_end = None
            self.choose(next(iter(documents.controls_in(self._document)), None))

    def begin_anew(self) -> None:
        """Remove all controls, but for those a shape without any gets."""
        shape = self._target
        if shape is not None:
            bare: Document = {"positions": [], "gradients": [], "lengths": []}
            self._change(lambda said: documents.first_controls(said | bare, shape, up_axis(shape)))
            self._first_end = None
            self.choose(Chosen("positions", len(self._document["positions"]) - 1))

    def weigh(self, name: str, value: float) -> None:
        """Have another weight."""
        self._change(lambda said: documents.weighted(said, name, value))
        if not documents.by_hand(self._document):
            self._want("weights", _as_it_is, patience=PATIENCE)

    def set_frames(self, count: int) -> None:
        """Have so many frames from the rest to the pose."""
        self._change(lambda said: said | {"frames": count})

    def show_cage(self, shown: bool) -> None:
        """Show or hide the cage."""
        self._cage_shown = shown
        self.desk.ask("cage lines", lambda job: self._draw_cage(self._cage_now))

    def see_through(self, through: bool) -> None:
        """Show the shape as glass, or as clay."""
        self._opacity = GLASS if through else None
        self.desk.ask("glass", lambda job: None if self._target is None else self._drawn.fade(self._opacity))

    def show_pieces(self, shown: bool) -> None:
        """Show or hide which piece moves what."""
        self._pieces_shown = shown
        self.desk.stage.show(PIECES, shown)

    def build(self, faces: int, margin: float) -> None:
        """Build a cage."""
        self._in_cage({"faces": faces, "margin": round(margin, 4)})

    def follow(self, gallery: str | None) -> None:
        """Have the shape follow a built-in motion, or none."""
        if gallery is not None:
            self._follow({"gallery": gallery})
        else:
            self._want("motion", partial(documents.switched, posed=True))

    # What changes the document

    def _change(self, change: Callable[[Document], Document]) -> None:
        with self._lock:
            self._document = change(self._document)
        if documents.by_hand(self._document):
            self.desk.ask("pose", self._pose)

    def _follow(self, source: dict[str, Any]) -> None:
        self._want("motion", partial(documents.following, source=source))

    def _in_cage(self, cage: dict[str, Any]) -> None:
        self._want("cage", lambda said, aside: (said | {"cage": cage}, aside))

    def _want(self, what: str, change: Change, *, patience: float = 0.0) -> None:
        """Have the scene set up anew with a change and those that wait; a newer one takes the place of its like."""
        with self._lock:
            self._wishes[what] = change
        self.desk.ask("set up", lambda job: self._set_up(job) if job.settled(patience) else None)

    def _refresh(self) -> None:
        """Bring the widgets and the balls' colours up to date."""
        which = self._chosen
        if which not in documents.controls_in(self._document):
            which = self._chosen = None
        self.widgets.show(self._document, which)
        self.desk.ask("pose", self._pose)

    # What is done on the stage

    def _dragged(self, which: Chosen, place: Floats, turn: Floats, phase: Phase) -> None:
        if which != self._chosen:
            self.choose(which)
        if phase == "start" or self._target is None:
            return
        if which.kind == "positions":
            to = documents.rounded(place, bounding_diagonal(self._target.points))
            self._change(lambda said: documents.moved(said, which.number, to))
        else:
            self._change(lambda said: documents.turned(said, which.number, turn))

    def _clicked(self, start: Floats, direction: Floats) -> None:
        """A click on the shape: each counts, in its own lane."""
        self._clicks += 1
        kind = self.widgets.click
        self.desk.ask(f"click {self._clicks}", lambda job: self._click(start, direction, kind))

    def _click(self, start: Floats, direction: Floats, kind: Kind) -> None:
        """Place a control where the shape was hit, or choose the one whose ball is before that."""
        if self.nodes is None or not documents.by_hand(self._document):
            return
        hit = place_hit(self._drawn, start, direction)
        if hit is None:
            return
        found = self.nodes.at(start, direction, within=hit[1])
        if found is not None:
            self.choose(found)
        else:
            self._placed(hit[0], kind)

    def _placed(self, place: Place, kind: Kind) -> None:
        if kind == "lengths" and self._first_end is None:
            self._first_end = place
            self._refresh()
            return
        if kind == "lengths" and place == self._first_end:
            raise InputError("a length has two ends; click on the shape where the other one is to be")
        entry: Any = [self._first_end, place] if kind == "lengths" else {"at": place}
        self._first_end = None
        with self._lock:
            self._change(lambda said: documents.added(said, kind, entry))
            self.choose(Chosen(kind, len(self._document[kind]) - 1))

    # What takes time

    @property
    def _target(self) -> Shape | None:
        return None if self.nodes is None and self._sources is None else self._drawn.shape

    def _set_up(self, job: Job) -> None:
        """Show the scene with all that was wished."""
        self.desk.say("Reading the shape and its cage ...")
        scene = self._granted()
        if scene is None:
            return
        up, self._unfinished = up_axis(scene.target), True
        self.desk.timeline.show(1, 30.0, lambda frame: None)
        self.desk.stage.remove("/cage")
        self.nodes, self._sources, self._moved = None, None, None
        self._checked, self._cage_now = Cage.of(scene.cage), scene.cage.points
        if isinstance(scene, TransferScene):
            self._set_up_motion(job, scene, up)
        else:
            self._set_up_by_hand(scene, up)
        self._unfinished = False

    def _granted(self) -> CageScene | TransferScene | None:
        """The scene with each wish that makes a sound one, which is the document then; None if none does."""
        with self._lock:
            wishes, self._wishes = list(self._wishes.values()), {}
        scene = None
        for change in wishes:
            try:
                scene = self._granted_one(change)
            except (PliantError, OSError) as error:
                self.desk.fail(error)
                self._refresh()
        return self._scene(self._document) if scene is None and self._unfinished else scene

    def _granted_one(self, change: Change) -> CageScene | TransferScene:
        read = change(self._document, self._aside)[0]
        scene = self._scene(read)
        with self._lock:  # what was changed meanwhile counts
            wanted, self._aside = change(self._document, self._aside)
            self._document = documents.first_controls(wanted, scene.target, up_axis(scene.target))
        return scene if wanted == read else self._scene(self._document)

    def _scene(self, wanted: Document) -> CageScene | TransferScene:
        """The scene of a document; one whose target and cage are those of the last pose is quickly made."""
        document = documents.effective(wanted)
        made = {key: wanted.get(key) for key in SET_UP}
        if self.posing is not None and documents.by_hand(document) and made == self._made:
            return self.posing.scene(document)
        scene: CageScene | TransferScene = self.desk.scene(document)
        if documents.by_hand(document):
            self._made, self.posing = made, None
        return scene

    def _look_at(self, points: Floats, up: str) -> None:
        """Fit the stage to what there is; the camera stays where it was for scenes of the same kind."""
        posed = documents.by_hand(self._document)
        self.desk.stage.look_at(points, up, camera=posed != self._looked)
        self._looked = posed

    def _set_up_by_hand(self, scene: CageScene, up: str) -> None:
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

    def _set_up_motion(self, job: Job, scene: TransferScene, up: str) -> None:
        timeline = self.desk.timeline
        self._sources = sources = Sources(self.desk, scene, up)
        self._look_at(np.concatenate([scene.target.points, sources.around()]), up)
        self._draw_target(scene.target)
        sources.draw(0, 1)
        self.widgets.tell_pieces("")
        self.widgets.show(self._document, None)
        timeline.show(sources.frames, sources.fps, lambda frame: sources.draw(frame, sources.frames))
        timeline.play()
        self.desk.hint("The motion plays beside the shape, which **follows it in a moment**.")

        def report(done: int, total: int) -> None:
            job.check()
            self.desk.say(f"The shape follows the motion: {done} of {total} frames." if done else "Finding pieces ...")

        self.desk.say("Finding which piece of the motion moves what ...")
        moved = self._moved = scene.run(report)
        frame = min(timeline.frame, len(moved) - 1)
        timeline.show(len(moved), moved.clip.fps, self._draw_moved, frame=frame)
        self._draw_moved(frame)
        self.widgets.tell_pieces(told_pieces(moved))
        self.desk.hint(PLAYS)
        timeline.play()

    def _pose(self, job: Job) -> None:
        """Show the document: roughly at once, and when nothing newer comes as the scene has it."""
        posing, nodes, timeline = self.posing, self.nodes, self.desk.timeline
        document = self.document()
        if posing is None or nodes is None or not documents.by_hand(document):
            return
        timeline.stop()
        scene = posing.scene(document)
        self._draw_pose(scene, posing.solve(scene))
        if not job.settled():
            return
        pose = posing.solve(scene, job)
        self._draw_pose(scene, pose)
        try_next = TRY if self._first_end is None else SECOND
        self.desk.hint(try_next if pose.converged else f"The controls pull against each other: {pose.message}.")
        if scene.frames > 1:
            self._draw_way(job, scene, posing)
        elif timeline.count > 1:
            timeline.show(1, scene.fps, lambda frame: None)

    def _draw_way(self, job: Job, scene: CageScene, posing: Posing) -> None:
        """Have the frames from the rest to the pose on the timeline."""
        way = scene.run(job.check, rig=posing.free)

        def draw(frame: int) -> None:
            self._drawn.move(way.clip.points[frame])
            self._draw_cage(way.cage.points[frame])

        self.desk.timeline.show(len(way), scene.fps, draw, frame=len(way) - 1)

    # What is drawn

    def _draw_target(self, target: Shape) -> None:
        self._drawn = self.desk.stage.shape("/cage/target", target)
        self._drawn.on_click(self._clicked)
        self._drawn.fade(self._opacity)
        self._draw_cage(self._cage_now)

    def _draw_pose(self, scene: CageScene, pose: CagePose) -> None:
        assert self.posing is not None
        assert self.nodes is not None
        self._drawn.move(pose.points)
        self._draw_cage(self.posing.last)
        self.nodes.draw(scene, self.posing.free, self.posing.last, self._chosen)
        first = self._first_end
        if isinstance(first, list):
            first = self.posing.free.carried([first], self.posing.last)[0]
        self.nodes.mark(pose.points[first] if isinstance(first, int) else first)

    def _draw_moved(self, frame: int) -> None:
        """A frame of the target and the motion it follows."""
        moved, sources = self._moved, self._sources
        if moved is None or sources is None:
            return
        self._drawn.move(moved.clip.points[frame])
        self._draw_cage(moved.cage.points[frame])
        sources.draw(frame, len(moved))
        sources.draw_pieces(moved, frame)
        self.desk.stage.show(PIECES, self._pieces_shown)

    def _draw_cage(self, points: Floats) -> None:
        self._cage_now = points
        if self._cage_shown and len(points):
            self.desk.stage.lines(LINES, points[self._checked.kept][self._checked.edges], width=1.5)
        self.desk.stage.show(LINES, self._cage_shown)


def _as_it_is(document: Document, aside: Document) -> tuple[Document, Document]:
    """The change that changes nothing."""
    return document, aside


def _to_drag(document: Document) -> Chosen | None:
    """The control that a visitor is shown first: the last point, which is not held if another is."""
    return Chosen("positions", len(document["positions"]) - 1) if document.get("positions") else None


def _is_around(mesh: Mesh, shape: Shape) -> bool:
    """Whether a mesh can be a shape's cage."""
    try:
        return bool(Cage.of(mesh).tree.inside(shape.points).all())
    except InputError:
        return False
