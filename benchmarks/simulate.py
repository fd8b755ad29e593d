"""The figures of Song et al. (2006) again: what a body on a skeleton costs to prepare, to pose and to move.

    python benchmarks/simulate.py                    # dino, armadillo, and the cost against the number of nodes
    python benchmarks/simulate.py dino               # some of them: dino, armadillo, cost
    python benchmarks/simulate.py cost --most 10000  # up to so many nodes
    python benchmarks/simulate.py dino armadillo --plot docs/images/speed.png

The paper's dino (2,949 nodes, 64 samples, 55 ms a step) and armadillo (21,943 nodes, 89 samples, 1450 ms a step) on a
Pentium IV at 2.4 GHz. The real models are used if they lie in ../shared/data beside the checkout, else the gallery's
dinosaur and creature, at the same numbers of nodes. How many samples the bones have is the program's own choice, and
printed. Bodies sway on their bones; steps include the diffusion of rotations. All times are processor time, of one
thread if OMP_NUM_THREADS and PLIANT_NUM_THREADS say so.

Beside it, on the same nodes, with the same masses, bones, stiffness and damping:

- the paper's own scheme: Eq. (11) assembled and factorised anew in every step (`warping_schemes`);
- a corotational tetrahedral FEM (Müller and Gross 2004): linear tetrahedra through the same nodes (Delaunay, those with
  their middle outside dropped), element matrices by scikit-fem, a rotation for each element by polar decomposition,
  assembled and factorised anew in every step by the same door. Its loop is written here, in NumPy: scikit-fem has none.

Both step by backward Euler, as in their papers. What is compared is the time for an answer of the same error: how far
the worst node is, at any of `RATE` moments a second, from where the same scheme has it with ever shorter steps
(Richardson's extrapolation of the shortest). Where a body has more than `AFFORDABLE` nodes, the two others are run to
the end with so many nodes, which tells how many steps an error takes, and one step is timed with all.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from warping_schemes import Scheme, motion_at

import pliant
from pliant import ElasticBody, Mesh, Motion, Skeleton, gallery, rotations
from pliant.core.topology import Floats
from pliant.engines.simulate import ReducedBody
from pliant.engines.simulate.interior import body_surface
from pliant.engines.simulate.mls import mls
from pliant.engines.simulate.options import SimulateOptions
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton
from pliant.numerics.linalg import factorize

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
SURFACE, DAMPING = 170_000, SimulateOptions.damping
SECONDS, FPS, RATE = 0.5, 240, 20
"""Of motion that is compared, its frames a second, and at how many moments a second."""
RATES, THEIR_RATES = (20, 40, 80, 160, 320), (40, 80, 160, 320, 640, 1280)
"""Steps a second; of the two other schemes."""
MODES = 60
GOAL, EXACT, AFFORDABLE = 0.01, 1e-3, 700
"""Of the diagonal; accuracy of steps that others are measured by; nodes that the two other schemes are run with."""


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


def sway(skeleton: Skeleton, seconds: float, fps: float = 60) -> Motion:
    """Every joint swings by up to 12 degrees about the vertical, later the farther out it is, and begins smoothly."""
    t = np.arange(round(seconds * fps) + 1) / fps
    depth = np.zeros(len(skeleton))
    for j, parent in enumerate(skeleton.parents):
        depth[j] = 0 if parent < 0 else depth[parent] + 1
    begun = np.minimum(1, 4 * t)
    angles = np.radians(12) * np.sin(2 * np.pi * t[:, None] - 0.5 * depth) * (begun**2 * (3 - 2 * begun))[:, None]
    turns = rotations.from_axis_angle(np.broadcast_to([0.0, 1.0, 0.0], (*angles.shape, 3)), angles)
    return Motion(
        skeleton,
        rotations.multiply(skeleton.rest_rotations, turns),
        np.broadcast_to(skeleton.offsets, (len(t), len(skeleton), 3)).copy(),
        fps,
    )


def best(function: Callable[[], object], times: int = 5) -> float:
    """Milliseconds of the quickest call."""
    taken = []
    for _ in range(times):
        begun = time.process_time()
        function()
        taken.append(time.process_time() - begun)
    return 1000 * min(taken)


def step_time(body: ElasticBody | ReducedBody, motion: Motion, **options: Any) -> float:
    """Milliseconds of a step, in the median of all but the first."""
    times, begun = [], time.process_time()
    for _ in body.states(motion, **options):
        times.append(time.process_time() - begun)
        begun = time.process_time()
    return 1000 * float(np.median(times[2:]))


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

    def steps(self, body: ElasticBody, motion: Motion, dt: float) -> Iterator[Floats]:
        """(n, 3) the nodes after every step, from rest."""
        at = np.arange(round(motion.duration / dt) + 1) * dt * motion.fps
        fixed = body.samples.posed(body.bones.posed(*motion_at(motion, at)))[:, self.held]
        x, v = self.X.copy(), np.zeros_like(self.X)
        x[self.free :] = fixed[0]
        for places in fixed[1:]:
            x, v = self.step(x, v, places, dt)
            yield x

    def step(self, x: Floats, v: Floats, fixed: Floats, dt: float) -> tuple[Floats, Floats]:
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
        inertia = np.repeat(self.mass / dt**2 + self.loose * 1e-3 * self.mass.mean() / dt**2, 3)
        f, viscous = 3 * self.free, DAMPING / dt
        held = np.zeros(n)
        held[f:] = fixed.ravel()
        load = inertia * (x + dt * v).ravel() + (1 + viscous) * (b - K @ held) + viscous * (K @ x.ravel() - b)
        found = held.copy()
        found[:f] = factorize(((1 + viscous) * K + diags(inertia)).tocsr()[:f, :f], check=False).solve(load[:f])
        moved = found.reshape(-1, 3)
        return moved, (moved - x) / dt


@dataclass
class Curve:
    """How near a scheme comes to its own converged answer, and in what time."""

    scheme: str
    rates: list[int]
    """Steps a second."""
    errors: list[float]
    """Of the diagonal, of the worst node."""
    times: list[float]
    """Seconds of processor time for a second of motion."""

    def at(self, error: float) -> tuple[float, float, bool]:
        """Steps a second and the time for an error, on straight lines between the logarithms; and whether it is within
        what was measured, else beyond it by the last line."""
        order = np.argsort(self.errors)
        x, y = np.log(np.array(self.errors)[order]), np.log(np.stack([self.rates, self.times])[:, order])
        k = int(np.clip(np.searchsorted(x, np.log(error)), 1, len(x) - 1))
        t = (np.log(error) - x[k - 1]) / (x[k] - x[k - 1])
        rate, seconds = np.exp(y[:, k - 1] + t * (y[:, k] - y[:, k - 1]))
        return float(rate), float(seconds), 0 <= t <= 1


Run = Callable[[int], Iterable[Floats]]
"""The nodes (n, 3) after every frame of `RATE` a second, for steps a second."""


def measured(scheme: str, run: Run, rates: Sequence[int], nodes: np.ndarray, diagonal: float, order: int) -> Curve:
    """Errors at some of the nodes against Richardson's extrapolation. order: of the scheme's steps."""
    found, times = [], []
    for rate in rates:
        begun = time.process_time()
        found.append(np.stack([x[nodes] for x in run(rate)]))
        times.append((time.process_time() - begun) / SECONDS)
        print(f"    {scheme}: {rate} steps a second, {times[-1]:.3g} s a second", flush=True)
    fine, finer, finest = found[-3:]
    exact = (4 * finest - finer) / 3 if order == 2 else (8 * finest - 6 * finer + fine) / 3
    errors = [float(np.linalg.norm(x - exact, axis=2).max()) / diagonal for x in found]
    return Curve(scheme, list(rates), errors, times)


def sampled(steps: Iterable[Floats], every: int) -> Iterator[Floats]:
    """Every so many of the steps."""
    return (x for k, x in enumerate(steps, 1) if k % every == 0)


def speed_at_error(body: ElasticBody) -> list[Curve]:
    """Error against time for this and the two other schemes, which is printed, too."""
    motion = sway(body.skeleton, SECONDS, FPS)
    own = pliant_curve(body, motion)
    curves, few = [own], body
    if body.nodes.free > AFFORDABLE:
        few = ElasticBody(body.shape, body.skeleton, nodes=AFFORDABLE)
    for other in (paper_curve, tets_curve) if importlib.util.find_spec("skfem") else (paper_curve,):
        curves.append(other(body, few, motion))
    print("  error of the worst node against the scheme's own converged answer, and time for a second of motion")
    for curve in curves:
        rows = zip(curve.rates, curve.errors, curve.times, strict=True)
        print(f"  {curve.scheme:26}" + "".join(f"  1/{r}: {100 * e:.2g} %, {t:.3g} s" for r, e, t in rows))
    goals = iter(("", "goal 50", "goal 10"))
    for curve in curves:
        rate, seconds, within = curve.at(GOAL)
        words = f"{seconds:.3g} s a second, {1000 * seconds / rate:.3g} ms a step of 1/{rate:.0f} s"
        ratio = "" if curve is own else f", {seconds / own.at(GOAL)[1]:.0f} times as long"
        beyond = "" if within else "; beyond what was measured"
        print(f"  at {100 * GOAL:g} %, {curve.scheme:26} {words}{ratio} {next(goals)}{beyond}")
    return curves


def pliant_curve(body: ElasticBody, motion: Motion) -> Curve:
    """This one's."""
    free = np.flatnonzero(~body.loose)

    def run(rate: int) -> Iterator[Floats]:
        accuracy = EXACT if rate >= RATES[-2] else SimulateOptions.accuracy  # the last two tell the others' errors
        return (state.nodes for state in list(body.states(motion, dt=1 / rate, fps=RATE, accuracy=accuracy))[1:])

    curve = measured("pliant", run, RATES, free, body.diagonal, 2)
    return Curve(curve.scheme, curve.rates[:-2], curve.errors[:-2], curve.times[:-2])


