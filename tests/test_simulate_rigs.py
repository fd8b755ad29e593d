"""Rigs as they come: joints beside the flesh they move, loose parts, slender parts, and materials by region."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy.sparse import csr_array

import pliant
from gltf_maker import Maker, rigged
from pliant import ElasticBody, InputError, Material, Mesh, Motion, PliantWarning, Skeleton, SkeletonPose, gallery
from pliant.app.scene import read_scene
from pliant.core import rotations
from pliant.core.regions import Sphere
from pliant.core.shapes import Layer
from pliant.engines.simulate import anchors
from pliant.engines.simulate.app.scene import ElasticScene, static_motion
from pliant.engines.simulate.binding import bind
from pliant.engines.simulate.bracing import LAG, motion_accelerations
from pliant.engines.simulate.carrying import SMOOTHING, TRANSITION, _gradual, _smoothed
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.simulate.regions import material_at
from pliant.geometry.grey_map import GreyMap
from pliant.io.pictures import read_grey_map

BAR = gallery.bar(500).base
SPAN = np.ptp(BAR.points, axis=0)
BONES = Skeleton.from_positions([[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1], ["root", "elbow", "tip"])
BEND = BONES.pose({"elbow": rotations.from_axis_angle([0, 0, 1], np.radians(60))})


def joined(*meshes: Mesh, groups: dict[str, list[float]]) -> Mesh:
    """Several meshes as one; groups: the weight of each mesh in each group, or of its vertices."""
    starts = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    faces = [
        [int(start + v) for v in face] for mesh, start in zip(meshes, starts, strict=False) for face in mesh.polygons
    ]
    weights = {
        name: np.concatenate([np.broadcast_to(w, len(mesh.points)) for mesh, w in zip(meshes, each, strict=True)])
        for name, each in groups.items()
    }
    return Mesh(np.concatenate([mesh.points for mesh in meshes]), faces, vertex_groups=weights)


def box(centre, size) -> Mesh:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2 + centre
    return Mesh(corners, [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def smooth_skin(points) -> dict[str, np.ndarray]:
    """Weights of a bar's vertices on root and elbow."""
    elbow = np.clip(points[:, 0] / 0.6 + 0.5, 0, 1)
    return {"root": 1 - elbow, "elbow": elbow}


SKIN = smooth_skin(BAR.points)
HORN = box([1.5, 1.6, 0], [0.2, 1.0, 0.2])
HORNED = joined(BAR, HORN, groups={"root": [SKIN["root"], 0.0], "elbow": [SKIN["elbow"], 1.0]})


def two_clips() -> Maker:
    """A skinned bar whose joints stand bent at rest, though it was bound straight."""
    maker, turns = Maker(), rotations.from_axis_angle([0, 0, 1], np.radians([50.0, 90.0, -20.0]))
    joints = maker.accessor([[0, 1, 0, 0]] * len(BAR.points), "uint8")
    weights = maker.accessor(np.stack([SKIN["root"], SKIN["elbow"], *np.zeros((2, len(BAR.points)))], axis=1))
    maker.mesh(BAR.points, BAR.triangles, attributes={"JOINTS_0": joints, "WEIGHTS_0": weights})
    maker.add("nodes", name="root", children=[1], translation=[-1.8, 0, 0])
    maker.add("nodes", name="elbow", translation=[1.8, 0, 0], rotation=np.roll(turns[0], -1).tolist())
    maker.add("nodes", mesh=0, skin=0)
    binds = np.tile(np.eye(4), (2, 1, 1))
    binds[0, 0, 3] = 1.8
    maker.add("skins", joints=[0, 1], inverseBindMatrices=maker.accessor(binds))
    maker.add("scenes", nodes=[0, 2])
    maker.clip("bend", (1, "rotation", [0.0, 0.5, 1.0], np.roll(turns, -1, axis=1), "LINEAR"))
    maker.clip("still", (1, "rotation", [0.0, 1.0], np.roll(turns[:2], -1, axis=1), "STEP"))
    return maker


def rigid_error(before, after) -> float:
    """How far points are from a rigid motion of them, over their size."""
    a, b = before - before.mean(axis=0), after - after.mean(axis=0)
    R = rotations.polar(b.T @ a)
    return float(np.abs(b - a @ R.T).max() / np.ptp(before, axis=0).max())


def test_a_part_that_is_bound_to_one_joint_moves_with_it_exactly():
    body = ElasticBody(HORNED, BONES, nodes=250)
    assert body.binding.parts == (1, 1, 0)
    moved = body.pose(BEND).points[len(BAR.points) :]
    turned = rotations.rotate(BEND.world()[1][1], HORN.points)  # the elbow is at the origin
    assert np.allclose(moved, turned, atol=1e-9)


