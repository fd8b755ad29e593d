"""What of a shape is flesh, and how the rest of it follows the joints.

A rigged file binds every vertex to joints, by the weights of its skin. These say more than where bones lie:

- A connected part that is bound to one joint alone (an antler, armour, an eye) is *rigid*: it moves with that joint.
  Of a part of a machine, where every vertex has one joint, nine tenths of the vertices suffice.
- A part that is bound to several joints is *flesh* if it is solid: closed, with small holes, or with its openings
  inside other parts, as a leg that is stuck into a trunk.
- All other parts (a cape, a sheet of hair, an open sleeve) have no inside. They are *skinned*: their vertices move by
  linear blend skinning with the file's weights, ``x = Σ_j w_j (R_j X + t_j)``.
- A part without weights is flesh if a bone runs through it, else it is rigid, with the joint that the nearest bound
  vertex belongs to most.

If all parts are bound to the same joint, those are flesh that have its bone inside. If nothing is flesh, as in a robot
of loose parts, the largest part is filled with nodes that its joint moves. Without weights all is flesh.

Vertices that are not flesh are *carried* (`carrying`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError, PliantWarning, about_argument
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value
from pliant.engines.simulate.bones import Bones, rest_segments
from pliant.engines.simulate.interior import body_surface
from pliant.engines.simulate.regions import nearest_joint, region_weight
from pliant.geometry.regions import Region
from pliant.geometry.skinning import neighbouring_joints, skin_of
from pliant.geometry.solidity import is_solid
from pliant.geometry.spatial import SurfaceTree

WELD = 1e-6
"""Distance, over the diagonal, up to which the vertices of seams are joined."""
WHOLLY = 0.98
"""Weight of one joint, on the mean over a part, from which on the part is bound to it alone."""
BURIED = 0.8
"""Share of a part's open edges that has to be inside other parts, or at them, for the part to be solid."""
AT = 0.01
"""Distance, over the diagonal, up to which an edge is at another part."""
THINNEST_PART = 0.004
"""Mean thickness of flesh, over the diagonal: what is thinner is skinned."""
MOSTLY = 0.9
"""The same for parts where each vertex is bound to one joint, and for regions that are asked to be rigid."""
ELASTIC, RIGID, SKINNED = range(3)


@dataclass(frozen=True, eq=False)
class Binding(Value):
    """The parts of a shape and what moves them."""

    surface: SurfaceTree
    """Of the flesh, facing outwards."""
    skin: Any = None
    """Sparse (n, joints): weights by which the file binds the vertices, rows that sum to 1; None without any."""
    carried: Any = None
    """Sparse (n, joints): weights of the vertices that are not flesh, rows that sum to 1; None if there are none."""
    parts: tuple[int, int, int] = (1, 0, 0)
    """How many parts are flesh, rigid and skinned."""
    beside: Ints | None = None
    """(joints,) for each joint, the one that its flesh goes on into; None without a skin."""

    def elastic(self, count: int) -> Ints:
        """The vertices, of `count`, that are moved by flesh."""
        return np.arange(count) if self.carried is None else np.flatnonzero(np.diff(self.carried.indptr) == 0)

    @property
    def joints(self) -> Ints:
        """Joints that carry vertices, or may have to."""
        known = [table.indices for table in (self.skin, self.carried) if table is not None]
        return np.unique(np.concatenate(known)).astype(np.int64) if known else np.zeros(0, dtype=np.int64)

    def at(self, points: Floats) -> Floats:
        """(p, joints) weights of the skin at the nearest vertices of the flesh's surface."""
        foot = self.surface.closest(points)
        corners = self.surface.triangles[foot.triangle]
        return sum(foot.barycentric[:, [k]] * self.skin[corners[:, k]].toarray() for k in range(3))

    def by_bones(self, points: Floats, bones: Bones) -> Floats:
        """(p, bones) the same as weights of the bones that move as joints do; rows that sum to 1, or are 0."""
        table, carriers = np.zeros((len(points), len(bones))), slice(len(bones) - bones.carriers, None)
        table[:, carriers] = self.at(points)[:, bones.joint[carriers]]
        total = table.sum(axis=1, keepdims=True)
        return table / np.where(total > 0, total, 1)

    @property
    def middles(self) -> Floats | None:
        """(joints, 3) the centroid of the surface that the skin binds to each joint; None without a skin."""
        if self.skin is None:
            return None
        corners = self.surface.points[self.surface.triangles]
        area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        share = sum(self.skin[self.surface.triangles[:, k]] for k in range(3)).multiply(area[:, None]).tocsr()
        total = np.maximum(np.asarray(share.sum(axis=0)).ravel(), 1e-300)
        return np.asarray(share.T @ corners.mean(axis=1)) / total[:, None]

    def scale_notes(self, motion: Motion) -> tuple[str, ...]:
        """Joints whose scales have no effect, as no skin says what they scale, as text; nothing if there are none."""
        scaled = [] if self.skin is not None else motion.scaled_joints
        return (f"scale: flesh without a skin keeps its size, though joints scale: {', '.join(scaled)}",) * bool(scaled)

    def summary(self) -> str:
        """Which parts move how, as text; empty if all is flesh."""
        kinds = zip(self.parts, ("of flesh", "rigid", "skinned"), strict=True)
        return ", ".join(f"{count} {kind}" for count, kind in kinds if count) if any(self.parts[1:]) else ""


