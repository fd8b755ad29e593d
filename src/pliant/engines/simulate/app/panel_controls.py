"""Widgets for an elastic body: what it is made of, poses over time, and bones that are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pliant.app.studio.widgets import Widgets
from pliant.core.options import Option
from pliant.engines.simulate.app.panel_document import significant
from pliant.engines.simulate.options import MATERIAL_FOLDER, POSES_FOLDER, SimulateOptions

if TYPE_CHECKING:
    from pliant.engines.simulate.app.panel import ElasticPanel
    from pliant.engines.simulate.app.panel_drawing import DrawingMode

WHOLE_BODY = "the whole body"
POSES_BY_HAND, FOLLOWED = "my poses", "the motion"
FIRMNESS = {
    "marks": ((3.0, "jelly"), (5.0, "flesh"), (7.0, "rubber")),
    "hint": "Young's modulus: 3 is 1 kPa, 5 is 100 kPa, 7 is 10 MPa. It shows with gravity or inertia.",
}


class MaterialControls:
    """Sliders of material, gravity and detail."""

    def __init__(self, panel: ElasticPanel) -> None:
        self._panel, self._widgets, gui = panel, panel.widgets, panel.desk.gui
        with gui.add_folder(MATERIAL_FOLDER):
            self.part = gui.add_dropdown(
                "Material of", (WHOLE_BODY,), initial_value=WHOLE_BODY, hint="All of it, or the flesh of one bone."
            )
            self._widgets.on(self.part, lambda part: self.show())
            shown = SimulateOptions.all(folder=MATERIAL_FOLDER)
            self._options = self._widgets.options(shown, self._value, self._set, {"young": FIRMNESS})

    def name_parts(self, joints: Sequence[str]) -> None:
        """Let parts of the body be chosen, by the joints they are nearest to."""
        part = self.part.value
        self._widgets.show(self.part, part if part in joints else WHOLE_BODY, (WHOLE_BODY, *joints))
        self.show()

    def _value(self, about: Option) -> Any:
        """Of the chosen part, or else of the body."""
        for region in self._panel.draft.get("regions", []):
            if region.get("name") == self.part.value and about.table == "material":
                return region.get(about.name, self._panel.value_of(about))
        return self._panel.value_of(about)

    def show(self) -> None:
        """Have the sliders show what the draft has."""
        for widget in self._options.values():
            widget.show(self._value(widget.about))

    def _set(self, about: Option, value: Any) -> None:
        part, draft = self.part.value, self._panel.draft
        if part == WHOLE_BODY or about.table != "material":
            self._panel.set_option(about, value)
            return
        regions = [dict(region) for region in draft.get("regions", [])]
        mine = next((region for region in regions if region.get("name") == part), None)
        if mine is None:
            regions.append(mine := {"name": part})
        mine[about.name] = significant(value)[0]
        draft.put("regions", regions)
        self._panel.changed()


class PoseControls:
    """Bones to choose, keys, and how time passes."""

    def __init__(self, panel: ElasticPanel) -> None:
        self._panel, self._draft, self._changed = panel, panel.draft, panel.changed
        self._widgets, gui = panel.widgets, panel.desk.gui
        on, button = self._widgets.on, partial(self._widgets.button, disabled=True)
        with gui.add_folder("Turn bones"):
            self.joint = gui.add_dropdown("Bone", ("...",), hint="Or click the body where the bone is.")
            self._buttons = [
                button("Straighten this bone", panel.straighten, hint="As it is at rest, against its parent."),
                button("All bones to rest", panel.to_rest, hint="At this frame."),
            ]
            see = gui.add_checkbox("See the bones", True, hint="Drawn over the body.")
        with gui.add_folder(POSES_FOLDER):
            self.follow = gui.add_dropdown(
                "The bones follow", (POSES_BY_HAND,), visible=False, hint="Your poses, or a motion that was opened."
            )
            hint = "The body lags and swings, live while you turn a bone, and when it plays."
            self.inertia = gui.add_checkbox("With inertia", not self._draft.static, hint=hint)
            shake = button("Shake", panel.shake, hint="A quick there and back, to see the body wobble.")
            self.listed = gui.add_markdown("")
            self._buttons += [
                shake,
                button("Set a key here", panel.set_key, hint="Keep this pose at the timeline's frame."),
                button("Add a pose later", panel.add_pose, hint="Half a second after the last one, to be changed."),
                button(
                    "Remove the key here", lambda: panel.remove_key(panel.frames.frame), hint="Or Del, on the timeline."
                ),
            ]
            self.options = panel.add_options(POSES_FOLDER, SimulateOptions)
        on(self.joint, panel.choose)
        on(see, panel.see_bones)
        on(self.inertia, self._set_inertia)
        on(self.follow, self._set_followed)

    def show(self) -> None:
        """What the draft has, once there are bones."""
        hand, static = self._draft.by_hand, self._draft.static
        self._widgets.show(self.inertia, not static)
        self._panel.show_options()
        times = ", ".join(f"{key.get('time', 0.0):.2f}" for key in self._draft.keys)
        self.listed.content = (
            f"Keys at {times} s" if hand else "The bones follow a motion; choose **my poses** to pose them."
        )
        for button in self._buttons:
            button.disabled = not hand
        if self._draft.followed is not None:
            self._widgets.show(self.follow, POSES_BY_HAND if hand else FOLLOWED, (POSES_BY_HAND, FOLLOWED))
            self.follow.visible = True

    def name_joints(self, joints: Sequence[str], chosen: str) -> None:
        """The joints that there are."""
        self._widgets.show(self.joint, chosen, tuple(joints))

    def _set_inertia(self, inertia: bool) -> None:
        self._draft.put("static", None if inertia else True)
        self._changed(watch=True)

    def _set_followed(self, label: str) -> None:
        self._draft.by_hand = label == POSES_BY_HAND
        self._changed(watch=True)


class DrawControls:
    """Bones by clicks."""

    def __init__(self, widgets: Widgets, mode: DrawingMode) -> None:
        self._widgets, gui = widgets, widgets.desk.gui
        button = partial(widgets.button, disabled=True)
        with gui.add_folder("Draw bones", expand_by_default=False):
            hint = "Click through the body to add joints, each on the chosen one."
            self.draw = gui.add_checkbox("Draw by clicking", False, hint=hint)
            self._buttons = [
                button("Remove all joints", mode.clear, hint="The next click sets the root."),
                button("Find the bones", mode.find, hint="From the shape alone."),
            ]
            self.name = gui.add_text("Name of the joint", "", disabled=True, hint="Of the one that was clicked last.")
            self.rename = button(
                "Rename it", lambda: mode.rename(self.name.value), hint="What is said of it goes along."
            )
            self._buttons.append(
                button("Put flesh on the bones", lambda: mode.switch(False), hint="When they are done.")
            )
        widgets.on(self.draw, mode.switch)

    def show(self, drawing: bool, chosen: str | None) -> None:
        """Whether bones are drawn, and the joint that the next one is a child of."""
        self._widgets.show(self.draw, drawing)
        for button in self._buttons:
            button.disabled = not drawing
        self.name.disabled = self.rename.disabled = not drawing or chosen is None
        self.name.value = chosen or ""
