"""Correctives: linear blending with some more morph targets, beside the rig that they stand for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.app.cli import main as command
from pliant.io.gltf.write import write_shapes
from surfaces import box, tube

ERROR = 5e-3


def main(arguments):
    with pytest.raises(SystemExit) as ended:
        command([str(word) for word in arguments])
    return ended.value.code


def some(shapes: pliant.Shapes, *names: str) -> pliant.Shapes:
    numbers = [shapes.names.index(name) for name in names]
    return pliant.Shapes(shapes.base, shapes.points[numbers], names)


@pytest.fixture(scope="module")
def shapes():
    return some(gallery.hand(500), "open", "fist", "spread")


@pytest.fixture(scope="module")
def rig(shapes):
    return pliant.Blendshapes(shapes)


@pytest.fixture(scope="module")
def linear(rig):
    return rig.correctives(error=ERROR)


@pytest.fixture(scope="module")
def written(shapes, tmp_path_factory):
    """The file with correctives of a rig that has a clip, made by the command."""
    folder = tmp_path_factory.mktemp("rig")
    t = np.linspace(0, 1, 6)[:, None]
    values = np.hstack([1 - 1.2 * t, 0.9 * t, 0.3 * t])
    write_shapes(folder / "rig.glb", shapes, pliant.WeightClip(shapes.names, values, 24.0, "grab"))
    assert main(["correctives", folder / "rig.glb", "-o", folder / "rig.glb", "--error", "0.5%", "--quiet"]) == 0
    return folder / "rig.glb", values


def away(rig, points, sliders):
    """Largest distance of a vertex over the diagonal."""
    truth = rig.solve(sliders, accuracy=1e-8).points
    return np.linalg.norm(points - truth, axis=1).max() / rig.body.diagonal


def test_linear_blending_is_within_the_error_wherever_sliders_are(rig, linear):
    assert linear.converged
    assert linear.errors[0] > 20 * ERROR
    assert linear.errors[-1] <= ERROR
    for sliders in np.random.default_rng(7).random((8, 2)):
        assert away(rig, linear.points(sliders), sliders) < ERROR


def test_shapes_stay_exact_and_weights_are_at_most_one(rig, linear):
    for name in rig.sliders.names:
        np.testing.assert_allclose(linear.points({name: 1.0}), rig.shapes.named(name).points, atol=1e-12)
    clip = linear.weights(pliant.WeightClip(rig.sliders.names, np.random.default_rng(0).random((50, 2))))
    assert np.abs(clip.values[:, len(rig.shapes) :]).max() < 1.5


def test_a_smaller_error_needs_more_targets(rig, linear):
    coarse = rig.correctives(error=4 * ERROR)
    assert 0 < len(coarse.drivers) < len(linear.drivers)
    assert coarse.converged


def test_the_file_evaluated_by_hand(rig, written):
    """From the file's targets and curves alone, as an engine would."""
    file, _ = written
    targets = pliant.read_shapes(file)
    text = file.with_name("rig.correctives.json").read_text()
    driving = json.loads(text)
    curves = driving["correctives"]
    assert len(text) < 1000 + sum(40 + 20 * len(terms) for terms in curves.values()) + 40 * len(driving["products"])
    assert list(curves) == list(targets.names[3:])
    for fist, spread in ((0.3, 0.0), (0.5, 0.5), (0.8, 0.4)):
        value = {"fist": fist, "spread": spread}
        products = [np.prod([value[s] ** p for s, p in powers.items()]) for powers in driving["products"]]
        points = targets.points[0] + fist * (targets.points[1] - targets.points[0])
        points = points + spread * (targets.points[2] - targets.points[0])
        for name, terms in curves.items():
            weight = sum(c * products[k] for k, c in terms)
            points += weight * (targets.named(name).points - targets.points[0])
        assert away(rig, points, value) < ERROR
        assert away(rig, targets.points[0] + fist * (targets.points[1] - targets.points[0]), {"fist": fist}) > ERROR