@pytest.mark.parametrize("pre_roll", [0.0, 0.1])
def test_joints_scale_what_the_skin_binds_to_them(pre_roll):
    """A horn is squashed as a blinking eye is; flesh swings about a skin that is squashed."""
    grown, body = np.tile(np.eye(3), (6, 3, 1, 1)), ElasticBody(HORNED, BONES, nodes=250)
    grown[:, 1, 1, 1] = np.linspace(1, 0.1, 6)
    grown[:, 1, 0, 1] = np.linspace(0, 0.3, 6)
    turns, places = np.tile(BEND.rotations, (6, 1, 1)), np.tile(BONES.offsets, (6, 1, 1))
    plain = Motion(BONES, turns, places, 30.0)
    clip, unscaled = (body.simulate(motion, pre_roll=pre_roll) for motion in (replace(plain, scales=grown), plain))
    points = np.einsum("fij,nj->fni", grown[:, 1] - np.eye(3), HORNED.points)
    weights = np.concatenate([SKIN["elbow"], np.ones(len(HORN.points))])
    added = weights[:, None] * rotations.rotate(BEND.world()[1][1], points)
    assert np.allclose(clip.points, unscaled.points + added, atol=1e-9)
    assert np.allclose(body.pose(replace(plain, scales=grown)[3]).points, body.pose(BEND).points + added[3], atol=1e-9)


def test_scales_that_have_no_effect_are_said():
    motion = Motion(BONES, BEND.rotations[None], BONES.offsets[None], scales=np.tile(2 * np.eye(3), (1, 3, 1, 1)))
    with pytest.warns(PliantWarning, match="scale: flesh without a skin keeps its size, though joints scale: root"):
        ElasticBody(BAR, BONES, nodes=250).simulate(motion)


def test_a_loose_part_goes_along_in_dynamics_and_does_not_whip():
    turns = np.tile(BONES.rest_rotations, (12, 1, 1))
    turns[:, 1] = rotations.from_axis_angle([0, 0, 1], np.radians(np.linspace(0, 60, 12)))
    motion = Motion(BONES, turns, np.tile(BONES.offsets, (12, 1, 1)), 30.0)
    clip = ElasticBody(HORNED, BONES, nodes=250).simulate(motion)
    assert clip.converged
    horn = clip.points[:, len(BAR.points) :]
    assert max(rigid_error(HORN.points, points) for points in horn) < 1e-9
    assert np.allclose(horn[-1], rotations.rotate(motion[11].world()[1][1], HORN.points), atol=1e-9)


def test_an_open_sheet_follows_the_skin():
    sheet = Mesh([[x, 0.8, z] for x in (-1.0, 0, 1) for z in (-0.3, 0.3)], [[0, 1, 3, 2], [2, 3, 5, 4]])
    weights = smooth_skin(sheet.points)
    mesh = joined(BAR, sheet, groups={name: [SKIN[name], weights[name]] for name in SKIN})
    body = ElasticBody(mesh, BONES, nodes=250)
    assert body.binding.parts == (1, 0, 1)
    moved = body.pose(BEND).points[len(BAR.points) :]
    turned = rotations.rotate(BEND.world()[1][1], sheet.points)
    blended = weights["root"][:, None] * sheet.points + weights["elbow"][:, None] * turned
    assert np.allclose(moved, blended, atol=1e-9)


def test_an_open_part_that_is_stuck_into_another_is_flesh():
    leg = box([0.9, -1.3, 0], [0.5, 1.8, 0.5])
    leg = Mesh(leg.points, [face for face in leg.polygons if not (leg.points[face][:, 1] > -0.5).all()])
    mesh = joined(BAR, leg, groups={"root": [SKIN["root"], 0.0], "elbow": [SKIN["elbow"], 0.5], "tip": [0.0, 0.5]})
    assert bind(mesh, BONES).parts == (2, 0, 0)
    below = replace(mesh, points=mesh.points - [0, 3, 0] * (np.arange(len(mesh.points)) >= len(BAR.points))[:, None])
    assert bind(below, BONES).parts == (1, 0, 1)


def test_a_machine_of_rigid_parts_moves_as_its_skin_does():
    parts = [box([x, 0, 0], [1.2, 1, 1]) for x in (-1, 1)]
    mesh = joined(*parts, groups={"root": [1.0, 0.0], "elbow": [0.0, 1.0]})
    with pytest.warns(PliantWarning, match="nothing of the shape is flesh"):
        body = ElasticBody(mesh, BONES, nodes=200)
    pose = body.pose(BEND)
    assert pose.converged
    assert np.allclose(pose.points[:8], parts[0].points, atol=1e-9)
    assert np.allclose(pose.points[8:], rotations.rotate(BEND.world()[1][1], parts[1].points), atol=1e-9)
    assert body.binding.summary() == "2 rigid"
    soft = ElasticBody(mesh, BONES, nodes=200, soft=["root", "elbow"])
    assert soft.binding.parts == (2, 0, 0)


@pytest.mark.parametrize(("region", "why"), [
    (Sphere((1.1, 2, 0), 0.4), "on 1 of 1 parts in region 0 of those that are soft: 1 not wholly in it"),
    ("elbow", 'on 1 of 2 parts in the region "elbow": 1 without an inside'),
    (Sphere((9, 9, 9), 0.1), "no vertex is in region 0 of those that are soft: rigid = false has no effect"),
])  # fmt: skip
def test_parts_that_cannot_be_soft_are_said(region, why):
    """A rod and a sheet move with the elbow; only what is wholly in a region, and has an inside, gets soft."""
    rod, sheet = box([0.5, 2, 0], [1.2, 0.4, 0.4]), Mesh([[0, 1, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]], [[0, 1, 2, 3]])
    mesh = joined(BAR, rod, sheet, groups={"root": [SKIN["root"], 0, 0], "elbow": [SKIN["elbow"] / 4, 1, 1],
                                           "tip": [SKIN["elbow"] * 3 / 4, 0, 0]})  # fmt: skip
    with pytest.warns(PliantWarning, match=re.escape(why)):
        binding = bind(mesh, BONES, soft=[region])
    assert binding.parts == ((2, 1, 0) if region == "elbow" else (1, 2, 0))


