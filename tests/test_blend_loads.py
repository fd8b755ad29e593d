"""Anchors, pins, pulls, forces, knots and processes: what holds a blend, what drags it, and where frames start."""

import pickle

import numpy as np
import pytest

from pliant import Blendshapes, InputError, Mesh, PliantWarning, Pull, Shapes, gallery
from pliant.core import rotations
from pliant.engines.blend.anchor import anchor_point, centre_of_mass, rigid_motion
from pliant.geometry import quality

RNG = np.random.default_rng(11)
HALF = [0.5, 0.5]


def pair(shapes: Shapes, target: str) -> Shapes:
    return Shapes.of([shapes.base, shapes.named(target)], [shapes.names[0], target])


@pytest.fixture(scope="module")
def tube() -> Blendshapes:
    return Blendshapes(pair(gallery.tube(800), "bent 120"))


@pytest.fixture(scope="module")
def face() -> Blendshapes:
    return Blendshapes(pair(gallery.face(900), "smile"))


def energy_and_force(rig: Blendshapes, weights) -> tuple[float, np.ndarray]:
    body, w = rig.body, rig.weights(weights)
    force = np.empty((body.network.count, 3))
    return body.network.energy(body.guess(w), body.rest(w), force), force


# Anchors


def test_the_centre_of_mass_of_a_box_is_its_middle():
    box = gallery.box(600)
    box = box.with_points(box.points + np.array([3.0, -2, 5]))
    assert np.allclose(centre_of_mass(box), (box.points.min(axis=0) + box.points.max(axis=0)) / 2)


def test_an_anchor_is_put_inside_even_where_the_centre_of_mass_is_not():
    bent = gallery.bar(900).named("bent 180")
    place, depth = anchor_point(bent)
    from pliant.geometry.spatial import SurfaceTree

    assert SurfaceTree(bent).inside(place[None]).all()
    assert depth > 0


def test_an_anchored_part_comes_back_at_every_shape(tube):
    assert len(tube.anchors) == 1
    for which in (0, 1):
        pose = tube.solve(np.eye(2)[which])
        assert np.abs(pose.points - tube.shapes.points[which]).max() < 1e-6 * tube.shapes.base.diagonal


def test_the_reversed_solve_finds_a_rigid_motion(tube):
    """A shape that only turned has its anchor where the turn took it."""
    from pliant.engines.blend.anchor import anchor_springs, make_anchors

    base = tube.shapes.base
    (anchor,) = make_anchors(base, base.points[None], np.zeros(len(base.points), dtype=bool), "auto")
    R = rotations.matrix(rotations.from_axis_angle([1.0, -2, 0.5], 2.0))
    moved = base.points @ R.T + [1, 2, 3]
    springs = anchor_springs(anchor, base.points, np.arange(len(base.points)), len(base.points))
    turn, centre = rigid_motion(anchor, base.points, moved, springs)
    assert np.allclose(rotations.matrix(turn), R, atol=1e-6)
    assert np.allclose(centre, R @ anchor.centre + [1, 2, 3], atol=1e-6)


def test_the_anchor_keeps_its_place_on_the_way(tube):
    """Near the anchor the body moves as the anchor does: turned by half the angle, halfway between its places."""
    base, body = tube.shapes.base, tube.body
    corners = np.flatnonzero(body.network.fixed)[-4:]
    w = tube.weights(HALF)
    placed = body.frames.placed(body.points[0], w)[corners]
    middle = body.frames.centres[:, 0].mean(axis=0)
    assert np.allclose(placed.mean(axis=0), middle, atol=1e-9 * base.diagonal)


