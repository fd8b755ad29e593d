"""A motion onto a target that has a skeleton and a skin: its joints are driven, and its skin follows them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import Mesh, Motion, Skeleton, gallery
from pliant.app.scene.media import motion_in
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.skinned import joint_transforms
from pliant.engines.transfer import build_cage
from pliant.geometry.body_plan.bodies import skeleton_body
from pliant.geometry.skinning import skin_of
from sweeps import every

WALK = gallery.creature_walk(6)
CREATURE = gallery.creature(900).base


def turned(mesh: Mesh, skeleton: Skeleton, R: np.ndarray) -> tuple[Mesh, Skeleton]:
    q, rest = rotations.quaternion(R), skeleton.rest_rotations.copy()
    root = skeleton.parents < 0
    rest[root] = rotations.multiply(q, rest[root])
    offsets = np.where(root[:, None], skeleton.offsets @ R.T, skeleton.offsets)
    return mesh.with_points(mesh.points @ R.T), replace(skeleton, rest_rotations=rest, offsets=offsets)


@pytest.fixture(scope="module")
def walked() -> pliant.RiggedTransfer:
    return pliant.transfer_to_rig(WALK, CREATURE, WALK.skeleton)


def test_joints_are_driven_and_the_skin_follows_them(walked: pliant.RiggedTransfer) -> None:
    R, t = joint_transforms(walked.motion)
    skin = skin_of(CREATURE, WALK.skeleton).toarray()
    frame = 3
    moved = np.einsum("nj,jab,nb->na", skin, R[:, frame], CREATURE.points) + skin @ t[:, frame]
    np.testing.assert_allclose(walked.clip.points[frame], moved, atol=1e-9)
    assert walked.judgement.problems == ()
    assert walked.judgement.angle < 10
    assert walked.clip.points[..., 1].min() > CREATURE.points[:, 1].min() - 1e-3 * CREATURE.diagonal


def test_the_walk_of_the_same_skeleton_comes_back(walked: pliant.RiggedTransfer) -> None:
    shins = [WALK.skeleton.index(name) for name in ("shin.L", "shin.R")]
    feet = [WALK.skeleton.index(name) for name in ("foot.L", "foot.R")]
    there, here = (motion.world()[0] for motion in (WALK, walked.motion))
    there, here = there[:, feet] - there[:, shins], here[:, feet] - here[:, shins]
    cosine = (there * here).sum(axis=2) / np.linalg.norm(there, axis=2) / np.linalg.norm(here, axis=2)
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 12


@pytest.mark.parametrize("degrees", [37.0, pytest.param(180.0, marks=pytest.mark.slow)])
def test_a_turned_rig_moves_as_the_rig_does_turned(walked: pliant.RiggedTransfer, degrees: float) -> None:
    R = rotations.matrix(rotations.from_axis_angle([0, 1, 0], np.radians(degrees)))
    other = pliant.transfer_to_rig(WALK, *turned(CREATURE, WALK.skeleton, R))
    assert np.abs(other.clip.points - walked.clip.points @ R.T).max() < 0.01 * CREATURE.diagonal


def test_frames_are_those_asked_for() -> None:
    some = pliant.transfer_to_rig(WALK, CREATURE, WALK.skeleton, frames=[4.0, 1.5])
    assert (len(some), some.times.tolist()) == (2, [4.0, 1.5])
    faster = pliant.transfer_to_rig(WALK, CREATURE, WALK.skeleton, fps=2 * WALK.fps)
    assert len(faster) == 2 * len(WALK) - 1
    assert faster.clip.fps == faster.motion.fps == 2 * WALK.fps


def test_a_rig_whose_hips_are_twisted_faces_where_its_shoulders_say() -> None:
    names, parents = list(WALK.skeleton.names), WALK.skeleton.parents
    positions = WALK.skeleton.rest_world[0].copy()
    twist = rotations.matrix(rotations.from_axis_angle([0, 1, 0], np.radians(25)))
    legs = [k for k, name in enumerate(names) if name.startswith(("thigh", "shin", "foot", "toes"))]
    middle = positions[names.index("hips")]
    positions[legs] = (positions[legs] - middle) @ twist.T + middle
    body = skeleton_body(Skeleton.from_positions(positions, parents, names))
    np.testing.assert_allclose(body.frame[2], [0, 0, 1], atol=1e-6)


def test_without_a_skin_it_is_refused_and_the_cage_follows_the_bones() -> None:
    bare = Mesh(CREATURE.points, CREATURE.polygons)
    with pytest.raises(InputError, match="no vertex group of the target is called as a joint"):
        pliant.transfer_to_rig(WALK, bare, WALK.skeleton)
    cage = build_cage(bare, faces=160)
    moved = pliant.transfer(WALK, bare, cage, "auto", skeleton=WALK.skeleton, lattice=16, frames=2)
    assert moved.registered.skeleton is WALK.skeleton
    assert {"shin.L", "shin.R"} <= {control.track.name for control in moved.controls}


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rigs")
    still = replace(WALK, rotations=WALK.skeleton.rest_rotations[None], translations=WALK.skeleton.offsets[None])
    clip = pliant.transfer_to_rig(Motion(WALK.skeleton, still.rotations, still.translations), CREATURE, WALK.skeleton)
    pliant.write(folder / "rig.glb", clip.clip)
    pliant.write(folder / "walk.bvh", WALK)
    return folder


def test_the_command_drives_a_files_own_skeleton(rig, command_line, monkeypatch) -> None:
    monkeypatch.chdir(rig)
    given = ("transfer", "--source", "walk.bvh", "--target", "rig.glb", "--auto")
    code, out, _ = command_line(*given, "-o", "out.glb", "--json", "--report", "page.html")
    assert code == 0
    figures = json.loads(out)
    assert "shin.L" in figures["joints"]
    assert figures["judgement"]["problems"] == []
    moved = pliant.read_motion("out.glb")
    assert set(WALK.skeleton.names) <= set(moved.skeleton.names)
    assert isinstance(motion_in("out.glb", bones=True), Motion)  # as automatic transfers take it, though it has points
    assert isinstance(motion_in("out.glb"), pliant.Animation)
    assert len(moved) == len(WALK)
    assert "Which limbs match" in (rig / "page.html").read_text(encoding="utf-8")
    assert command_line(*given, "-o", "out.bvh", "--frames", "2", "--quiet")[0] == 0
    assert pliant.read_motion("out.bvh").skeleton.names == moved.skeleton.names
    code, out, _ = command_line(*given, "-o", "out.npz", "--skeleton", "none", "--lattice", "12", "--frames", "2")
    assert code in (0, 1)
    assert "cage: " in out
    pliant.write("bones.json", WALK.skeleton)
    code, out, _ = command_line(*given, "-o", "out.bvh", "--skeleton", "bones.json", "--frames", "2")
    assert code == 0
    assert "its skin moves it" in out


def test_frames_from_a_to_b_and_their_speed(rig, command_line, monkeypatch) -> None:
    monkeypatch.chdir(rig)
    given = ("transfer", "--source", "walk.bvh", "--target", "rig.glb", "--auto", "-o", "part.npz")
    code, out, _ = command_line(*given, "--frames", "1:4", "--speed", "2", "--json")
    assert code == 0
    whole, part = pliant.transfer_to_rig(WALK, CREATURE, WALK.skeleton), pliant.read_animation("part.npz")
    assert len(part) == 4
    assert part.fps == json.loads(out)["fps"] == pytest.approx(2 * WALK.fps, rel=1e-4)
    apart = part.points - part.points.mean(axis=1, keepdims=True)
    wanted = whole.clip.points[1:5] - whole.clip.points[1:5].mean(axis=1, keepdims=True)
    assert np.abs(apart - wanted).max() < 0.03 * CREATURE.diagonal
    for wrong in ("4:1", "0:6"):
        code, _, err = command_line(*given, "--frames", wrong)
        assert code == 2
        assert f'--frames: is "{wrong}"; the source has 6 frames, numbered from 0' in err
    assert command_line(*given, "--frames", "1-4")[0] == 2


def test_a_leading_reference_pose_is_left_out_and_that_is_said(rig, command_line, monkeypatch) -> None:
    monkeypatch.chdir(rig)
    long = gallery.creature_walk(24)
    raised = rotations.from_axis_angle([1, 0, 0], np.radians(80))
    first = rotations.multiply(long.rotations[:1], raised)
    posed = replace(long, rotations=np.concatenate([first, long.rotations[1:]]))
    pliant.write("posed.bvh", posed)
    code, _, err = command_line(
        "transfer", "--source", "posed.bvh", "--target", "rig.glb", "--auto", "-o", "o.npz", "--quiet"
    )
    assert "first frame is a reference pose that it jumps from: left out" in err
    assert code == 0
    assert len(pliant.read_animation("o.npz")) == 23


def test_limbs_of_several_sources_on_one_target(walked: pliant.RiggedTransfer) -> None:
    still = replace(
        WALK,
        rotations=np.repeat(WALK.rotations[:1], 9, axis=0),
        translations=np.repeat(WALK.translations[:1], 9, axis=0),
    )
    joined = pliant.transfer_to_rig({"arms": still, "legs": WALK}, CREATURE, WALK.skeleton)
    assert len(joined) == len(WALK)  # cut to the shortest
    arms = [k for k, name in enumerate(WALK.skeleton.names) if name.startswith(("upperarm", "forearm"))]
    legs = [k for k, name in enumerate(WALK.skeleton.names) if name.startswith(("thigh", "shin"))]
    assert np.abs(np.diff(joined.motion.rotations[:, arms], axis=0)).max() < 1e-9
    np.testing.assert_allclose(joined.motion.rotations[:, legs], walked.motion.rotations[:, legs], atol=1e-12)
    assert joined.registered.facts()["also"] == "arms from arms"
    with pytest.raises(InputError, match=r'source "wave" is one of several; .* called as what they give: arms, head'):
        pliant.transfer_to_rig({"legs": WALK, "wave": still}, CREATURE, WALK.skeleton)


@pytest.mark.data
@pytest.mark.parametrize("name", every(3, ["rigged/Punk", "dino/Trex", "rigged/HumanoidRig"]))
def test_a_captured_run_on_real_rigs(data, name: str) -> None:
    file = data / "models" / f"{name}.glb"
    run = pliant.read_motion(data / "mocap" / "cmu" / "09_01.bvh").at(np.linspace(1, 148, 8))
    moved = pliant.transfer_to_rig(run, pliant.read_mesh(file), pliant.read_skeleton(file))
    np.testing.assert_allclose(moved.registered.target.frame[2], [0, 0, 1], atol=1e-6)
    assert moved.judgement.problems == ()
    assert moved.judgement.angle < 15
