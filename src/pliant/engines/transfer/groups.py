"""Groups of a source's points: by number, within a sphere, by the name of a vertex group, or near-rigid clusters.

`rigid_groups` divides the points of a sequence into connected groups that each move nearly as one rigid piece. A group
k has the rigid motion (R_kf, t_kf) that fits its points best in every frame f, and a point i of it the error

    e_i = Σ_f |R_kf q_i + t_kf - x_if|².

Groups grow from seeds over the graph of neighbours, always taking the cheapest point next, and each then starts again
from its best fitting point (Cohen-Steiner, Alliez and Desbrun 2004, with rigid motions as proxies). The first group is
everything; each further one starts at the worst fitting point of all, until there are as many as asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.regions import Sphere
from pliant.core.shapes import Mesh, Shape, TetMesh
from pliant.core.topology import Floats, Ints, connected_parts, unique_pairs
from pliant.core.validation import as_points, check_indices, closest_names, whole_numbers
from pliant.core.values import as_array, locked
from pliant.geometry.shape_matching import principal_axes
from pliant.native import kernels

CLOUD_NEIGHBOURS = 8
"""Neighbours of a point without faces or tetrahedra."""
MOST_KEYS = 24
"""Most frames used for the clustering; of a longer sequence, those that differ most."""
FEWEST_GROUP_POINTS = 8
"""Fewest points of an automatic group."""
THIN = 0.05
"""Ratio of a group's second extent to its largest below which its rotation about its axis is ill-defined."""
MOST_ROUNDS = 30
"""Most rounds of growing the groups again once their number is reached."""


VertexGroup = ArrayLike | Sphere | str
"""Numbers of points (or one True or False a point), a sphere around some, or the name of the mesh's vertex group."""


def named_groups(groups: Mapping[str, VertexGroup] | Sequence[VertexGroup] | VertexGroup) -> dict[str, VertexGroup]:
    """Groups by name; those without are numbered."""
    if isinstance(groups, Mapping):
        return dict(groups)
    if isinstance(groups, (Sphere, str)):
        return {groups if isinstance(groups, str) else "group 0": groups}
    if not isinstance(groups, (Sequence, np.ndarray)) or not len(groups):
        raise InputError(f"groups are {groups!r:.60}; expected one or more lists of vertices, spheres or group names")
    if all(isinstance(group, (int, np.integer, np.bool_)) for group in groups):
        return {"group 0": np.asarray(groups)}
    return {group if isinstance(group, str) else f"group {k}": group for k, group in enumerate(groups)}


def members(group: VertexGroup, name: str, shape: Shape, rest: Floats) -> tuple[Ints, Floats]:
    """Numbers of a group's points, and their weights."""
    if isinstance(group, str):
        return _vertex_group(group, shape)
    if isinstance(group, Sphere):
        inside = np.flatnonzero(np.linalg.norm(rest - group.centre, axis=1) <= group.radius)
        nearest = float(np.linalg.norm(rest - group.centre, axis=1).min(initial=np.inf))
        if not len(inside):
            raise InputError(f'group "{name}": {group} holds no point; the nearest is {nearest:.4g} from its centre')
        return inside, np.ones(len(inside))
    numbers = as_array(group, f'group "{name}"')
    if numbers.dtype == bool and numbers.shape == (len(rest),):
        numbers = np.flatnonzero(numbers)
    numbers = np.unique(whole_numbers(numbers, f'group "{name}"'))
    if not len(numbers):
        raise InputError(f'group "{name}" is empty; expected two or more points')
    check_indices(numbers, len(rest), f'group "{name}"')
    return numbers, np.ones(len(numbers))


def _vertex_group(name: str, shape: Shape) -> tuple[Ints, Floats]:
    table = shape.vertex_groups if isinstance(shape, Mesh) else {}
    if name not in table:
        raise InputError(f'no vertex group is called "{name}"; {closest_names(name, table)}')
    numbers = np.flatnonzero(table[name] > 0)
    if not len(numbers):
        raise InputError(f'vertex group "{name}" has no vertex with a weight above 0')
    return numbers, table[name][numbers]


