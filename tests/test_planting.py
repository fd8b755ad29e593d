"""Feet that stay where they stand (`pliant.geometry.planting`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pliant import Motion, Skeleton, rotations
from pliant.geometry.planting import CarriedPoints, planted

UP = np.array([0.0, 1.0, 0.0])
FPS = 30.0
NAMES = ("root", "hips", "thigh.l", "shin.l", "foot.l", "thigh.r", "shin.r", "foot.r")
LEGS = {"l": 0.1, "r": -0.1}


def figure(hanging: bool = False) -> tuple[Skeleton, CarriedPoints]:
    """A trunk on two slightly bent legs, whose feet may hang on the root as those of many rigs do."""
    at, parents = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [-1, 0]
    for x in LEGS.values():
        at += [[x, 1.0, 0.0], [x, 0.5, 0.06], [x, 0.08, 0.0]]
        parents += [1, len(parents), 0 if hanging else len(parents) + 1]
    skeleton = Skeleton.from_positions(at, parents, NAMES)
    points, joints = [np.array([[0.2, 1.0, 0.1], [-0.2, 1.8, -0.1]])], [1, 1]
    for side, x in LEGS.items():
        sole = np.array([[x + dx, y, z] for dx in (-0.04, 0.04) for y in (0.0, 0.08) for z in (-0.05, 0.15)])
        shin = np.array([[x + dx, y, dz] for dx in (-0.04, 0.04) for y in (0.12, 0.5) for dz in (-0.04, 0.04)])
        points += [sole, shin]
        joints += [NAMES.index(f"foot.{side}")] * len(sole) + [NAMES.index(f"shin.{side}")] * len(shin)
    return skeleton, CarriedPoints(np.concatenate(points), np.array(joints))


def swaying(skeleton: Skeleton, shift: np.ndarray) -> Motion:
    """All of it is displaced by (f, 3)."""
    places = np.repeat(skeleton.offsets[None], len(shift), axis=0)
    places[:, 0] += shift
    return Motion(skeleton, np.repeat(skeleton.rest_rotations[None], len(shift), axis=0), places, FPS)


def soles(motion: Motion, carried: CarriedPoints) -> np.ndarray:
    """(f, n, 3) the points of the feet."""
    feet = [k for k, joint in enumerate(carried.joints) if NAMES[joint].startswith("foot")]
    joints, (rest, _), (at, q) = carried.joints[feet], motion.skeleton.rest_world, motion.world()
    return at[:, joints] + rotations.rotate(
        q[:, joints], np.broadcast_to(carried.points[feet] - rest[joints], (len(motion), len(feet), 3))
    )


SLOWLY = np.outer(0.05 * np.sin(np.linspace(0, 2 * np.pi, 61)), [1.0, 0.0, 0.5])


@pytest.mark.parametrize("hanging", [False, True])
def test_feet_that_slide_slowly_stay_where_they_stand(hanging):
    skeleton, carried = figure(hanging)
    motion = swaying(skeleton, SLOWLY)
    found = planted(motion, carried, UP, 0.0)
    assert np.ptp(soles(motion, carried), axis=0).max() > 0.09
    assert np.ptp(soles(found, carried), axis=0).max() < 2e-3
    (before, _), (after, turned) = motion.world(), found.world()
    trunk = [NAMES.index(name) for name in ("root", "hips", "thigh.l", "thigh.r")]
    assert np.allclose(after[:, trunk], before[:, trunk])
    feet = [NAMES.index(f"foot.{side}") for side in LEGS]
    assert np.allclose(np.abs(turned[:, feet, 0]), 1)  # as flat as before
    for side in LEGS:
        leg = [NAMES.index(f"{part}.{side}") for part in ("thigh", "shin", "foot")]
        lengths = np.linalg.norm(np.diff(after[:, leg], axis=1), axis=2)
        assert np.allclose(lengths, lengths[0])


def test_feet_and_toes_that_hang_on_the_root_are_not_joined_in_a_circle():
    """Each foot is near the other's toe."""
    at = np.array([[0, 1, 0], [0.06, 0.05, 0], [0.06, 0.02, 0.12], [-0.06, 0.05, 0], [-0.06, 0.02, 0.12]])
    skeleton = Skeleton.from_positions(at, [-1, 0, 1, 0, 3])
    spread = np.random.default_rng(0).uniform(-0.02, 0.02, size=(5, 30, 3))
    carried = CarriedPoints((at[:, None] + spread).reshape(-1, 3), np.repeat(np.arange(5), 30))
    still = swaying(skeleton, np.zeros((10, 3)))
    assert len(planted(still, carried, UP, 0.0)) == 10