@pytest.mark.parametrize("where", ["auto", "left"])
def test_anchors_change_the_frame_but_hardly_the_shape(tube, where):
    base = tube.shapes.base
    left = base.points[base.points[:, 0] < np.quantile(base.points[:, 0], 0.1)].mean(axis=0)
    rig = Blendshapes(tube.shapes, anchor=left if where == "left" else where)
    assert len(rig.anchors) == 1
    points = rig.solve(HALF).points
    other = Blendshapes(tube.shapes, anchor="none").solve(HALF).points
    R, t = rotations.match_rigid(points, other)
    assert np.abs(points @ R.T + t - other).max() < 2e-3 * rig.shapes.base.diagonal


@pytest.mark.parametrize(
    ("anchor", "message"), [("middle", "anchor is"), ((1, 2), "anchor is"), ((np.nan, 0, 0), "anchor is")]
)
def test_wrong_anchors_are_named(anchor, message):
    with pytest.raises(InputError, match=message):
        Blendshapes(pair(gallery.bar(600), "bent 90"), anchor=anchor)


def test_an_anchor_in_a_part_that_is_held_is_refused(face):
    with pytest.raises(InputError, match="leave the anchor out"):
        Blendshapes(face.shapes, anchor=(0.0, 0.0, 0.0))


# Pins


def test_pins_take_straight_lines_or_the_places_they_are_given(tube):
    shapes = tube.shapes
    left = np.flatnonzero(shapes.points[0][:, 0] < shapes.points[0][:, 0].min() + 1e-6)
    rig = Blendshapes(shapes, pins=left)
    halfway = shapes.points[:, left].mean(axis=0)
    assert np.allclose(rig.solve(HALF).points[left], halfway)
    up = halfway + np.array([0, 0, 0.2])
    pose = rig.solve(HALF, pinned=up)
    assert pose.converged
    assert np.allclose(pose.points[left], up)
    assert np.abs(pose.points - rig.solve(HALF).points - [0, 0, 0.2]).max() < 1e-3 * shapes.base.diagonal
    clip = rig.animate(steps=3, pinned=np.stack([halfway, up, halfway]))
    assert np.allclose(clip.points[1], pose.points)
    with pytest.raises(InputError, match="pinned has shape"):
        rig.solve(HALF, pinned=up[:2])
    with pytest.raises(InputError, match="as many frames as there are weights"):
        rig.animate(steps=4, pinned=np.stack([halfway, up]))


# Pulls and forces


@pytest.mark.parametrize("weights", [[1.0, 0.0], HALF])
@pytest.mark.parametrize("method", ["lbfgs", "newton"])
def test_a_pulled_vertex_is_where_it_was_pulled_and_the_rest_follows(face, weights, method):
    base = face.shapes.base
    nose = int(np.argmax(base.points[:, 2]))
    free = face.solve(weights).points
    to = free[nose] + np.array([0.3, 0.1, 1.0]) * 0.05 * base.diagonal
    pose = face.solve(weights, pulls=[Pull(nose, to=to)], method=method)
    assert pose.converged
    assert np.allclose(pose.points[nose], to)
    moved = np.linalg.norm(pose.points - free, axis=1)
    ring = np.setdiff1d(np.unique(base.edges[(base.edges == nose).any(axis=1)]), [nose])
    assert moved.argmax() == nose
    assert moved[ring].min() > 0.2 * moved[nose]  # its neighbours come along
    still = np.abs(face.shapes.points - face.shapes.points[0]).max(axis=(0, 2)) == 0
    assert moved[still].max() < 1e-9 * base.diagonal  # the rim stays


def test_a_force_moves_a_vertex_its_way_and_more_force_moves_it_farther(face):
    base = face.shapes.base
    nose = int(np.argmax(base.points[:, 2]))
    free = face.solve(HALF).points[nose]
    moved = [face.solve(HALF, pulls=[Pull(nose, force=(0, 0, f))]).points[nose] - free for f in (0.25, 0.5, 1.0)]
    assert all(step[2] > 0.9 * np.linalg.norm(step) for step in moved)
    lengths = np.linalg.norm(moved, axis=1)
    assert (np.diff(lengths) > 0).all()


