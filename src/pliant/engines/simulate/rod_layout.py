"""How a skeleton becomes a rod: nodes, elements, and which of them belong to which joint.

Every bone is divided into equal elements. Bones that meet share their position node. They share the rotation node too,
except at a joint with a stiffness of its own: there the incoming bone ends with one rotation and the outgoing bones
start with another, and an element of zero length connects the two. Coincident joints share their nodes.

The target angle T of a joint rotates the outgoing bones against the incoming one: ``Q_out = Q_in T``. T is the offset
at the start of elements (see `rod_elements`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.shapes import bounding_diagonal
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.rod_elements import Elements
from pliant.engines.simulate.rod_solve import System

Softness = float | Literal["free"]

SHEAR_FACTOR = 0.9
"""Shear correction factor of a round section."""
ZERO_LENGTH = 1e-9
"""Length of a bone, over the diagonal, below which its joints coincide."""


@dataclass(frozen=True, eq=False)
class Spans(Value):
    """A skeleton's bones at rest, in the world."""

    bones: Ints
    """(b, 2) start and end joint of each; -1 where it ends at a leaf joint's end."""
    heads: Floats
    """(b, 3)"""
    tails: Floats
    """(b, 3)"""
    unit: float
    """Mean length of the bones that are not of zero length."""
    short: float
    """Length up to which a bone counts as of zero length."""

    @property
    def length(self) -> Floats:
        """(b,)"""
        return np.linalg.norm(self.tails - self.heads, axis=1)

    @classmethod
    def of(cls, skeleton: Skeleton) -> Spans:
        """Bones from joint to joint, and from leaf joints to their ends."""
        positions, quaternions = skeleton.rest_pose().world()
        ends = list(skeleton.ends)
        tips = [positions[j] + rotations.rotate(quaternions[j], skeleton.ends[j]) for j in ends]
        bones = np.concatenate([skeleton.bones, np.array([(j, -1) for j in ends], np.int64).reshape(-1, 2)])
        heads = positions[bones[:, 0]]
        tails = np.concatenate([positions[skeleton.bones[:, 1]], np.reshape(tips, (-1, 3))])
        short = ZERO_LENGTH * bounding_diagonal(np.concatenate([positions, tails]))
        length = np.linalg.norm(tails - heads, axis=1)
        if not (length > short).any():
            raise InputError("the skeleton has no bone with a length; expected joints that are apart")
        kept = (length > short) | (bones[:, 1] >= 0)
        unit = float(length[length > short].mean())
        return cls(locked(bones[kept]), locked(heads[kept]), locked(tails[kept]), unit, short)


class _Row(NamedTuple):
    """One element."""

    position_nodes: tuple[int, int]
    rotation_nodes: tuple[int, int]
    rest: Floats
    length: float
    stiffness: Floats


@dataclass(frozen=True, eq=False)
class Layout(Value):
    """Nodes and elements of a rod."""

    system: System
    position_node: Ints
    """(j,) the position node of each joint."""
    rotation_in: Ints
    """(j,) the rotation node at the end of the bone that comes into each joint."""
    rotation_out: Ints
    """(j,) the rotation node at the start of the bones that go out of it, before target angles."""
    samples: Ints
    """(b, 2, k + 1) position nodes and rotation nodes along each bone."""
    origin: Ints
    """(m,) the joint that an element starts from, -1 if it starts inside a bone."""
    own: Ints
    """(m,) the joint whose spring an element is, -1 if it is part of a bone."""


