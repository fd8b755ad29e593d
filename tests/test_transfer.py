"""Deformation transfer: what is asked of the controls, the automatic way, blocks, and what bad input says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import Animation, Control, Follow, InputError, Mesh, Motion, PointCloud, Track, gallery
from pliant.core import rotations
from pliant.engines.transfer.app.report import transfer_report
from pliant.engines.transfer.app.result import TransferRun
from pliant.engines.transfer.automatic import similarity
from pliant.engines.transfer.registration import register
from sweeps import every


def turn(axis: list[float], degrees: float) -> np.ndarray:
    return rotations.matrix(rotations.from_axis_angle(axis, np.radians(degrees)))


def error(moved: pliant.Transfer, wanted: Animation) -> np.ndarray:
    """(frames, n) distances over the diagonal."""
    away = np.linalg.norm(moved.clip.points - wanted.points, axis=2)
    return np.asarray(away / wanted.shape.diagonal)


@pytest.fixture(scope="module")
def bar() -> tuple[Mesh, Mesh]:
    """A bar along x, and its cage."""
    target = gallery.box(500, size=(4, 1, 1))
    return target, pliant.build_cage(target, faces=80, margin=0.05)


@pytest.fixture(scope="module")
def walk() -> Motion:
    return gallery.creature_walk(6)


def still(names: tuple[str, ...], frames: int = 3, fps: float = 30.0) -> dict[str, Track]:
    return pliant.matrix_tracks(np.tile(np.eye(3), (frames, len(names), 1, 1)), names=names, fps=fps)


# G = T S B


def test_before_and_after_from_points_are_the_rotations_between_them() -> None:
    rng = np.random.default_rng(2)
    R = rotations.matrix(rotations.normalize(rng.normal(size=4)))
    corners = rng.normal(size=(4, 3))
    np.testing.assert_allclose(pliant.before_from(corners, 3 * corners @ R.T + 5), R, atol=1e-12)
    np.testing.assert_allclose(pliant.after_from(corners, corners @ R.T), R, atol=1e-12)


@pytest.mark.parametrize("end", [[0.3, -1, 2], [-2, 0, 0], [2, 0, 0]])
def test_two_points_turn_the_shortest_way(end: list[float]) -> None:
    B = pliant.before_from([[1, 1, 1], [3, 1, 1]], [[0, 0, 0], end])
    goal = np.array(end) / np.linalg.norm(end)
    np.testing.assert_allclose(B @ [1, 0, 0], goal, atol=1e-12)
    np.testing.assert_allclose(B @ B.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(B) == pytest.approx(1)
    assert np.trace(B) == pytest.approx(1 + 2 * goal[0])  # an angle no larger than between the two directions


def test_gradients_are_asked_for_as_T_S_B(bar: tuple[Mesh, Mesh]) -> None:
    S, B, T = turn([0, 0, 1], 30), turn([1, 0, 0], 20), turn([0, 1, 0], 50)
    source = pliant.matrix_tracks(np.stack([np.eye(3), S]), names=["arm"])
    control = Control([0, 0, 0], "arm", before=B, after=rotations.quaternion(T))
    moved = pliant.transfer(source, *bar, [control], held=[[0, 0, 0]], lattice=12)
    np.testing.assert_allclose(moved.gradients[:, 0], [T @ B, T @ S @ B], atol=1e-12)
    np.testing.assert_allclose(moved.clip.points[1], bar[0].points @ (T @ S @ B).T, atol=1e-4)
    assert moved.converged


def test_a_source_with_other_axes_moves_the_target_along_its_own(bar: tuple[Mesh, Mesh]) -> None:
    """B = Aᵀ, T = A: a source that lies along y bends about z as the bar along x does."""
    A = turn([0, 0, 1], -90)
    S = turn([0, 0, 1], 35)
    source = pliant.matrix_tracks(np.stack([np.eye(3), S]), names=["top"])
    straight = pliant.matrix_tracks(np.stack([np.eye(3), A @ S @ A.T]), names=["top"])
    clips = [
        pliant.transfer(tracks, *bar, [Control([1.5, 0, 0], "top", before=b, after=a)], held=[[-1.5, 0, 0]], lattice=12)
        for tracks, b, a in ((source, A.T, A), (straight, None, None))
    ]
    np.testing.assert_allclose(clips[0].clip.points, clips[1].clip.points, atol=1e-6)


def test_bones_of_two_skeletons_are_brought_together(walk: Motion) -> None:
    skeleton = gallery.gingerbread_skeleton()
    control = pliant.bone_controls(skeleton, walk, {"upperarm.L": "upperarm.L"})[0]
    ours = np.array([1.0, 0, 0])  # the gingerbread man's arms are stretched out
    j = walk.skeleton.index("upperarm.L")
    theirs = walk.skeleton.offsets[walk.skeleton.index("forearm.L")]
    np.testing.assert_allclose(control.before @ ours, theirs / np.linalg.norm(theirs), atol=0.02)
    assert walk.skeleton.parents[walk.skeleton.index("forearm.L")] == j
    with pytest.raises(InputError, match=r'no joint is called "elbow"'):
        pliant.bone_controls(skeleton, walk, {"elbow": "upperarm.L"})


# Positions, lengths and frames


def test_a_point_follows_its_track_at_the_targets_size(bar: tuple[Mesh, Mesh]) -> None:
    path = np.array([[5, 5, 5], [6, 5, 5], [6, 7, 5.0]])
    track = Track("toe", [5, 4, 5], path, np.tile(np.eye(3), (3, 1, 1)))
    for origin, start in (("rest", [5, 4, 5]), ("first", [5, 5, 5])):
        follow = Follow(0, track, scale=0.5, after=turn([0, 0, 1], 90), origin=origin)
        moved = pliant.transfer(track, *bar, [], follow=[follow], lattice=12)
        way = 0.5 * (path - start) @ turn([0, 0, 1], 90).T
        away = moved.clip.points - bar[0].points - way[:, None]
        np.testing.assert_allclose(away[:, 0], 0, atol=1e-6)
        np.testing.assert_allclose(away, 0, atol=1e-4)  # turns about the point are held by damping alone


def test_scale_is_the_ratio_of_sizes_by_default(walk: Motion, bar: tuple[Mesh, Mesh]) -> None:
    small = pliant.transfer(walk, *bar, [], follow=[Follow([0, 0, 0], "hips")], lattice=12)
    large = pliant.transfer(
        walk, bar[0].scaled(100), bar[1].scaled(100), [], follow=[Follow([0, 0, 0], "hips")], lattice=12
    )
    np.testing.assert_allclose(large.positions, 100 * small.positions, rtol=1e-9)
    assert np.ptp(small.positions[:, 0, 1]) > 0


def test_lengths_are_kept_where_gradients_would_shrink_them(bar: tuple[Mesh, Mesh]) -> None:
    S = np.diag([0.6, 1, 1])
    tracks = pliant.matrix_tracks(np.stack([np.eye(3), S]), names=["squeeze"])
    ends = [[[-1.8, 0, 0], [1.8, 0, 0]]]
    kept = pliant.transfer(tracks, *bar, [Control([0, 0, 0], "squeeze")], held=[[0, 0, 0]], lengths=ends, lattice=12,
                           weights=pliant.Weights(length=50.0))  # fmt: skip
    free = pliant.transfer(tracks, *bar, [Control([0, 0, 0], "squeeze")], held=[[0, 0, 0]], lattice=12)
    assert np.abs(kept.solutions[1].length_errors).max() < 0.02
    assert np.ptp(free.clip.points[1, :, 0]) < 0.75 * np.ptp(kept.clip.points[1, :, 0])


def test_several_sources_keep_time(bar: tuple[Mesh, Mesh]) -> None:
    sources = {"a": still(("arm",), 61, 60), "b": still(("arm",), 21, 20)}
    controls = [Control([-1, 0, 0], "a/arm"), Control([1, 0, 0], "b/arm")]
    with pytest.raises(InputError, match=r'"b/arm" has 21 frames at 20 fps, "a/arm" 61 at 60; set fps to'):
        pliant.transfer(sources, *bar, controls, held=[0])
    at_rate = pliant.transfer(sources, *bar, controls, held=[0], fps=10, lattice=12)
    assert (len(at_rate), at_rate.clip.fps) == (11, 10)
    retimed = pliant.transfer(sources, *bar, controls, held=[0], frames=5, lattice=12)
    assert len(retimed) == 5
    chosen = pliant.transfer(sources, *bar, controls, held=[0], frames=range(0, 20, 4), lattice=12)
    assert len(chosen) == 5


# The automatic way


@pytest.fixture(scope="module")
def gait() -> Animation:
    return gallery.animal_gait(1000, frames=4)


@pytest.fixture(scope="module")
def again(gait: Animation) -> pliant.Transfer:
    return pliant.transfer(gait, gait.shape, "auto", "auto", lattice=24)


def test_a_sequence_is_given_again_on_its_own_shape(gait: Animation, again: pliant.Transfer) -> None:
    away = error(again, gait)
    assert away.mean() < 0.01
    assert away.max() < 0.06
    assert again.converged


def test_the_same_shape_elsewhere_moves_alike(gait: Animation, again: pliant.Transfer) -> None:
    """Turned, ten times as large, and somewhere else."""
    R, cage = turn([1, 2, 3], 70), again.rig.cage.mesh
    target = gait.shape.with_points(10 * gait.shape.points @ R.T + 7)
    moved = pliant.transfer(gait, target, cage.with_points(10 * cage.points @ R.T + 7), "auto", lattice=24)
    back = (moved.clip.points - 7) @ R / 10
    assert np.linalg.norm(back - again.clip.points, axis=2).max() < 0.03 * gait.shape.diagonal


@pytest.mark.slow
def test_the_same_shape_in_another_pose_takes_the_sequences_poses(gait: Animation) -> None:
    moved = pliant.transfer(gait, gait[2], "auto", "auto", lattice=24)
    assert error(moved, gait).mean() < 0.02


def test_similarity_of_a_posed_shape_is_its_size(gait: Animation) -> None:
    found = similarity(gait.shape, gait[3].scaled(5))
    assert found.scale == pytest.approx(5, rel=0.05)
    np.testing.assert_array_equal(found.rotation, np.eye(3))


@pytest.mark.slow
def test_a_sequence_drives_another_shape() -> None:
    """A horse of other proportions that faces another way, with other vertices."""
    gait, A = gallery.animal_gait(2000, frames=3), turn([0, 1, 0], 90)
    other = gallery.animal(1000).base
    target = Mesh(other.points * [1.2, 0.9, 1.1] * 3 @ A.T, other.polygons)
    cage = pliant.build_cage(other, faces=200)
    around = cage.with_points(cage.points * [1.2, 0.9, 1.1] * 3 @ A.T)
    moved = pliant.transfer(gait, target, around, "auto", lattice=20)
    np.testing.assert_allclose(moved.registered.target.frame, A.T, atol=0.01)
    assert len(moved.controls) >= 12
    same = pliant.transfer(gait, other, cage, "auto", lattice=20)  # nearly the source's own shape
    near = (moved.clip.points @ A / 3 / [1.2, 0.9, 1.1] - same.clip.points) / other.diagonal
    assert np.linalg.norm(near, axis=2).mean() < 0.05
    assert moved.converged


def test_a_motion_finds_the_limbs_of_a_figure(walk: Motion) -> None:
    """The creature's own walk on the creature: shins follow shins."""
    target = gallery.creature(900).base
    moved = pliant.transfer(walk, target, "auto", "auto", lattice=20, frames=3)
    positions, _ = walk.skeleton.rest_world
    controls = {c.track.name: c for c in moved.controls if isinstance(c.track, Track)}
    for side in ("left", "right"):
        shin = f"shin.{side[0].upper()}"
        ends = positions[[walk.skeleton.index(name) for name in (shin, f"foot.{shin[-1]}")]]
        assert np.linalg.norm(controls[f"leg.{side}.knee"].at - ends.mean(axis=0)) < 0.1 * target.diagonal
        assert moved.registered.joint_map()[f"leg.{side}.knee"] == shin
    assert (moved.clip.points[..., 1].min(axis=1) >= target.points[:, 1].min() - 1e-9).all()
    run = TransferRun(moved)
    assert run.judgement.volume is not None
    assert run.warnings == []
    assert run.failure == ""
    assert "Which limbs match" in transfer_report(run)
    clip = replace(moved.clip, points=moved.clip.points * [1.0, 0.5, 1.0])
    dropped = replace(moved.registered, match=replace(moved.registered.match, dropped=("left arm",), confidence=0.4))
    doubtful = TransferRun(replace(moved, clip=clip, registered=dropped))
    assert [sentence.partition(":")[0] for sentence in doubtful.warnings][:3] == ["match", "match", "volume"]
    assert "the result cannot be vouched for (volume" in doubtful.failure
    assert moved.converged


