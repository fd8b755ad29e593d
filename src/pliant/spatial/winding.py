"""Winding numbers of triangle soups (Jacobson 2013; fast: Barill, Dickson, Schmidt, Levin, Jacobson 2018).

The winding number of a surface about q is the solid angle it covers over 4π: 1 inside a closed surface that faces
outwards, 0 outside, in between for open ones. A triangle with corners a, b, c seen from q covers
``Ω = 2 atan2(a·(b×c), |a||b||c| + (a·b)|c| + (b·c)|a| + (c·a)|b|)``.

Far away, a node of the box tree acts as its moments about its area centre p. With ``d = p − q``, ``r = |d|`` and
``f_i = d_i / r³``, the field of a dipole, Taylor's series to the second derivative is

    4π w ≈ N_i f_i + M_ij ∂_j f_i + ½ T_ijk ∂_jk f_i
         = (N·d + tr M) / r³ − (3 dᵀM d + 9/2 d·tr T) / r⁵ + 15/2 T(d, d, d) / r⁷

    N = ∫ n,   M = ∫ n (x − p)ᵀ,   T = ∫ n (x − p)(x − p)ᵀ   over the node's triangles,

of which only the symmetric parts matter. A node counts as far where r is larger than beta times the distance from p to
the farthest corner of its box.
"""

from __future__ import annotations

from math import atan2, pi, sqrt

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.bvh import LEAF, STACK, Tree
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm
from pliant.topology import Floats

# A row of moments: centre (0:3), reach (3), N (4:7), M at PAIRS (7:13), T at TRIPLES (13:23).
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
TRIPLES = ((0, 0, 0), (1, 1, 1), (2, 2, 2), (0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 1, 2), (0, 2, 2), (1, 2, 2), (0, 1, 2))
PAIR_TABLE, TRIPLE_TABLE = np.array(PAIRS), np.array(TRIPLES)
PAIR_AT = np.array([[PAIRS.index((min(i, j), max(i, j))) for j in range(3)] for i in range(3)])


@kernel
def _solid_angle(q: Vector, corners: Floats, t: int) -> float:
    a, b, c = minus(corner(corners, t, 0), q), minus(corner(corners, t, 1), q), minus(corner(corners, t, 2), q)
    ra, rb, rc = norm(a), norm(b), norm(c)
    return 2 * atan2(dot(a, cross(b, c)), ra * rb * rc + dot(a, b) * rc + dot(b, c) * ra + dot(c, a) * rb)


@kernel
def _triangle_moments(corners: Floats, t: int, out: Floats) -> float:
    """Moments of one triangle about its centroid, where M vanishes; returns its area."""
    a, b, c = corner(corners, t, 0), corner(corners, t, 1), corner(corners, t, 2)
    n = cross(minus(b, a), minus(c, a))
    for axis in range(3):
        out[axis] = (a[axis] + b[axis] + c[axis]) / 3
        out[4 + axis] = n[axis] / 2
    out[7:] = 0.0
    centre = out[0], out[1], out[2]
    for p in (minus(a, centre), minus(b, centre), minus(c, centre)):
        for e in range(10):
            i, j, k = TRIPLE_TABLE[e]
            out[13 + e] += (n[i] * p[j] * p[k] + n[j] * p[i] * p[k] + n[k] * p[i] * p[j]) / 72
    return norm(n) / 2


@kernel
def _add_shifted(part: Floats, whole: Floats) -> None:
    """Add a part's moments, taken about its own centre, to a whole's, about the whole's centre."""
    s = part[0] - whole[0], part[1] - whole[1], part[2] - whole[2]
    n, m = (part[4], part[5], part[6]), (part[7], part[8], part[9], part[10], part[11], part[12])
    for axis in range(3):
        whole[4 + axis] += n[axis]
    for e in range(10):
        i, j, k = TRIPLE_TABLE[e]
        turned = m[PAIR_AT[i, j]] * s[k] + m[PAIR_AT[i, k]] * s[j] + m[PAIR_AT[j, k]] * s[i]
        twice = n[i] * s[j] * s[k] + n[j] * s[i] * s[k] + n[k] * s[i] * s[j]
        whole[13 + e] += part[13 + e] + (2 * turned + twice) / 3
    for e in range(6):
        i, j = PAIR_TABLE[e]
        whole[7 + e] += m[e] + (n[i] * s[j] + n[j] * s[i]) / 2


