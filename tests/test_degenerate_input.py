"""Every engine treats degenerate input right or refuses it: sizes, offsets, hubs, flat, torn and broken shapes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from pliant import (
    Animation,
    Blendshapes,
    CageRig,
    ElasticBody,
    InputError,
    Mesh,
    PliantError,
    Skeleton,
    build_cage,
    extract_skeleton,
    gallery,
    green_coordinates,
    mean_value_coordinates,
    rotations,
    transfer,
)
from pliant.core.validation import LARGEST_DIAGONAL, check_extent

BOX = gallery.box(500, (4, 1, 1))
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
QUADS = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


def moved(mesh: Mesh, scale: float, offset: float) -> Mesh:
    return mesh.with_points(mesh.points * scale + offset)


def box_of(shape: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """(3,) the middle of a shape's bounding box, and half of its sides."""
    low, high = shape.points.min(axis=0, initial=1e308), shape.points.max(axis=0, initial=-1e308)
    return low / 2 + high / 2, high / 2 - low / 2


def bent(mesh: Mesh) -> Mesh:
    """Bent, and stretched by a little, whatever the mesh's size."""
    middle, half = box_of(mesh)
    unit = (mesh.points - middle) / (half.max() or 1.0)
    return mesh.with_points(mesh.points + 0.1 * half.max() * np.sin(2 * unit[:, [1, 0, 1]]))


def box_around(shape: Mesh) -> Mesh:
    """A cage of six quads."""
    middle, half = box_of(shape)
    return Mesh(middle + 1.5 * half * CORNERS, QUADS)


def blend(shape: Mesh) -> np.ndarray:
    return Blendshapes([shape, bent(shape)]).solve([0.5, 0.5]).points


def cage_around(shape: Mesh) -> np.ndarray:
    """A rig whose cage has the shape; the target is a point in its middle."""
    middle = box_of(shape)[0][None]
    return CageRig(middle, shape, positions=middle, lattice=8).solve(positions=middle).points


def in_a_cage(shape: Mesh) -> np.ndarray:
    """A rig around the shape."""
    return CageRig(shape, box_around(shape), positions=[0], lattice=8).solve(positions=shape.points[:1]).points


def built(shape: Mesh) -> np.ndarray:
    return build_cage(shape, faces=30, margin=0.1).points


def green(shape: Mesh) -> np.ndarray:
    return green_coordinates(box_of(shape)[0][None], shape)[0]


def mean_value(shape: Mesh) -> np.ndarray:
    return mean_value_coordinates(box_of(shape)[0][None], shape)


def skeleton(shape: Mesh) -> np.ndarray:
    return extract_skeleton(shape, voxels=2000).rest_pose().world()[0]


def chain(shape: Mesh) -> Skeleton:
    """Two bones along the longest side."""
    middle, half = box_of(shape)
    along = 0.5 * np.eye(3)[np.argmax(half)] * half
    start = middle - along
    return Skeleton(names=("a", "b", "c"), parents=np.array([-1, 0, 1]), offsets=np.stack([start, along, along]))


def elastic(shape: Mesh) -> np.ndarray:
    bones = chain(shape)
    return ElasticBody(shape, bones, nodes=200).pose(bones.pose({"b": rotations.exp(np.array([0, 0, 0.3]))})).points


def transferred(shape: Mesh) -> np.ndarray:
    clip = Animation(shape, np.stack([shape.points, bent(shape).points]))
    return transfer(clip, shape, box_around(shape), "auto", lattice=8, groups=1).clip.points[-1]


ENGINES = (blend, cage_around, in_a_cage, built, green, mean_value, skeleton, elastic, transferred)
PLACED = (blend, in_a_cage, built, skeleton, elastic, transferred)
"""Those whose result is of places."""