def test_a_jelly_on_one_bone_is_flesh():
    mesh = replace(BAR, vertex_groups={"root": np.ones(len(BAR.points))})
    assert bind(mesh, BONES).parts == (1, 0, 0)


def test_a_joint_beside_its_flesh_moves_it_if_the_skin_says_so():
    """Hips above the body, as many rigs have them, with a control that moves nothing."""
    beside = Skeleton.from_positions(
        [[-1.0, 2.0, 0], [0.2, 0, 0], [1.8, 0, 0], [0, 4, 0]], [-1, 0, 1, 0], ["hips", "elbow", "tip", "control"]
    )
    mesh = replace(BAR, vertex_groups={"hips": SKIN["root"], "elbow": SKIN["elbow"]})
    pose = beside.pose(
        {"hips": rotations.from_axis_angle([0, 0, 1], 0.3), "elbow": rotations.from_axis_angle([0, 0, 1], -0.3)}
    )
    body = ElasticBody(mesh, beside, nodes=250)
    assert "control to its end" not in body.bones.names
    far = BAR.points[:, 0] < -1.0
    assert rigid_error(BAR.points[far], body.pose(pose).points[far]) < 0.05
    hips = np.array([-1.0, 2, 0])
    turned = rotations.rotate(rotations.from_axis_angle([0, 0, 1], 0.3), BAR.points - hips) + hips
    assert np.abs(body.pose(pose).points[far] - turned[far]).max() < 0.05


def test_bones_that_start_outside_give_no_alarm(recwarn):
    grounded = Skeleton.from_positions(
        [[-1.8, -3, 0], [-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1, 2], ["ground", "root", "elbow", "tip"]
    )
    body = ElasticBody(BAR, grounded, nodes=200)
    assert not recwarn.list
    assert not any(name.startswith("ground") for name in body.bones.names)


def test_a_whole_turn_of_the_body_leaves_the_flesh_whole_where_a_foot_hangs_on_the_root():
    """Signs of rotations follow the flesh: leg and foot turn alike, though one by the chain and one by the root."""
    joints = Skeleton.from_positions(
        [[-1.8, -2, 0], [-1.8, 0, 0], [0, 0, 0], [0.9, 0, 0]], [-1, 0, 1, 0], ["root", "thigh", "shin", "foot"]
    )
    x = BAR.points[:, 0]
    shin, foot = np.clip(x / 0.4 + 0.5, 0, 1), np.clip((x - 0.9) / 0.4 + 0.5, 0, 1)
    mesh = replace(BAR, vertex_groups={"thigh": 1 - shin, "shin": shin * (1 - foot), "foot": foot})
    body = ElasticBody(mesh, joints, nodes=250)
    half = rotations.from_axis_angle([1, 0, 0], np.radians(140))
    pose = joints.pose({"thigh": half, "shin": half, "foot": rotations.from_axis_angle([1, 0, 0], np.radians(-80))})
    quaternions = body.frames_of(pose).quaternions[0]
    joint = body.bones.joint
    near = quaternions[joint == 2][0] @ quaternions[joint == 3][0]
    assert near > 0.9


@pytest.mark.slow
def test_flesh_that_overlaps_is_told_apart_by_the_skin():
    """Two fingers of one hand that are sunk into each other move apart."""
    outline = [[0, -1], [3, -1], [3, 0.05], [1, 0.05], [1, -0.05], [3, -0.05], [3, 1], [0, 1]]
    front, back = ([[x, y, z] for x, y in outline] for z in (-0.5, 0.5))
    n = len(outline)
    sides = [[k, (k + 1) % n, n + (k + 1) % n, n + k] for k in range(n)]
    # The lower finger reaches up to 0.05, the upper one down to -0.05: the slit between them is inside out.
    caps = [
        [[0, 1, 2, 3], [0, 3, 4, 7], [4, 5, 6, 7]],
        [[n + v for v in face[::-1]] for face in [[0, 1, 2, 3], [0, 3, 4, 7], [4, 5, 6, 7]]],
    ]
    hand = Mesh(np.array(front + back), [*sides, *caps[0][::1], *caps[1]])
    hand = hand if hand.volume > 0 else Mesh(hand.points, [list(face)[::-1] for face in hand.polygons])
    joints = Skeleton.from_positions(
        [[0.2, 0, 0], [1.2, 0.5, 0], [2.8, 0.5, 0], [1.2, -0.5, 0], [2.8, -0.5, 0]], [-1, 0, 1, 0, 3],
        ["palm", "upper", "upper.end", "lower", "lower.end"],
    )  # fmt: skip
    tip = np.clip(hand.points[:, 0] - 1, 0, 1)
    upper = np.isin(np.arange(2 * n) % n, [4, 5, 6])
    groups = {"palm": 1 - tip, "upper": tip * upper, "lower": tip * ~upper}
    body = ElasticBody(replace(hand, vertex_groups=groups), joints, nodes=400)
    assert (body.cut < 0.1).any()
    assert (body.cut[body.discretisation.points[:, 0] < 0.5] == 1).all()
    count = len(body.quadrature)
    assert body.inverted(np.full(count, -1.0)) == count - np.count_nonzero(body.cut[:count] <= 0.5) < count


def test_meshes_that_hang_on_a_joint_are_bound_to_it(tmp_path):
    maker = rigged()
    skin = maker.json["skins"][0]
    hanging = maker.add("nodes", name="hat", mesh=maker.mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))
    joint = skin["joints"][-1]
    maker.json["nodes"][joint].setdefault("children", []).append(hanging)
    mesh = pliant.read_mesh(maker.glb(tmp_path / "hat.glb"))
    assert "hat" in mesh.labels["object"].names
    hat = np.unique(mesh.triangles[mesh.labels["object"].index == mesh.labels["object"].names.index("hat")])
    assert (mesh.vertex_groups[pliant.read_skeleton(tmp_path / "hat.glb").names[-1]][hat] == 1).all()


