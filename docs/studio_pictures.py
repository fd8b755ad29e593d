"""The pictures of the studio in the docs, taken in a real browser: ``python docs/studio_pictures.py``.

Needs the extra studio, playwright, and Chromium or Chrome.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from pliant.app.scene import write_scene
from pliant.app.studio import Studio
from pliant.app.studio.opening import document_for

IMAGES = Path(__file__).parent / "images"
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
SCENES: dict[str, dict[str, Any]] = {
    "blend": {
        "engine": "blend",
        "shapes": {"gallery": "hand", "vertices": 6000},
        "weights": [[0.0, 0.0, 0.55, 0.0, 0.0, 0.0]],
        "obstacles": [{"what": "sphere:-0.01,0.12,0.045,0.026"}],
    },
    "transfer": document_for("Gingerbread man in a cage"),
    "simulate": document_for("Creature: flesh on bones"),
}
SCENES["transfer"]["positions"][3]["to"] = [0.36, 0.82, 0.12]
SCENES["simulate"]["motion"] = {
    "keys": [
        {
            "turns": {
                "upperarm.L": {"axis": [0.0, 0.0, 1.0], "degrees": 50.0},
                "forearm.L": {"axis": [0.0, 0.0, 1.0], "degrees": 55.0},
                "head": {"axis": [0.0, 1.0, 0.0], "degrees": 25.0},
            }
        }
    ]
}


def main() -> None:
    """Take them all."""
    browser_file = next(found for name in ("chromium", "google-chrome", "chrome") if (found := shutil.which(name)))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=browser_file, args=FLAGS)
        for name, document in SCENES.items():
            scene = Path(folder) / f"{name}.toml"
            write_scene(scene, document)
            studio = Studio([scene], port=0)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(120_000)
            page.add_init_script('localStorage.setItem(\'pliant-guided\', \'["blend", "transfer", "simulate"]\')')
            page.goto(studio.address)
            while not studio.sessions:
                page.wait_for_timeout(200)
            session = next(iter(studio.sessions.values()))
            assert session.live.idle(180)
            page.wait_for_timeout(4000)
            page.wait_for_function("!document.querySelector('.mantine-Notification-root')")  # they close by themselves
            page.wait_for_timeout(3000)
            page.screenshot(path=IMAGES / f"studio-{name}.png")
            if name == "simulate":
                page.set_viewport_size({"width": 480, "height": 800})
                page.wait_for_timeout(2000)
                page.get_by_role("button", name="Panel").click()
                page.wait_for_timeout(2000)
                page.screenshot(path=IMAGES / "studio-narrow.png")
            page.close()
            studio.close()
        browser.close()


if __name__ == "__main__":
    main()
