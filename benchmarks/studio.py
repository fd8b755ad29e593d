"""How many shapes a second reach the page while something is dragged, at 8,000 vertices; the goal is 15.

    python benchmarks/studio.py

The studio runs as it does for a browser, on the loopback address. In the browser's place stands a program that speaks
the page's protocol: it moves a slider or a handle sixty times a second, as a mouse would, and counts the shapes that
arrive. What the browser takes to draw them is not counted. "At rest" is the time from letting go to the last shape.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import viser
from websockets.sync.client import ClientConnection, connect

from pliant.app.scene import write_scene
from pliant.app.studio import Studio
from pliant.app.studio.opening import document_for
from pliant.app.studio.session import Session

GOAL = 15.0
SECONDS = 4.0
VERTICES = 8000
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
        threading.Thread(target=self._listen, daemon=True).start()
        while not studio.sessions:
            time.sleep(0.05)
        self.session: Session = next(iter(studio.sessions.values()))
        assert self.session.live.idle(300)
        time.sleep(1)

    def send(self, message: dict[str, Any]) -> None:
        self.socket.send(msgspec.msgpack.encode(message))

    def _listen(self) -> None:
        for message in self.socket:
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


def measured(page: Page, act: Callable[[float], None]) -> tuple[float, float]:
    """Shapes a second while it is dragged, and seconds until it is at rest."""
    for warm in (True, False):
        page.arrived.clear()
        began = time.perf_counter()
        while (t := time.perf_counter() - began) < (1.5 if warm else SECONDS):
            act(t)
            time.sleep(1 / 60)
        dragged = len(page.arrived)
        let_go = time.perf_counter()
        assert page.session.live.idle(120)
        time.sleep(0.3)
    return dragged / SECONDS, max([at - let_go for at in page.arrived], default=0.0)


HAND = {"engine": "blend", "shapes": {"gallery": "hand", "vertices": VERTICES}}
PULLED = HAND | {"weights": [[0.0, 0.0, 0.3, 0.0, 0.0, 0.0]], "pulls": [{"vertex": 4000, "to": [0.0, 0.15, 0.05]}]}
PUSHED = HAND | {"weights": [[0.0, 0.0, 0.3, 0.0, 0.0, 0.0]], "obstacles": [{"what": "sphere:0,0.12,0.05,0.03"}]}
MAN = document_for("Gingerbread man in a cage") | {"target": {"gallery": "gingerbread", "vertices": VERTICES}}
CREATURE = document_for("Creature: flesh on bones") | {"shape": {"gallery": "creature", "vertices": VERTICES}}
CASES: dict[str, tuple[dict[str, Any], Callable[[Page], Callable[[float], None]]]] = {
    "blend, a slider": (HAND, lambda page: page.slide("fist")),
    "blend, a pull": (PULLED, lambda page: page.drag("/blend/pull 4000/handle", (0.0, -1.0, 0.0))),
    "blend, a ball in contact": (PUSHED, lambda page: page.drag("/blend/obstacle 1/handle", (0.0, 1.0, 0.0))),
    "cage, a point": (MAN, lambda page: page.drag("/cage/controls/positions/2", (0.0, 0.0, 1.0))),
    "cage, a turn": (MAN, lambda page: page.drag("/cage/controls/gradients/0", (0.0, 0.0, 1.0), turn=True)),
    "flesh, a bone": (CREATURE, lambda page: page.drag("/elastic/turn", (0.0, 0.0, 1.0), turn=True)),
    "flesh, a bone, with inertia": (
        CREATURE | {"static": False},
        lambda page: page.drag("/elastic/turn", (0.0, 0.0, 1.0), turn=True),
    ),
}


def main() -> None:
    print(f"{'dragged':30s} {'shapes a second':>16s} {'at rest after':>15s}")
    for what, (document, begun) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            write_scene(f"{folder}/scene.toml", document)
            studio = Studio([f"{folder}/scene.toml"], port=0, token=False)
            try:
                page = Page(studio)
                rate, rest = measured(page, begun(page))
                page.socket.close()
            finally:
                studio.close()
        print(f"{what:30s} {rate:16.1f} {rest:13.2f} s   {'' if rate >= GOAL else 'MISSED'}", flush=True)


if __name__ == "__main__":
    main()
