"""Where deformation gradients come from: they are exact where the truth is known, and bad sources are named."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pliant
from pliant import Animation, InputError, Mesh, PointCloud, gallery
from pliant.core import rotations
from pliant.core.topology import connected_parts
from pliant.engines.transfer.groups import Sphere, neighbour_pairs, rigid_groups
from pliant.engines.transfer.sources import (
    Track,
    cell_tracks,
    group_tracks,
    joint_tracks,
    matrix_tracks,
    rod_tracks,
)

FRAMES = 5
RNG = np.random.default_rng(3)
TURNS = rotations.matrix(rotations.exp(RNG.standard_normal((FRAMES, 3))))
MAPS = TURNS @ (np.eye(3) + 0.3 * RNG.standard_normal((FRAMES, 3, 3)))
SHIFTS = RNG.standard_normal((FRAMES, 3))
SOLID = RNG.standard_normal((40, 3)) * [3.0, 2.0, 1.0] + [5.0, -2.0, 1.0]
FLAT = SOLID * [1, 0, 1]
LINE = np.array([0, 0, 3.0]) + np.linspace(-1, 2, 9)[:, None] * [1.0, 2.0, -0.5]
CLOUDS = {"solid": SOLID, "flat": FLAT, "thin": SOLID * [1, 1e-3, 1]}


def moved(points: np.ndarray, maps: np.ndarray) -> Animation:
    return Animation(PointCloud(points), np.einsum("fij,nj->fni", maps, points) + SHIFTS[:, None], fps=24)


@pytest.mark.parametrize("fit", ["linear", "rotation"])
@pytest.mark.parametrize("points", CLOUDS.values(), ids=CLOUDS.keys())
def test_a_rigidly_moved_group_has_its_rotation(points, fit):
    track = group_tracks(moved(points, TURNS), {"all": range(len(points))}, fit=fit)["all"]
    assert track.gradients == pytest.approx(TURNS, abs=1e-10)
    assert track.rest == pytest.approx(points.mean(axis=0))
    assert track.points == pytest.approx(points.mean(axis=0) @ TURNS.transpose(0, 2, 1) + SHIFTS)
    assert track.fps == 24


def test_a_linear_map_is_recovered():
    assert group_tracks(moved(SOLID, MAPS), [range(40)])["group 0"].gradients == pytest.approx(MAPS, abs=1e-10)
    turns = group_tracks(moved(SOLID, MAPS), [range(40)], fit="rotation")["group 0"].gradients
    assert turns @ turns.transpose(0, 2, 1) == pytest.approx(np.broadcast_to(np.eye(3), turns.shape), abs=1e-12)
    assert np.linalg.det(turns) == pytest.approx(1)


def test_a_flat_group_stretches_in_its_plane_and_turns_its_normal():
    S = group_tracks(moved(FLAT, MAPS), [range(40)])["group 0"].gradients
    assert S[:, :, [0, 2]] == pytest.approx(MAPS[:, :, [0, 2]], abs=1e-10)
    normal = S[:, :, 1]
    assert np.linalg.norm(normal, axis=1) == pytest.approx(1)
    assert np.einsum("fi,fik->fk", normal, S[:, :, [0, 2]]) == pytest.approx(0, abs=1e-9)
    assert (np.linalg.det(S) > 0).all()


def test_points_on_a_line_turn_the_shortest_way():
    maps = np.concatenate([TURNS, -np.eye(3)[None]])
    clip = Animation(PointCloud(LINE), np.einsum("fij,nj->fni", maps, LINE))
    S = group_tracks(clip, [range(len(LINE))])["group 0"].gradients
    axis = np.array([1.0, 2.0, -0.5])
    assert S @ axis == pytest.approx(maps @ axis, abs=1e-9)
    assert np.linalg.det(S) == pytest.approx(1)
    turned = np.degrees(np.arccos((np.trace(S, axis1=1, axis2=2) - 1) / 2))
    between = np.degrees(np.arccos(np.einsum("fi,i->f", maps @ axis, axis) / (axis @ axis)))
    assert turned == pytest.approx(between, abs=1e-5)


def test_the_rest_may_be_a_frame_or_other_points():
    clip = moved(SOLID, MAPS)
    first = group_tracks(clip, [range(40)], rest=0)["group 0"].gradients
    assert first == pytest.approx(MAPS @ np.linalg.inv(MAPS[0]), abs=1e-10)
    assert group_tracks(clip, [range(40)], rest=2 * SOLID)["group 0"].gradients == pytest.approx(MAPS / 2, abs=1e-10)


def test_groups_by_mask_sphere_and_vertex_group():
    bar = gallery.bar(600).base
    weights = (bar.points[:, 1] > 0).astype(float)
    bar = Mesh(bar.points, bar.polygons, vertex_groups={"top": weights})
    clip = Animation(bar, np.stack([bar.points, bar.points + 1.0]))
    centre, radius = bar.points[0], 0.3 * bar.diagonal
    near = np.flatnonzero(np.linalg.norm(bar.points - centre, axis=1) <= radius)
    tracks = group_tracks(clip, {"mask": weights > 0, "named": "top", "ball": Sphere(centre, radius), "list": near})
    assert tracks["mask"].rest == pytest.approx(tracks["named"].rest)
    assert tracks["ball"].rest == pytest.approx(tracks["list"].rest)
    assert list(group_tracks(clip, ["top", [0, 1, 2]])) == ["top", "group 1"]


def test_triangles_and_tetrahedra_have_their_own_gradients():
    solid = gallery.tets(800)
    points = np.einsum("fij,nj->fni", MAPS, solid.points) + SHIFTS[:, None]
    for track in cell_tracks(Animation(solid, points), [3, 700]).values():
        assert track.gradients == pytest.approx(MAPS, abs=1e-9)
    mesh = solid.surface
    tracks = cell_tracks(Animation(mesh, points), [0, 10])
    assert list(tracks) == ["triangle 0", "triangle 10"]
    for number, track in zip([0, 10], tracks.values(), strict=True):
        a, b, c = mesh.points[mesh.triangles[number]]
        for edge in (b - a, c - a):
            assert track.gradients @ edge == pytest.approx(MAPS @ edge, abs=1e-9)
        n = np.cross(b - a, c - a)
        assert np.cross(track.gradients @ n, np.cross(MAPS @ (b - a), MAPS @ (c - a))) == pytest.approx(0, abs=1e-9)
        assert track.rest == pytest.approx((a + b + c) / 3)
    rigid = np.einsum("fij,nj->fni", TURNS, mesh.points)
    assert cell_tracks(Animation(mesh, rigid), 5)["triangle 5"].gradients == pytest.approx(TURNS, abs=1e-9)


@pytest.mark.parametrize("walk", ["creature_walk", "animal_gallop", "dinosaur_walk"])
@pytest.mark.parametrize("rest", [None, 3])
def test_bone_gradients_move_the_bone(walk, rest):
    motion = getattr(gallery, walk)(8)
    check_bones(motion, rest)


@pytest.mark.data
@pytest.mark.parametrize("name", ["cmu/49_06.bvh", "pirouette.bvh", "makehuman/walk1.bvh"])
@pytest.mark.parametrize("rest", [None, 0])
def test_bone_gradients_of_real_motion(data, name, rest):
    motion = pliant.read_motion(data / "mocap" / name)
    check_bones(motion, rest)


def check_bones(motion: pliant.Motion, rest: int | None) -> None:
    """Along every bone of constant length, the gradient takes the vector at rest to the posed one."""
    skeleton = motion.skeleton
    tracks = joint_tracks(motion, rest=rest)
    start = (skeleton.rest_pose() if rest is None else motion[rest]).world()[0]
    places = motion.world()[0]
    size = np.linalg.norm(np.ptp(start, axis=0))
    assert list(tracks) == list(skeleton.names)
    for parent, child in skeleton.bones:
        if np.ptp(motion.translations[:, child], axis=0).max() > 0 or (
            rest is None and not np.allclose(motion.translations[0, child], skeleton.offsets[child])
        ):
            continue
        posed = places[:, child] - places[:, parent]
        track = tracks[skeleton.names[parent]]
        assert np.abs(track.gradients @ (start[child] - start[parent]) - posed).max() < 1e-9 * size
        assert np.abs(track.points - places[:, parent]).max() < 1e-9 * size
        assert track.rest == pytest.approx(start[parent])


def test_a_track_may_sit_along_its_bone():
    motion = gallery.creature_walk(6)
    skeleton = motion.skeleton
    single = [
        (p, c) for p, c in skeleton.bones.tolist() if (skeleton.parents == p).sum() == 1 and p not in skeleton.ends
    ]
    places, start = motion.world()[0], skeleton.rest_pose().world()[0]
    for parent, child in single:
        name = skeleton.names[parent]
        end, middle = (joint_tracks(motion, name, along=along)[name] for along in (1.0, 0.5))
        assert end.points == pytest.approx(places[:, child])
        assert end.rest == pytest.approx(start[child])
        assert middle.points == pytest.approx((places[:, child] + places[:, parent]) / 2)
    joint, site = next(iter(skeleton.ends.items()))
    tip = joint_tracks(motion, skeleton.names[joint], along=1.0)[skeleton.names[joint]]
    assert np.linalg.norm(tip.points - places[:, joint], axis=1) == pytest.approx(np.linalg.norm(site))


def test_rods():
    places = RNG.standard_normal((FRAMES, 3, 3))
    q = rotations.normalize(RNG.standard_normal((FRAMES, 3, 4)))
    tracks = rod_tracks(places, rotations.matrix(q), fps=60)
    R = rotations.matrix(q)
    for k, track in enumerate(tracks.values()):
        assert track.gradients == pytest.approx(R[:, k] @ R[0, k].T, abs=1e-12)
        assert track.rest == pytest.approx(places[0, k])
        assert track.points == pytest.approx(places[:, k])
    straight = np.zeros((3, 3)), np.tile(np.eye(3), (3, 1, 1))
    assert rod_tracks(places, q, rest=straight)["rod 1"].gradients == pytest.approx(R[:, 1], abs=1e-12)
    stretched = R * [1, 1, 2]
    assert rod_tracks(places, stretched, rest=straight)["rod 1"].gradients == pytest.approx(stretched[:, 1])


def test_matrices_as_given():
    assert matrix_tracks(MAPS)["matrix 0"].gradients == pytest.approx(MAPS)
    affine = np.tile(np.eye(4), (FRAMES, 2, 1, 1))
    affine[:, :, :3, :3], affine[:, :, :3, 3] = MAPS[:, None], SHIFTS[:, None]
    rest = np.array([[1.0, 2, 3], [4, 5, 6]])
    tracks = matrix_tracks(affine, rest=rest, names=["a", "b"], fps=12)
    assert tracks["b"].points == pytest.approx(MAPS @ rest[1] + SHIFTS)
    assert tracks["b"].fps == 12


def spinning(frames: int = 9, fps: float = 8.0) -> Track:
    """One turn about z, twice as long at the end, moving along x."""
    t = np.linspace(0, 1, frames)
    R = rotations.matrix(rotations.exp(np.outer(2 * np.pi * t, [0, 0, 1.0])))
    S = R @ (np.eye(3) * (1 + t)[:, None, None])
    return Track("spin", np.zeros(3), np.outer(t, [1.0, 0, 0]), S, fps)


def test_resampling_and_retiming_keep_the_motion():
    track, fine = spinning(), spinning(33, 32.0)
    again = track.resampled(32)
    assert (len(again), again.fps, again.duration) == (33, 32.0, track.duration)
    assert again.gradients == pytest.approx(fine.gradients, abs=1e-12)
    assert again.points == pytest.approx(fine.points, abs=1e-12)
    slow = track.retimed(33)
    assert (len(slow), slow.fps) == (33, track.fps)
    assert slow.gradients == pytest.approx(fine.gradients, abs=1e-12)
    back = track.retimed(np.arange(8, -1, -1))
    assert np.array_equal(back.gradients, track.gradients[::-1])
    assert np.array_equal(track.retimed(9).gradients, track.gradients)
    assert len(track.retimed(1)) == 1
    assert len(spinning(9).retimed([0]).resampled(100)) == 1


def test_tracks_pickle_and_cannot_be_changed():
    track = pickle.loads(pickle.dumps(spinning()))
    with pytest.raises(ValueError, match="read-only"):
        track.points[0] = 1
    assert repr(track) == 'Track("spin", 9 frames at 8 fps)'


def broken(frame: int) -> np.ndarray:
    maps = MAPS.copy()
    maps[frame, 1, 1] = np.nan
    return maps


BAR = gallery.bar(500).base
CLIP = Animation(BAR, np.stack([BAR.points] * 3))
WALK = gallery.creature_walk(4)
EYES = np.tile(np.eye(3), (4, 2, 1, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: joint_tracks(WALK, "arm_left"), 'no joint is called "arm_left"; the closest are '),
        (lambda: joint_tracks(WALK, ["hips", "Sp1ne"]), "no joint is called"),
        (lambda: joint_tracks(WALK, rest=99), "the rest is frame 99; there are 4 frames"),
        (lambda: joint_tracks(WALK, rest=gallery.hand_skeleton().rest_pose()), "a pose of another skeleton"),
        (lambda: joint_tracks(CLIP), "expected a Motion"),  # type: ignore[arg-type]
        (lambda: joint_tracks(WALK, along=np.nan), "along is nan"),
        (lambda: group_tracks(CLIP, {"tip": [0]}), 'group "tip" has one point'),
        (lambda: group_tracks(CLIP, {"tip": [0, 99999]}), 'group "tip" refer to point 99999'),
        (lambda: group_tracks(CLIP, {"tip": []}), 'group "tip"'),
        (lambda: group_tracks(CLIP, {"tip": Sphere([99, 0, 0], 1.0)}), "holds no point; the nearest is"),
        (lambda: group_tracks(CLIP, "tail"), 'no vertex group is called "tail"'),
        (lambda: group_tracks(CLIP, [range(9)], fit="affine"), "expected one of linear, rotation"),  # type: ignore[arg-type]
        (lambda: group_tracks(CLIP, [range(9)], rest=[[0, 0, 0]]), "rest has 1 points; the animation has"),
        (lambda: group_tracks(BAR, [range(9)]), "expected an Animation"),  # type: ignore[arg-type]
        (lambda: Sphere([0, 0, 0], -1.0), "radius is -1"),
        (lambda: cell_tracks(CLIP, [10**6]), "cells go from 1000000"),
        (lambda: cell_tracks(moved(SOLID, MAPS), [0]), "has no cells"),
        (lambda: rod_tracks(np.zeros((4, 2, 3)), EYES[:3]), "as many of each"),
        (lambda: rod_tracks(np.zeros((4, 2, 3)), 0 * EYES), "the rest frame at point 0 on the rod spans no volume"),
        (lambda: matrix_tracks(broken(2)), 'frame 2 of track "matrix 0" has NaN'),
        (lambda: matrix_tracks(MAPS[0, 0]), "matrices have shape (3,)"),
        (lambda: matrix_tracks(MAPS, points=np.zeros((4, 3))), "points in 4 frames and gradients in 5"),
        (lambda: matrix_tracks(MAPS, names=["a", "b"]), "expected 1 that differ"),
        (lambda: spinning().retimed([0, 9]), "times from 0 to 8"),
        (lambda: spinning().retimed(0), "frames is 0"),
        (lambda: spinning().resampled(-1), "fps is -1"),
    ],
)
def test_bad_sources_are_named_in_one_line(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_degenerate_triangle_is_named():
    flat = Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 3], [0, 1, 2]])
    with pytest.raises(InputError, match="triangle 1 is degenerate at rest"):
        cell_tracks(Animation(flat, flat.points[None]), [0, 1])


# Automatic groups


def misfit(clip: Animation, numbers: np.ndarray) -> float:
    """Sum of squared distances to the rigid motion that fits best."""
    rest, places = clip.shape.points[numbers], clip.points[:, numbers]
    R, t = rotations.match_rigid(rest, places)
    return float(np.square(np.einsum("fij,nj->fni", R, rest) + t[:, None] - places).sum())


def check_groups(clip: Animation, groups: tuple[np.ndarray, ...], most: int) -> None:
    """Every point is in one group, and each group is connected and broad enough to have a gradient."""
    count = len(clip.shape.points)
    assert 1 < len(groups) <= most
    assert np.array_equal(np.sort(np.concatenate(groups)), np.arange(count))
    pairs = neighbour_pairs(clip.shape, clip.shape.points)
    label = np.empty(count, dtype=int)
    for k, numbers in enumerate(groups):
        label[numbers] = k
    within = pairs[label[pairs[:, 0]] == label[pairs[:, 1]]]
    assert connected_parts(count, within).max() + 1 == len(groups)
    for numbers in groups:
        extent = np.linalg.svd(clip.shape.points[numbers] - clip.shape.points[numbers].mean(axis=0))[1]
        assert len(numbers) >= 8
        assert extent[1] > 0.05 * extent[0]


def test_a_gait_falls_into_near_rigid_groups():
    clip = gallery.animal_gait(2000, 12)
    groups = rigid_groups(clip, 24)
    check_groups(clip, groups, 24)
    assert len(groups) >= 20
    assert sum(misfit(clip, numbers) for numbers in groups) < 0.15**2 * misfit(clip, np.arange(len(clip.shape.points)))
    again = rigid_groups(clip, 24)
    assert all(np.array_equal(a, b) for a, b in zip(groups, again, strict=True))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_chain_of_rigid_pieces_is_found(seed):
    """Three boxes that turn one against the next: the groups are the boxes."""
    box = np.random.default_rng(seed).uniform(-1, 1, (150, 3)) * [1, 0.4, 0.4]
    step = np.array([2.02, 0, 0])
    rest = np.concatenate([box + k * step for k in range(3)])
    frames = []
    for angle in np.linspace(0, 1.2, 6):
        hinge, turn, pieces = -step / 2, np.eye(3), []
        for k in range(3):
            pieces.append((box + step / 2) @ turn.T + hinge)
            hinge = hinge + turn @ step
            turn = turn @ rotations.matrix(rotations.exp([0, 0, angle * (1 - 0.3 * k)]))
        frames.append(np.concatenate(pieces))
    clip = Animation(PointCloud(rest), np.stack(frames))
    groups = rigid_groups(clip, 3)
    check_groups(clip, groups, 3)
    for k, numbers in enumerate(groups):
        assert np.array_equal(numbers, np.arange(150 * k, 150 * k + 150))


@pytest.mark.parametrize("make", [gallery.soup, gallery.cloud, gallery.tets], ids=["soup", "cloud", "tets"])
def test_groups_of_what_is_no_surface(make):
    shape = make(1500)
    t = np.linspace(0, 1, 5)[:, None, None]
    bent = shape.points + t * 0.3 * np.sin(3 * shape.points[:, [1, 2, 0]])
    clip = Animation(shape, bent)
    groups = rigid_groups(clip, 10)
    check_groups(clip, groups, 10)
    assert sum(misfit(clip, numbers) for numbers in groups) < 0.6**2 * misfit(clip, np.arange(len(shape.points)))


def test_a_still_sequence_and_few_points_have_groups_too():
    still = Animation(BAR, np.stack([BAR.points] * 2))
    assert np.array_equal(np.sort(np.concatenate(rigid_groups(still, 4))), np.arange(len(BAR.points)))
    assert len(rigid_groups(still, 1)) == 1
    few = Animation(PointCloud(SOLID[:9]), SOLID[None, :9])
    assert len(rigid_groups(few, 24)) == 1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["horse-gallop/horse-gallop.tar.xz", "man-crane/crane.tar.xz"])
def test_groups_of_real_sequences(data, name):
    clip = pliant.read_animation(data / "poses" / name)
    groups = rigid_groups(clip, 24)
    check_groups(clip, groups, 24)
    assert sum(misfit(clip, numbers) for numbers in groups) < 0.1**2 * misfit(clip, np.arange(len(clip.shape.points)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((CLIP, 0), "count is 0"), ((CLIP, 2.5), "count is 2.5"), ((BAR, 3), "expected an Animation")],
)
def test_bad_requests_for_groups_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        rigid_groups(*arguments)


@pytest.mark.parametrize(("pieces", "points"), [(2, 12), (10, 15)])
def test_pieces_too_small_to_divide_end_the_division(pieces, points):
    rng = np.random.default_rng(0)
    start = rng.random((pieces, points, 3)) + 2 * np.arange(pieces)[:, None, None] * [1, 0, 0]
    turn = rotations.matrix(rotations.from_axis_angle([0, 0, 1], np.linspace(0, 1, pieces)))
    centre = start.mean(axis=1, keepdims=True)
    turned = (start - centre) @ np.swapaxes(turn, 1, 2) + centre
    clip = Animation(PointCloud(start.reshape(-1, 3)), np.stack([start, turned]).reshape(2, -1, 3))
    found = rigid_groups(clip)
    assert sorted(np.concatenate(found).tolist()) == list(range(pieces * points))