@pytest.mark.parametrize("turning", rotations.axis_rotations()[::8])
def test_registration_finds_how_a_shape_is_turned(turning: np.ndarray) -> None:
    points = gallery.animal(1000).base.points
    found = register(points, 4 * points[::2] @ turning.T + [1, 2, 3])
    np.testing.assert_array_equal(found.rotation, turning)
    assert found.scale == pytest.approx(4, rel=0.05)
    assert np.linalg.norm(found.points - (4 * points @ turning.T + [1, 2, 3]), axis=1).mean() < 0.02 * 4 * 2.5


# What is carried


def test_blocks_stay_rigid_and_follow(gait: Animation) -> None:
    rng = np.random.default_rng(0)
    centres = gait.shape.points[rng.choice(len(gait.shape.points), 40, replace=False)] * 0.98
    corners = 0.01 * np.indices((2, 2, 2)).reshape(3, -1).T
    blocks = Mesh((centres[:, None] + corners).reshape(-1, 3), (8 * np.arange(40)[:, None] + [0, 1, 3, 2]))
    parts = np.repeat(np.arange(40), 8)
    tracks = pliant.group_tracks(gait, {"chest": "chest", "hips": "hips"})
    controls = [Control(track.rest, track) for track in tracks.values()]
    cage = pliant.build_cage(gait.shape, faces=200, margin=0.05)
    moved = pliant.transfer(tracks, blocks, cage, controls, held=[controls[0].at], lattice=20)
    clip = pliant.rigid_blocks(moved, parts)
    shape = clip.points.reshape(len(clip), 40, 8, 3)
    spans = np.linalg.norm(shape[:, :, :1] - shape[:, :, 1:], axis=3)
    rest = np.linalg.norm(corners[:1] - corners[1:], axis=1)
    np.testing.assert_allclose(spans, np.broadcast_to(rest, spans.shape), rtol=1e-9)
    middles = moved.clip.points.reshape(len(clip), 40, 8, 3).mean(axis=2)
    assert np.abs(shape.mean(axis=2) - middles).max() < 0.02 * 0.02 * 40
    with pytest.raises(InputError, match="parts have 3 entries; expected one for each of 320 points"):
        pliant.rigid_blocks(moved, [0, 1, 2])


