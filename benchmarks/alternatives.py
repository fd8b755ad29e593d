"""pliant beside what else a studio would use, in one run: shape keys, ARAP and linear blend skinning.

*In-betweens.* Two poses of one mesh, halfway. Linear blending is what shape keys do. "ARAP interpolation" is Alexa et
al. (2000) on triangles: each triangle's map is split into a rotation and a stretch, the rotation is taken half way by
the short path, and one Poisson solve puts the triangles together. ``pliant`` is `Blendshapes` at its default accuracy.
Volume is compared with the mean of both poses, edges with the mean of both lengths: 0 % is perfect.

*Handles.* An animal or a man is brought into other poses by handles: in each of 24 near-rigid pieces a vertex and its
neighbours, whose true positions are all that every method is given. ARAP (Sorkine and Alexa 2007, cotangent weights,
100 iterations from the frame before; by libigl too, where it is installed) has them as constraints. "Green coordinates"
move each vertex of the cage rigidly with the nearest handle. ``pliant`` has a position and a rotation of each handle as
controls of the same cage; "Chen 2010" is that without rigidity. Errors are against the true pose: the distance over the
diagonal, in the mean over vertices and frames, edge lengths, and the volume's deviation from the true pose's.

*Joints.* An arm bends by 90° at the elbow: linear blend skinning and ``pliant simulate`` with the same bones; skinning
has the weights by which rotations diffuse. Volume is that of the thirtieth of the arm that is nearest to the joint.

Times are processor seconds: run it with ``OMP_NUM_THREADS=1``. Shapes are the gallery's and, where they are beside the
checkout, real poses in ``../shared/data``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from pliant import (
    Animation,
    Blendshapes,
    CageRig,
    Mesh,
    Shapes,
    Weights,
    build_cage,
    gallery,
    linalg,
    quality,
    read_animation,
    read_mesh,
    rigid_groups,
)  # fmt: skip
from pliant.app.demo.bodies import BODIES, OURS, SKINNING_LABEL, joint_volumes
from pliant.core.rotations import match_rigid, polar

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "poses"
ITERATIONS = 100
HANDLES = 24


def pairs() -> Iterator[tuple[str, Mesh, Mesh]]:
    """Poses to blend."""
    tube, hand = gallery.tube(3000), gallery.hand(4000)
    yield "tube, bent by 120°", tube.named("straight"), tube.named("bent 120")
    yield "hand, open to fist", hand.named("open"), hand.named("fist")
    if DATA.is_dir():
        yield "real cat, pose 7", *(read_mesh(DATA / "cat" / f"cat-{pose}.obj") for pose in ("ref", "07"))
        yield "real horse, pose 5", *(read_mesh(DATA / "horse" / f"horse-{pose}.obj") for pose in ("ref", "05"))


def frames_of(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t, 3, 3) two edges and the normal, of about their length, of every triangle, as columns."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    return np.stack([b - a, c - a, n / np.sqrt(np.linalg.norm(n, axis=1, keepdims=True))], axis=2)


def arap_interpolation(base: Mesh, other: Mesh) -> np.ndarray:
    """Halfway between two poses: rotations of triangles by half, stretches in the mean, one Poisson solve."""
    triangles, n = base.triangles, len(base.points)
    rest = frames_of(base.points, triangles)
    F = frames_of(other.points, triangles) @ np.linalg.inv(rest)
    R = polar(F)
    half = polar(R + np.eye(3))  # by half the angle, about the same axis
    F = half @ (np.eye(3) + R.transpose(0, 2, 1) @ F) / 2
    i, j = triangles[:, [0, 1, 2]].ravel(), triangles[:, [1, 2, 0]].ravel()
    w = cotangents(base.points, triangles).ravel()
    wanted = np.einsum("tij,tkj->tki", F, base.points[triangles[:, [1, 2, 0]]] - base.points[triangles]).reshape(-1, 3)
    D = sp.csr_array((np.r_[-np.ones(len(i)), np.ones(len(i))], (np.r_[: len(i), : len(i)], np.r_[i, j])), (len(i), n))
    L = D.T @ sp.diags_array(w) @ D
    fixed = np.unique(base.parts, return_index=True)[1]
    hold = sp.csr_array((np.full(len(fixed), w.mean()), (fixed, fixed)), (n, n))
    blend = (base.points + other.points) / 2
    return linalg.factorize(L + hold).solve(D.T @ (w[:, None] * wanted) + hold @ blend)


def cotangents(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t, 3) half the cotangent opposite each edge (k, k + 1) of a triangle, at least a little."""
    found = []
    for k in range(3):
        a, b, c = (points[triangles[:, (k + m) % 3]] for m in range(3))
        u, v = a - c, b - c
        found.append(np.einsum("ti,ti->t", u, v) / np.linalg.norm(np.cross(u, v), axis=1).clip(1e-30))
    return (np.stack(found, axis=1) / 2).clip(1e-3, 1e3)


