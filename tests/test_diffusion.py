"""Bones, their samples, and the rotations that diffuse from them."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import Mesh, Skeleton, SkeletonPose, gallery
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.engines.simulate.bone_samples import sample_bones
from pliant.engines.simulate.bones import find_bones
from pliant.engines.simulate.diffusion import RotationWeights, bounded, diffuse
from pliant.engines.simulate.discretisation import discretise
from pliant.engines.simulate.nodes import sample_nodes
from pliant.engines.simulate.stiffness import laplacian
from pliant.geometry.spatial import SurfaceTree


def chain(*heights: float) -> Skeleton:
    """Joints one above the other."""
    y = np.array(heights)
    return Skeleton.from_positions(np.stack([0 * y, y, 0 * y], axis=1), np.arange(len(y)) - 1)


def column() -> Mesh:
    return gallery.cylinder(600, radius=0.5, height=4, rounding=0.2)


def diffused(mesh: Mesh, skeleton: Skeleton, count: int):
    """Samples, nodes, weights at the nodes, which are loose, and weights at quadrature points."""
    tree = SurfaceTree(mesh)
    samples = sample_bones(find_bones(skeleton, tree), tree, (mesh.volume / count) ** (1 / 3))
    nodes = sample_nodes(mesh, count, fixed=samples.points)
    rows = discretise(mesh, nodes, samples.areas, samples.radii)
    table, loose = diffuse(laplacian(rows.functions, rows.weights), nodes, samples.blend)
    return samples, nodes, table, loose, rows.inner.matrix @ table


CASES = {
    "column": (column, lambda: chain(-1.8, 0, 1.8)),
    "creature": (lambda: gallery.creature(2000)[0], gallery.creature_skeleton),
    "dinosaur": (lambda: gallery.dinosaur(2000)[0], gallery.dinosaur_skeleton),
}


@pytest.fixture(scope="module", params=["column", "creature", pytest.param("dinosaur", marks=pytest.mark.slow)])
def case(request):
    mesh, skeleton = CASES[request.param]
    return diffused(mesh(), skeleton(), 900)


def test_weights_keep_the_maximum_principle(case):
    _, _, table, _, at_points = case
    for weights in (table, bounded(at_points)):
        assert weights.min() >= 0
        assert weights.max() <= 1 + 1e-12
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


def test_weights_are_the_samples_own_at_the_samples(case):
    samples, nodes, table, _, _ = case
    np.testing.assert_allclose(table[nodes.free :], samples.blend.toarray())


def test_one_rotation_for_all_bones_is_that_rotation_everywhere(case):
    table = case[2]
    turn = rotations.normalize([0.3, -0.5, 0.2, 0.7])
    found = RotationWeights.of(table).quaternions(np.tile(turn, (table.shape[1], 1)))
    np.testing.assert_allclose(found, np.tile(turn, (len(table), 1)), atol=1e-14)


def test_kernel_agrees_with_numpy(case):
    table = bounded(case[4])
    rng = np.random.default_rng(1)
    turns = rotations.normalize([1, 0, 0, 0] + 0.4 * rng.standard_normal((table.shape[1], 4)))
    weights = RotationWeights.of(table)
    reference = rotations.normalize(table @ turns)
    np.testing.assert_allclose(weights.quaternions(turns), reference, atol=1e-12)
    np.testing.assert_allclose(weights.matrices(turns).reshape(-1, 3, 3), rotations.matrix(reference), atol=1e-12)


def test_rotations_that_cancel_leave_the_larger_weight():
    weights = RotationWeights.of(np.array([[0.5, 0.5], [0.6, 0.4]]))
    turns = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]])
    np.testing.assert_allclose(np.abs(weights.quaternions(turns)[:, 0]), 1)


def test_angle_grows_from_bone_to_bone():
    samples, nodes, table, _, _ = diffused(column(), chain(-1.8, 0, 1.8), 700)
    upper = (samples.bones.joint > 0).astype(float)
    turns = rotations.from_axis_angle([1, 0, 0], np.radians(90) * upper)
    angle = 2 * np.degrees(np.arccos(np.clip(rotations.normalize(table @ turns)[:, 0], -1, 1)))
    height = nodes.points[:, 1]
    assert angle[height < -1.3].max() < 5
    assert angle[height > 1.3].min() > 85
    assert abs(angle[np.abs(height) < 0.15].mean() - 45) < 5


def test_signs_of_a_poses_quaternions_do_not_matter():
    skeleton = gallery.dinosaur_skeleton()
    bones = find_bones(skeleton, SurfaceTree(gallery.dinosaur(2000)[0]))
    rng = np.random.default_rng(3)
    turns = rotations.multiply(skeleton.rest_rotations, rotations.exp(0.5 * rng.standard_normal((len(skeleton), 3))))
    flipped = np.where(rng.random((len(skeleton), 1)) < 0.5, -turns, turns)
    first, second = (bones.posed(q[None], skeleton.offsets[None]) for q in (turns, flipped))
    np.testing.assert_allclose(first.quaternions, second.quaternions, atol=1e-12)


def test_neighbours_stay_near_each_other_past_half_a_turn():
    skeleton = chain(*np.linspace(-1.8, 1.8, 9))
    bones = find_bones(skeleton, SurfaceTree(column()))
    turn = rotations.from_axis_angle([0, 1, 0], np.radians(60))
    turns = np.tile(turn, (9, 1))
    posed = bones.posed(turns[None], skeleton.offsets[None]).quaternions[0][np.argsort(bones.heads[:, 1])]
    assert (np.einsum("bi,bi->b", posed[1:], posed[:-1]) > 0.8).all()  # cos 30°, though 480° in all


def test_samples_hold_the_spin_of_a_straight_bone():
    mesh = column()
    tree = SurfaceTree(mesh)
    bones = find_bones(chain(-1.8, 1.8), tree)
    samples = sample_bones(bones, tree, 0.2)
    away = samples.points - samples.points.mean(axis=0)
    assert np.linalg.svd(away, compute_uv=False)[2] > 0.5
    assert tree.inside(samples.points).all()


def test_samples_move_rigidly_with_the_skeleton():
    skeleton = gallery.creature_skeleton()
    tree = SurfaceTree(gallery.creature(2000)[0])
    samples = sample_bones(find_bones(skeleton, tree), tree, 0.05)
    turn, shift = rotations.normalize([0.2, 0.5, -0.3, 0.6]), np.array([3.0, -2.0, 5.0])
    turns, places = skeleton.rest_rotations.copy(), skeleton.offsets.copy()
    turns[0], places[0] = rotations.multiply(turn, turns[0]), rotations.rotate(turn, places[0]) + shift
    moved = samples.posed(samples.bones.posed(turns[None], places[None]))[0]
    np.testing.assert_allclose(moved, rotations.rotate(turn, samples.points) + shift, atol=1e-12)


def test_a_bone_follows_a_joint_that_moves():
    skeleton = chain(-1.8, 0, 1.8)
    bones = find_bones(skeleton, SurfaceTree(column()))
    places = skeleton.offsets.copy()
    places[1] += [1.8, 0, 0]  # the lower bone leans by 45° and is longer
    frames = bones.posed(skeleton.rest_rotations[None], places[None])
    lower = int(np.flatnonzero(bones.joint == 0)[0])
    np.testing.assert_allclose(frames.tails[0, lower], [1.8, 0, 0], atol=1e-12)
    leaned = rotations.rotate(frames.quaternions[0, lower], [0, 1, 0])
    np.testing.assert_allclose(leaned, np.array([1, 1, 0]) / np.sqrt(2), atol=1e-12)


def test_a_part_without_a_bone_follows_the_nearest_one():
    post, ball = column(), gallery.sphere(500, radius=0.2, centre=(1.2, 1.2, 0))
    both = Mesh(
        np.concatenate([post.points, ball.points]),
        np.concatenate([post.triangles, ball.triangles + len(post.points)]),
    )
    _, nodes, table, loose, _ = diffused(both, chain(-1.8, 0, 1.8), 900)
    apart = nodes.points[: nodes.free, 0] > 0.7
    assert apart.any()
    np.testing.assert_array_equal(loose, apart)
    assert np.ptp(table[: nodes.free][apart], axis=0).max() == 0


def test_a_skeleton_of_another_scale_is_refused():
    with pytest.raises(InputError, match="scale one of them"):
        find_bones(chain(-180, 0, 180), SurfaceTree(column()))


def test_a_skeleton_beside_the_mesh_is_refused():
    beside = Skeleton.from_positions([[5, -1, 0], [5, 0, 0], [5, 1, 0]], [-1, 0, 1])
    with pytest.raises(InputError, match="start outside the mesh"):
        find_bones(beside, SurfaceTree(column()))


def test_a_root_on_the_ground_is_left_out_without_alarm():
    places = [[3.0, -2, 0], [0, -1.8, 0], [0, 0, 0], [0, 1.8, 0]]
    bones = find_bones(Skeleton.from_positions(places, [-1, 0, 1, 2]), SurfaceTree(column()))
    assert bones.joint.tolist() == [1, 2, 3]


def test_a_head_without_an_end_gets_a_bone():
    bones = find_bones(chain(-1.8, 0.5), SurfaceTree(column()))
    last = int(np.flatnonzero(bones.joint == 1)[0])
    assert bones.child[last] == -1
    assert 1.2 < bones.tails[last, 1] < 2.0


def test_pose_types(case):
    bones = case[0].bones
    pose = bones.skeleton.rest_pose()
    assert isinstance(pose, SkeletonPose)
    frames = bones.posed(pose.rotations[None], pose.translations[None])
    np.testing.assert_allclose(frames.quaternions[0], np.tile(rotations.IDENTITY, (len(bones), 1)), atol=1e-12)
    np.testing.assert_allclose(frames.tails[0], bones.tails, atol=1e-12)


def test_the_bone_of_a_joint_without_children_leads_into_its_flesh():
    """Not on along the bone before it, which is across here, as where feet hang on a rig's root."""
    tree = SurfaceTree(gallery.cylinder(1000, radius=0.5, height=5, rounding=0.3))
    skeleton = Skeleton.from_positions([[0, -2.3, 0], [0, 0, 0], [0.4, 1.2, 0], [0, 1.4, 0]], [-1, 0, 1, 2])
    bones = find_bones(skeleton, tree)
    last = bones.names.index("joint3 to its end")
    way = bones.tails[last] - bones.heads[last]
    assert way[1] > 0.9 * np.linalg.norm(way)
    assert 0.4 < way[1] < 1.1
    assert tree.inside(bones.tails).all()
