"""Widgets for flesh on bones: what the flesh is made of, poses over time, and bones that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from pliant.app.studio.echoes import Echoes
from pliant.app.studio.option_widgets import option_slider
from pliant.app.studio.panel import Desk
from pliant.engines.simulate.app.panel_document import Draft, significant
from pliant.engines.simulate.options import SimulateOptions

WHOLE = "the whole body"


class FleshControls:
    """Sliders of material, gravity and detail. changed: called when what they say has changed."""

    def __init__(self, desk: Desk, draft: Draft, changed: Callable[[], None]) -> None:
        self._draft, self._changed, self._echoes = draft, changed, Echoes(desk)
        gui = desk.gui
        with gui.add_folder("Flesh"):
            self.part = gui.add_dropdown("Material of", (WHOLE,), initial_value=WHOLE)
            about = SimulateOptions.about
            self.young = gui.add_slider(
                "Firmness", 3.0, 7.0, 0.05, math.log10(SimulateOptions.young),
                marks=((3.0, "jelly"), (5.0, "flesh"), (7.0, "rubber")),
                hint="Young's modulus: 3 is 1 kPa, 5 is 100 kPa, 7 is 10 MPa. It shows with gravity or inertia.",
            )  # fmt: skip
            self.poisson = option_slider(gui, about("poisson"), "Keeps its volume", 0.0, 0.49, 0.01)
            self.density = option_slider(gui, about("density"), "Density", 100.0, 3000.0, 50.0)
            self.gravity = option_slider(gui, about("gravity"), "Gravity", 0.0, 30.0, 0.01)
            self.nodes = option_slider(gui, about("nodes"), "Detail", 300, 10_000, 100)
        on = self._echoes.on
        on(self.part, lambda part: self._show_material())
        for name in ("young", "poisson", "density"):
            on(getattr(self, name), partial(self._say, name))
        on(self.gravity, partial(self._put, "gravity"))
        on(self.nodes, partial(self._put, "nodes"))
        self._show_gravity()
        self._echoes.show(self.nodes, draft.get("nodes", SimulateOptions.nodes))
        self._show_material()

    def name_parts(self, joints: Sequence[str]) -> None:
        """Let parts of the flesh be chosen, by the joints they are nearest to."""
        part = self.part.value
        self._echoes.show(self.part, part if part in joints else WHOLE, (WHOLE, *joints))
        self._show_material()

    def _said(self, name: str) -> float:
        """What is said of the chosen part, or else of the body."""
        body = self._draft.get(name, getattr(SimulateOptions, name), "material")
        for region in self._draft.get("regions", []):
            if region.get("name") == self.part.value:
                return float(region.get(name, body))
        return float(body)

    def _show_material(self) -> None:
        self._echoes.show(self.young, round(math.log10(self._said("young")), 2))
        for name in ("poisson", "density"):
            self._echoes.show(getattr(self, name), self._said(name))

    def _show_gravity(self) -> None:
        down = self._draft.get("gravity", 0.0)
        if isinstance(down, (int, float)):
            self._echoes.show(self.gravity, down)
            return
        self._echoes.show(self.gravity, math.hypot(*down))
        self.gravity.disabled = True
        self.gravity.hint = (
            f"The scene says which way it pulls: {', '.join(f'{x:g}' for x in down)} metres per second squared."
        )

    def _say(self, name: str, shown: float) -> None:
        """What a visitor has a slider of the material show."""
        self._put_material(name, float(f"{10**shown:.4g}") if name == "young" else significant(shown)[0])
        self._changed()

    def _put_material(self, name: str, value: float) -> None:
        part = self.part.value
        if part == WHOLE:
            self._draft.put(name, value, "material")
            return
        regions = [dict(region) for region in self._draft.get("regions", [])]
        mine = next((region for region in regions if region.get("name") == part), None)
        if mine is None:
            regions.append(mine := {"name": part})
        mine[name] = value
        self._draft.put("regions", regions)

    def _put(self, key: str, value: float) -> None:
        self._draft.put(key, value)
        self._changed()


@dataclass(frozen=True)
class PoseActions:
    """What pose controls do."""

    choose: Callable[[str], None]
    straighten: Callable[[], None]
    to_rest: Callable[[], None]
    set_key: Callable[[], None]
    add_pose: Callable[[], None]
    remove_key: Callable[[], None]
    shake: Callable[[], None]
    see_bones: Callable[[bool], None]
    changed: Callable[[bool], None] = field(repr=False)
    """After inertia, what it needs or what the bones follow is changed; whether to show the motion as it is made."""


BY_HAND, FOLLOWED = "my poses", "the motion"


class PoseControls:
    """Bones to choose, keys, and how time passes."""

    def __init__(self, desk: Desk, draft: Draft, do: PoseActions) -> None:
        self._draft, self._do, self._echoes, gui = draft, do, Echoes(desk), desk.gui
        with gui.add_folder("Turn bones"):
            self.joint = gui.add_dropdown("Bone", ("...",), hint="Or click the body where the bone is.")
            self.straighten = gui.add_button("Straighten this bone", disabled=True)
            self.rest = gui.add_button("All bones to rest", disabled=True)
            self.see = gui.add_checkbox("See the bones", True)
        with gui.add_folder("Poses over time"):
            self.follow = gui.add_dropdown("The bones follow", (BY_HAND,), visible=False)
            self.inertia = gui.add_checkbox(
                "With inertia",
                not draft.static,
                hint="Flesh lags and swings, live while you turn a bone, and when it plays.",
            )
            self.shake = gui.add_button("Shake", disabled=True, hint="A quick there and back, to see the flesh wobble.")
            self.listed = gui.add_markdown("")
            self.set_key = gui.add_button(
                "Set a key here", disabled=True, hint="Keep this pose at the timeline's place."
            )
            self.add_pose = gui.add_button(
                "Add a pose later", disabled=True, hint="Half a second after the last one, to be changed."
            )
            self.remove_key = gui.add_button("Remove the key here", disabled=True)
            self.damping = option_slider(gui, SimulateOptions.about("damping"), "Damping", 0.0, 0.1, 0.001)
            self.hold = option_slider(gui, SimulateOptions.about("hold"), "Go on at the end", 0.0, 5.0, 0.1)
        acts = (
            (self.straighten, do.straighten), (self.rest, do.to_rest), (self.set_key, do.set_key),
            (self.add_pose, do.add_pose), (self.remove_key, do.remove_key), (self.shake, do.shake),
        )  # fmt: skip
        for button, done in acts:
            desk.on(button, done)
        self._buttons = tuple(button for button, _ in acts)
        on = self._echoes.on
        on(self.joint, do.choose)
        on(self.see, do.see_bones)
        on(self.inertia, self._inert)
        on(self.follow, self._followed)
        on(self.damping, partial(self._put, "damping"))
        on(self.hold, partial(self._put, "hold"))
        self._echoes.show(self.damping, draft.get("damping", SimulateOptions.damping))

    def show(self) -> None:
        """What the draft says, once there are bones."""
        hand, static = self._draft.by_hand, self._draft.static
        self._echoes.show(self.inertia, not static)
        self.damping.visible = self.hold.visible = not static
        self._echoes.show(self.hold, self._draft.get("hold", SimulateOptions.hold))
        times = ", ".join(f"{key.get('time', 0.0):.2f}" for key in self._draft.keys)
        self.listed.content = (
            f"Keys at {times} s" if hand else "The bones follow a motion; turn to **my poses** to pose."
        )
        for button in self._buttons:
            button.disabled = not hand
        if self._draft.followed is not None:
            self._echoes.show(self.follow, BY_HAND if hand else FOLLOWED, (BY_HAND, FOLLOWED))
            self.follow.visible = True

    def name_joints(self, joints: Sequence[str], chosen: str) -> None:
        """The joints that there are."""
        self._echoes.show(self.joint, chosen, tuple(joints))

    def _inert(self, inertia: bool) -> None:
        self._draft.put("static", None if inertia else True)
        self._do.changed(True)

    def _followed(self, words: str) -> None:
        self._draft.by_hand = words == BY_HAND
        self._do.changed(True)

    def _put(self, key: str, value: float) -> None:
        self._draft.put(key, significant(value)[0])
        self._do.changed(False)


@dataclass(frozen=True)
class DrawActions:
    """What the controls of drawing do."""

    draw: Callable[[bool], None]
    take_back: Callable[[], None]
    start_anew: Callable[[], None]
    find: Callable[[], None]
    rename: Callable[[str], None]


class DrawControls:
    """Bones by clicks."""

    def __init__(self, desk: Desk, do: DrawActions) -> None:
        self._echoes, gui = Echoes(desk), desk.gui
        with gui.add_folder("Draw bones", expand_by_default=False):
            self.draw = gui.add_checkbox(
                "Draw by clicking", False, hint="Click through the body to add joints, each on the chosen one."
            )
            self.back = gui.add_button("Take back", disabled=True)
            self.anew = gui.add_button("Start anew", disabled=True)
            self.find = gui.add_button("Find the bones", disabled=True, hint="From the shape alone.")
            self.name = gui.add_text("Name of the joint", "", disabled=True)
            self.rename = gui.add_button("Rename it", disabled=True)
            self.done = gui.add_button("Put flesh on the bones", disabled=True)
        self._echoes.on(self.draw, do.draw)
        for button, act in ((self.back, do.take_back), (self.anew, do.start_anew), (self.find, do.find)):
            desk.on(button, act)
        desk.on(self.done, lambda: do.draw(False))
        desk.on(self.rename, lambda: do.rename(self.name.value))

    def show(self, drawing: bool, chosen: str | None) -> None:
        """Whether bones are drawn, and the joint that the next one hangs on."""
        self._echoes.show(self.draw, drawing)
        for widget in (self.back, self.anew, self.find, self.done):
            widget.disabled = not drawing
        self.name.disabled = self.rename.disabled = not drawing or chosen is None
        self.name.value = chosen or ""
