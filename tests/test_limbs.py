"""Limbs of a skeleton on shapes that stand otherwise than it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.core import rotations
from pliant.engines.transfer.body_tree import motion_tree
from pliant.engines.transfer.limbs import SEPARATE_TIPS, bare_limb, limb_bones, matched


def stretched(motion: pliant.Motion, degrees: float) -> pliant.Motion:
    """A motion whose skeleton rests with its arms turned up by an angle, about its shoulders."""
    skeleton = motion.skeleton
    turns = skeleton.rest_rotations.copy()
    for side, sign in (("L", 1), ("R", -1)):
        j = skeleton.index(f"upperarm.{side}")
        turns[j] = rotations.multiply(rotations.from_axis_angle([0, 0, sign], np.radians(degrees)), turns[j])
    other = pliant.Skeleton(skeleton.names, skeleton.parents, skeleton.offsets, turns, skeleton.ends)
    return pliant.Motion(other, motion.rotations, motion.translations, motion.fps)


def test_a_tree_knows_its_limbs() -> None:
    """Toes, hands, ears and the tail's tip are tips; fingers of one hand are one."""
    motion = gallery.creature_walk(2)
    tree, names = motion_tree(motion)[0], motion.skeleton.names
    tips = tree.separate_tips(SEPARATE_TIPS)
    above = [names[tree.parents[tip]] if tip >= len(names) else names[tip] for tip in tips]
    for side in "LR":
        assert sum(name.startswith("toe") and name.endswith(side) for name in above) == 1
    arm = next(bare_limb(tree, tip, tips) for tip in tips if names.index("forearm.L") in tree.chain(tip))
    assert names.index("upperarm.L") in arm
    assert names.index("chest") not in arm
    i, j = names.index("upperarm.L"), names.index("forearm.L")
    assert tree.route(i, j) == pytest.approx(np.linalg.norm(tree.locations[i] - tree.locations[j]))


def test_tips_are_matched_by_the_ways_between_them_whatever_the_pose() -> None:
    """Ways are kept, and places are not: a hand that is near another's foot is still the hand."""
    rng = np.random.default_rng(0)
    legs, arms, head = 1.0, 0.8, 0.3
    long = np.array([legs, legs, arms, arms, head])
    trunk = np.array([0, 0, 0.5, 0.5, 0.5])
    ways = (long[:, None] + long + np.abs(trunk[:, None] - trunk)) * (1 - np.eye(5))
    positions = np.array([[0.2, 0, 0], [-0.2, 0, 0], [0.9, 1.5, 0], [-0.9, 1.5, 0], [0, 1.8, 0]])
    hanging = np.array([[0.2, 0, 0], [-0.2, 0, 0], [0.3, 0.6, 0], [-0.3, 0.6, 0], [0, 1.8, 0]])
    order = rng.permutation(5)
    found = matched(ways, 1.7 * ways[np.ix_(order, order)], positions, hanging[order])
    assert found is not None
    np.testing.assert_array_equal(order[found], np.arange(5))
    assert matched(ways, ways[:4, :4], positions, hanging[:4]) is None  # a tip is missing


@pytest.mark.parametrize("degrees", [0, 30, 60])
def test_bones_lie_where_the_shape_has_them(degrees: float) -> None:
    """The creature's own skeleton with its arms elsewhere finds the creature's arms."""
    motion = gallery.creature_walk(2)
    skeleton = motion.skeleton
    other = stretched(motion, degrees)
    found = limb_bones(other, None, gallery.creature(3000).base, np.eye(3))
    joints = skeleton.rest_pose().world()[0]
    for side in "LR":
        j, k = skeleton.index(f"upperarm.{side}"), skeleton.index(f"forearm.{side}")
        path_length = found[j][1] - found[j][0]
        bone = joints[k] - joints[j]
        cosine = path_length @ bone / np.linalg.norm(path_length) / np.linalg.norm(bone)
        assert np.degrees(np.arccos(cosine)) < 12


def test_arms_that_rest_elsewhere_stay_with_the_source() -> None:
    """The source rests with its arms up and holds them where the target's are: nothing moves."""
    motion = gallery.creature_walk(2)
    still = pliant.Motion(motion.skeleton, motion.skeleton.rest_rotations[None], motion.skeleton.offsets[None])
    source = stretched(still, 50)
    target = gallery.creature(1000).base
    moved = pliant.transfer(source, target, "auto", "auto", lattice=16, faces=200)
    away = np.linalg.norm(moved.clip.points[0] - target.points, axis=1)
    arms = np.abs(target.points[:, 0]) > 0.35  # hands and forearms
    assert arms.sum() > 30
    assert away[arms].mean() < 0.05 * target.diagonal  # half a right angle at an arm's length were 0.3


@pytest.mark.data
@pytest.mark.filterwarnings("ignore:the source's first frame is a reference pose")
@pytest.mark.slow
def test_a_walk_that_rests_in_a_t_pose_drives_a_knight_whose_arms_hang(data: Path) -> None:
    """No limb is crumpled, and the arms go on hanging."""
    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    target = pliant.read_mesh(data / "models/knight/knight.ply")
    moved = pliant.transfer(walk, target, "auto", "auto", frames=np.linspace(20, len(walk) - 1, 6), lattice=40)
    assert max(solution.gradient_angles.max() for solution in moved.solutions) < 10
    assert max(solution.gradient_strains.max() for solution in moved.solutions) < 0.15
    controls = {control.track.name: np.asarray(control.before) for control in moved.controls}
    for side, x in (("Left", 1.0), ("Right", -1.0)):
        hanging = controls[f"{side}ForeArm"] @ [0, -1.0, 0]
        assert hanging @ [x, 0, 0] > 0.9  # B takes it to where the source's is at rest
    hands = np.abs(target.points[:, 0] - target.points[:, 0].mean()) > 0.19
    hands &= target.points[:, 1] < 0.42
    assert hands.sum() > 50
    middle = target.points[:, 1].mean() - moved.clip.points[..., 1].mean(axis=1)
    height = moved.clip.points[:, hands, 1].mean(axis=1) + middle
    np.testing.assert_allclose(height, target.points[hands, 1].mean(), atol=0.08)
    volume = pliant.quality.volume_ratio(target, moved.clip)
    assert volume.min() > 0.9
    assert volume.max() < 1.1
