// Green coordinates of points in a cage, a group of them at a time; the equations are in green.py.
#include "engines/transfer/green.h"

constexpr double NEAR = 0.01;  // X / P below which an edge counts as near; X has lost two digits there

Seen::Seen(const Surface &surface)
    : vertices(surface.points.shape[0]),
      edges(surface.edges.shape[0]),
      near(surface.edges.shape[0]),
      triangles(surface.triangles.shape[0]) {}

static void look_at_vertex(Vec3 v, const Lanes p[3], SeenVertex &__restrict seen) {
    for (int k = 0; k < LANES; ++k) {
        const double x = v.x - p[0][k], y = v.y - p[1][k], z = v.z - p[2][k];
        seen.a[0][k] = x;
        seen.a[1][k] = y;
        seen.a[2][k] = z;
        seen.r[k] = std::sqrt(x * x + y * y + z * z);
    }
}

// D, X and base of an edge from afar; in how many lanes it is near.
static int64_t look_at_edge(const SeenVertex &i, const SeenVertex &j, SeenEdge &__restrict seen) {
    for (int k = 0; k < LANES; ++k) {
        const double ax = i.a[0][k], ay = i.a[1][k], az = i.a[2][k], ar = i.r[k];
        const double bx = j.a[0][k], by = j.a[1][k], bz = j.a[2][k], br = j.r[k];
        const double D = ax * bx + ay * by + az * bz, r = ar <= br ? ar : br;
        seen.D[k] = D;
        seen.X[k] = ar * br + D;
        seen.base[0][k] = ar <= br ? ax : bx;
        seen.base[1][k] = ar <= br ? ay : by;
        seen.base[2][k] = ar <= br ? az : bz;
        seen.square[k] = r * r;
    }
    int64_t near = 0;
    for (int k = 0; k < LANES; ++k) near += seen.X[k] < NEAR * (seen.X[k] - seen.D[k]) ? 1 : 0;
    return near;
}

// X, base and Y of an edge in the lanes where it is near.
static void look_closely(const SeenVertex &i, const SeenVertex &j, Vec3 t, double length, SeenEdge &seen,
                         NearEdge &near) {
    for (int k = 0; k < LANES; ++k) {
        const double ri = i.r[k], rj = j.r[k], product = ri * rj;
        near.lane[k] = seen.X[k] < NEAR * product;
        if (!near.lane[k]) continue;
        const double along = seen.base[0][k] * t.x + seen.base[1][k] * t.y + seen.base[2][k] * t.z;
        const double si = ri <= rj ? along : along - length, sj = ri <= rj ? along + length : along;
        double square = 0.0;
        for (int x = 0; x < 3; ++x) {
            seen.base[x][k] -= along * t[x];
            square += seen.base[x][k] * seen.base[x][k];
        }
        seen.square[k] = square;
        near.Y[k] = square * (sj - si) * (sj + si) / (ri * sj - rj * si);
        seen.X[k] = square * length * length / (product - seen.D[k]);
    }
}

static void take_logarithm(const SeenVertex &i, const SeenVertex &j, double length, SeenEdge &__restrict seen) {
    for (int k = 0; k < LANES; ++k) {
        const double reach = i.r[k] + j.r[k] + length, X = seen.X[k];
        seen.log[k] = logarithm(X > 0 ? reach * reach / (2 * X) : 1.0);
    }
}

static void look_at_edges(const Surface &surface, Seen &seen) {
    for (int64_t e = 0; e < surface.edges.shape[0]; ++e) {
        const SeenVertex &i = seen.vertices[surface.edges(e, 0)], &j = seen.vertices[surface.edges(e, 1)];
        const double length = surface.length(e);
        seen.near[e].count = look_at_edge(i, j, seen.edges[e]);
        if (seen.near[e].count) look_closely(i, j, row3(surface.tangent, e), length, seen.edges[e], seen.near[e]);
        take_logarithm(i, j, length, seen.edges[e]);
    }
}

// d and what Ω / 2 is the arc of, from afar.
static void look_at_triangle(const SeenVertex *const v[3], const SeenEdge *const side[3], Vec3 n, double double_area,
                             Lanes &__restrict d, Lanes &__restrict above, Lanes &__restrict below) {
    const SeenEdge &p = *side[0], &q = *side[1], &s = *side[2];
    for (int k = 0; k < LANES; ++k) {
        const double dp = p.base[0][k] * n.x + p.base[1][k] * n.y + p.base[2][k] * n.z;
        const double dq = q.base[0][k] * n.x + q.base[1][k] * n.y + q.base[2][k] * n.z;
        const double ds = s.base[0][k] * n.x + s.base[1][k] * n.y + s.base[2][k] * n.z;
        const double least = std::min(p.square[k], q.square[k]), nearer = q.square[k] < p.square[k] ? dq : dp;
        d[k] = s.square[k] < least ? ds : nearer;
        above[k] = double_area * d[k];
        below[k] = v[2]->r[k] * p.X[k] + q.D[k] * v[0]->r[k] + s.D[k] * v[1]->r[k];
    }
}

