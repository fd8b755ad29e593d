"""The demo makes what it promises, and its page needs nothing from elsewhere."""

import functools
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import pliant
from pliant.app.demo import BODIES, EXHIBITS, TRANSFERS, make_demo
from pliant.app.demo.bodies import OURS, SKINNING_LABEL, joint_volumes, skin_weights
from pliant.app.demo.exhibits import through
from pliant.app.demo.films import CELL_SIZE, FILM_SIZE, beside, side_by_side
from pliant.app.scene import read_scene
from pliant.core.errors import MissingExtraError
from pliant.engines.transfer.options import CageSolverOptions
from pliant.render import Extra
from sweeps import every

ALONE = [exhibit for exhibit in EXHIBITS if not exhibit.meets]
TOUCHED = [exhibit for exhibit in EXHIBITS if exhibit.meets]
NAMED = {exhibit.name: exhibit for exhibit in (*EXHIBITS, *TRANSFERS, *BODIES)}
MADE = {
    "bar": replace(NAMED["bar"], vertices=500, steps=2),
    "elbow": replace(NAMED["elbow"].smaller(), frames=3),
}
"""Small ones, of 3 frames each."""
TRANSFER = replace(NAMED["robot-walk"].smaller(), frames=3)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return make_demo(tmp_path_factory.mktemp("demo"), exhibits=list(MADE.values()), quiet=True, jobs=2)


@pytest.fixture(scope="module")
def page_of(tmp_path_factory, page):
    """The page that has an exhibit."""

    def found(name):
        if name in MADE:
            return page
        return make_demo(tmp_path_factory.mktemp("transfer"), exhibits=[TRANSFER], quiet=True)

    return functools.cache(found)


@pytest.mark.parametrize("exhibit", ALONE, ids=lambda exhibit: exhibit.name)
def test_every_exhibit_converges_and_keeps_lengths_better_than_linear_blending(exhibit):
    run = replace(exhibit, vertices=600, steps=2).run()
    assert run.failed == []
    shapes = run.rig.shapes
    assert len(shapes) == len(exhibit.stops)

    def strain(points):
        return np.abs(np.log(pliant.quality.edge_distortion(shapes, points, weights=run.weights[1]))).mean()

    assert strain(run.clip.points[1]) < strain(shapes.mixed(run.weights).points[1])


@pytest.mark.parametrize("exhibit", every(2, TOUCHED), ids=lambda exhibit: exhibit.name)
def test_every_exhibit_that_is_touched_gives_way_and_stays_out(exhibit):
    run = replace(exhibit, vertices=700, steps=3).run()
    free = run.rig.animate(run.weights)
    assert run.failed == []
    assert max(pose.penetration for pose in run.poses) <= 1e-4
    assert run.contact.depths(run.clip).max() <= 1e-4
    assert max(pose.crossings for pose in run.poses) == 0
    assert np.abs(run.clip.points - free.points).max() > 0.01 * run.clip.shape.diagonal
    if run.contact.obstacles:
        assert run.contact.depths(free).max() > 0.02
        assert run.forces.max() > 0.1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bar", "linear blending"),
        pytest.param("robot-walk", "Energy in the first frame", marks=pytest.mark.slow),
        ("elbow", "Quadrature points turned inside out"),
    ],
)
def test_every_exhibit_has_a_clip_a_sheet_a_film_and_a_report(page_of, name, said):
    page = page_of(name)
    clip = pliant.read_animation(page.with_name(f"{name}.glb"))
    assert len(clip) == 3
    assert "color" in clip.shape.attributes or clip.shape.appearances
    assert Image.open(page.with_name(f"{name}.png")).size[0] == (5 if name == "robot-walk" else 3) * CELL_SIZE[0]
    film = Image.open(page.with_name(f"{name}.gif"))
    assert film.size == FILM_SIZE
    assert film.n_frames == (3 if name == "robot-walk" else 4)  # the others go there and back
    assert said in page.with_name(f"{name}-report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", TRANSFERS, ids=lambda exhibit: exhibit.name)
def test_every_transfer_converges_and_meets_its_controls(exhibit):
    run = replace(exhibit.smaller(), frames=3).run()
    assert run.failed == []
    assert np.median(run.angles) < 5
    assert np.median(np.abs(run.stretches)) < 0.05
    assert np.abs(run.clip.points - run.clip.shape.points).max() > 0.1 * run.clip.shape.diagonal
    long = pliant.quality.edge_distortion(run.clip.shape, run.clip.points[1])
    assert 0.85 < np.median(long) < 1.15


