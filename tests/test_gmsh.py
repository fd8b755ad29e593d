"""Binary Gmsh files: the same tetrahedra as in text, and damaged ones refused by a process with bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import Delaunay

import pliant

meshio = pytest.importorskip("meshio")


@pytest.fixture(scope="module")
def tets():
    points = np.random.default_rng(2).random((30, 3))
    cells = Delaunay(points).simplices
    p = points[cells]
    flat = np.einsum("ij,ij->i", np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), p[:, 3] - p[:, 0]) < 0
    cells[flat] = cells[flat][:, [1, 0, 2, 3]]
    return points, cells


def save(path, tets, version):
    points, cells = tets
    meshio.gmsh.write(path, meshio.Mesh(points, [("tetra", cells)]), fmt_version=version, binary=True)
    return path


@pytest.mark.parametrize("version", ["2.2", "4.0", "4.1"])
def test_binary_files_hold_what_was_written(tmp_path, tets, version):
    read = pliant.read_tets(save(tmp_path / "x.msh", tets, version))
    np.testing.assert_array_equal(read.points, tets[0])
    np.testing.assert_array_equal(np.sort(read.tets, axis=1), np.sort(tets[1], axis=1))


def test_damaged_binary_files_are_one_line(tmp_path, tets):
    path = save(tmp_path / "x.msh", tets, "4.1")
    whole = path.read_bytes()
    at = whole.index(b"$Nodes\n") + 7
    huge = np.array([2**62, 2**62, 1, 2**62], dtype="<u8").tobytes()
    for data in (whole[: len(whole) // 2], whole[:at] + huge + whole[at + 32 :]):
        path.write_bytes(data)
        with pytest.raises(pliant.FileError, match=r"x\.msh: meshio") as caught:
            pliant.read_tets(path)
        assert "\n" not in str(caught.value)