def lay_out(
    skeleton: Skeleton, spans: Spans, radii: Floats, factors: Mapping[int, float], poisson: float, segments: int
) -> Layout:
    """The rod of a skeleton. radii: (b,) over the unit; factors: by joint, of those with their own stiffness."""
    count = len(skeleton)
    position_node, rotation_in, rotation_out = list(range(count)), list(range(count)), list(range(count))
    rotation_count = count
    for j in factors:
        rotation_out[j], rotation_count = rotation_count, rotation_count + 1
    nodes = [skeleton.rest_pose().world()[0] / spans.unit]
    total = count
    rows: list[_Row] = []
    origin: list[int] = []
    samples = []
    for b in np.argsort(spans.bones[:, 0], kind="stable").tolist():  # bones nearer to the root first
        start, stop = spans.bones[b].tolist()
        if spans.length[b] <= spans.short:
            position_node[stop], rotation_in[stop] = position_node[start], rotation_out[start]
            rotation_out[stop] = rotation_out[stop] if stop in factors else rotation_in[stop]
            samples.append((b, [position_node[start]] * (segments + 1), [rotation_out[start]] * (segments + 1)))
            continue
        inner = segments - (stop >= 0)
        along = [position_node[start], *range(total, total + inner), *([position_node[stop]] if stop >= 0 else [])]
        rotations_along = [
            rotation_out[start],
            *range(rotation_count, rotation_count + inner),
            *([rotation_in[stop]] if stop >= 0 else []),
        ]
        steps = np.arange(1, inner + 1)[:, None] / segments
        nodes.append((spans.heads[b] + steps * (spans.tails[b] - spans.heads[b])) / spans.unit)
        total, rotation_count = total + inner, rotation_count + inner
        samples.append((b, along, rotations_along))
        vector = (spans.tails[b] - spans.heads[b]) / spans.unit / segments
        stiffness = _section(float(radii[b]), vector, poisson)
        size = float(np.linalg.norm(vector))
        rows += [
            _Row((along[k], along[k + 1]), (rotations_along[k], rotations_along[k + 1]), vector, size, stiffness)
            for k in range(segments)
        ]
        origin += [start, *[-1] * (segments - 1)]
    own = [-1] * len(rows) + list(factors)
    rows += [
        _spring(j, f, spans, radii, (position_node[j], rotation_in[j], rotation_out[j])) for j, f in factors.items()
    ]
    origin += list(factors)
    bending = float(np.median(np.pi * radii**4 / 4))
    softest = min([bending, *(10 * float(row.stiffness[3, 3]) for row in rows[len(rows) - len(factors) :])])
    system = System(_elements(rows), locked(np.concatenate(nodes)), rotation_count, bending, softest)
    ordered = np.array([[along, rotations_along] for _, along, rotations_along in sorted(samples)])
    tables = (
        np.array(table, dtype=np.int64) for table in (position_node, rotation_in, rotation_out, ordered, origin, own)
    )
    return Layout(system, *map(locked, tables))


def _section(radius: float, vector: Floats, poisson: float) -> Floats:
    """(6, 6) stiffness of a round section across a vector, Young's modulus being 1."""
    area, inertia, shear = np.pi * radius**2, np.pi * radius**4 / 4, 1 / (2 * (1 + poisson))
    out = np.outer(vector, vector) / (vector @ vector)
    across = np.eye(3) - out
    C = np.zeros((6, 6))
    C[:3, :3] = area * out + SHEAR_FACTOR * shear * area * across
    C[3:, 3:] = 2 * shear * inertia * out + inertia * across
    return C


def _spring(j: int, factor: float, spans: Spans, radii: Floats, at: tuple[int, int, int]) -> _Row:
    """The element of a joint that has its own stiffness."""
    near = np.flatnonzero((spans.bones == j).any(axis=1) & (spans.length > spans.short))
    near = near if near.size else np.flatnonzero(spans.length > spans.short)
    C = np.zeros((6, 6))
    C[3:, 3:] = factor * float(np.mean(np.pi * radii[near] ** 4 / 4 * spans.unit / spans.length[near])) * np.eye(3)
    return _Row((at[0], at[0]), (at[1], at[2]), np.zeros(3), 1.0, C)


def _elements(rows: list[_Row]) -> Elements:
    return Elements(
        locked(np.array([row.position_nodes for row in rows])),
        locked(np.array([row.rotation_nodes for row in rows])),
        locked(np.tile(rotations.IDENTITY, (len(rows), 1))),
        locked(np.array([row.rest for row in rows])),
        locked(np.array([row.length for row in rows])),
        locked(np.array([row.stiffness for row in rows])),
    )


def offsets_of(layout: Layout, skeleton: Skeleton, angles: Mapping[int, Floats]) -> tuple[Floats, Floats]:
    """(j, 4) the rotation from each joint's rotation node to its frame, and (m, 4) the offsets of all elements.

    angles: by joint, its target angle in its own frame.
    """
    _, rest = skeleton.rest_pose().world()
    frame = np.tile(rotations.IDENTITY, (len(skeleton), 1))
    coming = frame.copy()
    for j, parent in enumerate(skeleton.parents):
        if parent >= 0 and layout.position_node[j] == layout.position_node[parent]:
            coming[j] = frame[parent]
        angle = angles.get(j)
        if angle is not None:
            angle = rotations.multiply(rotations.multiply(rest[j], angle), rotations.inverse(rest[j]))
            coming[j] = rotations.multiply(coming[j], angle)
        if j not in layout.own:
            frame[j] = coming[j]
    offset = np.tile(rotations.IDENTITY, (len(layout.origin), 1))
    starts = layout.origin >= 0
    spring = layout.own >= 0
    offset[starts] = frame[layout.origin[starts]]
    offset[spring] = coming[layout.own[spring]]
    return frame, offset
