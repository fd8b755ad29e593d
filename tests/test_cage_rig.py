"""The variational cage rig: what it reproduces, how well controls are met, and what it refuses."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import pliant
import surfaces
from pliant import InputError, Mesh, PointCloud, gallery
from pliant.core import rotations
from pliant.engines.transfer import Cage, CageRig, Weights
from pliant.engines.transfer.energies import Coordinates
from pliant.gallery.primitives import box_mesh

LATTICE = 24


def turn(axis: list[float], degrees: float) -> np.ndarray:
    return rotations.matrix(rotations.from_axis_angle(axis, np.radians(degrees)))


def fan(degrees: float, count: int = 5) -> np.ndarray:
    """(count, 3, 3) turns about z, from minus half the angle to plus half."""
    return np.stack([turn([0, 0, 1], part * degrees) for part in np.linspace(-0.5, 0.5, count)])


AXIS = np.stack([np.linspace(-1.8, 1.8, 5), np.zeros(5), np.zeros(5)], axis=1)


@pytest.fixture(scope="module")
def bar() -> Mesh:
    return gallery.bar(1000)[0]


@pytest.fixture(scope="module")
def cage() -> Mesh:
    return box_mesh(100, np.array([4.4, 1.4, 1.4]), 0.0)


@pytest.fixture(scope="module")
def rig(bar: Mesh, cage: Mesh) -> CageRig:
    return CageRig(bar, cage, positions=[[0.0, 0, 0]], gradients=AXIS, lattice=LATTICE)


# What it reproduces


def test_the_target_at_rest_stays_where_it_is(rig: CageRig, bar: Mesh) -> None:
    pose = rig.solve()
    assert pose.converged
    assert np.abs(pose.points - bar.points).max() < 1e-5 * bar.diagonal
    assert np.abs(rig.deform(rig.cage.mesh.points) - bar.points).max() < 2e-6 * bar.diagonal


def test_a_similarity_of_the_cage_moves_the_target_alike(rig: CageRig, bar: Mesh) -> None:
    R = turn([1, -2, 0.5], 140)
    moved = rig.deform(1.4 * rig.cage.mesh.points @ R.T + [1000.0, 0, -3])
    np.testing.assert_allclose(moved, 1.4 * bar.points @ R.T + [1000.0, 0, -3], atol=4e-6 * bar.diagonal)


@pytest.mark.parametrize("degrees", [40, 179])
def test_rigid_motions_of_all_controls_move_the_target_rigidly(rig: CageRig, bar: Mesh, degrees: float) -> None:
    R, shift = turn([1, 1, 0.3], degrees), np.array([500.0, -20.0, 3.0])
    both = rig.with_controls(positions=bar.points[[0, 300, 700]])
    pose = both.solve(
        positions=bar.points[[0, 300, 700]] @ R.T + shift, gradients=np.broadcast_to(R, (5, 3, 3)), accuracy=1e-6
    )
    assert pose.converged
    assert pose.iterations <= 2
    assert np.abs(pose.points - (bar.points @ R.T + shift)).max() < 1e-5 * bar.diagonal


def test_units_do_not_matter(bar: Mesh, cage: Mesh) -> None:
    small, large = (
        CageRig(bar.scaled(k), cage.scaled(k), positions=[[0.0, 0, 0]], gradients=AXIS * k, lattice=12)
        for k in (1e-3, 1e3)
    )
    a, b = small.solve(gradients=fan(120)), large.solve(gradients=fan(120))
    assert a.iterations == b.iterations
    np.testing.assert_allclose(a.points * 1e6, b.points, atol=1e-5 * 1e3 * bar.diagonal)


# Controls


@pytest.mark.parametrize("degrees", [60, 120, 180])
def test_a_bar_bends_through_five_gradient_controls(rig: CageRig, degrees: float) -> None:
    found = rig.solve(gradients=fan(degrees)).solution
    assert found is not None
    assert found.converged
    assert found.iterations <= 5
    assert (np.diff(found.energies) < 0).all()
    assert found.gradient_angles.max() < 1
    assert np.abs(found.gradient_stretches).max() < 0.02
    assert found.position_errors.max() < 1e-3


def test_a_bent_bar_keeps_its_cross_section(rig: CageRig, bar: Mesh) -> None:
    """Compared with the exact map: bent about its axis."""
    pose = rig.solve(gradients=fan(120))
    exact = gallery.bend(bar.points, 120 * 4 / 3.6, length=4.0)
    middle = np.abs(bar.points[:, 0]) < 1.5
    R, shift = rotations.match_rigid(exact[middle], pose.points[middle])
    off = np.linalg.norm(pose.points - (exact @ R.T + shift), axis=1)[middle]
    assert off.max() < 0.02 * bar.diagonal


@pytest.mark.parametrize("degrees", [60, 120])
@pytest.mark.parametrize("name", ["bar", "tube", "dumbbell"])
def test_a_bend_between_two_controls_keeps_its_volume(name: str, degrees: float) -> None:
    body = gallery.tube(800)[0] if name == "tube" else gallery.bar(800)[0]
    if name == "dumbbell":
        wide = 0.6 + 0.4 * np.abs(body.points[:, :1] / 2) ** 2
        body = body.with_points(body.points * np.hstack([np.ones_like(wide), wide, wide]))
    along = int(np.argmax(np.ptp(body.points, axis=0)))
    ends = np.tile(body.points.mean(axis=0), (2, 1))
    ends[:, along] += np.array([-0.43, 0.43]) * np.ptp(body.points[:, along])
    rig = CageRig(body, pliant.build_cage(body, faces=120), positions=ends[:1], gradients=ends, lattice=LATTICE)
    turns = np.stack([turn(list(np.roll([1.0, 0, 0], along + 1)), part * degrees) for part in (-0.5, 0.5)])
    pose = rig.solve(gradients=turns)
    assert pose.converged
    assert pose.iterations <= 6
    assert pose.solution.gradient_angles.max() < 1
    assert 0.95 < body.with_points(pose.points).volume / body.volume < 1.03


@pytest.mark.parametrize("stretch", [np.diag([1.6, 1.6, 1.6]), np.diag([1.5, 0.8, 1.0])], ids=["grown", "longer"])
def test_rigidity_leaves_the_controls_their_stretches(rig: CageRig, bar: Mesh, stretch: np.ndarray) -> None:
    G = turn([0, 1, 0], 30) @ stretch
    away = {}
    for weight in (0, Weights.rigidity):
        pose = rig.with_controls(weights=Weights(rigidity=weight)).solve(gradients=np.broadcast_to(G, (5, 3, 3)))
        assert pose.solution.gradient_strains.max() < 0.01
        away[weight] = np.abs(pose.points - bar.points @ G.T).max() / bar.diagonal
    assert away[Weights.rigidity] < max(1e-4, 1.1 * away[0])


def test_the_papers_step_comes_to_the_same(rig: CageRig) -> None:
    ours = rig.solve(gradients=fan(120)).solution
    papers = rig.solve(gradients=fan(120), step=0.2, iterations=60).solution
    assert ours is not None
    assert papers is not None
    assert papers.energies[-1] == pytest.approx(ours.energies[-1], rel=0.02)
    within = [np.argmax(found.energies <= 1.02 * found.energies[-1]) for found in (ours, papers)]
    assert within[0] <= 4
    assert within[1] >= 4 * max(within[0], 1)  # a fifth of every step at a time


def test_warm_frames_need_few_iterations(rig: CageRig) -> None:
    gradients = np.stack([fan(angle) for angle in np.linspace(0, 180, 13)])
    found = list(rig.solutions(positions=np.zeros((13, 1, 3)), gradients=gradients))
    assert all(f.converged for f in found)
    assert max(f.iterations for f in found) <= 5
    assert max(f.gradient_angles.max() for f in found) < 5
    clip = rig.animate(positions=np.zeros((13, 1, 3)), gradients=gradients, fps=24)
    assert len(clip) == 13
    assert clip.fps == 24
    np.testing.assert_allclose(clip.points[-1], rig.deform(found[-1].points))


def test_contradicting_controls_settle_too(rig: CageRig) -> None:
    """Neighbouring controls turned against each other by right angles: energy is left over, and still it converges."""
    gradients = np.stack([turn([0, 0, 1], 45 * (-1) ** k) for k in range(5)])
    found = rig.solve(gradients=gradients).solution
    assert found is not None
    assert found.converged
    assert found.iterations <= 20


def test_lengths_are_kept(rig: CageRig) -> None:
    """Two ends pulled together would shrink the bar; its halves keep their lengths."""
    ends = [[-1.8, 0.0, 0], [1.8, 0.0, 0], [0.0, 0.4, 0]]
    goals = np.array([[-1.4, 0.0, 0], [1.4, 0.0, 0], [0.0, 1.2, 0]])
    pairs = [[[-1.7, 0, 0], [-0.2, 0, 0]], [[0.2, 0, 0], [1.7, 0, 0]]]
    free = rig.with_controls(positions=ends, gradients=[], lengths=pairs, weights=Weights(length=1e-6))
    kept = rig.with_controls(positions=ends, gradients=[], lengths=pairs, weights=Weights(length=5.0))
    loose, found = free.solve(positions=goals).solution, kept.solve(positions=goals).solution
    assert loose is not None
    assert found is not None
    assert np.abs(loose.length_errors).max() > 0.05
    assert np.abs(found.length_errors).max() < 0.02


def test_lengths_can_be_asked_to_change(rig: CageRig) -> None:
    pairs = [[[-1.5, 0, 0], [1.5, 0, 0]]]
    longer = rig.with_controls(gradients=[], lengths=pairs, weights=Weights(length=5.0)).solve(lengths=[3.6]).solution
    assert longer is not None
    assert np.abs(longer.length_errors).max() < 0.02


def test_controls_can_be_exchanged_without_new_smoothness(rig: CageRig, bar: Mesh) -> None:
    other = rig.with_controls(positions=[5, 17], gradients=[])
    assert other._smooth is rig._smooth
    assert other._target_points is rig._target_points
    assert len(other.controls.gradients) == 0
    goals = bar.points[[5, 17]] + [0.0, 0.3, 0]
    assert np.abs(other.solve(positions=goals).points[[5, 17]] - goals).max() < 0.005 * bar.diagonal
    assert len(rig.controls.gradients) == 5
    fresh = CageRig(bar, rig.cage, positions=[5, 17], lattice=LATTICE)
    np.testing.assert_allclose(fresh.solve(positions=goals).points, other.solve(positions=goals).points, atol=1e-6)


def test_a_start_can_be_given(rig: CageRig) -> None:
    first = rig.solve(gradients=fan(110)).solution
    assert first is not None
    again = rig.solve(gradients=fan(110), start=first.points)
    assert again.iterations <= 2


# Targets


@pytest.mark.parametrize(
    "target",
    [gallery.bar_tets(600), PointCloud(gallery.bar(600)[0].points), gallery.bar(600)[0].points * 0.9],
    ids=["tetrahedra", "cloud", "points"],
)
def test_targets_of_other_kinds(target, cage: Mesh) -> None:
    pose = CageRig(target, cage, positions=[0], gradients=AXIS, lattice=12).solve(gradients=fan(90))
    assert pose.converged
    assert len(pose.points) == len(getattr(target, "points", target))


def test_the_normals_of_a_cloud_turn_with_it(cage: Mesh) -> None:
    sphere = surfaces.sphere(16, 10, 0.6)
    cloud = PointCloud(sphere.points, normals=sphere.points / 0.6)
    rig = CageRig(cloud, cage, positions=[[0.0, 0, 0]], gradients=[[0.0, 0, 0]], lattice=12)
    R = turn([0, 1, 1], 70)
    turned = rig.solve(gradients=[R]).shape
    assert isinstance(turned, PointCloud)
    assert turned.normals is not None
    np.testing.assert_allclose(turned.normals, cloud.normals @ R.T, atol=1e-3)


def test_jacobians_against_differences(bar: Mesh, cage: Mesh, rig: CageRig) -> None:
    bent = gallery.bend(rig.cage.mesh.points, 80, length=4.4)
    points, step = bar.points[::50] * 0.9, 1e-3
    shifted = np.concatenate([points + k * step * axis for axis in np.eye(3) for k in (-1, 1)])
    moved = CageRig(shifted, cage, lattice=12).deform(bent).reshape(3, 2, -1, 3)
    slope = np.moveaxis(moved[:, 1] - moved[:, 0], 0, 2) / (2 * step)
    exact = CageRig(points, cage, lattice=12).jacobians(bent)
    assert np.abs(slope - exact).max() < 5e-3  # the points are stored in single precision
    np.testing.assert_allclose(CageRig(points, cage, lattice=12).jacobians(bent, points=[3, 1]), exact[[3, 1]])


def test_jacobians_are_the_same_whether_their_gradients_are_kept_or_not(
    bar: Mesh, rig: CageRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.engines.transfer.target_points.GRADIENT_CHUNK", 100)
    bent = gallery.bend(rig.cage.mesh.points, 80, length=4.4)
    first, again = rig.jacobians(bent), rig.jacobians(np.stack([bent, bent]))
    monkeypatch.setattr("pliant.engines.transfer.target_points.MOST_GRADIENT_BYTES", -1)
    other = pickle.loads(pickle.dumps(rig))
    assert not other._target_points.kept_gradients
    np.testing.assert_array_equal(other.jacobians(bent), first)
    np.testing.assert_array_equal(again, np.stack([first, first]))
    assert not other._target_points.kept_gradients


def test_places_in_the_cage_are_carried_along(rig: CageRig, bar: Mesh) -> None:
    pose = rig.solve(gradients=fan(60))
    some = [0, 40, 90]
    carried = rig.carried(bar.points[some], pose.solution.points)
    assert np.abs(carried - pose.points[some]).max() < 1e-6 * bar.diagonal
    assert np.abs(carried - bar.points[some]).max() > 0.1


def test_a_solve_can_be_watched_and_ended(rig: CageRig) -> None:
    seen: list[int] = []
    pose = rig.solve(gradients=fan(120), watch=seen.append)
    assert seen == list(range(pose.iterations))

    def stop(done: int) -> None:
        if done == 1:
            raise KeyError("enough")

    with pytest.raises(KeyError):
        rig.solve(gradients=fan(120), watch=stop)


def test_mean_values_shear_where_greens_turn(bar: Mesh) -> None:
    """Figure 2: a bar in a coarse cage, bent by its ends. Linear coordinates stretch it one way and not the other."""
    coarse, held = box_mesh(34, np.array([4.4, 1.4, 1.4]), 0.0), np.flatnonzero(np.abs(bar.points[:, 0]) > 1.6)[::7]
    goals = gallery.bend(bar.points, 150, length=4.0)[held]
    distortion = {}
    for kind in get_args(Coordinates):
        papers = Weights(rigidity=0)
        rig = CageRig(bar, coarse, positions=held, coordinates=kind, lattice=LATTICE, weights=papers)
        found = rig.solve(positions=goals).solution
        assert found is not None
        stretches = np.linalg.svd(rig.jacobians(found.points), compute_uv=False)
        distortion[kind] = (stretches[:, 0] / stretches[:, 2]).mean() - 1
    assert distortion["green"] < 0.5 * distortion["mean_value"]


def test_rigs_pickle(rig: CageRig) -> None:
    again = pickle.loads(pickle.dumps(rig))
    np.testing.assert_array_equal(again.solve(gradients=fan(60)).points, rig.solve(gradients=fan(60)).points)


def test_split_cages_move_as_one(bar: Mesh, cage: Mesh) -> None:
    """A cage as glTF stores it, with a vertex for each corner of each face, and one that no face uses."""
    corners = cage.polygons.corners
    split = Mesh(np.vstack([cage.points[corners], [[9.0, 9, 9]]]), np.arange(len(corners)).reshape(-1, 4))
    found = CageRig(bar, split, positions=[[0.0, 0, 0]], gradients=AXIS, lattice=12).solve(gradients=fan(90)).solution
    whole = CageRig(bar, cage, positions=[[0.0, 0, 0]], gradients=AXIS, lattice=12).solve(gradients=fan(90)).solution
    assert found is not None
    assert whole is not None
    np.testing.assert_allclose(found.points[:-1], whole.points[corners], atol=1e-6)
    np.testing.assert_array_equal(found.points[-1], [9, 9, 9])


# What it refuses


def test_no_position_control_is_diagnosed(bar: Mesh, cage: Mesh, rig: CageRig) -> None:
    with pytest.raises(InputError, match="no position control, so nothing fixes the position of the target"):
        CageRig(bar, cage, gradients=AXIS, lattice=12)
    with pytest.raises(InputError, match="no position control"):
        rig.with_controls(positions=[])
    with pytest.raises(InputError, match="no position control"):
        rig.with_controls(positions=[], gradients=[]).solve()


def test_wrong_weights_are_refused() -> None:
    with pytest.raises(InputError, match="smooth is -1; expected a positive number"):
        Weights(smooth=-1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"positions": [[9.0, 0, 0]]}, r"1 of 1 position controls lies on the cage or outside of it: 0 at \(9, 0, 0\)"),
        ({"positions": [0], "gradients": [[0, 0, 0.0], [0, 5.0, 0]]}, "1 of 2 gradient controls lies"),
        ({"positions": [0], "lengths": [[[0, 0, 0.0], [0, 5.0, 0]]]}, "1 of 1 ends of length controls lies"),
        ({"positions": [0], "lengths": [[3, 3]]}, "length control 0 has both ends at one point"),
        ({"positions": [2000]}, "position controls name vertex 2000; the target has"),
        (
            {"positions": [[0.0, 1]]},
            r"position controls have shape \(1, 2\); expected \(k\) vertex numbers or \(k, 3\)",
        ),
        ({"positions": [[0, np.nan, 0]]}, "position control 0 is at"),
        ({"positions": [0], "lattice": 2}, "lattice is 2"),
        ({"positions": [0], "coordinates": "harmonic"}, 'coordinates are "harmonic"'),
        ({"positions": [0], "outside": "maybe"}, 'outside is "maybe"'),
    ],
)
def test_wrong_set_ups_are_refused(bar: Mesh, cage: Mesh, given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words) as problem:
        CageRig(bar, cage, **{"lattice": 12, **given})
    assert "\n" not in str(problem.value)


def test_a_target_outside_its_cage_is_refused_or_continued(bar: Mesh) -> None:
    tight = box_mesh(60, np.array([4.4, 1.4, 0.98]), 0.0)
    with pytest.raises(InputError, match="points of the target lie on the cage or outside of it"):
        CageRig(bar, tight, positions=[[0.0, 0, 0]], lattice=12)
    rig = CageRig(bar, tight, positions=[[0.0, 0, 0]], gradients=AXIS, lattice=12, outside="allow")
    assert np.abs(rig.deform(tight.points) - bar.points).max() < 2e-6 * bar.diagonal
    assert rig.solve(gradients=fan(60)).converged


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gradients": fan(30)[:3]}, r"gradients have shape \(3, 3, 3\); expected \(5, 3, 3\), for 5 controls"),
        ({"positions": [[0.0, 0]]}, r"positions have shape \(1, 2\); expected \(1, 3\)"),
        ({"positions": [[0.0, np.nan, 0]]}, "frame 0 of positions is NaN or infinite at control 0"),
        ({"start": np.zeros((3, 3))}, "got 3 cage points; the cage has"),
        ({"accuracy": 0}, "accuracy is 0"),
        ({"iterations": 0}, "iterations is 0"),
        ({"step": 1.5}, "step is 1.5"),
        ({"lengths": [1.0]}, r"lengths have shape \(1,\); expected \(0\)"),
    ],
)
def test_wrong_targets_are_refused(rig: CageRig, given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rig.solve(**given)


def test_wrong_frames_are_named(rig: CageRig) -> None:
    gradients = np.stack([fan(angle) for angle in (0, 10, 20)])
    with pytest.raises(InputError, match="positions have 2 frames and gradients 3"):
        rig.animate(positions=np.zeros((2, 1, 3)), gradients=gradients)
    gradients[2, 4, 0, 0] = np.nan
    with pytest.raises(InputError, match="frame 2 of gradients is NaN or infinite at control 4"):
        rig.animate(gradients=gradients)


# Real meshes in their cages


@pytest.mark.data
@pytest.mark.parametrize(
    ("mesh", "cage", "outside"),
    [
        ("arm/arm.obj", "arm/arm_cage.obj", 0),
        ("armadillo/armadilloman.obj", "armadillo/cage.obj", 0),
        ("clothing/clothing.obj", "clothing/cage.obj", 0),
        ("hand/hand.obj", "hand/cage.obj", 0),
        ("horse/Horse_2.obj", "horse/Horse_2_Cage.obj", 1),
        ("ogre/Ogre.obj", "ogre/Ogre_Cage.obj", 90),
    ],
)
def test_real_pairs_bind_or_say_what_is_outside(data: Path, mesh: str, cage: str, outside: int) -> None:
    target, around = (pliant.read_mesh(data / "cages" / name) for name in (mesh, cage))
    if outside:
        with pytest.raises(InputError, match=f"^{outside} of {len(target.points)} points of the target lie"):
            CageRig(target, around, lattice=20)
    rig = CageRig(target, around, lattice=20, outside="allow")
    assert np.abs(rig.deform(around.points) - target.points).max() < 2e-6 * target.diagonal


@pytest.mark.data
def test_a_deformed_cage_that_crosses_itself_is_refused_but_deforms(data: Path) -> None:
    folder = data / "cages" / "ogre"
    ogre, rest, deformed = (
        pliant.read_mesh(folder / f"{name}.obj") for name in ("Ogre", "Ogre_Cage", "Ogre_Cage_Deformed")
    )
    with pytest.raises(InputError, match="the cage crosses itself: 17 pairs"):
        Cage.of(deformed)
    moved = CageRig(ogre, rest, lattice=20, outside="allow").deform(deformed.points)
    assert np.isfinite(moved).all()
    assert np.ptp(moved, axis=0).max() < 2 * ogre.diagonal


@pytest.mark.data
def test_the_armadillo_lifts_its_arms(data: Path) -> None:
    target, around = (pliant.read_mesh(data / "cages/armadillo" / name) for name in ("armadilloman.obj", "cage.obj"))
    hands_head_feet = np.array([[63, 42, 0], [-55, 30, 9], [-12, 60, 5], [39, -82, 39], [-44, -82, 35]], dtype=float)
    rig = CageRig(target, around, positions=hands_head_feet[3:], gradients=hands_head_feet, lattice=40)
    turns = [turn([0, 0, 1], 60), turn([0, 0, 1], -60), turn([0, 1, 0], 50), np.eye(3), np.eye(3)]
    found = rig.solve(gradients=turns).solution
    assert found is not None
    assert found.converged
    assert found.iterations <= 6
    assert found.gradient_angles.max() < 5
    assert np.abs(found.gradient_stretches).max() < 0.05
    assert found.position_errors.max() < 0.005
    assert found.collapsed == 0


def test_a_frame_starts_where_its_controls_have_turned(rig: CageRig) -> None:
    """However far they turn, the first guess is near: few iterations, from rest."""
    for degrees in (30, 90, 150):
        found = rig.solve(gradients=fan(degrees)).solution
        assert found is not None
        assert found.converged
        assert found.iterations <= 4


def test_quick_motions_take_few_iterations(rig: CageRig) -> None:
    """Turned to and fro by 120° within eight frames."""
    angles = 120 * np.sin(np.linspace(0, 2 * np.pi, 9))
    found = list(rig.solutions(gradients=np.array([fan(angle) for angle in angles])))
    assert max(frame.iterations for frame in found[1:]) <= 5


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (np.diag([1.0, 1, -1]), r"gradient control 2: .* in frame 0 has the determinant -1"),
        (np.diag([1.0, 1, 0]), "flattens the target; expected a positive determinant"),
        (np.eye(3) * 1e5, "stretches from 1e.05 to 1e.05 times"),
        (np.diag([1, 1, 1e-5]), "stretches from 1e-05 to 1 times; .* at most 1000 times"),
    ],
)
def test_gradients_that_nothing_can_follow_are_refused(rig: CageRig, gradient: np.ndarray, words: str) -> None:
    asked = fan(0).copy()
    asked[2] = gradient
    with pytest.raises(InputError, match=words):
        rig.solve(gradients=asked)
