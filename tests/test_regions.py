"""Parts of a surface by vertex group, face label, colour, image or ball, and springs that are stiffer there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import pliant
from pliant import Blendshapes, InputError, Labels, Layer, Mesh, Shapes, Sphere, gallery
from pliant.geometry.grey_map import GreyMap
from pliant.geometry.regions import region_names, region_weight, vertex_weight

BAR = gallery.bar(500)
POINTS = BAR.base.points
ALONG = (POINTS[:, 0] - POINTS[:, 0].min()) / np.ptp(POINTS[:, 0])
"""(n,) from 0 to 1 along the bar."""


def painted() -> Mesh:
    """The bar with a weight that grows along it, in every way that a file can have it."""
    base = BAR.base
    uv = np.stack([ALONG * 0.98 + 0.01, np.full(len(POINTS), 0.5)], axis=1)
    middle = POINTS[base.polygons.corners].reshape(-1, base.polygons.sizes[0], 3).mean(axis=1)[:, 0]
    return replace(
        base,
        uvs=Layer(uv, base.polygons.corners),
        vertex_groups={"ramp": ALONG},
        attributes={"color": np.stack([ALONG, 0 * ALONG, 1 - ALONG, 0.5 * ALONG], axis=1)},
        labels={"material": Labels(("bone", "skin"), (middle > 0).astype(np.int64))},
    )


MESH = painted()
RAMP = GreyMap(np.linspace(0, 1, 256)[None])
SHAPES = Shapes(MESH, BAR.points[:2], ("rest", "bend"))


@pytest.mark.parametrize("region", ["ramp", "color.red", RAMP])
def test_a_painted_ramp_is_a_ramp(region):
    assert np.allclose(vertex_weight(MESH, region), ALONG, atol=0.02)
    inside = POINTS * [1, 0.5, 0.5]  # off the surface: that of the nearest place
    assert np.allclose(region_weight(inside, region, MESH), ALONG, atol=0.15)
    assert np.allclose(region_weight(POINTS, region, MESH), ALONG, atol=0.02)


def test_channels_and_brightness():
    red, green, blue, alpha = (vertex_weight(MESH, f"color.{c}") for c in ("red", "green", "blue", "alpha"))
    assert np.allclose([red, blue, alpha], [ALONG, 1 - ALONG, 0.5 * ALONG])
    assert np.allclose(vertex_weight(MESH, "color"), 0.2126 * red + 0.7152 * green + 0.0722 * blue)


def test_labels_balls_and_everything():
    right = vertex_weight(MESH, "skin")
    assert right[POINTS[:, 0] > 0.2].all()
    assert not right[POINTS[:, 0] < -0.2].any()
    ball = vertex_weight(MESH, Sphere(POINTS[0], 0.5))
    assert np.array_equal(ball, np.linalg.norm(POINTS - POINTS[0], axis=1) <= 0.5)
    assert vertex_weight(MESH, None).all()
    assert region_names(MESH) == [
        "ramp",
        "bone",
        "skin",
        "color",
        "color.red",
        "color.green",
        "color.blue",
        "color.alpha",
    ]


@pytest.mark.parametrize("region", ["rmp", "color.purple", 3])
def test_regions_that_are_not_there(region):
    with pytest.raises(InputError, match=r"no vertex group, face label or colour is called|region is 3; expected"):
        Blendshapes(SHAPES, interior="none", regions=[(region, 2.0)])


# Springs


def test_springs_take_the_factors_of_their_ends():
    plain = Blendshapes(SHAPES, interior="none").springs
    rig = Blendshapes(SHAPES, interior="none", regions=[("ramp", 5.0)])
    expected = (1 + 4 * ALONG)[rig.springs.edges.clip(max=len(ALONG) - 1)].mean(axis=1)
    surface = (rig.springs.edges < len(ALONG)).all(axis=1)
    assert np.allclose((rig.springs.stiffness / plain.stiffness)[surface], expected[surface])


def test_what_is_inside_is_as_stiff_as_the_surface_above_it():
    plain, rig = (Blendshapes(SHAPES, interior="lattice", regions=r) for r in ((), [(None, 3.0)]))
    inner = rig.springs.of_kind("internal")
    assert inner.sum() > 10
    assert np.allclose(rig.springs.stiffness[inner], 3 * plain.springs.stiffness[inner])


def test_layers_mix_and_vertices_kinds_and_regions_go_together():
    common = {"interior": "none", "anchor": "none"}
    rig = Blendshapes(SHAPES, stiffness=np.full(len(ALONG), 2.0), regions=[("ramp", 4.0), (None, 8.0)], **common)
    whole = Blendshapes(SHAPES, regions=[(None, 8.0)], **common)
    assert np.allclose(rig.springs.stiffness, whole.springs.stiffness)
    both = Blendshapes(SHAPES, stiffness={"bending": 0.5}, regions=[(None, 8.0)], **common)
    assert np.allclose(
        both.springs.stiffness, whole.springs.stiffness * np.where(both.springs.of_kind("bending"), 0.5, 1)
    )


def test_a_stiff_part_gives_way_less():
    """Half of the bar is stiff: where a pull bends it, that half keeps its shape."""
    tip = int(np.argmax(POINTS[:, 0]))
    pull = [pliant.Pull(tip, force=(0, 0, 3.0))]
    root = np.flatnonzero(ALONG < 0.05)
    stretch = []
    for regions in ((), [("skin", 50.0)]):
        rig = Blendshapes(SHAPES, interior="none", pins=root, regions=regions)
        free, pulled = rig.solve([1, 0]).points, rig.solve([1, 0], pulls=pull).points
        ends = SHAPES.base.edges[(ALONG[SHAPES.base.edges] > 0.6).all(axis=1)]
        lengths = [np.linalg.norm(x[ends[:, 0]] - x[ends[:, 1]], axis=1) for x in (free, pulled)]
        stretch.append(np.abs(lengths[1] / lengths[0] - 1).mean())
    assert stretch[1] < 0.2 * stretch[0]


# Files and commands


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rigs")
    pliant.write(folder / "rig.glb", SHAPES)
    grey = (np.linspace(0, 255, 256).astype(np.uint8)[None]).repeat(4, axis=0)
    Image.fromarray(grey).save(folder / "stiff.png")
    return folder


def test_the_command_a_scene_and_python_say_the_same(command_line, files):
    tip = int(np.argmax(pliant.read_mesh("rig.glb").points[:, 0]))
    plain = ["--interior", "none", "--frames", "3", "--force", f"{tip}:0,0,1"]
    words = ["--stiffness", "color.red=4", "--stiffness", "skin=0.5", "--stiffness", "stiff.png=3"]
    code, _, err = command_line("blend", "rig.glb", "-o", "a.npz", *plain, *words)
    assert (code, err) == (0, "")
    scene = 'engine = "blend"\nframes = 3\n[shapes]\nfile = "rig.glb"\n[springs]\ninterior = "none"\n'
    scene += '[[regions]]\nname = "color.red"\nstiffness = 4\n[[regions]]\nname = "skin"\nstiffness = 0.5\n'
    scene += f"[[pulls]]\nvertex = {tip}\nforce = [0, 0, 1]\n"
    (files / "s.toml").write_text(scene + '[[regions]]\nmap = "stiff.png"\nstiffness = 3\n')
    assert command_line("run", "s.toml", "-o", "b.npz")[0] == 0
    rig = Blendshapes(
        pliant.read_shapes("rig.glb"),
        interior="none",
        regions=[("color.red", 4.0), ("skin", 0.5), (GreyMap(np.linspace(0, 255, 256)[None] // 1 / 255), 3.0)],
    )
    expected = rig.animate(steps=3, pulls=[pliant.Pull(tip, force=(0, 0, 1))]).points
    for name in ("a.npz", "b.npz"):
        assert np.allclose(pliant.read_animation(name).points, expected, atol=1e-9)
    assert command_line("blend", "rig.glb", "-o", "c.npz", *plain)[0] == 0
    assert np.abs(pliant.read_animation("c.npz").points[1] - expected[1]).max() > 1e-2


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("skul=2", '--stiffness: no vertex group, face label or colour is called "skul"; the closest are skin'),
        ("skin", '"skin" is not NAME=FACTOR, such as skull=20'),
        ("skin=0", "is not NAME=FACTOR"),
        ("gone.png=2", "gone.png: there is no such file"),
    ],
)
def test_what_is_wrong_is_said(command_line, files, word, message):
    code, _, err = command_line("blend", "rig.glb", "-o", "a.npz", "--stiffness", word)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
