"""The figures of Song et al. (2006) again: what a body on a skeleton costs to prepare, to pose and to move.

    python benchmarks/simulate.py                    # dino, armadillo, and the cost against the number of nodes
    python benchmarks/simulate.py dino               # some of them: dino, armadillo, cost
    python benchmarks/simulate.py cost --most 10000  # up to so many nodes

The paper's dino (2,949 nodes, 64 samples, 55 ms a step) and armadillo (21,943 nodes, 89 samples, 1450 ms a step) on a
Pentium IV at 2.4 GHz. The real models are used if they lie in ../shared/data beside the checkout, else the gallery's
dinosaur and creature, at the same numbers of nodes. How many samples the bones have is the program's own choice, and
printed. Bodies sway on their bones; steps are of 1/60 s and include the diffusion of rotations; medians of all steps
but the first.

Beside it, in the same run, on the same nodes, with the same masses and the same bones:

- the paper's own scheme: Eq. (11) assembled and factorised anew in every step (`warping_schemes`);
- a corotational tetrahedral FEM (Müller and Gross 2004): linear tetrahedra through the same nodes (Delaunay, those with
  their middle outside dropped), element matrices by scikit-fem, a rotation for each element by polar decomposition,
  assembled and factorised anew in every step by the same door. Its loop is written here, in NumPy: scikit-fem has none.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from warping_schemes import Scheme

import pliant
from pliant import ElasticBody, Mesh, Motion, Skeleton, gallery, rotations
from pliant.core.topology import Floats
from pliant.engines.simulate.interior import body_surface
from pliant.engines.simulate.mls import mls
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton
from pliant.numerics.linalg import factorize

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
DT, STEPS, SURFACE = 1 / 60, 30, 170_000


@dataclass(frozen=True)
class Row:
    """A model of the paper, and what is promised here, in milliseconds and seconds."""

    nodes: int
    paper: float
    step: float
    pose: float
    setup: float


ROWS = {"dino": Row(2949, 55, 5, 20, 5), "armadillo": Row(21_943, 1450, 145, 300, 90)}


def model(name: str) -> tuple[Mesh, Skeleton, str]:
    """The shape and its bones, and where they are from."""
    if name == "dino":
        if (DATA / "dino").is_dir():
            mesh = pliant.read_mesh(DATA / "dino" / "dino.off")
            return mesh, extract_skeleton(mesh), "dino.off, skeleton found"
        return gallery.dinosaur(8000).base, gallery.dinosaur_skeleton(), "the gallery's dinosaur"
    if (DATA / "armadillo").is_dir():
        folder = DATA / "armadillo"
        mesh, bones = pliant.read_mesh(folder / "arma2.obj"), pliant.read_skeleton(folder / "skeleton2.out")
        return mesh, bones, "arma2.obj, skeleton2.out"
    return gallery.creature(8000).base, gallery.creature_skeleton(), "the gallery's creature"


def sway(skeleton: Skeleton, frames: int) -> Motion:
    """Every joint swings by up to 12 degrees about the vertical, later the farther out it is."""
    t = np.arange(frames) * DT
    depth = np.zeros(len(skeleton))
    for j, parent in enumerate(skeleton.parents):
        depth[j] = 0 if parent < 0 else depth[parent] + 1
    angles = np.radians(12) * np.sin(2 * np.pi * t[:, None] - 0.5 * depth) * np.minimum(1, 4 * t)[:, None]
    turns = rotations.from_axis_angle(np.broadcast_to([0.0, 1.0, 0.0], (*angles.shape, 3)), angles)
    return Motion(
        skeleton,
        rotations.multiply(skeleton.rest_rotations, turns),
        np.broadcast_to(skeleton.offsets, (frames, len(skeleton), 3)).copy(),
        1 / DT,
    )


def median_steps(states: Iterable[Any], skip: int = 2) -> float:
    """Milliseconds a step, in the median of all but the first."""
    times, begun = [], time.perf_counter()
    for _ in states:
        times.append(time.perf_counter() - begun)
        begun = time.perf_counter()
    return 1000 * float(np.median(times[skip:]))


def best(function: Callable[[], object], times: int = 5) -> float:
    """Milliseconds of the quickest call."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return 1000 * min(taken)


def paper_scheme(body: ElasticBody, motion: Motion, steps: int) -> float:
    """Milliseconds a step of Eq. (11), assembled and factorised anew."""
    some = Motion(motion.skeleton, motion.rotations[: steps + 2], motion.translations[: steps + 2], motion.fps)
    return median_steps(Scheme(body, "paper").steps(some, DT))


