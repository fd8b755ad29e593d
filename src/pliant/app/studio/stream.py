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

from pliant.core.topology import Floats

MOST_BYTES_KEPT = 1 << 30
"""Bytes that the page keeps."""
SAMPLED = 64
"""Rows by which an array is seen to have been written to since it was sent."""


@dataclass(frozen=True, eq=False)
class Kept:
    """An array that has a number."""

    number: int
    alive: weakref.ref[Floats]
    sample: bytes


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
        self.connected = False
        """Whether somebody reads it."""
        self._marks: dict[str, list[float]] = {}
        self._shown: dict[str, Streamed] = {}
        self._unsent: dict[tuple[str, str], None] = {}  # in the order in which they came
        self._known: dict[int, Kept] = {}  # by the arrays' ids
        self._there: dict[int, int] = {}  # bytes of what the page has, by their numbers
        self._dead: deque[tuple[int, int]] = deque()  # ids and numbers of arrays that are gone; filled by the collector
        self._numbers = itertools.count(1)

    def add(self, name: str, vertices: Any, triangles: Any, color: tuple[int, int, int]) -> None:
        """Have a shape that viser was given with these vertices (n, 3), in single precision, by which the page knows
        its mesh."""
        red, green, blue = color
        ends = [float(x) for x in (*vertices[0], *vertices[-1])]
        with self._lock:
            self._marks[name] = [
                next(self._numbers),
                len(vertices),
                3 * len(triangles),
                red << 16 | green << 8 | blue,
                *ends,
            ]
            self._shown[name] = Streamed()
            marks = dict(self._marks)
        self._tell(shapes=marks)

    def remove(self, name: str) -> None:
        """Forget a shape, if there is one of this name."""
        self._keep(lambda other: other != name)

    def clear(self) -> None:
        """Forget all shapes."""
        self._keep(lambda other: False)

    def _keep(self, which: Callable[[str], bool]) -> None:
        with self._lock:
            marks = {name: mark for name, mark in self._marks.items() if which(name)}
            self._shown = {name: one for name, one in self._shown.items() if which(name)}
            self._marks = dict(marks)
        self._tell(shapes=marks)

    def move(self, name: str, points: Floats, shown: Callable[[Floats], Any]) -> bool:
        """Have a shape's points elsewhere; False if nobody reads this. shown: gives them as the page has them."""
        with self._lock:
            one = self._shown.get(name)
            if not self.connected or one is None:
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

    def begin(self) -> None:
        """Somebody reads it, who has nothing yet."""
        with self._lock:
            self.connected = True
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
        colors, points, header = one.colors, one.points, {"name": name, "kind": kind, "number": 0}
        if kind == "colors":
            return header, None if colors is None else (lambda: colors)
        assert points is not None
        if one.number in self._there:
            return header | {"number": one.number}, None
        size = 12 * int(self._marks[name][1])
        if one.number and sum(self._there.values()) + size <= MOST_BYTES_KEPT:
            self._there[one.number] = size
            header["number"] = one.number
        return header, points

    def _number(self, points: Floats) -> int:
        """That of an array."""
        sample = np.ascontiguousarray(points[:: max(len(points) // SAMPLED, 1)]).tobytes()
        known = self._known.get(id(points))
        if known is not None and known.alive() is points and known.sample == sample:
            return known.number
        number, dead, which = next(self._numbers), self._dead, id(points)
        if known is not None:
            dead.append((0, known.number))
        alive = weakref.ref(points, lambda _: dead.append((which, number)))
        self._known[which] = Kept(number, alive, sample)
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
