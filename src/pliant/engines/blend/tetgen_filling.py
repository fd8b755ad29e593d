"""Filling a shape by TetGen: constrained Delaunay with refinement (Si 2015; used by Ma et al. 2011, Section 3.1).

The surface's vertices and triangles are kept (``-Y``); vertices are added inside where tetrahedra have a circumradius
of more than `RADIUS_EDGE_RATIO` times their shortest edge. That makes about as many springs as the paper lists.

TetGen hangs, or aborts the process, on surfaces that it cannot process, and not all of these can be detected. So known
problems are checked first, and TetGen runs in a subprocess with a time limit. TetGen is AGPL and an extra; nothing else
needs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pliant.core.errors import InputError, MissingExtraError
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.geometry.spatial import SurfaceTree

RADIUS_EDGE_RATIO = 2.0
"""Largest circumradius of a tetrahedron over its shortest edge."""
TETGEN_SECONDS = 30.0
"""Time limit of TetGen, plus a millisecond for each vertex."""
INSTEAD = 'use interior="lattice"'

CHILD = """
import sys
import numpy as np
import tetgen
surface = np.load(sys.argv[1])
maker = tetgen.TetGen(surface["points"], surface["triangles"])
points, tets, *_ = maker.tetrahedralize(
    plc=True, quality=True, minratio=float(sys.argv[3]), mindihedral=0.0, nobisect=True, nomergevertex=True, quiet=True
)
np.savez(sys.argv[2], points=points, tets=tets)
"""


def tetgen_filling(mesh: Mesh) -> tuple[Floats, Ints]:
    """(m, 3) vertices inside a closed surface, and (t, 4) tetrahedra over its points and them."""
    if find_spec("tetgen") is None:
        raise MissingExtraError('interior="tetgen"', "tetgen")
    problem = surface_problem(mesh)
    if problem:
        raise InputError(f"TetGen cannot fill the shape: {problem}; {INSTEAD}", argument="interior")
    # Normalised to the bounding box, so that units and position do not matter.
    centre, unit = (mesh.points.min(axis=0) + mesh.points.max(axis=0)) / 2, mesh.diagonal
    surface = (mesh.points - centre) / unit
    points, tets = _run(surface, mesh.triangles)
    if not np.array_equal(points[: len(surface)], surface):
        raise InputError(f"TetGen cannot fill the shape without changing its surface; {INSTEAD}", argument="interior")
    return points[len(surface) :] * unit + centre, tets


def surface_problem(mesh: Mesh) -> str:
    """Why TetGen would fail on a surface; empty if no problem is found."""
    counts = mesh.edge_polygon_count
    if (counts == 1).any():
        return f"it is open ({(counts == 1).sum()} edges at holes)"
    if (counts > 2).any():
        return f"more than two faces meet in {(counts > 2).sum()} of its edges"
    if len(np.unique(mesh.points, axis=0)) < len(mesh.points):
        return "some of its vertices coincide"
    crossing = len(SurfaceTree(mesh).crossings(coplanar=True))
    if crossing:
        return f"its surface intersects itself ({crossing} pairs of triangles)"
    return ""


def _run(points: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """TetGen's points and tetrahedra, from a subprocess."""
    seconds = TETGEN_SECONDS + 1e-3 * len(points)
    with TemporaryDirectory(prefix="pliant-") as folder:
        given, made = Path(folder, "surface.npz"), Path(folder, "tets.npz")
        np.savez(given, points=points, triangles=triangles.astype(np.int32))
        command = [sys.executable, "-c", CHILD, str(given), str(made), str(RADIUS_EDGE_RATIO)]
        path = os.pathsep.join(entry for entry in sys.path if entry)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, env={**os.environ, "PYTHONPATH": path}
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"TetGen did not finish in {seconds:.0f} s; {INSTEAD}", argument="interior") from None
        if not made.exists() or done.returncode:
            reason = (done.stderr.strip() or f"its process ended with code {done.returncode}").splitlines()[-1]
            reason = reason.removeprefix("RuntimeError: ").rstrip(".")
            raise InputError(f"TetGen cannot fill the shape: {reason}; {INSTEAD}", argument="interior")
        with np.load(made) as result:
            return result["points"], result["tets"].astype(np.int64)
