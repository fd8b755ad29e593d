"""The report on a blend: one page that needs nothing else, whose pictures and figures are those of the blend."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from pliant import Animation, Blendshapes, InputError, Mesh, Shapes, gallery
from pliant.app.report.charts import Curve, line_chart, round_values
from pliant.app.report.closeup import cut, moving_part
from pliant.engines.blend.app.report import Comparison, blend_report, findings, write_blend_report
from pliant.engines.blend.app.result import BlendRun
from pliant.geometry import quality
from pliant.render.camera import VIEWS, camera_axes

STEPS = np.linspace(0, 1, 5)
WEIGHTS = np.stack([1 - STEPS, STEPS], axis=1)


def blended(shapes: Shapes, weights=WEIGHTS, **options) -> BlendRun:
    rig = Blendshapes(shapes, interior="none")
    return BlendRun(rig, weights, [rig.solve(row) for row in weights], **options)


@pytest.fixture(scope="module")
def run() -> BlendRun:
    bar = gallery.bar(500)
    shapes = Shapes.of([bar.base, bar.named("bent 180")], ["straight", 'bent <b>&"180"'])
    return blended(shapes, fps=24, setup_seconds=1.5, solve_seconds=10.0, settings={"method": "lbfgs"})


@pytest.fixture(scope="module")
def page(run) -> str:
    return blend_report(run, view=(20, 10))


class Tags(HTMLParser):
    """Names of tags, their attributes, the text between them, and whether they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.names: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.names.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_needs_nothing_else(page):
    tags = Tags(page)
    assert tags.open == []
    assert not {"script", "link", "iframe"} & set(tags.names)
    sources = [value for _, name, value in tags.attributes if name in ("src", "href")]
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert "http" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_its_pictures_show_something(page):
    for data in re.findall(r'src="data:image/png;base64,([^"]+)"', page):
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        assert image.width > 1000
        assert len(np.unique(np.asarray(image.convert("L")))) > 50


def test_names_are_words_not_tags(page):
    assert "<b>" not in page
    assert 'bent <b>&"180"' in " ".join(Tags(page).text)


def test_every_frame_is_a_point_of_every_curve(run, page):
    charts = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    assert len(charts) == 5
    for chart in charts:
        curves = chart.findall("path")
        assert len(chart.findall("circle")) == len(curves) * len(run.poses)


def test_its_figures_are_those_of_the_blend(run, page):
    volume = quality.volume_ratio(run.rig.shapes, run.clip, weights=run.weights)
    linear = quality.volume_ratio(run.rig.shapes, run.rig.shapes.mixed(WEIGHTS), weights=WEIGHTS)
    for k in (0, 2, 4):
        assert f"pliant, frame {k}: {100 * volume[k]:.1f} %" in page
        assert f"linear blending, frame {k}: {100 * linear[k]:.1f} %" in page
    assert f"{len(run.rig.springs):,}" in page
    assert "2.000 s a frame" in page
    assert "every frame converged" in page


def test_the_larger_picture_is_of_the_frame_where_linear_blending_is_worst(run, page):
    rms = [
        quality.summarize(row).rms
        for row in quality.edge_distortion(run.rig.shapes, run.rig.shapes.mixed(WEIGHTS), weights=WEIGHTS)
    ]
    assert f"Frame {int(np.argmax(rms))}, where linear blending" in page


def test_frames_that_did_not_converge_are_named(run):
    poses = [
        replace(pose, converged=k != 3, message="" if k != 3 else "stopped after 9 iterations")
        for k, pose in enumerate(run.poses)
    ]
    failed = replace(run, poses=poses)
    assert failed.failed == [3]
    assert failed.failure == "1 of 5 frames did not converge (frame 3: stopped after 9 iterations)"
    text = blend_report(failed)
    assert failed.failure in text
    assert text.count('class="flag"') == 2
    assert text.count("<tr class=bad>") == 1
    assert "every frame converged" not in text


def seen_from(monkeypatch, run: BlendRun, **options) -> set[tuple]:
    """The views and up axes of all pictures of a report."""
    views = []
    monkeypatch.setattr("pliant.engines.blend.app.report.page.picture", lambda *_: "")
    monkeypatch.setattr("pliant.render.contact_sheet", lambda *_, view, up, **__: views.append((view, up)))
    blend_report(run, **options)
    assert len(views) == 2
    return set(views)


