"""The procedural bodies: closed and manifold at any size, posed with large turns, with skeletons and cages that fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant.core import rotations
from pliant.core.clips import Shapes
from pliant.core.errors import InputError
from pliant.core.normals import triangle_normals, unit
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion, Skeleton
from pliant.gallery.cages import cage
from pliant.gallery.creatures import body as creature_body, creature, creature_skeleton, creature_walk
from pliant.gallery.dinosaurs import body as dinosaur_body, dinosaur, dinosaur_skeleton, dinosaur_walk
from pliant.gallery.gaits import keyed
from pliant.gallery.gingerbread_man import body as gingerbread_body, gingerbread, gingerbread_skeleton
from pliant.gallery.hands import FINGERS, body as hand_body, hand, hand_skeleton
from pliant.gallery.implicit import BodyPart, ImplicitBody, ball, cone
from pliant.gallery.quadruped import animal, animal_gait, animal_gallop, animal_skeleton, body as animal_body
from pliant.gallery.skinning import rotated, skinned
from pliant.gallery.surface_nets import body_mesh
from pliant.geometry.simplify import simplified
from pliant.geometry.spatial import SurfaceTree, winding_numbers

SHAPES: dict[str, Callable[[int], Shapes]] = {
    "hand": hand,
    "animal": animal,
    "gingerbread": gingerbread,
    "dinosaur": dinosaur,
    "creature": creature,
}
BODIES: dict[str, Callable[[], ImplicitBody]] = {
    "hand": hand_body,
    "animal": animal_body,
    "gingerbread": gingerbread_body,
    "dinosaur": dinosaur_body,
    "creature": creature_body,
}
SKELETONS: dict[str, Callable[[], Skeleton]] = {
    "hand": hand_skeleton,
    "animal": animal_skeleton,
    "gingerbread": gingerbread_skeleton,
    "dinosaur": dinosaur_skeleton,
    "creature": creature_skeleton,
}
WALKS: dict[str, Callable[..., Motion]] = {
    "animal": animal_gallop,
    "dinosaur": dinosaur_walk,
    "creature": creature_walk,
}


def made(name: str, n: int) -> Shapes:
    return SHAPES[name](n)


def is_manifold(mesh: Mesh) -> bool:
    """Closed, and the triangles around every vertex form one ring."""
    if not mesh.is_watertight:
        return False
    polygons = mesh.polygons
    at = polygons.corners
    before = np.empty_like(at)
    before[polygons.next_corner] = at
    after = at[polygons.next_corner]
    # Around a vertex each polygon leads from its next to its previous neighbour: one cycle means one ring.
    step = dict(zip(zip(at.tolist(), after.tolist(), strict=True), before.tolist(), strict=True))
    first = dict(zip(at.tolist(), after.tolist(), strict=True))
    count = np.bincount(at, minlength=len(mesh.points))
    for v, start in first.items():
        w, length = step[v, start], 1
        while w != start:
            w, length = step[v, w], length + 1
        if length != count[v]:
            return False
    return True


def turn_angles(rest: Mesh, moved: Mesh) -> np.ndarray:
    """Degrees by which each triangle has turned, from the frame of its edges and normal."""

    def frames(mesh: Mesh) -> np.ndarray:
        a, b, c = (mesh.points[mesh.triangles[:, k]] for k in range(3))
        return np.stack([b - a, c - a, unit(np.cross(b - a, c - a)) * np.linalg.norm(b - a, axis=1)[:, None]], axis=2)

    R = rotations.polar(frames(moved) @ np.linalg.inv(frames(rest)))
    return np.degrees(np.arccos(np.clip((np.trace(R, axis1=1, axis2=2) - 1) / 2, -1, 1)))


@pytest.mark.parametrize("n", [500, *(pytest.param(n, marks=pytest.mark.slow) for n in (2000, 8000))])
@pytest.mark.parametrize("name", BODIES)
def test_body_is_one_closed_manifold_of_the_size_asked_for(name: str, n: int) -> None:
    mesh = made(name, n).base
    assert abs(len(mesh.points) - n) <= 0.1 * n
    assert is_manifold(mesh)
    assert mesh.parts.max() == 0
    assert len(mesh.points) - len(mesh.edges) + len(mesh.polygons) == 2
    assert mesh.volume > 0
    assert len(SurfaceTree(mesh).crossings()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_body_of_200000_vertices(name: str) -> None:
    mesh = body_mesh(BODIES[name](), 200_000)
    assert abs(len(mesh.points) - 200_000) <= 20_000
    assert mesh.is_watertight
    assert mesh.parts.max() == 0
    assert len(mesh.points) - len(mesh.polygons) == 2
    assert mesh.volume > 0


@pytest.mark.parametrize("name", BODIES)
def test_size_hardly_changes_the_shape(name: str) -> None:
    coarse, fine = made(name, 500).base, made(name, 2000).base
    assert coarse.volume == pytest.approx(fine.volume, rel=0.05)
    assert np.ptp(coarse.points, axis=0) == pytest.approx(np.ptp(fine.points, axis=0), rel=0.06)


@pytest.mark.parametrize("n", [499, 1_000_001, 0, -5, 1000.5, "many", True])
def test_impossible_sizes_are_named(n: object) -> None:
    with pytest.raises(InputError, match="expected a whole number from 500 to 1000000"):
        hand(n)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_default_meshes_are_quads(name: str) -> None:
    assert (made(name, 8000).base.polygons.sizes == 4).all()


@pytest.mark.parametrize(
    "name", ["hand", *(pytest.param(name, marks=pytest.mark.slow) for name in BODIES if name != "hand")]
)
def test_default_meshes_are_the_same_every_time(name: str) -> None:
    first, second = body_mesh(BODIES[name](), 8000), made(name, 8000).base
    assert np.array_equal(first.points, second.points)
    assert np.array_equal(first.polygons.corners, second.polygons.corners)


@pytest.mark.parametrize("n", [500, pytest.param(8000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SHAPES)
def test_poses_keep_volume_and_turn_far(name: str, n: int) -> None:
    shapes = made(name, n)
    assert len(shapes) >= 4
    assert len(set(shapes.names)) == len(shapes)
    assert np.array_equal(shapes.points[0], shapes.base.points)
    for pose in shapes:
        assert pose.volume == pytest.approx(shapes.base.volume, rel=0.1)
    most = [np.percentile(turn_angles(shapes.base, pose), 99) for pose in shapes[1:]]
    assert max(most) >= 90


@pytest.mark.parametrize("name", SHAPES)
def test_poses_do_not_tear_or_fold_the_skin(name: str) -> None:
    shapes = made(name, 8000)
    a, b = shapes.base.edges.T
    for pose in shapes[1:]:
        stretch = np.linalg.norm(pose.points[a] - pose.points[b], axis=1) / np.linalg.norm(
            shapes.base.points[a] - shapes.base.points[b], axis=1
        )
        assert np.percentile(stretch, 99) < 2.2
        assert pose.area == pytest.approx(shapes.base.area, rel=0.15)


def test_hand_and_animal_have_their_poses() -> None:
    assert made("hand", 500).names[:3] == ("open", "pointing", "fist")
    assert made("animal", 500).names == ("standing", *(f"gallop {k}" for k in range(1, 9)))


@pytest.mark.parametrize("name", SHAPES)
def test_weights_are_skin_weights(name: str) -> None:
    base = made(name, 8000).base
    weights = np.stack(list(base.vertex_groups.values()), axis=1)
    assert weights.min() >= 0
    assert np.allclose(weights.sum(axis=1), 1)
    assert set(base.vertex_groups) <= set(SKELETONS[name]().names)
    assert (weights > 0).any(axis=0).all()


def test_a_finger_does_not_move_its_neighbour() -> None:
    groups = made("hand", 8000).base.vertex_groups
    for finger in FINGERS:
        moved = groups[f"{finger}2"] + groups[f"{finger}3"] > 0.5
        for other in set(FINGERS) - {finger}:
            assert max(groups[f"{other}{k}"][moved].max() for k in (2, 3)) == 0
            assert groups[f"{other}1"][moved].max() < 0.03


def test_rigid_turn_of_the_root_turns_every_vertex() -> None:
    skin = skinned(animal_body(), 2000)
    q = rotations.from_axis_angle([1.0, 2.0, 3.0], 2.0)
    posed = skin.pose(skin.body.skeleton.pose({"hips": q}))
    centre = skin.body.skeleton.offsets[0]
    assert np.allclose(posed, centre + rotations.rotate(q, skin.mesh.points - centre), atol=1e-12)


@pytest.mark.parametrize("name", SKELETONS)
def test_joints_lie_inside_the_body(name: str) -> None:
    skeleton = SKELETONS[name]()
    places = skeleton.rest_pose().world()[0]
    assert winding_numbers(places, made(name, 8000).base, exact=True) == pytest.approx(1, abs=1e-6)
    ends = np.array([places[j] + end for j, end in skeleton.ends.items()])
    assert winding_numbers(ends, made(name, 8000).base, exact=True) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ["animal", "gingerbread", "dinosaur", "creature"])
def test_bodies_are_symmetric_and_stand_on_the_ground(name: str) -> None:
    skeleton = SKELETONS[name]()
    places = dict(zip(skeleton.names, skeleton.rest_pose().world()[0], strict=True))
    for joint, place in places.items():
        twin = joint[:-2] + ".R" if joint.endswith(".L") else joint
        if not joint.endswith(".R"):
            assert places[twin] == pytest.approx(place * [-1, 1, 1])
    base = made(name, 8000).base
    assert abs(base.points[:, 1].min()) < 0.03 * base.diagonal
    from_mirror = SurfaceTree(base).closest(base.points * [-1, 1, 1]).distance
    assert from_mirror.max() < 0.01 * base.diagonal


@pytest.mark.parametrize("name", WALKS)
def test_gaits_loop_without_a_jump(name: str) -> None:
    motion = WALKS[name](frames=32)
    assert len(motion) == 32
    assert motion.skeleton.names == SKELETONS[name]().names
    places = motion.world()[0]
    steps = np.linalg.norm(np.roll(places, -1, axis=0) - places, axis=2)
    assert steps[-1].max() <= 1.5 * steps[:-1].max()
    assert steps.max() > 0
    twice = WALKS[name](frames=64)
    assert np.allclose(twice.rotations[::2], motion.rotations)


def test_gait_is_the_gallop_on_the_mesh() -> None:
    clip = animal_gait(1000, frames=8)
    shapes = made("animal", 1000)
    assert len(clip) == 8
    assert np.allclose(clip.points, shapes.points[1:])


@pytest.mark.parametrize("frames", [1, 0, 2.5, True])
def test_impossible_frame_counts_are_named(frames: object) -> None:
    with pytest.raises(InputError, match="frames is"):
        creature_walk(frames)  # type: ignore[arg-type]


def test_keyed_curve_goes_through_its_keys() -> None:
    keys = np.random.default_rng(3).uniform(-90, 90, 8)
    assert [keyed(keys, k / 8) for k in range(8)] == pytest.approx(keys)
    assert keyed(keys, 0.3) == pytest.approx(keyed(keys, -0.7))


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_cages_enclose_their_bodies(name: str) -> None:
    shell = cage(name)  # type: ignore[arg-type]
    assert 40 <= len(shell.points) <= 160
    assert is_manifold(shell)
    assert len(shell.points) - len(shell.edges) + len(shell.polygons) == 2
    assert shell.volume > 0
    tree = SurfaceTree(shell)
    assert len(tree.crossings()) == 0
    base = made(name, 2000).base
    assert winding_numbers(base.points, shell, exact=True) == pytest.approx(1, abs=1e-6)
    assert tree.closest(base.points).distance.min() > 0.002 * base.diagonal
    assert shell.volume < 3.5 * base.volume


def test_unknown_cages_are_named() -> None:
    with pytest.raises(InputError, match="no cage is called"):
        cage("teapot")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="vertices is 3"):
        cage("hand", vertices=3)


def _capsule() -> ImplicitBody:
    parts = (
        cone("lower", "all", (0, 0, 0), (0, 1, 0), (0.2, 0.2)),
        cone("upper", "all", (0, 1, 0), (0, 2, 0), (0.2, 0.2)),
    )
    return ImplicitBody(
        {"lower": ("", (0, 0, 0)), "upper": ("lower", (0, 1, 0))}, (BodyPart("all"),), parts, sturdy=1000
    )


def test_a_capsule_has_its_volume_and_bends_round() -> None:
    skin = skinned(_capsule(), 6000)
    volume = np.pi * 0.2**2 * 2 + 4 / 3 * np.pi * 0.2**3
    assert skin.mesh.volume == pytest.approx(volume, rel=0.01)
    bent = skin.pose(rotated(skin.body.skeleton, {"upper": [("x", 90)]}))
    axis = np.where(bent[:, 2:] > 0.3, bent - [0, 1, 0], bent)
    far = (bent[:, 2] > 0.7) & (bent[:, 2] < 1)
    assert np.linalg.norm(axis[far][:, :2], axis=1) == pytest.approx(0.2, rel=0.02)
    assert skin.mesh.with_points(bent).volume == pytest.approx(volume, rel=0.06)


def test_an_ellipsoid_and_a_carved_ball_have_their_volume() -> None:
    egg = ImplicitBody(
        {"all": ("", (0, 0, 0))}, (BodyPart("all"),), (ball("all", "all", (0, 0, 0), (1, 0.5, 0.7)),), sturdy=1000
    )
    assert body_mesh(egg, 10_000).volume == pytest.approx(4 / 3 * np.pi * 0.35, rel=0.01)
    bitten = (ball("all", "all", (0, 0, 0), 1.0), ball("all", "all", (1, 0, 0), 1.0, carve=True))
    lens = 5 * np.pi / 12
    bite = ImplicitBody(egg.joints, egg.groups, bitten, sturdy=1000)
    assert body_mesh(bite, 20_000).volume == pytest.approx(4 / 3 * np.pi - lens, rel=0.01)


def test_groups_join_their_parent_but_not_each_other() -> None:
    def fingers(join: float) -> Mesh:
        parts = [
            ball("all", "palm", (0, 0, 0), 0.5),
            cone("all", "a", (-0.15, 0, 0), (-0.15, 1.5, 0), (0.1, 0.1)),
            cone("all", "b", (0.15, 0, 0), (0.15, 1.5, 0), (0.1, 0.1)),
        ]
        groups = (BodyPart("palm"), BodyPart("a", "palm", join), BodyPart("b", "palm", join))
        return body_mesh(ImplicitBody({"all": ("", (0, 0, 0))}, groups, tuple(parts), sturdy=1000), 20_000)

    sharp, smooth = fingers(0.0), fingers(0.2)
    between = np.array([[0.0, 1.2, 0.0], [0.0, 0.75, 0.0]])
    assert winding_numbers(between, smooth) == pytest.approx(0, abs=0.01)
    assert smooth.volume > 1.005 * sharp.volume


def test_simplified_sphere_keeps_its_shape() -> None:
    body = ImplicitBody(
        {"all": ("", (0, 0, 0))}, (BodyPart("all"),), (ball("all", "all", (0, 0, 0), 1.0),), sturdy=1000
    )
    mesh = body_mesh(body, 4000)
    coarse = simplified(mesh, 200)
    assert len(coarse.points) == 200
    assert is_manifold(coarse)
    assert np.linalg.norm(coarse.points, axis=1) == pytest.approx(1, abs=0.03)
    outward = np.einsum(
        "ij,ij->i", triangle_normals(coarse.points, coarse.triangles), coarse.points[coarse.triangles[:, 0]]
    )
    assert (outward > 0).all()


@pytest.mark.parametrize("name", SHAPES)
def test_bodies_have_a_pattern_that_files_carry(name: str, tmp_path: Path) -> None:
    mesh = made(name, 500).base
    colors = mesh.attributes["color"]
    assert colors.shape == mesh.points.shape
    assert 0 <= colors.min() <= colors.max() <= 1
    assert np.ptp(colors, axis=0).max() > 0.2
    pliant.write(tmp_path / "body.glb", mesh)
    read = pliant.read_mesh(tmp_path / "body.glb").attributes["color"]
    np.testing.assert_allclose(read[:, :3], colors, atol=1e-6)