def test_normals_turn_by_the_jacobian(bar: tuple[Mesh, Mesh]) -> None:
    R = turn([0, 0, 1], 40)
    tracks = pliant.matrix_tracks(np.stack([np.eye(3), R]), names=["turn"])
    rng = np.random.default_rng(1)
    normals = rng.normal(size=bar[0].points.shape)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    layer = pliant.Layer(normals, bar[0].polygons.corners)
    cloud, mesh = PointCloud(bar[0].points, normals), replace(bar[0], normals=layer)
    for target in (cloud, mesh):
        moved = pliant.transfer(tracks, target, bar[1], [Control([0, 0, 0], "turn")], held=[[0, 0, 0]], lattice=12)
        shape = moved.shape(1)
        found = shape.normals if isinstance(shape, PointCloud) else shape.normals.at_corners
        wanted = normals @ R.T if isinstance(shape, PointCloud) else normals[mesh.polygons.corners] @ R.T
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        np.testing.assert_allclose(shape.points, moved.clip.points[1])


@pytest.mark.parametrize("name", every(2, ["tets", "soup", "points", "cloud"]))
def test_any_target_moves(name: str) -> None:
    target = {"soup": gallery.soup, "cloud": gallery.cloud, "tets": gallery.tets}.get(name, gallery.cloud)(600)
    given = target.points if name == "points" else target
    R = turn([0, 1, 0], 30)
    track = pliant.matrix_tracks(np.stack([np.eye(3), R]), names=["turn"])
    place = target.points[0]
    moved = pliant.transfer(track, given, "auto", [Control(0, "turn")], held=[0], faces=80, lattice=12)
    wanted = (target.points - place) @ R.T + place
    assert np.abs(moved.clip.points[1] - wanted).max() < 1e-3 * target.diagonal


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"controls": [Control([0, 0, 0], "lef")]},
            r'control 0 follows "lef", which no source has; the closest are left',
        ),
        ({"controls": [Control([9, 9, 9], "left")]}, r"1 of 1 gradient controls lies on the cage or outside of it"),
        ({"controls": [Control(9999, "left")]}, r"control 0 is at vertex 9999; the target has"),
        ({"controls": [Control([0, 0], "left")]}, r"control 0 is at \[0, 0\]; expected a vertex number, or a point"),
        ({"controls": [Control([0, 0, 0], 3)]}, r"control 0 follows 3; expected a track, or the name of one"),
        ({"controls": []}, r"there are no controls; expected one or more Control or Follow"),
        ({"controls": [Control([0, 0, 0])]}, r"no control follows a track"),
        ({"controls": "all"}, r'controls are "all"; expected a list of Control, or "auto"'),
        ({"controls": "auto"}, r"automatic controls follow a clip or a motion; got tracks"),
        ({"controls": [Control([0, 0, 0], "left", before=2 * np.eye(3))]}, r"control 0: before is no rotation"),
        ({"controls": [Control([0, 0, 0], "left", after=[1, 2])]}, r"control 0: after has shape \(2,\)"),
        ({"held": ()}, r"nothing fixes the position of the target"),
        ({"held": [[0, 9, 0]]}, r"1 of 1 position controls lies on the cage or outside of it"),
        ({"follow": [Follow([0, 0, 0], "left", scale=0)]}, r"scale is 0; expected a positive number"),
        (
            {"follow": [Follow([0, 0, 0], "left")]},
            r'the size of the source of "left" is not known; give Follow a scale',
        ),
        ({"follow": [Follow([0, 0, 0], "left", 1.0, None, "last")]}, r'origin is "last"; expected rest or first'),
        ({"frames": [0, 7]}, r'track "left" is asked for frames 0 to 7; expected a count, or times from 0 to 2'),
        ({"fps": -1}, r"fps is -1; expected a positive number"),
        ({"cage": 5}, r"cage is a int; expected a closed Mesh"),
        ({"sources": 5}, r'source "source" is a int; expected an Animation, a Motion or tracks'),
        ({"sources": {}}, r"there is no source"),
        ({"sources": [*still(("left",)).values(), *still(("left",)).values()]}, r'two tracks called "left"'),
    ],
)
def test_bad_input_is_named(bar: tuple[Mesh, Mesh], change: dict[str, object], message: str) -> None:
    given = {
        "sources": still(("left",)),
        "target": bar[0],
        "cage": bar[1],
        "controls": [Control([0, 0, 0], "left")],
        "held": [0],
        "lattice": 12,
        **change,
    }
    with pytest.raises(InputError, match=message) as caught:
        pliant.transfer(**given)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_name_that_two_sources_have_is_asked_about(bar: tuple[Mesh, Mesh]) -> None:
    with pytest.raises(InputError, match=r'2 sources have; write "a/arm" or "b/arm"'):
        pliant.transfer({"a": still(("arm",)), "b": still(("arm",))}, *bar, [Control([0, 0, 0], "arm")], held=[0])