def test_all_pictures_of_all_reports_on_one_shape_have_one_view(monkeypatch, run):
    face = gallery.face(500)
    runs = [blended(Shapes.of([face.base, face.named(name)])) for name in ("smile", "surprise")]
    views = {view for each in runs for view in seen_from(monkeypatch, each)}
    assert len(views) == 1
    assert seen_from(monkeypatch, run) == {(VIEWS["auto"], "auto")}
    assert seen_from(monkeypatch, run, view=(20, 10), up="-x") == {((20, 10), "-x")}


def test_a_face_that_looks_away_is_seen_from_its_front(monkeypatch):
    face = gallery.face(500)
    turned = Shapes.of([mesh.with_points(mesh.points * (-1, 1, -1)) for mesh in (face.base, face.named("smile"))])
    (((azimuth, elevation), _),) = seen_from(monkeypatch, blended(turned))
    assert camera_axes(azimuth, elevation, "y")[2][2] > 0.7  # from -z


def test_an_open_surface_has_no_volume():
    face = gallery.face(500)
    lines = findings(Comparison.of(blended(Shapes.of([face.base, face.named("smile")]))))
    assert not any("Volume" in line for line in lines)
    assert any("Edges" in line for line in lines)


def test_without_an_inside_nothing_is_said_to_be_inverted(run):
    """The bar of the other tests is solved as a shell."""
    assert "no inside" in "\n".join(run.lines())
    assert run.to_dict()["inverted"] is None
    assert "inverted" not in blend_report(run)
    rig = Blendshapes(run.rig.shapes)
    filled = BlendRun(rig, WEIGHTS[[0]], [rig.solve(WEIGHTS[0])])
    assert "0 tetrahedra in the worst frame" in "\n".join(filled.lines())
    assert filled.to_dict()["inverted"] == 0
    assert "<th>inverted</th>" in blend_report(filled)


def test_charts_say_what_their_axes_are(page):
    charts = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    for chart in charts:
        texts = [text.text for text in chart.findall("text")]
        assert texts[0]
        assert texts[-1] == "frame"
    assert charts[3].findall("text")[0].text == "iterations"


@pytest.mark.parametrize("values", [[1, 1, 1], [0, 1, 2], [7, 300, 12]])
def test_counts_have_whole_ticks_from_zero(values):
    chart = ET.fromstring(
        line_chart(
            [Curve("steps", np.array(values, dtype=float))], whole=True, format_value=lambda value: f"{value:.3f}"
        )
    )
    ticks = [float(text.text) for text in chart.findall("text")[1:] if "." in text.text]
    assert ticks[0] == 0
    assert len(ticks) >= 2
    assert all(tick == round(tick) for tick in ticks)


def test_the_columns_of_the_table_are_explained(page):
    """Every column but the weights', by its own name, and those of linear blending by theirs."""
    text = page[page.index("All frames") :]
    explained = re.findall("<dt>(.*?)</dt>", text)
    columns = re.findall("<th>(.*?)</th>", text)[3:-1]
    assert {column.split(", ")[-1] for column in columns} == {name for name in explained if name != "shape names"}


def pimpled(size: float) -> Animation:
    """A ball on which a pimple of that size grows, and a second ball that keeps still."""
    ball = gallery.sphere(2000)
    n = len(ball.points)
    base = Mesh(
        np.concatenate([ball.points, ball.points + np.array([0, 1.2, 0])]),
        [*ball.polygons, *(polygon + n for polygon in ball.polygons)],
    )
    near = np.maximum(0, 1 - np.linalg.norm(base.points - [0, 1, 0], axis=1) / size) * (np.arange(2 * n) < n)
    return Animation(base, np.stack([base.points, base.points * (1 + 0.1 * near[:, None])]))


