"""How bodies stand, which limbs match, how motions are carried over, and that results turn along with both."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import Mesh, Motion, PointCloud, Skeleton, gallery
from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.shapes import Labels, Shape
from pliant.gallery.primitives import box_mesh
from pliant.geometry.body_plan.bodies import OrientedBody, across_middles, shape_body, skeleton_body, without_helpers
from pliant.geometry.body_plan.clearance import with_clearance
from pliant.geometry.body_plan.contacts import find_contacts, runs
from pliant.geometry.body_plan.following import Follower, forward, standing_height
from pliant.geometry.body_plan.grounding import fabrik, grounded, with_level_feet
from pliant.geometry.body_plan.guides import chain_of
from pliant.geometry.body_plan.joints import body_skeleton, bone_count, divided, jointed
from pliant.geometry.body_plan.matching import check_match, match_limbs
from pliant.geometry.body_plan.moving import moving_shape, moving_skeleton, upright_axis, without_reference_pose
from pliant.geometry.body_plan.names import mirrored, part, side
from pliant.geometry.body_plan.retargeted import Hints, onto_shape, onto_skeleton
from pliant.geometry.body_plan.symmetry import mirror_planes, own_axes, surface_samples
from pliant.geometry.retargeting import retargeted
from pliant.geometry.shell import Target

Y = np.array([0.0, 1.0, 0.0])


def turn(axis: list[float], degrees: float) -> np.ndarray:
    return rotations.matrix(rotations.from_axis_angle(axis, np.radians(degrees)))


Z_UP = turn([1, 0, 0], 90)


def moved(shape: Shape, R: np.ndarray, scale: float = 1.0) -> Shape:
    return shape.with_points(scale * shape.points @ R.T + 3.0)


def moved_motion(motion: Motion, R: np.ndarray, scale: float = 1.0) -> Motion:
    """A motion in a world that is turned and scaled; R may mirror."""
    bones = motion.skeleton
    flip = np.diag([1.0, 1.0, -1.0]) if np.linalg.det(R) < 0 else np.eye(3)
    q = rotations.quaternion(R @ flip)

    def mirror(turns: np.ndarray) -> np.ndarray:
        return rotations.quaternion(flip @ rotations.matrix(turns) @ flip)

    roots = np.flatnonzero(bones.parents < 0)
    offsets, rest = scale * bones.offsets @ flip, mirror(bones.rest_rotations)
    places, turns = scale * motion.translations @ flip, mirror(motion.rotations)
    for j in roots:
        offsets[j], rest[j] = R @ flip @ offsets[j], rotations.multiply(q, rest[j])
        places[:, j], turns[:, j] = places[:, j] @ flip @ R.T, rotations.multiply(q, turns[:, j])
    ends = {j: scale * flip @ end for j, end in bones.ends.items()}
    other = pliant.Skeleton(bones.names, bones.parents, offsets, rest, ends)
    return replace(motion, skeleton=other, translations=places, rotations=turns, channels=None)


@pytest.fixture(scope="module")
def walk() -> Motion:
    return gallery.creature_walk(4)


@pytest.fixture(scope="module")
def bodies() -> dict[str, OrientedBody]:
    return {name: shape_body(getattr(gallery, name)(900).base) for name in ("creature", "animal")}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("LeftUpLeg", (1, "leg")), ("mixamorig:RightForeArm", (-1, "arm")), ("thigh.L", (1, "leg")),
        ("upperarm_r", (-1, "arm")), ("Bip01 L Calf", (1, "leg")), ("rShldr", (-1, "arm")), ("Head", (0, "head")),
        ("Tail.003", (0, "tail")), ("Hips", (0, "trunk")), ("LHipJoint", (1, "leg")), ("Roll", (0, "")),
        ("b_LeftLeg01_015", (1, "leg")), ("__Clavicle_L", (1, "arm")), ("Foot.R.001", (-1, "leg")),
    ],
)  # fmt: skip
def test_names_of_joints_in_many_conventions(name: str, wanted: tuple[int, str]) -> None:
    assert (side(name), part(name)) == wanted


def test_joints_that_differ_in_their_side_alone_are_mirrored() -> None:
    names = ["Hips", "LeftLeg", "RightLeg", "arm.L.001", "arm.R.001", "arm.L.002", "lHand", "rHand"]
    assert mirrored(names) == [(1, 2), (3, 4), (6, 7)]


@pytest.mark.parametrize("degrees", [33, 261, *(pytest.param(d, marks=pytest.mark.slow) for d in (0, 45, 90, 170))])
def test_the_mirror_plane_turns_along(degrees: float) -> None:
    shape = gallery.creature(900).base
    R = turn([0, 1, 0], degrees)
    plane = mirror_planes(surface_samples(shape), Y)[0]
    other = mirror_planes(surface_samples(moved(shape, R)), Y)[0]
    assert abs(plane.normal @ [1, 0, 0]) > 0.999
    assert abs(other.normal @ R @ plane.normal) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "legs", "there"),
    [
        ("creature", 2, {"left leg", "right leg", "left arm", "right arm", "head", "tail"}),
        ("animal", 4, {"hind left leg", "hind right leg", "fore left leg", "fore right leg", "head", "tail"}),
        pytest.param("dinosaur", 2, {"left leg", "right leg", "head", "tail"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("R", [np.eye(3), Z_UP @ turn([0, 1, 0], 130)], ids=["upright", "turned, Z up"])
def test_shapes_face_forward_and_have_their_limbs(
    bodies: dict[str, OrientedBody], name: str, legs: int, there: set, R
) -> None:
    """Found alike for a turned shape that stands along z, which nothing says."""
    shape = getattr(gallery, name)(900).base
    upright = np.array_equal(R, np.eye(3))
    body = bodies[name] if upright and name in bodies else shape_body(moved(shape, R, 7.0))
    np.testing.assert_allclose(body.frame @ R, np.eye(3), atol=0.02)
    assert body.anatomy.legs == legs
    assert there <= {body.anatomy.named(limb) for limb in body.anatomy.limbs}
    for limb in body.anatomy.limbs:
        middle = limb.path[len(limb.path) // 2 :].mean(axis=0) - body.tree.locations.mean(axis=0)
        assert limb.side == 0 or np.sign(middle @ body.frame[0]) == limb.side
    if name in bodies and not upright:
        np.testing.assert_allclose((body.tree.locations - 3.0) / 7.0 @ R, bodies[name].tree.locations, atol=1e-6)


@pytest.mark.parametrize("degrees", [45, 200])
def test_own_axes_turn_and_mirror_along(degrees: float) -> None:
    """Bit for bit the same points in them, but for rounding, also of a body that looks the same from both sides."""
    shape = gallery.gingerbread(900).base
    axes = own_axes(shape, np.eye(3))
    for R in (turn([0, 1, 0], degrees), np.diag([-1.0, 1.0, 1.0]), Z_UP):
        there = moved(shape, R, 5.0)
        found = own_axes(there, R.T * [[1], [-1], [1]])
        np.testing.assert_allclose(found @ (there.points - 3.0).T / 5.0, axes @ shape.points.T, atol=1e-12)


def test_quads_that_are_mirrored_are_seen_mirrored_wherever_they_start() -> None:
    """What bodies and cages are found from; cuts by the order of corners moved a transfer by 3 % of the diagonal."""
    shape, M = gallery.gingerbread(900).base, np.diag([-1.0, 1.0, 1.0])
    starts = np.random.default_rng(0).integers(4, size=len(shape.polygons))
    other = Mesh(shape.points @ M, [np.roll(face[::-1], k) for face, k in zip(shape.polygons, starts, strict=True)])
    np.testing.assert_array_equal(surface_samples(other), surface_samples(shape) @ M)
    one, two = (np.sort(Target.of(mesh).triangles, axis=1) for mesh in (shape, other))
    np.testing.assert_array_equal(one, two)


def test_a_limb_that_is_called_a_tail_is_one_however_short() -> None:
    bones = gallery.animal_gallop(4).skeleton
    short = [0.2 if name.startswith("tail") else 1.0 for name in bones.names]
    bones = Skeleton(bones.names, bones.parents, bones.offsets * np.array(short)[:, None])
    assert "tail" in {limb.role for limb in skeleton_body(bones).anatomy.limbs}


def test_vertex_groups_that_are_called_left_and_right_say_where_a_shape_faces() -> None:
    flat = gallery.gingerbread(900).base
    sides = {f"hand.{side}": (flat.points[:, 0] * sign > 0).astype(float) for side, sign in (("L", -1), ("R", 1))}
    body = shape_body(Mesh(flat.points, flat.polygons, vertex_groups=sides))
    assert body.frame[2] @ [0, 0, -1] > 0.9
    assert "names" in body.evidence
    assert body.certainty > 0.5


@pytest.mark.parametrize("R", [np.eye(3), turn([0, 1, 0], 77), Z_UP, Z_UP @ turn([0, 1, 0], 200)])
@pytest.mark.parametrize("make", [gallery.creature_walk, gallery.dinosaur_walk, gallery.animal_gallop])
def test_motions_stand_as_their_names_and_bones_say(make, R) -> None:
    motion = make(4)
    first, other = (moving_skeleton(m).body for m in (motion, moved_motion(motion, R, 0.01)))
    np.testing.assert_allclose(first.frame, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(other.frame, R.T, atol=1e-6)
    names = [[body.anatomy.named(limb) for limb in body.anatomy.limbs] for body in (first, other)]
    assert names[0] == names[1]
    assert first.anatomy.legs == (4 if make is gallery.animal_gallop else 2)


@pytest.mark.parametrize("degrees", [0, 45, 160])
def test_a_twisted_rest_does_not_turn_the_heading(walk: Motion, degrees: float) -> None:
    """Most pairs of joints agree, and outweigh hands that are held elsewhere, however the figure is turned."""
    bones, R = walk.skeleton, turn([0, 1, 0], degrees)
    offsets = bones.offsets.copy()
    hand = next(j for j, name in enumerate(bones.names) if part(name) == "arm" and side(name) > 0 and "hand" in name)
    offsets[hand] += [0, 0, 0.5 * np.linalg.norm(offsets[hand])]
    twisted = replace(walk, skeleton=replace(bones, offsets=offsets))
    frame = moving_skeleton(moved_motion(twisted, R)).body.frame
    np.testing.assert_allclose(frame @ R, np.eye(3), atol=1e-6)


def figure(forward: float, R: np.ndarray) -> Skeleton:
    """As captured: hip joints and shoulders lie in the middle; left limbs point forward by so much, right ones back."""
    joints = [
        ("hips", -1, (0, 1, 0)),
        ("spine", 0, (0, 0.25, 0)),
        ("chest", 1, (0, 0.25, 0)),
        ("head", 2, (0, 0.35, 0)),
    ]
    for s, name in ((1, "Left"), (-1, "Right")):
        first = len(joints)
        joints += [
            (f"{name}HipJoint", 0, (0, 0, 0)), (f"{name}UpLeg", first, (0.1 * s, -0.05, 0)),
            (f"{name}Leg", first + 1, (0, -0.45, 0)), (f"{name}Foot", first + 2, (0, -0.4, forward * s)),
            (f"{name}Toe", first + 3, (0, -0.05, 0.15)), (f"{name}Shoulder", 2, (0, 0, 0)),
            (f"{name}Arm", first + 5, (0.15 * s, 0, 0)), (f"{name}ForeArm", first + 6, (0.3 * s, 0, forward * s)),
            (f"{name}Hand", first + 7, (0.25 * s, 0, 0)),
        ]  # fmt: skip
    names, parents, offsets = zip(*joints, strict=True)
    return Skeleton(names, np.array(parents), np.array(offsets) @ R.T)


@pytest.mark.parametrize("forward", [0.0, 0.02, 0.05, 0.1, 0.15, 0.2])
def test_hips_and_shoulders_say_where_a_captured_figure_faces(forward: float) -> None:
    np.testing.assert_allclose(skeleton_body(figure(forward, np.eye(3))).frame, np.eye(3), atol=1e-6)


def test_skeletons_in_any_orientation_have_an_upright_axis() -> None:
    rng = np.random.default_rng(4)
    for R in (rotations.matrix(q / np.linalg.norm(q)) for q in rng.normal(size=(12, 4))):
        motion = Motion.of(figure(rng.uniform(0, 0.2), R))
        assert upright_axis(motion) in ("y", "z")
    with pytest.raises(InputError, match="which axis is up"):
        skeleton_body(figure(0.0, np.eye(3)), up="x")


def test_a_mirrored_motion_has_left_and_right_swapped(walk: Motion) -> None:
    """Its names lie: toes and tail show where the front is."""
    body = moving_skeleton(moved_motion(walk, np.diag([-1.0, 1.0, 1.0]))).body
    np.testing.assert_allclose(body.frame, np.eye(3), atol=1e-9)
    assert "left and right are swapped in its names" in body.evidence


def test_a_rest_that_stands_otherwise_than_the_motion(walk: Motion) -> None:
    """Offsets along y, and frames whose roots turn the figure upright along z, as some exporters write."""
    turned = moved_motion(walk, Z_UP)
    mixed = replace(turned, skeleton=walk.skeleton)
    mixed = replace(
        mixed, translations=np.tile(turned.translations, (2, 1, 1)), rotations=np.tile(turned.rotations, (2, 1, 1))
    )
    found = moving_skeleton(mixed)
    np.testing.assert_allclose(found.body.frame, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(found.world, Z_UP.T, atol=1e-9)


def test_a_leading_reference_pose_is_not_part_of_the_motion(walk: Motion) -> None:
    still = walk.skeleton.rest_rotations[None], walk.skeleton.offsets[None]
    slow = walk.resampled(walk.fps * 8)
    turns = slow.rotations.copy()
    arm = walk.skeleton.index("upperarm.L")
    turns[:, arm] = rotations.multiply(turns[:, arm], rotations.from_axis_angle([0, 0, 1], np.full(len(slow), 1.2)))
    with_pose = replace(
        slow, rotations=np.concatenate([still[0], turns]), translations=np.concatenate([still[1], slow.translations])
    )
    with pytest.warns(PliantWarning, match="first frame is a reference pose"):
        found = without_reference_pose(with_pose)
    np.testing.assert_array_equal(found.rotations[0], found.rotations[1])
    assert without_reference_pose(slow) is slow


def test_limbs_are_matched_by_what_they_are(walk: Motion, bodies: dict[str, OrientedBody]) -> None:
    source = moving_skeleton(walk).body
    match = match_limbs(source, bodies["creature"])
    named = {source.anatomy.named(a): bodies["creature"].anatomy.named(b) for a, b in match.pairs}
    assert all(one == other for one, other in named.items())
    assert {"left leg", "right leg", "left arm", "right arm", "tail"} <= set(named)
    assert match.confidence > 0.5
    check_match(match, source, bodies["creature"])


def test_two_legs_onto_four_are_refused_unless_told(walk: Motion, bodies: dict[str, OrientedBody]) -> None:
    source, target = moving_skeleton(walk).body, bodies["animal"]
    with pytest.raises(InputError, match=r"source stands on 2 legs, the target on 4 legs; give --map.*facing z"):
        check_match(match_limbs(source, target), source, target)
    told = match_limbs(source, target, "order")
    named = {source.anatomy.named(a): target.anatomy.named(b) for a, b in told.pairs}
    assert named["left leg"] == "hind left leg"
    assert named["right arm"] == "fore right leg"
    one = match_limbs(source, target, "left arm=fore left leg, right arm=fore right leg")
    assert [target.anatomy.named(b) for _, b in one.pairs] == ["fore left leg", "fore right leg"]
    assert "left leg" in one.dropped
    check_match(one, source, target)
    with pytest.raises(InputError, match=r'target has no limb "wing"; it has hind left leg'):
        match_limbs(source, target, "left arm=wing")
    with pytest.raises(InputError, match=r'map says "odd"; expected "order", or'):
        match_limbs(source, target, "odd")


def test_a_figure_whose_front_is_not_seen_is_refused_unless_told(bodies: dict[str, OrientedBody]) -> None:
    source, target = bodies["creature"], replace(bodies["creature"], certainty=0.0)
    with pytest.raises(InputError, match="front and back of the target are not known; set --heading"):
        check_match(match_limbs(source, target), source, target)
    check_match(match_limbs(source, replace(target, alike=True)), source, target)


def test_a_trunk_from_side_to_side_is_none(walk: Motion, bodies: dict[str, OrientedBody]) -> None:
    """As where wings that hang down are taken for legs: then left and right ones leave it at its two ends."""
    body, source = bodies["creature"], moving_skeleton(walk).body
    assert body.parted == source.parted == ""
    tip = next(limb.nodes[-1] for limb in body.anatomy.limbs if limb.role == "leg")
    limbs = [
        replace(limb, nodes=(tip, *limb.nodes[1:])) if (limb.role, limb.side) == ("arm", 1) else limb
        for limb in body.anatomy.limbs
    ]
    wrong = replace(body, anatomy=replace(body.anatomy, limbs=tuple(limbs)))
    assert wrong.parted == "arm"
    with pytest.raises(InputError, match=r"arms of the target leave it far from each other.*give --map"):
        check_match(match_limbs(source, wrong), source, wrong)


def test_limbs_of_other_lengths_are_no_pair_of_legs(walk: Motion, bodies: dict[str, OrientedBody]) -> None:
    body = bodies["creature"]
    shorter = [
        replace(limb, path=limb.path[: len(limb.path) // 2]) if (limb.role, limb.side) == ("leg", 1) else limb
        for limb in body.anatomy.limbs
    ]
    target = replace(body, anatomy=replace(body.anatomy, limbs=tuple(shorter)))
    source = moving_skeleton(walk).body
    with pytest.raises(InputError, match=r"one leg of the target is 2\.\d times as long as the other, if they are"):
        check_match(match_limbs(source, target), source, target)
    with pytest.raises(InputError, match=r"if they are legs; map them \(source"):
        check_match(match_limbs(source, target), source, target, "map them")
    doubts = "; ".join(match_limbs(source, target).doubts)
    (spelled,) = re.findall('give --map, such as "(.*)" if that is right', doubts)
    told = match_limbs(source, target, spelled)
    check_match(told, source, target)
    assert told.pairs == match_limbs(source, target).pairs


def results(source, target: Shape, **options) -> np.ndarray:
    return pliant.transfer(source, target, "auto", "auto", frames=2, lattice=20, faces=300, **options).clip.points


@pytest.fixture(scope="module")
def walked(walk: Motion) -> tuple[Mesh, np.ndarray]:
    target = gallery.creature(900).base
    return target, results(walk, target)


@pytest.mark.parametrize(
    "R",
    [
        pytest.param(turn([0, 1, 0], 45), id="turned", marks=pytest.mark.slow),
        pytest.param(Z_UP @ turn([0, 1, 0], 250), id="turned, Z up", marks=pytest.mark.slow),
    ],
)
def test_a_turned_target_moves_as_the_target_does_turned(walk: Motion, walked, R) -> None:
    target, wanted = walked
    found = (results(walk, moved(target, R, 5.0)) - 3.0) / 5.0 @ R
    away = np.linalg.norm(found - wanted, axis=2) / target.diagonal
    assert away.mean() < 0.005
    assert away.max() < 0.01


def test_a_turned_source_moves_the_target_alike(walk: Motion, walked) -> None:
    target, wanted = walked
    found = results(moved_motion(walk, Z_UP @ turn([0, 1, 0], 100), 0.01), target)
    assert np.abs(found - wanted).max() < 1e-3 * target.diagonal


def test_source_and_target_mirrored_give_the_mirrored_result(walk: Motion, walked) -> None:
    target, wanted = walked
    M = np.diag([-1.0, 1.0, 1.0])
    mirrored_target = Mesh(target.points @ M, [face[::-1] for face in target.polygons])
    found = results(moved_motion(walk, M), mirrored_target) @ M
    assert np.linalg.norm(found - wanted, axis=2).max() < 1e-3 * target.diagonal


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [45, 90, 135, 180, 225, 270, 315])
def test_a_sequence_of_an_animal_onto_another_at_every_heading(degrees: float) -> None:
    gait, R = gallery.animal_gait(900), turn([0, 1, 0], degrees)
    target = gallery.animal(1000).base
    target = target.with_points(target.points * [1.2, 0.9, 1.1])
    wanted, found = results(gait, target), (results(gait, moved(target, R)) - 3.0) @ R
    assert np.linalg.norm(found - wanted, axis=2).max() < 0.01 * target.diagonal


FIGURES = {
    "models/knight/knight.ply": [0, 0, 1], "models/rigged/CesiumMan.glb": [0, 0, 1], "cages/ogre/Ogre.obj": [0, 0, 1],
    "models/armadillo/arma2.obj": [0, 0, 1], "models/rigged/RobotExpressive.glb": [0, 0, 1],
    "models/elephant/elephant.obj": [0, 0, 1], "models/rigged/Alpaca.glb": [0, 0, 1],
    "models/rigged/Bull.glb": [0, 0, 1], "models/rigged/Husky.glb": [0, 0, 1], "models/rigged/Stag.glb": [0, 0, 1],
    "models/rigged/Frog.glb": [0, 0, 1], "models/fox/Fox.glb": [0, 0, 1], "poses/cat/cat-ref.obj": [0, 0, 1],
    "poses/horse/horse-ref.obj": [0, 0, 1], "cages/horse/Horse_2.obj": [-1, 0, 0],
    "poses/camel-dino/camel.obj": [0, 0, -1], "models/dino/Trex.glb": [0, 0, 1],
}  # fmt: skip
"""Where each faces."""


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_real_figures_face_where_they_do(data: Path, name: str) -> None:
    content = pliant.read(data / name)
    shape = getattr(content, "shape", content)
    body = shape_body(shape)
    assert body.frame[1] @ Y > 0.99
    assert body.frame[2] @ FIGURES[name] > 0.95
    assert body.anatomy.legs in (2, 4)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the source's first frame is a reference pose")
def test_a_captured_walk_onto_a_turned_cloud(data: Path) -> None:
    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    cloud = PointCloud(pliant.read_mesh(data / "models/armadillo/arma2.obj").points)
    R = turn([0, 1, 0], 90)
    wanted, found = results(walk, cloud), (results(walk, moved(cloud, R)) - 3.0) @ R
    assert np.linalg.norm(found - wanted, axis=2).mean() < 0.01 * cloud.diagonal


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the source's first frame is a reference pose")
@pytest.mark.parametrize(
    "name", ["models/octopus/octopus-low.mesh", "models/rigged/Spider.glb", "cages/clothing/clothing.obj"]
)
def test_a_captured_walk_onto_what_does_not_walk_on_two_legs_is_refused(data: Path, name: str) -> None:
    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    content = pliant.read(data / name)
    with pytest.raises(InputError, match=r"the target (stands|on|has) "):
        results(walk, getattr(content, "shape", content))


# Rigs


def test_a_rig_with_handles_has_the_limbs_of_its_body() -> None:
    """Feet that hang on the root, where handles move them, belong to their shins; pole targets are left out."""
    names, parents = ["Root", "Hips", "Spine", "Head"], [-1, 0, 1, 2]
    places = [[0.0, 0.0, 0.0], [0, 1, 0], [0, 1.4, 0], [0, 1.7, 0.1]]
    leg = {"UpperLeg": [0.1, 0.95, 0], "LowerLeg": [0.1, 0.5, 0.02], "Foot": [0.1, 0.08, 0], "PoleTarget": [1, 0.5, 2]}
    arm = {"UpperArm": [0.2, 1.35, 0], "LowerArm": [0.5, 1.35, 0]}
    for mark, side_sign in (("L", 1), ("R", -1)):
        start = len(names)
        names += [f"{part}.{mark}" for part in (*leg, *arm)]
        parents += [1, start, 0, 0, 2, start + 4]
        places += [[side_sign * x, y, z] for x, y, z in (*leg.values(), *arm.values())]
    body = skeleton_body(Skeleton.from_positions(np.array(places), parents, names))
    np.testing.assert_allclose(body.frame, np.eye(3), atol=0.02)
    assert body.anatomy.legs == 2
    legs = [[body.tree.names[node] for node in limb.nodes] for limb in body.anatomy.limbs if limb.role == "leg"]
    assert legs[0][1:] == ["UpperLeg.L", "LowerLeg.L", "Foot.L"]
    assert not any("Pole" in name for name in body.tree.names)


# Joints


def test_knees_are_where_legs_bend_and_where_they_are_expected_if_legs_are_straight() -> None:
    straight = np.linspace([0, 1.0, 0], [0, 0, 0], 30)
    assert divided(straight, 0.1, (0.45, 0.88)) == pytest.approx([0, 0.45, 0.88, 1], abs=0.03)
    bent = np.concatenate([np.linspace([0, 1.0, 0], [0, 0.6, 0.3], 15), np.linspace([0, 0.6, 0.3], [0, 0, 0], 20)[1:]])
    knee = divided(bent, 0.1, (0.5,))[1]
    assert knee == pytest.approx(0.5 / (0.5 + np.hypot(0.6, 0.3)), abs=0.03)


def test_joints_of_a_shape_have_telling_names(bodies: dict[str, OrientedBody]) -> None:
    skeleton, body = jointed(bodies["animal"])
    for order in ("hind", "front"):
        for which in ("left", "right"):
            assert {f"leg.{order}.{which}.{name}" for name in ("hip", "knee", "ankle")} <= set(skeleton.names)
    assert skeleton.names[0] == "hips"
    again = skeleton_body(skeleton)
    np.testing.assert_allclose(again.frame, body.frame, atol=0.05)
    assert again.anatomy.legs == 4


# Feet on the ground


def test_chains_reach_their_goals_and_keep_their_lengths() -> None:
    rng = np.random.default_rng(0)
    chain = np.cumsum(np.concatenate([np.zeros((50, 1, 3)), rng.normal(size=(50, 3, 3))], axis=1), axis=1)
    lengths = np.linalg.norm(np.diff(chain, axis=1), axis=2)
    goal = chain[:, 0] + 0.6 * lengths.sum(axis=1)[:, None] * rotations.rotate(
        rotations.normalize(rng.normal(size=(50, 4))), [1.0, 0, 0]
    )
    found = fabrik(chain, goal, np.tile([0.0, 0, 1.0], (50, 1)))
    np.testing.assert_allclose(found[:, 0], chain[:, 0])
    np.testing.assert_allclose(np.linalg.norm(np.diff(found, axis=1), axis=2), lengths, rtol=1e-9)
    reachable = 2 * lengths.max(axis=1) <= lengths.sum(axis=1) + 0.6 * lengths.sum(axis=1)
    assert np.linalg.norm(found[reachable, -1] - goal[reachable], axis=1).max() < 0.02 * lengths.sum(axis=1).max()
    stretched = np.tile(np.linspace([0, 0, 0], [0, -1.0, 0], 3), (1, 1, 1))
    bent = fabrik(stretched, np.array([[0, -0.8, 0.0]]), np.array([[0, 0, 1.0]]))[0]
    np.testing.assert_allclose(bent[-1], [0, -0.8, 0], atol=1e-3)
    assert bent[1, 2] > 0.2  # the knee goes where the pole is


@pytest.fixture(scope="module")
def stride() -> Motion:
    """A walk that goes on: in each frame, the lower of the feet stays where it is."""
    walk = gallery.creature_walk()
    feet = walk.world()[0][:, [walk.skeleton.index(f"foot.{side}") for side in "LR"]]
    lower = np.argmin(feet[..., 1], axis=1)[:-1]
    steps = np.diff(feet, axis=0)[np.arange(len(lower)), lower] * [1, 0, 1]
    translations = walk.translations.copy()
    translations[1:, 0] -= np.cumsum(steps, axis=0)
    return replace(walk, translations=translations)


@pytest.mark.parametrize("name", [pytest.param("creature", marks=pytest.mark.slow), "gingerbread"])
def test_ankles_are_above_the_rear_of_feet(name: str) -> None:
    """Not among the toes, about which a foot would tip."""
    shape = getattr(gallery, name)(1200).base
    _, body = body_skeleton(shape)
    for limb in (limb for limb in body.anatomy.limbs if limb.role == "leg"):
        ankle = body.tree.locations[limb.nodes[-2]]
        low = shape.points[(shape.points @ body.frame[1] < ankle @ body.frame[1])]
        foot = low[(low - ankle) @ body.frame[0] * limb.side > -0.1 * body.size] @ body.frame[2]
        assert (ankle @ body.frame[2] - foot.min()) / np.ptp(foot) < 0.55


@pytest.mark.parametrize("angle", [-0.15, 0.1])
def test_feet_are_level_where_the_sources_stand(stride: Motion, angle: float) -> None:
    """In the mean, whatever pose the source's feet rest in."""
    rest, feet = stride.skeleton.rest_rotations.copy(), [stride.skeleton.index(f"foot.{side}") for side in "LR"]
    rest[feet] = rotations.multiply(rest[feet], rotations.from_axis_angle([1.0, 0, 0], angle))
    aslant = replace(stride, skeleton=replace(stride.skeleton, rest_rotations=rest))
    found = onto_shape(moving_skeleton(aslant), gallery.creature(900).base, Hints())
    turns = rotations.multiply(found.motion.world()[1], rotations.inverse(found.skeleton.rest_world[1]))
    assert len(found.follower.legs) == 2
    for mine, theirs in found.follower.legs:
        standing = found.contacts.planted[mine.end_node] & found.contacts.planted[mine.nodes[-1]]
        assert standing.sum() > 5
        foot = turns[standing, int(found.target.tree.joints[theirs.end_node])]
        np.testing.assert_allclose(rotations.rotate(rotations.inverse(foot), Y).mean(axis=0)[[0, 2]], 0, atol=0.01)