# Slender parts


def test_flesh_adds_to_the_skin_how_far_it_is_from_its_bones():
    """Carried by bones alone, every vertex is where the skin has it; flesh in balance is not far from there."""
    body = ElasticBody(HORNED, BONES, nodes=250)
    frames, R = body.frames_of(BEND), rotations.matrix(rotations.from_axis_angle([0, 0, 1], np.radians(60)))
    root, elbow = (HORNED.vertex_groups[name][:, None] for name in ("root", "elbow"))
    skinned = root * HORNED.points + elbow * HORNED.points @ R.T
    np.testing.assert_allclose(body.embed(body.carried(frames, 0)), skinned, atol=1e-9)
    away = np.linalg.norm(body.pose(BEND).points - skinned, axis=1) / body.diagonal
    assert 1e-3 < away.max() < 0.1
    assert away[(elbow[:, 0] == 1) & (HORNED.points[:, 1] > 1.2)].max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Husky", "Stag"])
def test_ears_and_tails_are_not_stretched(data, name):
    """At no frame by more than a tenth beyond what the file's skinning does, and they swing."""
    path = data / "models" / "rigged" / f"{name}.glb"
    mesh, motion, clip = pliant.read_mesh(path), pliant.read_motion(path), pliant.read_animation(path)
    motion = Motion(motion.skeleton, motion.rotations[:14], motion.translations[:14], motion.fps)
    flesh = ElasticScene(mesh, motion.skeleton, motion).run().clip
    skin = clip.resampled(flesh.fps).points[: len(flesh)]
    ends = [joint for joint in motion.skeleton.names if joint.startswith(("Ear", "Tail"))]
    slender = sum(mesh.vertex_groups[joint] for joint in ends if joint in mesh.vertex_groups) > 0.5
    edges = mesh.edges[slender[mesh.edges].all(axis=1)]

    def lengths(points):
        return np.linalg.norm(points[..., edges[:, 0], :] - points[..., edges[:, 1], :], axis=-1)

    long = lengths(mesh.points) > 1e-3 * mesh.diagonal
    rest = lengths(mesh.points)[long]
    mine, theirs = (lengths(points)[:, long] / rest for points in (flesh.points, skin))
    assert (mine / np.maximum(theirs, 1)).max() < 1.1
    assert np.abs(flesh.points - skin)[:, slender].max() > 5e-4 * mesh.diagonal


def eared(length: float) -> Mesh:
    """A bar with a long thin plate on its end, in one piece."""
    pieces = gallery.bar(500).base
    ear = box([1.6, 0.4 + length / 2, 0], [0.4, length + 0.4, 0.3])
    faces = [[len(pieces.points) + int(v) for v in face] for face in ear.polygons]
    return Mesh(np.concatenate([pieces.points, ear.points]), [*pieces.polygons, *faces])


def test_flesh_lags_behind_its_bones_by_no_more_than_a_share_of_its_distance():
    """Under the acceleration that it has to withstand, however soft it is; stiff flesh is left alone."""
    mesh, pull = eared(1.2), 20.0
    free, held = (
        ElasticBody(mesh, BONES, material=Material(young=3e3), nodes=400, withstand=rate) for rate in (0.0, pull)
    )
    ear = free.nodes.points[: free.nodes.free, 1] > 0.8
    lags = []
    for body in (free, held):
        pose = body.pose(BONES.rest_pose(), gravity=[0, 0, pull], stretch_limit="none")
        lags.append(np.linalg.norm(pose.nodes - body.nodes.points, axis=1)[: body.nodes.free])
    assert lags[1][ear].max() < LAG * 1.6 < lags[0][ear].max()
    sags = []
    for rate in (0.0, pull):
        stiff = ElasticBody(mesh, BONES, material=Material(young=1e7), nodes=400, withstand=rate)
        pose = stiff.pose(BONES.rest_pose(), gravity=[0, 0, pull])
        sags.append(np.abs(pose.points - mesh.points)[mesh.points[:, 0] < 0.5].max())
    assert sags[1] > 0.9 * sags[0]


