"""The cage's side of the page: what a click means, the controls there are, the cage, the motion and the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant.app.studio.desk import Document
from pliant.app.studio.pairing import Pairing
from pliant.engines.transfer.app.panel_document import (
    MOTION_NAMES,
    Chosen,
    ControlKind,
    by_hand,
    controls_in,
    stretch_of,
)
from pliant.engines.transfer.app.panel_motion import piece_summary
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.options import (
    CAGE_FOLDER,
    WEIGHTS_FOLDER,
    CageOptions,
    PosedOptions,
    TransferOptions,
    Weights,
)
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.matching import LimbMatch, UnsureMatchError

if TYPE_CHECKING:
    from pliant.engines.transfer.app.panel import CagePanel

CLICKS: dict[str, ControlKind] = {
    "Move this point": "positions",
    "Turn and stretch here": "gradients",
    "Keep a length": "lengths",
}
"""What a click on the target can mean."""
NO_SOURCE, SCENE_SOURCES = "Nothing (posed by hand)", "As the scene says"
"""Choices of motions beside the built-in ones."""
UNEVEN = "*It stretches each direction in its own way, as the scene says. **Reset it** to stretch it evenly.*"
LARGEST_SLIDER_STRETCH = 3.0
MOST_PATH_FRAMES = 120


class CageWidgets:
    """Those of a panel; `show` brings them up to date with a document."""

    def __init__(self, panel: CagePanel) -> None:
        self._panel, self._widgets = panel, panel.widgets
        self._listed: dict[str, Chosen] = {}
        self._chosen: Chosen | None = None
        gui = panel.desk.gui
        self.controls = gui.add_folder("Controls")
        with self.controls:
            self._build_controls(gui)
        with gui.add_folder("Follow a motion"):
            self._build_motion(gui)
        with gui.add_folder(CAGE_FOLDER):
            self._build_cage(gui)
        with gui.add_folder(WEIGHTS_FOLDER, expand_by_default=False):
            panel.add_options(WEIGHTS_FOLDER, Weights)
        self._further = panel.add_further_options(TransferOptions)

    @property
    def click(self) -> ControlKind:
        """What a click on the target means."""
        return CLICKS[self._click.value]

    def show(self, document: Document, chosen: Chosen | None) -> None:
        """Bring them up to date."""
        self.controls.visible, self._chosen = by_hand(document), chosen
        self._listed = {which.label: which for which in controls_in(document)}
        names = tuple(self._listed) or ("(none)",)
        self._widgets.show(self._list, names[0] if chosen is None else chosen.label, names)
        self._show_stretch(document["gradients"][chosen.number] if chosen and chosen.kind == "gradients" else None)
        self._rest.disabled = self._remove.disabled = chosen is None
        self._widgets.show(self._frames, document.get("frames", 1))
        self._show_motion(document)
        shown = (PosedOptions if by_hand(document) else TransferOptions).names(folder="")
        for name, option in self._further.items():
            option.widget.visible = name in shown

    def _show_stretch(self, entry: Document | None) -> None:
        """What the chosen control stretches, if it is one that does."""
        factor = None if entry is None else stretch_of(entry)
        self._stretch.visible = factor is not None
        self._uneven.visible = entry is not None and factor is None
        if factor is not None:
            self._widgets.show(self._stretch, round(factor, 2))

    def show_pieces(self, result: Transfer | None) -> None:
        """Say which piece of the motion moves what: limbs by their names, where they were matched."""
        found = None if result is None else result.registered
        self._pieces.content = "" if result is None or found is not None else piece_summary(result)
        if found is None:
            self.pairing.show({}, ())
            return
        facts = {about: fact for about, fact in found.facts().items() if about in ("dropped", "resting", "also")}
        doubts = [f"**{about.capitalize()}**: {fact}." for about, fact in facts.items()]
        sure = f"Matched: **{found.match.certainty}**."
        self._show_limbs(found.match, found.source.body, found.target, [sure, *doubts, *found.match.doubts])

    def show_unsure(self, unsure: UnsureMatchError) -> None:
        """Have limbs paired that could not be matched."""
        sure = "The limbs are not sure to match: **choose what each is to follow**, or take the pairs as they are."
        doubts = [doubt.partition("; give --")[0] for doubt in unsure.match.doubts]  # options of the command line
        self._show_limbs(unsure.match, unsure.source, unsure.target, [sure, *doubts], asks=True)

    def _show_limbs(
        self, match: LimbMatch, source: OrientedBody, target: OrientedBody, lines: list[str], *, asks: bool = False
    ) -> None:
        ours, theirs = target.anatomy, source.anatomy
        followed = {ours.named(b): theirs.named(a) for a, b in match.pairs}
        limbs = {name: followed.get(name, "") for name in map(ours.named, ours.limbs)}
        listed = "\n".join(f"- {line}" for line in lines)
        self.pairing.show(limbs, [theirs.named(limb) for limb in theirs.limbs], listed, asks=asks)

    # How they are made

    def _build_controls(self, gui: Any) -> None:
        self._click = gui.add_dropdown("A click on the shape", tuple(CLICKS), hint="What a click on the shape places.")
        self._list = gui.add_dropdown("Chosen", ("(none)",), hint="Or click on a ball, or drag its handle.")
        self._stretch = gui.add_slider(
            "Stretch", min=0.3, max=LARGEST_SLIDER_STRETCH, step=0.01, initial_value=1.0, visible=False,
            hint="How many times larger the shape gets here.",
        )  # fmt: skip
        self._uneven = gui.add_markdown(UNEVEN, visible=False)
        button = self._widgets.button
        self._rest = button("Reset it", self._panel.reset, hint="Back to how the shape is at rest here.")
        self._remove = button("Remove it", self._panel.remove, hint="As Del does.")
        button("Remove all controls", self._panel.remove_all, hint="And reset the shape.")
        self._frames = gui.add_slider(
            "Frames to this pose", min=1, max=MOST_PATH_FRAMES, step=1, initial_value=1,
            hint="A clip from the rest to this pose; 1 is the pose alone.",
        )  # fmt: skip
        self._widgets.on(self._list, self._choose)
        self._widgets.on(self._stretch, self._panel.stretch)
        self._widgets.on(self._frames, lambda count: self._panel.set_frames(int(count)))

    def _choose(self, label: str) -> None:
        which = self._listed.get(label)
        if which is not None and which != self._chosen:
            self._panel.choose(which)

    def _build_motion(self, gui: Any) -> None:
        self._motion = gui.add_dropdown(
            "Motion", (NO_SOURCE, *MOTION_NAMES.values()), hint="Or open a file: .bvh, .glb, a sequence of meshes."
        )
        self._shown = gui.add_checkbox("Show what follows what", True, visible=False, hint="In one colour each.")
        self._pieces = gui.add_markdown("")
        self.pairing = Pairing(self._widgets, "Which limb follows which", self._panel.pair)
        self._widgets.on(self._motion, self._follow)
        self._widgets.on(self._shown, self._panel.show_pieces)

    def _follow(self, label: str) -> None:
        if label != SCENE_SOURCES:
            self._panel.follow(next((name for name, known in MOTION_NAMES.items() if known == label), None))

    def _show_motion(self, document: Document) -> None:
        moves = not by_hand(document)
        sources = list(document.get("sources", {}).values())
        built_in = moves and len(sources) == 1 and "gallery" in sources[0] and document["controls"] == "auto"
        own = (SCENE_SOURCES,) if moves and not built_in else ()
        label = MOTION_NAMES[sources[0]["gallery"]] if built_in else SCENE_SOURCES if moves else NO_SOURCE
        self._widgets.show(self._motion, label, (NO_SOURCE, *MOTION_NAMES.values(), *own))
        self._shown.visible = self._pieces.visible = moves

    def _build_cage(self, gui: Any) -> None:
        shown = gui.add_checkbox("Show the cage", True, hint="Which moves the shape.")
        through = gui.add_checkbox("See through the shape", False, hint="For controls and lengths inside it.")
        self._widgets.on(shown, self._panel.show_cage)
        self._widgets.on(through, self._panel.see_through)
        hint = "Drag the cage's vertices, around the shape at rest."
        self._widgets.on(gui.add_checkbox("Edit the cage", False, hint=hint), self._panel.edit_cage)
        options = CageOptions.all(folder=CAGE_FOLDER)
        built = self._widgets.options(options, self._panel.value_of, lambda about, value: None)
        hint = "Or open a closed mesh around the shape, and it is taken."
        self._widgets.button("Build a cage", lambda: self._panel.build_cage(built), hint=hint)