def test_nan_in_a_frame_is_named(gait: Animation) -> None:
    points = gait.points.copy()
    points[3, 17, 1] = np.nan
    with pytest.raises(InputError, match="frame 3 has NaN or infinite coordinates"):
        pliant.transfer(Animation(gait.shape, points), gait.shape, None, "auto")


# Real sequences


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["horse-gallop/horse-gallop", "man-crane/crane"])
def test_a_real_sequence_is_given_again(data: Path, name: str) -> None:
    clip = pliant.read_animation(data / f"poses/{name}.tar.xz")
    clip = replace(clip, points=clip.points[:: 6 if len(clip) > 20 else 3])
    away = error(pliant.transfer(clip, clip.shape, "auto", "auto"), clip)
    assert away.mean() < 0.02
    assert away.mean(axis=1).max() < 0.02
    assert away.max() < 0.08


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["Flamingo", "Horse", "Parrot"])
def test_a_small_real_sequence_is_given_again(data: Path, name: str) -> None:
    clip = pliant.read_animation(data / f"poses/morph-glb/{name}.glb")
    assert error(pliant.transfer(clip, clip.shape, "auto", "auto", lattice=24), clip).mean() < 0.02


@pytest.mark.data
@pytest.mark.slow
def test_the_gallop_drives_the_other_horse_in_its_own_cage(data: Path) -> None:
    """Its tail has no counterpart; one vertex is outside the cage."""
    clip = pliant.read_animation(data / "poses/horse-gallop/horse-gallop.tar.xz")
    clip = replace(clip, points=clip.points[::4])
    standing = pliant.read_mesh(data / "poses/horse/horse-ref.obj")
    target = pliant.read_mesh(data / "cages/horse/Horse_2.obj")
    cage = pliant.read_mesh(data / "cages/horse/Horse_2_Cage.obj")
    with pytest.raises(InputError, match="1 of 2400 points of the target lies on the cage or outside of it"):
        pliant.transfer(clip, target, cage, "auto", rest=standing)
    moved = pliant.transfer(clip, target, cage, "auto", rest=standing, outside="allow")
    assert moved.converged
    np.testing.assert_array_equal(moved.controls[0].after, turn([0, 1, 0], -90).round())  # it faces along x
    volume = pliant.quality.volume_ratio(target, moved.clip)
    assert volume.min() > 0.8
    assert volume.max() < 1.2
    feet = target.points[:, 1] < target.points[:, 1].min() + 0.02 * target.diagonal
    assert np.ptp(moved.clip.points[:, feet], axis=0).max() > 0.2 * target.diagonal
    _check_hooves(moved, clip, standing, feet)
    edges = target.edges
    long = np.linalg.norm(np.diff(moved.clip.points[:, edges], axis=2)[:, :, 0], axis=2)
    rest = np.linalg.norm(np.diff(target.points[edges], axis=1)[:, 0], axis=1)
    assert np.abs(np.median(long / rest, axis=1) - 1).max() < 0.05


