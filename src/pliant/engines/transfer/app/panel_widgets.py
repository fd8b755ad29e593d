"""The cage's side of the page: what a click means, the controls there are, the cage, the motion and the weights."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from pliant.app.studio.echoes import Echoes
from pliant.app.studio.option_widgets import option_slider
from pliant.app.studio.panel import Desk, Document
from pliant.engines.transfer.app.panel_document import (
    MOTION_NAMES,
    WEIGHTS,
    Chosen,
    Kind,
    by_hand,
    controls_in,
    stretch_of,
)
from pliant.engines.transfer.options import TransferOptions, Weights

CLICKS: dict[str, Kind] = {
    "Move this point": "positions",
    "Turn and stretch here": "gradients",
    "Keep a length": "lengths",
}
"""What a click on the target can mean."""
WEIGHT_WORDS = {
    "smooth": "Smoothness",
    "gradient": "Turns count",
    "position": "Points count",
    "length": "Lengths count",
}
NOTHING, OWN = "Nothing (posed by hand)", "As the scene says"
"""Choices of motions beside the built-in ones."""
UNEVEN = "*It stretches each direction in its own way, as the scene says. **Let it rest** to stretch it evenly.*"
LARGEST_WEIGHT = 100.0
MOST_STRETCH = 3.0
MOST_FRAMES = 120


class Wishes(Protocol):
    """What the widgets ask for; the panel does it."""

    def choose(self, which: Chosen | None) -> None: ...

    def stretch(self, factor: float) -> None: ...

    def let_rest(self) -> None: ...

    def remove(self) -> None: ...

    def begin_anew(self) -> None: ...

    def weigh(self, name: str, value: float) -> None: ...

    def set_frames(self, count: int) -> None: ...

    def show_cage(self, shown: bool) -> None: ...

    def see_through(self, through: bool) -> None: ...

    def build(self, faces: int, margin: float) -> None: ...

    def follow(self, gallery: str | None) -> None: ...

    def show_pieces(self, shown: bool) -> None: ...


class Widgets:
    """Made in the folder that is open; `show` brings them up to date with a document."""

    def __init__(self, desk: Desk, wishes: Wishes, document: Document) -> None:
        self._desk, self._wishes, self._echoes = desk, wishes, Echoes(desk)
        self._listed: dict[str, Chosen] = {}
        self._chosen: Chosen | None = None
        gui = desk.gui
        self.controls = gui.add_folder("Controls")
        with self.controls:
            self._build_controls(gui)
        with gui.add_folder("Follow a motion"):
            self._build_motion(gui)
        with gui.add_folder("Cage"):
            self._build_cage(gui, document)
        with gui.add_folder("What counts how much", expand_by_default=False):
            self._build_weights(gui, document)

    @property
    def click(self) -> Kind:
        """What a click on the target means."""
        return CLICKS[self._click.value]

    def show(self, document: Document, chosen: Chosen | None) -> None:
        """Bring them up to date."""
        self.controls.visible, self._chosen = by_hand(document), chosen
        self._listed = {which.words: which for which in controls_in(document)}
        names = tuple(self._listed) or ("(none)",)
        self._echoes.show(self._list, names[0] if chosen is None else chosen.words, names)
        self._show_stretch(document["gradients"][chosen.number] if chosen and chosen.kind == "gradients" else None)
        self._rest.disabled = self._remove.disabled = chosen is None
        self._echoes.show(self._frames, document.get("frames", 1))
        self._show_motion(document)

    def _show_stretch(self, entry: Document | None) -> None:
        """What the chosen control stretches, if it is one that does."""
        factor = None if entry is None else stretch_of(entry)
        self._stretch.visible = factor is not None
        self._uneven.visible = entry is not None and factor is None
        if factor is not None:
            self._echoes.show(self._stretch, round(factor, 2))

    def tell_pieces(self, words: str) -> None:
        """Say which piece of the motion moves what."""
        self._pieces.content = words

    # How they are made

    def _build_controls(self, gui: Any) -> None:
        self._click = gui.add_dropdown("A click on the shape", tuple(CLICKS), hint="What a click on the shape places.")
        self._list = gui.add_dropdown("Chosen", ("(none)",), hint="Or click on a ball, or drag its handle.")
        self._stretch = gui.add_slider(
            "Stretch", min=0.3, max=MOST_STRETCH, step=0.01, initial_value=1.0, visible=False,
            hint="How many times larger the shape gets here.",
        )  # fmt: skip
        self._uneven = gui.add_markdown(UNEVEN, visible=False)
        self._rest = gui.add_button("Let it rest", hint="Back to how the shape is at rest here.")
        self._remove = gui.add_button("Remove it")
        anew = gui.add_button("Begin anew", hint="Remove all controls and let the shape rest.")
        self._frames = gui.add_slider(
            "Frames on the way", min=1, max=MOST_FRAMES, step=1, initial_value=1,
            hint="A clip from the rest to this pose; 1 is the pose alone.",
        )  # fmt: skip
        self._echoes.on(self._list, self._choose)
        self._echoes.on(self._stretch, self._wishes.stretch)
        self._echoes.on(self._frames, lambda count: self._wishes.set_frames(int(count)))
        self._desk.on(self._rest, self._wishes.let_rest)
        self._desk.on(self._remove, self._wishes.remove)
        self._desk.on(anew, self._wishes.begin_anew)

    def _choose(self, words: str) -> None:
        which = self._listed.get(words)
        if which is not None and which != self._chosen:
            self._wishes.choose(which)

    def _build_motion(self, gui: Any) -> None:
        self._motion = gui.add_dropdown(
            "Motion", (NOTHING, *MOTION_NAMES.values()), hint="Or open a file: .bvh, .glb, a sequence of meshes."
        )
        self._shown = gui.add_checkbox("Show what follows what", True, visible=False)
        self._pieces = gui.add_markdown("")
        self._echoes.on(self._motion, self._follow)
        self._echoes.on(self._shown, self._wishes.show_pieces)

    def _follow(self, words: str) -> None:
        if words != OWN:
            self._wishes.follow(next((name for name, known in MOTION_NAMES.items() if known == words), None))

    def _show_motion(self, document: Document) -> None:
        moves = not by_hand(document)
        sources = list(document.get("sources", {}).values())
        built_in = moves and len(sources) == 1 and "gallery" in sources[0] and document["controls"] == "auto"
        own = (OWN,) if moves and not built_in else ()
        words = MOTION_NAMES[sources[0]["gallery"]] if built_in else OWN if moves else NOTHING
        self._echoes.show(self._motion, words, (NOTHING, *MOTION_NAMES.values(), *own))
        self._shown.visible = self._pieces.visible = moves

    def _build_cage(self, gui: Any, document: Document) -> None:
        said = document.get("cage", {})
        shown = gui.add_checkbox("Show the cage", True)
        through = gui.add_checkbox("See through the shape", False, hint="For controls and lengths inside it.")
        faces = option_slider(
            gui, TransferOptions.about("faces"), "Faces at most", 40, 1000, 10,
            value=min(max(said.get("faces", TransferOptions.faces), 40), 1000),
        )  # fmt: skip
        margin = option_slider(
            gui, TransferOptions.about("margin"), "Room around the shape", 0.004, 0.15, 0.002,
            value=min(max(said.get("margin", TransferOptions.margin), 0.004), 0.15),
        )  # fmt: skip
        build = gui.add_button("Build a cage", hint="Or open a closed mesh around the shape, and it is taken.")
        self._echoes.on(shown, self._wishes.show_cage)
        self._echoes.on(through, self._wishes.see_through)
        self._desk.on(build, lambda: self._wishes.build(int(faces.value), float(margin.value)))

    def _build_weights(self, gui: Any, document: Document) -> None:
        said = document.get("weights", {})
        for name, words in WEIGHT_WORDS.items():
            value = min(max(float(said.get(name, WEIGHTS[name])), 0.1), LARGEST_WEIGHT)
            slider = option_slider(gui, Weights.about(name), words, 0.1, LARGEST_WEIGHT, 0.1, value=value)
            self._echoes.on(slider, partial(self._wishes.weigh, name))
