"""Clips that become skins: what the decomposition gives, and what files of it hold."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import pliant
from gltf_validator import check, installed
from pliant import gallery, rotations
from pliant.core.skinned import joint_transforms
from pliant.geometry.skin_decomposition import Decomposition, fit_weights, slider_shapes


@pytest.fixture(scope="module")
def gait() -> pliant.Animation:
    return gallery.animal_gait(600, 16)


@pytest.fixture(scope="module")
def skinned(gait) -> pliant.SkinnedAnimation:
    return pliant.skin(gait, bones=24)


def two_bones(frames: int = 9) -> pliant.Animation:
    """A bar whose upper half rotates about its middle, with weights that change from 0 to 1 there."""
    bar = gallery.cylinder(500, 0.3, 3.0)
    y = bar.points[:, 1]
    w = np.clip(0.5 + 2 * (y - y.mean()) / np.ptp(y), 0, 1)[:, None]
    points = []
    for angle in np.linspace(0, 1.2, frames):
        R = rotations.matrix(rotations.from_axis_angle([0, 0, 1], angle))
        points.append((1 - w) * bar.points + w * (bar.points @ R.T + [0.1 * angle, 0, 0]))
    return pliant.Animation(bar, np.stack(points))


def rms(a, b, diagonal: float) -> float:
    return float(np.sqrt(((a - b) ** 2).sum(axis=-1).mean()) / diagonal)


def test_a_gait_is_found_again(gait, skinned):
    assert skinned.error < 1e-3
    assert skinned.error == pytest.approx(rms(skinned.points, gait.points, gait.shape.diagonal), rel=1e-6)
    np.testing.assert_allclose(skinned.weights.sum(axis=1), 1, atol=1e-9)
    assert (skinned.weights >= 0).all()
    assert (skinned.weights > 0).sum(axis=1).max() <= 4
    assert skinned.curves.min() >= 0  # engines clamp them
    assert skinned.curves.max() <= 1
    assert len(skinned.motion.skeleton) <= 24
    assert len(skinned.correctives) <= 8


def test_points_are_what_joints_and_correctives_give(skinned):
    R, t = joint_transforms(skinned.motion)
    for frame in (0, 7):
        rest = skinned.shape.points + np.einsum("m,mia->ia", skinned.curves[frame], skinned.correctives)
        moved = np.einsum("ikab,ib->ika", R[skinned.joints, frame], rest) + t[skinned.joints, frame]
        expected = np.einsum("ik,ika->ia", skinned.weights, moved)
        np.testing.assert_allclose(skinned.points[frame], expected, atol=1e-9 * skinned.shape.diagonal)


def test_what_two_bones_move_is_exact():
    clip = two_bones()
    found = pliant.skin(clip, bones=2, correctives=0)
    assert len(found.motion.skeleton) == 2
    assert found.error < 2e-4


def test_more_bones_and_correctives_come_nearer(gait):
    errors = [pliant.skin(gait, bones=b, correctives=c).error for b, c in ((4, 0), (12, 0), (12, 4))]
    assert all(after < before for before, after in itertools.pairwise(errors)), errors


def test_weights_are_the_best_of_all_pairs():
    """Against every pair of bones in turn, at points that no bone carries alone."""
    rng = np.random.default_rng(3)
    p = rng.normal(size=(40, 3))
    R = rotations.matrix(rotations.normalize(rng.normal(size=(4, 6, 4))))
    t = rng.normal(size=(4, 6, 3))
    v = rng.normal(size=(40, 6, 3))
    found = fit_weights(p, v, R, t, 2)
    value = ((v - found.moved(p)) ** 2).sum(axis=(1, 2))
    moved = np.einsum("jfab,ib->jifa", R, p) + t[:, None]
    best = np.full(40, np.inf)
    for j in range(4):
        for k in range(4):
            d = moved[j] - moved[k]
            share = np.clip(((v - moved[k]) * d).sum(axis=(1, 2)) / np.maximum((d**2).sum(axis=(1, 2)), 1e-12), 0, 1)
            best = np.minimum(best, ((v - moved[k] - share[:, None, None] * d) ** 2).sum(axis=(1, 2)))
    assert (value >= best * (1 - 1e-9)).all()
    assert (value < best * (1 + 1e-6)).mean() > 0.9  # greedy: nearly all


@pytest.mark.parametrize("move", [(1e4, 1.0), (0.0, 1e-3), (-300.0, 1e4)])
def test_where_and_how_large_does_not_matter(gait, skinned, move):
    shift, scale = move
    moved = pliant.Animation(gait.shape.with_points(gait.shape.points * scale + shift), gait.points * scale + shift)
    found = pliant.skin(moved, bones=24)
    assert found.error == pytest.approx(skinned.error, rel=0.1)


def test_the_skeleton_of_a_rig_is_kept():
    mesh = gallery.animal(600)[0]
    motion = gallery.animal_gallop(8)
    clip = gallery.animal_gait(600, 8)
    found = pliant.skin(pliant.Animation(mesh, clip.points, motion.fps), motion)
    assert found.motion.skeleton is motion.skeleton
    np.testing.assert_allclose(found.motion.rotations, motion.rotations)
    assert found.error < 2e-3
    assert not set(found.shape.vertex_groups) & set(motion.skeleton.names)


@pytest.mark.parametrize(
    ("clip", "motion", "options"),
    [
        (lambda gait: pliant.Animation(pliant.PointCloud(gait.shape.points), gait.points), None, {}),
        (lambda gait: gait, gallery.creature_walk(100), {}),
        (lambda gait: gait, None, {"bones": 0}),
        (lambda gait: gait, None, {"influences": 9}),
        (lambda gait: gait, gallery.animal_gallop(8), {"bones": 20}),
        (lambda gait: gait.shape, None, {}),
    ],
    ids=["cloud", "frames", "bones", "influences", "bones of a motion", "mesh"],
)
def test_what_cannot_be_skinned(gait, clip, motion, options):
    with pytest.raises(pliant.InputError, match="expected"):
        pliant.skin(clip(gait), motion, **options)


@pytest.mark.parametrize("weights", [lambda w: 0 * w, lambda w: 2 * w, lambda w: np.where(w > 0, 1 - 2 * w, w)])
def test_weights_of_a_skin_are_shares(skinned, weights):
    with pytest.raises(pliant.InputError, match="expected none below 0, and 1 together"):
        replace(skinned, weights=weights(skinned.weights))


def test_small_and_still_clips():
    triangle = pliant.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    for frames in (1, 3):
        still = pliant.skin(pliant.Animation(triangle, np.stack([triangle.points] * frames)))
        assert still.error < 1e-9
        assert len(still.motion.skeleton) == 1
        assert not len(still.correctives)
    flat = pliant.Animation(triangle, np.stack([triangle.points, triangle.points * [1, -1, 1]]))
    assert pliant.skin(flat).error < 1e-3


@pytest.mark.parametrize("name", ["game.glb", "game.gltf", "game.usdc", "game.usdz"])
def test_files_give_back_what_was_written(gait, skinned, tmp_path, name):
    if "usd" in name:
        pytest.importorskip("pxr")
    pliant.write(tmp_path / name, skinned)
    back = pliant.read_animation(tmp_path / name)
    assert back.fps == skinned.fps
    np.testing.assert_allclose(back.points, skinned.points, atol=4e-5 * gait.shape.diagonal)
    assert set(skinned.motion.skeleton.names) <= set(back.shape.vertex_groups)
    motion = pliant.read_motion(tmp_path / name)
    order = [motion.skeleton.index(joint) for joint in skinned.motion.skeleton.names]
    assert sorted(order) == list(range(len(skinned.motion.skeleton)))
    atol = 4e-5 * gait.shape.diagonal
    np.testing.assert_allclose(motion.world()[0][:, order], skinned.motion.world()[0], atol=atol)
    np.testing.assert_allclose(
        pliant.read_skeleton(tmp_path / name).rest_world[0][order], skinned.motion.skeleton.rest_world[0], atol=atol
    )


@pytest.mark.parametrize("far", [False, True])
def test_files_in_other_axes_far_away_and_quantised(skinned, gait, tmp_path, far):
    shift = 1e5 if far else 0.0
    shape = gait.shape.with_points(gait.shape.points + shift)
    clip = pliant.Animation(
        pliant.Mesh(shape.points, shape.polygons, world=pliant.World("z", 0.01)), gait.points + shift
    )
    found = pliant.skin(clip, bones=12, influences=6)
    for quantize in (False, True):
        pliant.write(tmp_path / "game.glb", found, quantize=quantize)
        back = pliant.read_animation(tmp_path / "game.glb").points
        upright = 0.01 * found.points[..., [0, 2, 1]] * [1, 1, -1]
        assert np.abs(back - upright).max() < 3e-4 * 0.01 * gait.shape.diagonal + 0.01 * shift * 1e-6
    reason, home = installed()
    if home is None:
        pytest.skip(reason)
    check(home, tmp_path / "game.glb")


def test_the_validator_accepts_skins(skinned, gait, tmp_path):
    reason, home = installed()
    if home is None:
        pytest.skip(reason)
    files = []
    for name, content, quantize in (
        ("skin", skinned, False),
        ("small", skinned, True),
        ("clip", gait, True),
        ("mesh", gait.shape, True),
        ("cloud", pliant.PointCloud(gait.shape.points), True),
    ):
        files += pliant.write(tmp_path / f"{name}.glb", content, quantize=quantize)
    check(home, *files)


def test_quantised_files_are_half_and_hold_the_points(gait, tmp_path):
    plain, small = (pliant.write(tmp_path / f"{q}.glb", gait, quantize=q)[0] for q in (False, True))
    assert small.stat().st_size < 0.6 * plain.stat().st_size
    back = pliant.read_animation(small)
    assert np.abs(back.points - gait.points).max() < 4e-5 * gait.shape.diagonal
    with pytest.raises(pliant.FileError, match=r"expected \.glb or \.gltf"):
        pliant.write(tmp_path / "clip.abc", gait, quantize=True)


def test_other_formats_take_the_points(skinned, tmp_path):
    pliant.write(tmp_path / "clip.pc2", skinned)
    back = pliant.read_animation(tmp_path / "clip.pc2", mesh=skinned.shape)
    np.testing.assert_allclose(back.points, skinned.points, atol=1e-6 * skinned.shape.diagonal)


def test_the_command_line(command_line, gait, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pliant.write("clip.glb", gait)
    code, out, err = command_line("convert", "clip.glb", "game.glb", "--skin", "--bones", "20", "--correctives", "4")
    assert (code, err) == (0, "")
    assert "joints and 4 correctives" in out
    assert (tmp_path / "game.glb").stat().st_size < 0.5 * (tmp_path / "clip.glb").stat().st_size
    # On its own skeleton, and on one that is named.
    for more in ([], ["--rig", "game.glb"]):
        source = "game.glb" if not more else "clip.glb"
        code, out, err = command_line("convert", source, "again.glb", "--skin", *more)
        assert (code, err) == (0, "")
        assert pliant.read_skeleton("again.glb").names == pliant.read_skeleton("game.glb").names
    code, _, err = command_line("convert", "game.glb", "again.glb", "--skin", "--bones", "20")
    assert code == 2
    assert "--bones has no effect: game.glb has a skeleton" in err
    for bad in (["--bones", "3"], ["--skin", "--as", "mesh"], ["--skin", "--bones", "0"]):
        code, _, err = command_line("convert", "clip.glb", "bad.glb", *bad)
        assert code == 2
        assert err.count("\n") == 1
    code, _, err = command_line("convert", "clip.glb", "bad.obj", "--skin")
    assert code == 2
    assert "holds no skins" in err


def test_a_decomposition_moves_points_by_their_bones():
    rng = np.random.default_rng(0)
    R, t = rotations.matrix(rotations.normalize(rng.normal(size=(2, 3, 4)))), rng.normal(size=(2, 3, 3))
    skin = Decomposition(np.array([[0, 1]]), np.array([[0.25, 0.75]]), R, t)
    p = rng.normal(size=(1, 3))
    expected = 0.25 * (R[0] @ p[0] + t[0]) + 0.75 * (R[1] @ p[0] + t[1])
    np.testing.assert_allclose(skin.moved(p)[0], expected)
    np.testing.assert_allclose(skin.moved(np.repeat(p[:, None], 3, axis=1))[0], expected)


def test_displacements_become_sliders():
    rng = np.random.default_rng(1)
    shapes, curves = rng.normal(size=(2, 30, 3)), rng.uniform(size=(7, 2))
    moves = np.einsum("fm,mia->fia", curves, shapes)
    found, weights = slider_shapes(moves, 3)
    assert weights.min() >= 0
    assert weights.max() <= 1
    np.testing.assert_allclose(np.einsum("fm,mia->fia", weights, found), moves, atol=1e-3)
