"""The skeleton as a rod: derivatives, known large deflections, invariance, joints, and what is said no to."""

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from pliant import InputError, Skeleton, gallery
from pliant.core import rotations
from pliant.engines.simulate import rod as rods
from pliant.engines.simulate.rod import Rod
from pliant.engines.simulate.rod_elements import Elements, rotated

AXIS = rotations.from_axis_angle


def chain(bones: int, length: float = 1.0) -> Skeleton:
    places = np.linspace(0, length, bones + 1)[:, None] * np.array([1.0, 0, 0])
    return Skeleton.from_positions(places, np.arange(-1, bones))


def crooked() -> Skeleton:
    """A tree with a fork, a bone end, and two joints at one place."""
    places = [[0, 0, 0], [1, 0, 0], [1.8, 0.4, 0], [1, 0, 0], [1, -0.9, 0.3], [2.5, 0.2, 0.3]]
    plain = Skeleton.from_positions(places, [-1, 0, 1, 1, 3, 2])
    return Skeleton(plain.names, plain.parents, plain.offsets, ends={5: [0.3, 0, 0.1]})


# Energy


@pytest.fixture
def elements() -> tuple[Elements, np.ndarray, np.ndarray]:
    """Five elements in a row, far from rest, with any stiffness and offsets."""
    rng = np.random.default_rng(3)
    square = rng.normal(size=(5, 6, 6))
    pairs = np.stack([np.arange(5), np.arange(1, 6)], axis=1)
    near = rotations.normalize(rotations.IDENTITY + 0.3 * rng.normal(size=(11, 4)))
    made = Elements(
        pairs, pairs, near[:5], rng.normal(size=(5, 3)), rng.uniform(0.5, 2, 5), square @ np.swapaxes(square, 1, 2)
    )
    return made, rng.normal(size=(6, 3)), near[5:]


def moved(x, q, e, v):
    """Element e's ends moved by (x1, x2, θ1, θ2)."""
    there, theta = x.copy(), np.zeros((len(q), 3))
    there[e], there[e + 1] = there[e] + v[:3], there[e + 1] + v[3:6]
    theta[e], theta[e + 1] = v[6:9], v[9:]
    return there, rotated(q, theta)


def test_gradient_and_hessian_are_those_of_the_energy(elements):
    made, x, q = elements
    gradient, material, geometric = made.derivatives(x, q)
    hessian = material + geometric
    np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), atol=1e-12 * np.abs(hessian).max())

    def energy(e, v):
        return made.energies(*moved(x, q, e, v))[e]

    for e in range(len(made)):
        eye, h = np.eye(12), 1e-3
        slopes = [
            (8 * (energy(e, h * d) - energy(e, -h * d)) - energy(e, 2 * h * d) + energy(e, -2 * h * d)) for d in eye
        ]
        np.testing.assert_allclose(np.array(slopes) / (12 * h), gradient[e], rtol=1e-7, atol=1e-7)
        curves = [[energy(e, h * (a + b)) - energy(e, h * (a - b)) - energy(e, h * (b - a)) + energy(e, -h * (a + b))
                   for a in eye] for b in eye]  # fmt: skip
        apart = np.abs(np.array(curves) / (4 * h * h) - hessian[e]).max()
        assert apart < 1e-4 * np.abs(hessian[e]).max()


def test_energy_does_not_feel_rigid_motions(elements):
    made, x, q = elements
    turn, shift = AXIS([0.3, -1, 0.4], 2.2), np.array([5.0, -3, 1])
    there = rotations.rotate(turn, x) + shift
    np.testing.assert_allclose(made.energies(there, rotations.multiply(turn, q)), made.energies(x, q), rtol=1e-12)


def test_places_for_given_rotations_are_best(elements):
    made, x, q = elements
    held, pull = made.pulls(q)
    gradient, _, _ = made.derivatives(x, q)
    e = x[1:] - x[:-1]
    np.testing.assert_allclose(
        np.einsum("mij,mj->mi", held, e) - pull, gradient[:, 3:6] - _twisted(made, x, q), atol=1e-9
    )


def _twisted(made, x, q):
    """The part of the end force that comes from coupling of stretch and bending in a made-up stiffness."""
    plain = made.stiffness.copy()
    plain[:, :3, 3:] = plain[:, 3:, :3] = 0
    alone = Elements(made.position_nodes, made.rotation_nodes, made.offset, made.rest, made.length, plain)
    return made.derivatives(x, q)[0][:, 3:6] - alone.derivatives(x, q)[0][:, 3:6]


# Known solutions