def test_planted_feet_stay_and_nothing_sinks(stride: Motion) -> None:
    """On a body longer than the source's, feet slide by less than 1 % of its height, and none is below the floor.

    The source's feet turn about their ankles: the target's about the points of their soles below them.
    """
    target = gallery.creature(900).base
    longer = target.with_points(target.points * [1.0, 1.0, 1.2])
    found = onto_shape(moving_skeleton(stride), longer, Hints())
    places, turns = found.motion.world()
    rest, rest_turns = found.skeleton.rest_world
    positions = places[:, found.target.tree.joints]
    height = np.ptp(longer.points @ found.target.frame[1])
    planted, slides = 0, []
    for mine, theirs in found.follower.legs:
        for first, last in runs(found.contacts.planted[mine.end_node] & found.contacts.planted[mine.nodes[-1]]):
            foot = int(found.target.tree.joints[theirs.end_node])
            turn = rotations.multiply(turns[first : last + 1, foot], rotations.inverse(rest_turns[foot]))
            path = places[first : last + 1, foot] - rotations.rotate(turn, (rest[foot] @ Y - found.target.ground) * Y)
            planted += last - first + 1
            slides.append(np.linalg.norm(np.ptp(path - (path @ Y)[:, None] * Y, axis=0)) / height)
    assert planted > 10
    assert max(slides) < 0.01
    assert (positions @ Y).min() > found.target.ground - 0.005 * height