@pytest.mark.slow
def test_a_place_and_the_force_that_leads_there_are_one_equilibrium(face):
    rig = Blendshapes(face.shapes, model="paper")
    nose = int(np.argmax(rig.shapes.base.points[:, 2]))
    forced = rig.solve(HALF, pulls=[Pull(nose, force=(0.02, 0, 0.1))], accuracy=1e-12, method="newton")
    held = rig.solve(HALF, pulls=[Pull(nose, to=forced.points[nose])], accuracy=1e-12, method="newton")
    assert forced.converged
    assert held.converged
    assert np.abs(held.points - forced.points).max() < 1e-5 * rig.shapes.base.diagonal


def test_a_limb_can_be_dragged_far_round_without_being_stretched():
    """Springs that a pull has turned keep their length: the directions they remember turn along."""
    shapes = pair(gallery.tube(800), "bent 120")
    x = shapes.points[0][:, 0]
    rig = Blendshapes(shapes, pins=np.flatnonzero(x < np.quantile(x, 0.2)))
    tip = int(np.argmax(x))
    p = shapes.points[0]
    to = [p[:, 0].mean(), p[tip, 1], np.ptp(x) * 0.55]
    pose = rig.solve([1.0, 0.0], pulls=[Pull(tip, to=to)])
    assert pose.converged
    edges = quality.edge_distortion(shapes.base, pose.points)
    assert np.abs(edges - 1).mean() < 0.05


@pytest.mark.parametrize("method", ["newton", "paper"])
def test_methods_agree_under_a_load(tube, method):
    tip = int(np.argmax(tube.shapes.base.points[:, 0]))
    to = tube.solve(HALF).points[tip] + 0.1 * tube.shapes.base.diagonal
    exact = tube.solve(HALF, pulls=[Pull(tip, to=to)], accuracy=1e-12)
    pose = tube.solve(HALF, pulls=[Pull(tip, to=to)], accuracy=1e-9, method=method, start=network_shape(tube, to, tip))
    assert exact.converged
    assert pose.converged
    assert np.abs(pose.points - exact.points).max() < 1e-5 * tube.shapes.base.diagonal


def network_shape(rig: Blendshapes, to: np.ndarray, tip: int) -> np.ndarray:
    """Where L-BFGS leaves all vertices of a dragged shape: near enough for Newton–Raphson, which needs that."""
    seen = []
    rig.solve(HALF, pulls=[Pull(tip, to=to)], watch=lambda x, _: seen.append(x))
    return seen[-1]


def test_the_smallest_load_moves_a_shape_the_least(tube):
    """Shapes follow a load from where they are without it, in proportion while it is small."""
    free = tube.solve(HALF).points
    tip = int(np.argmax(tube.shapes.base.points[:, 0]))
    out = np.array([0.3, 1.0, 0.2])
    moved = [
        np.linalg.norm(tube.solve(HALF, pulls=[Pull(tip, to=free[tip] + s * out)]).points - free, axis=1).mean()
        for s in (1e-6, 1e-4, 1e-3)
    ]
    assert moved[1] / moved[0] == pytest.approx(100, rel=0.05)
    assert moved[2] / moved[1] == pytest.approx(10, rel=0.1)


def test_several_pulls_in_a_clip_by_frame(face):
    base = face.shapes.base
    nose, chin = int(np.argmax(base.points[:, 2])), int(np.argmin(base.points[:, 1] - base.points[:, 2]))
    out = base.points[nose] + [0, 0, 0.1 * base.diagonal]
    clip = face.animate(steps=3, pulls=lambda k: [Pull(nose, to=out), Pull(chin, force=(0, -0.1, 0))] if k == 1 else [])
    plain = face.animate(steps=3)
    assert np.array_equal(clip.points[[0, 2]], plain.points[[0, 2]])
    assert np.allclose(clip.points[1, nose], out)