def paper_curve(body: ElasticBody, few: ElasticBody, motion: Motion) -> Curve:
    """Of Eq. (11)."""
    scheme = Scheme(few, "paper")

    def run(rate: int) -> Iterator[Floats]:
        return sampled(scheme.steps(motion, 1 / rate, DAMPING), rate // RATE)

    curve = measured("the paper's scheme", run, THEIR_RATES, np.flatnonzero(~few.loose), body.diagonal, 1)
    return curve if few is body else scaled(curve, Scheme(body, "paper").steps(motion, 1 / curve.rates[-1], DAMPING))


def tets_curve(body: ElasticBody, few: ElasticBody, motion: Motion) -> Curve:
    """Of tetrahedra."""
    fem = CorotatedTets(few)

    def run(rate: int) -> Iterator[Floats]:
        return sampled(fem.steps(few, motion, 1 / rate), rate // RATE)

    nodes = np.flatnonzero(~few.loose & ~fem.loose[: few.nodes.free])
    curve = measured("corotational tetrahedra", run, THEIR_RATES, nodes, body.diagonal, 1)
    return curve if few is body else scaled(curve, CorotatedTets(body).steps(body, motion, 1 / curve.rates[-1]))


def scaled(curve: Curve, steps: Iterator[Floats]) -> Curve:
    """With the time of one step of a larger body, the second of some."""
    next(steps)
    begun = time.process_time()
    next(steps)
    step = time.process_time() - begun
    return Curve(curve.scheme, curve.rates, curve.errors, [step * rate for rate in curve.rates])


def plot(path: Path, found: dict[str, list[Curve]]) -> None:
    """Error against time of all models."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(5 * len(found), 4), squeeze=False, layout="constrained")
    for axis, (name, curves) in zip(axes[0], found.items(), strict=True):
        for curve in curves:
            axis.loglog(curve.times, 100 * np.array(curve.errors), "o-", label=curve.scheme)
        axis.axhline(100 * GOAL, color="grey", linewidth=0.8)
        axis.set(title=name, xlabel="processor seconds for a second of motion", ylabel="error, % of the diagonal")
    axes[0, 0].legend()
    figure.savefig(path, dpi=110)
    print(f"\nwrote {path}")


def surface_points(mesh: Mesh, count: int) -> Floats:
    """Points of a surface that is divided until it has so many."""
    rng = np.random.default_rng(0)
    corners = mesh.points[mesh.triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    chosen = corners[rng.choice(len(corners), count, p=area / area.sum())]
    return np.einsum("nk,nki->ni", rng.dirichlet(np.ones(3), count), chosen)


def compare(name: str) -> list[Curve]:
    """One of the paper's models."""
    row = ROWS[name]
    mesh, skeleton, origin = model(name)
    begun = time.process_time()
    body = ElasticBody(mesh, skeleton, nodes=row.nodes)
    setup = time.process_time() - begun
    motion = sway(skeleton, SECONDS)
    pose = best(lambda: body.pose(motion[len(motion) // 2]))
    iterations = body.pose(motion[len(motion) // 2]).iterations
    step = step_time(body, motion)
    points = surface_points(mesh, SURFACE)
    begun = time.process_time()
    embedding = mls(points, body.nodes)
    embedded = time.process_time() - begun
    x = body.nodes.points
    update = best(lambda: embedding.interpolated(x))
    rows = [
        ("a dynamic step of 1/60 s", f"{step:.1f} ms", f"{row.step:g} ms", f"the paper's Pentium IV: {row.paper:g} ms"),
        ("a static pose", f"{pose:.1f} ms", f"{row.pose:g} ms", f"{iterations} iterations"),
        (f"the surface, {SURFACE:,} points", f"{update:.1f} ms", "30 ms", f"after {embedded:.1f} s once"),
        ("set-up", f"{setup:.1f} s", f"{row.setup:g} s", ""),
    ]
    held = f"{body.nodes.free:,} nodes, {len(body.samples)} samples, {len(body.quadrature.points):,} quadrature points"
    print(f"\n{name}: {origin}; {held}")
    print(f"  {'':34} {'here':>10} {'promised':>10}")
    for what, here, promised, words in rows:
        print(f"  {what:34} {here:>10} {promised:>10}   {words}", flush=True)
    return speed_at_error(body)


def cost(most: int) -> None:
    """Against the number of nodes, of the whole body and in eigenmodes."""
    mesh, skeleton = gallery.dinosaur(8000).base, gallery.dinosaur_skeleton()
    motion = sway(skeleton, SECONDS)
    counts = [n for n in (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000) if n <= most]
    print(f"\nthe gallery's dinosaur; in {MODES} modes, its farthest point from the whole body's, of the diagonal")
    print(f"  {'nodes':>8} {'samples':>8} {'set-up s':>9} {'pose ms':>9} {'step ms':>9} | ", end="")
    print(f"{'modes s':>8} {'step ms':>8} {'farthest':>9}")
    table = []
    for n in counts:
        begun = time.process_time()
        body = ElasticBody(mesh, skeleton, nodes=n)
        setup = time.process_time() - begun
        body.pose(motion[0])
        pose, step = best(lambda body=body: body.pose(motion[6]), 3), step_time(body, motion)
        table.append((body.nodes.free, setup, pose, step))
        print(f"  {body.nodes.free:8,} {len(body.samples):8} {setup:9.1f} {pose:9.1f} {step:9.1f}", end="", flush=True)
        begun = time.process_time()
        few = body.reduced(MODES)
        built, step = time.process_time() - begun, step_time(few, motion)
        away = np.linalg.norm(few.simulate(motion).points - body.simulate(motion).points, axis=2).max() / mesh.diagonal
        print(f" | {built:8.1f} {step:8.1f} {100 * away:7.2f} %", flush=True)
    if len(table) > 1:
        nodes, *columns = np.log(np.array(table)).T
        slopes = [np.polyfit(nodes, column, 1)[0] for column in columns]
        print(f"  {'exponent':>17} {slopes[0]:9.2f} {slopes[1]:9.2f} {slopes[2]:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["dino", "armadillo", "cost"], help="dino, armadillo, cost")
    parser.add_argument("--most", type=int, default=100_000, help="nodes of the largest body of the cost")
    parser.add_argument("--plot", type=Path, help="picture of error against time, by matplotlib")
    options = parser.parse_args()
    small = ElasticBody(gallery.dinosaur(2000).base, gallery.dinosaur_skeleton(), nodes=300)
    list(small.states(sway(small.skeleton, 0.05)))  # compiles
    found = {part: compare(part) for part in options.parts if part != "cost"}
    if "cost" in options.parts:
        cost(options.most)
    if options.plot is not None and found:
        plot(options.plot, found)


if __name__ == "__main__":
    main()