def elastica(alpha: float) -> np.ndarray:
    """Where the tip of a unit cantilever is under a load of alpha E I across (Bisshopp and Drucker 1945)."""

    def amplitude(angle: float) -> tuple[float, float]:
        k2 = (1 + np.sin(angle)) / 2
        return k2, np.arcsin(1 / np.sqrt(2 * k2))

    def misfit(angle: float) -> float:
        k2, start = amplitude(angle)
        return ellipk(k2) - ellipkinc(start, k2) - np.sqrt(alpha)

    angle = brentq(misfit, 1e-9, np.pi / 2 - 1e-9)
    k2, start = amplitude(angle)
    return np.array([np.sqrt(2 * np.sin(angle) / alpha), 2 / np.sqrt(alpha) * (ellipe(k2) - ellipeinc(start, k2)) - 1])


@pytest.mark.parametrize("alpha", [0.5, 2.0, 10.0])
def test_cantilever_with_a_load_at_its_tip(alpha):
    radius, young = 0.002, 3e9
    load = alpha * young * np.pi * radius**4 / 4
    away = []
    for segments in (8, 16, 32):
        solved = Rod(chain(1), radius=radius, young=young, segments=segments).solve(forces={"joint1": [0, -load, 0]})
        assert solved.converged
        assert solved.stable
        away.append(np.linalg.norm(solved.pose.world()[0][1, :2] - elastica(alpha)))
    assert away[-1] < 5e-4
    orders = np.log2(np.array(away[:-1]) / away[1:])
    np.testing.assert_allclose(orders, 2, atol=0.1)


@pytest.mark.parametrize("turns", [(100.0,), (-170.0,), (115.0, 230.0, 345.0)])
def test_an_end_moment_bends_a_rod_to_a_circle(turns):
    bones, away = len(turns), []
    targets = {f"joint{k + 1}": AXIS([0, 0, 1], np.radians(angle)) for k, angle in enumerate(turns)}
    whole = np.radians(turns[-1])
    for segments in (8, 16):
        solved = Rod(chain(bones), segments=segments).solve(orientations=targets)
        assert solved.converged
        s = np.linspace(0, 1, bones * segments + 1)
        circle = np.stack([np.sin(whole * s), 1 - np.cos(whole * s), 0 * s], axis=1) / whole
        samples = np.concatenate([solved.positions[0], *solved.positions[1:, 1:]])
        away.append(np.linalg.norm(samples - circle, axis=1).max())
        angles = np.linalg.norm(rotations.log(np.concatenate([solved.rotations[0], *solved.rotations[1:, 1:]])), axis=1)
        np.testing.assert_allclose(angles, np.abs(whole) * s, atol=1e-6)  # curved evenly
    assert away[1] < 0.3 * away[0] < 2e-3


def test_twist_and_stretch():
    young, radius, angle = 1e6, 0.05, 2.5
    rod = Rod(chain(2), radius=radius, young=young, segments=16)
    solved = rod.solve(handles={"joint2": [1, 0, 0]}, orientations={"joint2": AXIS([1, 0, 0], angle)})
    torque = young / 2.6 * np.pi * radius**4 / 2
    assert solved.energy == pytest.approx(torque * angle**2 / 2, rel=1e-3)
    np.testing.assert_allclose(solved.rotations[0, -1], AXIS([1, 0, 0], angle / 2), atol=1e-9)
    pulled = rod.solve(forces={"joint2": [70.0, 0, 0]})
    longer = pulled.pose.world()[0][2, 0] - 1
    assert longer == pytest.approx(70 / (young * np.pi * radius**2), rel=1e-9)


# Poses


def test_rest_stays_at_rest():
    for skeleton in (crooked(), gallery.creature_skeleton()):
        solved = Rod(skeleton, joints=0.1).solve()
        assert solved.converged
        np.testing.assert_allclose(solved.pose.translations, skeleton.offsets, atol=1e-9)
        np.testing.assert_allclose(solved.rotations[..., 0], 1, atol=1e-12)


def test_poses_turn_with_their_handles():
    skeleton = crooked()
    handles = {"joint0": [0.1, 0, 0], "joint2": [1.2, 1.1, 0.2], "joint4": [0.9, -0.8, 0.6]}
    turn, shift = AXIS([1, 2, -0.5], 1.1), np.array([0.3, -2, 4])
    forces = {"joint5": np.array([0, 1e3, 0])}
    rod = Rod(skeleton, young=1e8, joints={"joint2": 0.02})
    one = rod.solve(handles=handles, forces=forces, root="free")
    elsewhere = {name: rotations.rotate(turn, place) + shift for name, place in handles.items()}
    turned_forces = {name: rotations.rotate(turn, force) for name, force in forces.items()}
    two = rod.solve(handles=elsewhere, forces=turned_forces, root="free")
    assert one.converged
    assert two.converged
    assert two.energy == pytest.approx(one.energy, rel=1e-6)
    np.testing.assert_allclose(two.positions, rotations.rotate(turn, one.positions) + shift, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-3, 1000.0])