def test_pulling_what_nothing_holds_is_refused(tube):
    rig = Blendshapes(tube.shapes, anchor="none")
    with pytest.raises(InputError, match="has no fixed vertices"):
        rig.solve(HALF, pulls=[Pull(3, to=(0, 0, 0))])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pull(1), "a position or a force"),
        (lambda: Pull(1, to=(0, 0, 0), force=(0, 0, 1)), "a position or a force"),
        (lambda: Pull(1, to=(0, 0)), "three finite numbers"),
        (lambda: Pull(1, force=(0, np.inf, 0)), "three finite numbers"),
        (lambda: Pull("nose", to=(0, 0, 0)), "vertex number"),
    ],
)
def test_wrong_pulls_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_forces_on_what_is_held_and_starts_in_one_place_are_refused(face):
    still = int(np.flatnonzero(face.body.network.fixed)[0])
    with pytest.raises(InputError, match="which is fixed"):
        face.solve(HALF, pulls=[Pull(int(face._weld.kept[still]), force=(0, 0, 1))])
    with pytest.raises(InputError, match="at one point"):
        face.solve(HALF, start=np.zeros((face.body.network.count, 3)))


def test_pulls_of_vertices_that_are_not_there(face):
    with pytest.raises(InputError, match="numbered from 0"):
        face.solve(HALF, pulls=[Pull(10**6, to=(0, 0, 0))])
    with pytest.raises(InputError, match="expected Pull"):
        face.solve(HALF, pulls=[(1, 2, 3)])


# Knots, paths, processes


def test_frames_do_not_depend_on_what_was_asked_before():
    shapes = pair(gallery.gingerbread(900), "walking")
    weights = [0.3, 0.55, 0.8]
    one = Blendshapes(shapes)
    forwards = [one.solve([1 - t, t]).points for t in weights]
    for t, points in zip(weights, forwards, strict=True):
        assert np.array_equal(Blendshapes(shapes).solve([1 - t, t]).points, points)


def test_frames_that_start_from_knots_are_nearer_to_equilibrium():
    rig = Blendshapes(pair(gallery.gingerbread(900), "bowing"), model="paper")
    w = rig.weights([0.7, 0.3])
    guess = rig.solve(w, start=rig.body.guess(w))
    assert rig.solve([0.7, 0.3]).iterations < guess.iterations


def test_knots_that_were_dropped_are_found_again(monkeypatch):
    shapes = pair(gallery.gingerbread(900), "walking")
    kept = Blendshapes(shapes).animate(steps=9).points
    monkeypatch.setattr("pliant.engines.blend.statics.KNOT_MEMORY", 1)
    rig = Blendshapes(shapes)
    assert np.array_equal(rig.animate(steps=9).points, kept)
    assert np.array_equal(rig.animate(steps=9).points, kept)
    assert len(rig.statics.correctives._knots) <= 8


def test_a_path_leads_through_all_shapes():
    rig = Blendshapes(Shapes.of(list(gallery.bar(600))[:3]))
    path = rig.path(5)
    assert np.allclose(path, [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]])
    assert np.allclose(rig.path(1), [[1, 0, 0]])
    with pytest.raises(InputError, match="steps"):
        rig.path(0)


def test_processes_give_what_one_process_gives(face):
    nose = int(np.argmax(face.shapes.base.points[:, 2]))
    pulls = [Pull(nose, force=(0, 0, 0.5))]
    alone = face.animate(steps=3, pulls=pulls)
    together = face.animate(steps=3, jobs=2, pulls=pulls)
    assert np.allclose(alone.points, together.points, atol=1e-9 * face.shapes.base.diagonal)
    with pytest.raises(InputError, match="jobs"):
        face.animate(steps=2, jobs=0)


