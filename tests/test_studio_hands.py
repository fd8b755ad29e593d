"""What a hand does in a real browser: lines between limbs, the cage's vertices, the timeline, views, leaving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra studio is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from PIL import Image as Pillow

import pliant
from pliant.app.studio import stream as stream_module
from test_studio_browser import (
    CREATURE,
    GUIDED,
    HAND,
    MAN,
    WALK,
    browser,
    changed,
    close_messages,
    drag,
    on_page,
    open_folder,
    set_number,
    shown_points,
    still_picture,
    tick,
    visit,
    wait_for,
)

pytestmark = pytest.mark.slow
__all__ = ["browser", "visit"]
PATIENCE = 120.0


def middle(page: Any, where: str) -> tuple[float, float]:
    box = page.locator(where).bounding_box()
    assert box is not None, where
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_limbs_are_paired_by_drawing_lines(visit: Any) -> None:
    window = visit(WALK)
    page, session = window.page, window.session
    wait_for(lambda: session.panel.controls.pairing.pairs, "limbs that were matched")
    open_folder(page, "Which limb follows which")
    page.wait_for_selector("text=Matched: confidence")
    page.get_by_role("button", name="Draw lines").click()
    lines = page.locator("#pliant-pairs line")
    count = sum(map(bool, session.panel.controls.pairing.pairs.values()))
    wait_for(lambda: lines.count() == count, "a line for each pair")
    drag(page, middle(page, "[data-ours='left arm']"), middle(page, "[data-theirs='right arm']"))
    wait_for(lambda: "right arm=left arm" in session.panel.document().get("map", ""), "the pair that was drawn")
    drag(page, middle(page, "[data-ours='head']"), middle(page, "#pliant-pairs b"))
    wait_for(lambda: "head" not in session.panel.document()["map"], "a limb that follows nothing")
    wait_for(lambda: lines.count() == count - 1, "one line less")
    page.locator("#pliant-pairs [data-do=close]").click()
    assert session.live.idle(PATIENCE)
    page.keyboard.press("Control+z")
    wait_for(lambda: "head" in session.panel.document()["map"], "the pair as it was before")


def test_a_vertex_of_the_cage_is_dragged(visit: Any) -> None:
    window = visit(MAN)
    page, session = window.page, window.session
    tick(page, "Edit the cage")
    wait_for(lambda: session.stage.has("/cage/vertices"), "the cage's vertices")
    still_picture(page)
    close_messages(page)
    cage = session.panel.editing._points.copy()
    top = int(np.argmax(cage[:, 1]))
    page.mouse.click(*on_page(session, cage[top]))
    wait_for(lambda: session.stage.selection.name == "/cage/vertices/handle", "the vertex that was clicked")
    tip = on_page(session, cage[top] + [0.0, 0.2 * session.stage.half, 0.0])
    drag(page, tip, (tip[0], tip[1] - 40))
    wait_for(lambda: "file" in session.panel.document()["cage"], "another cage")
    assert session.live.idle(PATIENCE)
    moved = session.panel.editing._points - cage
    assert moved[top, 1] > 0.02
    np.testing.assert_allclose(np.delete(moved, top, axis=0), 0, atol=1e-6)
    page.keyboard.press("Control+z")
    wait_for(lambda: session.panel.document()["cage"] == MAN["cage"], "the cage as it was before")


def test_keys_are_copied_and_a_part_is_played_at_another_speed(visit: Any) -> None:
    window = visit(HAND)
    page, session, state = window.page, window.session, window.session.page.state
    still_picture(page)
    page.keyboard.press("k")
    wait_for(lambda: page.locator("#pliant .key").count() == 2, "two keys")
    track = page.locator("#pliant .track").bounding_box()

    def at(frame: int) -> tuple[float, float]:
        return track["x"] + track["width"] * frame / 6, track["y"] + track["height"] / 2

    page.keyboard.down("Alt")
    drag(page, middle(page, "#pliant .key >> nth=1"), at(3))
    page.keyboard.up("Alt")
    wait_for(lambda: state["keys"] == [0, 3, 6], "a copy of the last key")
    for bracket, frame in (("first", 2), ("last", 4)):
        x, _ = middle(page, f"#pliant [data-is={bracket}]")
        drag(page, (x, track["y"] + 2), (at(frame)[0], track["y"] + 2))
    wait_for(lambda: state["range"] == [2, 4], "a part that is played")
    page.locator("#pliant select[aria-label=Speed]").select_option("0.5")
    page.get_by_role("button", name="Loop").click()
    wait_for(lambda: state["speed"] == 0.5 and not state["loop"], "another speed, and no loop")
    wait_for(lambda: session.timeline.ready == 7, "a solved clip")
    page.get_by_role("button", name="Play").click()
    wait_for(lambda: state["frame"] == 4 and not state["playing"], "the end of the part")


def test_what_was_deleted_and_left_unsaved_is_asked_about(visit: Any) -> None:
    window = visit(HAND)
    page, session = window.page, window.session
    wait_for(lambda: "shown.toml" in page.title(), "the title")
    page.get_by_role("button", name="Add a ball").click()
    wait_for(lambda: "obstacles" in session.panel.document() and page.title().startswith("•"), "a ball, not saved")
    page.keyboard.press("Delete")
    wait_for(lambda: "obstacles" not in session.panel.document(), "no ball")
    set_number(page, "fist", 0.5)
    wait_for(lambda: page.title().startswith("•"), "what is not saved")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.evaluate("() => { setTimeout(() => location.reload(), 0); }")
    for _ in range(100):
        page.wait_for_timeout(100)
        if asked:
            break
    assert asked == ["beforeunload"]
    assert page.title().startswith("•"), "the page stays"


def test_it_is_looked_at_in_every_way_and_a_picture_is_saved(visit: Any, tmp_path: Any) -> None:
    window = visit(HAND)
    page, session = window.page, window.session
    close_messages(page)
    seen = still_picture(page)
    open_folder(page, "View")
    for surface in ("flat", "wireframe", "the file's colours", "matcap"):
        session._restyle(surface=surface)
        wait_for(lambda before=seen: (np.abs(still_picture(page) - before) > 4).mean() > 0.002, surface)
        seen = still_picture(page)
    view = session.client.camera
    for key, axis in (("1", [0, -1, 0]), ("3", [1, 0, 0]), ("7", [0, 0, 1])):
        page.keyboard.press(key)
        wait_for(lambda axis=axis: along(view) @ axis > 0.99, f"the view of key {key}")
    light = np.median(still_picture(page))
    tick(page, "Dark")
    wait_for(lambda: np.median(still_picture(page)) < light - 100, "a dark page")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save a picture").click()
    download.value.save_as(tmp_path / "seen.png")
    picture = np.asarray(Pillow.open(tmp_path / "seen.png").convert("RGB"))
    assert np.ptp(picture.reshape(-1, 3), axis=0).min() > 60


def along(view: Any) -> np.ndarray:
    way = np.subtract(view.position, view.look_at)
    return way / np.linalg.norm(way)


def test_a_clip_that_plays_again_is_not_sent_again(visit: Any) -> None:
    window = visit(HAND)
    page, session = window.page, window.session
    came: list[int] = []
    timeline = session.timeline
    wait_for(lambda: timeline.count > 4 and timeline.ready == timeline.count, "a solved clip")
    before = still_picture(page)

    def played() -> float:
        """How much of the picture differs in the last frame."""
        for _ in timeline.drawn(range(timeline.count)):
            assert session.page.arrived(PATIENCE)
        timeline.scrub(timeline.count - 1)
        return changed(before, still_picture(page))

    first = played()
    packed = stream_module._packed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_module, "_packed", lambda *given: came.append(given[1] is not None) or packed(*given))
        again = played()
    assert first == pytest.approx(again, abs=0.002)
    assert first > 0.01
    assert len(came) > 5
    assert not any(came), "names alone"


OWN_SOCKETS = """; window.own = []; window.WebSocket = class extends WebSocket {
    constructor(url, ...rest) { super(url, ...rest); if (String(url).includes("/pliant/")) window.own.push(this); } }"""


def test_shapes_move_after_the_socket_came_again(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_studio_browser.GUIDED", GUIDED + OWN_SOCKETS)
    window = visit(HAND)
    page, session = window.page, window.session
    drawn, stream = session.panel.drawn, session.page.stream
    rest, aside = drawn.points, 0.3 * np.ptp(drawn.points, axis=0) * [1, 0, 0]
    wait_for(lambda: stream.connected, "the socket")
    drawn.move(rest + aside)
    assert session.page.arrived(PATIENCE)
    page.evaluate("window.own.at(-1).close()")
    wait_for(lambda: page.evaluate("window.own.length") == 2 and stream.connected, "another socket")
    before = still_picture(page)
    drawn.move(rest - aside)
    wait_for(lambda: changed(before, still_picture(page)) > 0.01, "the shape elsewhere")


def test_a_scene_that_cannot_be_read_leaves_the_one_before(visit: Any, tmp_path: Any) -> None:
    window = visit(HAND)
    page, session = window.page, window.session
    before = still_picture(page)
    pliant.write(tmp_path / "bar.ply", pliant.gallery.bar(500).base)
    wrong = {"engine": "transfer", "target": {"file": str(tmp_path / "bar.ply")}, "controls": "auto"}
    with pytest.raises(pliant.InputError, match=r"none\.bvh"):
        session.start(wrong | {"sources": {"motion": {"file": str(tmp_path / "none.bvh")}}})
    assert session.page.arrived(PATIENCE)
    wait_for(lambda: changed(before, still_picture(page)) < 0.001, "the scene before")


def test_a_body_stands_in_what_the_bar_leaves_and_units_are_said(visit: Any) -> None:
    window = visit(CREATURE, size=(1100, 700))
    page, session = window.page, window.session
    still_picture(page)
    bar, view = page.locator("#pliant").bounding_box(), session.client.camera
    seen = np.array([on_page(session, point) for point in shown_points(session)[::7]])
    assert view.image_height <= bar["y"]
    assert (seen > 0).all()
    assert (seen < [view.image_width, view.image_height]).all()
    assert np.ptp(seen[:, 1]) > 0.55 * view.image_height, "as large as handles leave room for"
    open_folder(page, "View")
    page.get_by_text("Units", exact=True).last.locator("xpath=ancestor::div[.//input][1]//input").first.click()
    page.get_by_role("option", name="centimetres", exact=True).click()
    longest = np.ptp(session.panel.drawn.shape.points, axis=0).max()
    wait_for(lambda: session.panel.document().get("size") == pytest.approx(0.01 * longest), "the body's size")
    assert page.locator("#pliant [data-is=units]").text_content() == "cm"
    assert " cm" in session._size.content


def test_points_and_bodies_are_dragged_themselves(visit: Any) -> None:
    window = visit(MAN)
    page, session = window.page, window.session
    close_messages(page)
    still_picture(page)
    x, y = on_page(session, MAN["positions"][2]["at"])
    view = np.array(session.client.camera.position)
    drag(page, (x, y), (x, y - 60))
    wait_for(lambda: "to" in session.panel.document()["positions"][2], "where the point was dragged")
    assert session.panel.document()["positions"][2]["to"][1] > MAN["positions"][2]["at"][1] + 0.03
    np.testing.assert_array_equal(session.client.camera.position, view)
    session.start(dict(CREATURE))
    assert session.live.idle(PATIENCE)
    still_picture(page)
    pose = session.panel.pose
    elbow, hand = (pose.world()[0][pose.skeleton.index(name)] for name in ("forearm.L", "hand.L"))
    x, y = on_page(session, 0.4 * elbow + 0.6 * hand)
    page.keyboard.down("Shift")
    drag(page, (x, y), (x, y - 60))
    page.keyboard.up("Shift")
    key = wait_for(lambda: session.panel.document()["motion"]["keys"][0].get("turns"), "a bone that is turned")
    assert list(key) == ["forearm.L"]
    wait_for(lambda: session.panel.pose.world()[0][pose.skeleton.index("hand.L")][1] > hand[1] + 0.03, "the hand above")


def test_no_other_page_shows_the_studio_in_a_frame(visit: Any, browser: Any) -> None:
    window = visit(HAND)
    other = browser.new_page()
    other.route("http://other.example/", lambda route: route.fulfill(body=f"<iframe src='{window.studio.address}'>"))
    other.goto("http://other.example/")
    other.wait_for_timeout(1000)
    assert all("pliant" not in frame.content() for frame in other.frames[1:])
    assert len(window.studio.sessions) == 1
    other.close()