def apart(points: Floats, distance: float) -> np.ndarray:
    """Indices of points, chosen in order, that are at least `distance` from all chosen before."""
    from scipy.spatial import cKDTree

    gone = np.zeros(len(points), dtype=bool)
    for first, second in sorted(cKDTree(points).query_pairs(distance)):
        gone[second] |= not gone[first]
    return np.flatnonzero(~gone)


class CorotatedTets:
    """A corotational tetrahedral FEM through a body's nodes."""

    def __init__(self, body: ElasticBody) -> None:
        from scipy.spatial import Delaunay
        from skfem import Basis, BilinearForm, ElementTetP1, ElementVector, MeshTet
        from skfem.models.elasticity import linear_elasticity

        self.held = apart(body.samples.points, float(np.median(body.nodes.radii)) / 4)
        X = np.concatenate([body.nodes.points[: body.nodes.free], body.samples.points[self.held]])
        cells = Delaunay(X).simplices
        cells = cells[body_surface(body.shape).inside(X[cells].mean(axis=1))]
        edges = X[cells[:, 1:]] - X[cells[:, :1]]
        volume = np.linalg.det(edges) / 6
        keep = np.abs(volume) > 1e-3 * np.median(np.abs(volume))  # slivers
        cells = np.where((volume < 0)[:, None], cells[:, [0, 2, 1, 3]], cells)[keep]
        lam, mu = body.material.lame  # type: ignore[union-attr]
        basis = Basis(MeshTet(X.T.copy(), cells.T.copy()), ElementVector(ElementTetP1()))
        form: BilinearForm = linear_elasticity(lam, mu)
        self.stiffness = form.elemental(basis).tolocal()
        self.cells, self.X, self.free, self.mass = cells, X, body.nodes.free, body.mass[: len(X)]
        self.gradient = np.linalg.inv(np.swapaxes(X[cells[:, 1:]] - X[cells[:, :1]], 1, 2))
        self.dofs = (3 * cells[:, :, None] + np.arange(3)).reshape(len(cells), 12)
        used = np.zeros(len(X), dtype=bool)
        used[cells] = True
        self.loose = ~used

    def step(self, x: Floats, v: Floats, fixed: Floats) -> tuple[Floats, Floats]:
        """The next positions and velocities (n, 3), the samples that are held being at `fixed`."""
        from scipy.sparse import coo_array, diags

        F = np.swapaxes(x[self.cells[:, 1:]] - x[self.cells[:, :1]], 1, 2) @ self.gradient
        R = np.zeros((len(F), 12, 12))
        polar = rotations.polar(F)
        for k in range(4):
            R[:, 3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = polar
        turned = R @ self.stiffness
        K_e = turned @ np.swapaxes(R, 1, 2)
        rest = np.einsum("eij,ej->ei", turned, self.X[self.cells].reshape(-1, 12))
        n = x.size
        rows, columns = np.repeat(self.dofs, 12, axis=1).ravel(), np.tile(self.dofs, (1, 12)).ravel()
        K = coo_array((K_e.ravel(), (rows, columns)), shape=(n, n)).tocsr()
        b = np.bincount(self.dofs.ravel(), rest.ravel(), n)
        inertia = np.repeat(self.mass / DT**2 + self.loose * 1e-3 * self.mass.mean() / DT**2, 3)
        f = 3 * self.free
        held = np.zeros(n)
        held[f:] = fixed.ravel()
        right = (inertia * (x + DT * v).ravel() + b - K @ held)[:f]
        found = held.copy()
        found[:f] = factorize((K + diags(inertia)).tocsr()[:f, :f], check=False).solve(right)
        moved = found.reshape(-1, 3)
        return moved, (moved - x) / DT


def tets_scheme(body: ElasticBody, motion: Motion, steps: int) -> tuple[float, int]:
    """Milliseconds a step, and how many tetrahedra there are."""
    fem = CorotatedTets(body)
    frames = body.bones.posed(motion.rotations, motion.translations)
    places = body.samples.posed(frames)[:, fem.held]
    x, v, times = fem.X.copy(), np.zeros_like(fem.X), []
    for k in range(1, steps + 2):
        begun = time.perf_counter()
        x, v = fem.step(x, v, places[k])
        times.append(time.perf_counter() - begun)
    assert np.isfinite(x).all()
    return 1000 * float(np.median(times[1:])), len(fem.cells)


def surface_points(mesh: Mesh, count: int) -> Floats:
    """Points of a surface that is divided until it has so many."""
    rng = np.random.default_rng(0)
    corners = mesh.points[mesh.triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    chosen = corners[rng.choice(len(corners), count, p=area / area.sum())]
    return np.einsum("nk,nki->ni", rng.dirichlet(np.ones(3), count), chosen)


def compare(name: str) -> None:
    """One of the paper's models."""
    row = ROWS[name]
    mesh, skeleton, origin = model(name)
    begun = time.perf_counter()
    body = ElasticBody(mesh, skeleton, nodes=row.nodes)
    setup = time.perf_counter() - begun
    motion = sway(skeleton, STEPS + 1)
    pose = best(lambda: body.pose(motion[STEPS // 2]))
    iterations = body.pose(motion[STEPS // 2]).iterations
    step = median_steps(body.states(motion, dt=DT))
    points = surface_points(mesh, SURFACE)
    begun = time.perf_counter()
    embedding = mls(points, body.nodes)
    embedded = time.perf_counter() - begun
    x = body.nodes.points
    update = best(lambda: embedding.interpolated(x))
    few = 6 if row.nodes < 5000 else 1
    rows: list[tuple[str, str, str, str]] = [
        ("a dynamic step", f"{step:.1f} ms", f"{row.step:g} ms", f"the paper's Pentium IV: {row.paper:g} ms"),
        (
            "a static pose",
            f"{pose:.1f} ms",
            f"{row.pose:g} ms",
            f"{iterations} iterations",
        ),
        (f"the surface, {SURFACE:,} points", f"{update:.1f} ms", "30 ms", f"after {embedded:.1f} s once"),
        ("set-up", f"{setup:.1f} s", f"{row.setup:g} s", ""),
    ]
    scheme = paper_scheme(body, motion, few)
    rows.append(("the paper's own scheme, a step", f"{scheme:.0f} ms", "", f"{scheme / step:.0f} times as long"))
    if importlib.util.find_spec("skfem"):
        fem, count = tets_scheme(body, motion, few)
        words = f"{fem / step:.0f} times as long, {count:,} tetrahedra"
        rows.append(("corotational tetrahedra, a step", f"{fem:.0f} ms", "", words))
    else:
        rows.append(("corotational tetrahedra", "", "", "scikit-fem is not installed"))
    held = f"{body.nodes.free:,} nodes, {len(body.samples)} samples, {len(body.quadrature.points):,} quadrature points"
    print(f"\n{name}: {origin}; {held}")
    print(f"  {'':34} {'here':>10} {'promised':>10}")
    for what, here, promised, words in rows:
        print(f"  {what:34} {here:>10} {promised:>10}   {words}")


def cost(most: int) -> None:
    """Against the number of nodes."""
    mesh, skeleton = gallery.dinosaur(8000).base, gallery.dinosaur_skeleton()
    motion = sway(skeleton, 13)
    counts = [n for n in (1000, 2000, 5000, 10_000, 20_000, 50_000) if n <= most]
    print(f"\nthe gallery's dinosaur\n  {'nodes':>8} {'samples':>8} {'set-up s':>9} {'pose ms':>9} {'step ms':>9}")
    table = []
    for n in counts:
        begun = time.perf_counter()
        body = ElasticBody(mesh, skeleton, nodes=n)
        setup = time.perf_counter() - begun
        body.pose(motion[0])
        pose, step = best(lambda body=body: body.pose(motion[6]), 3), median_steps(body.states(motion, dt=DT))
        table.append((body.nodes.free, setup, pose, step))
        print(f"  {body.nodes.free:8,} {len(body.samples):8} {setup:9.1f} {pose:9.1f} {step:9.1f}", flush=True)
    if len(table) > 1:
        nodes, *columns = np.log(np.array(table)).T
        slopes = [np.polyfit(nodes, column, 1)[0] for column in columns]
        print(f"  {'exponent':>17} {slopes[0]:9.2f} {slopes[1]:9.2f} {slopes[2]:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["dino", "armadillo", "cost"], help="dino, armadillo, cost")
    parser.add_argument("--most", type=int, default=50_000, help="nodes of the largest body of the cost")
    options = parser.parse_args()
    small = ElasticBody(gallery.dinosaur(2000).base, gallery.dinosaur_skeleton(), nodes=300)
    list(small.states(sway(small.skeleton, 4), dt=DT))  # compiles
    for part in options.parts:
        cost(options.most) if part == "cost" else compare(part)


if __name__ == "__main__":
    main()
