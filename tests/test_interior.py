"""What fills shapes: inside and nowhere else, on odd surfaces too; and what TetGen is spared."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import InputError, Mesh, MissingExtraError, gallery
from pliant.core.topology import consistent_triangles
from pliant.engines.blend import Blendshapes, tetgen_filling
from pliant.engines.blend.body import tet_edges
from pliant.engines.blend.interior import (
    Interior,
    fill_parts,
    is_solid,
    lattice_interior,
    tet_quality,
    tetgen_interior,
)
from pliant.engines.blend.springs import is_among
from pliant.geometry import quality
from pliant.geometry.spatial import SurfaceTree
from pliant.native import kernels

SPHERE = gallery.sphere(700)
P, T = SPHERE.points, SPHERE.triangles
TETRAHEDRON = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
CUBE = Mesh(
    [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)],
    [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]],
)


def all_points(mesh: Mesh, filling: Interior) -> np.ndarray:
    return np.concatenate([mesh.points, filling.points])


def volumes(mesh: Mesh, filling: Interior) -> np.ndarray:
    a, b, c, d = (all_points(mesh, filling)[filling.tets[:, k]] for k in range(4))
    return np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) / 6


def has_tets(mesh: Mesh, filling: Interior) -> np.ndarray:
    """(n + added,) which vertices some tetrahedron uses."""
    used = np.zeros(len(mesh.points) + len(filling.points), dtype=bool)
    used[filling.tets] = True
    return used


def triangulated(mesh: Mesh) -> Mesh:
    return Mesh(mesh.points, mesh.triangles)


def cylinder_as_cad_writes_it(corners: int = 300) -> Mesh:
    """Two polygons of many corners, joined by sides as long as the cylinder."""
    angle = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    sides = [[i, (i + 1) % corners, (i + 1) % corners + corners, i + corners] for i in range(corners)]
    caps = [list(range(corners))[::-1], list(range(corners, 2 * corners))]
    return Mesh(np.concatenate([ring, np.add(ring, [0, 0, 3])]), [*caps, *sides])


def unevenly_refined() -> Mesh:
    """A sphere some of whose triangles are cut up again and again."""
    points, triangles = P, T
    for step in range(3):
        chosen = points[triangles].mean(axis=1)[:, 1] > 0.5 + 0.1 * step
        cut, middle = triangles[chosen], np.arange(chosen.sum()) + len(points)
        points = np.concatenate([points, points[cut].mean(axis=1)])
        fans = [np.stack([cut[:, k], cut[:, (k + 1) % 3], middle], axis=1) for k in range(3)]
        triangles = np.concatenate([triangles[~chosen], *fans])
    return Mesh(points, triangles)


SHAPES = {
    "sphere": lambda: SPHERE,
    "box": lambda: gallery.box(900),
    "hand": lambda: gallery.hand(1200).base,
    "animal": lambda: gallery.animal(1500).base,
    "gingerbread": lambda: gallery.gingerbread(900).base,
    "tube": lambda: gallery.tube(800).named("bent 120"),
    "CAD cylinder": cylinder_as_cad_writes_it,
    "unevenly refined": unevenly_refined,
    "cube": lambda: CUBE,
    "tetrahedron": lambda: TETRAHEDRON,
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_lattice_fills_the_inside_and_only_that(name):
    mesh = triangulated(SHAPES[name]().welded().mesh)
    filling = lattice_interior(mesh)
    volume = volumes(mesh, filling)
    assert (volume > 0).all()
    assert volume.sum() == pytest.approx(abs(mesh.volume), rel=0.05 if name == "CAD cylinder" else 0.01)
    assert SurfaceTree(mesh).inside(filling.points, exact=True).all()
    assert has_tets(mesh, filling).all()
    assert len(filling.points) < len(mesh.points)


def test_a_larger_mesh_takes_vertices_in_proportion_not_by_volume():
    few, many = (len(lattice_interior(gallery.sphere(n)).points) for n in (1500, 6000))
    assert 3 < many / few < 8  # by volume it would be more than 8 at this growth of the surface's resolution


@pytest.mark.parametrize(
    ("scale", "shift"), [(2.0**-20, 0), (1e-6, 0), (1e6, 0), (1.0, 1e4), (1e-3, 7.0)], ids=lambda v: f"{v:g}"
)
def test_units_and_place_do_not_matter(scale, shift):
    mesh = triangulated(gallery.gingerbread(900).base)
    moved = Mesh(scale * (mesh.points + shift * mesh.diagonal), mesh.triangles)
    here, there = lattice_interior(mesh), lattice_interior(moved)
    assert len(there.points) == len(here.points)
    off = np.abs(there.points / scale - shift * mesh.diagonal - here.points).max()
    assert off < 1e-9 * mesh.diagonal
    assert len(there.tets) == pytest.approx(len(here.tets), rel=1e-3)


def turned_at_random(triangles: np.ndarray) -> np.ndarray:
    some = np.random.default_rng(1).random(len(triangles)) < 0.3
    return np.where(some[:, None], triangles[:, ::-1], triangles)


@pytest.mark.parametrize(
    "triangles",
    [T[:, ::-1], turned_at_random(T), np.concatenate([T, T[:40]]), np.concatenate([T, T[:40, ::-1]])],
    ids=["inside out", "facing anywhere", "faces twice", "faces twice, back to back"],
)
def test_the_way_that_faces_run_does_not_matter(triangles):
    shapes = np.stack([P, 1.1 * P])
    plain, _ = fill_parts(SPHERE, shapes, "auto")
    odd, _ = fill_parts(Mesh(P, triangles), shapes, "auto")
    assert np.array_equal(odd.points, plain.points)
    assert np.array_equal(odd.tets, plain.tets)


def test_triangles_are_turned_to_face_alike():
    facing = consistent_triangles(turned_at_random(T), len(P))
    assert abs(Mesh(P, facing).volume) == pytest.approx(SPHERE.volume)
    assert np.array_equal(consistent_triangles(T, len(P)), T)
    minority = T.copy()
    minority[:5] = minority[:5, ::-1]
    assert np.array_equal(consistent_triangles(minority, len(P)), T)


def test_a_surface_with_one_side_is_left_as_it_is():
    strip = np.array([[i, (i + 1) % 5, (i + 2) % 5] for i in range(5)])  # the Moebius strip of five triangles
    assert np.array_equal(np.sort(consistent_triangles(strip, 5), axis=1), np.sort(strip, axis=1))


@pytest.mark.parametrize(
    ("mesh", "solid"),
    [
        (SPHERE, True),
        (Mesh(P, turned_at_random(T)), True),
        (Mesh(P, T[8:]), True),
        (Mesh(P, T[400:]), False),
        (Mesh(P * [1, 1, 0], T), False),
        (gallery.face(500).base, False),
        (Mesh(P, np.zeros((0, 3), int)), False),
        (TETRAHEDRON, True),
    ],
    ids=["closed", "facing anywhere", "small hole", "large hole", "two sides at one place", "face", "points", "tiny"],
)
def test_what_has_an_inside(mesh, solid):
    assert is_solid(mesh) is solid


def fill(mesh: Mesh) -> tuple[Interior, np.ndarray]:
    """Filled by "auto", all parts moving."""
    return fill_parts(mesh, np.stack([mesh.points, 1.1 * mesh.points + 0.1]), "auto")


def two(second: np.ndarray, triangles: np.ndarray = T) -> Mesh:
    return Mesh(np.concatenate([P, second]), np.concatenate([T, triangles + len(P)]))


@pytest.mark.parametrize(
    "mesh",
    [two(0.3 * P), two(0.8 * P, T[:, ::-1]), two(P), two(np.add(P, 0.5)), two(np.add(P, 9))],
    ids=["one inside the other", "hollow", "one twice", "crossing", "apart"],
)
def test_parts_are_filled_each_for_itself(mesh):
    filling, part = fill(mesh)
    assert filling.method == "lattice (2 of 2 parts)"
    assert (part[filling.tets] == part[filling.tets[:, :1]]).all()
    assert has_tets(mesh, filling).all()
    alone, _ = fill(SPHERE)
    assert len(filling.tets) == pytest.approx(2 * len(alone.tets), rel=0.01)


def test_the_wall_of_a_hollow_bar_stays_a_wall():
    bar = gallery.bar(600)
    ends = [bar.base, bar.named("bent 180")]
    wall = 0.08 * np.ptp(bar.base.points, axis=0).min()
    from pliant.core.normals import vertex_normals

    inner = [m.points - wall * vertex_normals(m.points, m.triangles) for m in ends]
    count = len(bar.base.points)
    triangles = np.concatenate([bar.base.triangles, bar.base.triangles[:, ::-1] + count])
    rig = Blendshapes([Mesh(np.concatenate([m.points, i]), triangles) for m, i in zip(ends, inner, strict=True)])
    middle = rig.solve([0.5, 0.5]).points
    outer = SurfaceTree(middle[:count], bar.base.triangles)
    assert outer.inside(middle[count:]).all()
    assert outer.closest(middle[count:]).distance.max() < 1.1 * wall


@pytest.mark.parametrize("thickness", [1e-2, 1e-3, 2e-4])
def test_the_sides_of_a_thin_plate_are_joined(thickness):
    box = triangulated(gallery.box(900))
    mesh = Mesh(box.points * [1, 1, thickness], box.triangles)
    filling, _ = fill(mesh)
    assert has_tets(mesh, filling).all()
    assert not len(filling.points)
    edges = tet_edges(filling.tets, len(mesh.points))
    across = edges[np.abs(np.diff(mesh.points[edges, 2], axis=1)[:, 0]) > 0.5 * thickness]
    joined = np.isin(np.arange(len(mesh.points)), across)
    flat = (np.abs(mesh.points[:, :2]) < 0.49).all(axis=1)  # not at the rim
    assert joined[flat].all()


def horseshoe(gap: float, *, along: int = 60, around: int = 4) -> tuple[Mesh, np.ndarray]:
    """A square bar of thickness 1 bent to a U, its legs `gap` apart, and the leg each vertex is in (0: none)."""
    bar = gallery.bar(2 * along * (2 * around))
    points = bar.base.points
    axis = int(np.ptp(points, axis=0).argmax())
    s = points[:, axis] - points[:, axis].min()
    y, z = np.delete(points - points.mean(axis=0), axis, axis=1).T
    y, z = y / np.ptp(y), z / np.ptp(z)
    radius = (1 + gap) / 2
    s = s / s.max() * (12 + np.pi * radius)
    turn = np.clip((s - 6) / radius, 0, np.pi)
    leg = np.where(s < 6, -1, np.where(s > 6 + np.pi * radius, 1, 0))
    height = np.where(leg < 0, 6 - s, np.where(leg > 0, s - 6 - np.pi * radius, 0))
    across = -(radius + y) * np.cos(turn)
    bent = np.stack([across, height - (leg == 0) * (radius + y) * np.sin(turn), z], axis=1)
    return Mesh(bent, bar.base.triangles), np.where(height > 1, leg, 0)


@pytest.mark.parametrize("gap", [0.0, 1e-4, 0.02, 0.2])
def test_limbs_that_touch_are_not_tied_together(gap):
    mesh, leg = horseshoe(gap)
    filling, _ = fill(mesh)
    assert filling.method == "lattice"
    everyone = np.concatenate([leg, np.zeros(len(filling.points), int)])
    inside = filling.points[:, 1] > 1
    everyone[len(leg) :][inside] = np.sign(filling.points[inside, 0])
    tied = (everyone[filling.tets].min(axis=1) < 0) & (everyone[filling.tets].max(axis=1) > 0)
    assert not tied.any()
    assert volumes(mesh, filling).sum() == pytest.approx(abs(mesh.volume), rel=0.05)
    assert has_tets(mesh, filling).mean() > 0.98


def test_where_limbs_overlap_there_is_nothing():
    mesh, _ = horseshoe(-0.5)
    filling, _ = fill(mesh)
    middle = all_points(mesh, filling)[filling.tets].mean(axis=1)
    assert (np.round(np.abs(SurfaceTree(mesh).winding(middle, exact=True))) == 1).mean() > 0.99
    assert (np.abs(middle[middle[:, 1] > 1, 0]) > 0.2).all()


@pytest.mark.parametrize("gap", [-0.5, -0.1, 0.0, 0.1])
def test_what_another_shape_draws_apart_is_not_joined(gap):
    mesh, leg = horseshoe(gap)
    filling, _ = fill_parts(mesh, np.stack([mesh.points, horseshoe(6.0)[0].points]), "auto")
    known = np.where(filling.tets < len(leg), leg[np.minimum(filling.tets, len(leg) - 1)], 0)
    assert not ((known.min(axis=1) < 0) & (known.max(axis=1) > 0)).any()
    assert len(filling.tets) > 500


def test_only_what_moves_is_filled_and_words_say_so():
    mesh = two(np.add(P, 9))
    still = np.stack([mesh.points, mesh.points])
    assert fill_parts(mesh, still, "auto")[0].method == "none (2 static)"
    still[1, : len(P)] *= 1.1
    filling, part = fill_parts(mesh, still, "auto")
    assert filling.method == "lattice (1 of 2 parts; 1 static)"
    assert (part[filling.tets] == 0).all()
    loose = Mesh(np.concatenate([P, [[9, 9, 9]]]), T)
    assert fill(loose)[0].method == "lattice"
    assert fill(gallery.face(500).base)[0].method == "none (open or flat)"
    assert fill_parts(SPHERE, np.stack([P, 2 * P]), "none")[0].method == "none"
    with pytest.raises(InputError, match='interior is "straw"; expected "auto" or "lattice" or "tetgen" or "none"'):
        fill_parts(SPHERE, np.stack([P, 2 * P]), "straw")


def test_what_was_picked_can_be_asked():
    shapes = [SPHERE, SPHERE.with_points(P * [1, 2, 1])]
    assert Blendshapes(shapes).interior == "lattice"
    assert Blendshapes(shapes, interior="none").interior == "none"


@pytest.mark.slow
def test_a_filled_shape_wrinkles_less():
    shapes = gallery.gingerbread(3000)
    pair = pliant.Shapes.of([shapes.base, shapes.named("bowing")])

    def bend(interior: str) -> float:
        points = Blendshapes(pair, model="paper", interior=interior).solve([0.5, 0.5]).points
        return quality.summarize(quality.dihedral_deviation(pair, points, weights=[0.5, 0.5]), ideal=0).rms

    assert bend("lattice") < 0.93 * bend("none")


# TetGen


@pytest.fixture(scope="module")
def tetgen():
    pytest.importorskip("tetgen")


@pytest.mark.usefixtures("tetgen")
@pytest.mark.parametrize("name", ["sphere", "box", "hand", "gingerbread", "cube", "tetrahedron"])
def test_tetgen_keeps_the_surface_and_fills_it_exactly(name, capfd):
    mesh = triangulated(SHAPES[name]())
    filling = tetgen_interior(mesh)
    volume = volumes(mesh, filling)
    assert (volume > 0).all()
    assert volume.sum() == pytest.approx(abs(mesh.volume), rel=1e-9)
    assert has_tets(mesh, filling).all()
    edges = tet_edges(filling.tets, len(all_points(mesh, filling)))
    assert is_among(mesh.edges, edges, len(all_points(mesh, filling))).all()
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("tetgen")
@pytest.mark.parametrize("way", ["lattice", "tetgen"])
def test_there_are_about_as_many_springs_as_in_the_paper(way):
    base = triangulated(gallery.animal(2200).base)  # Table 1 has a man of 2,200 vertices and 21,600 springs
    rig = Blendshapes([base, base.with_points(base.points * [1, 1, 1.2])], interior=way)
    assert len(rig.springs) / len(base.points) == pytest.approx(21.6 / 2.2, rel=0.35)


@pytest.mark.usefixtures("tetgen")
def test_equilibria_are_alike_filled_either_way():
    shapes = gallery.gingerbread(900)
    pair = pliant.Shapes.of([shapes.base, shapes.named("bowing")])
    lattice, tetgen = (Blendshapes(pair, interior=way).solve([0.5, 0.5]).points for way in ("lattice", "tetgen"))
    assert np.abs(lattice - tetgen).max() < 0.02 * shapes.base.diagonal


def pulled_through() -> Mesh:
    points = P.copy()
    points[P[:, 1].argmax()] *= -1.5
    return Mesh(points, T)


def with_a_tooth() -> Mesh:
    """A tetrahedron stands on one of the sphere's edges."""
    a, b, c, d = T[0, 0], T[0, 1], len(P), len(P) + 1
    top = 1.5 * (P[a] + P[b]) / 2
    aside = 0.1 * np.cross(P[a], P[b]) / np.linalg.norm(np.cross(P[a], P[b]))
    tooth = [[a, b, c], [b, a, d], [a, c, d], [b, d, c]]
    return Mesh(np.concatenate([P, [top + aside, top - aside]]), np.concatenate([T, tooth]))


