"""Green and mean value coordinates: what they reproduce, near the cage too, their derivatives, and which cages do."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
import surfaces
from pliant import InputError, Mesh, green_coordinates, mean_value_coordinates
from pliant.core import rotations
from pliant.core.normals import triangle_normals, unit
from pliant.engines.transfer import Cage
from pliant.native import kernels

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def bent_tube() -> Mesh:
    angle = np.linspace(0, 2.2, 9)
    return surfaces.tube(np.stack([np.cos(angle), np.sin(angle), 0.3 * angle], axis=1), 0.35, across=7)


CAGES = {
    "box": surfaces.box((1.0, 0.7, 0.4), (0.3, -0.2, 0.5)),
    "sphere": surfaces.sphere(9, 6),
    "torus": surfaces.torus(12, 7),
    "tube": bent_tube(),
}


@pytest.fixture(params=list(CAGES))
def cage(request: pytest.FixtureRequest) -> Cage:
    return Cage.of(CAGES[request.param])


def inside(cage: Cage, count: int, seed: int = 0, clear: float = 0.02) -> np.ndarray:
    """Points inside at least `clear` diagonals from the cage."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(cage.points.min(axis=0), cage.points.max(axis=0), (400 * count, 3))
    good = cage.tree.inside(points) & (cage.tree.closest(points).distance > clear * cage.diagonal)
    return points[good][:count]


def unit_normals(cage: Cage) -> np.ndarray:
    return unit(triangle_normals(cage.points, cage.triangles))


def reference(p: np.ndarray, cage: Cage) -> tuple[np.ndarray, np.ndarray]:
    """The formulas as they stand, one point, in plain NumPy."""
    phi, psi = np.zeros(len(cage.points)), np.zeros(len(cage.triangles))
    for t, corners in enumerate(cage.triangles):
        a = cage.points[corners] - p
        r = np.linalg.norm(a, axis=1)
        n = np.cross(a[1] - a[0], a[2] - a[0])
        area, n = np.linalg.norm(n), n / np.linalg.norm(n)
        edge = np.roll(a, -1, axis=0) - a
        length = np.linalg.norm(edge, axis=1)
        m = np.cross(edge / length[:, None], n)
        s = r + np.roll(r, -1)
        logs = np.log((s + length) / (s - length))
        dots = [a[0] @ a[1] * r[2], a[1] @ a[2] * r[0], a[2] @ a[0] * r[1]]
        omega = 2 * np.arctan2(a[0] @ np.cross(a[1], a[2]), r.prod() + sum(dots))
        d, h, g = a[0] @ n, (a * m).sum(axis=1), m.T @ logs
        psi[t] = (h @ logs - d * omega) / (4 * np.pi)
        phi[np.roll(corners, -2)] += (h * omega + d * m @ g) * length / area / (4 * np.pi)
    return phi, psi


# Values


def test_the_compiled_kernel_is_the_formula(cage: Cage) -> None:
    points = inside(cage, 20)
    phi, psi = green_coordinates(points, cage)
    for k, p in enumerate(points):
        expected_phi, expected_psi = reference(p, cage)
        np.testing.assert_allclose(phi[k], expected_phi, atol=2e-14)
        np.testing.assert_allclose(psi[k], expected_psi, atol=2e-14 * cage.diagonal)


