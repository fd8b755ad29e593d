"""Ranges of frames as texts, and chunks of them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pliant.core.errors import InputError
from pliant.core.frame_ranges import frames_in, frames_text, progressions, range_text, step_of

ASCENDING = st.sets(st.integers(0, 500), min_size=1, max_size=60).map(sorted)


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        ("1-5", [0, 1, 2, 3, 4]),
        ("1-10:3", [0, 3, 6, 9]),
        ("7", [6]),
        ("9-", [8, 9]),
        ("1-:4", [0, 4, 8]),
        ("3, 1-2,2", [0, 1, 2]),
    ],
)
def test_ranges_are_read(text: str, frames: list[int]) -> None:
    assert frames_in(text, 10) == frames


@pytest.mark.parametrize("text", ["", "0", "5-3", "1-5:0", "a", "1-11", "-3", "1..5", "1-5:", "1,,2", "1e3"])
def test_what_names_no_frames_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="frame"):
        frames_in(text, 10)


@given(ASCENDING)
def test_texts_read_back(frames: list[int]) -> None:
    assert frames_in(frames_text(frames), 501) == frames


@given(ASCENDING, st.integers(1, 70))
def test_chunks_are_all_frames_once_each_evenly_spaced(frames: list[int], most: int) -> None:
    chunks = list(progressions(frames, most))
    assert [k for chunk in chunks for k in chunk] == frames
    assert max(map(len, chunks)) <= most
    assert all(frames_in(range_text(chunk), 501) == list(chunk) for chunk in chunks)


def test_consecutive_frames_make_as_few_chunks_as_can_be() -> None:
    assert [len(chunk) for chunk in progressions(range(25), 10)] == [10, 10, 5]
    assert [len(chunk) for chunk in progressions(range(0, 50, 2), 10)] == [10, 10, 5]
    assert step_of(range(0, 50, 2)) == 2
    assert step_of([0, 1, 5]) == step_of([3]) == 1