def with_a_collapsed_edge() -> Mesh:
    points = P.copy()
    points[T[0, 0]] = points[T[0, 1]]
    return Mesh(points, T)


BAD = {
    "open": (Mesh(P, T[8:]), r"it is open \(\d+ edges at holes\)"),
    "crossing itself": (pulled_through(), r"its surface intersects itself \(\d+ pairs of triangles\)"),
    "non-manifold": (with_a_tooth(), "more than two faces meet in 1 of its edges"),
    "collapsed": (with_a_collapsed_edge(), "some of its vertices coincide"),
}


@pytest.mark.usefixtures("tetgen")
@pytest.mark.parametrize("name", BAD)
def test_what_tetgen_cannot_take_is_named_and_the_lattice_takes_it(name):
    mesh, words = BAD[name]
    shapes = [mesh, mesh.with_points(mesh.points * [1, 1.5, 1])]
    with pytest.raises(InputError, match=f'^TetGen cannot fill the shape: {words}; use interior="lattice"$'):
        Blendshapes(shapes, interior="tetgen")
    assert Blendshapes(shapes).interior == "lattice"


@pytest.mark.usefixtures("tetgen")
@pytest.mark.parametrize(
    ("child", "words"),
    [
        ("import os; os.abort()", "its process ended with code"),
        ("raise RuntimeError('it will not do.')", "it will not do; use"),
        ("import time; time.sleep(60)", r"TetGen did not finish in 1 s; use interior=\"lattice\""),
    ],
    ids=["crashes", "refuses", "hangs"],
)
def test_a_tetgen_that_goes_wrong_takes_nothing_along(child, words, monkeypatch, capfd):
    monkeypatch.setattr(tetgen_filling, "CHILD", child)
    monkeypatch.setattr(tetgen_filling, "TETGEN_SECONDS", 1.0 - 1e-3 * len(P) if "sleep" in child else 30.0)
    with pytest.raises(InputError, match=words):
        tetgen_interior(SPHERE)
    assert capfd.readouterr() == ("", "")


