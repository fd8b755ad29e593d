"""The studio's own part of the page in a real browser, as a hand uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra studio is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from pliant.app.scene import write_scene
from test_studio_browser import (
    CREATURE,
    HAND,
    MAN,
    NOD,
    browser,
    changed,
    close_messages,
    drag,
    on_page,
    still_picture,
    tick,
    visit,
    wait_for,
)

pytestmark = pytest.mark.slow
__all__ = ["browser", "visit"]
BALL = {"obstacles": [{"what": "sphere:-0.01,0.12,0.045,0.02"}]}
BROKEN_WORDS = """() => [...document.querySelectorAll("label")].flatMap((label) => {
    const texts = document.createTreeWalker(label, NodeFilter.SHOW_TEXT), broken = [];
    for (let text = texts.nextNode(); text; text = texts.nextNode())
        for (const word of text.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            if (range.getClientRects().length > 1) broken.push(word[0]);
        }
    return broken;
})"""


def box(page: Any, where: str) -> dict[str, float]:
    found = page.locator(where).first.bounding_box()
    assert found is not None, where
    return dict(found)


def test_a_narrow_page_has_a_drawer_and_always_a_timeline(visit: Any) -> None:
    page = visit(HAND, size=(480, 720)).page
    still_picture(page)
    drawer = "[data-pliant=drawer]"

    def seen() -> tuple[bool, bool]:
        bar, panel = box(page, "#pliant"), box(page, drawer)
        track = box(page, "#pliant .track")
        inside = track["x"] >= 0 and track["x"] + track["width"] <= 480 and track["y"] + track["height"] <= 720
        return inside and panel["y"] + panel["height"] <= bar["y"] + 1, panel["x"] + panel["width"] <= 481

    wait_for(lambda: page.locator(drawer).count() and seen() == (True, False), "a closed drawer")
    button = page.get_by_role("button", name="Panel")
    button.click()
    wait_for(lambda: seen() == (True, True), "an open drawer above the timeline")
    page.get_by_role("button", name="Add a ball").scroll_into_view_if_needed()
    assert box(page, drawer)["width"] <= 480 - 30
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    page.keyboard.press("Escape")
    wait_for(lambda: seen() == (True, False), "the drawer closed by Escape")


@pytest.mark.parametrize("document", [HAND, MAN, CREATURE], ids=lambda document: document["engine"])
def test_no_label_breaks_in_mid_word(visit: Any, document: Any) -> None:
    page = visit(document).page
    still_picture(page)
    folded = page.locator("[data-pliant-fold][aria-expanded=false]")
    while count := folded.count():
        folded.first.click()
        wait_for(lambda count=count: folded.count() < count, "an unfolded folder")
    page.wait_for_timeout(1000)
    assert page.locator("label").count() > 8
    assert page.evaluate(BROKEN_WORDS) == []


def test_all_is_done_with_the_keyboard_alone(visit: Any) -> None:
    window = visit(HAND | BALL)
    page, session, state = window.page, window.session, window.session.page.state
    still_picture(page)

    def tab_to(where: str) -> None:
        for _ in range(150):
            page.keyboard.press("Tab")
            if page.evaluate("where => !!document.activeElement.closest(where)", where):
                return
        raise AssertionError(f"{where} is not reached by Tab")

    tab_to("#pliant [data-is=object]")
    page.keyboard.press("B")  # the first object whose name begins so
    wait_for(lambda: state["selection"], "the ball as the selection")
    tab_to("#pliant [aria-label=x]")
    before = session.panel.obstacles.shown[0].solid.middle.copy()
    page.keyboard.press("Control+a")
    page.keyboard.type("0.2")
    page.keyboard.press("Enter")
    wait_for(lambda: abs(session.panel.obstacles.shown[0].solid.middle[0] - 0.2) < 1e-9, "the ball where it was typed")
    np.testing.assert_allclose(session.panel.obstacles.shown[0].solid.middle[1:], before[1:], rtol=1e-5)
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    tab_to("#pliant [data-do=set_key]")
    page.keyboard.press("Enter")
    wait_for(lambda: page.locator("#pliant .key").count() == 2, "two keys")
    tab_to("#pliant .key")
    tab_to("#pliant .key")
    page.keyboard.press("ArrowLeft")
    focused = "document.activeElement.dataset.at"
    wait_for(lambda: state["keys"] == [0, 5] and page.evaluate(focused) == "5", "the last key a frame earlier")
    page.keyboard.press("Alt+ArrowLeft")
    wait_for(lambda: state["keys"] == [0, 4, 5] and page.evaluate(focused) == "4", "a copy of it")
    page.keyboard.press("Delete")
    wait_for(lambda: state["keys"] == [0, 5], "the end of the copy")
    tab_to("[data-pliant-fold]")
    was = page.evaluate("document.activeElement.getAttribute('aria-expanded')")
    page.keyboard.press("Enter")
    wait_for(lambda: page.evaluate("document.activeElement.getAttribute('aria-expanded')") != was, "the folder")


def test_objects_are_clicked_and_dragged_themselves(visit: Any) -> None:
    window = visit(HAND | {"obstacles": [{"what": "sphere:0.1,0.1,0,0.02"}, {"what": "sphere:-0.1,0.1,0,0.02"}]})
    page, session = window.page, window.session
    close_messages(page)
    still_picture(page)
    balls = session.panel.obstacles.shown
    at = on_page(session, balls[0].solid.middle)
    page.mouse.click(*at)
    wait_for(lambda: session.stage.selection.name == "/blend/obstacle 1/handle", "the ball that was clicked")
    assert session.page.state["objects"][0][1] == "Ball 1"
    before = [ball.solid.middle.copy() for ball in balls]
    edge = on_page(session, balls[1].solid.middle - [0.012, 0.0, 0.0])
    drag(page, edge, (edge[0] - 60, edge[1]))
    wait_for(lambda: balls[1].solid.middle[0] < before[1][0] - 0.01, "the ball that was dragged")
    assert session.stage.selection.name == "/blend/obstacle 2/handle"
    np.testing.assert_array_equal(balls[0].solid.middle, before[0])


def test_bones_are_seen_over_solid_flesh_and_shapes_by_their_normals(visit: Any) -> None:
    window = visit(CREATURE)
    page, session = window.page, window.session
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    over = still_picture(page)
    tick(page, "See the bones")
    bare = still_picture(page)
    assert changed(over, bare) > 0.004, "bones inside the body are seen"
    session._restyle(surface="matcap")
    wait_for(lambda: changed(bare, still_picture(page)) > 0.02, "another shading")
    assert not [text for text in errors if "shader" in text.lower() or "THREE" in text], errors


def test_the_guided_start_is_shown_once_and_can_be_skipped(visit: Any) -> None:
    window = visit(HAND, guided=False)
    page, card = window.page, "#pliant-guide"
    page.wait_for_selector(card)
    wait_for(lambda: page.locator(".pliant-pointed").count() == 1, "what the first step points at")
    steps = len(window.session.page.state["guide"])
    assert sum(len(text.split()) for _, text in window.session.page.state["guide"]) < 100, "half a minute"
    for k in range(steps):
        assert f"{k + 1} of {steps}" in page.inner_text(card)
        page.locator(f"{card} [data-do=next]").click()
    assert page.locator(card).count() == 0
    page.reload()
    page.wait_for_function("document.querySelector('#pliant .hint')?.textContent.includes('Drag')")
    assert page.locator(card).count() == 0, "it is remembered"
    page.get_by_role("button", name="Guided start").click()
    page.locator(f"{card} [data-do=skip]").click()
    assert page.locator(card).count() == 0


def test_the_folder_is_listed_as_it_is_now_and_a_file_is_opened(visit: Any) -> None:
    window = visit(HAND)
    page, files = window.page, "#pliant-files"
    page.locator("#pliant [data-do=browse]").click()
    page.wait_for_selector(f"{files} li")
    (window.folder / "later").mkdir()
    write_scene(window.folder / "later" / "nod.toml", NOD)
    page.locator(f"{files} li").get_by_text("later/").click()
    page.locator(f"{files} li").get_by_text("nod.toml").click()
    wait_for(lambda: window.session.engine == "simulate", "the scene that was opened")
    assert page.locator(files).is_hidden()
