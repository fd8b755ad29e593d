"""Large blends on a coarse body that carries the surface, beside the solve of all vertices, in one run.

    python benchmarks/coarse.py                       # gallery's animal and hand at 100,000 vertices
    python benchmarks/coarse.py --sizes 50000 190000  # other sizes
    python benchmarks/coarse.py --alone 300000 1000000  # the coarse body alone, on subdivided shapes
    python benchmarks/coarse.py --flipped 0.01 0.3      # all vertices, with other edges between them

Processor seconds of set-up and of a shape whose warm start is there, and the distance of a vertex from the solve of all
vertices over the diagonal, at weights of 0.25, 0.5 and 0.7; at both shapes it has to be rounding. What the solve of all
vertices itself owes to the triangles that an artist has drawn is the distance where a share of the edges are the other
diagonals of their two triangles.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from pliant import Blendshapes, Mesh, gallery

PAIRS = {"animal": 3, "hand": 2}
"""Shapes of the gallery, and which pose they are blended to."""
WEIGHTS = (0.25, 0.5, 0.7)


def pair(name: str, count: int) -> list[Mesh]:
    """Two poses of about so many vertices; beyond the gallery's largest, each triangle is divided into four."""
    divisions = max(0, int(np.ceil(np.log(count / 190_000) / np.log(4)))) if count > 190_000 else 0
    made = getattr(gallery, name)(int(count / 4**divisions))
    meshes = [Mesh(made.points[k], made.base.triangles) for k in (0, PAIRS[name])]
    for _ in range(divisions):
        meshes = [divided(mesh) for mesh in meshes]
    return meshes


def divided(mesh: Mesh) -> Mesh:
    """Each triangle in four, by the middles of its edges."""
    edges, n = mesh.edges, len(mesh.points)
    order = np.sort(edges, axis=1) @ [n, 1]
    rank = np.argsort(order)
    a, b, c = mesh.triangles.T

    def middle(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        key = np.minimum(i, j) * n + np.maximum(i, j)
        return n + rank[np.searchsorted(order[rank], key)]

    ab, bc, ca = middle(a, b), middle(b, c), middle(c, a)
    triangles = np.concatenate([np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
    return Mesh(np.concatenate([mesh.points, mesh.points[edges].mean(axis=1)]), triangles)


def flipped(meshes: list[Mesh], share: float) -> tuple[list[Mesh], float]:
    """The meshes with about so many edges replaced by the other diagonals of their triangles; and how many were."""
    points, triangles = meshes[0].points, meshes[0].triangles.copy()
    n, t = len(points), len(triangles)
    sides = np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    key = np.sort(sides, axis=1) @ [n, 1]
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    one, two = order[twice], order[twice + 1]
    i, j = sides[one].T
    c, d = (np.roll(triangles, 1, axis=1)[side % t, side // t] for side in (one, two))

    def normal(a: np.ndarray, b: np.ndarray, e: np.ndarray) -> np.ndarray:
        return np.cross(points[b] - points[a], points[e] - points[a])

    before = normal(i, j, c)
    least = 0.3 * (before**2).sum(axis=1)
    sound = np.all([(normal(*corners) * before).sum(axis=1) > least for corners in ((i, d, c), (d, j, c))], axis=0)
    known, touched, count = set(key.tolist()), np.zeros(t, dtype=bool), 0
    for e in np.random.default_rng(0).permutation(np.flatnonzero(sound)):
        a, b, new = one[e] % t, two[e] % t, min(c[e], d[e]) * n + max(c[e], d[e])
        if touched[a] or touched[b] or new in known or count >= share * len(one):
            continue
        known.add(new)
        touched[[a, b]], count = True, count + 1
        triangles[a], triangles[b] = (i[e], d[e], c[e]), (d[e], j[e], c[e])
    return [Mesh(mesh.points, triangles) for mesh in meshes], count / len(one)


def timed(shapes: list[Mesh], **options: object) -> tuple[float, float, list[np.ndarray], float]:
    """Set-up, a shape, the shapes at the weights, and the distance from both shapes at their own weights."""
    began = time.process_time()
    rig = Blendshapes(shapes, **options)  # type: ignore[arg-type]
    set_up, seconds, points = time.process_time() - began, [], []
    for w in WEIGHTS:
        rig.prepare([[1 - w, w]])
        began = time.process_time()
        points.append(rig.solve([1 - w, w]).points)
        seconds.append(time.process_time() - began)
    ends = max(np.abs(rig.solve(w).points - s.points).max() for w, s in zip(np.eye(2), shapes, strict=True))
    return set_up, float(np.median(seconds)), points, float(ends) / shapes[0].diagonal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000])
    parser.add_argument("--alone", type=int, nargs="*", default=[])
    parser.add_argument("--flipped", type=float, nargs="*", default=[])
    parser.add_argument("--names", nargs="*", default=list(PAIRS))
    given = parser.parse_args()
    print(
        "| shape | vertices | all: set-up | a shape | coarse or flipped: set-up | a shape | farthest | mean "
        "| at shapes | peak |"
    )
    print("| --- |" + " ---: |" * 9)
    for name in given.names:
        for count in given.sizes:
            shapes = pair(name, count)
            full = timed(shapes, coarse="none")
            own = f"{full[0]:.1f} s", f"{full[1]:.2f} s"
            if not given.flipped:
                coarse = timed(shapes, coarse=6000)
                row(name, shapes, *own, coarse, *distances(full[2], coarse[2], shapes[0].diagonal))
            for share in given.flipped:
                others, flips = flipped(shapes, share)
                other = timed(others, coarse="none")
                row(
                    f"{name}, {flips:.1%} flipped",
                    shapes,
                    *own,
                    other,
                    *distances(full[2], other[2], shapes[0].diagonal),
                )
        for count in given.alone:
            shapes = pair(name, count)
            row(name, shapes, "", "", timed(shapes, coarse=6000), "", "")


def distances(one: list[np.ndarray], other: list[np.ndarray], diagonal: float) -> tuple[str, str]:
    """The largest distance of any vertex, and the largest mean, in several shapes."""
    away = [np.linalg.norm(a - b, axis=1) / diagonal for a, b in zip(one, other, strict=True)]
    return f"{max(a.max() for a in away):.2%}", f"{max(a.mean() for a in away):.3%}"


def row(name: str, shapes: list[Mesh], set_up: str, solve: str, coarse: tuple, farthest: str, mean: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # of kilobytes
    own = f"{coarse[0]:.1f} s | {coarse[1]:.3f} s | {farthest} | {mean} | {coarse[3]:.0e} | {peak:.1f} GiB"
    print(f"| {name} | {len(shapes[0].points):,} | {set_up} | {solve} | {own} |", flush=True)


if __name__ == "__main__":
    main()
