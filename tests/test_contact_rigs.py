"""Self-contact on real rigs: never more crossings than without, and none where the shapes have come free."""

import numpy as np
import pytest

from pliant import Blendshapes, Mesh, Shapes, read_mesh, read_shapes
from pliant.geometry.spatial import SurfaceTree

pytestmark = [pytest.mark.data, pytest.mark.slow]
SKIN = 9409
"""Vertices of the skin of ICT-FaceKit's head, which come first."""


def crossings(rig: Blendshapes, poses) -> list[int]:
    tree = SurfaceTree(rig.shapes.base)
    return [len(tree.moved(pose.points).crossings()) for pose in poses]


def both(rig: Blendshapes, weights) -> tuple[list[int], list[int]]:
    touching = list(rig.poses(weights, self_contact=True))
    assert all(pose.converged and pose.crossings == 0 for pose in touching)
    return crossings(rig, rig.poses(weights)), crossings(rig, touching)


def test_a_hand_makes_a_fist(data):
    shapes = read_shapes(data / "poses/hand/leftHandHigh.glb")
    rig = Blendshapes(Shapes.of([shapes.named("Open"), shapes.named("Fist")]))
    free, touching = both(rig, rig.path(13))
    assert max(free) > 50
    assert touching == [0] * 13


def test_a_cat_that_crosses_itself_comes_free_and_stays_so(data):
    rig = Blendshapes([read_mesh(data / f"poses/cat/cat-{name}.obj") for name in ("ref", "05")])
    free, touching = both(rig, rig.path(17))
    assert free[0] > 50
    assert free[-1] > 20
    assert all(ours <= theirs for ours, theirs in zip(touching, free, strict=True))
    assert touching[5:] == [0] * 12


def test_lips_meet(data):
    shapes = read_shapes(data / "faces/ict-facekit/ict-facekit-expressions.tar.xz", base="generic_neutral_mesh")
    table = shapes.base.triangles[(shapes.base.triangles < SKIN).all(axis=1)]
    skin = [Mesh(shape.points[:SKIN], table) for shape in (shapes.base, shapes.named("jawOpen"))]
    free, touching = both(Blendshapes(skin), np.array([[1 - t, t] for t in (0.6, 0.3, 0.15, 0, -0.15)]))
    assert max(free) > 100
    assert touching == [0] * 5