def _check_hooves(moved: pliant.Transfer, clip: pliant.Animation, standing: pliant.Mesh, feet: np.ndarray) -> None:
    """Each hoof of the target goes forwards and back when the source's does, and about as far for its size."""
    A = np.asarray(moved.controls[0].after)
    target = moved.clip.shape.points
    turned, source = clip.points @ A.T, standing.points @ A.T
    low = source[:, 1] < source[:, 1].min() + 0.02 * standing.diagonal
    middle, centre = target[feet].mean(axis=0), source[low].mean(axis=0)
    for ahead in (True, False):
        for left in (True, False):
            there = low & ((source[:, 0] > centre[0]) == ahead) & ((source[:, 2] > centre[2]) == left)
            here = feet & ((target[:, 0] > middle[0]) == ahead) & ((target[:, 2] > middle[2]) == left)
            theirs, ours = (
                p.mean(axis=1) - p.mean(axis=(0, 1)) for p in (turned[:, there], moved.clip.points[:, here])
            )
            assert np.corrcoef(theirs[:, 0], ours[:, 0])[0, 1] > 0.95
            far = np.ptp(ours[:, 0]) / moved.clip.shape.diagonal / (np.ptp(theirs[:, 0]) / standing.diagonal)
            assert 0.6 < far < 1.4


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.filterwarnings("ignore:the source's first frame is a reference pose")
def test_a_captured_walk_drives_the_gingerbread_man(data: Path) -> None:
    """By itself: both stand with their arms stretched out."""
    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    target = gallery.gingerbread(600).base
    moved = pliant.transfer(walk, target, "auto", "auto", frames=np.linspace(20, len(walk) - 1, 4), lattice=24)
    assert moved.converged
    assert max(solution.gradient_angles.max() for solution in moved.solutions) < 15
    height = np.ptp(target.points[:, 1])
    assert abs(np.ptp(moved.clip.points[..., 1], axis=1) / height - 1).max() < 0.15  # it stays upright
    assert np.ptp(moved.positions[:, 0, 2]) > height  # and gets somewhere