def test_without_tetgen_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(tetgen_filling, "find_spec", lambda name: None)
    shapes = [SPHERE, SPHERE.with_points(1.1 * P)]
    with pytest.raises(MissingExtraError, match=r'pip install "pliant\[tetgen\]"'):
        Blendshapes(shapes, interior="tetgen")
    assert Blendshapes(shapes).interior == "lattice"


@pytest.mark.data
@pytest.mark.usefixtures("tetgen")
def test_real_meshes_are_filled_though_tetgen_refuses_them(data):
    for name, words in (("cat/cat-ref.obj", "intersects itself"), ("horse/horse-ref.obj", "it is open")):
        mesh = pliant.read_mesh(data / "poses" / name)
        with pytest.raises(InputError, match=words):
            tetgen_interior(mesh)
        filling = lattice_interior(mesh)
        assert volumes(mesh, filling).sum() == pytest.approx(mesh.volume, rel=0.02)
        assert has_tets(mesh, filling).mean() > 0.998
        assert tet_quality(all_points(mesh, filling), filling.tets).min() > 0


@pytest.mark.data
@pytest.mark.slow
def test_the_parts_of_a_real_figure_are_filled_each_for_itself(data):
    mesh = pliant.read_mesh(data / "faces" / "makehuman" / "base.obj")
    filling, part = fill(mesh.welded().mesh)
    assert filling.method.startswith("lattice (1")
    assert (part[filling.tets] == part[filling.tets[:, :1]]).all()