def arap(mesh: Mesh, handles: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """From where handles go to where all vertices go: local and global steps over one factorisation."""
    triangles, n, rest = mesh.triangles, len(mesh.points), mesh.points
    i, j = triangles.ravel(), triangles[:, [1, 2, 0]].ravel()
    w = cotangents(rest, triangles).ravel()
    i, j, w = np.r_[i, j], np.r_[j, i], np.r_[w, w]
    L = sp.csr_array((np.r_[w, -w], (np.r_[i, i], np.r_[i, j])), (n, n))
    free = np.setdiff1d(np.arange(n), handles)
    solver, coupling = linalg.factorize(L[free][:, free]), L[free][:, handles]
    gather = sp.csr_array((np.ones(len(i)), (i, np.arange(len(i)))), (n, len(i)))
    edges = w[:, None] * (rest[j] - rest[i])

    x = rest.copy()

    def solve(places: np.ndarray) -> np.ndarray:
        x[handles] = places
        for _ in range(ITERATIONS):
            S = gather @ np.einsum("ei,ej->eij", x[j] - x[i], edges).reshape(-1, 9)
            R = polar(S.reshape(-1, 3, 3))
            right = -gather @ np.einsum("eij,ej->ei", (R[i] + R[j]) / 2, edges)
            x[free] = solver.solve(right[free] - coupling @ places)
        return x.copy()

    return solve


def libigl_arap(mesh: Mesh, handles: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The same by libigl."""
    import igl

    data = igl.ARAPData()
    data.max_iter = ITERATIONS
    igl.arap_precomputation(mesh.points, mesh.triangles.astype(np.int64), 3, handles.astype(np.int32), data)
    x = mesh.points.copy()

    def solve(places: np.ndarray) -> np.ndarray:
        x[:] = igl.arap_solve(places, data, x)
        return x.copy()

    return solve


def between() -> None:
    """In-betweens of two poses."""
    columns = f"{'volume':>8} {'edges, mean':>12} {'99th':>7} {'bends, 99th':>12}"
    print(f"{'halfway':24} {'method':20} {columns} {'s a shape':>10}")
    for name, base, other in pairs():
        begun = time.process_time()
        both, half = Shapes.of([base, other]), [0.5, 0.5]
        rig = Blendshapes(both)
        rig.solve([0.75, 0.25])
        setup = time.process_time() - begun
        methods = {
            "linear (shape keys)": lambda base=base, other=other: (base.points + other.points) / 2,
            "ARAP interpolation": lambda base=base, other=other: arap_interpolation(base, other),
            "pliant blend": lambda rig=rig, half=half: rig.solve(half).points,
        }
        for method, make in methods.items():
            begun = time.process_time()
            points = make()
            seconds = time.process_time() - begun
            strain = np.abs(quality.edge_distortion(both, points, weights=half) - 1)
            bend = np.degrees(np.abs(quality.dihedral_deviation(both, points, weights=half)))
            volume = 2 * base.with_points(points).volume / (base.volume + other.volume)
            row = (
                f"{volume:8.1%} {strain.mean():12.1%} {np.quantile(strain, 0.99):7.0%} {np.quantile(bend, 0.99):11.1f}°"
            )
            print(f"{name:24} {method:20} {row} {seconds:10.3f}", flush=True)
        print(f"{name:24} {'pliant set-up':20} {'':42} {setup:10.3f}")


def clips() -> Iterator[tuple[str, Mesh, Animation]]:
    """A rest pose, and others of the same mesh."""
    yield "animal's gallop", gallery.animal(4000).base, gallery.animal_gait(4000, frames=4)
    if DATA.is_dir():
        gallop = read_animation(DATA / "horse-gallop" / "horse-gallop.tar.xz")
        few = Animation(gallop.shape, gallop.points[:24:6], gallop.fps)
        yield "real horse's gallop", read_mesh(DATA / "horse" / "horse-ref.obj"), few
        for name in ("cat", "horse"):
            rest = read_mesh(DATA / name / f"{name}-ref.obj")
            poses = [read_mesh(path).points for path in sorted((DATA / name).glob(f"{name}-0*.obj"))]
            yield f"real {name}, {len(poses)} poses", rest, Animation(rest, np.stack(poses), 1.0)
        crane = read_animation(DATA / "man-crane" / "crane.tar.xz")
        yield "real man", crane.shape, Animation(crane.shape, crane.points[:: len(crane) // 4][:4], crane.fps)


def handled() -> None:
    """ARAP, Green coordinates and cage rigs with the same handles."""
    columns = f"{'error, mean':>12} {'edges, mean':>12} {'volume':>8} {'set-up, s':>10} {'s a frame':>10}"
    print(f"\n{'with 24 handles':24} {'method':20} {columns}")
    for name, rest, clip in clips():
        groups = rigid_groups(clip, HANDLES, rest=rest.points)
        patches = [patch(rest, middle(rest.points, np.asarray(group))) for group in groups]
        fixed = np.unique(np.concatenate(patches))
        peers = {"ARAP": arap, "ARAP, libigl": libigl_arap} if find_spec("igl") else {"ARAP": arap}
        for method, peer in peers.items():
            begun = time.process_time()
            pull = peer(rest, fixed)
            ready = time.process_time()
            told(name, method, rest, clip, np.stack([pull(x[fixed]) for x in clip.points]), ready - begun, ready)

        begun = time.process_time()
        cage = build_cage(rest, faces=400)
        at = np.stack([rest.points[some].mean(axis=0) for some in patches])
        rig = CageRig(rest, cage, positions=at, gradients=at)
        ready = time.process_time()
        moves = [match_rigid(rest.points[some], clip.points[:, some]) for some in patches]
        R, shift = np.stack([R for R, _ in moves], axis=1), np.stack([t for _, t in moves], axis=1)
        goals = np.einsum("fkij,kj->fki", R, at) + shift
        near = np.linalg.norm(cage.points[:, None] - at[None], axis=2).argmin(axis=1)
        cages = np.einsum("fcij,cj->fci", R[:, near], cage.points) + shift[:, near]
        told(name, "Green coordinates", rest, clip, rig.play(cages).points, ready - begun, ready)
        for method, weights in (("Chen 2010", Weights(rigidity=0)), ("pliant", Weights())):
            begun_here = time.process_time()
            moved = rig.with_controls(weights=weights).animate(positions=goals, gradients=R)
            told(name, method, rest, clip, moved.points, ready - begun, begun_here)


def patch(mesh: Mesh, vertex: int) -> np.ndarray:
    """A vertex and its neighbours."""
    return np.unique(mesh.triangles[(mesh.triangles == vertex).any(axis=1)])


def middle(points: np.ndarray, group: np.ndarray) -> int:
    """The vertex of a group that is nearest to its middle."""
    return int(group[np.linalg.norm(points[group] - points[group].mean(axis=0), axis=1).argmin()])


def told(name: str, method: str, rest: Mesh, clip: Animation, points: np.ndarray, setup: float, begun: float) -> None:
    each = (time.process_time() - begun) / len(points)
    error = np.linalg.norm(points - clip.points, axis=2).mean() / rest.diagonal
    true = list(zip(points, clip.points, strict=True))
    strain = np.mean([np.abs(quality.edge_distortion(rest.with_points(b), a) - 1).mean() for a, b in true])
    volume = np.mean([rest.with_points(a).volume / rest.with_points(b).volume - 1 for a, b in true])
    print(f"{name:24} {method:20} {error:12.2%} {strain:12.1%} {volume:+8.1%} {setup:10.2f} {each:10.3f}", flush=True)


def joints() -> None:
    """An elbow."""
    run = next(exhibit for exhibit in BODIES if exhibit.name == "elbow").run()
    kept = joint_volumes(run)
    print(f"\n{'elbow at 90°':24} {'method':20} {'volume near the joint':>22}")
    for name, label in ((SKINNING_LABEL, SKINNING_LABEL), (OURS, "pliant simulate")):
        print(f"{'arm of two bones':24} {label:20} {kept[name][-1]:22.1%}")


if __name__ == "__main__":
    between()
    handled()
    joints()