@pytest.mark.parametrize(
    "exhibit",
    [pytest.param(body, id=body.name, marks=[pytest.mark.slow] * (body.name != "elbow")) for body in BODIES],
)
def test_joints_keep_their_volume_where_skinning_loses_it(exhibit):
    """No weights are painted, nothing is inside out, and a bent joint keeps what skinning loses."""
    run = replace(exhibit.smaller(), frames=19).run()
    assert run.failure == ""
    assert run.measured("inverted").max() == 0
    kept = joint_volumes(run)
    assert kept[OURS].min() > 0.85  # at a third of the nodes
    assert kept[OURS].min() > kept[SKINNING_LABEL].min() + 0.05
    np.testing.assert_allclose(skin_weights(run.body).sum(axis=1), 1)


def test_a_source_stands_beside_its_clip_on_the_same_ground():
    mesh = pliant.gallery.sphere(500)
    clip = pliant.Animation(mesh, np.stack([mesh.points, mesh.points + np.array([0.5, 0, 0])]))
    for source in (pliant.gallery.creature_walk(4), pliant.Animation(mesh, 9 * clip.points)):
        extra = beside(source, clip, (0.0, 0.0)).shape
        points = extra.points if isinstance(extra, pliant.Animation) else extra.world()[0]
        assert points[..., 0].max() < clip.points[..., 0].min()
        assert points[..., 1].min() == pytest.approx(clip.points[..., 1].min())
        assert 0.3 < np.linalg.norm(np.ptp(points[0], axis=0)) / mesh.diagonal < 12


def test_the_page_shows_them_without_a_network(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert page.with_name(name).is_file()
    assert "http" not in text
    assert re.findall(r'<section id="([^"]+)"', text) == list(MADE)
    assert [p.name for p in page.parent.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("name", [*MADE, pytest.param(TRANSFER.name, marks=pytest.mark.slow)])
def test_the_command_of_an_exhibit_makes_its_clip_again(page_of, name):
    page = page_of(name)
    text = page.read_text(encoding="utf-8")
    assert f'<a href="{name}.toml">' in text
    assert f"<code>pliant run {name}.toml -o {name}.glb --report {name}-report.html</code>" in text
    clip = pliant.read_animation(page.with_name(f"{name}.glb"))
    again = read_scene(page.with_name(f"{name}.toml")).run().clip
    assert len(again) == len(clip)
    # GLB holds float32; the page's processes have fewer threads, and a transfer follows rounding within its accuracy
    near = 0.1 * CageSolverOptions.accuracy if name == "robot-walk" else 1e-6
    assert np.abs(again.points - clip.points).max() < near * clip.shape.diagonal


def test_clips_side_by_side_do_not_touch():
    mesh = pliant.gallery.sphere(500)
    clip = pliant.Animation(mesh, np.stack([mesh.points, 2 * mesh.points]))
    both, beside = side_by_side([clip, clip], (0.0, 0.0), [Extra(mesh.with_points(mesh.points + np.array([4, 0, 0])))])
    left, right = (extra.shape.points[:, 0] for extra in beside)
    assert left.max() < right.min()
    assert both.points[:, len(mesh.points) :, 0].min() > left.max()
    n = len(mesh.points)
    assert both.points[:, :n, 0].max() < both.points[:, n:, 0].min()
    assert both.shape.parts.max() == 1
    assert both.shape.volume == pytest.approx(2 * mesh.volume)


def test_weights_lead_from_shape_to_shape():
    shapes = pliant.gallery.bar(500)
    weights = through(shapes, ["straight", "bent 90", "straight"], steps=5)
    assert weights.shape == (11, len(shapes))
    assert abs(weights.sum(axis=1) - 1).max() < 1e-12
    assert weights[5, shapes.names.index("bent 90")] == 1
    assert weights[0, 0] == weights[-1, 0] == 1


def test_an_exhibit_whose_extra_is_missing_is_left_out_and_said(tmp_path, monkeypatch, capsys):
    def write(*given):
        raise MissingExtraError("this", "usd")

    monkeypatch.setattr(type(NAMED["hand"]), "write", write)
    page = make_demo(tmp_path, exhibits=[NAMED["hand"]], quick=True, quiet=True, jobs=1)
    assert page.exists()
    assert not (tmp_path / "hand.glb").exists()
    assert 'pip install "pliant[usd]"' in capsys.readouterr().err
