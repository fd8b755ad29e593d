"""The compiled inner loops of blending: spring energy, its derivatives, and the rotated blend of edge vectors.

Loops run over vertices, each gathering from its own springs (`fans`), so that threads never write to the same place and
the result does not depend on their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.jit import inline_kernel, kernel, parallel_kernel, prange


@kernel
def fans(edges: Any, count: int) -> tuple[Any, Any, Any]:
    """Springs by vertex: where each vertex's list starts (n + 1,), the other end and the spring (2 q,)."""
    start = np.zeros(count + 1, np.int64)
    for q in range(len(edges)):
        start[edges[q, 0] + 1] += 1
        start[edges[q, 1] + 1] += 1
    for i in range(count):
        start[i + 1] += start[i]
    at = start[:-1].copy()
    other = np.empty(2 * len(edges), np.int64)
    spring = np.empty(2 * len(edges), np.int64)
    for q in range(len(edges)):
        i, j = edges[q, 0], edges[q, 1]
        other[at[i]], spring[at[i]] = j, q
        at[i] += 1
        other[at[j]], spring[at[j]] = i, q
        at[j] += 1
    return start, other, spring


@parallel_kernel
def energy_and_gradient(
    x: Any, start: Any, other: Any, spring: Any, k: Any, r: Any, p: Any, mu: float, gradient: Any
) -> float:
    """E = ½ Σ k [(l - r)² + μ |d - (d · p) p|²], and its gradient (the force of Eq. 2) into `gradient` (n, 3).

    d = x_i - x_j, l = |d|; p (q, 3) unit directions, not looked at if μ is 0.
    """
    count = len(x)
    share = np.empty(count)
    for i in prange(count):
        xi, yi, zi = x[i, 0], x[i, 1], x[i, 2]
        gx = gy = gz = e = 0.0
        for a in range(start[i], start[i + 1]):
            j, q = other[a], spring[a]
            dx, dy, dz = xi - x[j, 0], yi - x[j, 1], zi - x[j, 2]
            length = np.sqrt(dx * dx + dy * dy + dz * dz)
            stretch = length - r[q]
            e += k[q] * stretch * stretch
            f = k[q] * stretch / max(length, 1e-300)
            if mu > 0:
                along = dx * p[q, 0] + dy * p[q, 1] + dz * p[q, 2]
                tx, ty, tz = dx - along * p[q, 0], dy - along * p[q, 1], dz - along * p[q, 2]
                m = mu * k[q]
                e += m * (tx * tx + ty * ty + tz * tz)
                gx += m * tx
                gy += m * ty
                gz += m * tz
            gx += f * dx
            gy += f * dy
            gz += f * dz
        gradient[i, 0], gradient[i, 1], gradient[i, 2] = gx, gy, gz
        share[i] = e
    return 0.25 * share.sum()