def test_the_baked_clip_plays_as_the_rig_does(rig, written):
    file, values = written
    clip = pliant.read_animation(file)
    assert clip.fps == 24
    for points, row in zip(clip.points, values, strict=True):
        assert away(rig, points, row[1:]) < ERROR


def test_a_second_run_replaces_the_first(written, tmp_path, capsys):
    file, _ = written
    assert main(["correctives", file, "-o", tmp_path / "again.glb", "--error", "0.5%", "--quiet"]) == 0
    assert pliant.read_shapes(tmp_path / "again.glb").names == pliant.read_shapes(file).names
    assert main(["correctives", file, "-o", tmp_path / "few.usda", "--most", "1"]) == 1
    assert "allow more: --error or --most\n" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("few")) == [
        "few.correctives.json",
        "few.usda",
        "few.weights.csv",
    ]


def test_blending_a_file_with_correctives_leaves_them_out(written, tmp_path, capsys):
    file, _ = written
    assert main(["blend", file, "-o", tmp_path / "out.npz", "--frames", "2", "--clip", "none", "--json"]) == 0
    assert "pliant_corrective1" not in capsys.readouterr().out


def test_combinations_and_inbetweens_stay_what_they_are(rig):
    """Blended as the file stores them: the same as blended in full."""
    base = rig.shapes
    names = ("open", "fist", "spread", "fist50", "fist_spread")
    points = [*base.points, rig.solve({"fist": 0.5}).points, rig.solve({"fist": 0.8, "spread": 0.7}).points]
    made = pliant.Blendshapes(pliant.Shapes(base.base, np.stack(points), names))
    table = np.zeros((20, 5))
    table[:, 1:3] = np.random.default_rng(0).random((20, 2))
    full = np.einsum("fs,snk->fnk", made.sliders.weights(table), made.shapes.points)
    stored = np.einsum("fs,snk->fnk", made.sliders.stored_weights(table), made.sliders.stored_shapes().points)
    np.testing.assert_allclose(full, stored, atol=1e-12)
    linear = made.correctives(error=ERROR, together=1)
    assert linear.converged
    assert away(made, linear.points([0.3, 0, 0, 0]), [0.3, 0, 0, 0]) < ERROR


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["--error", "2"], "0.2%"), (["--together", "9"], "from 1 to 4"), (["--clip", "none there"], "clip")],
)
def test_wrong_options(written, tmp_path, capsys, words, expected):
    assert main(["correctives", written[0], "-o", tmp_path / "x.glb", "--quiet", *words]) == 2
    assert expected in capsys.readouterr().err
    assert not list(Path(tmp_path).iterdir())


def test_a_skin_without_morph_targets_is_refused(tmp_path, capsys):
    clip = pliant.Animation(box(), np.stack([box().points, 1.1 * box().points]))
    pliant.write(tmp_path / "rig.glb", pliant.skin(clip, bones=1, correctives=0))
    assert len(pliant.read_shapes(tmp_path / "rig.glb")) == 2  # a pose of its clip
    assert main(["correctives", tmp_path / "rig.glb", "-o", tmp_path / "out.glb"]) == 2
    assert "rig.glb: holds no morph targets" in capsys.readouterr().err
    assert not (tmp_path / "out.glb").exists()


def test_correctives_are_not_advised_where_they_are_not_what_limits(tmp_path, capsys):
    straight = np.linspace([0.0, 0, 0], [0, 0, 4], 7)
    angle = straight[:, 2]
    curled = np.stack([np.sin(angle), 0 * angle, 1 - np.cos(angle)], axis=1)
    pliant.write(tmp_path / "rig.glb", pliant.Shapes.of([tube(path, 0.3, 5) for path in (straight, curled)]))
    assert main(["correctives", tmp_path / "rig.glb", "-o", tmp_path / "out.glb", "--error", "1e-9"]) == 1
    assert "allow more: --error\n" in capsys.readouterr().out
