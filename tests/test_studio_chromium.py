"""Random actions of a hand in a real browser: no error in the log or the page; the saved scene gives what is shown."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra studio is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from pliant.app.scene import read_scene
from test_studio_browser import CREATURE, HAND, MAN, browser, close_messages, drag, visit
from test_studio_monkey import outcome

pytestmark = pytest.mark.slow
__all__ = ["browser", "visit"]
ACTIONS, PATIENCE = 200, 120.0
KEYS = [
    "Space", "ArrowLeft", "ArrowRight", "Home", "End", "k", "Delete", "f", "1", "3", "7", "Control+z", "Control+z",
    "Control+Shift+z",
]  # fmt: skip
LONG = {  # what opens another scene, waits for a file, or takes long
    "Open", "Upload a file", "Save the scene", "Export the clip", "Save a picture", "Save a film", "Build the cage",
    "Find the bones", "Guided start", "Panel", "Draw lines",
}  # fmt: skip


class Hand:
    """What a hand does at random on a page."""

    def __init__(self, page: Any, session: Any, seed: int) -> None:
        self.page, self.session, self.rng = page, session, np.random.default_rng(seed)
        self.done: list[str] = []

    def act(self) -> None:
        kind = str(
            self.rng.choice(["click", "drag", "key", "button", "slider", "box"], p=[0.15, 0.25, 0.2, 0.2, 0.15, 0.05])
        )
        self.done.append(kind)
        getattr(self, kind)()

    def place(self) -> tuple[float, float]:
        view = self.session.client.camera
        across, down = self.rng.uniform(0.15, 0.85, 2)
        return float(across * view.image_width), float(down * view.image_height)

    def click(self) -> None:
        self.page.mouse.click(*self.place())

    def drag(self) -> None:
        shift = self.rng.random() < 0.5
        if shift:
            self.page.keyboard.down("Shift")
        start = self.place()
        drag(self.page, start, tuple(at + by for at, by in zip(start, self.rng.normal(0, 40, 2), strict=True)), steps=3)
        if shift:
            self.page.keyboard.up("Shift")

    def key(self) -> None:
        self.done.append(str(self.rng.choice(KEYS)))
        self.page.keyboard.press(self.done[-1])

    def _one(self, selector: str) -> Any:
        """Some element that is seen."""
        some = [one for one in self.page.query_selector_all(selector) if one.is_visible() and one.is_enabled()]
        return some[self.rng.integers(len(some))] if some else None

    def button(self) -> None:
        one = self._one("#pliant button, .mantine-Button-root")
        name = "" if one is None else (one.get_attribute("aria-label") or one.inner_text()).strip()
        if one is not None and name not in LONG:
            self.done.append(name)
            one.evaluate("button => button.click()")

    def slider(self) -> None:
        """A number beside a slider, or in the bar."""
        one = self._one("input.mantine-NumberInput-input, #pliant input[type=number]")
        if one is not None:
            self.done.append(f"{self.rng.uniform(0, 1):.2f}")
            one.fill(self.done[-1])
            one.press("Enter")

    def box(self) -> None:
        one = self._one("input[type=checkbox]")
        if one is not None:
            one.evaluate("box => box.click()")


@pytest.mark.parametrize("document", [HAND, MAN, CREATURE], ids=lambda document: document["engine"])
@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
def test_random_actions_of_a_hand_leave_no_error_and_a_scene_that_runs(
    visit: Any, document: Any, caplog: pytest.LogCaptureFixture
) -> None:
    window = visit(document)
    page, session, errors = window.page, window.session, []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: dialog.dismiss())
    close_messages(page)
    hand = Hand(page, session, seed=2)
    for _ in range(ACTIONS):
        hand.act()
        assert not errors, hand.done[-8:]
        assert "inside pliant" not in page.inner_text("body"), hand.done[-8:]
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR], hand.done[-8:]
    session.timeline.scrub(0)
    while isinstance(shown := outcome(lambda: session.scene(session.panel.document())), str):
        page.keyboard.press("Control+z")  # what the page has said to be impossible
        page.wait_for_timeout(500)
        assert session.live.idle(PATIENCE)
    path = session.save("hand")
    np.testing.assert_array_equal(outcome(lambda: read_scene(path)), shown)