def test_leashes_feel_no_rigid_motion():
    body = ElasticBody(eared(0.8), BONES, nodes=300, withstand=50.0)
    turn, shift = rotations.from_axis_angle([1, 2, 3], 2.0), np.array([3.0, -2.0, 1.0])
    turns, places = BONES.rest_rotations.copy(), BONES.offsets.copy()
    turns[0], places[0] = rotations.multiply(turn, turns[0]), rotations.rotate(turn, places[0]) + shift
    pose = body.pose(SkeletonPose(BONES, turns, places))
    np.testing.assert_allclose(pose.points, rotations.rotate(turn, body.shape.points) + shift, atol=1e-9)
    assert pose.energy == pytest.approx(0, abs=1e-9)


def test_flesh_withstands_its_motion_without_a_skin_too():
    """What no bone reaches follows them; poses at rest, and `brace = 0`, are left to the material."""
    t = np.arange(25) / 24
    turns = np.repeat(BONES.rest_rotations[None], len(t), axis=0)
    turns[:, 1] = rotations.from_axis_angle([0, 0, 1], 0.8 * np.sin(2 * np.pi * 1.5 * t))
    motion = Motion(BONES, turns, np.repeat(BONES.offsets[None], len(t), axis=0), fps=24)
    options = SimulateOptions(nodes=200, young=2e4)
    scenes = [
        ElasticScene(eared(1.2), BONES, motion, replace(options, **more))
        for more in ({}, {"brace": 0.0}, {"static": True})
    ]
    held, free, still = (scene.body() for scene in scenes)
    assert held.leash.any()
    assert not free.leash.any()
    assert not still.leash.any()

    def lag(scene, body):
        return max(np.abs(body.points_of(state) - body.carried_points(state)).max() for state in scene.states(body))

    assert lag(scenes[0], held) < 0.5 * lag(scenes[1], free)


def test_angular_acceleration_counts_by_the_distance_from_the_joint():
    accelerations = np.array([[0.0, 0.0], [0.0, 7.0], [0.0, 0.0]])
    body = ElasticBody(BAR, BONES, nodes=200, withstand=accelerations)
    x = body.nodes.points[: body.nodes.free, 0]
    rates = body.leash / body.mass[: body.nodes.free]
    assert rates[x < -1.0].max() < 0.05 * rates[x > 1.0].max()
    assert not ElasticBody(BAR, BONES, nodes=200).leash.any()


def test_accelerations_of_a_motion_leave_out_its_jumps():
    t = np.arange(61) / 60
    places = np.tile(BONES.offsets, (61, 1, 1))
    places[:, 0, 1] += 0.2 * np.sin(2 * np.pi * t)
    turns = np.tile(BONES.rest_rotations, (61, 1, 1))
    turns[:, 1] = rotations.from_axis_angle([0, 0, 1], 0.5 * np.sin(2 * np.pi * t))
    jumping = places.copy()
    jumping[30:, 0, 1] += 3.0
    for path in (places, jumping):
        found = motion_accelerations(Motion(BONES, turns, path, 60.0), BAR.diagonal)
        assert found[0] == pytest.approx([0.2 * (2 * np.pi) ** 2, 0.0], rel=0.02, abs=1e-9)
        assert found[1, 1] == pytest.approx(0.5 * (2 * np.pi) ** 2, rel=0.05)  # and ω², where that is larger


def test_only_a_shape_with_a_skin_is_leashed_by_itself():
    mesh, still = eared(1.2), static_motion(BONES)
    names = BONES.names[0], "ear"
    skinned, plain = (replace(mesh, vertex_groups={name: np.ones(len(mesh.points))}) for name in names)
    assert ElasticScene(skinned, BONES, still, SimulateOptions(nodes=200)).body().leash.min() > 0
    assert not ElasticScene(plain, BONES, still, SimulateOptions(nodes=200)).body().leash.any()


@pytest.mark.parametrize("brace", [-1.0, np.nan, "much", [1.0, 2.0]])
def test_a_brace_is_an_acceleration(brace):
    with pytest.raises(InputError, match="withstand is"):
        ElasticBody(BAR, BONES, nodes=200, withstand=brace)


# What the skin says


def test_flesh_rotates_with_the_joint_that_the_skin_binds_it_to():
    """A toe beside the foot's bone, bound to a joint at the toe's root that bends it upwards."""
    mesh = eared(1.2)
    joints = Skeleton.from_positions(
        [[-1.8, 0, 0], [0, 0, 0], [1.6, 0.5, 0]], [-1, 0, 0], ["root", "elbow", "toe"]
    )  # the toe is a leaf: its bone runs through what the skin binds to it
    toe = (mesh.points[:, 1] > 0.51) | (np.arange(len(mesh.points)) >= len(mesh.points) - 8)
    body = ElasticBody(
        replace(mesh, vertex_groups={"root": 1.0 - toe, "toe": 1.0 * toe}), joints, nodes=500, soft=["toe"]
    )
    bone = body.bones.names.index("toe to its end")
    along = body.bones.tails[bone] - body.bones.heads[bone]
    assert along[1] > 0.9 * np.linalg.norm(along)
    tip = body.nodes.points[: body.nodes.free, 1] > 0.9
    of_toe = np.zeros(len(body.bones))
    of_toe[body.bones.joint == 2] = 1
    weights = np.zeros((len(body.node_weights), len(body.bones)))
    rows = np.repeat(np.arange(len(weights)), np.diff(body.node_weights.start))
    weights[rows, body.node_weights.bone] = body.node_weights.weight
    assert (weights[: body.nodes.free][tip] @ of_toe).min() > 0.9