def test_gradients_that_turn_the_target_inside_out_are_named() -> None:
    """With the control, its track and the frame, before a cage is built."""
    S = np.tile(np.eye(3), (4, 1, 1, 1))
    S[2, 0] = np.diag([1.0, -1, 1])
    tracks = pliant.matrix_tracks(S, names=["arm"])
    with pytest.raises(InputError, match=r'control 1 \("arm"\): .* frame 2 has the determinant -1'):
        pliant.transfer(tracks, gallery.bar(500).base, "auto", [Control(0), Control(1, "arm")], held=[0])


def test_shapes_of_many_frames_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """And their coordinates are found once, not for every frame."""
    from pliant.engines.transfer.energies import Basis

    bar = gallery.bar(500)
    clip = bar.mixed(np.eye(len(bar))[[0, 1, 2, 1]])
    moved = pliant.transfer(clip, bar.base, "auto", "auto", groups=3, lattice=16, faces=60)
    calls, rows = [], Basis.rows
    monkeypatch.setattr(Basis, "rows", lambda *given, **more: calls.append(1) or rows(*given, **more))
    single = [moved.shape(k) for k in range(len(moved))]
    for one, other in zip(single, moved.shapes(), strict=True):
        np.testing.assert_array_equal(one.points, other.points)
    assert len(calls) == 1


