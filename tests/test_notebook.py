"""What Jupyter shows: the same points, in one piece of HTML that needs nothing from elsewhere and stays small."""

from __future__ import annotations

import base64
import html
import json
import re

import numpy as np
import pytest

import pliant
from pliant.render import notebook

BOX = pliant.gallery.box(500)
BAR = pliant.gallery.bar(500)
MOVES = pliant.Animation(BOX, [BOX.points * [1.0, 1.0 + 0.05 * k, 1.0] + [5.0 * k, 0, 0] for k in range(7)], 24.0)
TETS = pliant.TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])


def data_of(text):
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1])
    assert not re.search(r"https?://|<link|src=", page.split("const data")[0])
    return json.loads(re.search(r"const data = (.*);", page)[1])


def points_in(data):
    packed = np.frombuffer(base64.b64decode(data["points"]), "<u2").reshape(data["frames"], data["vertices"], 3)
    return (packed / 65535 - 0.5) * data["extent"]


def test_a_clip_is_all_there():
    data = data_of(MOVES._repr_html_())
    whole = MOVES.points - (MOVES.points.min(axis=(0, 1)) + MOVES.points.max(axis=(0, 1))) / 2
    np.testing.assert_allclose(points_in(data), whole / np.ptp(MOVES.points, axis=(0, 1)).max(), atol=1e-5)
    assert (data["fps"], data["numbers"]) == (24.0, list(range(7)))
    volume, edges, step = data["measures"]
    np.testing.assert_allclose(volume["values"], 1 + 0.05 * np.arange(7), rtol=1e-5)
    assert volume["caption"] == "volume 100.00% to 130.00%"
    stretch = [np.abs(pliant.quality.edge_distortion(BOX, points) - 1).mean() for points in MOVES.points]
    np.testing.assert_allclose(edges["values"], stretch, rtol=1e-5)
    assert edges["caption"].startswith("edges, mean change 0.00%")
    moved = np.linalg.norm(np.diff(MOVES.points, axis=0), axis=2).max(axis=1) / BOX.diagonal
    np.testing.assert_allclose(step["values"], [0, *moved], rtol=1e-5)
    triangles = np.frombuffer(base64.b64decode(data["triangles"]), "<u4")
    np.testing.assert_array_equal(triangles, BOX.triangles.reshape(-1))


@pytest.mark.parametrize(
    ("value", "frames"),
    [
        (lambda: BOX, 1),
        (lambda: TETS, 1),
        (lambda: pliant.PointCloud(BOX.points), 1),
        (lambda: pliant.PointCloud(np.zeros((0, 3))), 1),
        (lambda: BAR, 6),
        (lambda: pliant.Blendshapes([BAR[0], BAR[1]]), 2),
        (lambda: pliant.gallery.dinosaur_skeleton(), 1),
        (lambda: pliant.gallery.dinosaur_skeleton().rest_pose(), 1),
        (lambda: pliant.gallery.dinosaur_walk(5), 5),
        (lambda: pliant.Skeleton(("alone",), [-1], [[1.0, 2.0, 3.0]]), 1),
        (lambda: pliant.CageRig([[0.2, 0.2, 0.2]], TETS.surface), 1),
    ],
)
def test_whatever_has_a_shape_shows_itself(value, frames):
    value = value()
    data = data_of(value._repr_html_())
    assert data["frames"] == frames
    assert data["what"] == repr(value)


def test_poses_and_simulations_show_what_their_solver_measured():
    rig = pliant.Blendshapes([BAR[0], BAR[1]])
    pose = rig.solve([0.5, 0.5])
    data = data_of(pose._repr_html_())
    assert f"converged, residual {pose.residual:.2g}, {pose.iterations} iterations" in data["what"]
    assert data["measures"] == []
    blended = rig.animate([[1, 0], [0.5, 0.5]])
    found = {one["caption"].split(" ")[0]: one["values"] for one in data_of(blended._repr_html_())["measures"]}
    np.testing.assert_allclose(found["residual"], [blended.measured("residual")[0], pose.residual], rtol=1e-5)
    mesh = BAR[0]
    along = np.ptp(mesh.points, axis=0) == np.ptp(mesh.points, axis=0).max()
    middle, half = mesh.points.mean(axis=0), 0.4 * mesh.diagonal * along
    skeleton = pliant.Skeleton.from_positions([middle - half, middle + half], [-1, 0], ["root", "tip"])
    moves = np.tile(skeleton.offsets, (4, 1, 1))
    moves[:, 0, 0] += 0.1 * np.arange(4)
    motion = pliant.Motion(skeleton, np.tile([1.0, 0, 0, 0], (4, 2, 1)), moves, 24.0)
    clip = pliant.ElasticBody(mesh, skeleton, nodes=200).simulate(motion)
    measures = data_of(clip._repr_html_())["measures"]
    found = {measure["caption"].rsplit(" ", 3)[0]: measure["values"] for measure in measures}
    np.testing.assert_allclose(found["kinetic energy"], clip.measured("kinetic"), rtol=1e-5)
    assert {"volume", "edges, mean change", "largest step"} <= set(found)


def test_edges_without_length_spoil_no_plot():
    """Of a mesh with a doubled vertex, and of bones whose joints coincide."""
    clip = pliant.Animation(pliant.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 1, 2], [0, 3, 1]]), [
        [[0, 0, 0], [k, 0, 0], [0, k, 0], [0, 0, 0]] for k in (1, 2)
    ])  # fmt: skip
    edges = next(plot for plot in data_of(clip._repr_html_())["measures"] if plot["caption"].startswith("edges"))
    np.testing.assert_allclose(edges["values"], [0, 1])
    still = pliant.Skeleton.from_positions([[0, 0, 0], [0, 1, 0], [0, 1, 0]], [-1, 0, 1], ["root", "same", "tip"])
    motion = pliant.Motion(still, np.tile([1.0, 0, 0, 0], (2, 3, 1)), np.tile(still.offsets, (2, 1, 1)), 24.0)
    assert all(np.isfinite(plot["values"]).all() for plot in data_of(motion._repr_html_())["measures"])


def test_bones_are_where_their_joints_are():
    walk = pliant.gallery.dinosaur_walk(4)
    clip = notebook._clip_of(walk)
    joints = walk.world()[0]
    for frame in range(4):
        away = np.linalg.norm(clip.points[frame][:, None] - joints[frame][None], axis=2)
        assert away.min(axis=0).max() < 1e-9 * clip.shape.diagonal  # every joint is a corner of a bone
    assert clip.shape.is_watertight
    assert clip.shape.volume > 0


def test_text_of_a_name_does_not_act():
    named = pliant.Shapes(BOX, BOX.points[None], ("</script><b>",))
    text = named._repr_html_()
    assert "<b>" not in text
    assert data_of(text)["what"] == repr(named)


def test_long_clips_are_thinned_out_and_large_shapes_are_pictures(monkeypatch):
    monkeypatch.setattr(notebook, "LARGEST_VIEW", 3 * 6 * len(BOX.points))
    data = data_of(MOVES._repr_html_())
    assert data["numbers"] == [0, 3, 6]
    assert data["fps"] == pytest.approx(24.0 * 3 / 7)
    monkeypatch.setattr(notebook, "LARGEST_VIEW", 10)
    assert MOVES._repr_html_().startswith("<img alt=")
