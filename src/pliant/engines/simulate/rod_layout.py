"""How a skeleton becomes a rod: nodes, elements, and which of them belong to which joint.

Every bone is cut into equal elements. Places are shared where bones meet. Rotations are shared too, except at joints
that have a stiffness of their own: there the bone that comes in ends with one rotation and those that go out begin with
another, and an element without length joins the two. Joints at one place are one.

A target angle of a joint turns what goes out of it against what comes in: ``Q_out = Q_in T``, where T is an offset at
the start of elements (see `rod_elements`).
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

SHEAR = 0.9
"""Share of a round section that bears shear."""
SHORT = 1e-9
"""Length of a bone, over the diagonal, below which its joints are at one place."""


@dataclass(frozen=True, eq=False)
class Spans(Value):
    """A skeleton's bones at rest, in the world."""

    bones: Ints
    """(b, 2) the joint that each starts from and the one it leads to, -1 for a last joint's end."""
    heads: Floats
    """(b, 3)"""
    tails: Floats
    """(b, 3)"""
    unit: float
    """Mean length of those that have one."""
    short: float
    """Length up to which a bone has none."""

    @property
    def length(self) -> Floats:
        """(b,)"""
        return np.linalg.norm(self.tails - self.heads, axis=1)

    @classmethod
    def of(cls, skeleton: Skeleton) -> Spans:
        """Bones from joint to joint, and from last joints to their ends."""
        places, turns = skeleton.rest_pose().world()
        ends = list(skeleton.ends)
        tips = [places[j] + rotations.rotate(turns[j], skeleton.ends[j]) for j in ends]
        bones = np.concatenate([skeleton.bones, np.array([(j, -1) for j in ends], np.int64).reshape(-1, 2)])
        heads = places[bones[:, 0]]
        tails = np.concatenate([places[skeleton.bones[:, 1]], np.reshape(tips, (-1, 3))])
        short = SHORT * bounding_diagonal(np.concatenate([places, tails]))
        length = np.linalg.norm(tails - heads, axis=1)
        if not (length > short).any():
            raise InputError("the skeleton has no bone with a length; expected joints that are apart")
        kept = (length > short) | (bones[:, 1] >= 0)
        unit = float(length[length > short].mean())
        return cls(locked(bones[kept]), locked(heads[kept]), locked(tails[kept]), unit, short)


class _Row(NamedTuple):
    """One element."""

    places: tuple[int, int]
    turns: tuple[int, int]
    rest: Floats
    length: float
    stiffness: Floats


@dataclass(frozen=True, eq=False)
class Layout(Value):
    """Nodes and elements of a rod."""

    system: System
    place: Ints
    """(j,) the node of each joint's place."""
    turn_in: Ints
    """(j,) the rotation with which the bone that leads to each joint ends."""
    turn_out: Ints
    """(j,) the rotation with which those that start from it begin, but for target angles."""
    samples: Ints
    """(b, 2, k + 1) the nodes of places and rotations along each bone."""
    origin: Ints
    """(m,) the joint that an element starts from, -1 if it starts inside a bone."""
    own: Ints
    """(m,) the joint whose stiffness an element is, -1 if it is a piece of a bone."""