def test_rigs_pickle(tube):
    copy = pickle.loads(pickle.dumps(tube))
    pull = Pull(0, to=tube.solve(HALF).points[0] + 0.1)
    assert np.allclose(copy.solve(HALF, pulls=pull).points, tube.solve(HALF, pulls=pull).points, atol=1e-9)
    assert np.allclose(copy.solve(HALF).points, tube.solve(HALF).points, atol=1e-9 * tube.shapes.base.diagonal)


# Models


@pytest.mark.parametrize("model", ["turned", "paper"])
def test_both_models_return_the_shapes_without_force(model):
    rig = Blendshapes(pair(gallery.gingerbread(900), "bowing"), model=model)
    for which in (0, 1):
        energy, force = energy_and_force(rig, np.eye(2)[which])
        assert energy < 1e-20 * float(np.sum(rig.springs.stiffness * rig.springs.rest[which] ** 2)) + 1e-20
        assert np.abs(force).max() < 1e-8


def test_the_paper_model_blends_rest_lengths_as_equation_1_says():
    rig = Blendshapes(pair(gallery.gingerbread(900), "bowing"), model="paper", interior="none", anchor="none")
    w = rig.weights([0.4, 0.6])
    rest = rig.body.rest(w)
    assert np.allclose(rest.lengths, w @ rig.springs.rest)
    assert rest.direction_stiffness == 0


def test_turned_lengths_never_exceed_the_blended_ones():
    """The triangle inequality: why Eq. (1) makes bodies swell."""
    rig = Blendshapes(pair(gallery.gingerbread(900), "bowing"))
    w = rig.weights(HALF)
    turned, blended = rig.body.rest(w).lengths, w @ rig.springs.rest
    assert (turned <= blended * (1 + 1e-9))[~rig.springs.of_kind("bending")].all()  # those are sums of two edges
    assert turned.sum() < blended.sum()


@pytest.mark.parametrize("method", ["lbfgs", "newton", "paper"])
@pytest.mark.parametrize("model", ["turned", "paper"])
def test_methods_agree(method, model):
    rig = Blendshapes(pair(gallery.tube(800), "bent 120"), model=model)
    accuracy = 1e-9 if method == "paper" else 1e-14
    exact = rig.solve([0.6, 0.4], method="newton", accuracy=1e-14)
    pose = rig.solve([0.6, 0.4], method=method, accuracy=accuracy)
    assert pose.converged
    assert np.abs(pose.points - exact.points).max() < 1e-5 * rig.shapes.base.diagonal


def test_an_unknown_model_is_named():
    with pytest.raises(InputError, match="model is"):
        Blendshapes(pair(gallery.bar(600), "bent 90"), model="best")


def test_wings_beat_the_right_way():
    """Two limbs that turn by 150° in opposite senses outweigh the body, and must not turn it over."""
    body = gallery.box(2400)
    p = body.points * [1, 0.1, 0.5]
    angle = np.radians(150) * np.clip((np.abs(p[:, 0]) - 0.1) / 0.2, 0, 1)
    sign = np.sign(p[:, 0])

    def flapped(share: float) -> np.ndarray:
        a = share * sign * angle
        hinge = 0.2 * sign
        x, y = p[:, 0] - hinge, p[:, 1]
        return np.stack([hinge + x * np.cos(a) - y * np.sin(a), x * np.sin(a) + y * np.cos(a), p[:, 2]], axis=1)

    down, up = Mesh(flapped(-0.5), body.triangles), Mesh(flapped(0.5), body.triangles)
    rig = Blendshapes([down, up])
    middle = rig.solve(HALF).points
    tips = np.abs(p[:, 0]) > 0.45
    R, t = rotations.match_rigid(middle, flapped(0.0))
    off = np.linalg.norm(middle @ R.T + t - flapped(0.0), axis=1)
    assert off[tips].max() < 0.15


