"""Shapes on their way to the page: each array once, the newest of each shape, and nothing kept that is gone."""

from __future__ import annotations

import gc
import json
import struct
from typing import Any

import numpy as np
import pytest

from pliant.app.studio import stream as module
from pliant.app.studio.stream import Stream

TRIANGLES = np.array([[0, 1, 2]], np.uint32)


class Reader:
    """What the page has, as drawing.js keeps it."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.stream = Stream(lambda **state: self.told.update(state), lambda: None)
        self.kept: dict[int, np.ndarray] = {}
        self.shown: dict[tuple[str, str], np.ndarray | None] = {}
        self.bytes = 0

    def read(self) -> None:
        for message in self.stream.take():
            self.bytes += len(message)
            (length,) = struct.unpack("<I", message[:4])
            assert length % 4 == 0, "numbers are aligned"
            header, body = (
                json.loads(message[4 : 4 + length]),
                np.frombuffer(message[4 + length :], "<f4").reshape(-1, 3),
            )
            for number in header["gone"]:
                del self.kept[number]
            if "serial" not in header:
                continue
            name = next(name for name, (serial, *_) in self.told["shapes"].items() if serial == header["serial"])
            if len(body) and header["number"]:
                self.kept[header["number"]] = body
            known = body if len(body) else self.kept.get(header["number"])
            self.shown[name, header["kind"]] = known


@pytest.fixture
def reader() -> Reader:
    made = Reader()
    made.stream.add("/shape", 3, TRIANGLES, (1, 2, 3))
    made.stream.begin(made)
    return made


def move(reader: Reader, points: np.ndarray) -> None:
    assert reader.stream.move("/shape", points, lambda p: 2 * p)


def test_frames_of_a_clip_are_sent_once(reader: Reader) -> None:
    frames = [np.full((300, 3), float(k)) for k in range(4)]
    for frame in frames:
        move(reader, frame)
        reader.read()
    once = reader.bytes
    for _ in range(5):
        for frame in frames:
            move(reader, frame)
            reader.read()
            np.testing.assert_array_equal(reader.shown["/shape", "points"], 2 * frame)
    assert len(reader.kept) == 4
    assert reader.bytes - once < 20 * 100, "a name is no more than a hundred bytes"


def test_of_what_waits_the_newest_of_each_shape_is_sent(reader: Reader) -> None:
    reader.stream.add("/other", 3, TRIANGLES, (1, 2, 3))
    for k in range(9):
        move(reader, np.full((3, 3), float(k)))
        reader.stream.move("/other", np.full((3, 3), -float(k)), lambda p: p)
    assert len(list(reader.stream.take())) == 2


def test_what_is_gone_here_is_not_kept_there(reader: Reader) -> None:
    for k in range(9):  # as while something is dragged: nobody keeps what was shown before
        move(reader, np.full((3, 3), float(k)))
        reader.read()
    gc.collect()
    reader.read()
    assert len(reader.kept) == 1


def test_an_array_that_was_written_to_is_sent_anew(reader: Reader) -> None:
    points = np.zeros((300, 3))
    move(reader, points)
    reader.read()
    points[1] = 5.0
    move(reader, points)
    reader.read()
    np.testing.assert_array_equal(reader.shown["/shape", "points"], 2 * points)
    assert len(reader.kept) == 1


def test_no_more_is_kept_than_the_limit(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES_KEPT", 2 * 36)
    frames = [np.full((3, 3), float(k)) for k in range(4)]
    for frame in frames * 2:
        move(reader, frame)
        reader.read()
        np.testing.assert_array_equal(reader.shown["/shape", "points"], 2 * frame)
    assert len(reader.kept) == 2


def test_whoever_connects_again_gets_all_that_is_shown(reader: Reader) -> None:
    points, colors = np.full((3, 3), 7.0), np.full((3, 3), 0.5)
    move(reader, points)
    reader.stream.paint("/shape", colors)
    reader.read()
    again = Reader()
    again.stream, again.told = reader.stream, reader.told
    reader.stream.begin(again)
    again.read()
    np.testing.assert_array_equal(again.shown["/shape", "points"], 2 * points)
    np.testing.assert_array_equal(again.shown["/shape", "colors"], colors)


def test_colours_alone_are_sent_when_they_change(reader: Reader) -> None:
    reader.stream.paint("/shape", np.full((3, 3), 0.5))
    reader.read()
    assert reader.shown.keys() == {("/shape", "colors")}
    reader.stream.paint("/shape", None)
    reader.read()
    assert reader.shown["/shape", "colors"] is None


def test_without_a_reader_viser_moves_shapes() -> None:
    stream = Stream(lambda **_: None, lambda: None)
    stream.add("/shape", 3, TRIANGLES, (1, 2, 3))
    assert not stream.move("/shape", np.zeros((3, 3)), lambda p: p)


def test_a_mesh_is_known_by_corners_that_no_other_has(reader: Reader) -> None:
    """By the digits of its serial number, in triangles without area."""
    for k, count in enumerate((3, 3, 50, 10**6)):
        faces = reader.stream.add(f"/{k}", count, TRIANGLES, (0x12, 0x34, 0x56))
        serial, *mark = reader.told["shapes"][f"/{k}"]
        assert mark == [count, 0x123456]
        np.testing.assert_array_equal(faces[:1], TRIANGLES)
        assert (faces[1:] == faces[1:, :1]).all()
        assert faces.max() < count
        digits = faces[1:, 0].tolist()
        assert sum(digit * count**i for i, digit in enumerate(digits)) == serial
    reader.stream.clear()
    assert reader.told["shapes"] == {}


def test_a_shape_made_anew_forgets_what_waited_for_the_old_one(reader: Reader) -> None:
    move(reader, np.ones((3, 3)))
    reader.stream.add("/shape", 3, TRIANGLES, (1, 2, 3))
    assert list(reader.stream.take()) == []


def test_who_has_gone_does_not_end_what_another_reads(reader: Reader) -> None:
    move(reader, np.ones((3, 3)))
    other = object()
    reader.stream.begin(other)
    reader.stream.end(reader)
    assert reader.stream.connected
    reader.stream.end(other)
    assert not reader.stream.move("/shape", np.zeros((3, 3)), lambda p: p)
    reader.stream.begin(reader)
    assert list(reader.stream.take()) == [], "viser has moved it since"
