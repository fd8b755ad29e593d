"""Rigid blocks: pieces of a target that move without bending (the mosaic horse, Figure 6 of Chen et al. 2010).

The centroid c of a block is mapped by Green coordinates, and its points by the rotation R nearest to the deformation
gradient there (polar decomposition): ``p' = c' + R (p - c)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.rotations import polar
from pliant.core.shapes import Mesh, Shape
from pliant.core.topology import Floats, Ints
from pliant.core.validation import whole_numbers
from pliant.core.values import locked
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.green import not_inside


def rigid_blocks(moved: Transfer, parts: ArrayLike | None = None) -> Animation:
    """The clip of a transfer again, where each part of the target moves as a rigid block.

    parts: (n,) the number of each point's block, such as ``mesh.parts``, which it is by default: connected pieces.
    """
    if not isinstance(moved, Transfer):
        raise InputError(f"got a {type(moved).__name__}; expected what transfer returns")
    target = moved.clip.shape
    number = block_numbers(target, parts)
    count = int(number.max()) + 1
    size = np.bincount(number, minlength=count)
    sums = [np.bincount(number, target.points[:, k], minlength=count) for k in range(3)]
    centres = np.stack(sums, axis=1) / size[:, None]
    positions, rotations = rigid_frames(moved.rig.cage, centres, moved.cage.points)
    arms = target.points - centres[number]
    points = positions[:, number] + np.einsum("fnij,nj->fni", rotations[:, number], arms)
    return Animation(target, locked(points), moved.clip.fps, "blocks")


def block_numbers(target: Shape, parts: Any) -> Ints:
    """(n,) from 0, without gaps."""
    if parts is None:
        if not isinstance(target, Mesh):
            raise InputError(
                f"the target is a {type(target).__name__}, which has no parts; give the block of each point",
                argument="blocks",
            )
        parts = target.parts
    given = whole_numbers(parts, "parts")
    if len(given) != len(target.points):
        raise InputError(f"parts have {len(given)} entries; expected one for each of {len(target.points)} points")
    found: Ints = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def rigid_frames(cage: Cage, positions: Floats, cages: Floats) -> tuple[Floats, Floats]:
    """Positions (frames, k, 3) of points (k, 3) in a moving cage (frames, cage vertices, 3), and rotations there."""
    basis = Basis.of(cage, "green")
    value, slope = basis.rows(positions, 1, allow=bool(len(not_inside(positions, cage))), what="blocks' centres")
    states = [basis.state(cage.taken(points)) for points in cages]
    J = np.stack([np.swapaxes(slope @ state, 1, 2) for state in states])
    return np.stack([value @ state for state in states]), polar(J)