def test_a_turntable_given_as_keys_goes_on_turning():
    bar = gallery.bar(600).base
    keys = [bar.with_points(bar.points @ turn(angle).T) for angle in (0, 120, 240, 360)]
    rig = Blendshapes(keys)
    for frame, angle in zip(rig.animate(steps=13).points, np.linspace(0, 360, 13), strict=True):
        assert np.abs(frame - bar.points @ turn(angle).T).max() < 1e-3 * bar.diagonal


def turn(degrees: float) -> np.ndarray:
    return rotations.matrix(rotations.from_axis_angle([0.0, 0, 1], np.radians(degrees)))


def test_vertices_may_be_numbered_in_any_order(tube):
    """A free part is placed by its middle, not by one of its vertices."""
    order = np.arange(len(tube.shapes.base.points))[::-1]
    backwards = [Mesh(points[order], order[tube.shapes.base.triangles]) for points in tube.shapes.points]
    there = Blendshapes(backwards, anchor="none", interior="none").solve(HALF, accuracy=1e-10).points
    forwards = [Mesh(points, tube.shapes.base.triangles) for points in tube.shapes.points]
    here = Blendshapes(forwards, anchor="none", interior="none").solve(HALF, accuracy=1e-10).points
    assert np.abs(there - here[order]).max() < 1e-4 * tube.shapes.base.diagonal


def test_a_force_of_nothing_changes_nothing(face):
    assert np.array_equal(face.solve(HALF, pulls=[Pull(5, force=(0, 0, 0))]).points, face.solve(HALF).points)


def test_both_halves_of_a_seam_may_be_pulled_to_one_place(face):
    base = face.shapes.base
    split = Mesh(np.concatenate([base.points, base.points[5:6]]), base.triangles)
    both = [split, split.with_points(np.concatenate([face.shapes.points[1], face.shapes.points[1][5:6]]))]
    rig = Blendshapes(both)
    to = base.points[5] + 0.05
    twice = [Pull(5, to=to), Pull(5, to=to)]
    assert np.allclose(rig.solve(HALF, pulls=twice).points[5], to)


def test_a_pulled_shape_is_near_its_equilibrium_at_the_default_accuracy(tube):
    tip = int(np.argmax(tube.shapes.base.points[:, 0]))
    pull = Pull(tip, to=tube.solve(HALF).points[tip] + 0.1 * tube.shapes.base.diagonal)
    exact = tube.solve(HALF, pulls=pull, accuracy=1e-12).points
    assert np.abs(tube.solve(HALF, pulls=pull).points - exact).max() < 1e-3 * tube.shapes.base.diagonal


def test_two_places_for_one_vertex_are_refused(face):
    with pytest.raises(InputError, match="two positions"):
        face.solve(HALF, pulls=[Pull(5, to=(0, 0, 1)), Pull(5, to=(0, 0, 2))])


def test_an_anchor_outside_is_refused(tube):
    with pytest.raises(InputError, match="outside the base shape"):
        Blendshapes(tube.shapes, anchor=(100.0, 0, 0))


def test_a_clip_says_that_frames_did_not_converge():
    rig = Blendshapes(pair(gallery.gingerbread(900), "bowing"), model="paper")
    with pytest.warns(PliantWarning, match="did not converge"):
        rig.animate(steps=3, iterations=1, accuracy=1e-8)


def test_a_residual_says_how_much_of_linear_blendings_force_is_left(tube):
    assert tube.solve([1.0, 0.0]).residual < 1e-3
    assert tube.solve(HALF, accuracy=1e-8).residual < 1e-3


@pytest.mark.parametrize("options", [{"iterations": 0}, {"accuracy": 2}, {"method": "best"}, {"pinned": [[0, 0, 0]]}])
def test_wrong_options_are_named(face, options):
    with pytest.raises(InputError, match=next(iter(options))):
        face.solve(HALF, **options)


@pytest.mark.parametrize("weights", [["a", "b"], [np.nan, 0], [1, 2, 3, 4]])
def test_wrong_weights_are_named(face, weights):
    with pytest.raises(InputError, match="weights"):
        face.solve(weights)
