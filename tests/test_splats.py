"""Gaussian splats that follow a deformation: covariances, colours, and the files they come in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import CageRig, InputError, PointCloud, native
from pliant.core import rotations
from pliant.gallery.primitives import box_mesh
from pliant.geometry.splats import (
    JACOBIAN_BLOCK,
    SCALE_ATTRIBUTES,
    Splats,
    covariances,
    deformed_splats,
    harmonics,
    is_splats,
    splat_axes,
)


def splats(n: int = 60, seed: int = 3) -> PointCloud:
    """A file's splats: float32 columns, quaternions of any length."""
    rng = np.random.default_rng(seed)
    names = ["f_dc_0", "f_dc_1", "f_dc_2", *(f"f_rest_{k}" for k in range(45)), "opacity"]
    columns = {name: rng.normal(size=n).astype(np.float32) for name in names}
    columns |= {name: rng.uniform(-5, -2, n).astype(np.float32) for name in SCALE_ATTRIBUTES}
    columns |= {f"rot_{k}": rng.normal(size=n).astype(np.float32) for k in range(4)}
    return PointCloud(rng.uniform(-1, 1, (n, 3)).astype(np.float32), np.zeros((n, 3)), columns)


def colour(cloud: PointCloud, d: np.ndarray) -> np.ndarray:
    """(n, 3) what depends on the view of the colours seen along directions d (n, 3)."""
    table = np.stack([cloud.attributes[f"f_rest_{k}"] for k in range(45)], axis=1).reshape(-1, 3, 15)
    return np.einsum("nck,nk->nc", table, harmonics(d, 3))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_covariances_follow_the_jacobian(seed: int) -> None:
    cloud, rng = splats(), np.random.default_rng(seed)
    J = np.eye(3) + 0.4 * rng.normal(size=(60, 3, 3))
    J[np.linalg.det(J) < 0, 0] *= -1
    moved = deformed_splats(cloud, cloud.points, J)
    wanted = J @ covariances(cloud) @ np.swapaxes(J, 1, 2)
    size = np.linalg.norm(wanted, axis=(1, 2))[:, None, None]
    assert (np.abs(covariances(moved) - wanted) / size).max() < 1e-5


def test_other_numbers_of_points_or_jacobians_are_refused():
    cloud = splats(40)
    for points, J in ((40, 20), (20, 40), (40, 41)):
        with pytest.raises(InputError, match=r"expected \(40, 3\), \(40, 3, 3\)"):
            deformed_splats(cloud, np.zeros((points, 3)), np.tile(np.eye(3), (J, 1, 1)))


def test_a_rotation_keeps_scales_and_their_order() -> None:
    cloud = splats()
    q = rotations.normalize(np.random.default_rng(5).normal(size=(60, 4)))
    moved = deformed_splats(cloud, cloud.points, rotations.matrix(q))
    for name in SCALE_ATTRIBUTES:
        np.testing.assert_allclose(moved.attributes[name], cloud.attributes[name], atol=1e-5)


def test_axes_of_round_splats_turn_without_jumping() -> None:
    """Where all three scales agree, any axes would do; the ones nearest to the turned ones are taken."""
    cloud = splats()
    round_ones = PointCloud(
        cloud.points, None, {**cloud.attributes, **{name: np.full(60, -3, np.float32) for name in SCALE_ATTRIBUTES}}
    )
    R = rotations.matrix(rotations.exp([0.1, 0.2, -0.1]))
    moved = deformed_splats(round_ones, cloud.points, np.broadcast_to(R, (60, 3, 3)))
    before = np.stack([round_ones.attributes[f"rot_{k}"] for k in range(4)], axis=1)
    after = np.stack([moved.attributes[f"rot_{k}"] for k in range(4)], axis=1)
    turned = rotations.matrix(rotations.normalize(after)) @ np.swapaxes(
        rotations.matrix(rotations.normalize(before)), 1, 2
    )
    np.testing.assert_allclose(turned, np.broadcast_to(R, (60, 3, 3)), atol=1e-5)


