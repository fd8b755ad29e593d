"""Positions and colours of the shapes in a window, for the studio's own part of the page, which puts them into the
meshes that viser draws (`page.html`).

Each array goes to the page once: as long as it lives here it is kept there, and is named when it is shown again, as the
frames of a clip that plays. Of what waits to be sent, the newest of each shape is. A message is a header in JSON, its
length before it (four bytes, little-endian), and the numbers (single precision).
"""

from __future__ import annotations

import itertools
import json
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.core.caching import content_key
from pliant.core.topology import Floats

MOST_BYTES_KEPT = 1 << 30
"""Bytes that the page keeps."""
MARK_TRIANGLES = 12
"""Triangles without area, at the end of a mesh, by which the page knows it."""


@dataclass(frozen=True, eq=False)
class Kept:
    """An array that has a number."""

    number: int
    alive: weakref.ref[Floats]
    content: bytes
    """By which it is seen whether it was written to since it was sent."""


@dataclass(eq=False)
class Streamed:
    """The newest of one shape. points: gives single precision, as the page has them."""

    number: int = 0
    points: Callable[[], Any] | None = None
    colors: Floats | None = None


class Stream:
    """Of one window. tell: shows what else the page is to know. wake: called when there is something to send."""

    def __init__(self, tell: Callable[..., None], wake: Callable[[], None]) -> None:
        self._tell, self._wake = tell, wake
        self._lock = threading.Lock()
        self._reader: object = None
        self._marks: dict[str, tuple[int, int, int]] = {}  # serial number, vertices and colour of the shapes
        self._shown: dict[str, Streamed] = {}
        self._unsent: dict[tuple[str, str], None] = {}  # in the order in which they came
        self._known: dict[int, Kept] = {}  # by the arrays' ids
        self._there: dict[int, int] = {}  # bytes of what the page has, by their numbers
        self._dead: deque[tuple[int, int]] = deque()  # ids and numbers of arrays that are gone; filled by the collector
        self._numbers, self._serials = itertools.count(1), itertools.count(1)

    def add(self, name: str, count: int, triangles: Any, color: tuple[int, int, int]) -> Any:
        """Have a shape of so many vertices. Returns what viser is to draw: its triangles (t, 3), and MARK_TRIANGLES of
        one corner each, the digits of a number by which the page knows the mesh wherever its vertices are."""
        red, green, blue = color
        with self._lock:
            self._forget_shape(name)
            serial = next(self._serials)
            self._marks[name] = serial, count, red << 16 | green << 8 | blue
            self._shown[name] = Streamed()
            marks = dict(self._marks)
        self._tell(shapes=marks)
        base = max(count, 2)
        digits = [[serial // base**k % base] * 3 for k in range(MARK_TRIANGLES)]
        return np.concatenate([triangles, np.array(digits, triangles.dtype)]) if len(triangles) else triangles

    def remove(self, name: str) -> None:
        """Forget a shape, if there is one of this name."""
        self._keep(lambda other: other != name)

    def clear(self) -> None:
        """Forget all shapes."""
        self._keep(lambda other: False)

    def _keep(self, which: Callable[[str], bool]) -> None:
        with self._lock:
            for name in [name for name in self._marks if not which(name)]:
                self._forget_shape(name)
            marks = dict(self._marks)
        self._tell(shapes=marks)

    def _forget_shape(self, name: str) -> None:
        self._marks.pop(name, None)
        self._shown.pop(name, None)
        for kind in ("points", "colors"):
            self._unsent.pop((name, kind), None)

    def move(self, name: str, points: Floats, shown: Callable[[Floats], Any]) -> bool:
        """Have a shape's points elsewhere; False if nobody reads this. shown: gives them as the page has them."""
        with self._lock:
            one = self._shown.get(name)
            if one is None:
                return False
            if self._reader is None:  # what the page has had is not shown any more
                one.number, one.points = 0, None
                return False
            one.number, one.points = self._number(points), lambda: shown(points)
            self._unsent[name, "points"] = None
        self._wake()
        return True

    def paint(self, name: str, colors: Floats | None) -> None:
        """Have a shape in linear colours (n, 3); None: in its own."""
        with self._lock:
            one = self._shown.get(name)
            if one is None or (colors is None and one.colors is None):
                return
            one.colors = colors
            self._unsent[name, "colors"] = None
        self._wake()

    @property
    def connected(self) -> bool:
        """Whether somebody reads it."""
        return self._reader is not None

    def end(self, reader: object) -> None:
        """This one reads it no more."""
        with self._lock:
            if self._reader is reader:
                self._reader = None

    def begin(self, reader: object) -> None:
        """Somebody reads it, who has nothing yet."""
        with self._lock:
            self._reader = reader
            self._there.clear()
            every = self._shown.items()
            self._unsent = {(name, "points"): None for name, one in every if one.points is not None}
            self._unsent |= {(name, "colors"): None for name, one in every if one.colors is not None}

    def take(self) -> Iterator[bytes]:
        """What is to be sent, as messages."""
        while True:
            with self._lock:
                gone = self._forget()
                key = next(iter(self._unsent), None)
                if key is None and not gone:
                    return
                message = self._message(*key) if key is not None else None
            if message is not None:
                header, body = message
                yield _packed(header | {"gone": gone}, body() if body is not None else None)
            elif gone:
                yield _packed({"gone": gone}, None)

    def _message(self, name: str, kind: str) -> tuple[dict[str, Any], Callable[[], Any] | None] | None:
        del self._unsent[name, kind]
        one = self._shown.get(name)
        if one is None:
            return None
        serial, count, _ = self._marks[name]
        colors, points, header = one.colors, one.points, {"serial": serial, "kind": kind, "number": 0}
        if kind == "colors":
            return header, None if colors is None else (lambda: colors)
        if points is None:
            return None
        if one.number in self._there:
            return header | {"number": one.number}, None
        size = 12 * count
        if one.number and sum(self._there.values()) + size <= MOST_BYTES_KEPT:
            self._there[one.number] = size
            header["number"] = one.number
        return header, points

    def _number(self, points: Floats) -> int:
        """That of an array."""
        content = content_key(points)
        known = self._known.get(id(points))
        if known is not None and known.alive() is points and known.content == content:
            return known.number
        number, dead, which = next(self._numbers), self._dead, id(points)
        if known is not None:
            dead.append((0, known.number))
        alive = weakref.ref(points, lambda _: dead.append((which, number)))
        self._known[which] = Kept(number, alive, content)
        return number

    def _forget(self) -> list[int]:
        """Numbers of arrays that are gone and that the page has."""
        gone = []
        while self._dead:
            which, number = self._dead.popleft()
            if which in self._known and self._known[which].number == number:
                del self._known[which]
            if self._there.pop(number, None) is not None:
                gone.append(number)
        return gone


def _packed(header: dict[str, Any], body: Any) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    numbers = b"" if body is None else np.ascontiguousarray(body, dtype="<f4").tobytes()
    return struct.pack("<I", len(text)) + text + numbers