def fan(valence: int, *, closed: bool = False) -> Mesh:
    """A cone of so many sides, or a double one."""
    angle, k = 2 * np.pi * np.arange(valence) / valence, np.arange(valence)
    points = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    faces = np.stack([k, (k + 1) % valence, np.full(valence, valence)], axis=1)
    if not closed:
        return Mesh(np.concatenate([points, [[0, 0, 0.5]]]), faces)
    below = np.stack([(k + 1) % valence, k, np.full(valence, valence + 1)], axis=1)
    return Mesh(np.concatenate([points, [[0, 0, 0.5], [0, 0, -0.5]]]), np.concatenate([faces, below]))


def pages(count: int) -> Mesh:
    """Triangles that share one edge."""
    angle = np.pi * np.arange(count) / count
    ends = np.stack([np.cos(angle), np.sin(angle), np.full(count, 0.5)], axis=1)
    return Mesh(np.concatenate([[[0, 0, 0], [0, 0, 1.0]], ends]), [[0, 1, 2 + k] for k in range(count)])


def scattered(count: int) -> Mesh:
    """Small triangles all over."""
    rng = np.random.default_rng(0)
    corners = rng.uniform(-1, 1, (count, 1, 3)) + 0.05 * rng.standard_normal((count, 3, 3))
    return Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


DEGENERATE = {
    "no points": Mesh(np.zeros((0, 3)), np.zeros((0, 3), int)),
    "no faces": Mesh(BOX.points, np.zeros((0, 3), int)),
    "one place": BOX.with_points(np.ones_like(BOX.points)),
    "one triangle": Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]),
    "line": Mesh(np.arange(10)[:, None] * [1.0, 0, 0], [[k, k + 1, k + 2] for k in range(8)]),
    "repeated corners": Mesh(BOX.points, [[0, 0, 1], [1, 1, 1], [2, 3, 2]]),
    "flat": BOX.with_points(BOX.points * [1, 1, 0]),
    "thin": BOX.with_points(BOX.points * [1, 1, 1e-6]),
    "doubled points": Mesh(np.repeat(BOX.points, 2, axis=0), 2 * BOX.triangles),
    "doubled faces": Mesh(BOX.points, np.concatenate([BOX.triangles, BOX.triangles])),
    "inside out": Mesh(BOX.points, BOX.triangles[:, ::-1]),
    "non-manifold": pages(6),
    "scattered": scattered(200),
    "open hub": fan(300),
    "closed hub": fan(300, closed=True),
    "far vertex": Mesh(np.concatenate([BOX.points, [[1e4, 0, 0]]]), BOX.triangles),
}


def result_or_refusal(compute: Callable[..., np.ndarray], *given: object) -> np.ndarray | str:
    try:
        return compute(*given)
    except PliantError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DEGENERATE)
def test_every_engine_treats_degenerate_input_right_or_refuses_it(engine, name):
    shape = DEGENERATE[name]
    result = result_or_refusal(engine, shape)
    if isinstance(result, str):
        assert "\n" not in result
        return
    assert np.isfinite(result).all()
    if engine in PLACED:
        assert np.abs(result).max() < 2 * max(shape.diagonal, np.abs(shape.points).max())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e-100, 1e-30, 1e30, 1e100, 1e150, 1e300])
def test_every_engine_refuses_a_size_it_cannot_compute_with(engine, scale):
    with pytest.raises(InputError, match=r"units across; expected|at one position"):
        engine(moved(BOX, scale, 0.0))