def test_tracks_of_one_name_are_both_kept() -> None:
    """Two pieces called alike, given as tracks."""
    turns = rotations.matrix(rotations.from_axis_angle([0, 0, 1], np.radians([[0.0], [20], [40]])))
    one = pliant.matrix_tracks(turns, names=["arm"])["arm"]
    other = pliant.matrix_tracks(np.swapaxes(turns, -1, -2), names=["arm"])["arm"]
    bar = gallery.bar(500).base
    controls = [Control(0, one), Control(len(bar.points) - 1, other), Control(5, one)]
    moved = pliant.transfer({"a": one, "b": other}, bar, "auto", controls, held=[0], lattice=16, faces=60)
    assert set(moved.tracks) == {"arm", "arm (2)"}


def test_a_track_that_was_made_anew_has_its_sources_size() -> None:
    """`Follow` finds the scale by the joint's name."""
    walk, man = gallery.creature_walk(4), gallery.gingerbread(900).base
    hips = pliant.joint_tracks(walk, "hips")["hips"]
    made = [
        pliant.transfer(
            walk, man, "auto", [Control([0, 0.53, 0], "chest")], follow=[Follow([0, 0.4, 0], t)], lattice=16
        )
        for t in (hips, "hips")
    ]
    np.testing.assert_allclose(made[0].positions, made[1].positions)


@pytest.mark.slow
def test_a_gallop_carried_over_to_the_same_animal_comes_back() -> None:
    gait = gallery.animal_gait(1000, 4)
    moved = pliant.transfer(gait, gallery.animal(1000).base, "auto", "auto", lattice=20)
    assert error(moved, gait).mean() < 0.02