def test_a_foot_that_is_carried_along_fast_is_left_to_slide():
    """As in clips that walk on the spot."""
    skeleton, carried = figure()
    motion = swaying(skeleton, np.outer(np.linspace(0, 2.0, 31), [0.0, 0.0, 1.0]))
    assert np.allclose(planted(motion, carried, UP, 0.0).world()[0], motion.world()[0])


def test_feet_below_the_floor_are_raised_to_it():
    skeleton, carried = figure()
    sunk = np.outer(-0.04 * np.sin(np.linspace(0, np.pi, 31)), UP)
    motion = swaying(skeleton, sunk)
    found = planted(motion, carried, UP, 0.0)
    assert (soles(motion, carried) @ UP).min() < -0.03
    assert (soles(found, carried) @ UP).min() > -1e-3


def test_a_foot_rolls_from_the_heel_to_the_toes():
    """It rotates about its heel, which stays where it is: nothing is to be corrected."""
    skeleton, carried = figure()
    motion = swaying(skeleton, np.zeros((21, 3)))
    foot, heel = NAMES.index("foot.l"), np.array([0.0, -0.08, -0.05])
    q = rotations.from_axis_angle(np.tile([1.0, 0, 0], (21, 1)), np.linspace(0, -0.5, 21))
    local, places = motion.rotations.copy(), motion.translations.copy()
    local[:, foot] = q
    places[:, foot] += heel - rotations.rotate(q, np.tile(heel, (21, 1)))
    motion = replace(motion, rotations=local, translations=places)
    found = planted(motion, carried, UP, 0.0)
    assert np.abs(soles(found, carried) - soles(motion, carried)).max() < 2e-3


def test_it_does_not_matter_where_the_figure_stands_and_how_large_it_is():
    skeleton, carried = figure()
    motion = swaying(skeleton, SLOWLY)
    found = planted(motion, carried, UP, 0.0)
    q, scale, shift = rotations.from_axis_angle([1.0, 0, 0], np.pi / 2), 7.0, np.array([3.0, -2.0, 5.0])

    def moved(points):
        return scale * rotations.rotate(q, points) + shift

    other = Skeleton.from_positions(moved(skeleton.rest_world[0]), skeleton.parents, NAMES)
    places = np.repeat(other.offsets[None], len(SLOWLY), axis=0)
    places[:, 0] += scale * rotations.rotate(q, SLOWLY)
    theirs = Motion(other, np.repeat(other.rest_rotations[None], len(SLOWLY), axis=0), places, FPS)
    up = rotations.rotate(q, UP)
    there = planted(theirs, CarriedPoints(moved(carried.points), carried.joints), up, float(shift @ up))
    assert np.allclose(there.world()[0], moved(found.world()[0]), atol=2e-3 * scale)


def test_what_has_no_legs_is_left_alone():
    skeleton = Skeleton.from_positions([[0, 0.05, z] for z in range(5)], [-1, 0, 1, 2, 3])
    points = np.array([[x, y, z + 0.5] for z in range(5) for x in (-0.1, 0.1) for y in (0.0, 0.2)])
    carried = CarriedPoints(points, np.repeat(np.arange(5), 4))
    motion = swaying(skeleton, SLOWLY)
    assert np.array_equal(planted(motion, carried, UP, 0.0).world()[0], motion.world()[0])