def test_partition_of_unity_and_reproduction(cage: Cage) -> None:
    points = inside(cage, 200)
    phi, psi = green_coordinates(points, cage)
    assert np.abs(phi.sum(axis=1) - 1).max() < 1e-13
    assert np.abs(phi @ cage.points + psi @ unit_normals(cage) - points).max() < 1e-13 * cage.diagonal


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("place", ["face", "edge", "near an end of an edge", "vertex"])
def test_close_to_the_cage(cage: Cage, place: str, distance: float) -> None:
    rng = np.random.default_rng(5)
    a, b, c = (cage.points[cage.triangles[:, k]] for k in range(3))
    base = {"face": (a + b + c) / 3, "edge": (a + b) / 2, "near an end of an edge": 0.99 * a + 0.01 * b, "vertex": a}
    near = base[place] + distance * cage.diagonal * unit(rng.normal(size=(30, *a.shape)))
    points = near.reshape(-1, 3)
    # Not right on the cage, where there is no inside, and where a direction may happen to lead.
    points = points[cage.tree.inside(points, exact=True)]
    points = points[cage.tree.closest(points).distance > 0.01 * distance * cage.diagonal]
    assert len(points) > 20
    phi, psi, dphi, dpsi = green_coordinates(points, cage, order=1)
    assert np.abs(phi.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(phi @ cage.points + psi @ unit_normals(cage) - points).max() < 1e-12 * cage.diagonal
    # Gradients grow like one over the distance, and rounding with them.
    slope = dphi @ cage.points + dpsi @ unit_normals(cage)
    assert np.abs(slope - np.eye(3)).max() < 1e-11 + 1e-14 / distance


def test_a_similarity_of_the_cage_moves_the_points_along(cage: Cage) -> None:
    points = inside(cage, 50)
    phi, psi = green_coordinates(points, cage)
    R, scale, shift = rotations.matrix(rotations.from_axis_angle([1, 2, -1], 2.0)), 1.7, np.array([3.0, -1.0, 0.5])
    deformed = scale * cage.points @ R.T + shift
    moved = phi @ deformed + psi @ (scale * unit_normals(cage) @ R.T)
    np.testing.assert_allclose(moved, scale * points @ R.T + shift, atol=1e-13 * cage.diagonal * scale)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(cage: Cage, scale: float) -> None:
    points = inside(cage, 20)
    phi, psi = green_coordinates(points, cage)
    other = Cage.of(cage.mesh.scaled(scale))
    phi_scaled, psi_scaled = green_coordinates(points * scale, other)
    np.testing.assert_allclose(phi_scaled, phi, atol=1e-13)
    np.testing.assert_allclose(psi_scaled, psi * scale, atol=1e-13 * scale)


# Derivatives


def test_gradients_against_differences(cage: Cage) -> None:
    points, step = inside(cage, 20, clear=0.03), 2e-4 * cage.diagonal
    _, _, dphi, dpsi = green_coordinates(points, cage, order=1)
    for axis in range(3):
        phi, psi = differences(points, cage, axis, step, order=0)
        assert np.abs(phi - dphi[:, axis]).max() < 1e-7 * np.abs(dphi).max()
        assert np.abs(psi - dpsi[:, axis]).max() < 1e-7 * np.abs(dpsi).max()


def test_hessians_against_differences(cage: Cage) -> None:
    points, step = inside(cage, 20, clear=0.03), 2e-4 * cage.diagonal
    *_, d2phi, d2psi = green_coordinates(points, cage, order=2)
    for k, (x, y) in enumerate(PAIRS):
        *_, dphi, dpsi = differences(points, cage, x, step, order=1)
        assert np.abs(dphi[:, y] - d2phi[:, k]).max() < 1e-7 * np.abs(d2phi).max()
        assert np.abs(dpsi[:, y] - d2psi[:, k]).max() < 1e-7 * np.abs(d2psi).max()


def differences(points: np.ndarray, cage: Cage, axis: int, step: float, order) -> list[np.ndarray]:
    """Central differences of fourth order of everything that `green_coordinates` gives."""
    shift = step * np.eye(3)[axis]
    tables = [green_coordinates(points + k * shift, cage, order=order) for k in (-2, -1, 1, 2)]
    return [(8 * (c - b) - (d - a)) / (12 * step) for a, b, c, d in zip(*tables, strict=True)]


def test_coordinates_are_harmonic_and_reproduce_linear_maps(cage: Cage) -> None:
    points, n = inside(cage, 50), unit_normals(cage)
    _, _, dphi, dpsi, d2phi, d2psi = green_coordinates(points, cage, order=2)
    size = np.abs(d2phi).max()
    assert np.abs(d2phi[:, :3].sum(axis=1)).max() < 1e-11 * size
    assert np.abs(d2psi[:, :3].sum(axis=1)).max() < 1e-11 * size
    assert np.abs(dphi @ cage.points + dpsi @ n - np.eye(3)).max() < 1e-12
    assert np.abs(d2phi @ cage.points + d2psi @ n).max() < 1e-11 * size


# On the cage and outside


def test_points_on_or_outside_the_cage_are_named() -> None:
    box = surfaces.box()
    points = np.array([[0, 0, 0], [0, 0, 3.0], [0.2, 0.1, 0], [1, 0, 0]])
    with pytest.raises(InputError, match=r"2 of 4 points lie on the cage or outside of it: 1 at \(0, 0, 3\), 3 at \(1"):
        green_coordinates(points, box)


def test_outside_they_are_continued_through_the_nearest_face(cage: Cage) -> None:
    rng = np.random.default_rng(2)
    centres = cage.points[cage.triangles].mean(axis=1)
    points = centres + 0.05 * cage.diagonal * rng.uniform(-1, 1, centres.shape)
    phi, psi = green_coordinates(points, cage, outside="allow")
    assert np.abs(phi.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(phi @ cage.points + psi @ unit_normals(cage) - points).max() < 1e-12 * cage.diagonal


def test_the_continuation_is_smooth_across_a_face(cage: Cage) -> None:
    centre, n, step = cage.points[cage.triangles[0]].mean(axis=0), unit_normals(cage)[0], 1e-7 * cage.diagonal
    points = np.array([centre - step * n, centre, centre + step * n])
    phi, psi, dphi, _ = green_coordinates(points, cage, order=1, outside="allow")
    assert np.abs(phi[0] + phi[2] - 2 * phi[1]).max() < 1e-10
    assert np.abs(psi[0] + psi[2] - 2 * psi[1]).max() < 1e-10 * cage.diagonal
    assert np.abs(dphi[0] - dphi[2]).max() < 1e-5 * np.abs(dphi).max()


def test_on_the_cage_values_are_the_limit_from_inside(cage: Cage) -> None:
    tetra = Cage.of(cage.mesh)
    middle = inside(cage, 1)[0]
    on = np.concatenate([tetra.points[:5], tetra.points[tetra.edges[:5]].mean(axis=1)])
    inward = on + 1e-10 * (middle - on)
    keep = tetra.tree.inside(inward, exact=True)
    phi, psi = green_coordinates(on, tetra, outside="allow")
    phi_in, psi_in = green_coordinates(inward[keep], tetra, outside="allow")
    np.testing.assert_allclose(phi[keep], phi_in, atol=1e-8)
    np.testing.assert_allclose(psi[keep], psi_in, atol=1e-8)


# Cages


def with_faces(mesh: Mesh, faces: list[list[int]]) -> Mesh:
    return Mesh(mesh.points, faces)


def quads(mesh: Mesh) -> list[list[int]]:
    return [list(map(int, face)) for face in mesh.polygons]


def test_orientation_is_repaired() -> None:
    box = surfaces.box()
    faces = quads(box)
    inside_out = with_faces(box, [face[::-1] for face in faces])
    mixed = with_faces(box, [face[::-1] if k % 2 else face for k, face in enumerate(faces)])
    for mesh in (inside_out, mixed):
        phi, psi = green_coordinates([[0.1, 0.2, 0.3]], mesh)
        assert phi.sum() == pytest.approx(1)
        assert np.linalg.norm(psi) > 0


def test_a_hollow_in_the_cage_faces_the_hollow() -> None:
    outer, inner = surfaces.box((2, 2, 2)), surfaces.box((1, 1, 1))
    hollow = Mesh(np.vstack([outer.points, inner.points]), quads(outer) + [[v + 8 for v in f] for f in quads(inner)])
    cage = Cage.of(hollow)
    phi, psi = green_coordinates([[1.5, 0.2, 0.1]], cage)
    assert phi.sum() == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(phi @ cage.points + psi @ unit_normals(cage), [[1.5, 0.2, 0.1]], atol=1e-13)
    with pytest.raises(InputError, match="on the cage or outside"):
        green_coordinates([[0.0, 0.0, 0.0]], cage)


def test_split_and_unused_vertices_have_no_share_of_their_own() -> None:
    box = surfaces.box()
    corners = box.polygons.corners
    split = Mesh(np.vstack([box.points[corners], [[9, 9, 9]]]), np.arange(24).reshape(6, 4))
    phi, psi = green_coordinates([[0.1, 0.2, 0.3]], split)
    assert phi.shape == (1, 25)
    whole_phi, whole_psi = green_coordinates([[0.1, 0.2, 0.3]], box)
    np.testing.assert_allclose([phi[0, :24][corners == v].sum() for v in range(8)], whole_phi[0], atol=1e-14)
    np.testing.assert_allclose(psi, whole_psi, atol=1e-14)


def bow_tie() -> Mesh:
    box = surfaces.box()
    other = surfaces.box(centre=(2, 2, 2))
    joined = [[7 if v == 0 else v + 7 for v in face] for face in quads(other)]
    return Mesh(np.vstack([box.points, other.points[1:]]), quads(box) + joined)


def crossing_boxes() -> Mesh:
    box, other = surfaces.box(), surfaces.box(centre=(0.5, 0.3, 0.2))
    return Mesh(np.vstack([box.points, other.points]), quads(box) + [[v + 8 for v in f] for f in quads(box)])


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        (with_faces(surfaces.box(), quads(surfaces.box())[:-1]), "is open: it has 4 edges of one face only.* 1-3 near"),
        (with_faces(surfaces.box(), [*quads(surfaces.box()), [0, 1, 7]]), "more than two faces share, the first 0-1"),
        (bow_tie(), r"vertices that join separate fans of faces: 7 near \(1, 1, 1\)"),
        (crossing_boxes(), "crosses itself"),
        (Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]),
         "triangles without area: 0-1-2 near"),
        (Mesh([[0, 0, 0]], np.zeros((0, 3), int)), "has no faces"),
    ],
    ids=["open", "crowded edge", "bow tie", "crossing", "flat", "empty"],
)  # fmt: skip
def test_cages_that_will_not_do_are_refused_with_the_place(mesh: Mesh, words: str) -> None:
    with pytest.raises(InputError, match=words) as problem:
        Cage.of(mesh)
    assert "\n" not in str(problem.value)


