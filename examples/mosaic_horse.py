"""A gallop drives another horse, made of loose mosaic blocks (Figure 6 of Chen et al. 2010).

The source is a mesh sequence: vertex groups on its legs, neck and trunk have their deformation gradients found by shape
matching. The target is a longer horse of rigid cubes, each moved by the rotation at its middle.

    python examples/mosaic_horse.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pliant
from pliant import Control, Follow, Weights, gallery
from pliant.geometry.spatial import SurfaceTree

STRETCH = np.array([1.1, 0.95, 1.15])
"""The target over the source, along x, y and z."""
CUBE = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
LEGS = ("forearm", "cannon", "hoof", "gaskin", "hindcannon", "hindhoof")
GROUPS = ("loins", "chest", "neck2", "head", "tail2", "tail4", *(f"{leg}.{side}" for leg in LEGS for side in "LR"))
LENGTHS = [("neck1", "neck3"), *((a + s, b + s) for a, b in (("forearm", "cannon"), ("gaskin", "hindcannon"),
           ("cannon", "pastern"), ("hindcannon", "hindpastern")) for s in (".L", ".R"))]  # fmt: skip


def mosaic(shape: pliant.Mesh, cubes: int = 60) -> pliant.Mesh:
    """Cubes that fill a shape, so many along its longest side; none touches another."""
    low, size = shape.points.min(axis=0), np.ptp(shape.points, axis=0).max() / cubes
    counts = np.ceil(np.ptp(shape.points, axis=0) / size).astype(int) + 1
    lattice = low + size * np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    inside = lattice[SurfaceTree(shape).signed_distance(lattice) < 0.2 * size]
    corners = 0.85 * size * (np.indices((2, 2, 2)).reshape(3, -1).T - 0.5)
    points = (inside[:, None] + corners).reshape(-1, 3)
    return pliant.Mesh(points, (8 * np.arange(len(inside))[:, None, None] + CUBE).reshape(-1, 4))


def main(folder: Path) -> pliant.Transfer:
    """Transfer, and write the clip and a picture of it."""
    gait, bones = gallery.animal_gait(4000, frames=16), gallery.animal_skeleton()
    target = mosaic(gait.shape.with_points(gait.shape.points * STRETCH))
    tracks = pliant.group_tracks(gait, {name: name for name in GROUPS}, fit="rotation")
    controls = [Control(track.rest * STRETCH, track) for track in tracks.values()]
    joints = dict(zip(bones.names, bones.rest_pose().world()[0] * STRETCH, strict=True))
    lengths = [(joints[a], joints[b]) for a, b in LENGTHS]
    trunk = tracks["loins"]
    moved = pliant.transfer(
        tracks,
        target,
        pliant.build_cage(target, faces=600),  # coarser ones cannot bend the slender legs without thinning them
        controls,
        follow=[Follow(trunk.rest * STRETCH, trunk, scale=1.0)],
        lengths=lengths,
        weights=Weights(gradient=60.0, length=50.0),
    )
    blocks = pliant.rigid_blocks(moved)
    pliant.write(folder / "mosaic_horse.glb", blocks)
    sheet = pliant.render.contact_sheet({"gallop": gait, "mosaic horse": blocks}, frames=6, view=(60, 10))
    sheet.save(folder / "mosaic_horse.png")
    return moved


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
