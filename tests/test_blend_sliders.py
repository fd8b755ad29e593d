"""In-between and combination shapes: exact where they are sculpted, smooth between, as linear engines evaluate them."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import Blendshapes, InputError, Mesh, Shapes, gallery
from pliant.engines.blend.derived_names import find_combinations, find_inbetweens
from pliant.engines.blend.sliders import Knots, RigSliders

BAR = gallery.bar(500)
BASE = BAR.base
COUNT = len(BASE.points)
RNG = np.random.default_rng(3)


def bump(at: float, direction: tuple[float, float, float], height: float = 0.2) -> np.ndarray:
    """A displacement around a place along the bar."""
    x = BASE.points[:, :1]
    return height * np.exp(-(((x - at) / 0.5) ** 2)) * np.array(direction)


JAW, SMILE, BROW = bump(-0.6, (0, -1, 0)), bump(0.2, (0, 0.3, 1)), bump(0.9, (0, 1, 0))
FIX, HALF_FIX, ALL_FIX = bump(0, (0, 0, 0.5)), bump(-0.2, (0, 0.2, 0.2)), bump(0.3, (0, -0.3, 0.1))


def rig_of(**moved: np.ndarray) -> Shapes:
    """Shapes by their displacements."""
    points = [BASE.points, *(BASE.points + delta for delta in moved.values())]
    return Shapes(BASE, np.stack(points), ("neutral", *moved))


CORRECTIVE = rig_of(
    jawOpen=JAW, smile=SMILE, brow=BROW, jawOpen_smile=FIX, jawOpen50_smile=HALF_FIX, jawOpen_smile_brow=ALL_FIX
)
AT = {  # where a shape is sculpted, and what a linear engine shows there
    "smile": ({"smile": 1}, SMILE),
    "jawOpen_smile": ({"jawOpen": 1, "smile": 1}, JAW + SMILE + FIX),
    "jawOpen50_smile": ({"jawOpen": 0.5, "smile": 1}, 0.5 * JAW + SMILE + HALF_FIX),
    "jawOpen_smile_brow": ({"jawOpen": 1, "smile": 1, "brow": 1}, JAW + SMILE + BROW + FIX + ALL_FIX),
}
FULL = rig_of(jawOpen=JAW, brow=BROW, **{name: moved for name, (_, moved) in AT.items()})
BETWEEN = rig_of(smile25=0.2 * SMILE + 0.2 * JAW, smile_60=0.7 * SMILE + 0.1 * JAW, smile=SMILE, brow=BROW)


def row(shapes: Shapes, sliders: dict[str, float]) -> np.ndarray:
    return np.array([sliders.get(name, 0.0) for name in shapes.names])


def linear(shapes: Shapes, table: np.ndarray, **options) -> np.ndarray:
    """(frames, n, 3) what the weights give when they are blended linearly."""
    sliders = RigSliders(shapes, **options)
    return sliders.shapes.mixed(sliders.weights(np.atleast_2d(table))).points


# Names


@pytest.mark.parametrize(
    ("names", "inbetweens", "combinations"),
    [
        (["smile", "smile50", "smile_25"], {"smile50": ("smile", 0.5), "smile_25": ("smile", 0.25)}, {}),
        (["Smile", "SMILE.33", "smile_0.667"], {"SMILE.33": ("Smile", 0.33), "smile_0.667": ("Smile", 0.667)}, {}),
        (["blink_L", "blink50_L", "blink_R"], {"blink50_L": ("blink_L", 0.5)}, {}),
        (["smile50"], {}, {}),  # of nothing
        (["smile", "smile2", "smile50"], {}, {}),  # a count
        (["smile", "smile.001"], {}, {}),  # Blender's copy
        (["smile", "smile100", "smile50"], {}, {}),
        (["smile", "smile00"], {}, {}),
        (["a", "b", "a_b"], {}, {"a_b": {"a": 1, "b": 1}}),
        (["a_L", "b_L", "a_L+b_L"], {}, {"a_L+b_L": {"a_L": 1, "b_L": 1}}),
        (["jaw_open", "smile", "JawOpen_Smile"], {}, {"JawOpen_Smile": {"jaw_open": 1, "smile": 1}}),
        (["a", "b", "c", "a_b", "a_b_c"], {}, {"a_b": {"a": 1, "b": 1}, "a_b_c": {"a": 1, "b": 1, "c": 1}}),
        (["a", "b", "combo_a_b"], {}, {"combo_a_b": {"a": 1, "b": 1}}),
        (["a", "b", "a50_b"], {}, {"a50_b": {"a": 0.5, "b": 1}}),
        (["a", "a_a", "a_x", "b_a_x"], {}, {}),
        (["eyeBlink_L", "eyeBlink_R", "mouthLeft", "jawOpen"], {}, {}),
    ],
)  # fmt: skip
def test_what_names_mean(names, inbetweens, combinations):
    found = find_inbetweens(["base", *names])
    assert found == inbetweens
    assert find_combinations(["base", *names], found) == combinations


def test_names_of_anything_are_looked_through_quickly():
    hostile = ["_" * 10_000 + "5", "a_" * 5000, "9" * 5000, *(f"a_{k}" for k in range(2000)), "a"]
    assert find_combinations(["base", *hostile], find_inbetweens(["base", *hostile])) == {}


# Splines


@pytest.mark.parametrize("at", [[0, 1], [0, 0.5, 1], [0, 0.1, 0.7, 1], [-0.5, 0, 0.25, 1]])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_weights_along_a_slider(at, seed):
    progress = None if seed is None else np.sort(np.random.default_rng(seed).random(len(at)))
    knots = Knots.of(at, progress)
    s = np.linspace(-1, 2, 1201)
    w = knots.weights(s)
    assert np.allclose(w.sum(axis=1), 1)
    assert np.allclose(knots.weights(np.array(at)), np.eye(len(at)), atol=1e-15)
    if progress is None:
        assert np.allclose(w @ at, s)  # evenly on the way: it moves evenly
    else:
        inside = (s >= at[0]) & (s <= at[-1])
        assert np.diff(w[inside] @ progress).min() > -1e-12  # never back
    for value in at:  # the derivative is that of the same from both sides
        h = 1e-7
        before, here, after = knots.weights(np.array([value - h, value, value + h]))
        assert np.allclose((here - before) / h, (after - here) / h, atol=1e-4)


def test_a_slider_that_waits_does_not_go_back():
    knots = Knots.of([0, 0.5, 1], np.array([0.0, 0.0, 1.0]))
    assert np.allclose(knots.weights(np.linspace(0, 0.5, 20))[:, 2], 0)


# Weights


@pytest.mark.parametrize("shapes", [CORRECTIVE, FULL], ids=["corrective", "full"])
@pytest.mark.parametrize("name", AT)
def test_a_sculpted_shape_has_all_the_weight_where_it_is_defined(shapes, name):
    sliders, moved = AT[name]
    rig = RigSliders(shapes)
    weights = rig.weights(row(shapes, sliders)[None])[0]
    assert np.allclose(weights, np.eye(len(shapes))[shapes.names.index(name)], atol=1e-13)
    assert np.allclose(rig.shapes.named(name).points, BASE.points + moved)
    assert not rig.full.any() if shapes is CORRECTIVE else rig.full.all()


def test_both_ways_to_store_a_combination_are_the_same_rig():
    table = RNG.uniform(-0.2, 1.2, (20, 7)) * (np.arange(7) < 4)
    names = ("neutral", "jawOpen", "smile", "brow")
    one, other = (
        linear(shapes, np.stack([row(shapes, dict(zip(names, r[:4], strict=True))) for r in table]))
        for shapes in (CORRECTIVE, FULL)
    )
    assert np.allclose(one, other)


def test_correctives_come_in_as_linear_engines_have_them():
    shapes = rig_of(jawOpen=JAW, smile=SMILE, jawOpen_smile=FIX)
    for jaw, smile in RNG.uniform(-0.5, 1.5, (10, 2)):
        found = linear(shapes, row(shapes, {"jawOpen": jaw, "smile": smile}))[0]
        assert np.allclose(found, BASE.points + jaw * JAW + smile * SMILE + jaw * smile * FIX)


def test_where_a_grid_has_gaps_the_full_combination_acts():
    shapes = rig_of(a=JAW, b=SMILE, a_b=FIX, a50_b=HALF_FIX)
    without = rig_of(a=JAW, b=SMILE, a_b=FIX)
    both = {"a": 0.5, "b": 0.5}
    expected = linear(without, row(without, both))[0] + 0.5 * (HALF_FIX - 0.5 * FIX)
    assert np.allclose(linear(shapes, row(shapes, both))[0], expected)


@pytest.mark.parametrize("shapes", [CORRECTIVE, BETWEEN], ids=["combinations", "in-betweens"])
def test_weights_are_smooth_in_every_slider(shapes):
    """One-sided derivatives agree, also at the knots and where a slider is 0 or 1."""
    rig = RigSliders(shapes)
    h = 1e-6
    for name in rig.names:
        for value in (0, 0.25, 0.5, 0.6, 1, 0.37):
            at = row(shapes, dict.fromkeys(rig.names, 0.7) | {name: value})
            step = h * row(shapes, {name: 1})
            before, here, after = rig.weights(np.stack([at - step, at, at + step]))
            assert np.allclose((here - before) / h, (after - here) / h, atol=1e-4)
            assert here.sum() == pytest.approx(1)


def test_baked_columns_count():
    """A clip of a linear engine has weights for its correctives and in-betweens, too."""
    shapes = CORRECTIVE
    table = np.zeros((5, len(shapes)))
    table[:, 1:] = RNG.random((5, len(shapes) - 1))
    found = linear(shapes, table)
    expected = BASE.points + np.einsum("fk,kni->fni", table[:, 1:], shapes.points[1:] - BASE.points)
    assert np.allclose(found, expected)
    table = np.zeros((4, len(BETWEEN)))
    table[:, BETWEEN.names.index("smile25")] = [0, 1, 0.5, 0]
    table[:, BETWEEN.names.index("smile")] = [0, 0, 0.1, 1]
    assert np.allclose(RigSliders(BETWEEN).weights(table)[:, 1:], table[:, 1:])
    full = np.zeros((2, len(FULL)))
    full[:, FULL.names.index("jawOpen_smile")] = [0.5, 1]
    assert np.allclose(RigSliders(FULL).weights(full)[:, 1:], full[:, 1:])


# Rigs


@pytest.fixture(scope="module")
def rig() -> Blendshapes:
    """Bent bars: in-betweens and a combination that are not on the straight way."""
    bent = {name: BAR.named(name).points - BASE.points for name in ("bent 90", "bent 180")}
    shapes = rig_of(bend30=bent["bent 90"], bend=bent["bent 180"], thick=bump(0, (0, 1, 1)), bend_thick=FIX)
    return Blendshapes(shapes, interior="none")


def test_a_blend_is_exact_where_shapes_are_sculpted(rig):
    for name, sliders in (("bend30", {"bend": 0.3}), ("bend", {"bend": 1}), ("bend_thick", {"bend": 1, "thick": 1})):
        pose = rig.solve(sliders, accuracy=1e-8)
        assert np.abs(pose.points - rig.shapes.named(name).points).max() < 1e-9 * BASE.diagonal
    path = rig.path(4 * 4 + 1)
    found = np.stack([pose.points for pose in rig.poses(path[::4])])
    assert np.abs(found - rig.shapes.points).max() < 1e-5 * BASE.diagonal


def test_a_blend_is_smooth_across_an_in_between(rig):
    h = 0.01
    before, here, after = (rig.solve({"bend": 0.3 + t, "thick": 0.3}, accuracy=1e-9).points for t in (-h, 0, h))
    speed = np.linalg.norm(after - before, axis=1).max() / 2
    kink = np.linalg.norm(after - 2 * here + before, axis=1).max()
    assert kink < 0.05 * speed
    off = Blendshapes(rig.sliders.shapes, interior="none", inbetweens="none", combinations="none")
    hats = [{"bend30": 1 - h / 0.3}, {"bend30": 1}, {"bend30": 1 - h / 0.7, "bend": h / 0.7}]
    before, here, after = (off.solve(weights | {"thick": 0.3}, accuracy=1e-9).points for weights in hats)
    assert np.linalg.norm(after - 2 * here + before, axis=1).max() > 4 * kink  # piecewise linear: it has a corner


def test_frames_and_single_shapes_are_the_same(rig):
    table = np.stack([row(rig.shapes, {"bend": t, "thick": 0.4}) for t in (0.3, 0.8)])
    clip = rig.animate(table)
    for frame, t in zip(clip.points, (0.3, 0.8), strict=True):
        assert np.array_equal(frame, rig.solve({"bend": t, "thick": 0.4}).points)


def test_it_can_be_turned_off():
    shapes = rig_of(smile=SMILE, smile50=JAW, brow=BROW, smile_brow=FIX)
    assert RigSliders(shapes).names == ("smile", "brow")
    off = RigSliders(shapes, inbetweens="none", combinations="none")
    assert off.names == shapes.names[1:]
    assert np.allclose(off.weights(row(shapes, {"smile": 0.5, "brow": 0.5})[None])[0], [0, 0.5, 0, 0.5, 0])
    assert off.shapes is shapes


def test_by_name_of_ones_own():
    shapes = rig_of(grin=SMILE, half=JAW, both=FIX, frown=BROW)
    rig = RigSliders(shapes, inbetweens={"half": ("grin", 0.4)}, combinations={"both": ("grin", "frown")})
    assert rig.names == ("grin", "frown")
    weights = rig.weights(np.stack([row(shapes, {"grin": 0.4}), row(shapes, {"grin": 1, "frown": 1})]))
    assert np.allclose(weights[:, 1:], [[0, 1, 0, 0], [0, 0, 1, 0]])
    assert rig.facts == {"between": "half (grin at 0.4)", "combined": "both (grin + frown, corrective)"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inbetweens": "yes"}, 'inbetweens is "yes"; expected "auto", "none", or a table'),
        ({"inbetweens": {"half": ("grn", 0.5)}}, 'inbetweens names "grn"; the shapes but the base are grin, half'),
        ({"inbetweens": {"half": ("grin", 1)}}, 'inbetweens has "half" at 1; expected a value other than 0'),
        ({"inbetweens": {"half": 0.5}}, 'inbetweens has 0.5 for "half"; expected a slider and a value'),
        ({"inbetweens": {"half": ("half", 0.5)}}, 'makes "half" a part of itself'),
        ({"inbetweens": {"half": ("grin", 0.5), "both": ("half", 0.5)}}, '"both" is an in-between of "half", which is'),
        ({"inbetweens": {"half": ("grin", 0.5), "both": ("grin", 0.5)}}, "where there is another shape already"),
        ({"combinations": 3}, "combinations is 3; expected a table"),
        ({"combinations": {"both": "grin"}}, "expected two or more sliders"),
        ({"combinations": {"both": {"grin": 0, "half": 1}}}, 'has "grin" at 0 in "both"; expected a number above 0'),
        (
            {"inbetweens": {"half": ("grin", 0.5)}, "combinations": {"both": ("half", "frown")}},
            'has "half" in "both", which is no slider itself',
        ),
    ],
)
def test_what_is_wrong_is_said(options, message):
    shapes = rig_of(grin=SMILE, half=JAW, both=FIX, frown=BROW)
    with pytest.raises(InputError) as error:
        Blendshapes(shapes, interior="none", **options)
    assert message in str(error.value)
    assert error.value.argument[:1] in ((), tuple(options)[-1:])


def test_meshes_without_names_have_sliders_alone():
    rig = Blendshapes([Mesh(points, BASE.polygons) for points in BETWEEN.points[:3]], interior="none")
    assert rig.sliders.names == ("shape 1", "shape 2")