@kernel
def _nearest_rotation(a: Any, r: Any) -> None:
    """Turn r (3, 3), a rotation, into the one nearest to the matrix a (3, 3): the largest tr(rᵀ a), by Newton's method.

    Where several are as near, as for springs in one line, r stays on the side it comes from.
    """
    m = np.empty((3, 3))
    for _ in range(30):
        for row in range(3):
            for column in range(3):
                m[row, column] = r[0, row] * a[0, column] + r[1, row] * a[1, column] + r[2, row] * a[2, column]
        trace = m[0, 0] + m[1, 1] + m[2, 2]
        x, y, z = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
        xx, yy, zz = trace - m[0, 0], trace - m[1, 1], trace - m[2, 2]
        xy, xz, yz = -(m[0, 1] + m[1, 0]) / 2, -(m[0, 2] + m[2, 0]) / 2, -(m[1, 2] + m[2, 1]) / 2
        cx, cy, cz = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
        determinant = xx * cx + xy * cy + xz * cz
        size = abs(xx) + abs(yy) + abs(zz)
        if size < 1e-300:
            return
        if xx > 0 and xx * yy - xy * xy > 1e-6 * size**2 and determinant > 1e-9 * size**3:
            u = (cx * x + cy * y + cz * z) / determinant
            v = (cy * x + (xx * zz - xz * xz) * y + (xy * xz - xx * yz) * z) / determinant
            w = (cz * x + (xy * xz - xx * yz) * y + (xx * yy - xy * xy) * z) / determinant
        else:
            u, v, w = 2 * x / size, 2 * y / size, 2 * z / size
        angle2 = u * u + v * v + w * w
        if angle2 > 1:
            angle = np.sqrt(angle2)
            u, v, w = u / angle, v / angle, w / angle
        # The quaternion (1, u/2, v/2, w/2), normalised, turns by as much to second order, and always by a rotation.
        b, c, d = u / 2, v / 2, w / 2
        n = 2 / (1 + b * b + c * c + d * d)
        for row in range(3):
            p, q, s = r[row, 0], r[row, 1], r[row, 2]
            r[row, 0] = p * (1 - n * (c * c + d * d)) + q * n * (b * c + d) + s * n * (b * d - c)
            r[row, 1] = p * n * (b * c - d) + q * (1 - n * (b * b + d * d)) + s * n * (c * d + b)
            r[row, 2] = p * n * (b * d + c) + q * n * (c * d - b) + s * (1 - n * (b * b + c * c))
        if angle2 < 1e-20:
            return


@parallel_kernel
def turn_along(x: Any, start: Any, other: Any, spring: Any, edges: Any, k: Any, v: Any, turns: Any) -> None:
    """Bring turns (n, 3, 3) to the rotations that take the vectors v (q, 3) of each vertex's springs nearest to x's.

    They are the largest of ``tr(R_iᵀ Σ_q k d vᵀ)``, found from what `turns` holds.
    """
    for i in prange(len(x)):
        a = np.zeros((3, 3))
        for at in range(start[i], start[i + 1]):
            j, q = other[at], spring[at]
            f = k[q] if edges[q, 0] == i else -k[q]
            for row in range(3):
                d = f * (x[i, row] - x[j, row])
                for column in range(3):
                    a[row, column] += d * v[q, column]
        _nearest_rotation(a, turns[i])


@parallel_kernel
def turning_energy_and_gradient(
    x: Any, start: Any, other: Any, spring: Any, edges: Any, k: Any, r: Any, v: Any, mu: float, turns: Any, out: Any
) -> float:
    """E = ½ Σ_q k [(l - r)² + ½ μ (|d - R_i v|² + |d - R_j v|²)], R = turns (n, 3, 3); its gradient goes to `out`."""
    count = len(x)
    share = np.empty(count)
    for i in prange(count):
        gx = gy = gz = e = 0.0
        for at in range(start[i], start[i + 1]):
            j, q = other[at], spring[at]
            sign = 1.0 if edges[q, 0] == i else -1.0
            dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
            vx, vy, vz = sign * v[q, 0], sign * v[q, 1], sign * v[q, 2]
            length = np.sqrt(dx * dx + dy * dy + dz * dz)
            stretch = length - r[q]
            f = stretch / max(length, 1e-300)
            m, n = turns[i], turns[j]
            ax = dx - (m[0, 0] * vx + m[0, 1] * vy + m[0, 2] * vz)
            ay = dy - (m[1, 0] * vx + m[1, 1] * vy + m[1, 2] * vz)
            az = dz - (m[2, 0] * vx + m[2, 1] * vy + m[2, 2] * vz)
            bx = dx - (n[0, 0] * vx + n[0, 1] * vy + n[0, 2] * vz)
            by = dy - (n[1, 0] * vx + n[1, 1] * vy + n[1, 2] * vz)
            bz = dz - (n[2, 0] * vx + n[2, 1] * vy + n[2, 2] * vz)
            e += k[q] * (stretch * stretch + mu * (ax * ax + ay * ay + az * az))
            gx += k[q] * (f * dx + 0.5 * mu * (ax + bx))
            gy += k[q] * (f * dy + 0.5 * mu * (ay + by))
            gz += k[q] * (f * dz + 0.5 * mu * (az + bz))
        out[i, 0], out[i, 1], out[i, 2] = gx, gy, gz
        share[i] = e
    return 0.25 * share.sum()