def test_a_splat_does_not_depend_on_its_neighbours() -> None:
    """Four are deformed at once, also beside Jacobians without a nearest rotation."""
    cloud, rng = splats(), np.random.default_rng(2)
    Q = rotations.matrix(rotations.normalize(rng.normal(size=(60, 4))))
    J = Q @ (np.eye(3) + 0.5 * rng.normal(size=(60, 3, 3)))
    J[3], J[8, :, 1], J[14], J[21, :, 2] = 0, J[8, :, 0], -np.eye(3), 0
    J[30] *= 1e-8
    together = deformed_splats(cloud, cloud.points, J).attributes
    for k in range(0, 60, 7):
        one = PointCloud(cloud.points[[k]], None, {name: table[[k]] for name, table in cloud.attributes.items()})
        alone = deformed_splats(one, one.points, J[[k]]).attributes
        assert all(together[name][k] == alone[name][0] for name in alone), k
    assert all(np.isfinite(table).all() for table in together.values())


def test_single_precision_follows_double_where_splats_are_thin_or_space_is_crushed() -> None:
    cloud, rng = splats(48), np.random.default_rng(5)
    thin = {"scale_1": cloud.attributes["scale_0"] - np.linspace(0, 30, 48, dtype=np.float32)}
    single = replace(cloud, attributes={**cloud.attributes, **thin})
    double = replace(single, attributes={name: v.astype(np.float64) for name, v in single.attributes.items()})
    J = rng.normal(size=(48, 3, 3))
    J[::3, 2] *= 1e-5
    J[1::6] = np.diag([1.0, -1.0, 1.0])
    moved = [deformed_splats(one, cloud.points, J) for one in (single, double)]
    sigma, exact = (covariances(one) for one in moved)
    size = np.abs(exact).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(sigma / size, exact / size, atol=2e-5)
    smallest = [np.sort([one.attributes[f"scale_{k}"] for k in range(3)], axis=0)[0] for one in moved]
    np.testing.assert_allclose(smallest[0], smallest[1], atol=2e-2)


def test_splats_crushed_to_a_point_can_be_read_again() -> None:
    cloud = splats(20)
    moved = deformed_splats(cloud, cloud.points, np.zeros((20, 3, 3)))
    np.testing.assert_array_less(splat_axes(moved)[1], 1e-12)