def test_where_little_moves_that_little_is_shown():
    clip = pimpled(0.2)
    moved = np.abs(clip.points[1] - clip.points[0]).max(axis=1) > 0
    seen = moving_part(clip, clip.shape.parts)
    assert moved.sum() < len(seen) < len(clip.shape.points) / 4
    assert set(np.flatnonzero(moved)) <= set(seen)
    assert (clip.shape.parts[seen] == clip.shape.parts[0]).all()  # nothing of the ball that keeps still
    shown = cut(clip, seen)
    assert np.array_equal(shown.points, clip.points[:, seen])
    whole = [set(polygon) <= set(seen) for polygon in clip.shape.polygons]
    assert [seen[polygon].tolist() for polygon in shown.shape.polygons] == [
        polygon.tolist() for polygon, kept in zip(clip.shape.polygons, whole, strict=True) if kept
    ]


def test_where_much_or_nothing_moves_all_is_shown():
    assert moving_part(pimpled(1.5), pimpled(1.5).shape.parts) is None
    still = replace(pimpled(0.2), points=pimpled(0.2).points[:1])
    assert moving_part(still, still.shape.parts) is None


def test_one_frame_and_shapes_that_are_the_same():
    ball = gallery.sphere(500)
    text = blend_report(blended(Shapes.of([ball, ball]), [[0.5, 0.5]]))
    assert "1 frame of" in text
    assert "within 0 %" in text


def test_it_is_written_whole(run, tmp_path):
    path = write_blend_report(tmp_path / "sub" / "report.html", run, title="A bar bends")
    assert "<h1>A bar bends</h1>" in path.read_text(encoding="utf-8")
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_a_run_in_words_and_numbers(run):
    text = "\n".join(run.lines())
    assert "all frames converged" in text
    assert run.rig.interior in text
    figures = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert figures["converged"] is True
    assert figures["seconds_a_frame"] == 2.0
    assert sum(figures["springs"].values()) == len(run.rig.springs)
    assert [frame["iterations"] for frame in figures["frames"]] == [pose.iterations for pose in run.poses]
    assert np.allclose([frame["weights"] for frame in figures["frames"]], WEIGHTS)
    assert repr(run).startswith("BlendRun(5 frames of Blendshapes(2 shapes")


def test_times_that_are_not_known_are_left_out(run):
    plain = BlendRun(run.rig, run.weights, run.poses)
    assert "solving" not in plain.facts()
    assert plain.to_dict()["solve_seconds"] is None


def test_a_run_is_named_after_what_moves(run):
    assert run.title == 'straight to bent <b>&"180"'
    assert replace(run, weights=run.weights * 0.9).title == 'straight with bent <b>&"180"'
    assert replace(run, weights=np.zeros((5, 2))).title == "straight"


def test_poses_and_weights_have_to_match(run):
    with pytest.raises(InputError, match="got 4 poses for 5 rows of weights"):
        BlendRun(run.rig, run.weights, run.poses[1:])


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_chart_puts_larger_values_higher(logarithmic):
    values = np.array([1e-3, 5.0, 0.2, np.nan, 70.0])
    chart = ET.fromstring(line_chart([Curve("one", values)], logarithmic=logarithmic))
    heights = [float(circle.get("cy")) for circle in chart.findall("circle")]
    known = values[np.isfinite(values)]
    assert list(np.argsort(heights)) == list(np.argsort(-known))
    assert chart.find("path").get("d").count("M") == 2  # the missing value parts the curve
    assert all(0 <= height <= 250 for height in heights)


@pytest.mark.parametrize("values", [np.zeros(3), np.full(3, 7.0), np.full(3, np.nan), np.array([5.0])])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_chart_of_nothing_much_can_be_drawn(values, logarithmic):
    text = line_chart([Curve("one", values)], logarithmic=logarithmic, ideal=None if logarithmic else 1.0)
    assert "nan" not in text.lower()
    ET.fromstring(text)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.86, 1.02), (0, 3e-7), (0, 35)])
def test_ticks_are_round_and_within(low, high):
    ticks = round_values(low, high)
    assert 3 <= len(ticks) <= 8
    assert min(ticks) >= low - 1e-9
    assert max(ticks) <= high * (1 + 1e-9)
    step = ticks[1] - ticks[0]
    assert np.allclose(np.diff(ticks), step)
    assert round(step / 10 ** np.floor(np.log10(step * 1.0001)), 6) in (1, 2, 5)