def bind(shape: Shape, skeleton: Skeleton, rigid: Sequence[Region] = (), soft: Sequence[Region] = ()) -> Binding:
    """How a shape is bound to a skeleton.

    rigid: regions that move with their joints, as stiff as bones. soft: regions whose parts are flesh if they have an
    inside, though they are bound to one joint alone.
    """
    if not isinstance(shape, Mesh):
        if rigid or soft:
            raise InputError(f"regions are rigid on a {type(shape).__name__}; expected a Mesh", argument="rigid")
        return Binding(body_surface(shape))
    skin = skin_of(shape, skeleton)
    if skin is None and not rigid:
        return Binding(body_surface(shape))
    parts = _Parts.of(shape, skin, skeleton)
    kind = parts.kinds(skeleton) if skin is not None else np.full(len(parts), ELASTIC)
    for region, inside in _named(shape, skeleton, soft, "soft"):
        parts.soften(kind, region, inside)
    stiff = np.zeros(len(shape.points), dtype=bool)
    for _, inside in _named(shape, skeleton, rigid, "rigid"):
        stiff |= inside
    kind[parts.covered_by(stiff)] = RIGID
    counts = int((kind == ELASTIC).sum()), int((kind == RIGID).sum()), int((kind == SKINNED).sum())
    if not counts[ELASTIC]:
        stiff |= parts.part == parts.made_elastic(kind)
    neighbours = None if skin is None else neighbouring_joints(shape, skin, skeleton)
    return Binding(parts.surface(kind), skin, parts.carried(kind, stiff), counts, neighbours)