def test_feet_of_stumps_stay_where_they_stand(stride: Motion) -> None:
    """Legs without knees reach one place alone: the body goes along."""
    names = ("hips", "chest", "head", "leg.L", "foot.L", "leg.R", "foot.R", "arm.L", "hand.L", "arm.R", "hand.R")
    offsets = [[0, 0.3, 0], [0, 0.3, 0], [0, 0.3, 0], [0.1, 0, 0], [0, -0.3, 0], [-0.1, 0, 0], [0, -0.3, 0]]
    offsets += [[0.15, 0, 0], [0.2, 0, 0], [-0.15, 0, 0], [-0.2, 0, 0]]
    stumps = Skeleton(names, [-1, 0, 1, 0, 3, 0, 5, 1, 7, 1, 9], np.array(offsets))
    found = onto_skeleton(moving_skeleton(stride), stumps, None, Hints())
    grounded_motion = grounded(found.follower)
    slides = []
    for mine, theirs in found.follower.legs:
        assert (len(theirs.nodes), theirs.end) == (2, 1)
        for first, last in runs(found.contacts.planted[mine.end_node] & found.contacts.planted[mine.nodes[-1]]):
            path = grounded_motion.positions[first : last + 1, theirs.end_node]
            slides.append(np.linalg.norm(np.ptp(path[:, [0, 2]], axis=0)) / 0.9)
    assert len(slides) > 1
    assert max(slides) < 0.01


