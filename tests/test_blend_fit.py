"""Derivatives of blended shapes by their sliders, and fits of sliders to what was seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pliant
from pliant import Pull, gallery, rotations
from pliant.app.cli import main as command
from pliant.contact import Box, Sphere
from pliant.engines.blend import LiveBlend, fit as blend_fit
from pliant.engines.blend.fit import bounded_step

STEP = 1e-4


def main(arguments):
    with pytest.raises(SystemExit) as ended:
        command(arguments)
    return ended.value.code


def two_balls() -> list[pliant.Mesh]:
    """Two parts that nothing holds, the second of which rotates and grows."""
    one = gallery.sphere(500)
    count = len(one.points)
    faces = np.concatenate([one.triangles, one.triangles + count])
    turn = rotations.matrix(rotations.exp([0.4, 0.9, -0.3]))
    apart = np.array([3.0, 0, 0])
    poses = [
        np.concatenate([one.points, one.points + apart]),
        np.concatenate([one.points * [1.1, 0.9, 1], (1.2 * one.points) @ turn.T + apart + [0, 0.5, 0]]),
        np.concatenate([one.points + np.array([0, 0, 0.3]), one.points * [0.8, 1, 1.1] + apart]),
    ]
    return [pliant.Mesh(points, faces) for points in poses]


RIGS = {
    "bar": lambda: pliant.Blendshapes(gallery.bar(500)),
    "paper": lambda: pliant.Blendshapes(gallery.bar(500), model="paper"),
    "pinned": lambda: pliant.Blendshapes(gallery.bar(500), pins=[0, 1, 2, 3]),
    "hand": lambda: pliant.Blendshapes(gallery.hand(500)),
    "loose parts": lambda: pliant.Blendshapes(two_balls(), anchor="none"),
    "anchored parts": lambda: pliant.Blendshapes(two_balls()),
}


@pytest.fixture(scope="module", params=list(RIGS))
def rig(request):
    return RIGS[request.param]()


@pytest.fixture(scope="module")
def hand():
    return pliant.Blendshapes(gallery.hand(500))


def difference(rig, sliders, change, **options):
    """(n, 3) how the shape moves along a change of the sliders, by a central difference."""
    ends = [rig.jacobian(sliders + k * STEP * change, **options).pose.points for k in (-1, 1)]
    return (ends[1] - ends[0]) / (2 * STEP)


def check(found, expected, change):
    """Of all products."""
    assert np.abs(found.matrix @ change - expected).max() < 1e-5 * np.abs(expected).max()
    gradient = np.cos(np.arange(expected.size)).reshape(expected.shape)
    np.testing.assert_allclose(found.forward(change), found.matrix @ change, atol=1e-10)
    np.testing.assert_allclose(found.backward(gradient), np.einsum("nk,nks->s", gradient, found.matrix), atol=1e-9)


def test_the_jacobian_is_what_differences_say(rig):
    sliders = np.linspace(0.15, 0.3, len(rig.sliders.names))
    change = np.cos(1.0 + np.arange(len(sliders)))
    check(rig.jacobian(sliders), difference(rig, sliders, change), change)


@pytest.mark.parametrize("pulled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_jacobian_in_contact(hand, pulled):
    """The shape slides on a ball; where it touches nothing, it moves as it does by itself."""
    sliders, change = np.array([0.1, 0.3, 0.05, 0.1, 0.2]), np.cos(1.0 + np.arange(5))
    free = hand.solve(sliders).points
    tip, size = int(np.argmax(free[:, 1])), 2 * hand.body.diagonal
    options = {"obstacles": [Sphere(free[tip] + np.array([0, 0.04, 0.2]) * size, 0.2 * size)]}
    if pulled:
        options["pulls"] = [Pull(0, to=free[0] + 0.002)]
    found = hand.jacobian(sliders, **options)
    assert found.pose.converged
    assert found.pose.contacts > 3
    assert np.abs(found.pose.points - free).max() > 0.005 * size
    solved = hand.solve(sliders, accuracy=1e-6, **options).points
    assert np.abs(found.pose.points - solved).max() < 1e-3 * hand.body.diagonal
    ends = [hand.jacobian(sliders + k * 1e-5 * change, **options).pose.points for k in (-1, 1)]
    expected = (ends[1] - ends[0]) / 2e-5
    assert np.abs(found.matrix @ change - expected).max() < 1e-6 * np.abs(expected).max()
    gradient = np.cos(np.arange(expected.size)).reshape(expected.shape)
    np.testing.assert_allclose(found.forward(change), found.matrix @ change, atol=1e-12)
    np.testing.assert_allclose(found.backward(gradient), np.einsum("nk,nks->s", gradient, found.matrix), atol=1e-10)
    away = hand.jacobian(sliders, obstacles=[Sphere(free[tip] + [0, 3 * size, 0], 0.08 * size)])
    np.testing.assert_allclose(away.matrix, hand.jacobian(sliders).matrix, atol=1e-6)


def test_there_is_no_jacobian_at_edges_and_an_unsettled_one_is_told(hand, monkeypatch):
    with pytest.raises(pliant.InputError, match="no derivative against boxes"):
        hand.jacobian([0.1] * 5, obstacles=[Box((0, 9, 0), (1, 1, 1))])
    monkeypatch.setattr("pliant.engines.blend.pressed.MOST_NEWTON_STEPS", 1)
    tip = hand.shapes.base.points[np.argmax(hand.shapes.base.points[:, 1])]
    ball = Sphere(tip + np.array([0, 0.05, 0.2]) * hand.body.diagonal, 0.22 * hand.body.diagonal)
    with pytest.warns(pliant.PliantWarning, match="not converged"):
        assert not hand.jacobian([0.1] * 5, obstacles=[ball]).pose.converged


@pytest.mark.parametrize("force", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_jacobian_under_pulls(force):
    bar = gallery.bar(500)
    rig = pliant.Blendshapes([bar[0], bar[1], bar[3]])
    sliders = np.array([0.4, 0.3])
    tip = int(np.argmax(rig.shapes.base.points[:, 1]))
    at = rig.solve(sliders).points[tip]
    options = {"pulls": [Pull(tip, force=(0.1, 0, 0.2)) if force else Pull(tip, to=at + 0.1)]}
    change = np.array([0.7, -1.0])
    check(rig.jacobian(sliders, **options), difference(rig, sliders, change, **options), change)


def test_the_jacobian_of_inbetweens_and_combinations():
    base = gallery.bar(500).base

    def bent(by, twist):
        x, y, z = base.points.T
        angle = twist * y
        return base.with_points(np.stack([x * np.cos(angle) - z * np.sin(angle) + by * y**2, y, z], axis=1))

    shapes = pliant.Shapes.of([base, bent(1.0, 0), bent(0.3, 0), bent(0, 1.0), bent(1.2, 1.0)])
    shapes = pliant.Shapes(shapes.base, shapes.points, ("base", "lean", "lean50", "turn", "lean_turn"))
    rig = pliant.Blendshapes(shapes)
    found = rig.jacobian({"lean": 0.7, "turn": 0.4})
    assert found.sliders == rig.sliders.names == ("lean", "turn")
    for k, name in enumerate(found.sliders):
        ends = [rig.jacobian({"lean": 0.7, "turn": 0.4} | {name: v}).pose.points
                for v in np.array([0.7, 0.4])[k] + np.array([-1, 1]) * STEP]  # fmt: skip
        np.testing.assert_allclose(found.matrix[..., k], (ends[1] - ends[0]) / (2 * STEP), atol=1e-5)


TRUE = np.array([0.0, 0.6, 0.2, 0.4, 0.1])
TURN, AWAY = rotations.matrix(rotations.exp([0.5, -1.1, 0.4])), np.array([3.0, -1.0, 0.5])


@pytest.fixture(scope="module")
def seen(hand):
    return hand.solve(TRUE, accuracy=1e-8).points @ TURN.T + AWAY


def test_a_mesh_gives_its_sliders_and_its_rigid_motion(hand, seen):
    found = hand.fit(hand.shapes.base.with_points(seen))
    assert found.converged == (True,)
    np.testing.assert_allclose(found.weights.values[0], TRUE, atol=2e-3)
    np.testing.assert_allclose(found.rotations[0], TURN, atol=2e-3)
    np.testing.assert_allclose(found.clip.points[0], seen, atol=1e-3 * hand.body.diagonal)
    assert found.errors[0] < 0.05 * found.linear_errors[0]


def test_markers_may_be_missing_lie_on_faces_and_be_noisy(hand, seen):
    rng = np.random.default_rng(0)
    triangle, share = rng.integers(0, len(hand.shapes.base.triangles), 60), rng.dirichlet(np.ones(3), 60)
    points = np.einsum("kc,kcd->kd", share, seen[hand.shapes.base.triangles[triangle]])
    points[::7] = np.nan
    found = hand.fit(points, markers=(triangle, share))
    np.testing.assert_allclose(found.weights.values[0], TRUE, atol=5e-3)
    noise = rng.normal(size=seen.shape) * 2e-3 * hand.body.diagonal
    noisy = hand.fit(seen + noise)
    np.testing.assert_allclose(noisy.weights.values[0], TRUE, atol=0.03)
    assert noisy.errors[0] <= np.sqrt((noise**2).sum(axis=1).mean())  # the truth is no better


def test_a_scan_needs_neither_correspondence_nor_alignment(hand, seen):
    rng = np.random.default_rng(1)
    triangles = hand.shapes.base.triangles
    corners, share = seen[triangles[rng.integers(0, len(triangles), 3000)]], rng.dirichlet(np.ones(3), 3000)
    points = np.einsum("kc,kcd->kd", share, corners) + rng.normal(size=(3000, 3)) * 2e-3 * hand.body.diagonal
    points = points[points[:, 0] > np.quantile(points[:, 0], 0.2)]
    found = hand.fit(pliant.PointCloud(points))
    np.testing.assert_allclose(found.weights.values[0], TRUE, atol=0.05)
    np.testing.assert_allclose(found.rotations[0], TURN, atol=0.02)
    assert found.errors[0] < 2.5e-3 * hand.body.diagonal


@pytest.mark.slow
def test_an_aligned_part_of_a_scan_stays_where_it_is(hand):
    points = hand.solve(TRUE, accuracy=1e-8).points
    corners = points[hand.shapes.base.triangles]
    whole = np.concatenate([points, corners.mean(axis=1), (corners + np.roll(corners, 1, axis=1)).reshape(-1, 3) / 2])
    for axis in (0, 1):
        part = whole[whole[:, axis] > np.median(whole[:, axis])]
        found = hand.fit(pliant.PointCloud(part))
        np.testing.assert_allclose(found.rotations[0], np.eye(3), atol=0.1)
        assert found.errors[0] < 2e-3 * hand.body.diagonal


def test_a_frame_that_shows_nothing_is_as_those_around_it(hand):
    t = np.linspace(0, 1, 5)
    table = np.stack([0 * t, 0.8 * t, 0 * t, 0.3 * t, 0 * t], axis=1)
    frames = hand.animate(table).points[:, ::10].copy()
    frames[2] = np.nan
    with pytest.warns(pliant.PliantWarning, match="1 frames show less than 3 points, the first of them frame 2"):
        found = hand.fit(frames, markers=np.arange(0, 500, 10), smoothness=1e-8)
    np.testing.assert_allclose(found.weights.values, table, atol=0.02)


def test_a_bounded_step_is_the_least_there_is():
    """Nothing is lacking where it is free to change, and bounds are pushed against."""
    rng, at_bounds = np.random.default_rng(3), 0
    for count in (1, 7, 40, *range(2, 60)):
        root = rng.normal(size=(count, count))
        N, g = root @ root.T + 1e-3 * np.eye(count), 10 * rng.normal(size=count)
        low, high = -rng.uniform(0, 0.3, count), rng.uniform(0, 0.3, count)
        low[0] = high[0] = 0.0
        high[1::5] = np.inf
        step = bounded_step(N, g, low, high)
        force, slight = -(N @ step + g), 1e-7 * np.abs(g).max()
        assert ((low <= step) & (step <= high)).all()
        assert (force[step < high - 1e-9] < slight).all()
        assert (force[step > low + 1e-9] > -slight).all()
        at_bounds += np.count_nonzero(np.abs(force) > slight)
    assert at_bounds > 10


def test_markers_alone_take_part(hand, seen, monkeypatch):
    """A fit to markers keeps no derivative of other vertices."""
    shapes, markers = [], np.arange(3, 500, 7)
    taken = blend_fit.FrameFit.take
    monkeypatch.setattr(blend_fit.FrameFit, "take", lambda *a: taken(*a) or shapes.append(a[0].columns.shape))
    found = hand.fit(seen[markers], markers=markers)
    assert shapes
    assert {shape[0] for shape in shapes} == {len(markers)}
    np.testing.assert_allclose(found.clip.points[0], seen, atol=2e-3 * hand.body.diagonal)


def test_what_does_not_belong_is_said(hand, seen):
    markers = np.arange(0, 500, 10)
    swapped = seen[markers].copy()
    swapped[[3, 40]] = swapped[[40, 3]]
    with pytest.warns(pliant.PliantWarning, match="away from"):
        hand.fit(swapped, markers=markers)
    with pytest.warns(pliant.PliantWarning, match="they count from 0"):
        hand.fit(np.roll(seen, 200, axis=0))


def test_bounds_and_sparsity():
    hand = pliant.Blendshapes(gallery.hand(500))
    seen = hand.solve([0, 1.2, 0, 0, -0.2], accuracy=1e-8).points
    inside = hand.fit(seen, rigid=False).weights.values[0]
    assert (inside >= 0).all()
    assert (inside <= 1).all()
    np.testing.assert_allclose(
        hand.fit(seen, bounds=(-1, 2), rigid=False).weights.values[0], [0, 1.2, 0, 0, -0.2], atol=0.01
    )
    noisy = seen + np.random.default_rng(2).normal(size=seen.shape) * 1e-3
    dense, sparse = (hand.fit(noisy, sparsity=s, rigid=False).weights.values[0] for s in (0, 1e-5))
    assert (sparse > 1e-6).sum() <= (dense > 1e-6).sum()
    assert sparse.sum() < dense.sum()


@pytest.mark.slow
def test_a_clip_is_smoothed_where_markers_are_missing(hand):
    t = np.linspace(0, 1, 5)
    table = np.stack([0 * t, 0.8 * t, 0 * t, 0.3 * t, 0.5 * (1 - t)], axis=1)
    clip = hand.animate(table, fps=24)
    rng = np.random.default_rng(3)
    noisy = clip.points + rng.normal(size=clip.points.shape) * 1e-3 * hand.body.diagonal
    markers = np.arange(0, clip.points.shape[1], 20)
    frames = noisy[:, markers].copy()
    frames[2, 8:] = np.nan
    rough, smooth = (hand.fit(frames, markers=markers, smoothness=s).weights for s in (0.0, 1e-3))
    error = [np.abs(found.values - table).mean() for found in (rough, smooth)]
    assert error[1] < 0.5 * error[0]
    whole = hand.fit(clip)
    assert whole.weights.fps == 24
    np.testing.assert_allclose(whole.weights.values, table, atol=5e-3)


def test_sliders_follow_dragged_vertices_with_the_least_change(hand):
    live = LiveBlend(hand)
    goal = hand.solve({"fist": 0.5}).points
    tips = np.argsort(-np.linalg.norm(goal - hand.shapes.base.points, axis=1))[[0, 40, 90]]
    sliders = live.drag({}, {int(tip): goal[tip] for tip in tips})
    reached = hand.solve(sliders).points
    before = np.linalg.norm(hand.shapes.base.points[tips] - goal[tips], axis=1)
    assert (np.linalg.norm(reached[tips] - goal[tips], axis=1) < 0.1 * before).all()
    assert np.linalg.norm(list(sliders.values())) < 0.6  # fist alone is at 0.5
    assert live.drag(sliders, {}) == pytest.approx(sliders)
    far = live.drag(sliders, {int(tips[0]): goal[tips[0]] + 100.0})
    assert all(0 <= value <= 1 for value in far.values())
    beyond = hand.solve({"fist": 1.3}).points[tips[0]]
    assert live.drag({"fist": 1.3}, {int(tips[0]): beyond})["fist"] == pytest.approx(1.3, abs=0.01)
    with pytest.raises(pliant.InputError, match="a pull names vertex 9999"):
        live.drag({}, {9999: (0, 0, 0)})


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (np.zeros((2, 3)), {"markers": [0, 1]}, "2 points that are not missing"),
        (np.zeros((4, 3)), {"markers": [0, 1, 2, 10_000]}, "markers name vertex 10000; the rig has"),
        (np.zeros((4, 3)), {"markers": [0, 1, 2]}, "4 points for 3 markers"),
        (np.zeros((4, 3)), {}, r"say which vertices they are \(markers\)"),
        (np.zeros((2, 4, 3)), {}, r"say which vertices they are \(markers\)"),
        (np.zeros(4), {}, "expected points"),
        (np.eye(4, 3), {"markers": [0, 1, 2.5, 3]}, "expected vertex numbers"),
        (1e-3 * gallery.hand(500).base.points, {}, "expected the same units"),
        (pliant.PointCloud(1e3 * gallery.hand(700).base.points), {}, "expected the same units"),
        (np.zeros((4, 3)), {"markers": [0, 1, 2, 3], "bounds": (1, 0)}, "expected the lowest first"),
        (np.zeros((4, 3)), {"markers": [0, 1, 2, 3], "sparsity": -1}, "sparsity is -1"),
        (np.zeros((4, 3)), {"markers": ([0] * 4, np.zeros((3, 3)))}, "barycentric weights"),
    ],
)
def test_bad_observations_are_refused(hand, target, options, message):
    with pytest.raises(pliant.InputError, match=message):
        hand.fit(target, **options)


def test_the_command_writes_sliders_that_blend_takes(tmp_path, monkeypatch, capsys, hand):
    monkeypatch.chdir(tmp_path)
    pliant.write("rig.glb", hand.shapes)
    t = np.linspace(0, 1, 3)
    clip = hand.animate(np.stack([0 * t, 0.8 * t, 0 * t, 0.3 * t, 0 * t], axis=1), fps=24)
    pliant.write("seen.glb", clip)
    assert main(["fit", "rig.glb", "seen.glb", "-o", "found.csv", "--clip", "fitted.glb", "--quiet"]) == 0
    assert main(["blend", "rig.glb", "--weights", "found.csv", "-o", "again.glb", "--quiet"]) == 0
    again = pliant.read_animation("again.glb")
    assert again.fps == pytest.approx(24)
    for found in (again, pliant.read_animation("fitted.glb")):
        np.testing.assert_allclose(found.points, clip.points, atol=2e-3 * clip.shape.diagonal)
    rows = [
        f"{f},{v},{','.join(map(str, clip.points[f, v]))}" for f in range(3) for v in range(0, 500, 9) if (f + v) % 5
    ]
    (tmp_path / "markers.csv").write_text("frame,vertex,x,y,z\n" + "\n".join(rows))
    assert main(["fit", "rig.glb", "markers.csv", "-o", "found.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["frames"] == 3
    assert said["error"] < 0.05 * said["linear_error"]
    assert json.loads((tmp_path / "found.json").read_text())["weights"]["fist"][1] == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has no column vertex"),
        ("vertex,x,y,z\n", "has a header but no rows"),
        ("vertex,x,y,z\n-1,0,0,0\n", "line 2: expected whole numbers"),
        ("vertex,x,y,z\n1,0,0\n", "line 2: has 3 columns"),
        ("vertex,x,y,z,frame\n1,0,0,0,1e9\n", "line 2: frame 1000000000"),
        ("vertex,x,y,z\n0,0,0,0\n7,1,0,0\n9999,0,0,1\n", "markers name vertex 9999"),
    ],
)
def test_bad_tables_of_markers_are_one_line(tmp_path, monkeypatch, capsys, hand, text, message):
    monkeypatch.chdir(tmp_path)
    pliant.write("rig.glb", hand.shapes)
    (tmp_path / "markers.csv").write_text(text)
    assert main(["fit", "rig.glb", "markers.csv", "-o", "found.csv"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "found.csv").exists()


@pytest.mark.data
def test_a_real_rigs_own_clip_is_found_again(data):
    """Wings that beat: from the frame before alone, the fit is stuck 22 % away."""
    file = data / "poses" / "morph-glb" / "Parrot.glb"
    rig = pliant.Blendshapes(pliant.read_shapes(file))
    assert rig.fit(pliant.read_animation(file)).errors.max() < 1e-4 * rig.body.diagonal
