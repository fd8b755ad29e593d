"""How many shapes a second reach the page while something is dragged, at 8,000 vertices; how soon a file is seen; and
how quickly a clip of 100,000 vertices plays in a browser.

    python benchmarks/studio.py [dragged] [opened] [played]

The studio runs as it does for a browser, on the loopback address. In the browser's place stands a program that speaks
the page's protocol: it moves a slider or a handle sixty times a second, as a mouse would, and counts the shapes that
arrive. What the browser takes to draw them is not counted. "At rest" is the time from letting go to the last shape.
Processor time is that of the whole process for each shape while something is dragged, that of the stand-in for the
browser included: on a machine with other work it tells more than the rate.

Opened: from connecting to the first shape of a file of 10,000 vertices, the second time. Played: in Chromium or Chrome,
frames that were drawn a second once all have come, and bytes that came for each frame, then and before.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import viser
from websockets.sync.client import ClientConnection, connect

import pliant
from pliant import gallery
from pliant.app.scene import write_scene
from pliant.app.studio import Studio
from pliant.app.studio.opening import document_for
from pliant.app.studio.session import Session

DRAGGED, CONTACT, SELF_CONTACT, OPENED, PLAYED = 20.0, 15.0, 5.0, 2.0, 30.0
"""Goals: shapes a second, seconds until a file is seen, frames a second."""
SECONDS = 4.0
VERTICES = 8000
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
NO_RASTERISER = """const context = WebGL2RenderingContext.prototype;
for (const name of Object.getOwnPropertyNames(context).filter((one) => /^draw(Ar|El|Ra)/.test(one))) {
    const drawn = context[name];
    context[name] = function (...given) { if (!window.undrawn) drawn.apply(this, given); };
}"""
"""Once `undrawn` is set, all is done for each frame (buffers are filled as well) but for filling pixels."""
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [0.0, -3.0, 0.0], "fov": 1.0, "near": 0.1,
    "far": 100.0, "image_height": 600, "image_width": 800, "look_at": [0.0, 0.0, 0.0], "up_direction": [0.0, 0.0, 1.0],
}  # fmt: skip


class Page:
    """What a browser does, but for drawing."""

    def __init__(self, studio: Studio) -> None:
        address = studio.address.replace("http", "ws")
        protocol: Any = f"viser-v{viser.__version__}"
        self.socket: ClientConnection = connect(address, subprotocols=[protocol], max_size=None)
        self.arrived: list[float] = []
        self.send(CAMERA)
        threading.Thread(target=self._listen, args=[self.socket], daemon=True).start()
        self.began = time.perf_counter()
        while not studio.sessions:
            time.sleep(0.01)
        self.session: Session = next(iter(studio.sessions.values()))
        self.own: ClientConnection = connect(f"{address}/pliant/{self.session.page.name}", max_size=None)
        threading.Thread(target=self._listen, args=[self.own], daemon=True).start()
        assert self.session.live.idle(300)
        time.sleep(1)

    def close(self) -> None:
        self.own.close()
        self.socket.close()

    def send(self, message: dict[str, Any]) -> None:
        self.socket.send(msgspec.msgpack.encode(message))

    def _listen(self, socket: ClientConnection) -> None:
        for message in socket:
            if len(message) > 11 * VERTICES:  # nothing but a shape is as large
                self.arrived.append(time.perf_counter())

    def slide(self, label: str) -> Callable[[float], None]:
        """Moves a slider to and fro."""
        widgets = self.session.client.gui._gui_input_handle_from_uuid
        uuid = next(uuid for uuid, widget in widgets.items() if getattr(widget, "label", "") == label)

        def move(t: float) -> None:
            value = float(0.5 + 0.45 * np.sin(2 * t))
            self.send({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": value}})

        return move

    def drag(self, name: str, way: tuple[float, float, float], *, turn: bool = False) -> Callable[[float], None]:
        """Moves a handle to and fro, or turns it."""
        start = np.array(self.session.stage._nodes[name].position)
        owner = str(self.session.client.client_id)

        def move(t: float) -> None:
            half = 0.3 * np.sin(2 * t) if turn else 0.0
            place = start if turn else start + 0.12 * np.sin(2 * t) * np.array(way)
            wxyz = [float(np.cos(half)), *(float(np.sin(half) * x) for x in way)]
            body = {"name": name, "wxyz": wxyz, "position": place.tolist(), "owner": owner}
            self.send({"type": "TransformControlsUpdateMessage", **body})

        return move


def measured(page: Page, act: Callable[[float], None]) -> tuple[float, float, float]:
    """Shapes a second while it is dragged, seconds until it is at rest, and processor seconds a shape."""
    for warm in (True, False):
        page.arrived.clear()
        began, used = time.perf_counter(), time.process_time()
        while (t := time.perf_counter() - began) < (1.5 if warm else SECONDS):
            act(t)
            time.sleep(1 / 60)
        dragged, used = len(page.arrived), time.process_time() - used
        let_go = time.perf_counter()
        assert page.session.live.idle(120)
        time.sleep(0.3)
    return dragged / SECONDS, max([at - let_go for at in page.arrived], default=0.0), used / max(dragged, 1)


HAND = {"engine": "blend", "shapes": {"gallery": "hand", "vertices": VERTICES}}
PULLED = HAND | {"weights": [[0.0, 0.0, 0.3, 0.0, 0.0, 0.0]], "pulls": [{"vertex": 4000, "to": [0.0, 0.15, 0.05]}]}
PUSHED = HAND | {"weights": [[0.0, 0.0, 0.3, 0.0, 0.0, 0.0]], "obstacles": [{"what": "sphere:0,0.12,0.05,0.03"}]}
ALONE = HAND | {"self_contact": True, "frames": 2}
MAN = document_for("Gingerbread man in a cage") | {"target": {"gallery": "gingerbread", "vertices": VERTICES}}
CREATURE = document_for("Creature: flesh on bones") | {"shape": {"gallery": "creature", "vertices": VERTICES}}
CASES: dict[str, tuple[float, dict[str, Any], Callable[[Page], Callable[[float], None]]]] = {
    "blend, a slider": (DRAGGED, HAND, lambda page: page.slide("fist")),
    "blend, a pull": (DRAGGED, PULLED, lambda page: page.drag("/blend/pull 4000/handle", (0.0, -1.0, 0.0))),
    "blend, a ball in contact": (CONTACT, PUSHED, lambda page: page.drag("/blend/obstacle 1/handle", (0.0, 1.0, 0.0))),
    "blend, not through itself": (SELF_CONTACT, ALONE, lambda page: page.slide("fist")),
    "cage, a point": (DRAGGED, MAN, lambda page: page.drag("/cage/controls/positions/2", (0.0, 0.0, 1.0))),
    "cage, a turn": (DRAGGED, MAN, lambda page: page.drag("/cage/controls/gradients/0", (0.0, 0.0, 1.0), turn=True)),
    "flesh, a bone": (DRAGGED, CREATURE, lambda page: page.drag("/elastic/turn", (0.0, 0.0, 1.0), turn=True)),
    "flesh, a bone, with inertia": (
        DRAGGED,
        CREATURE | {"static": False},
        lambda page: page.drag("/elastic/turn", (0.0, 0.0, 1.0), turn=True),
    ),
}


def dragged(folder: Path) -> None:
    print(f"{'dragged':30s} {'shapes a second':>16s} {'goal':>5s} {'at rest after':>14s} {'processor':>11s}")
    for what, (goal, document, begun) in CASES.items():
        write_scene(folder / "scene.toml", document)
        studio = Studio([folder / "scene.toml"], port=0, token=False)
        try:
            page = Page(studio)
            rate, rest, used = measured(page, begun(page))
            page.close()
        finally:
            studio.close()
        missed = "" if rate >= goal else "MISSED"
        print(f"{what:30s} {rate:16.1f} {goal:5.0f} {rest:12.2f} s {1e3 * used:8.0f} ms   {missed}", flush=True)


def opened(folder: Path) -> None:
    print(f"\n{'opened, 10,000 vertices':30s} {'first shape':>16s} {'goal':>5s}")
    for name in ("hand", "gingerbread", "creature"):
        pliant.write(folder / f"{name}.obj", getattr(gallery, name)(10_000).base)
        for _ in range(2):
            studio = Studio([folder / f"{name}.obj"], port=0, token=False)
            try:
                page = Page(studio)
                took = min(page.arrived) - page.began
                page.close()
            finally:
                studio.close()
        print(f"{name:30s} {took:14.2f} s {OPENED:5.0f}   {'' if took <= OPENED else 'MISSED'}", flush=True)


def played(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    found = next(found for name in ("chromium", "google-chrome", "chrome") if (found := shutil.which(name)))
    count = 24
    write_scene(folder / "played.toml", HAND | {"shapes": {"gallery": "hand", "vertices": 100_000}, "frames": count})
    studio = Studio([folder / "played.toml"], port=0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        page, came = browser.new_page(viewport={"width": 900, "height": 600}), [0]
        page.on("websocket", lambda socket: socket.on("framereceived", lambda data: came.append(len(data))))
        page.add_init_script(NO_RASTERISER)
        page.goto(studio.address)
        while not studio.sessions:
            page.wait_for_timeout(100)
        session = next(iter(studio.sessions.values()))
        assert session.live.idle(300)
        while session.timeline.ready < count or session.timeline.count < count or not session.live.idle(0.0):
            page.wait_for_timeout(500)
        for what in ("the first time", "again", "without the rasteriser"):
            page.evaluate("undrawn => { window.undrawn = undrawn; }", what == "without the rasteriser")
            before, at = sum(came), page.evaluate("performance.now()")
            session.timeline.play()
            page.wait_for_timeout(4e3 * SECONDS)
            session.timeline.stop()
            page.wait_for_timeout(500)
            drawn = page.evaluate("since => pliantDrawing.drawn.filter(([then]) => then > since)", at)
            rate = (len(drawn) - 1) / (drawn[-1][0] - drawn[0][0]) * 1e3 if len(drawn) > 1 else 0.0
            own = np.median([took for _, took in drawn]) if drawn else np.nan
            goal = "" if what == "the first time" or rate >= PLAYED else "MISSED"
            size = f"{(sum(came) - before) / 1e6:.1f} MB in all, {own:.1f} ms of a frame the studio's own part"
            print(f"played {what:23s} {rate:16.1f} {PLAYED:5.0f}   {size}   {goal}", flush=True)
        browser.close()
    studio.close()


def main() -> None:
    given = [case for case in (dragged, opened, played) if case.__name__ in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        for case in given or (dragged, opened, played):
            case(Path(folder))


if __name__ == "__main__":
    main()