def test_feet_do_not_turn_while_both_their_ends_stand(stride: Motion) -> None:
    """Long feet would slide where the source's turn a little."""
    found = onto_shape(moving_skeleton(stride), gallery.creature(900).base, Hints())
    planted, mine = found.contacts.planted, [mine for mine, _ in found.follower.legs]
    standing = [planted[chain.end_node] & planted[chain.nodes[-1]] for chain in mine]
    turns, wobbling = found.follower.rotations(), found.follower.rotations().copy()
    angle = 0.1 * np.sin(np.arange(len(turns)))
    feet = [theirs.end_node for _, theirs in found.follower.legs]
    for foot in feet:
        wobbling[:, foot] = rotations.multiply(rotations.from_axis_angle([0, 1.0, 0], angle), turns[:, foot])
    steady = with_level_feet(found.follower, found.contacts, wobbling)
    for foot, stands in zip(feet, standing, strict=True):
        for first, last in runs(stands):
            own = steady[first : last + 1, foot]
            assert last > first
            assert np.abs(rotations.matrix(own) - rotations.matrix(own[0])).max() < 1e-9


def test_feet_that_stand_are_low(stride: Motion) -> None:
    source = moving_skeleton(stride)
    chains = [chain_of(source.body, limb) for limb in source.body.anatomy.limbs]
    found = find_contacts(source, chains)
    for chain in chains:
        if chain.role == "leg":
            planted = found.planted[chain.nodes[-1]]
            heights = source.positions[:, chain.nodes[-1]] @ Y - found.floor
            assert 0 < planted.sum() < len(planted)
            assert heights[planted].max() < 0.1 * chain.length