def test_units_do_not_matter(unit):
    skeleton = crooked()
    places = skeleton.rest_pose().world()[0]
    large = Skeleton.from_positions(places * unit, skeleton.parents)
    small = Skeleton.from_positions(places, skeleton.parents)
    target = np.array([1.5, 1.4, 0.3])
    one = Rod(small).solve(handles={"joint5": target})
    two = Rod(large).solve(handles={"joint5": target * unit})
    assert one.iterations == two.iterations
    np.testing.assert_allclose(two.positions / unit, one.positions, atol=1e-9)


def test_the_result_does_not_depend_on_the_steps(monkeypatch):
    skeleton = gallery.dinosaur_skeleton()
    places = skeleton.rest_pose().world()[0]
    wanted = {"tail5": places[skeleton.index("tail5")] + [0.3, 0.4, 0.2]}
    once = Rod(skeleton, segments=4).solve(handles=wanted)
    monkeypatch.setattr(rods, "STEP_DISPLACEMENT", 0.07)
    slowly = Rod(skeleton, segments=4).solve(handles=wanted)
    assert once.converged
    assert slowly.steps > once.steps
    np.testing.assert_allclose(slowly.positions, once.positions, atol=1e-6)


def test_samples_and_pose_agree():
    skeleton = crooked()
    solved = Rod(skeleton, joints={"joint2": "free"}).solve(handles={"joint5": [1.5, 1.5, 0]})
    places, turns = solved.pose.world()
    for (start, stop), along, turned_along in zip(solved.bones, solved.positions, solved.rotations, strict=True):
        np.testing.assert_allclose(along[0], places[start], atol=1e-12)
        np.testing.assert_allclose(
            np.abs(turned_along[0] @ turns[start]), 1, atol=1e-12
        )  # frames at rest are not turned
        if stop >= 0:
            np.testing.assert_allclose(along[-1], places[stop], atol=1e-12)
    np.testing.assert_allclose(places[5], [1.5, 1.5, 0], atol=1e-12)
    np.testing.assert_allclose(places[1], places[3], atol=1e-12)  # two joints at one place stay together


@pytest.mark.parametrize("seed", [4, pytest.param(8, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.slow)])
def test_free_joints_reach_whatever_a_pose_reaches(seed):
    skeleton, rng = gallery.creature_skeleton(), np.random.default_rng(seed)
    turns = {name: AXIS(rng.normal(size=3), rng.uniform(-1, 1)) for name in skeleton.names[1:]}
    places = skeleton.pose(turns).world()[0]
    leaves = [j for j in range(len(skeleton)) if j not in skeleton.parents][:3]
    handles = {skeleton.names[j]: places[j] for j in leaves}
    solved = Rod(skeleton, joints="free").solve(handles=handles)
    assert solved.converged
    assert solved.stable
    assert np.allclose(solved.pose.world()[0][leaves], places[leaves], atol=1e-9)


@pytest.mark.parametrize("joints", [None, 0.01, "free"])
def test_angles_without_loads_are_kinematics(joints):
    skeleton = crooked()
    angles = {"joint1": AXIS([0, 0, 1], 1.4), "joint2": AXIS([1, 1, 0], -1.2), "joint3": AXIS([0, 1, 0], 0.5)}
    solved = Rod(skeleton, joints=joints).solve(angles=angles)
    assert solved.converged
    expected = skeleton.pose(angles)
    np.testing.assert_allclose(solved.pose.world()[0], expected.world()[0], atol=1e-6)
    np.testing.assert_allclose(
        rotations.align_signs(solved.pose.world()[1], expected.world()[1]), expected.world()[1], atol=1e-6
    )


def test_soft_joints_bend_where_bones_do_not():
    skeleton, target = chain(2), {"joint2": [0.55, 0, 0.4]}
    stiff = Rod(skeleton).solve(handles=target)
    soft = Rod(skeleton, joints={"joint1": 1e-3}).solve(handles=target)
    assert stiff.converged
    assert soft.converged

    def bent(solved):  # within bones
        ways = rotations.multiply(rotations.inverse(solved.rotations[:, 0]), solved.rotations[:, -1])
        return np.linalg.norm(rotations.log(rotations.shortest(ways)), axis=1)

    assert bent(soft)[1] < 0.02
    assert bent(stiff)[1] > 0.2
    assert soft.energy < stiff.energy


