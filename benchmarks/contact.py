"""Signed distance and gradient of 10,000 points to obstacles, best of five; the promise is below 20 ms a frame.

The mesh has 50,000 triangles. "A body's vertices" are those of a ball pressed into it; the others are places in no
order, "about it" anywhere in its bounding box, which is the worst case. libigl, if installed, answers the same question
by the same rule (pseudonormals), but builds its tree in every call; its closest points alone, without sign and with the
tree built before, are beside it.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np

from pliant import gallery, rotations
from pliant.contact import Box, Capsule, Cylinder, HalfSpace, MeshObstacle, Sphere
from pliant.shapes import Mesh
from pliant.topology import Floats

COUNT = 10_000


def best(function: Callable[[], object]) -> float:
    """Milliseconds of the quickest of five calls, after one that compiles."""
    function()
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return 1000 * min(times)


def queries(mesh: Mesh) -> dict[str, Floats]:
    rng = np.random.default_rng(0)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    ball = gallery.sphere(COUNT).points
    ball = ball / np.linalg.norm(ball, axis=1, keepdims=True) * 0.25 * mesh.diagonal
    pressed = ball + mesh.points[np.argmax(mesh.points[:, 1])] + [0, 0.2 * mesh.diagonal, 0]
    near = mesh.points[rng.integers(len(mesh.points), size=COUNT)] + 0.01 * mesh.diagonal * rng.normal(size=(COUNT, 3))
    return {"a body's vertices": pressed, "near its surface": near, "about it": rng.uniform(low, high, (COUNT, 3))}


def peer(mesh: Mesh, points: Floats) -> Callable[[], object] | None:
    """libigl's signed distance, which builds its tree in every call."""
    if importlib.util.find_spec("igl") is None:
        return None
    import igl

    V, F = np.ascontiguousarray(mesh.points), np.ascontiguousarray(mesh.triangles)
    kind = igl.SIGNED_DISTANCE_TYPE_PSEUDONORMAL
    return lambda: igl.signed_distance(points, V, F, sign_type=kind)


def peer_closest(mesh: Mesh, points: Floats) -> Callable[[], object] | None:
    """libigl's closest points, unsigned, with its tree built before."""
    if importlib.util.find_spec("igl") is None:
        return None
    import igl

    V, F = np.ascontiguousarray(mesh.points), np.ascontiguousarray(mesh.triangles)
    tree = igl.AABB()
    tree.init(V, F)
    return lambda: tree.squared_distance(V, F, points)


def shown(function: Callable[[], object] | None) -> str:
    return "not installed" if function is None else f"{best(function):.1f}"


def main() -> None:
    print(f"{'milliseconds':48} {'points':>7} {'pliant':>8} {'libigl, with tree':>18} {'libigl, unsigned':>17}")
    for name, shape in (("animal", gallery.animal(25_000)[0]), ("sphere", gallery.sphere(25_000))):
        obstacle = MeshObstacle(shape)
        mesh = obstacle.surface
        for kind, points in queries(mesh).items():
            ours = best(lambda: obstacle.signed(points))  # noqa: B023
            label = f"{name}, {len(mesh.triangles):,} triangles, {kind}"
            print(f"{label:48.48} {len(points):7,} {ours:8.1f} {shown(peer(mesh, points)):>18} ", end="")
            print(f"{shown(peer_closest(mesh, points)):>17}")
        turn = rotations.from_axis_angle([0, 1, 0], 0.01)
        print(f"{name + ', moved':48} {'':7} {best(lambda: obstacle.moved(turn, (0, 0, 0))):8.1f}")  # noqa: B023
        starts, ends = queries(mesh)["near its surface"], queries(mesh)["about it"]
        print(f"{name + ', first hits':48} {COUNT:7,} {best(lambda: obstacle.tree.first_hit(starts, ends)):8.1f}")  # noqa: B023
    points = np.random.default_rng(1).normal(size=(COUNT, 3))
    for solid in (
        Sphere((0, 0, 0), 1),
        Capsule((0, 0, 0), (1, 0, 0), 0.5),
        Cylinder((0, 0, 0), (1, 0, 0), 0.5),
        Box((0, 0, 0), (1, 1, 1)),
        HalfSpace((0, 0, 0), (0, 1, 0)),
    ):
        print(f"{type(solid).__name__:48} {COUNT:7,} {best(lambda: solid.signed(points)):8.1f}")  # noqa: B023


if __name__ == "__main__":
    main()