def test_a_leg_that_is_lifted_at_rest_stands_as_high_as_its_partner(walk: Motion) -> None:
    body = moving_skeleton(walk).body
    left, right = (next(k for k in body.anatomy.limbs if (k.role, k.side) == ("leg", side)) for side in (1, -1))
    lifted = body.tree.locations.copy()
    lifted[list(left.nodes[1:])] += 0.2 * left.length * Y
    anatomy = replace(body.anatomy, limbs=tuple(replace(k, path=lifted[list(k.nodes)]) for k in body.anatomy.limbs))
    other = replace(body, tree=replace(body.tree, locations=lifted), anatomy=anatomy)
    for limb in (left, right):
        chain = chain_of(body, limb)
        for node in (chain.end_node, chain.nodes[-1]):
            assert standing_height(other, chain, node) == pytest.approx(standing_height(body, chain, node))


def test_a_sequence_is_followed_by_the_skeleton_of_its_plan() -> None:
    """Bones keep their lengths, about, while the animal walks."""
    moving = moving_shape(gallery.animal_gait(900, frames=4))
    tree = moving.body.tree
    bones = np.flatnonzero(tree.parents >= 0)
    above = tree.parents[bones]
    rest = np.linalg.norm(tree.locations[bones] - tree.locations[above], axis=1)
    lengths = np.linalg.norm(moving.positions[:, bones] - moving.positions[:, above], axis=2)
    assert np.median(np.abs(lengths / rest - 1)) < 0.05