def test_a_joint_without_flesh_of_its_own_holds_it_as_the_skin_does():
    shares = {"root": 1 - 0.7 * SKIN["elbow"], "elbow": 0.7 * SKIN["elbow"]}
    body = ElasticBody(replace(BAR, vertex_groups=shares), BONES, nodes=250)
    moved = body.samples.posed(body.frames_of(BEND))[0]
    inner = body.samples.skinned & (body.samples.points[:, 0] > 0.6)
    assert inner.any()
    points = body.samples.points[inner]
    blended = 0.3 * points + 0.7 * rotations.rotate(BEND.world()[1][1], points)
    np.testing.assert_allclose(moved[inner], blended, atol=1e-9)
    assert not ElasticBody(replace(BAR, vertex_groups=SKIN), BONES, nodes=250).samples.skinned.any()


def test_the_clip_that_is_taken_of_a_file_is_said(tmp_path, command_line):
    file, out = two_clips().glb(tmp_path / "two.glb"), tmp_path / "out.npz"
    for words, taken in (((), "bend"), (("--clip", "still"), "still")):
        short = ("simulate", str(file), "-o", str(out), "--nodes", "200", "--frames", "0:1", *words)
        report = tmp_path / f"{taken}.html"
        assert f"motion: {taken} Motion(2 frames" in command_line(*short, "--report", str(report))[1]
        assert taken in report.read_text()
        assert json.loads(command_line(*short, "--json")[1])["motion"] == taken


def test_rounding_does_not_decide_which_joint_holds_flesh_that_two_have_alike():
    """Else a body would be held otherwise wherever it stands."""
    for noise in (1e-15, -1e-15):
        binding = SimpleNamespace(
            skin=True, at=lambda points, by=noise: np.tile([0.5 + by, 0.5 - by, 0.0], (len(points), 1))
        )
        chunks = SimpleNamespace(points=np.zeros((3, 3)))
        assert not anchors._owned(binding, BONES, chunks).any()


def test_a_shape_too_far_from_the_origin_is_said():
    bones = Skeleton.from_positions(np.cumsum(BONES.offsets, axis=0) + 1e5, BONES.parents)
    with pytest.warns(PliantWarning, match="diagonals away from the origin"):
        ElasticBody(BAR.with_points(BAR.points + 1e5), bones, nodes=100)