@kernel
def _rotation(v: Any, m: Any) -> None:
    """Rotation matrix of a rotation vector, into m (Rodrigues)."""
    angle2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    if angle2 < 1e-14:
        a, b = 1 - angle2 / 6, 0.5 - angle2 / 24
    else:
        angle = np.sqrt(angle2)
        a, b = np.sin(angle) / angle, (1 - np.cos(angle)) / angle2
    c = 1 - b * angle2
    m[0, 0], m[1, 1], m[2, 2] = c + b * v[0] * v[0], c + b * v[1] * v[1], c + b * v[2] * v[2]
    m[0, 1], m[1, 0] = b * v[0] * v[1] - a * v[2], b * v[0] * v[1] + a * v[2]
    m[0, 2], m[2, 0] = b * v[0] * v[2] + a * v[1], b * v[0] * v[2] - a * v[1]
    m[1, 2], m[2, 1] = b * v[1] * v[2] - a * v[0], b * v[1] * v[2] + a * v[0]


@inline_kernel
def _turned(x: float, y: float, z: float, a: float, b: float, c: float) -> tuple[float, float, float]:
    """The vector (x, y, z) turned by the rotation vector (a, b, c) (Rodrigues)."""
    angle2 = a * a + b * b + c * c
    if angle2 < 1e-14:
        s, t, cosine = 1 - angle2 / 6, 0.5 - angle2 / 24, 1 - angle2 / 2
    else:
        angle = np.sqrt(angle2)
        cosine = np.cos(angle)
        s, t = np.sin(angle) / angle, (1 - cosine) / angle2
    along = t * (a * x + b * y + c * z)
    return (
        cosine * x + s * (b * z - c * y) + along * a,
        cosine * y + s * (c * x - a * z) + along * b,
        cosine * z + s * (a * y - b * x) + along * c,
    )


@parallel_kernel
def blended_edges(points: Any, turns: Any, moves: Any, used: Any, weights: Any, edges: Any, out: Any) -> None:
    """out (q, 3): each spring's vector, turned back in every shape, blended there, and turned by the blended rotation.

    points (s, n, 3), turns (s, n, 3) rotation vectors from the base. A spring turns by the mean vector of its ends, so
    that at a shape's own weight its vector comes out exactly. moves (n, s): which vertices a shape moves or turns; the
    others are as in the base. used: the shapes whose weights, 1 together with the base's, are not 0.
    """
    for q in prange(len(edges)):
        i, j = edges[q, 0], edges[q, 1]
        ta = tb = tc = 0.0
        bx = lx = points[0, i, 0] - points[0, j, 0]
        by = ly = points[0, i, 1] - points[0, j, 1]
        bz = lz = points[0, i, 2] - points[0, j, 2]
        for s in used:
            if not (moves[i, s] or moves[j, s]):
                continue
            a = 0.5 * (turns[s, i, 0] + turns[s, j, 0])
            b = 0.5 * (turns[s, i, 1] + turns[s, j, 1])
            c = 0.5 * (turns[s, i, 2] + turns[s, j, 2])
            w = weights[s]
            ta += w * a
            tb += w * b
            tc += w * c
            dx = points[s, i, 0] - points[s, j, 0]
            dy = points[s, i, 1] - points[s, j, 1]
            dz = points[s, i, 2] - points[s, j, 2]
            x, y, z = _turned(dx, dy, dz, -a, -b, -c)
            lx += w * (x - bx)
            ly += w * (y - by)
            lz += w * (z - bz)
        out[q, 0], out[q, 1], out[q, 2] = _turned(lx, ly, lz, ta, tb, tc)


