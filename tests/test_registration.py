"""How sources and targets stand, which limbs match, and that results turn along with both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import Mesh, Motion, PointCloud, gallery
from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.shapes import Shape
from pliant.engines.transfer.limb_matching import check_match, match_limbs, without_reference_pose
from pliant.engines.transfer.motion_body import mirrored, motion_body, part, side
from pliant.engines.transfer.orientation import OrientedBody, shape_body
from pliant.engines.transfer.symmetry import body_axes, mirror_planes, surface_samples

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
    shapes = {"creature": gallery.creature(900).base, "animal": gallery.animal(900).base}
    return {name: shape_body(shape, Y) for name, shape in shapes.items()}


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
    axes = body_axes(moved(shape, Z_UP @ R))
    assert abs(axes[0] @ Z_UP @ R @ [1, 0, 0]) > 0.999


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
    body = bodies[name] if upright and name in bodies else shape_body(moved(shape, R, 7.0), Y)
    np.testing.assert_allclose(body.frame @ R, np.eye(3), atol=0.02)
    assert body.anatomy.legs == legs
    assert there <= {body.anatomy.named(limb) for limb in body.anatomy.limbs}
    for limb in body.anatomy.limbs:
        middle = limb.path[len(limb.path) // 2 :].mean(axis=0) - body.tree.locations.mean(axis=0)
        assert limb.side == 0 or np.sign(middle @ body.frame[0]) == limb.side


@pytest.mark.parametrize("R", [np.eye(3), turn([0, 1, 0], 77), Z_UP, Z_UP @ turn([0, 1, 0], 200)])
@pytest.mark.parametrize("make", [gallery.creature_walk, gallery.dinosaur_walk, gallery.animal_gallop])
def test_motions_stand_as_their_names_and_bones_say(make, R) -> None:
    motion = make(4)
    first, other = motion_body(motion), motion_body(moved_motion(motion, R, 0.01))
    np.testing.assert_allclose(first.body.frame, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(other.body.frame, R.T, atol=1e-6)
    names = [[body.anatomy.named(limb) for limb in body.anatomy.limbs] for body in (first.body, other.body)]
    assert names[0] == names[1]
    assert first.body.anatomy.legs == (4 if make is gallery.animal_gallop else 2)


def test_a_mirrored_motion_has_left_and_right_swapped(walk: Motion) -> None:
    """Its names lie: toes and tail show where the front is."""
    body = motion_body(moved_motion(walk, np.diag([-1.0, 1.0, 1.0]))).body
    np.testing.assert_allclose(body.frame, np.eye(3), atol=1e-9)
    assert "left and right are swapped in its names" in body.evidence


def test_a_rest_that_stands_otherwise_than_the_motion(walk: Motion) -> None:
    """Offsets along y, and frames whose roots turn the figure upright along z, as some exporters write."""
    turned = moved_motion(walk, Z_UP)
    mixed = replace(turned, skeleton=walk.skeleton)
    mixed = replace(
        mixed, translations=np.tile(turned.translations, (2, 1, 1)), rotations=np.tile(turned.rotations, (2, 1, 1))
    )
    found = motion_body(mixed)
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
    source = motion_body(walk).body
    match = match_limbs(source, bodies["creature"])
    named = {source.anatomy.named(a): bodies["creature"].anatomy.named(b) for a, b in match.pairs}
    assert all(one == other for one, other in named.items())
    assert {"left leg", "right leg", "left arm", "right arm", "tail"} <= set(named)
    assert match.confidence > 0.5
    check_match(match, source, bodies["creature"])


def test_two_legs_onto_four_are_refused_unless_told(walk: Motion, bodies: dict[str, OrientedBody]) -> None:
    source, target = motion_body(walk).body, bodies["animal"]
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


def results(source, target: Shape, **options) -> np.ndarray:
    return pliant.transfer(source, target, "auto", "auto", frames=2, lattice=20, faces=300, **options).clip.points


@pytest.fixture(scope="module")
def walked(walk: Motion) -> tuple[Mesh, np.ndarray]:
    target = gallery.creature(1200).base
    return target, results(walk, target)


@pytest.mark.parametrize(
    "R",
    [
        pytest.param(turn([0, 1, 0], 45), id="turned"),
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
    assert np.linalg.norm(found - wanted, axis=2).mean() < 0.01 * target.diagonal


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [45, 90, 135, 180, 225, 270, 315])
def test_a_sequence_of_an_animal_onto_another_at_every_heading(degrees: float) -> None:
    gait, R = gallery.animal_gait(1500), turn([0, 1, 0], degrees)
    target = gallery.animal(1200).base
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
    body = shape_body(shape, Y, fixed_up=shape.world is not None)
    assert body.frame[1] @ Y > 0.99
    assert body.frame[2] @ FIGURES[name] > 0.95
    assert body.anatomy.legs in (2, 4)


@pytest.mark.data
@pytest.mark.slow
def test_a_captured_walk_onto_a_turned_cloud(data: Path) -> None:
    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    knight = PointCloud(pliant.read_mesh(data / "models/knight/knight.ply").points)
    R = turn([0, 1, 0], 90)
    wanted, found = results(walk, knight), (results(walk, moved(knight, R)) - 3.0) @ R
    assert np.linalg.norm(found - wanted, axis=2).mean() < 0.01 * knight.diagonal


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["models/octopus/octopus-low.mesh", "models/rigged/Spider.glb", "cages/clothing/clothing.obj"]
)
def test_a_captured_walk_onto_what_does_not_walk_on_two_legs_is_refused(data: Path, name: str) -> None:
    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    content = pliant.read(data / "models" / name)
    with pytest.raises(InputError, match="the source stands on 2 legs, the target on"):
        results(walk, getattr(content, "shape", content))
