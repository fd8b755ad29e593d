"""The studio in a real browser: what a visitor does with the mouse, and what the page then shows.

Needs Chromium (Debian: ``apt install chromium``) or Chrome; without one these tests skip and say so.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra studio is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from pliant.studio import Studio  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist", "--disable-background-networking", "--no-first-run", "--disable-component-update",
    "--disable-sync", "--disable-quic",
]  # fmt: skip
PATIENCE = 90.0
"""Seconds that compiling for the first time may take."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser found; looked for {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a studio and a window on it."""
    opened: list[Any] = []

    def begin(*files: Any, largest_upload: int = 1 << 20, studio: Studio | None = None) -> Any:
        made = studio or Studio(files, folders=[tmp_path], port=0, largest_upload=largest_upload)
        known = set(made.sessions)
        page = browser.new_page(viewport={"width": 1100, "height": 800})
        page.goto(made.address)
        opened.extend([page] if studio else [page, made])
        wait_for(lambda: set(made.sessions) - known, "the window's session")
        session = made.sessions[max(set(made.sessions) - known)]
        assert session.live.idle(PATIENCE)
        return SimpleNamespace(page=page, studio=made, session=session, folder=tmp_path)

    yield begin
    for thing in opened:
        thing.close()


def wait_for(found: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What a function gives, once it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come in {seconds:.0f} seconds")


def picture(page: Any) -> np.ndarray:
    """(h, w, 3) what the page shows left of its panel."""
    import io

    from PIL import Image

    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return np.asarray(shot, dtype=np.float64)[160:, :760]


def changed(before: np.ndarray, after: np.ndarray) -> float:
    """Share of the pixels that differ visibly."""
    return float((np.abs(before - after).max(axis=2) > 24).mean())


def set_number(page: Any, label: str, value: float) -> None:
    """Type into the field beside a slider."""
    row = page.locator(f"text={label}").first.locator("xpath=ancestor::div[.//input][1]")
    field = row.locator("input").last
    field.fill(str(value))
    field.press("Enter")


def open_folder(page: Any, name: str) -> None:
    """Unfold a part of the panel."""
    page.get_by_text(name, exact=True).first.click()


def test_the_page_loads_and_says_what_to_drag(visit: Any) -> None:
    window = visit()
    page = window.page
    page.wait_for_selector("text=pliant studio", timeout=20_000)
    assert re.search(r"[Dd]rag", page.inner_text("body"))
    empty = np.ptp(picture(page).reshape(-1, 3), axis=0)
    assert empty.min() > 60, "nothing but background is to be seen"
