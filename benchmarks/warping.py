"""Figures 1 and 2 of Song et al. (2006) as a table: a bar bent and twisted by every warping; how long steps may be.

The bar is 4 x 1 x 1, of Poisson's ratio 0.45, with bones along its axis. Poses are static; volume is that of the flesh
over rest, J the determinant of the deformation gradient at the quadrature points: 1 is perfect, below 0 is inside out.
Eq. (11) as printed depends on where the origin is, so it is shown with the origin in the middle and at an end.

Then a stiffer bar is bent by 180 degrees and back in a second, in steps of three lengths: with the rotations diffused
from the bones, and with those of Müller's method, by polar decomposition of the step before.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pliant import ElasticBody, Material, Motion, Skeleton, gallery, rotations

DIFFUSED: dict[str, dict[str, Any]] = {
    "corotated (default)": {"warping": "corotated"},
    "per node": {"warping": "per_node"},
    "Eq. (11), origin in the middle": {"warping": "paper"},
    "Eq. (11), origin at an end": {"warping": "paper", "at": 2.0},
    "per node, polar rotations in sub-steps": {"warping": "per_node", "rotations": "polar"},
}


def bones(at: float, joints: int) -> Skeleton:
    """Joints along the bar, whose middle is at `at`."""
    points = np.zeros((joints, 3))
    points[:, 0] = at + np.linspace(-1.9, 1.9, joints)
    return Skeleton.from_positions(points, np.arange(joints) - 1)


def bar(at: float = 0.0, young: float = 1e5, nodes: int = 864, joints: int = 13, **scheme: Any) -> ElasticBody:
    """The bar with its bones."""
    shape = gallery.bar(1000)[0]
    return ElasticBody(
        shape.with_points(shape.points + np.array([at, 0, 0])), bones(at, joints), nodes=nodes,
        material=Material(young=young, poisson=0.45), **scheme,
    )  # fmt: skip


def poses() -> None:
    """Static poses by all warpings."""
    print(f"{'':50} {'angle':>6} {'volume':>8} {'min J':>8} {'max J':>8} {'inverted':>9}")
    bodies = {name: bar(**scheme) for name, scheme in DIFFUSED.items()}
    for what, axis in (("bent", (0, 0, 1)), ("twisted", (1, 0, 0))):
        for degrees in (45, 90, 110):
            for name, body in bodies.items():
                skeleton = body.skeleton
                turn = rotations.from_axis_angle(axis, np.radians(degrees) / (len(skeleton) - 2))
                pose = body.pose(skeleton.pose(dict.fromkeys(skeleton.names[1:-1], turn)))
                J = np.linalg.det(body.operator.gradients(pose.nodes))
                row = f"{pose.volume:8.3f} {J.min():8.2f} {J.max():8.2f} {pose.inverted:9}"
                print(f"{what + ', ' + name:50} {degrees:5}° {row}", flush=True)


def swing(skeleton: Skeleton, rate: int) -> Motion:
    """To 180 degrees and back in a second."""
    angle = np.radians(180) * (1 - np.cos(2 * np.pi * np.arange(rate + 1) / rate)) / 2 / (len(skeleton) - 2)
    turns = np.repeat(skeleton.rest_rotations[None], rate + 1, axis=0)
    turns[:, 1:-1] = rotations.from_axis_angle([0, 0, 1], angle)[:, None]
    return Motion(skeleton, turns, np.repeat(skeleton.offsets[None], rate + 1, axis=0), fps=rate)


def steps() -> None:
    """Dynamics in steps of three lengths."""
    print(f"\n{'bent by 180° and back in a second':40} {'step':>6} {'inverted':>9} {'most energy':>12} {'seconds':>8}")
    schemes: dict[str, dict[str, Any]] = {
        "diffused, corotated (default)": {},
        "polar, per node": {"warping": "per_node", "rotations": "polar"},
    }
    for name, scheme in schemes.items():
        body = bar(young=1e6, nodes=300, joints=5, **scheme)
        for rate in (30, 60, 240):
            begun = time.perf_counter()
            clip = body.simulate(swing(body.skeleton, rate), dt=1 / rate)
            seconds = time.perf_counter() - begun
            most = clip.measured("energy").max()
            inverted = int(clip.measured("inverted").max())
            print(
                f"{name:40} {'1/' + str(rate):>6} {inverted:9} {most:12.3g} {seconds:8.1f} {clip.stopped}", flush=True
            )


if __name__ == "__main__":
    poses()
    steps()