def _named(
    mesh: Mesh, skeleton: Skeleton, regions: Sequence[Region], argument: str
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Regions as text, and (n,) the vertices in each; what has none is said."""
    for k, region in enumerate(regions):
        with about_argument(argument, k):
            inside = region_weight(mesh.points, region, mesh, skeleton) > 0.5
        name = f'the region "{region}"' if isinstance(region, str) else f"region {k} of those that are {argument}"
        if not inside.any():
            _warn(f"no vertex is in {name}: rigid = {str(argument == 'rigid').lower()} has no effect")
        yield name, inside


def _warn(message: str) -> None:
    warnings.warn(message, PliantWarning, stacklevel=6)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The connected parts of a mesh, across its seams."""

    mesh: Mesh
    """With its seams joined."""
    part: Ints
    """(n,) for each vertex of the file, its part."""
    weight: Floats
    """(parts, joints) mean weights of the vertices."""
    skin: Any
    """Sparse (n, joints): those of the file, or else 1 for the joint whose bone is nearest."""
    points: Floats
    """(n, 3) of the file."""
    triangles: Ints
    """(m, 3) of the file."""

    @classmethod
    def of(cls, mesh: Mesh, skin: Any, skeleton: Skeleton) -> _Parts:
        from scipy.sparse import csr_array

        if skin is None:
            nearest = nearest_joint(mesh.points, skeleton), np.arange(len(mesh.points))
            skin = csr_array((np.ones(len(mesh.points)), nearest[::-1]), shape=(len(mesh.points), len(skeleton)))
        weld = mesh.welded(WELD)
        part = weld.mesh.parts[weld.index]
        count = np.bincount(part)
        mean = csr_array((1 / count[part], (part, np.arange(len(part)))), shape=(len(count), len(part)))
        return cls(weld.mesh, part, (mean @ skin).toarray(), skin, mesh.points, mesh.triangles)

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def _owner(self) -> Ints:
        """The part of each triangle of the joined mesh."""
        return self.mesh.parts[self.mesh.triangles[:, 0]]

    @cached_property
    def solid(self) -> NDArray[np.bool_]:
        """(parts,) which have an inside and are not too thin."""
        return np.array([self._is_solid(part, np.ones(len(self), dtype=bool)) for part in range(len(self))])

    def kinds(self, skeleton: Skeleton) -> Ints:
        """(parts,) ELASTIC, RIGID or SKINNED."""
        bound = self.weight.sum(axis=1) > 0.5
        alone = bound & (self.weight.max(axis=1) > np.where(self._is_hard(), MOSTLY, WHOLLY))
        kind = np.where(alone, RIGID, ELASTIC)
        starts, stops, owner = rest_segments(skeleton)
        for part in np.flatnonzero(~bound).tolist():
            kind[part] = ELASTIC if self._runs_through(part, starts, stops) else RIGID
        for part in np.flatnonzero(bound & ~alone).tolist():
            kind[part] = ELASTIC if self._is_solid(part, kind != RIGID) else SKINNED
        if not (kind == ELASTIC).any() and (self.weight.sum(axis=0) > 0).sum() == 1:
            for part in np.flatnonzero(alone).tolist():
                mine = owner == int(np.argmax(self.weight[part]))
                if self._is_solid(part, alone) and self._runs_through(part, starts[mine], stops[mine]):
                    kind[part] = ELASTIC
        return kind

    def _is_hard(self) -> NDArray[np.bool_]:
        """(parts,) those of whose vertices nearly all are bound to one joint each, as those of machines are."""
        largest = self.skin.max(axis=1).toarray().ravel()
        return self.covered_by(largest > WHOLLY)

    def made_elastic(self, kind: Ints) -> int:
        """Where nothing is flesh: the largest part, marked as flesh, which is then rigid as a region of it is."""
        if not self.solid.any():
            raise InputError("all parts of the shape are open or thin; expected one that encloses something")
        volume = [abs(Mesh(self.mesh.points, self.mesh.triangles[self._owner == k]).volume) for k in range(len(self))]
        largest = int(np.argmax(np.where(self.solid, volume, 0)))
        kind[largest] = ELASTIC
        moves = "each of its parts moves" if len(self) > 1 else "it moves"
        _warn(f"nothing of the shape is flesh: {moves} with its bone; name a region with rigid = false to make it soft")
        return largest

    def soften(self, kind: Ints, region: str, inside: NDArray[np.bool_]) -> None:
        """Mark the parts in a region (n,) as flesh, as far as they can be; the others are said."""
        there = np.bincount(self.part[inside], minlength=len(self)) > 0
        whole = self.covered_by(inside)
        kind[whole & self.solid] = ELASTIC
        left = there & (kind != ELASTIC)
        reasons = {"not wholly in it": left & ~whole, "without an inside": left & whole}
        why = ", ".join(f"{parts.sum()} {reason}" for reason, parts in reasons.items() if parts.any())
        if why:
            _warn(f"rigid = false has no effect on {left.sum()} of {there.sum()} parts in {region}: {why}")

    def _runs_through(self, part: int, starts: Floats, stops: Floats) -> bool:
        """Whether a third of one of the segments is inside a part."""
        triangles = self.mesh.triangles[self._owner == part]
        if not len(triangles) or not len(starts):
            return False
        t = np.linspace(0, 1, 9)[:, None, None]
        along = ((1 - t) * starts + t * stops).reshape(-1, 3)
        inside = body_surface(SurfaceTree(self.mesh.points, triangles)).inside(along)
        return bool((inside.reshape(len(t), -1).sum(axis=0) >= 3).any())

    def _is_solid(self, part: int, others: NDArray[np.bool_]) -> bool:
        """Whether a part has an inside, and is not too thin. others: (parts,) which may cover its openings."""
        triangles = self.mesh.triangles[self._owner == part]
        if len(triangles) < 4:
            return False
        alone = Mesh(*_compact(self.mesh.points, triangles))
        if abs(2 * alone.volume) < THINNEST_PART * self.mesh.diagonal * alone.area:
            return False
        return is_solid(alone) or self._is_buried(alone, part, others)

    def _is_buried(self, alone: Mesh, part: int, others: NDArray[np.bool_]) -> bool:
        """Whether a part's open edges are inside the other parts, or at them."""
        rim = alone.points[alone.edges[alone.edge_polygon_count == 1]]
        around = self.mesh.triangles[(self._owner != part) & others[self._owner]]
        if not len(around):
            return False
        tree = SurfaceTree(self.mesh.points, around)
        covered = tree.signed_distance(rim.mean(axis=1)) < AT * self.mesh.diagonal
        length = np.linalg.norm(rim[:, 1] - rim[:, 0], axis=1)
        return bool(length @ covered > BURIED * length.sum())

    def covered_by(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(parts,) those of whose vertices nearly all are in a mask (n,)."""
        return np.asarray(np.bincount(self.part, mask, minlength=len(self)) > 0.95 * np.bincount(self.part))

    def surface(self, kind: Ints) -> SurfaceTree:
        """Of the flesh; closed parts that face inwards are turned."""
        owner = self.part[self.triangles[:, 0]]
        triangles = np.array(self.triangles)
        for part in np.flatnonzero(kind == ELASTIC).tolist():
            if SurfaceTree(self.points, triangles[owner == part]).facing < 0:
                triangles[owner == part] = triangles[owner == part, ::-1]
        return body_surface(SurfaceTree(self.points, triangles[kind[owner] == ELASTIC]))

    def carried(self, kind: Ints, stiff: NDArray[np.bool_]) -> Any:
        """Sparse (n, joints): the weights of vertices that are not flesh; None if all are. stiff: (n,) that are not."""
        from scipy.sparse import csr_array

        joint, rigid = self._joints()[self.part], kind[self.part] == RIGID
        skinned = kind[self.part] == SKINNED
        for part in np.unique(self.part[stiff & ~rigid & ~skinned]):  # a region of a part that is flesh elsewhere
            mine = np.flatnonzero(stiff & (self.part == part))
            weight = np.asarray(self.skin[mine].mean(axis=0)).ravel()
            joint[mine] = np.argmax(weight)
            (rigid if weight.max() > MOSTLY * weight.sum() else skinned)[mine] = True
        if not (rigid | skinned).any():
            return None
        skinned |= rigid & (self.skin.max(axis=1).toarray().ravel() > WHOLLY)  # an eye in a rigid head still rolls
        rigid &= ~skinned
        one = csr_array((np.ones(rigid.sum()), (np.flatnonzero(rigid), joint[rigid])), shape=self.skin.shape)
        table = (one + self.skin.multiply(skinned.astype(np.float64)[:, None])).tocsr()
        table.eliminate_zeros()
        table.sort_indices()
        return table

    def _joints(self) -> Ints:
        """(parts,) the joint that each is bound to most; one without weights, that of the nearest bound vertex."""
        from scipy.spatial import cKDTree

        joint = np.argmax(self.weight, axis=1)
        bound = self.weight.sum(axis=1) > 0.5
        known = np.flatnonzero(bound[self.part])
        if not len(known):  # a group or two is all that the file binds
            return joint
        tree = cKDTree(self.points[known])
        for part in np.flatnonzero(~bound).tolist():
            away, near = tree.query(self.points[self.part == part])
            joint[part] = int(np.argmax(self.skin[[known[near[np.argmin(away)]]]].toarray()))
        return joint


def _compact(points: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """Points and triangles without the points that no triangle has."""
    used, local = np.unique(triangles, return_inverse=True)
    return points[used], local.reshape(-1, 3)