def test_wrong_arguments() -> None:
    box = surfaces.box()
    with pytest.raises(InputError, match="order is 3"):
        green_coordinates([[0, 0, 0]], box, order=3)  # type: ignore[call-overload]
    with pytest.raises(InputError, match='outside is "guess"'):
        green_coordinates([[0, 0, 0]], box, outside="guess")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="the cage is a list"):
        green_coordinates([[0, 0, 0]], [[0, 1, 2]])  # type: ignore[call-overload]
    with pytest.raises(InputError, match="point 0 is"):
        green_coordinates([[0, np.nan, 0]], box)


# Vector functions


def test_logarithms_and_arcs_are_exact() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp(rng.uniform(-300, 300, 1000)), 1 + rng.random(1000), 1 + 1e-15 * np.arange(9), [1e300]])
    out = np.empty_like(x)
    kernels.lanes_logarithms(x, out)
    np.testing.assert_array_max_ulp(out, np.log(x), maxulp=2)
    y, x = rng.normal(size=(2, 2000)) * 10.0 ** rng.integers(-12, 12, 2000)
    y[:5], x[:5] = [0, 0, 1, -1, 0], [1, -1, 0, 0, 0]
    out = np.empty_like(x)
    kernels.lanes_arcs(y, x, out)
    np.testing.assert_array_max_ulp(out, np.arctan2(y, x), maxulp=4)


# Mean value coordinates


def test_mean_values_reproduce_and_interpolate(cage: Cage) -> None:
    points = inside(cage, 100)
    w = mean_value_coordinates(points, cage)
    assert np.abs(w.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(w @ cage.points - points).max() < 1e-11 * cage.diagonal
    np.testing.assert_allclose(mean_value_coordinates(cage.points, cage), np.eye(len(cage.points)), atol=1e-14)


@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-6, 1e-3])
def test_mean_values_close_to_the_cage(cage: Cage, distance: float) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (cage.points[cage.triangles[:, k]] for k in range(3))
    base = np.concatenate([(a + b + c) / 3, (a + b) / 2])
    points = base + distance * cage.diagonal * unit(rng.normal(size=base.shape))
    w = mean_value_coordinates(points, cage)
    assert np.abs(w.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(w @ cage.points - points).max() < 1e-7 * cage.diagonal


def test_public_names() -> None:
    assert pliant.green_coordinates is green_coordinates
    assert pliant.mean_value_coordinates is mean_value_coordinates