def test_the_skin_of_a_file_that_rests_in_another_pose_than_it_was_bound_in_is_kept(tmp_path):
    """Blended twice, the bend would lose volume twice."""
    file = two_clips().glb(tmp_path / "bent.glb")
    mesh, skeleton, skinned = pliant.read_mesh(file), pliant.read_skeleton(file), pliant.read_animation(file)
    motion, body = pliant.read_motion(file), ElasticBody(mesh, skeleton, nodes=200)
    for k in (0, len(motion) // 2, len(motion) - 1):
        carried = body.embed(body.carried(body.frames_of(motion[k]), 0))
        np.testing.assert_allclose(carried, skinned.points[k], atol=1e-6 * mesh.diagonal)
    offsets = mesh.bind_offsets
    np.testing.assert_array_equal(mesh.scaled(3.0).bind_offsets["elbow"], 3 * offsets["elbow"])
    R = rotations.matrix(rotations.from_axis_angle([0.6, 0.0, 0.8], 2.0))
    moved = mesh.with_points(2 * mesh.points @ R.T + [3.0, -1.0, 7.0]).bind_offsets
    np.testing.assert_allclose(moved["elbow"], 2 * offsets["elbow"] @ R.T, atol=1e-9 * mesh.diagonal)
    assert not mesh.with_points(mesh.points * [1.0, 1.01, 1.0]).bind_offsets
    assert not mesh.with_points(mesh.points * [-1.0, 1.0, 1.0]).bind_offsets
    far = mesh.points + 1e4 * mesh.diagonal * np.array([0.6, 0.0, -0.8])
    for points in (far, far.astype(np.float32)):
        kept = mesh.with_points(points).bind_offsets
        np.testing.assert_allclose(kept["elbow"], offsets["elbow"], atol=1e-3 * mesh.diagonal)
    assert not mesh.with_points(far + 0.01 * (mesh.points * [1.0, -1.0, 1.0])).bind_offsets
    with pytest.warns(PliantWarning, match="too far to tell"):
        assert not mesh.with_points((mesh.points + 1e6 * mesh.diagonal).astype(np.float32)).bind_offsets
    pliant.write(tmp_path / "saved.npz", mesh)
    saved = pliant.read_mesh(tmp_path / "saved.npz").bind_offsets
    assert saved.keys() == offsets.keys()
    assert all((saved[name] == offsets[name]).all() for name in offsets)
    assert mesh.welded().mesh.bind_offsets["root"].shape == mesh.welded().mesh.points.shape


def test_what_flesh_adds_to_a_skin_stretches_no_edge_by_much_however_short():
    """Where it ends from one vertex to the next, and along one thousandth of the diagonal."""
    near = BAR.points[0] + 1e-3 * BAR.diagonal * np.array([-1, 0, 0])
    faces = [*([int(v) for v in face] for face in BAR.polygons), [0, int(BAR.edges[0, 1]), len(BAR.points)]]
    mesh = Mesh(np.concatenate([BAR.points, [near]]), faces)
    rows = np.zeros((len(mesh.points), 1))
    rows[BAR.points[:, 0].argsort()[: len(BAR.points) // 2]] = 1.0
    added = _smoothed(csr_array(rows), mesh).toarray()
    a, b = mesh.edges.T
    stretch = np.abs(added[a] - added[b])[:, 0] / np.linalg.norm(mesh.points[a] - mesh.points[b], axis=1)
    assert stretch.max() * mesh.diagonal < 1 / SMOOTHING
    assert added.min() < 0.01
    assert added.max() > 0.95


@pytest.mark.parametrize("nodes", [50, 400])
def test_smoothing_keeps_the_sum_of_what_flesh_adds(nodes):
    """However many nodes there are: else refining them would take some of the motion away."""
    rng = np.random.default_rng(0)
    rows = np.zeros((len(BAR.points), nodes))
    places = BAR.points[rng.choice(len(BAR.points), nodes, replace=False)]
    near = np.argsort(np.linalg.norm(BAR.points[:, None] - places, axis=2), axis=1)[:, :10]
    np.put_along_axis(rows, near, 0.1, axis=1)
    added = _smoothed(csr_array(rows), BAR)
    np.testing.assert_allclose(added.sum(axis=1), 1.0, atol=1e-9)
    assert added.nnz < 0.5 * nodes * len(BAR.points)


def test_the_skin_takes_over_gradually():
    share = np.ones(len(BAR.points))
    share[np.argmin(BAR.points[:, 0])] = 0.0
    found = _gradual(share, BAR)
    a, b = BAR.edges.T
    away = np.linalg.norm(BAR.points[a] - BAR.points[b], axis=1) / (TRANSITION * BAR.diagonal)
    assert (np.abs(found[a] - found[b]) <= away + 1e-9).all()
    assert (found <= share + 1e-9).all()
    assert found[np.argmax(BAR.points[:, 0])] == 1.0


def test_nodes_that_too_few_points_see_are_tied_to_the_others():
    """A tie costs nothing where flesh is deformed evenly, and holds its node else."""
    plain = ElasticBody(BAR, BONES, nodes=200).discretisation
    which = np.array([3, 50])
    tied = plain.tied(which)
    assert len(tied.functions) == len(plain.functions) + 2
    np.testing.assert_array_equal(tied.points[-2:], plain.nodes.points[which])
    operator = tied.operator(1.0, 1.0)
    R = np.tile(np.eye(3).ravel(), (len(tied.functions), 1))
    x = tied.nodes.points @ np.array([[1.2, 0.3, 0], [0, 0.8, 0.1], [0.2, 0, 1.1]]) + [1, 2, 3]
    assert np.abs(operator.strains(x, R)[0][-2:]).max() < 1e-12
    x[which[0]] += [0.1, 0, 0]
    h = tied.weights[-2] ** (1 / 3)
    assert operator.strains(x, R)[0][-2, 0] == pytest.approx(-0.1 / h)


# Regions


def test_a_rigid_region_keeps_its_shape():
    marked = replace(BAR, vertex_groups={"plate": (BAR.points[:, 0] > 0.6).astype(float)})
    plate = BAR.points[:, 0] > 0.7
    soft, rigid = (ElasticBody(marked, BONES, nodes=300, rigid=names) for names in ([], ["plate"]))
    pose = BONES.pose({"elbow": rotations.from_axis_angle([0, 0, 1], np.radians(40))})
    errors = [
        rigid_error(BAR.points[plate], body.pose(pose, gravity=[0, -20.0, 0]).points[plate]) for body in (soft, rigid)
    ]
    assert errors[1] < 1e-9 < 1e-3 < errors[0]


def test_painted_weights_mix_materials():
    weights = np.clip(BAR.points[:, 0] / SPAN[0] + 0.5, 0, 1)
    mesh = replace(BAR, vertex_groups={"paint": weights})
    at = np.array([[-1.0, 0.5, 0], [0.0, 0.5, 0], [1.0, 0.5, 0]])
    found = material_at(at, [(None, Material(1e4)), ("paint", Material(1e6))], mesh=mesh)
    w = at[:, 0] / SPAN[0] + 0.5
    assert np.allclose(found.mu, (1 - w) * Material(1e4).lame[1] + w * Material(1e6).lame[1], rtol=0.02)


def mapped() -> Mesh:
    """The bar with UVs along it: u from 0 to 1."""
    low = BAR.points.min(axis=0)
    uv = ((BAR.points - low) / SPAN)[:, :2] * 0.98 + 0.01
    return replace(BAR, uvs=Layer(uv, BAR.polygons.corners))


def test_a_map_says_what_is_stiff_where_the_uvs_lay_it(tmp_path):
    ramp = np.tile(np.linspace(0, 255, 256).astype(np.uint8), (8, 1))
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    grey = read_grey_map(tmp_path / "ramp.png")
    at = np.array([[x, 0.5, 0.1] for x in (-1.5, -0.5, 0.5, 1.5)])
    u = (at[:, 0] - BAR.points[:, 0].min()) / SPAN[0]
    assert np.allclose(grey.at(at, mapped()), u, atol=0.02)
    upright = np.zeros((4, 4))
    upright[0] = 1  # the top row lies where v is 1
    top = GreyMap(upright).at(np.array([[0, SPAN[1] / 2, 0], [0, -SPAN[1] / 2, 0]]) * 0.999, mapped())
    assert top[0] > 0.9 > 0.1 > top[1]


@pytest.mark.parametrize(
    ("values", "said"),
    [(np.zeros((0, 3)), "expected"), (np.full((2, 2), 2.0), "from 0 to 1"), ([1.0, 0.0], "height")],
)
def test_maps_that_are_none_are_refused(values, said):
    with pytest.raises(InputError, match=said):
        GreyMap(values)


def test_a_map_needs_uvs():
    with pytest.raises(InputError, match="no UVs"):
        ElasticBody(replace(BAR, uvs=None), BONES, nodes=200, material=[(GreyMap([[1.0]]), Material(1e6))])


SCENE = """engine = "simulate"
nodes = 200
brace = 0
[shape]
file = "bar.obj"
[skeleton]
file = "bones.json"
[[motion.keys]]
time = 0.2
turns = {{ elbow = {{ axis = [0, 0, 1], degrees = 20 }} }}
{}
"""


@pytest.fixture
def folder(tmp_path):
    pliant.write(tmp_path / "bar.obj", mapped())
    pliant.write(tmp_path / "bones.json", BONES)
    Image.fromarray(np.full((2, 2), 255, dtype=np.uint8)).save(tmp_path / "white.png")
    (tmp_path / "none.png").write_text("no image")
    return tmp_path


def scene_of(folder, text):
    (folder / "scene.toml").write_text(SCENE.format(text))
    return read_scene(folder / "scene.toml")


def test_scenes_take_maps_and_rigid_regions(folder):
    found = scene_of(folder, '[[regions]]\nmap = "white.png"\nyoung = 3e6\n[[regions]]\nname = "tip"\nrigid = true')
    body = found.body()
    stiff = body.operator.mu / body.discretisation.weights
    assert np.allclose(stiff, Material(3e6).lame[1] * found.unit)
    moved = body.pose(found.motion[len(found.motion) - 1]).points
    end = BAR.points[:, 0] > 1.85
    assert rigid_error(BAR.points[end], moved[end]) < 1e-9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[regions]]\nmap = "none.png"\nyoung = 1e6', "none.png: is not an image"),
        ('[[regions]]\nmap = "gone.png"\nyoung = 1e6', "there is no such file"),
        ('[[regions]]\nname = "tip"\nrigid = true\nyoung = 1e6', "line 14, regions[0].young: has no effect"),
        ('[[regions]]\nname = "tipp"\nrigid = true', "line 12, regions[0].name: no vertex group"),
    ],
)
def test_what_is_wrong_with_a_region_is_said_where_it_is(folder, text, said):
    with pytest.raises(InputError) as error:
        scene_of(folder, text).body()
    assert said in str(error.value)


