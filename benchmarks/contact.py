"""What contact costs: distances to obstacles, and frames that touch beside frames that do not.

Distances: signed distance and gradient of 10,000 points, best of five; the promise is below 20 ms a frame.

The mesh has 50,000 triangles. "A body's vertices" are those of a ball pressed into it; the others are places in no
order, "about it" anywhere in its bounding box, which is the worst case. libigl, if installed, answers the same question
by the same rule (pseudonormals), but builds its tree in every call; its closest points alone, without sign and with the
tree built before, are beside it.

Frames: clips of 24 frames, solved free and then in contact, one after the other; medians, so that the first frames,
which meet the obstacle, count as one each. The goal is 5 times a free frame at 8,000 vertices with 2,000 that touch, 8
times with friction, and 5 times with self-contact.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pliant import Blendshapes, gallery, rotations
from pliant.contact import Box, Capsule, Cylinder, HalfSpace, MeshObstacle, Sphere
from pliant.contact.watched_rows import WATCH_DISTANCE
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats

COUNT, FRAMES = 10_000, 24


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


def near_distance(obstacle: MeshObstacle, points: Floats) -> Floats:
    """As frames ask: of the vertices that are not near the box around an obstacle, nothing more."""
    return obstacle.signed(points[obstacle.clearance(points) <= WATCH_DISTANCE * obstacle.surface.diagonal])[0]


def frame_times(rig: Blendshapes, weights: Floats, **contact: Any) -> tuple[float, int, int, int]:
    """Median milliseconds of processor time a frame; the most contacts and iterations, and the frames not converged."""
    times, contacts, iterations, failed = [], 0, 0, 0
    begun = time.process_time()
    for pose in rig.poses(weights, **contact):
        times.append(time.process_time() - begun)
        contacts, iterations = max(contacts, pose.contacts), max(iterations, pose.iterations)
        failed += not pose.converged
        begun = time.process_time()
    return 1000 * float(np.median(times)), contacts, iterations, failed


def frames() -> None:
    """Free frames beside frames in contact."""
    bar, hand = gallery.bar(8000), gallery.hand(8000)
    bend = np.array([[1 - t, t] for t in np.linspace(0, 0.6, FRAMES)])
    close = np.array([[1 - t, t] for t in np.linspace(0, 1, FRAMES)])
    pressed: dict[str, dict[str, Any]] = {
        "bar pressed on a ball": {"obstacles": [Sphere((0, 1.2, 0), 0.95)]},
        "bar pressed on a thick ball": {"obstacles": [Sphere((0, 3.1, 0), 2.9)]},
        "bar pressed on a cylinder": {"obstacles": [Cylinder((0, 3.1, -3), (0, 3.1, 3), 2.85)]},
        "bar pressed on a half-space": {"obstacles": [HalfSpace((0, 0.46, 0), (0, -1, 0))]},
        "ball, friction 0.5": {"obstacles": [Sphere((0, 1.2, 0), 0.95)], "friction": 0.5},
        "thick ball, friction 0.5": {"obstacles": [Sphere((0, 3.1, 0), 2.9)], "friction": 0.5},
        "cylinder, friction 0.5": {"obstacles": [Cylinder((0, 3.1, -3), (0, 3.1, 3), 2.85)], "friction": 0.5},
        "half-space, friction 0.5": {"obstacles": [HalfSpace((0, 0.46, 0), (0, -1, 0))], "friction": 0.5},
    }
    cases = [
        (name, Blendshapes([bar.named("straight"), bar.named("bent 90")]), bend, how) for name, how in pressed.items()
    ]
    grip = Blendshapes([hand.named("open"), hand.named("grip")])
    fist = Blendshapes([hand.named("open"), hand.named("fist")])
    cases += [("hand that grips, self-contact", grip, close, {"self_contact": True})]
    cases += [("hand that makes a fist, self-contact", fist, close, {"self_contact": True})]
    heading = f"{'free':>8} {'contact':>8} {'times':>6} {'contacts':>9} {'iterations':>11} {'not converged':>13}"
    print(f"\n{'milliseconds a frame':40} {heading}")
    for name, rig, weights, how in cases:
        list(rig.poses(weights[:2], **how))
        free, *_ = frame_times(rig, weights)
        touching, contacts, iterations, failed = frame_times(rig, weights, **how)
        cost = f"{free:8.0f} {touching:8.0f} {touching / free:6.1f}"
        print(f"{name:40} {cost} {contacts:9} {iterations:11} {failed:13}", flush=True)


def main() -> None:
    distances()
    frames()


def distances() -> None:
    """Signed distances to obstacles."""
    print(f"{'milliseconds':48} {'points':>7} {'pliant':>8} {'libigl, with tree':>18} {'libigl, unsigned':>17}")
    for name, shape in (("animal", gallery.animal(25_000)[0]), ("sphere", gallery.sphere(25_000))):
        obstacle = MeshObstacle(shape)
        mesh = obstacle.surface
        for kind, points in queries(mesh).items():
            ours = best(lambda: obstacle.signed(points))  # noqa: B023
            label = f"{name}, {len(mesh.triangles):,} triangles, {kind}"
            print(f"{label:48.48} {len(points):7,} {ours:8.1f} {shown(peer(mesh, points)):>18} ", end="")
            print(f"{shown(peer_closest(mesh, points)):>17}")
        pressed = queries(mesh)["a body's vertices"]
        asked = best(lambda: near_distance(obstacle, pressed))  # noqa: B023
        print(f"{name + ', what a frame asks of those vertices':48} {COUNT:7,} {asked:8.1f}")
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