def test_colours_turn_with_the_nearest_rotation() -> None:
    cloud, rng = splats(), np.random.default_rng(6)
    J = np.eye(3) + 0.3 * rng.normal(size=(60, 3, 3))
    U, _, Vt = np.linalg.svd(J)
    Q = (U * np.stack([np.ones(60), np.ones(60), np.linalg.det(U @ Vt)], axis=1)[:, None]) @ Vt
    d = rng.normal(size=(60, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    seen = colour(deformed_splats(cloud, cloud.points, J), np.einsum("nij,nj->ni", Q, d))
    np.testing.assert_allclose(seen, colour(cloud, d), atol=1e-4)


def test_a_rig_reads_its_splats_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr("pliant.geometry.splats.Splats", lambda cloud: read.append(cloud) or Splats(cloud))
    cloud = splats(40)
    rig = CageRig(cloud, box_mesh(26, np.full(3, 6.0), 0.0), positions=cloud.points[:4], lattice=12)
    for move in (0.1, 0.2):
        assert is_splats(rig.solve(positions=cloud.points[:4] + move).shape)
    assert len(read) == 1


def test_colours_are_seen_from_where_they_were() -> None:
    cloud, rng = splats(), np.random.default_rng(8)
    Q = rotations.matrix(rotations.normalize(rng.normal(size=(60, 4))))
    moved = deformed_splats(cloud, cloud.points, Q)
    d = rng.normal(size=(60, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    np.testing.assert_allclose(colour(moved, np.einsum("nij,nj->ni", Q, d)), colour(cloud, d), atol=1e-4)


def test_harmonics_are_orthonormal() -> None:
    """Over the sphere, by the product of Gauss and trapezium rules."""
    z, wz = np.polynomial.legendre.leggauss(8)
    angle = 2 * np.pi * np.arange(16) / 16
    z, angle = (grid.ravel() for grid in np.meshgrid(z, angle, indexing="ij"))
    across = np.sqrt(1 - z**2)
    Y = harmonics(np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1), 3)
    w = np.repeat(wz, 16) * 2 * np.pi / 16
    np.testing.assert_allclose((Y * w[:, None]).T @ Y, np.eye(15), atol=1e-12)


def test_harmonics_have_the_signs_of_splat_viewers() -> None:
    """They alternate with the order m (Condon and Shortley), which SciPy's have likewise."""
    special = pytest.importorskip("scipy.special")
    if not hasattr(special, "sph_harm_y"):
        pytest.skip("SciPy before 1.15 has no sph_harm_y")
    d = np.random.default_rng(3).normal(size=(20, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    polar, around = np.arccos(d[:, 2]), np.arctan2(d[:, 1], d[:, 0])
    wanted = []
    for degree in (1, 2, 3):
        for m in range(-degree, degree + 1):
            Y = special.sph_harm_y(degree, abs(m), polar, around)
            wanted.append(Y.real if m == 0 else np.sqrt(2) * (Y.imag if m < 0 else Y.real))
    np.testing.assert_allclose(harmonics(d, 3), np.stack(wanted, axis=1), atol=1e-12)


def test_a_file_of_splats_comes_back_moved_and_in_its_own_types(tmp_path: Path) -> None:
    pliant.write(tmp_path / "in.ply", splats())
    cloud = pliant.read_points(tmp_path / "in.ply")
    assert is_splats(cloud)
    cage = pliant.build_cage(cloud, faces=60)
    turn = rotations.matrix(rotations.exp([0, 0, np.radians(40)]))
    track = pliant.matrix_tracks(np.stack([np.eye(3), turn]), names=["turn"])
    moved = pliant.transfer(track, cloud, cage, [pliant.Control([0, 0, 0], "turn")], held=[[0, 0, 0]], lattice=12)
    pliant.write(tmp_path / "out.ply", moved.shape(1))
    back = pliant.read_points(tmp_path / "out.ply")
    assert list(back.attributes) == list(cloud.attributes)
    head = (tmp_path / "out.ply").read_bytes().split(b"end_header")[0]
    assert head == (tmp_path / "in.ply").read_bytes().split(b"end_header")[0]
    np.testing.assert_array_equal(back.attributes["opacity"], cloud.attributes["opacity"])
    np.testing.assert_allclose(back.points, cloud.points @ turn.T, atol=1e-3)
    np.testing.assert_allclose(covariances(back), turn @ covariances(cloud) @ turn.T, atol=1e-4)


def test_what_is_not_a_splat_is_named() -> None:
    cloud = splats()
    columns = {name: values for name, values in cloud.attributes.items() if name != "scale_1"}
    with pytest.raises(InputError, match="no scale_1; expected Gaussian splats"):
        covariances(PointCloud(cloud.points, None, columns))
    broken = cloud.attributes["rot_2"].copy()
    broken[7] = np.nan
    with pytest.raises(InputError, match="splat 7 has a rotation"):
        covariances(PointCloud(cloud.points, None, {**cloud.attributes, "rot_2": broken}))


def test_splats_follow_a_rig_too():
    """Turned as a whole, every covariance turns along."""
    cloud = splats(40)
    cage = box_mesh(26, np.full(3, 6.0), 0.0)
    turn = rotations.matrix(rotations.from_axis_angle([0, 0, 1], 1.0))
    rig = CageRig(cloud, cage, positions=cloud.points[:4], lattice=12)
    pose = rig.solve(positions=cloud.points[:4] @ turn.T)
    assert isinstance(pose.shape, PointCloud)
    np.testing.assert_allclose(covariances(pose.shape), turn @ covariances(cloud) @ turn.T, atol=1e-3)


def test_harmonics_of_another_degree_are_not_passed_over_in_silence() -> None:
    cloud = pliant.gallery.cloud(500)
    ones = np.ones(len(cloud.points), dtype=np.float32)
    columns = dict.fromkeys(("rot_0", "scale_0", "scale_1", "scale_2", "f_rest_0", "f_rest_1"), ones)
    columns |= dict.fromkeys(("rot_1", "rot_2", "rot_3"), 0 * ones)
    splats = pliant.PointCloud(cloud.points, attributes=columns)
    J = np.broadcast_to(np.eye(3), (len(cloud.points), 3, 3))
    with pytest.warns(pliant.core.errors.PliantWarning, match="2 coefficients f_rest"):
        deformed_splats(splats, cloud.points, J)


@pytest.mark.parametrize(
    ("name", "value"), [("scale_1", 1e300), ("scale_1", np.nan), ("rot_2", 1e300), ("rot_2", np.inf)]
)
def test_splats_without_a_size_are_refused(name, value):
    attributes = {**dict.fromkeys(("rot_0", "rot_1", "rot_2", "rot_3"), np.ones(2)), "scale_0": np.zeros(2)}
    attributes |= {"scale_1": np.zeros(2), "scale_2": np.zeros(2), name: np.array([0.0, value])}
    with pytest.raises(InputError, match="splat 1 has a"):
        splat_axes(PointCloud(np.zeros((2, 3)), attributes=attributes))


@pytest.mark.parametrize("axis", np.eye(3))
def test_half_a_turn_is_a_turn(axis: np.ndarray) -> None:
    """Where the rotation nearest to the Jacobian is as far from none as it can be."""
    cloud, d = splats(), np.random.default_rng(1).normal(size=(60, 3))
    R = rotations.matrix(rotations.from_axis_angle(axis, np.pi))
    moved = deformed_splats(cloud, cloud.points, np.broadcast_to(R, (60, 3, 3)))
    np.testing.assert_allclose(covariances(moved), R @ covariances(cloud) @ R.T, atol=1e-6)
    np.testing.assert_allclose(colour(moved, d @ R.T), colour(cloud, d), rtol=1e-3, atol=1e-3)


def test_harmonics_in_double_precision_keep_it() -> None:
    cloud, rng = splats(), np.random.default_rng(2)
    exact = PointCloud(cloud.points, None, {k: v.astype(np.float64) for k, v in cloud.attributes.items()})
    Q = rotations.matrix(rotations.normalize(rng.normal(size=(60, 4))))
    there = deformed_splats(exact, cloud.points, Q)
    back = deformed_splats(there, cloud.points, np.swapaxes(Q, 1, 2))
    for k in range(45):
        np.testing.assert_allclose(back.attributes[f"f_rest_{k}"], exact.attributes[f"f_rest_{k}"], atol=1e-12)


def test_a_jacobian_that_is_not_finite_is_named() -> None:
    J = np.broadcast_to(np.eye(3), (60, 3, 3)).copy()
    J[5, 1, 1] = np.nan
    with pytest.raises(InputError, match="Jacobian of splat 5 is not finite"):
        deformed_splats(splats(), splats().points, J)


def test_a_rig_deforms_splats_a_block_at_a_time_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.engines.transfer.target_points.MANY_POINTS", 10_000)
    cloud = splats(2 * JACOBIAN_BLOCK + 77)
    rig, rng = CageRig(cloud, box_mesh(26, np.full(3, 6.0), 0.0), lattice=12), np.random.default_rng(3)
    assert rig._target_points.expansion is not None
    cages = rig.cage.mesh.points + rng.normal(0, 0.3, (3, *rig.cage.mesh.points.shape))
    frames = []
    for cores in (1, 3):
        monkeypatch.setattr(native, "CORES", cores)
        frames.append([rig.deform_shape(cage) for cage in cages])  # all are kept while the next is made
    for cage, one, three in zip(cages, *frames, strict=True):
        wanted = deformed_splats(cloud, rig.deform(cage), rig.jacobians(cage))
        for found in (one, three):
            np.testing.assert_array_equal(found.points, wanted.points)
            for name, values in wanted.attributes.items():
                np.testing.assert_array_equal(found.attributes[name], values)
    J = rig.jacobians(cages)
    for several, fill in zip(J, rig.jacobian_blocks(cages), strict=True):
        some = np.empty((77, 3, 3))
        fill(some, 2 * JACOBIAN_BLOCK)
        np.testing.assert_array_equal(some, several[2 * JACOBIAN_BLOCK :])
        both = np.empty((2 * JACOBIAN_BLOCK, 3, 3))
        fill(both, 0)
        np.testing.assert_array_equal(both, several[: 2 * JACOBIAN_BLOCK])


@pytest.mark.parametrize(
    ("room", "begin"),
    [(10, 5), (100, JACOBIAN_BLOCK), (8, 16_000), (77, 2 * JACOBIAN_BLOCK + 1), (78, 2 * JACOBIAN_BLOCK), (7, 0),
     (JACOBIAN_BLOCK, -JACOBIAN_BLOCK), (0, 3 * JACOBIAN_BLOCK)],
)  # fmt: skip
def test_a_part_of_a_block_of_jacobians_is_refused(monkeypatch: pytest.MonkeyPatch, room: int, begin: int) -> None:
    """Whole blocks are written, whatever there is room for."""
    monkeypatch.setattr("pliant.engines.transfer.target_points.MANY_POINTS", 10_000)
    rig = CageRig(splats(2 * JACOBIAN_BLOCK + 77), box_mesh(26, np.full(3, 6.0), 0.0), lattice=12)
    (fill,) = rig.jacobian_blocks(rig.cage.mesh.points[None])
    with pytest.raises(InputError, match=f"points {begin} to {begin + room}; expected whole blocks of 8192"):
        fill(np.empty((room, 3, 3)), begin)