def rigid_groups(animation: Animation, count: int = 24, *, rest: Floats | None = None) -> tuple[Ints, ...]:
    """At most `count` connected groups that each move nearly as one rigid piece; every point is in one of them.

    rest: (n, 3) the shape that the motion is measured against; the animation's own rest shape by default. Points that
    no face or tetrahedron joins have their nearest neighbours, so clouds and soups have groups too.
    """
    if not isinstance(animation, Animation):
        raise InputError(f"the source is a {type(animation).__name__}; expected an Animation")
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InputError(f"count is {count!r:.60}; expected a whole number of groups, from 1", argument="groups")
    q = animation.shape.points if rest is None else as_points(rest, "rest")
    if q.shape != animation.shape.points.shape:
        raise InputError(f"rest has {len(q)} points; the animation has {len(animation.shape.points)}")
    if len(q) < FEWEST_GROUP_POINTS:
        raise InputError(
            f"the animation has {len(q)} points; expected {FEWEST_GROUP_POINTS} or more to divide", argument="sources"
        )
    growth = _Growth(animation.shape, q, _key_frames(animation.points))
    group = np.zeros(len(q), dtype=np.int64)
    cost = growth.misfit(group)
    parts = 0
    while (
        parts < group.max() + 1 < min(count, len(q) // FEWEST_GROUP_POINTS)
    ):  # until none is left that is large enough
        parts = int(group.max()) + 1
        group, cost = growth.split(group, cost, count)
    for _ in range(MOST_ROUNDS):
        before = group
        group, cost = growth.settled(group, cost)
        if np.array_equal(before, group):
            break
    group = growth.dissolved(group)
    _, first = np.unique(group, return_index=True)
    return tuple(locked(np.flatnonzero(group == group[i])) for i in np.sort(first))


def _key_frames(points: Floats) -> Floats:
    """(n, f, 3) the frames that differ most from each other, one after the other."""
    if len(points) > MOST_KEYS:
        flat = (points - points.mean(axis=1, keepdims=True)).reshape(len(points), -1)
        chosen = [0]
        away = np.linalg.norm(flat - flat[0], axis=1)
        while len(chosen) < MOST_KEYS:
            chosen.append(int(np.argmax(away)))
            away = np.minimum(away, np.linalg.norm(flat - flat[chosen[-1]], axis=1))
        points = points[np.sort(chosen)]
    return np.ascontiguousarray(points.transpose(1, 0, 2))


class _Growth:
    """Region growing of groups over the graph of neighbours."""

    def __init__(self, shape: Shape, q: Floats, x: Floats) -> None:
        self.q, self.x = q, x
        pairs = neighbour_pairs(shape, q)
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        self.neighbours = np.ascontiguousarray(ends[:, 1])
        self.start = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=len(q)))])

    def motions(self, group: Ints) -> tuple[Floats, Floats]:
        """(k, f, 3, 3) rotations and (k, f, 3) translations that fit the groups best."""
        parts = [np.flatnonzero(group == k) for k in range(group.max() + 1)]
        fits = [rotations.match_rigid(self.q[part], self.x[part].transpose(1, 0, 2)) for part in parts]
        return np.stack([R for R, _ in fits]), np.stack([t for _, t in fits])

    def misfit(self, group: Ints) -> Floats:
        """(n,) of each point to the rigid motion of its group."""
        R, t = self.motions(group)
        error = np.empty(len(self.q))
        for k in range(len(R)):
            part = group == k
            moved = np.einsum("fij,nj->nfi", R[k], self.q[part]) + t[k]
            error[part] = np.square(moved - self.x[part]).sum(axis=(1, 2))
        return error

    def grown(self, R: Floats, t: Floats, seeds: Ints) -> tuple[Ints, Floats]:
        """(n,) the group of each point, and its misfit ``Σ_f |R_f q + t_f - x_f|²`` there.

        Groups grow over the graph from their seeds (k,) with motions R (k, f, 3, 3) and t (k, f, 3), in order of the
        misfit of the next point.
        """
        group, cost = np.full(len(self.q), -1), np.full(len(self.q), np.inf)
        kernels.groups_grow(self.start, self.neighbours, self.q, self.x, R, t, seeds, group, cost)
        return group, cost

    def settled(self, group: Ints, cost: Floats) -> tuple[Ints, Floats]:
        """Each group grown again, from its best fitting point, with its own motion."""
        R, t = self.motions(group)
        order = np.lexsort((cost, group))
        seeds = order[np.searchsorted(group[order], np.arange(len(R)))]
        return self.grown(R, t, seeds)

    def split(self, group: Ints, cost: Floats, count: int) -> tuple[Ints, Floats]:
        """A new group at the worst point of each of the worst groups, at most as many again as there are."""
        total = np.bincount(group, cost)
        large = np.bincount(group) >= 2 * FEWEST_GROUP_POINTS
        worst = np.argsort(np.where(large, -total, np.inf), kind="stable")[: min(count - len(total), int(large.sum()))]
        group = group.copy()
        for new, k in enumerate(worst, len(total)):
            inside = np.flatnonzero(group == k)
            seed = inside[np.argmax(cost[inside])]
            near = inside[np.argsort(np.linalg.norm(self.q[inside] - self.q[seed], axis=1), kind="stable")]
            group[near[: max(FEWEST_GROUP_POINTS // 2, len(near) // 8)]] = new
        cost = self.misfit(group)
        for _ in range(2):
            group, cost = self.settled(group, cost)
        return group, cost

    def dissolved(self, group: Ints) -> Ints:
        """Without groups that are too small, or too thin to have a rotation; their points go to the neighbours."""
        keep = [k for k in range(group.max() + 1) if self._is_sound(group == k)]
        if not keep or len(keep) == group.max() + 1:
            return group if keep else np.zeros_like(group)
        R, t = self.motions(group)
        order = np.lexsort((self.misfit(group), group))
        seeds = order[np.searchsorted(group[order], keep)]
        return self.grown(R[keep], t[keep], seeds)[0]

    def _is_sound(self, inside: NDArray[np.bool_]) -> bool:
        q = self.q[inside]
        extent, _ = principal_axes(q - q.mean(axis=0), np.full(len(q), 1 / len(q)))
        return len(q) >= FEWEST_GROUP_POINTS and bool(extent[1] > THIN * extent[0])


def neighbour_pairs(shape: Shape, points: Floats) -> Ints:
    """(e, 2) a connected graph over the points: edges of faces and tetrahedra, and links between separate parts."""
    pairs = np.zeros((0, 2), dtype=np.int64)
    if isinstance(shape, Mesh):
        pairs = shape.edges
    elif isinstance(shape, TetMesh):
        pairs = np.concatenate([shape.tets[:, [a, b]] for a in range(4) for b in range(a + 1, 4)])
    part = connected_parts(len(points), pairs)
    if part.max() > 0:
        pairs = np.concatenate([pairs, *_links(points, part)])
    return unique_pairs(pairs, len(points))


def _links(points: Floats, part: Ints) -> list[Ints]:
    """Pairs of near points in different parts that make the graph connected."""
    from scipy.spatial import cKDTree

    _, near = cKDTree(points).query(points, k=min(CLOUD_NEIGHBOURS + 1, len(points)))
    one = np.repeat(np.arange(len(points)), near.shape[1])
    pairs = np.stack([one, near.ravel()], axis=1)
    links = [pairs[part[pairs[:, 0]] != part[pairs[:, 1]]]]
    while True:
        whole = connected_parts(int(part.max()) + 1, part[np.concatenate(links)])
        if whole.max() == 0:
            return links
        joined = whole[part]
        smallest = joined == np.argmin(np.bincount(joined))
        inside, outside = np.flatnonzero(smallest), np.flatnonzero(~smallest)
        away, at = cKDTree(points[outside]).query(points[inside])
        nearest = int(np.argmin(away))
        links.append(np.array([[inside[nearest], outside[at[nearest]]]]))
