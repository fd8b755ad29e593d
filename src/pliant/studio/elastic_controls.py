"""Widgets for flesh on bones: what the flesh is made of, poses over time, and bones that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pliant.elastic import Material
from pliant.studio.elastic_draft import Draft, rounded
from pliant.studio.panel import Desk

WHOLE = "the whole body"
SOFT = Material()
NODES = 3000


class FleshControls:
    """Sliders of material, gravity and detail. changed: called when what they say has changed."""

    def __init__(self, desk: Desk, draft: Draft, changed: Callable[[], None]) -> None:
        self._desk, self._draft, self._changed = desk, draft, changed
        gui, get = desk.gui, draft.get
        with gui.add_folder("Flesh") as self.folder:
            self.part = gui.add_dropdown("Material of", (WHOLE,), initial_value=WHOLE)
            self.young = gui.add_slider(
                "Firmness", 3.0, 7.0, 0.05, 5.0, marks=((3.0, "jelly"), (5.0, "flesh"), (7.0, "rubber")),
                hint="Young's modulus: 3 is 1 kPa, 5 is 100 kPa, 7 is 10 MPa. It shows with gravity or inertia.",
            )  # fmt: skip
            self.poisson = gui.add_slider("Keeps its volume", 0.0, 0.49, 0.01, 0.4, hint="Poisson's ratio.")
            self.density = gui.add_slider("Density", 100.0, 3000.0, 50.0, 1000.0, hint="Kilograms per cubic metre.")
            down = get("gravity", 0.0)
            self.gravity = gui.add_slider(
                "Gravity", 0.0, 30.0, 0.01, down if isinstance(down, (int, float)) and 0 <= down <= 30 else 9.81,
                hint="Metres per second squared; 9.81 on earth.",
            )  # fmt: skip
            self.nodes = gui.add_slider(
                "Detail", 300, 10_000, 100, min(max(get("nodes", NODES), 300), 10_000),
                hint="How many points carry the flesh. The body is made anew, which takes seconds.",
            )  # fmt: skip
        self._show()
        desk.on(self.part, self._show)
        for name in ("young", "poisson", "density"):
            desk.on(getattr(self, name), self._setter(name))
        desk.on(self.gravity, lambda: self._put("gravity", self.gravity.value, get("gravity", 0.0)))
        desk.on(self.nodes, lambda: self._put("nodes", int(self.nodes.value), get("nodes", NODES)))

    def name_parts(self, joints: Sequence[str]) -> None:
        """Let parts of the flesh be chosen, by the joints they are nearest to."""
        self.part.options = (WHOLE, *joints)
        if self.part.value not in self.part.options:
            self.part.value = WHOLE

    def _said(self, name: str) -> float:
        """What is said of the chosen part, or else of the body."""
        body = self._draft.get(name, getattr(SOFT, name), "material")
        for region in self._draft.get("regions", []):
            if region.get("name") == self.part.value:
                return float(region.get(name, body))
        return float(body)

    def _show(self) -> None:
        self.young.value = min(max(round(math.log10(self._said("young")), 2), 3.0), 7.0)
        self.poisson.value = min(max(self._said("poisson"), 0.0), 0.49)
        self.density.value = min(max(self._said("density"), 100.0), 3000.0)

    def _setter(self, name: str) -> Callable[[], None]:
        def changed() -> None:
            value, known = float(getattr(self, name).value), self._said(name)
            shown = min(max(round(math.log10(known), 2), 3.0), 7.0) if name == "young" else known
            if abs(value - shown) < 1e-9:
                return
            self._say(name, float(f"{10**value:.4g}") if name == "young" else rounded(value)[0])
            self._changed()

        return changed

    def _say(self, name: str, value: float) -> None:
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

    def _put(self, key: str, value: float, known: Any) -> None:
        if value != known:
            self._draft.put(key, value)
            self._changed()


@dataclass(frozen=True)
class PoseActions:
    """What pose controls do."""

    choose: Callable[[], None]
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
        self._draft, self._do, gui = draft, do, desk.gui
        with gui.add_folder("Turn bones") as self.folder:
            self.joint = gui.add_dropdown("Bone", ("...",), hint="Or click the body where the bone is.")
            self.straighten = gui.add_button("Straighten this bone")
            self.rest = gui.add_button("All bones to rest")
            self.see = gui.add_checkbox("See the bones", True)
        with gui.add_folder("Poses over time") as self.time_folder:
            self.follow = gui.add_dropdown("The bones follow", (BY_HAND,), visible=False)
            self.inertia = gui.add_checkbox(
                "With inertia",
                not draft.static,
                hint="Flesh lags and swings, live while you turn a bone, and when it plays.",
            )
            self.shake = gui.add_button("Shake", hint="A quick there and back, to see the flesh wobble.")
            self.listed = gui.add_markdown("")
            self.set_key = gui.add_button("Set a key here", hint="Keep this pose at the timeline's place.")
            self.add_pose = gui.add_button("Add a pose later", hint="Half a second after the last one, to be changed.")
            self.remove_key = gui.add_button("Remove the key here")
            self.damping = gui.add_slider(
                "Damping", 0.0, 0.1, 0.001, min(draft.get("damping", 0.005), 0.1),
                hint="Seconds: how soon flesh stops swinging.",
            )  # fmt: skip
            self.hold = gui.add_slider(
                "Go on at the end", 0.0, 5.0, 0.1, min(draft.get("hold", 0.0), 5.0),
                hint="Seconds to go on in the last pose.",
            )  # fmt: skip
        desk.on(self.joint, do.choose)
        for button, done in (
            (self.straighten, do.straighten), (self.rest, do.to_rest), (self.set_key, do.set_key),
            (self.add_pose, do.add_pose), (self.remove_key, do.remove_key), (self.shake, do.shake),
        ):  # fmt: skip
            desk.on(button, done)
        desk.on(self.see, lambda: do.see_bones(self.see.value))
        desk.on(self.inertia, self._inert)
        desk.on(self.follow, self._followed)
        desk.on(self.damping, lambda: self._put("damping", self.damping.value, 0.005))
        desk.on(self.hold, lambda: self._put("hold", self.hold.value, 0.0))

    def show(self) -> None:
        """What the draft says."""
        hand, static = self._draft.by_hand, self._draft.static
        self.inertia.value = not static
        self.damping.visible = self.hold.visible = not static
        if not static:
            self.hold.value = min(float(self._draft.get("hold", 0.0)), 5.0)
        times = ", ".join(f"{key.get('time', 0.0):.2f}" for key in self._draft.keys)
        self.listed.content = (
            f"Keys at {times} s" if hand else "The bones follow a motion; turn to **my poses** to pose."
        )
        buttons = (self.straighten, self.rest, self.set_key, self.add_pose, self.remove_key, self.shake)
        for button in buttons:
            button.disabled = not hand
        if self._draft.followed is not None:
            self.follow.options = (BY_HAND, FOLLOWED)
            self.follow.value = BY_HAND if hand else FOLLOWED
            self.follow.visible = True

    def name_joints(self, joints: Sequence[str], chosen: str) -> None:
        """The joints that there are."""
        if tuple(self.joint.options) != tuple(joints):
            self.joint.options = tuple(joints)
        self.joint.value = chosen

    def _inert(self) -> None:
        if self.inertia.value == self._draft.static:
            self._draft.put("static", None if self.inertia.value else True)
            self._do.changed(True)

    def _followed(self) -> None:
        by_hand = self.follow.value == BY_HAND
        if by_hand != self._draft.by_hand:
            self._draft.by_hand = by_hand
            self._do.changed(True)

    def _put(self, key: str, value: float, otherwise: float) -> None:
        if value != self._draft.get(key, otherwise):
            self._draft.put(key, rounded(value)[0])
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
        gui = desk.gui
        with gui.add_folder("Draw bones", expand_by_default=False) as self.folder:
            self.draw = gui.add_checkbox(
                "Draw by clicking", False, hint="Click through the body to add joints, each on the chosen one."
            )
            self.back = gui.add_button("Take back", disabled=True)
            self.anew = gui.add_button("Start anew", disabled=True)
            self.find = gui.add_button("Find the bones", disabled=True, hint="From the shape alone.")
            self.name = gui.add_text("Name of the joint", "", disabled=True)
            self.rename = gui.add_button("Rename it", disabled=True)
            self.done = gui.add_button("Put flesh on the bones", disabled=True)
        desk.on(self.draw, lambda: do.draw(self.draw.value))
        for button, act in ((self.back, do.take_back), (self.anew, do.start_anew), (self.find, do.find)):
            desk.on(button, act)
        desk.on(self.done, lambda: do.draw(False))
        desk.on(self.rename, lambda: do.rename(self.name.value))

    def show(self, drawing: bool, chosen: str | None) -> None:
        """Whether bones are drawn, and the joint that the next one hangs on."""
        self.draw.value = drawing
        for widget in (self.back, self.anew, self.find, self.done):
            widget.disabled = not drawing
        self.name.disabled = self.rename.disabled = not drawing or chosen is None
        self.name.value = chosen or ""