def test_a_motion_goes_onto_a_skeleton_of_other_names_by_its_limbs(walk: Motion) -> None:
    """Legs point where the source's point, at another size and heading and along another upright axis."""
    R = Z_UP @ turn([0, 1, 0], 70)
    bones = moved_motion(walk, R, 3.0).skeleton
    other = replace(bones, names=tuple(f"{name}." for name in bones.names))
    found = onto_skeleton(moving_skeleton(walk), other, None, Hints())
    positions = found.motion.world()[0]
    for mine, theirs in found.follower.legs:
        thigh = (found.source.positions[:, mine.nodes[1]] - found.source.positions[:, mine.nodes[0]]) @ R.T
        start, end = found.target.tree.joints[list(theirs.nodes[:2])]
        moved_thigh = positions[:, end] - positions[:, start]
        cosine = (thigh * moved_thigh).sum(axis=1)
        cosine /= np.linalg.norm(thigh, axis=1) * np.linalg.norm(moved_thigh, axis=1)
        assert cosine.min() > np.cos(np.radians(8))


def test_a_skeleton_that_is_found_follows_limbs_and_the_names_that_are_given(
    walk: Motion, bodies: dict[str, OrientedBody]
) -> None:
    """Of a motion that goes along z, and with one joint of the map changed."""
    skeleton, body = jointed(bodies["creature"])
    upright, other = (
        retargeted(motion, skeleton, body=body) for motion in (walk, moved_motion(walk, Z_UP @ turn([0, 1, 0], 40)))
    )
    assert upright.names["leg.left.knee"] == "shin.L"
    assert upright.names == other.names
    positions = [found.motion.world()[0] for found in (upright, other)]
    np.testing.assert_allclose(positions[0], positions[1], atol=1e-3 * bodies["creature"].size)
    changed = retargeted(moved_motion(walk, Z_UP), skeleton, {"arm.left.elbow": "hand.L"}, body=body)
    assert changed.names == upright.names | {"arm.left.elbow": "hand.L"}
    head = changed.motion.world()[0][:, skeleton.index("head")]
    assert (head @ Y).min() > 0.5 * np.ptp(skeleton.rest_world[0] @ Y)  # it stands


def test_a_shape_that_stands_on_no_legs_has_no_plan() -> None:
    assert body_skeleton(gallery.bar(500).base) is None