@kernel
def _joined(parts: Floats, areas: Floats, out: Floats) -> float:
    """Moments of several parts (k, 23) together, about their area centre; returns the whole area."""
    total = areas.sum()
    for p in range(len(parts)):
        share = areas[p] / total if total > 0 else 1 / len(parts)
        for axis in range(3):
            out[axis] += share * parts[p, axis]
    for p in range(len(parts)):
        _add_shifted(parts[p], out)
    return float(total)


@kernel
def moments(tree: Tree) -> Floats:
    """(nodes, 23): area centre p, distance from p to the box's farthest corner, N, M and T."""
    nodes = len(tree.right)
    out, areas = np.zeros((nodes, 23)), np.zeros(nodes)
    parts, part_areas = np.zeros((LEAF, 23)), np.zeros(LEAF)
    for node in range(nodes - 1, -1, -1):
        start, count = tree.start[node], tree.stop[node] - tree.start[node]
        if tree.right[node]:
            count = 2
            for p, child in enumerate((node + 1, tree.right[node])):
                parts[p], part_areas[p] = out[child], areas[child]
        else:
            for p in range(count):
                part_areas[p] = _triangle_moments(tree.corners, start + p, parts[p])
        areas[node] = _joined(parts[:count], part_areas[:count], out[node])
        reach = 0.0
        for axis in range(3):
            p = out[node, axis]
            reach += max(p - tree.boxes[node, axis], tree.boxes[node, 3 + axis] - p) ** 2
        out[node, 3] = sqrt(reach)
    return out


@kernel
def _far_field(d: Vector, r2: float, m: Floats) -> float:
    """4π times the winding number of a far node with moments m, seen along d = p − q."""
    x, y, z = d
    first = m[4] * x + m[5] * y + m[6] * z + m[7] + m[8] + m[9]
    second = m[7] * x * x + m[8] * y * y + m[9] * z * z + 2 * (m[10] * x * y + m[11] * x * z + m[12] * y * z)
    trace = x * (m[13] + m[18] + m[20]) + y * (m[16] + m[14] + m[21]) + z * (m[17] + m[19] + m[15])
    third = (
        x * x * (m[13] * x + 3 * (m[16] * y + m[17] * z))
        + y * y * (m[14] * y + 3 * (m[18] * x + m[19] * z))
        + z * z * (m[15] * z + 3 * (m[20] * x + m[21] * y))
        + 6 * m[22] * x * y * z
    )
    return (first - (3 * second + 4.5 * trace) / r2 + 7.5 * third / (r2 * r2)) / (r2 * sqrt(r2))


@kernel
def _winding_one(q: Vector, tree: Tree, node_moments: Floats, beta2: float) -> float:
    nodes = np.empty(STACK, dtype=np.int64)
    nodes[0], top, total = 0, 1, 0.0
    while top:
        top -= 1
        node = nodes[top]
        d = node_moments[node, 0] - q[0], node_moments[node, 1] - q[1], node_moments[node, 2] - q[2]
        r2, reach = dot(d, d), node_moments[node, 3]
        if r2 > beta2 * reach * reach:
            total += _far_field(d, r2, node_moments[node])
        elif tree.right[node]:
            nodes[top], nodes[top + 1] = tree.right[node], node + 1
            top += 2
        else:
            for t in range(tree.start[node], tree.stop[node]):
                total += _solid_angle(q, tree.corners, t)
    return total / (4 * pi)


@parallel_kernel
def winding_fast(points: Floats, tree: Tree, node_moments: Floats, beta: float) -> Floats:
    """(q,) winding numbers, far nodes by their moments."""
    out = np.empty(len(points))
    for k in prange(len(points)):
        out[k] = _winding_one((points[k, 0], points[k, 1], points[k, 2]), tree, node_moments, beta * beta)
    return out


@parallel_kernel
def winding_exact(points: Floats, corners: Floats) -> Floats:
    """(q,) winding numbers, every triangle by its solid angle."""
    out = np.empty(len(points))
    for k in prange(len(points)):
        q = points[k, 0], points[k, 1], points[k, 2]
        total = 0.0
        for t in range(len(corners)):
            total += _solid_angle(q, corners, t)
        out[k] = total / (4 * pi)
    return out
