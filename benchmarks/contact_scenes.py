"""A thousand random scenes of shapes in contact: how many do not converge, penetrate, tangle, tunnel or take long.

Gallery shapes of some 500 vertices blend between random poses while one or two obstacles are driven into them, many in
a single frame: balls, rods, wires, boxes, plates of 0.3 % of the diagonal, half-spaces, and meshes with sharp edges and
corners; friction from 0 to 1, self-contact on and off. No obstacle is driven into an anchor, which cannot give way.

Whether a shape penetrates is measured here, not asked of the solver: distances to solids by their formulas, to meshes
by brute force and solid angles (van Oosterom and Strackee 1983), at vertices, on grids on all faces near an obstacle,
and at points along the obstacle's edges inside the shape (by its own winding number). A scene counts as

- unconverged, if a frame says that it has not converged; "unsaid" is one of the failures below
  in a frame that says it has converged;
- penetrating, if anything is deeper than 1e-5 of the diagonal;
- tangled, if with self-contact two of its own faces cross;
- tunnelling, if a vertex is on the other side of a plate, and too far from its rim to have gone round it;
- lawless, if a frame that says it has converged has friction larger than Coulomb's law allows, by 1e-6 of the largest
  normal force, or if without contact there is a reaction, or the shape is 1e-6 of the diagonal away from the free one;
- slow, if a frame takes more than a second of processor time.

`--only 17` runs one scene, and prints its frames.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import Blendshapes, gallery, rotations
from pliant.contact import Box, Capsule, Cylinder, HalfSpace, MeshObstacle, MovingObstacle, Obstacle, Sphere
from pliant.contact.solver import ContactResult, ContactSolver
from pliant.core.shapes import Mesh

Floats = NDArray[np.float64]
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PLIANT_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # of the processes that are started
DEEP, SLOW_SECONDS = 1e-5, 1.0
FACE_PARTS, EDGE_SPACING = 8, 0.005
SHAPES = {"animal": 600, "bar": 500, "creature": 600, "dinosaur": 600, "gingerbread": 600, "hand": 600, "tentacle": 500,
          "tube": 500}  # fmt: skip
KINDS = ("ball", "rod", "wire", "box", "plate", "half-space", "cylinder", "needle", "wedge", "star")


# Distances, by code that the solver does not use


def distance(obstacle: Obstacle, points: Floats) -> Floats:
    """(n,) signed distance of points (n, 3), negative inside."""
    if isinstance(obstacle, Sphere):
        return np.linalg.norm(points - obstacle.centre, axis=1) - obstacle.radius
    if isinstance(obstacle, HalfSpace):
        return (points - obstacle.point) @ obstacle.normal
    if isinstance(obstacle, Box):
        beyond = np.abs((points - obstacle.centre) @ rotations.matrix(obstacle.rotation)) - obstacle.size / 2
        return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)
    if isinstance(obstacle, (Capsule, Cylinder)):
        axis = obstacle.b - obstacle.a
        along = (points - obstacle.a) @ axis / (axis @ axis)
        if isinstance(obstacle, Capsule):
            foot = obstacle.a + np.clip(along, 0, 1)[:, None] * axis
            return np.linalg.norm(points - foot, axis=1) - obstacle.radius
        away = np.linalg.norm(points - obstacle.a - along[:, None] * axis, axis=1) - obstacle.radius
        beyond = np.stack([away, (np.abs(along - 0.5) - 0.5) * np.linalg.norm(axis)], axis=1)
        return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)
    corners = obstacle.surface.points[obstacle.surface.triangles]
    return np.where(winding(points, corners) > 0.5, -1, 1) * mesh_distance(points, corners)


def winding(points: Floats, corners: Floats) -> Floats:
    """(n,) the winding number of triangles (t, 3, 3) about points."""
    out = np.zeros(len(points))
    for k in range(0, len(points), 500):
        a, b, c = np.moveaxis(corners[None] - points[k : k + 500, None, None], 2, 0)
        la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
        over = np.einsum("ntj,ntj->nt", a, np.cross(b, c))
        under = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
        out[k : k + 500] = np.arctan2(over, under).sum(axis=1) / (2 * np.pi)
    return out


def mesh_distance(points: Floats, corners: Floats) -> Floats:
    """(n,) distance of points to the nearest of triangles (t, 3, 3): of their edges, or of their planes inside."""
    out = np.full(len(points), np.inf)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    for k in range(0, len(points), 500):
        some = points[k : k + 500, None]
        inside, least = np.ones((len(some), len(corners)), bool), np.full((len(some), len(corners)), np.inf)
        for i in range(3):
            start, edge = corners[:, i], corners[:, (i + 1) % 3] - corners[:, i]
            away = some - start
            share = np.maximum(np.einsum("ntj,tj->nt", away, edge), 0)
            share = np.minimum(share / np.maximum(np.einsum("tj,tj->t", edge, edge), 1e-300), 1)
            least = np.minimum(least, np.linalg.norm(away - share[..., None] * edge, axis=2))
            inside &= np.einsum("ntj,tj->nt", away, np.cross(normal, edge)) >= 0
        height = np.abs(np.einsum("ntj,tj->nt", some - corners[:, 0], normal))
        out[k : k + 500] = np.where(inside, height, least).min(axis=1)
    return out


def grid(parts: int) -> Floats:
    """Points on a triangle as weights of its corners."""
    i, j = np.meshgrid(np.arange(parts + 1), np.arange(parts + 1), indexing="ij")
    weights = np.stack([i, j, parts - i - j], axis=-1).reshape(-1, 3)
    return weights[(weights >= 0).all(axis=1)] / parts


def depth(obstacle: Obstacle, x: Floats, triangles: NDArray[np.int64]) -> float:
    """How deep a shape is in an obstacle, or the obstacle in the shape."""
    corners = x[triangles]
    middle = corners.mean(axis=1)
    reach = np.linalg.norm(corners - middle[:, None], axis=2).max(axis=1)
    close = corners[distance(obstacle, middle) < reach]
    deepest = (
        -float(distance(obstacle, (grid(FACE_PARTS) @ close).reshape(-1, 3)).min(initial=0.0)) if len(close) else 0
    )
    if isinstance(obstacle, HalfSpace):
        return deepest
    sides = np.concatenate([obstacle.surface.triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    ends = obstacle.surface.points[np.unique(np.sort(sides, axis=1), axis=0)]
    size = float(np.linalg.norm(np.ptp(x, axis=0)))
    parts = np.ceil(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) / (EDGE_SPACING * size)).astype(int)
    which = np.repeat(np.arange(len(ends)), parts + 1)
    share = ((np.arange(len(which)) - np.repeat(np.cumsum(parts + 1) - parts - 1, parts + 1)) / parts[which])[:, None]
    along = ends[which, 0] * (1 - share) + ends[which, 1] * share
    along = along[((along > x.min(axis=0)) & (along < x.max(axis=0))).all(axis=1)]
    inside = along[winding(along, corners) > 0.5] if len(along) else along
    return max(deepest, float(mesh_distance(inside, corners).max(initial=0.0))) if len(inside) else deepest


def own_crossings(x: Floats, triangles: NDArray[np.int64]) -> int:
    """How many edges of a shape go through its faces."""
    ends = np.unique(
        np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1), axis=0
    )
    p, q, corners = x[ends[:, 0]], x[ends[:, 1]], x[triangles]
    low, high = corners.min(axis=1), corners.max(axis=1)
    meet = np.ones((len(ends), len(triangles)), bool)
    for k in range(3):
        meet &= (np.minimum(p, q)[:, None, k] <= high[:, k]) & (np.maximum(p, q)[:, None, k] >= low[:, k])
    e, t = np.nonzero(meet)
    apart = (ends[e][:, :, None] != triangles[t][:, None]).all(axis=(1, 2))
    e, t = e[apart], t[apart]
    a, b, c = np.moveaxis(corners[t], 1, 0)
    d, n = q[e] - p[e], np.cross(b - a, c - a)
    before, after = np.einsum("kj,kj->k", p[e] - a, n), np.einsum("kj,kj->k", q[e] - a, n)
    sides = [np.einsum("kj,kj->k", d, np.cross(u - p[e], v - p[e])) for u, v in ((a, b), (b, c), (c, a))]
    through = np.all([s > 0 for s in sides], axis=0) | np.all([s < 0 for s in sides], axis=0)
    return int((through & (before * after < 0)).sum())


def tunnelled(before: Obstacle, after: Obstacle, x: Floats, y: Floats) -> int:
    """Vertices that went through a plate between two frames."""
    if not isinstance(before, Box) or not isinstance(after, Box):
        return 0
    thin = int(np.argmin(before.size))
    wide = [k for k in range(3) if k != thin]
    if before.size[thin] > 0.2 * before.size[wide].min():
        return 0
    p, q = ((z - o.centre) @ rotations.matrix(o.rotation) for z, o in ((x, before), (y, after)))
    other = (p[:, thin] * q[:, thin] < 0) & (np.abs(q[:, thin]) > before.size[thin] / 2)
    p, q = p[other], q[other]
    share = p[:, thin] / (p[:, thin] - q[:, thin])
    at = p + share[:, None] * (q - p)
    rim = (before.size[wide] / 2 - np.abs(at[:, wide])).min(axis=1)
    return int((rim > np.linalg.norm(q - p, axis=1)).sum())


# Scenes


@lru_cache(maxsize=4)
def shapes_of(name: str) -> Any:
    return getattr(gallery, name)(SHAPES[name])


@lru_cache(maxsize=8)
def rig_of(name: str, first: str, second: str, anchor: str) -> Blendshapes:
    shapes = shapes_of(name)
    return Blendshapes([shapes.named(first), shapes.named(second)], anchor=anchor)


def solid(points: Any, faces: Any) -> Obstacle:
    return MeshObstacle(Mesh(np.asarray(points, float), np.asarray(faces)))


def made(kind: str, size: float, thin: float, rng: np.random.Generator) -> Obstacle:
    """An obstacle about the origin, that points along -y."""
    if kind == "ball":
        return Sphere((0, 0, 0), 0.5 * size)
    if kind in ("rod", "wire"):
        radius = 0.1 * size if kind == "rod" else thin
        return Capsule((-2 * size, 0, 0), (2 * size, 0, 0), radius)
    if kind == "cylinder":
        return Cylinder((0, -0.3 * size, 0), (0, 0.3 * size, 0), 0.3 * size)
    if kind == "box":
        return Box((0, 0, 0), size * rng.uniform(0.3, 1, 3))
    if kind == "plate":
        lying = rng.random() < 0.5
        return Box((0, 0, 0), (size, thin, 1.5 * size) if lying else (thin, size, 1.5 * size))
    if kind == "half-space":
        return HalfSpace((0, 0, 0), (0, -1, 0))
    if kind == "needle":
        angle = np.arange(4) * np.pi / 2
        ring = np.stack([0.15 * size * np.cos(angle), np.full(4, 0.5 * size), 0.15 * size * np.sin(angle)], axis=1)
        points = [*ring, [0, -0.5 * size, 0]]
        return solid(points, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4], [0, 2, 1], [0, 3, 2]])
    if kind == "wedge":
        a, b = 0.3 * size, 0.8 * size
        points = [[0, -a, -b], [0, -a, b], [-a, a, -b], [-a, a, b], [a, a, -b], [a, a, b]]
        return solid(points, [[0, 1, 3], [0, 3, 2], [0, 5, 1], [0, 4, 5], [2, 3, 5], [2, 5, 4], [0, 2, 4], [1, 5, 3]])
    # A tetrahedron or an octahedron with a spike on every face.
    from scipy.spatial import ConvexHull

    corners = [[[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], [*np.eye(3), *-np.eye(3)]][int(rng.integers(2))]
    hull = np.asarray(corners, float) @ rotations.matrix(rotations.normalize(rng.normal(size=4)))
    hull *= 0.2 * size / np.linalg.norm(hull[0])
    faces = ConvexHull(hull).simplices
    spikes = hull[faces].mean(axis=1) * rng.uniform(1.5, 5.0, (len(faces), 1))
    apex = len(hull) + np.arange(len(faces))
    sides = np.concatenate([np.stack([faces[:, k], faces[:, (k + 1) % 3], apex], axis=1) for k in range(3)])
    return solid(np.concatenate([hull, spikes]), sides)


@dataclass
class Scene:
    """What is made of a seed and a number."""

    title: str
    kinds: tuple[str, ...]
    rig: Blendshapes
    weights: Floats
    obstacles: list[MovingObstacle]
    options: dict[str, Any] = field(default_factory=dict)


def scene(seed: int, number: int) -> Scene:
    """Random, but with every obstacle outside the first shape, and none driven into an anchor."""
    rng = np.random.default_rng([seed, number])
    name = str(rng.choice(list(SHAPES)))
    shapes = shapes_of(name)
    first, second = (shapes.names[k] for k in rng.choice(len(shapes.names), 2, replace=False))
    first = shapes.names[0] if rng.random() < 0.5 and second != shapes.names[0] else first
    anchor = str(rng.choice(["auto", "none"]))
    rig = rig_of(name, first, second, anchor)
    frames = 5
    end = rng.uniform(0, 1)
    t = np.linspace(0, end, frames)
    weights = np.stack([1 - t, t], axis=1)
    base, free = rig.shapes.base, [rig.solve(w).points for w in weights]
    around = np.argsort(np.linalg.norm(base.points[:, None] - rig.anchors, axis=2), axis=0)[:16].T
    own = bool(rng.random() < 0.4) and not own_crossings(free[0], base.triangles)
    friction = float(rng.choice([0.0, 0.0, rng.uniform(0, 1)]))
    obstacles: list[MovingObstacle] = []
    kinds: list[str] = []
    for _ in range(1 + (rng.random() < 0.25)):
        kind = str(rng.choice(KINDS))
        for _ in range(20):
            moving = driven(kind, rng, base, free)
            late = [(moving.at(k), np.array([free[k][some].mean(axis=0) for some in around])) for k in range(frames)]
            clear = all((distance(o, at) > 0.06 * base.diagonal).all() for o, at in late if len(at))
            clear = clear and bool((distance(moving.at(0), free[0]) > 0).all())
            if clear and depth(moving.at(0), free[0], base.triangles) == 0:
                obstacles.append(moving)
                kinds.append(kind)
                break
    title = f"{name}, {first} to {end:.2f} {second}, anchor {anchor}, {' and '.join(kinds)}, friction {friction:.2f}"
    title += ", self-contact" * own
    return Scene(title, tuple(kinds), rig, weights, obstacles, {"friction": friction, "self_contact": own})


def driven(kind: str, rng: np.random.Generator, base: Mesh, free: list[Floats]) -> MovingObstacle:
    """An obstacle that is driven into a random vertex, within one to three frames, and drawn along or away."""
    d = base.diagonal
    size, thin = d * rng.uniform(0.1, 0.5), d * float(rng.choice([0.003, rng.uniform(0.002, 0.02)]))
    obstacle = made(kind, size, thin, rng)
    target = int(rng.integers(len(base.points)))
    corners = free[-1][base.triangles[(base.triangles == target).any(axis=1)]]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]).sum(axis=0)
    outward = outward / np.linalg.norm(outward) + 0.3 * rng.normal(size=3)
    outward /= np.linalg.norm(outward)
    # Its -y turned to face the vertex, and any way about that.
    turn = rotations.from_axis_angle(np.array([0.0, 1, 0]), rng.uniform(0, 2 * np.pi))
    turn = rotations.multiply(rotations.between(np.array([0.0, 1, 0]), outward), turn)
    placed = obstacle.moved(turn, (0, 0, 0))
    # Where its surface is, along the way in from outside.
    way = np.linspace(2, -2, 400)[:, None] * d
    touch = float(way[np.argmax(distance(placed, -way * outward) < 0)][0]) if kind != "half-space" else 0.0
    deep = d * rng.uniform(0.02, 0.12)
    touching = free[-1][target] + touch * outward
    final, away = touching - deep * outward, touching + d * rng.uniform(0.02, 0.3) * outward
    for _ in range(40):
        first = placed.moved((1, 0, 0, 0), away)
        if (distance(first, free[0]) > 0.01 * d).all():
            break
        away = away + 0.1 * d * outward
    slide = np.cross(outward, rng.normal(size=3)) * 0.1 * d * rng.random()
    spun = rotations.from_axis_angle(rng.normal(size=3), rng.uniform(0, 0.4))
    still, arrives = np.array([1.0, 0, 0, 0]), int(rng.integers(1, 4))
    keys = [(0, away, still), (arrives, final, still)]
    if arrives < 3:
        keys.append((3, final + slide, spun if kind != "half-space" else still))
    keys.append((4, away if rng.random() < 0.5 else keys[-1][1], keys[-1][2]))
    return MovingObstacle(placed, keys)


def run(task: tuple[int, int, bool]) -> dict[str, Any]:
    """What became of one scene."""
    seed, number, detailed = task
    warnings.simplefilter("ignore")
    made_scene = scene(seed, number)
    rig, triangles, d = made_scene.rig, made_scene.rig.shapes.base.triangles, made_scene.rig.shapes.base.diagonal
    out: dict[str, Any] = {"number": number, "title": made_scene.title, "kinds": made_scene.kinds, "messages": []}
    out |= dict.fromkeys(FAILURES, False)
    out |= {"depth": 0.0, "slowest": 0.0, "seconds": 0.0, "contacts": 0, "skipped": not made_scene.obstacles}
    if out["skipped"]:
        return out
    before: Floats | None = None
    solved: list[ContactResult] = []
    frame_of = ContactSolver.frame
    ContactSolver.frame = lambda *a, **o: solved.append(frame_of(*a, **o)) or solved[-1]  # type: ignore[method-assign]
    poses = rig.poses(made_scene.weights, obstacles=made_scene.obstacles, **made_scene.options)
    begun = time.process_time()
    for k, pose in enumerate(poses):
        took = time.process_time() - begun
        obstacles = [moving.at(k) for moving in made_scene.obstacles]
        deep = max(depth(obstacle, pose.points, triangles) for obstacle in obstacles) / d
        crossed = own_crossings(pose.points, triangles) if made_scene.options["self_contact"] else 0
        through = 0
        if before is not None:
            earlier = [moving.at(k - 1) for moving in made_scene.obstacles]
            through = sum(tunnelled(a, b, before, pose.points) for a, b in zip(earlier, obstacles, strict=True))
        bad = {"penetrating": deep > DEEP, "tangled": crossed > 0, "tunnelling": through > 0}
        for name, it_is in bad.items():
            out[name] |= it_is
        out["unconverged"] |= not pose.converged
        out["unsaid"] |= any(bad.values()) and pose.converged
        normal, size = solved[-1].friction.T
        lawless = (size - made_scene.options["friction"] * normal).max(initial=0) > 1e-6 * normal.max(initial=0)
        if not pose.contacts:
            away = np.abs(pose.points - rig.solve(made_scene.weights[k]).points).max()
            lawless = bool(lawless or pose.reactions.any() or away > 1e-6 * d)
        out["lawless"] |= lawless and pose.converged
        out["slow"] |= took > SLOW_SECONDS
        out["depth"], out["slowest"] = max(out["depth"], deep), max(out["slowest"], took)
        out["seconds"], out["contacts"] = out["seconds"] + took, max(out["contacts"], pose.contacts)
        if not pose.converged:
            out["messages"].append(f"frame {k}: {pose.message}")
        if detailed:
            effort = f"{took:.2f} s, {pose.contacts} contacts, {pose.iterations} iterations"
            found = f"depth {deep:.1e} (reported: {pose.penetration:.1e}), {crossed} crossings, {through} through"
            print(f"frame {k}: {effort}, {found}; {pose.message or 'converged'}", flush=True)
        before, begun = pose.points, time.process_time()
    ContactSolver.frame = frame_of  # type: ignore[method-assign]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first scene")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", type=int, help="one scene, frame by frame")
    given = parser.parse_args()
    if given.only is not None:
        print(run((given.seed, given.only, True)))
        return
    tasks = [(given.seed, number, False) for number in range(given.first, given.first + given.count)]
    results = []
    with ProcessPoolExecutor(given.processes) as pool:
        for result in pool.map(run, tasks, chunksize=1):
            if result["skipped"]:
                print(f"{result['number']:5} left out: {result['title']}", flush=True)
                continue
            results.append(result)
            if len(results) % 10 == 0:
                print(f"{len(results)} scenes", file=sys.stderr, flush=True)
            wrong = [name for name in FAILURES if result[name]]
            if wrong:
                figures = f"depth {result['depth']:.1e}, slowest frame {result['slowest']:.2f} s"
                print(
                    f"{result['number']:5} {', '.join(wrong)}: {result['title']}; {figures}",
                    *result["messages"][:1],
                    flush=True,
                )
    print(f"\n{'':12} {'scenes':>8}", *(f"{name:>12}" for name in (*FAILURES, "s a frame")))
    for kind in (*KINDS, "all"):
        some = [r for r in results if kind == "all" or kind in r["kinds"]]
        counts = (f"{sum(r[name] for r in some):12}" for name in FAILURES)
        print(f"{kind:12} {len(some):8}", *counts, f"{sum(r['seconds'] for r in some) / max(5 * len(some), 1):12.3f}")


FAILURES = ("unconverged", "penetrating", "tangled", "tunnelling", "lawless", "slow", "unsaid")

if __name__ == "__main__":
    main()