def test_thick_limbs_are_kept_off_each_other_and_slender_ones_stay(
    walk: Motion, bodies: dict[str, OrientedBody]
) -> None:
    body = jointed(bodies["creature"])[1]
    source = moving_skeleton(walk)
    match = match_limbs(source.body, body)
    follower = Follower.of(source, body, match)
    tree = body.tree
    bones = np.flatnonzero(tree.parents >= 0)
    middle = (tree.locations[bones] + tree.locations[tree.parents[bones]]) / 2

    def around(width: float | np.ndarray) -> np.ndarray:
        return np.concatenate([middle + width * body.size * side for side in (*np.eye(3), *-np.eye(3))])

    beside = around(0.12)
    thick, thin = (with_clearance(follower, match, points) for points in (beside, middle))
    angles = [with_clearance(follower, match, around(width)).splay[0] for width in np.linspace(0.09, 0.12, 4)]
    assert np.ptp(angles) > np.radians(1)
    assert np.abs(np.diff(angles)).max() < np.radians(2)  # not in steps
    swapped = replace(match, pairs=match.pairs[::-1])
    other = with_clearance(Follower.of(source, body, swapped), swapped, beside)
    for k, angle in other.splay.items():
        assert angle == pytest.approx(thick.splay[len(match.pairs) - 1 - k], abs=1e-3)
    legs, arms = ([k for k, (_, limb) in enumerate(match.pairs) if limb.role == role] for role in ("leg", "arm"))
    assert not any(thin.splay.values())
    assert len(body.anatomy.spine) == 1  # the trunk is between hips and shoulders all the same
    hips = np.isin(bones, [follower.pairs[k][1].nodes[0] for k in legs])
    stout = with_clearance(follower, match, around(np.where(hips, 0.12, 0.03)[:, None]))
    assert all(match.pairs[k][1].side * stout.splay[k] > np.radians(1) for k in arms)
    for k in legs:
        side = match.pairs[k][1].side
        assert side * thick.splay[k] > 0
        knee = follower.pairs[k][1].nodes[1]
        out = [
            forward(body, f.rotations(), np.zeros((len(walk), 3)))[:, knee] @ body.frame[0] for f in (follower, thick)
        ]
        assert (side * (out[1] - out[0])).mean() > 0


def test_joints_of_pairs_are_mirrored_unless_they_rest_in_other_poses(bodies: dict[str, OrientedBody]) -> None:
    body = bodies["creature"]
    leg = next(limb for limb in body.anatomy.limbs if limb.role == "leg" and limb.side == 1)
    noise = 0.01 * leg.length * np.random.default_rng(0).standard_normal((len(leg.path), 3))
    lifted = leg.path[0] + (leg.path - leg.path[0]) @ turn([1, 0, 0], 30).T
    errors = []
    for path in (leg.path + noise, lifted):
        limbs = tuple(replace(limb, path=path) if limb is leg else limb for limb in body.anatomy.limbs)
        skeleton, _ = jointed(replace(body, anatomy=replace(body.anatomy, limbs=limbs)))
        places = skeleton.rest_world[0]
        both = [(i, j) for i, j in mirrored(skeleton.names) if "leg" in skeleton.names[i]]
        pairs = np.array([(places[i], places[j]) for i, j in both]) @ body.frame.T
        pairs[:, :, 0] -= np.median(pairs[:, :, 0].mean(axis=1))
        errors.append(np.abs(pairs[:, 0] - pairs[:, 1] * [-1, 1, 1]).max() / leg.length)
    assert errors[0] < 1e-6
    assert errors[1] > 0.1


@pytest.mark.parametrize("name", ["creature", "animal"])
def test_joints_turn_along_with_a_body(bodies: dict[str, OrientedBody], name: str) -> None:
    body, samples = bodies[name], surface_samples(getattr(gallery, name)(900).base, 4000)
    for degrees in (30, 45, 130):
        R = turn([0, 1, 0], degrees)
        limbs = tuple(replace(limb, path=limb.path @ R.T) for limb in body.anatomy.limbs)
        other = replace(
            body,
            frame=body.frame @ R.T,
            tree=replace(body.tree, locations=body.tree.locations @ R.T),
            anatomy=replace(body.anatomy, limbs=limbs, direction=body.anatomy.direction @ R.T),
        )
        found, wanted = (
            jointed(*given)[0].rest_world[0] for given in ((other, None, samples @ R.T), (body, None, samples))
        )
        np.testing.assert_allclose(found, wanted @ R.T, atol=1e-9 * body.size)


def test_a_limb_that_is_hardly_longer_than_wide_has_one_bone(bodies: dict[str, OrientedBody]) -> None:
    body = bodies["creature"]
    stout = replace(body, tree=replace(body.tree, widths=6 * body.tree.widths))
    for limb in body.anatomy.limbs:
        if limb.role in ("leg", "arm"):
            assert bone_count(body, limb) >= 2
            assert bone_count(stout, limb) == 1
    names = jointed(stout)[0].names
    assert "leg.left.hip" in names
    assert "leg.left.knee" not in names


@pytest.mark.data
@pytest.mark.slow
def test_a_captured_run_on_a_stout_figure_is_not_crumpled(data: Path) -> None:
    run = pliant.read_motion(data / "mocap/cmu/09_01.bvh").at(np.linspace(1, 148, 10))
    moved = pliant.transfer(run, pliant.read_mesh(data / "models/elephant/elephant.obj"), "auto", "auto", lattice=40)
    assert moved.judgement.problems == ()
    assert moved.judgement.volume.min() > 0.95


@pytest.mark.parametrize("limbs", ["tail=left arm, left leg=left leg, right leg=right leg", "tail=left leg, head=head"])
def test_any_limb_may_follow_any_other(walk: Motion, limbs: str) -> None:
    """What has no feet stands on nothing."""
    other = replace(walk.skeleton, names=tuple(f"{name}." for name in walk.skeleton.names))
    found = onto_skeleton(moving_skeleton(walk), other, None, Hints(map=limbs))
    assert np.isfinite(found.motion.world()[0]).all()
    assert len(found.match.pairs) == limbs.count("=")