@parallel_kernel
def lengths_and_directions(vectors: Any, lengths: Any, directions: Any) -> None:
    """Lengths (q,) of vectors (q, 3), and the unit vectors along them; zero along none."""
    for q in prange(len(vectors)):
        x, y, z = vectors[q, 0], vectors[q, 1], vectors[q, 2]
        length = np.sqrt(x * x + y * y + z * z)
        scale = 1 / max(length, 1e-300)
        lengths[q] = length
        directions[q, 0], directions[q, 1], directions[q, 2] = x * scale, y * scale, z * scale


@parallel_kernel
def turned_edges(points: Any, turns: Any, edges: Any, out: Any) -> None:
    """out (q, 3): each spring's vector between `points`, turned by the mean rotation vector of its ends."""
    for q in prange(len(edges)):
        i, j = edges[q, 0], edges[q, 1]
        out[q, 0], out[q, 1], out[q, 2] = _turned(
            points[i, 0] - points[j, 0],
            points[i, 1] - points[j, 1],
            points[i, 2] - points[j, 2],
            0.5 * (turns[i, 0] + turns[j, 0]),
            0.5 * (turns[i, 1] + turns[j, 1]),
            0.5 * (turns[i, 2] + turns[j, 2]),
        )


@parallel_kernel
def turned(vectors: Any, turns: Any, sign: float) -> Any:
    """(n, 3) each vector turned by `sign` times its rotation vector."""
    out = np.empty_like(vectors)
    for i in prange(len(vectors)):
        out[i, 0], out[i, 1], out[i, 2] = _turned(
            vectors[i, 0], vectors[i, 1], vectors[i, 2], sign * turns[i, 0], sign * turns[i, 1], sign * turns[i, 2]
        )
    return out


@parallel_kernel
def divergence(vectors: Any, k: Any, edges: Any, start: Any, spring: Any, out: Any) -> None:
    """out_i = Σ ± k_q vector_q over the springs at i: the right-hand side of the Poisson problem L x = out."""
    for i in prange(len(out)):
        sx = sy = sz = 0.0
        for a in range(start[i], start[i + 1]):
            q = spring[a]
            f = k[q] if edges[q, 0] == i else -k[q]
            sx += f * vectors[q, 0]
            sy += f * vectors[q, 1]
            sz += f * vectors[q, 2]
        out[i, 0], out[i, 1], out[i, 2] = sx, sy, sz


@kernel
def _turn_between(a: Any, b: Any, out: Any) -> float:
    """Angle of the rotation from that of vector a to that of vector b; its rotation vector goes to `out`."""
    m, n = np.empty((3, 3)), np.empty((3, 3))
    _rotation(b, m)
    _rotation(a, n)
    m = m @ n.T
    angle = np.arccos(min(1.0, max(-1.0, (m[0, 0] + m[1, 1] + m[2, 2] - 1) / 2)))
    scale = 0.5 if angle < 1e-6 else angle / (2 * np.sin(angle))
    out[0], out[1], out[2] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    out *= scale
    return float(angle)


@kernel
def unwrap(order: Any, parent: Any, turns: Any) -> Any:
    """Rotation vectors made consistent down a tree: of ``axis (angle + 2π m)`` the one nearest to the parent's.

    Near a whole turn a rotation has hardly an axis, and the nearest vector may be far from the parent's though the two
    turn alike. There the parent's vector and the small turn between them are added up, which is near enough: any
    vectors give the shapes exactly at their own weights.
    """
    out = turns.copy()
    small = np.empty(3)
    for a in range(len(order)):
        i = order[a]
        p = parent[i]
        if p < 0:
            continue
        angle = np.sqrt((turns[i] ** 2).sum())
        if angle > 1e-9:
            along = (turns[i] * out[p]).sum() / angle  # the parent's angle about this axis
            whole = np.round((along - angle) / (2 * np.pi))
            out[i] = turns[i] * ((angle + 2 * np.pi * whole) / angle)
        if (out[p] ** 2).sum() > 16:
            between = _turn_between(out[p], turns[i], small)
            if between < 2 and np.sqrt(((out[i] - out[p]) ** 2).sum()) > 3 * between + 0.1:
                out[i] = out[p] + small
    return out
