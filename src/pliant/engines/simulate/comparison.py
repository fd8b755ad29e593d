"""Rotations as other schemes take them, to compare with: at the nodes, and from the deformation itself.

Müller's rotations are the rotational parts of the deformation gradients F of the step before, R = polar(F); a node's F
is the mean of those at the points that it reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats
from pliant.engines.simulate.bones import Frames

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody

SUBSTEPS = 12
"""From rest to a pose."""


def point_rotations(body: ElasticBody, frames: Frames, before: Floats) -> Floats:
    """(q, 9) rotations at the quadrature points, diffused or of the nodes before (n, 3)."""
    if body.rotations == "diffused":
        return body.point_weights.matrices(frames.quaternions[0])
    return np.ascontiguousarray(rotations.polar(body.operator.gradients(before)).reshape(-1, 9))


def node_rotations(body: ElasticBody, frames: Frames, before: Floats) -> Floats:
    """(n, 3, 3) rotations at the nodes."""
    if body.rotations == "diffused":
        return body.node_weights.matrices(frames.quaternions[0]).reshape(-1, 3, 3)
    F = body.operator.gradients(before).reshape(-1, 9)
    weighted = abs(body.operator.functions.matrix.copy()).T @ (body.operator.weights[:, None] * F)
    return rotations.polar(weighted.reshape(-1, 3, 3))


def substeps(body: ElasticBody, frames: Frames) -> Iterator[Frames]:
    """The bones on their way from rest to posed frames, evenly."""
    bones = body.bones
    for k in range(1, SUBSTEPS + 1):
        t = k / SUBSTEPS
        heads, tails = (
            (1 - t) * rest + t * end for rest, end in ((bones.heads, frames.heads), (bones.tails, frames.tails))
        )
        quaternions = rotations.slerp(
            np.broadcast_to(rotations.IDENTITY, frames.quaternions.shape), frames.quaternions, np.full(1, t)
        )
        yield Frames(heads, tails, quaternions) if k < SUBSTEPS else frames