def test_a_rig_that_rests_in_a_stride_faces_across_the_middles_of_its_joints() -> None:
    """Its left legs are before its right ones, and the joints of its hips, too; the middles are in one plane."""
    places = {"hips": (0, 1, 0), "chest": (0, 1, 1), "head": (0.02, 1.4, 1.5), "tail": (0.1, 0.9, -0.6)}
    above = {"chest": "hips", "head": "chest", "tail": "hips"}
    for sign, name in ((1, ".L"), (-1, ".R")):
        for root, z, joints in (
            ("hips", 0.0, ("thigh", "shin", "foot")),
            ("chest", 1.0, ("upperarm", "forearm", "hand")),
        ):
            for joint, y, ahead in zip(joints, (0.9, 0.5, 0.0), (0.05, 0.1, 0.2), strict=True):
                places[joint + name], above[joint + name] = (0.2 * sign, y, z + sign * ahead), root
                root = joint + name
    names = list(places)
    parents = [names.index(above[name]) if name in above else -1 for name in names]
    for R in (np.eye(3), turn([0, 1, 0], 33)):
        at = np.array([places[name] for name in names]) @ R.T
        offsets = at - np.where(np.array(parents)[:, None] < 0, 0.0, at[parents])
        frame = skeleton_body(Skeleton(tuple(names), np.array(parents), offsets), up="y").frame
        np.testing.assert_allclose(frame[0], R[:, 0], atol=1e-6)


@pytest.mark.parametrize(("width", "plane"), [(0.03, True), (0.012, False)])
@pytest.mark.parametrize("times", [1, 4, 30])
def test_middles_lie_in_a_plane_however_many_joints_are_named(width: float, plane: bool, times: int) -> None:
    """A spine of length 1 that is bent by so much, in the root mean square; each pair named several times."""
    middles = np.stack([np.zeros(4), [0.0, 1, 1, 0], [width, width, -width, -width]], axis=1)
    across = across_middles(middles.repeat(times, axis=0), 1.0)
    assert (across is not None) == plane
    assert across is None or abs(across[0]) == pytest.approx(1)


def test_faces_that_only_help_are_no_part_of_a_body(bodies: dict[str, OrientedBody]) -> None:
    """A skirt around the legs, of a group that is called a helper: limbs are those without it."""
    creature = gallery.creature(900).base
    count = len(creature.points)
    skirt = box_mesh(60, np.ptp(creature.points, axis=0) * [1, 0.5, 1], 0.0)
    points = np.concatenate([creature.points, skirt.points - skirt.points.min(axis=0) + creature.points.min(axis=0)])
    faces = np.concatenate([creature.triangles, skirt.triangles + count])
    group = Labels(("body", "helper-skirt"), (np.arange(len(faces)) >= len(creature.triangles)).astype(int))
    plain = Mesh(creature.points, creature.triangles)
    dressed = Mesh(points, faces, labels={"group": group})
    found, expected = shape_body(dressed), shape_body(plain)
    assert [limb.key for limb in found.anatomy.limbs] == [limb.key for limb in expected.anatomy.limbs]
    np.testing.assert_allclose(found.frame, expected.frame, atol=1e-9)


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        (("body", "helper-skirt", "joint-head"), 1),
        (("Torso", "Joint_legs", "joint"), 3),
        (("body", "joint-legs", "helpers"), 3),
        (("Helper", "HelperLegs", "body"), 3),
    ],
)
def test_only_groups_that_are_called_as_makehumans_help(groups: tuple[str, ...], left: int) -> None:
    box = box_mesh(60, np.ones(3), 0.0)
    labels = Labels(groups, np.arange(len(box.triangles)) % 3)
    kept = without_helpers(Mesh(box.points, box.triangles, labels={"group": labels}))
    assert len(kept.triangles) == (labels.index < left).sum()


@pytest.mark.data
def test_a_figure_with_big_ears_and_stout_limbs_has_legs_and_arms(data: Path) -> None:
    body = shape_body(pliant.read_mesh(data / "models/cheburashka/cheburashka.off"))
    assert body.uneven is None
    assert {limb.key[:2] for limb in body.anatomy.limbs} >= {("leg", 1), ("leg", -1), ("arm", 1), ("arm", -1)}
    heights = {limb.role: float(limb.path[-1] @ body.frame[1]) for limb in body.anatomy.limbs}
    assert heights["leg"] < heights["arm"] < heights["head"] - 0.2 * body.size  # not the ears


@pytest.mark.data
def test_thighs_of_animals_are_thighs_in_every_rig(data: Path) -> None:
    """Short ones were taken for what joins a leg to the trunk, and shins followed thighs."""
    rig = data / "models/rigged/Husky.glb"
    stag = pliant.read_motion(data / "models/rigged/Stag.glb")
    moved = pliant.transfer_to_rig(stag, pliant.read_mesh(rig), pliant.read_skeleton(rig), frames=[0, 8])
    assert max(moved.judgement.limbs.values()) < 10
    assert max(moved.judgement.floating.values()) < 0.01


@pytest.mark.data
def test_legs_of_a_shape_follow_what_is_seen_of_an_animals(data: Path) -> None:
    """The hip of a skeleton is inside the trunk; where a shape's leg leaves its trunk, it is at the knee."""
    fox = moving_skeleton(pliant.read_motion(data / "models/fox/Fox.glb", clip="Walk"))
    found = onto_shape(fox, pliant.read_mesh(data / "models/rigged/Husky.glb"), Hints())
    hind = [mine for (one, _), (mine, _) in zip(found.match.pairs, found.follower.pairs, strict=True) if one.order == 0]
    legs = [chain for chain in hind if chain.role == "leg"]
    knees = [float(chain.shares[1]) for chain in legs]
    assert [chain.start for chain in legs] == pytest.approx(knees)
    assert all(chain.start == 0 for chain, _ in found.follower.pairs if chain.role != "leg")


def test_a_tail_bends_where_it_would_lift_the_feet_off_the_floor(walk: Motion) -> None:
    """The source's hangs through the floor: feet stand as they do without it, and nothing of the tail is below."""
    turned = walk.rotations.copy()
    tail = walk.skeleton.index("tail1")
    turned[:, tail] = rotations.multiply(rotations.from_axis_angle([1, 0, 0], np.radians(-75)), turned[:, tail])
    creature = gallery.creature(900).base
    plain, hanging = (
        onto_shape(moving_skeleton(source), creature, Hints()) for source in (walk, replace(walk, rotations=turned))
    )
    feet = [plain.target.tree.joints[theirs.end_node] for _, theirs in plain.follower.legs]
    chain = next(theirs for _, theirs in hanging.follower.pairs if theirs.role == "tail")
    before, after = (found.motion.world()[0] @ Y - found.target.ground for found in (plain, hanging))
    np.testing.assert_allclose(after[:, feet], before[:, feet], atol=0.01 * plain.target.size)
    assert after[:, hanging.target.tree.joints[list(chain.nodes)]].min() > -0.01 * plain.target.size
