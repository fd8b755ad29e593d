"""Frames of a clip as farms name them, ``1-100:2``, and their division into chunks.

In texts frames count from 1, as in ``walk_0001.obj``; in lists from 0. A range is ``first``, ``first-last`` or
``first-last:step``; without ``last``, ``11-``, it goes on to the clip's end. Several are joined by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pliant.core.errors import InputError
from pliant.core.kinds import KeyPath, Misfit, Text

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:(-)\s*(\d{1,9})?\s*(?::\s*(\d{1,9}))?)?\s*", re.ASCII)
EXPECTED = "frames from 1, such as 1-100, 1-100:2 or 5,8,11-"


@dataclass(frozen=True)
class FrameRanges(Text):
    """Ranges of frames, as a text."""

    expected: str = EXPECTED
    syntax: str = EXPECTED

    def read(self, value: str, path: KeyPath = ()) -> str:
        """The text, if it can be read."""
        try:
            frames_in(value, 10**9, limit=0)
        except InputError as error:
            raise Misfit(str(error), path) from None
        return value

    def parse(self, word: str) -> str:
        """The text; ValueError if it cannot be read."""
        frames_in(word, 10**9, limit=0)
        return word


def frames_in(text: str, count: int, *, limit: int | None = None) -> list[int]:
    """The frames that a text names, from 0, in ascending order, of a clip of `count`. limit: at most so many."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise InputError(f'"{text}" names no frames; expected {EXPECTED}', argument="frames")
        first, step = int(match[1]), int(match[4] or 1)
        last = first if not match[2] else int(match[3]) if match[3] else count
        if first < 1 or step < 1 or (last < first and match[3]):
            raise InputError(f'"{text}" has the range {part.strip()}; expected {EXPECTED}', argument="frames")
        if max(first, last) > count:
            raise InputError(f'"{text}" names frame {max(first, last)}; the clip has {count}', argument="frames")
        if limit is None:
            found.update(range(first - 1, last, step))
    return sorted(found)


def step_of(frames: Sequence[int]) -> int:
    """The step between frames that are equally far apart; 1 if they are not, or are fewer than two."""
    steps = {b - a for a, b in pairwise(frames)}
    return steps.pop() if len(steps) == 1 else 1


def progressions(frames: Sequence[int], most: int) -> Iterator[range]:
    """Frames in ascending order as chunks of at most `most`, each equally far apart."""
    begun = 0
    while begun < len(frames):
        end = begun + 1
        step = frames[end] - frames[begun] if end < len(frames) else 1
        while end < len(frames) and end - begun < most and frames[end] - frames[end - 1] == step:
            end += 1
        yield range(frames[begun], frames[end - 1] + 1, step if end - begun > 1 else 1)
        begun = end


def range_text(frames: range) -> str:
    """A range as a text, from 1."""
    if len(frames) == 1:
        return str(frames[0] + 1)
    return f"{frames[0] + 1}-{frames[-1] + 1}" + (f":{frames.step}" if frames.step > 1 else "")


def frames_text(frames: Sequence[int]) -> str:
    """Frames in ascending order as a text, from 1."""
    return ",".join(map(range_text, progressions(frames, len(frames))))