// The same through the triangle's nearest edge, in the lanes where that is near.
static void look_at_near_triangle(const Surface &surface, const Seen &seen, int64_t t, Lanes &d, Lanes &above,
                                  Lanes &below) {
    for (int k = 0; k < LANES; ++k) {
        int best = -1;
        double least = INF;
        for (int l = 0; l < 3; ++l) {
            const int64_t e = surface.sides(t, l);
            const bool near = seen.near[e].count && seen.near[e].lane[k];
            if (near && seen.edges[e].square[k] < least) best = l, least = seen.edges[e].square[k];
        }
        if (best < 0) continue;
        const int64_t e = surface.sides(t, best);
        const SeenVertex &far = seen.vertices[surface.opposite(t, best)];
        const SeenEdge &edge = seen.edges[e];
        const Vec3 w = {edge.base[0][k], edge.base[1][k], edge.base[2][k]}, a = {far.a[0][k], far.a[1][k], far.a[2][k]};
        const double h = dot(w, surface.m(t, best)), along = dot(a, row3(surface.tangent, e));
        const double s = seen.vertices[surface.edges(e, 0)].r[k] + seen.vertices[surface.edges(e, 1)].r[k];
        d[k] = dot(w, row3(surface.normal, t));
        above[k] = surface.double_area(t) * d[k];
        below[k] = far.r[k] * edge.X[k] + s * (least - surface.height(t, best) * h) + seen.near[e].Y[k] * along;
    }
}

static void take_arc(const Lanes &above, const Lanes &below, Lanes &__restrict angle) {
    for (int k = 0; k < LANES; ++k) angle[k] = 2 * arc(above[k], below[k]);
}

static void look_at_triangles(const Surface &surface, Seen &seen) {
    Lanes above, below;
    for (int64_t t = 0; t < surface.triangles.shape[0]; ++t) {
        const SeenVertex *v[3];
        const SeenEdge *side[3];
        int64_t near = 0;
        for (int l = 0; l < 3; ++l) {
            v[l] = &seen.vertices[surface.triangles(t, l)];
            side[l] = &seen.edges[surface.sides(t, l)];
            near += seen.near[surface.sides(t, l)].count;
        }
        SeenTriangle &out = seen.triangles[t];
        look_at_triangle(v, side, row3(surface.normal, t), surface.double_area(t), out.d, above, below);
        if (near) look_at_near_triangle(surface, seen, t, out.d, above, below);
        take_arc(above, below, out.angle);
    }
}

static void whole_angles(const Seen &seen, Lanes &__restrict total) {
    for (int k = 0; k < LANES; ++k) total[k] = 0.0;
    for (const SeenTriangle &triangle : seen.triangles)
        for (int k = 0; k < LANES; ++k) total[k] += triangle.angle[k];
}

void look(const In<double, 2> &points, int64_t begin, int64_t count, const Surface &surface,
          const In<int64_t, 1> *through, Seen &seen) {
    Lanes p[3];
    for (int k = 0; k < LANES; ++k)
        for (int x = 0; x < 3; ++x) p[x][k] = points(begin + std::min<int64_t>(k, count - 1), x);
    for (int64_t i = 0; i < surface.points.shape[0]; ++i)
        look_at_vertex(row3(surface.points, i), p, seen.vertices[i]);
    look_at_edges(surface, seen);
    look_at_triangles(surface, seen);
    if (!through) return;
    Lanes total;
    whole_angles(seen, total);
    for (int k = 0; k < count; ++k) {
        const int64_t entry = (*through)(begin + k);
        if (entry >= 0) seen.triangles[entry].angle[k] += 4 * PI - total[k];
    }
}

void windings(const Seen &seen, int64_t count, double *out) {
    Lanes total;
    whole_angles(seen, total);
    for (int k = 0; k < count; ++k) out[k] = total[k] / (4 * PI);
}

static void begin_psi(const SeenTriangle &seen, double quarter, Lanes &__restrict psi) {
    for (int k = 0; k < LANES; ++k) psi[k] = -quarter * seen.d[k] * seen.angle[k];
}

// What one side (own) of a triangle adds to its ψ and to φ of the opposite vertex.
static void add_side(const SeenEdge *const side[3], const SeenEdge &own, const SeenTriangle &seen, Vec3 m, Vec3 gram,
                     double quarter, double scale, Lanes &__restrict psi, Lanes &__restrict phi) {
    for (int k = 0; k < LANES; ++k) {
        const double h = own.base[0][k] * m.x + own.base[1][k] * m.y + own.base[2][k] * m.z;
        const double across = gram.x * side[0]->log[k] + gram.y * side[1]->log[k] + gram.z * side[2]->log[k];
        psi[k] += quarter * h * own.log[k];
        phi[k] += scale * (h * seen.angle[k] + seen.d[k] * across);
    }
}

void green_values(const Surface &surface, const Seen &seen, Lanes *table) {
    constexpr double quarter = 1 / (4 * PI);
    const int64_t c = surface.points.shape[0];
    std::fill(table[0].at, table[c].at, 0.0);
    for (int64_t t = 0; t < surface.triangles.shape[0]; ++t) {
        const SeenTriangle &triangle = seen.triangles[t];
        const SeenEdge *side[3];
        for (int l = 0; l < 3; ++l) side[l] = &seen.edges[surface.sides(t, l)];
        Lanes &psi = table[c + t];
        begin_psi(triangle, quarter, psi);
        for (int l = 0; l < 3; ++l)
            add_side(side, *side[l], triangle, surface.m(t, l), surface.gram_row(t, l), quarter,
                     quarter / surface.height(t, l), psi, table[surface.opposite(t, l)]);
    }
}

// φ and ψ of points inside, in blocks (n / LANES, c + f, LANES), and winding numbers (n,), for groups begin to end.
static void blocks(In<double, 2> points, Surface surface, Out<double, 1> winding, Out<float, 3> out, int64_t begin,
                   int64_t end) {
    Seen seen(surface);
    std::vector<Lanes> table(surface.size());
    for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * LANES, count = std::min<int64_t>(LANES, points.shape[0] - first);
        look(points, first, count, surface, nullptr, seen);
        windings(seen, count, &winding(first));
        green_values(surface, seen, table.data());
        std::copy(table[0].at, table[0].at + table.size() * LANES, &out(group, 0, 0));
    }
}
EXPORT(green_blocks, blocks)