def test_quality_and_torn_tetrahedra_against_numpy() -> None:
    rng = np.random.default_rng(2)
    points, tets = rng.normal(size=(30, 3)), np.array([rng.permutation(30)[:4] for _ in range(200)])
    tets[7] = 3
    a, b, c, d = (points[tets[:, k]] for k in range(4))
    volume = np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) / 6
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    lengths = np.linalg.norm([points[tets[:, j]] - points[tets[:, i]] for i, j in pairs], axis=2)
    square = (lengths**2).mean(axis=0)
    wanted = np.divide(6 * 2**0.5 * volume, square**1.5, out=np.zeros(200), where=square > 0)
    np.testing.assert_allclose(tet_quality(points, tets), wanted, atol=1e-14)
    corner = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])
    assert tet_quality(corner, np.array([[0, 1, 2, 3]]))[0] == pytest.approx(-1, abs=1e-15)

    count, shape = 20, points[:20] * rng.uniform(0.2, 3, (20, 1))
    edges = np.array([(k, k + 1) for k in range(19)])
    usual, torn = np.ones(count), np.zeros(200, bool)
    kernels.interior_usual_stretch(points[:20], shape, edges, 1e-6, usual)
    before, after = (np.linalg.norm(p[edges[:, 0]] - p[edges[:, 1]], axis=1) for p in (points, shape))
    by_hand = [max([1, *(after / before)[(edges == k).any(axis=1)]]) for k in range(count)]
    np.testing.assert_allclose(usual, by_hand, rtol=1e-14)
    kernels.interior_torn(points[:20], shape, tets, 1.5 * usual, 1e-6, torn, 0, 200)
    for t, found in zip(tets, torn, strict=True):
        ends = [(t[i], t[j]) for i, j in pairs if max(t[i], t[j]) < count and t[i] != t[j]]
        moved = [np.linalg.norm(shape[i] - shape[j]) / np.linalg.norm(points[i] - points[j]) for i, j in ends]
        assert found == any(s > 1.5 * max(usual[i], usual[j]) for s, (i, j) in zip(moved, ends, strict=True))
    assert 0 < torn.sum() < 200


def test_added_vertices_are_placed_alike_by_a_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = gallery.hand(2000)
    found = Blendshapes(shapes, anchor="none").body
    monkeypatch.setattr("pliant.engines.blend.body.conjugate_gradients", lambda A, b: None)
    other = Blendshapes(shapes, anchor="none").body
    assert found.points.shape[1] > len(shapes.base.points)
    np.testing.assert_allclose(found.points, other.points, rtol=0, atol=1e-12 * shapes.base.diagonal)
    np.testing.assert_allclose(found.rotvecs, other.rotvecs, rtol=0, atol=1e-11)
