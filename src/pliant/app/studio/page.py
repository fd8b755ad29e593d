"""The studio's own part of a window, beside what viser shows in it: undo, the timeline, files, the title.

`page.html` goes into the page that viser serves, and has a socket of its own. Both ends send JSON: the studio an object
of what is to be shown, whose keys replace those of the same name; the page a list of what is done and with what,
as ``["scrub", 12]``. A file comes as ``["file", name, size]`` and then its bytes. Shapes go as bytes (`stream.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import secrets
import threading
from collections.abc import Callable
from importlib import resources
from typing import Any

from pliant.app.studio.stream import Stream

SOCKET = "/pliant/"
"""Begins the paths of sockets; the window's name follows."""


class Page:
    """One window's. acts: gets the name of what is done on it, before that is. presses: called when the pointer is
    pressed and let go."""

    def __init__(
        self,
        largest_upload: int = 0,
        acts: Callable[[str], None] = lambda action: None,
        presses: Callable[[bool], None] = lambda pressed: None,
    ) -> None:
        self._largest, self._acts, self._presses = largest_upload, acts, presses
        self.name = secrets.token_urlsafe(12)
        self.state: dict[str, Any] = {}
        """What it shows."""
        self._actions: dict[str, Callable[..., Any]] = {}
        self._lock = threading.Lock()
        self._unsent: dict[str, Any] = {}
        self._wake: Callable[[], None] = lambda: None
        self.stream = Stream(self.show, lambda: self._wake())
        """Shapes."""
        self._heard = threading.Condition()
        self._asked = self._echoed = 0
        self._file: tuple[str, int, bytearray] | None = None

    @property
    def mark(self) -> str:
        """HTML by which the page knows which window it is."""
        return f'<i class="pliant-window" data-window="{self.name}" hidden></i>'

    def show(self, **state: Any) -> None:
        """Have it show something else."""
        with self._lock:
            other = {key: value for key, value in state.items() if key not in self.state or self.state[key] != value}
            self.state |= other
            self._unsent |= other
        if other:
            self._wake()

    def on(self, **actions: Any) -> None:
        """What to call when something is done on the page: by its name, asynchronously, with a list."""
        self._actions |= actions

    async def do(self, name: Any, *given: Any) -> None:
        """What was done on the page; what is not known, or given wrongly, is left alone."""
        if name == "press":
            self._presses(bool(given and given[0]))
            return
        action = self._actions.get(name) if isinstance(name, str) else None
        if action is not None:
            self._acts(name)
            await action(given)

    async def serve(self, connection: Any) -> None:
        """Talk to the page until it is gone."""
        from websockets.exceptions import ConnectionClosed

        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._unsent = dict(self.state)
        self.stream.begin(connection)
        woken.set()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(woken.set)

        async def news() -> None:
            with self._lock:
                unsent, self._unsent = self._unsent, {}
            if unsent:
                await connection.send(json.dumps(unsent))

        async def send() -> None:
            while True:
                await woken.wait()
                woken.clear()
                asked = self._asked
                await news()
                for shape in self.stream.take():
                    await news()  # of shapes that have come meanwhile, before their points
                    await connection.send(shape)
                if asked > self._echoed:
                    await connection.send(json.dumps({"echo": asked}))

        self._wake, sending = wake, asyncio.create_task(send())
        try:
            async for message in connection:
                await self._came(message)
        except (ConnectionClosed, OSError):  # in the middle of something
            pass
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            self.stream.end(connection)

    def arrived(self, timeout: float) -> bool:
        """Wait until the page has all that it was to show; False if that took longer, or there is none."""
        if not self.stream.connected:
            return False
        with self._heard:
            self._asked = asked = self._asked + 1
            self._wake()
            return self._heard.wait_for(lambda: self._echoed >= asked, timeout)

    async def _came(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            await self._piece(message)
            return
        try:
            given = json.loads(message)
        except ValueError:
            return
        if not isinstance(given, list) or not given:
            return
        if given[0] == "echo" and isinstance(given[-1], int):
            with self._heard:
                self._echoed = min(given[-1], self._asked)
                self._heard.notify_all()
        elif given[0] != "file":
            await self.do(*given)
        elif len(given) == 3 and isinstance(given[1], str) and isinstance(given[2], int):
            self._file = given[1], given[2], bytearray()
            if given[2] > self._largest:
                self._file = None
                await self.do("too_large", given[1])
            await self._piece(b"")  # that of an empty file is complete

    async def _piece(self, content: bytes) -> None:
        """A piece of a file; more than was said is not kept."""
        if self._file is None:
            return
        name, size, kept = self._file
        kept += content[: max(size - len(kept), 0)]
        if len(kept) >= size:
            self._file = None
            await self.do("file", name, bytes(kept))


def with_own_part(response: Any) -> None:
    """Put the studio's own part into the page that viser answers with."""
    content_type = response.headers.get("Content-Type", "")
    if response.status_code != 200 or not content_type.startswith("text/html"):
        return
    packed = response.headers.get("Content-Encoding") == "gzip"
    body = gzip.decompress(response.body) if packed else bytes(response.body)
    here = resources.files("pliant.app.studio")
    drawing, page = (here.joinpath(name).read_bytes() for name in ("drawing.js", "page.html"))
    own = b"<script>" + drawing + b"</script>" + page
    body = re.sub(rb"<title>.*?</title>|<link\s+rel=\"icon\"[^>]*>", b"", body, count=2)
    body = body.replace(b"</head>", own + b"</head>", 1)
    response.body = gzip.compress(body) if packed else body
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(response.body))
