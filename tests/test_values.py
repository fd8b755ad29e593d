"""Values own what they hold: nobody can change it, however it was made, copied or pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest

from pliant import Animation, Appearance, Labels, Layer, Mesh, Motion, PointCloud, Shapes, Skeleton, TetMesh
from pliant.core.values import Buffers, locked, owned
from pliant.geometry.spatial import SurfaceTree

CORNERS = np.array([[x, y, z] for x in (0.0, 2) for y in (0.0, 3) for z in (0.0, 4)])
SIDES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def box() -> Mesh:
    return Mesh(CORNERS, SIDES)


def values() -> dict[str, object]:
    """One of each, with everything in it."""
    chain = Skeleton(("a", "b"), [-1, 0], CORNERS[:2], ends={1: np.ones(3)})
    cloud = PointCloud(CORNERS, CORNERS, {"heat": np.arange(8.0)})
    mesh = Mesh(
        CORNERS,
        SIDES,
        uvs=Layer(np.random.default_rng(0).random((24, 2)), np.arange(24)),
        normals=Layer(np.eye(3), np.zeros(24, int)),
        labels={"material": Labels(("red",), np.zeros(6, int))},
        appearances={"red": Appearance(native={"obj": ["Kd 1 0 0"]})},
        attributes={"heat": np.arange(8.0)},
        vertex_groups={"top": np.ones(8)},
    )
    return {
        "mesh": mesh,
        "weld": mesh.welded(),
        "tets": TetMesh(CORNERS, [[0, 1, 2, 4]], [[0, 1, 2]], {"heat": np.arange(8.0)}),
        "cloud": cloud,
        "shapes": Shapes.of([mesh, mesh.scaled(2)]),
        "animation": Animation(cloud, [CORNERS, CORNERS]),
        "skeleton": chain,
        "pose": chain.rest_pose(),
        "motion": Motion(chain, np.ones((3, 2, 4)), np.zeros((3, 2, 3))),
        "tree": SurfaceTree(mesh),
    }


def contents(value: object) -> Iterator[np.ndarray | Mapping]:
    """All arrays and dictionaries within a value, cached ones too."""
    if isinstance(value, (np.ndarray, Mapping)):
        yield value
    if isinstance(value, Mapping):
        value = tuple(value.values())
    for part in value if isinstance(value, tuple) else getattr(value, "__dict__", {}).values():
        yield from contents(part)


def arrays(*values: object) -> list[np.ndarray]:
    return [part for value in values for part in contents(value) if isinstance(part, np.ndarray)]


WAYS = {
    "made": lambda value: value,
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "copied": copy.copy,
    "deep copied": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", values())
def test_nothing_in_a_value_can_be_changed(name: str, way: str) -> None:
    value = values()[name]
    for attribute in [k for k, v in vars(type(value)).items() if isinstance(v, cached_property)]:
        getattr(value, attribute)
    found = list(contents(WAYS[way](value)))
    assert len(found) > 1
    for part in found:
        if isinstance(part, np.ndarray):
            assert not part.flags.writeable
        else:
            with pytest.raises(TypeError, match="does not support item assignment"):
                part["new"] = 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", values())
def test_copies_hold_the_same(name: str, way: str) -> None:
    value = values()[name]
    twin = WAYS[way](value)
    assert type(twin) is type(value)
    for ours, theirs in zip(arrays(value), arrays(twin), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_a_caller_does_to_its_arrays_reaches_no_value() -> None:
    faces, tets, index, weights = SIDES.copy(), np.array([[0, 1, 2, 4]]), np.zeros(6, int), np.ones(8)
    clip, table, native = np.stack([CORNERS] * 2), {"heat": weights}, {"obj": "Kd"}
    mesh = Mesh(CORNERS, faces, labels={"group": Labels(("a",), index)}, attributes=table, vertex_groups=table)
    made = [
        mesh,
        TetMesh(CORNERS, tets, attributes=table),
        PointCloud(clip[0], attributes=table),
        Shapes(mesh, clip, ("a", "b")),
        Animation(mesh, clip),
        Layer(clip[0], index),
    ]
    look = Appearance(native=native)
    before = [array.copy() for array in arrays(*made)]
    for array in (faces, tets, index, weights, clip):
        array[:] = 99
    table["cold"] = native["gltf"] = weights
    for old, new in zip(before, arrays(*made), strict=True):
        np.testing.assert_array_equal(old, new)
    assert list(mesh.attributes) == ["heat"]
    assert list(look.native) == ["obj"]


def test_a_read_only_view_of_what_others_can_write_to_is_copied() -> None:
    clip = np.stack([CORNERS] * 2)
    view = clip[:]
    view.flags.writeable = False
    animation = Animation(box(), view)
    clip[:] = 7
    np.testing.assert_array_equal(animation.points[0], CORNERS)


def test_what_is_locked_is_shared_not_copied() -> None:
    clip = locked(np.stack([CORNERS] * 3))
    animation = Animation(box(), clip)
    assert animation.points is clip
    assert np.shares_memory(animation[1].points, clip)
    assert replace(animation, fps=24).points is clip
    assert copy.copy(animation).points is clip
    packed = np.frombuffer(CORNERS.tobytes()).reshape(-1, 3)  # bytes never change
    assert PointCloud(packed).points is packed


def test_locking_a_view_locks_what_it_views() -> None:
    whole = np.zeros((4, 3))
    assert PointCloud(locked(whole[1:])).points.base is whole
    assert not whole.flags.writeable


def test_memory_is_used_again_when_nobody_holds_an_array_nor_a_view_of_it() -> None:
    buffers = Buffers()

    def address(array: np.ndarray) -> int:
        return array.__array_interface__["data"][0]

    first = buffers.empty((100, 3))
    first[:] = 1
    rows, where = locked(first[10:20, 1]), address(first)
    assert owned(rows, "rows") is rows
    del first
    other = buffers.empty((100, 3))
    other[:] = 2
    assert address(other) != where
    np.testing.assert_array_equal(rows, 1)
    del rows
    again = buffers.empty((300,))
    assert address(again) == where
    again[:] = 3
    np.testing.assert_array_equal(other, 2)
    del again
    assert buffers.empty((5,), np.float32).shape == (5,)
    assert buffers.empty((0, 3)).shape == (0, 3)
    assert pickle.loads(pickle.dumps(buffers)).empty((2,)).shape == (2,)
