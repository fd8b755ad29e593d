"""The demo makes what it promises, and its page needs nothing from elsewhere."""

import re

import pytest
from PIL import Image

import pliant
from pliant.demo import EXHIBITS, make_demo, through

SHOWN = [exhibit for exhibit in EXHIBITS if exhibit.name in ("animal", "bar")]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return make_demo(tmp_path_factory.mktemp("demo"), exhibits=SHOWN, quick=True, quiet=True)


def test_the_clips_of_the_other_exhibits_can_be_made():
    for exhibit in EXHIBITS:
        assert len(exhibit.make(1000)) > 10


@pytest.mark.parametrize("name", [exhibit.name for exhibit in SHOWN])
def test_every_exhibit_has_a_clip_a_sheet_and_a_film(page, name):
    clip = pliant.read_animation(page.with_name(f"{name}.glb"))
    assert len(clip) > 10
    assert Image.open(page.with_name(f"{name}.png")).size[0] > 800
    assert Image.open(page.with_name(f"{name}.gif")).n_frames > 10


def test_the_page_shows_them_without_a_network(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert page.with_name(name).is_file()
    assert "http" not in text
    assert [p.name for p in page.parent.iterdir() if p.name.startswith(".")] == []


def test_weights_lead_from_shape_to_shape():
    shapes = pliant.gallery.bar(500)
    weights = through(shapes, ["straight", "bent 90", "straight"], steps=5)
    assert weights.shape == (11, len(shapes))
    assert abs(weights.sum(axis=1) - 1).max() < 1e-12
    assert weights[5, shapes.names.index("bent 90")] == 1
    assert weights[0, 0] == weights[-1, 0] == 1