@pytest.mark.parametrize("engine", PLACED)
@pytest.mark.parametrize("exponent", [-20, 20])
def test_the_unit_of_a_shape_does_not_matter(engine, exponent):
    scaled = engine(moved(BOX, 2.0**exponent, 0.0)) / 2.0**exponent
    np.testing.assert_allclose(scaled, engine(BOX), rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", [engine for engine in PLACED if engine is not elastic])
@pytest.mark.parametrize("exponent", [-60, 60])
def test_the_unit_of_a_shape_does_not_matter_as_far_as_it_may_go(engine, exponent):
    scaled = engine(moved(BOX, 2.0**exponent, 0.0)) / 2.0**exponent
    np.testing.assert_allclose(scaled, engine(BOX), rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("offset", [1e10, 1e12, 1e14])
def test_every_engine_refuses_a_shape_too_far_from_the_origin_to_have_a_form(engine, offset):
    with pytest.raises(InputError, match="from the origin"):
        engine(moved(BOX, 1.0, offset))


@pytest.mark.parametrize(
    ("engine", "near"), [(blend, 1e-14), (in_a_cage, 1e-6), (built, 1e-14), (elastic, 5e-3), (skeleton, 1e-3)]
)
@pytest.mark.parametrize("offset", [1e3, pytest.param(1e6, marks=pytest.mark.slow), 1e9])
@pytest.mark.filterwarnings("ignore:.*diagonals away from the origin")  # flesh that is as far as this
def test_where_a_shape_lies_does_not_matter(engine, near, offset):
    """But for rounding: single in a rig's coordinates; and of a body it may choose other nodes."""
    tolerance = BOX.diagonal * (near + 20 * offset * np.finfo(float).eps)
    np.testing.assert_allclose(engine(moved(BOX, 1.0, offset)) - offset, engine(BOX), rtol=0, atol=tolerance)


def test_a_target_shape_too_far_to_have_digits_is_refused_though_the_base_is_near():
    with pytest.raises(InputError, match="up to 1e"):
        Blendshapes([BOX, moved(BOX, 1.0, 1e12)])


def test_the_largest_extent_is_allowed_and_the_next_is_not():
    line = np.array([[0.0, 0, 0], [LARGEST_DIAGONAL, 0, 0]])
    check_extent(line, "the line")
    with pytest.raises(InputError, match=r"^the line is 2e\+20 units across; expected 1e-20 to 1e\+20: scale it"):
        check_extent(2 * line, "the line")
    with pytest.raises(InputError, match="is 1e-160 units across"):
        check_extent(1e-180 * line, "the line")


@pytest.mark.parametrize("nodes", [0, 1, -5, 10**9, np.nan])
def test_bodies_of_no_or_too_many_nodes_are_refused(nodes):
    with pytest.raises(InputError, match="nodes"):
        ElasticBody(BOX, chain(BOX), nodes=nodes)


@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
@pytest.mark.parametrize(
    "offsets",
    [np.zeros((3, 3)), np.full((3, 3), 50.0), [[0, 0, 0], [0, 0, 0], [1, 0, 0]], [[0, 0, 0], [1e9, 0, 0], [0, 0, 0]]],
    ids=["one place", "far outside", "a bone of no length", "a bone of great length"],
)
def test_odd_skeletons_carry_a_body_or_are_refused(offsets):
    bones = Skeleton(names=("a", "b", "c"), parents=np.array([-1, 0, 1]), offsets=np.asarray(offsets, float))
    result = result_or_refusal(lambda: ElasticBody(BOX, bones, nodes=200).pose(bones.rest_pose()).points)
    if isinstance(result, str):
        assert "\n" not in result
    else:
        np.testing.assert_allclose(result, BOX.points, atol=1e-3 * BOX.diagonal)


@pytest.mark.parametrize("shape", [fan(8000), fan(8000, closed=True)], ids=["cone", "double cone"])
def test_blending_takes_a_time_linear_in_the_valence(shape):
    rig = Blendshapes([shape, bent(shape)])
    assert len(rig.springs) < 10 * len(shape.points)
    assert rig.solve([0.5, 0.5]).converged
    np.testing.assert_allclose(rig.solve([0.0, 1.0]).points, bent(shape).points, atol=1e-6)


def test_needles_are_not_filled_and_the_rig_says_so():
    assert Blendshapes([fan(500, closed=True), bent(fan(500, closed=True))]).interior == "lattice"
    shape = fan(5000, closed=True)
    assert Blendshapes([shape, bent(shape)]).interior == "none (of too many needles)"


def test_thousands_of_loose_triangles_are_blended_in_seconds():
    shape = scattered(5000)
    start = time.perf_counter()
    blended = blend(shape)
    assert time.perf_counter() - start < 30
    assert np.isfinite(blended).all()