def test_regions_of_the_command_line(folder, command_line, monkeypatch):
    monkeypatch.chdir(folder)
    still = ("simulate", "bar.obj", "--skeleton", "bones.json", "--hold", "0.05", "--nodes", "200", "--json")
    code, _, _ = command_line(*still, "-o", "a.npz", "--region", "tip:young=3e6,poisson=0.3", "--rigid", "elbow")
    assert code == 0
    code, _, err = command_line(*still, "-o", "a.npz", "--region", "white.png:young=3e6")
    assert code == 0, err
    for words, said in [
        (("--region", "tip"), "NAME:KEY=VALUE"),
        (("--region", "tip:stiff=3"), "NAME:KEY=VALUE"),
        (("--region", "tip:young=-3"), "NAME:KEY=VALUE"),
        (("--rigid", "tipp"), 'no vertex group, face label, colour or joint is called "tipp"; the closest are tip'),
    ]:
        code, _, err = command_line(*still, "-o", "b.npz", *words)
        assert code == 2
        assert said in err
        assert not (folder / "b.npz").exists()


# Real files

RIGGED = ("Stag", "Husky", "RobotExpressive", "Punk", "Enemy_2Legs", "Dolphin", "Frog", "Snake", "Spider")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", RIGGED)
def test_rigged_files_look_as_good_as_their_skinning(data, name, tmp_path, command_line):
    file, out = data / f"models/rigged/{name}.glb", tmp_path / "out.npz"
    code, _, err = command_line("simulate", str(file), "-o", str(out), "--frames", "0:15", "--json")
    assert code == 0, err
    clip = pliant.read_animation(out)
    skinned = pliant.read_animation(file).points[: len(clip)]
    away = np.linalg.norm(clip.points - skinned, axis=2) / clip.shape.diagonal
    assert away.max() < 0.08
    assert away.mean() < 0.005
    edges = clip.shape.edges
    rest = lengths(clip.shape.points, edges)
    long = rest > 4e-3 * clip.shape.diagonal
    mine, theirs = (lengths(frames, edges)[:, long] / rest[long] for frames in (clip.points, skinned))
    assert mine.max() < 1.1 * theirs.max()
    still = np.abs(theirs - 1).max(axis=0) < 0.02  # what the skin does not bend: antlers, ears, tails
    assert np.percentile(mine[:, still].max(axis=0), 95) < 1.1


def lengths(points, edges):
    return np.linalg.norm(points[..., edges[:, 0], :] - points[..., edges[:, 1], :], axis=-1)
