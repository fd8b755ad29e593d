"""Results that are found again by the content of what they were made from."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import Mesh, gallery
from pliant.core.caching import ResultCache, content_key
from pliant.engines.transfer import build

pytestmark = pytest.mark.usefixtures("results_of_its_own")


def test_the_latest_results_are_kept() -> None:
    cache: ResultCache[int] = ResultCache(2)
    made: list[int] = []

    def result(key: int) -> int:
        return cache.get(key, lambda: made.append(key) or -key)

    assert [result(key) for key in (1, 2, 1, 3, 1, 2)] == [-1, -2, -1, -3, -1, -2]
    assert made == [1, 2, 3, 2]


def test_keys_tell_shapes_and_types_apart() -> None:
    ones = np.ones((2, 3))
    others = (ones.T, ones.ravel(), ones.astype(np.float32), ones + np.eye(2, 3) * 1e-16 * 2, np.zeros((0, 3)))
    assert len({content_key(array) for array in (ones, *others)}) == 6
    assert content_key(ones[:, ::-1]) == content_key(ones.copy())
    assert content_key(ones, ones[:1]) != content_key(ones[:1], ones)


def test_a_cage_is_built_once_for_a_target_and_is_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    attempt = build._attempt
    monkeypatch.setattr(build, "_attempt", lambda *given: built.append(1) or attempt(*given))
    shape = gallery.gingerbread(900).base
    cage = pliant.build_cage(shape, faces=150)
    again = pliant.build_cage(Mesh(2 * shape.points, shape.polygons), faces=150)
    np.testing.assert_allclose(again.points, 2 * cage.points, atol=1e-12)
    assert len(built) == 1
    pliant.build_cage(shape, faces=160)
    pliant.build_cage(Mesh(shape.points * [1, 1, 1.01], shape.polygons), faces=150)
    assert len(built) == 3
