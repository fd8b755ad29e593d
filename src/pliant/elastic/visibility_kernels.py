"""How much of a surface stands between two places inside it: what keeps one leg's nodes from moving the other leg.

Walking from a node, inside, to a place, ``w`` counts the surfaces around: a triangle crossed from its back is left
behind, one crossed from its front is entered. Where the count falls to zero there is outside air. Leaving the body
steeply hides the place altogether; leaving it at a grazing angle θ to the surface, as between two places in a hollow
flank, hides it by ``(2 sin θ)²`` only, so that weights fade instead of jumping from one vertex to the next.
"""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel
from pliant.spatial.bvh import STACK, Tree
from pliant.spatial.sweep import _reaches
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm
from pliant.topology import Floats

MOST_CROSSINGS = 32


@kernel
def _meets(p: Vector, d: Vector, a: Vector, b: Vector, c: Vector) -> tuple[float, float]:
    """Fraction at which p + s d meets a triangle (infinite: not), and the sine of the angle, < 0 from the front."""
    ab, ac = minus(b, a), minus(c, a)
    n = cross(ab, ac)
    slope = dot(d, n)
    if slope == 0:
        return np.inf, 0.0
    s = dot(minus(a, p), n) / slope
    if s < 0 or s > 1:
        return np.inf, 0.0
    at = p[0] + s * d[0] - a[0], p[1] + s * d[1] - a[1], p[2] + s * d[2] - a[2]
    area2 = dot(n, n)
    v, w = dot(cross(at, ac), n) / area2, dot(cross(ab, at), n) / area2
    if v < 0 or w < 0 or v + w > 1:
        return np.inf, 0.0
    return s, slope / (norm(d) * norm(n))


@kernel
def _meetings(p: Vector, d: Vector, last: float, tree: Tree, fractions: Floats, sines: Floats) -> int:
    """Crossings of p + s d, s up to `last`, with the surface, sorted; returns how many."""
    nodes = np.empty(STACK, dtype=np.int64)
    nodes[0], top, count = 0, 1, 0
    while top:
        top -= 1
        node = nodes[top]
        if _reaches(p, d, tree.boxes, node, last, 0.0) > last:
            continue
        if tree.right[node]:
            nodes[top], nodes[top + 1] = tree.right[node], node + 1
            top += 2
            continue
        for t in range(tree.start[node], tree.stop[node]):
            s, sine = _meets(p, d, corner(tree.corners, t, 0), corner(tree.corners, t, 1), corner(tree.corners, t, 2))
            if s > last or count == MOST_CROSSINGS:
                continue
            at = count
            while at > 0 and fractions[at - 1] > s:
                fractions[at], sines[at] = fractions[at - 1], sines[at - 1]
                at -= 1
            fractions[at], sines[at] = s, sine
            count += 1
    return count


@kernel
def hidden(node: Vector, place: Vector, around: int, tree: Tree, eps: float, fractions: Floats, sines: Floats) -> float:
    """How much a place is hidden from a node: 0 not at all, 1 or more altogether.

    around: surfaces around the node, 1 if it is inside one part. eps: how close to the place the surface may be.
    """
    d = minus(place, node)
    length = norm(d)
    if length <= eps:
        return 0.0
    count = _meetings(node, d, 1 - eps / length, tree, fractions, sines)
    total = 0.0
    for k in range(count):
        if sines[k] > 0:
            around -= 1
            if around == 0:
                total += min(1.0, 4 * sines[k] * sines[k])
        else:
            around += 1
    return total