def lay_out(
    skeleton: Skeleton, spans: Spans, radii: Floats, factors: Mapping[int, float], poisson: float, segments: int
) -> Layout:
    """The rod of a skeleton. radii: (b,) over the unit; factors: by joint, of those with their own stiffness."""
    count = len(skeleton)
    place, turn_in, turn_out = list(range(count)), list(range(count)), list(range(count))
    turns = count
    for j in factors:
        turn_out[j], turns = turns, turns + 1
    nodes = [skeleton.rest_pose().world()[0] / spans.unit]
    total = count
    rows: list[_Row] = []
    origin: list[int] = []
    samples = []
    for b in np.argsort(spans.bones[:, 0], kind="stable").tolist():  # bones nearer to the root first
        start, stop = spans.bones[b].tolist()
        if spans.length[b] <= spans.short:
            place[stop], turn_in[stop] = place[start], turn_out[start]
            turn_out[stop] = turn_out[stop] if stop in factors else turn_in[stop]
            samples.append((b, [place[start]] * (segments + 1), [turn_out[start]] * (segments + 1)))
            continue
        inner = segments - (stop >= 0)
        along = [place[start], *range(total, total + inner), *([place[stop]] if stop >= 0 else [])]
        turned = [turn_out[start], *range(turns, turns + inner), *([turn_in[stop]] if stop >= 0 else [])]
        steps = np.arange(1, inner + 1)[:, None] / segments
        nodes.append((spans.heads[b] + steps * (spans.tails[b] - spans.heads[b])) / spans.unit)
        total, turns = total + inner, turns + inner
        samples.append((b, along, turned))
        vector = (spans.tails[b] - spans.heads[b]) / spans.unit / segments
        stiffness = _section(float(radii[b]), vector, poisson)
        size = float(np.linalg.norm(vector))
        rows += [
            _Row((along[k], along[k + 1]), (turned[k], turned[k + 1]), vector, size, stiffness) for k in range(segments)
        ]
        origin += [start, *[-1] * (segments - 1)]
    own = [-1] * len(rows) + list(factors)
    rows += [_spring(j, f, spans, radii, (place[j], turn_in[j], turn_out[j])) for j, f in factors.items()]
    origin += list(factors)
    bending = float(np.median(np.pi * radii**4 / 4))
    softest = min([bending, *(10 * float(row.stiffness[3, 3]) for row in rows[len(rows) - len(factors) :])])
    system = System(_elements(rows), locked(np.concatenate(nodes)), turns, softest)
    ordered = np.array([[along, turned] for _, along, turned in sorted(samples)])
    tables = (np.array(table, dtype=np.int64) for table in (place, turn_in, turn_out, ordered, origin, own))
    return Layout(system, *map(locked, tables))


def _section(radius: float, vector: Floats, poisson: float) -> Floats:
    """(6, 6) stiffness of a round section across a vector, Young's modulus being 1."""
    area, inertia, shear = np.pi * radius**2, np.pi * radius**4 / 4, 1 / (2 * (1 + poisson))
    out = np.outer(vector, vector) / (vector @ vector)
    across = np.eye(3) - out
    C = np.zeros((6, 6))
    C[:3, :3] = area * out + SHEAR * shear * area * across
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
        locked(np.array([row.places for row in rows])),
        locked(np.array([row.turns for row in rows])),
        locked(np.tile(rotations.IDENTITY, (len(rows), 1))),
        locked(np.array([row.rest for row in rows])),
        locked(np.array([row.length for row in rows])),
        locked(np.array([row.stiffness for row in rows])),
    )


def offsets_of(layout: Layout, skeleton: Skeleton, turns: Mapping[int, Floats]) -> tuple[Floats, Floats]:
    """(j, 4) what lies between a joint's rotation node and its frame, and (m, 4) the offsets of all elements.

    turns: by joint, its target angle in its own frame.
    """
    _, rest = skeleton.rest_pose().world()
    frame = np.tile(rotations.IDENTITY, (len(skeleton), 1))
    coming = frame.copy()
    for j, parent in enumerate(skeleton.parents):
        if parent >= 0 and layout.place[j] == layout.place[parent]:
            coming[j] = frame[parent]
        turn = turns.get(j)
        if turn is not None:
            turn = rotations.multiply(rotations.multiply(rest[j], turn), rotations.inverse(rest[j]))
            coming[j] = rotations.multiply(coming[j], turn)
        if j not in layout.own:
            frame[j] = coming[j]
    offset = np.tile(rotations.IDENTITY, (len(layout.origin), 1))
    starts = layout.origin >= 0
    spring = layout.own >= 0
    offset[starts] = frame[layout.origin[starts]]
    offset[spring] = coming[layout.own[spring]]
    return frame, offset
