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
from warping_schemes import Scheme

from pliant import ElasticBody, Material, Motion, Skeleton, gallery, rotations

SCHEMES: dict[str, tuple[float, tuple[Any, ...]]] = {
    "corotated (pliant's)": (0.0, ()),
    "per node": (0.0, ("per_node",)),
    "Eq. (11), origin in the middle": (0.0, ("paper",)),
    "Eq. (11), origin at an end": (2.0, ("paper",)),
    "per node, polar rotations in sub-steps": (0.0, ("per_node", "polar")),
}
"""Where the bar's middle is, and the warping and rotations of the others."""


def bones(at: float, joints: int) -> Skeleton:
    """Joints along the bar, whose middle is at `at`."""
    points = np.zeros((joints, 3))
    points[:, 0] = at + np.linspace(-1.9, 1.9, joints)
    return Skeleton.from_positions(points, np.arange(joints) - 1)


def bar(at: float = 0.0, young: float = 1e5, nodes: int = 864, joints: int = 13) -> ElasticBody:
    """The bar with its bones."""
    shape = gallery.bar(1000)[0]
    return ElasticBody(
        shape.with_points(shape.points + np.array([at, 0, 0])), bones(at, joints), nodes=nodes,
        material=Material(young=young, poisson=0.45),
    )  # fmt: skip


def poses() -> None:
    """Static poses by all warpings."""
    print(f"{'':50} {'angle':>6} {'volume':>8} {'min J':>8} {'max J':>8} {'inverted':>9}")
    bodies = {name: (bar(at), scheme) for name, (at, scheme) in SCHEMES.items()}
    for what, axis in (("bent", (0, 0, 1)), ("twisted", (1, 0, 0))):
        for degrees in (45, 90, 110):
            for name, (body, scheme) in bodies.items():
                skeleton = body.skeleton
                turn = rotations.from_axis_angle(axis, np.radians(degrees) / (len(skeleton) - 2))
                pose = skeleton.pose(dict.fromkeys(skeleton.names[1:-1], turn))
                nodes = Scheme(body, *scheme).pose(pose) if scheme else body.pose(pose).nodes
                J = np.linalg.det(body.operator.gradients(nodes))
                volume = body.operator.weights @ J / body.volume
                row = f"{volume:8.3f} {J.min():8.2f} {J.max():8.2f} {(J <= 0).sum():9}"
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
    body = bar(young=1e6, nodes=300, joints=5)
    for name in ("diffused, corotated (pliant's)", "polar, per node"):
        for rate in (30, 60, 240):
            begun, motion = time.perf_counter(), swing(body.skeleton, rate)
            if name.startswith("polar"):
                shapes = list(Scheme(body, "per_node", "polar").steps(motion, 1 / rate))
                turns = [rotations.polar(body.operator.gradients(x)).reshape(-1, 9) for x in shapes]
            else:
                shapes = [state.nodes for state in body.states(motion, dt=1 / rate)]
                frames = body.bones.posed(motion.rotations, motion.translations)
                turns = [body.posed(frames, k).R for k in range(len(shapes))]
            seconds = time.perf_counter() - begun
            measured = [body.operator.strains(x, R) for x, R in zip(shapes, turns, strict=True)]
            energy = max(body.operator.energy(strain) for strain, _ in measured)
            inverted = max(int((J <= 0).sum()) for _, J in measured)
            print(f"{name:40} {'1/' + str(rate):>6} {inverted:9} {energy:12.3g} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    poses()
    steps()