def test_pressure_makes_a_straight_limb_give_way():
    solved = Rod(chain(2), joints=0.01).solve(handles={"joint2": [0.7, 0, 0]})
    assert solved.converged
    assert solved.stable
    places = solved.pose.world()[0]
    assert np.linalg.norm(places[1, 1:]) > 0.3
    lengths = np.linalg.norm(np.diff(solved.positions, axis=1), axis=2).sum(axis=1)
    np.testing.assert_allclose(lengths, 0.5, rtol=0.01)


def test_orientations_along_a_limb_add_up_beyond_half_a_turn():
    targets = {"joint1": AXIS([1, 0, 0], 2.8), "joint2": -AXIS([1, 0, 0], 5.6)}  # the sign of a quaternion says nothing
    solved = Rod(chain(2)).solve(orientations=targets)
    np.testing.assert_allclose(rotations.log(solved.rotations[1])[:, 0], np.linspace(2.8, 5.6, 9), atol=1e-6)


@pytest.mark.parametrize("joints", [None, 0.05])
def test_a_start_near_by_gives_the_same_pose_sooner(joints):
    rod = Rod(crooked(), joints=joints)
    near, there = ({"joint5": np.array([1.5, 1.2, 0.8]) * [1, s, s]} for s in (0.95, 1.0))
    root = AXIS([0, 1, 0], 0.7)  # the skeleton as a whole is elsewhere too
    start = rod.solve(handles=near, orientations={"joint0": AXIS([0, 1, 0], 0.6)})
    from_rest, warm = (rod.solve(handles=there, orientations={"joint0": root}, start=s) for s in (None, start))
    assert from_rest.converged
    assert warm.converged
    np.testing.assert_allclose(warm.positions, from_rest.positions, atol=1e-6)
    np.testing.assert_allclose(warm.pose.rotations, from_rest.pose.rotations, atol=1e-6)
    assert warm.steps == 1 < from_rest.steps
    assert warm.iterations < from_rest.iterations
    with pytest.raises(InputError, match="expected a RodPose of this rod"):
        Rod(chain(2)).solve(start=warm)


def test_a_rod_pickles():
    rod = pickle.loads(pickle.dumps(Rod(crooked(), joints=0.1)))
    target = {"joint5": [1.8, 1.0, 0.2]}
    np.testing.assert_array_equal(
        rod.solve(handles=target).positions, Rod(crooked(), joints=0.1).solve(handles=target).positions
    )


# What is said no to


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"root": "free"}, 'nothing holds the skeleton of "joint0"'),
        ({"root": "free", "handles": {"joint1": [1, 0, 0]}}, 'can turn freely about "joint1"'),
        ({"root": "free", "handles": {"joint0": [0, 0, 0], "joint2": [2, 0, 0]}}, "can spin about the line"),
        ({"handles": {"joynt2": [0, 0, 0]}}, "the closest are"),
        ({"handles": {"joint2": [0, 0]}}, "expected 3 finite numbers"),
        ({"handles": {"joint2": [0, 0, np.nan]}}, "expected 3 finite numbers"),
        ({"orientations": {"joint2": [1, 0, 0]}}, "expected 4 finite numbers"),
        ({"angles": {"joint0": [1, 0, 0, 0]}}, "has no parent to turn against"),
        ({"handles": [1, 2]}, "expected a dictionary"),
        ({"root": "loose"}, 'expected "held" or "free"'),
    ],
)
def test_loads_that_make_no_sense(asked, words):
    with pytest.raises(InputError, match=words) as refused:
        Rod(chain(2)).solve(**asked)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"young": 0}, "young is 0"),
        ({"poisson": 0.5}, "poisson is 0.5"),
        ({"radius": -1}, "radius is -1"),
        ({"radius": {"elbow": 1}}, 'no joint is called "elbow"'),
        ({"segments": 0}, "segments is 0"),
        ({"joints": "loose"}, 'joints is "loose"; expected a positive number, or "free"'),
        ({"joints": {"joint1": 0}}, "expected a positive number"),
    ],
)
def test_rods_that_make_no_sense(options, words):
    with pytest.raises(InputError, match=words):
        Rod(chain(2), **options)


def test_a_skeleton_without_bones():
    with pytest.raises(InputError, match="no bone with a length"):
        Rod(Skeleton.from_positions([[0, 0, 0]], [-1]))
    with pytest.raises(InputError, match="expected a Skeleton"):
        Rod([[0, 0, 0]])


def test_former_names_of_a_pose_give_the_same_with_a_warning() -> None:
    solved = Rod(crooked()).solve()
    with pytest.warns(DeprecationWarning, match="RodPose.positions"):
        assert solved.places is solved.positions
    with pytest.warns(DeprecationWarning, match="RodPose.rotations"):
        assert solved.turns is solved.rotations
