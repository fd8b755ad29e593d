"""A creature shakes itself: its bones are found, turned by hand, and the flesh swings and settles (Song et al. 2006).

python examples/shaking_creature.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pliant
from pliant import ElasticBody, Material, Motion, Simulation, Skeleton, extract_skeleton, gallery, render, rotations

FPS, SECONDS = 30.0, 1.4


def shake(skeleton: Skeleton) -> Motion:
    """Every bone turns to and fro about the vertical, later the farther out it is."""
    t = np.arange(round(FPS * SECONDS)) / FPS
    depth = np.zeros(len(skeleton))
    for j, parent in enumerate(skeleton.parents):
        depth[j] = 0 if parent < 0 else depth[parent] + 1
    swing = np.sin(2 * np.pi * 2.2 * t[:, None] - 0.6 * depth) * np.sin(np.pi * t / SECONDS)[:, None] ** 2
    turns = rotations.from_axis_angle(np.broadcast_to([0.0, 1.0, 0.0], (*swing.shape, 3)), np.radians(16) * swing)
    return Motion(
        skeleton,
        rotations.multiply(skeleton.rest_rotations, turns),
        np.tile(skeleton.offsets, (len(t), 1, 1)),
        FPS,
    )


def main(folder: str | Path = ".", vertices: int = 3000, nodes: int = 1500) -> Simulation:
    creature = gallery.creature(vertices).base
    bones = extract_skeleton(creature)
    body = ElasticBody(creature, bones, material=Material(young=6e4, poisson=0.42), nodes=nodes)
    clip = body.simulate(shake(bones), gravity=9.81, hold=0.6)
    pliant.write(Path(folder) / "shaking_creature.glb", clip)
    sheet = render.contact_sheet(clip, frames=8, columns=4, size=(260, 260), view=(30, 10))
    render.save(sheet, Path(folder) / "shaking_creature.png")
    return clip


if __name__ == "__main__":
    shaken = main(*sys.argv[1:])
    volume = shaken.measured("volume")
    print(f"{shaken!r}: volume from {volume.min():.3f} to {volume.max():.3f} of that at rest")
