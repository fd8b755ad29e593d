// Gradients and Hessians of Green coordinates, a group of points at a time; the equations are in green.py.
#include "engines/transfer/green.h"

constexpr int PAIRS[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};

namespace {
struct EdgeSlope {
    Lanes log[3], angle[3];  // ∇Λ and q c
};
}  // namespace

namespace {
struct EdgeBend {
    Lanes log[6], angle[6];  // ∇∇Λ and sym(c ∇qᵀ)
};
}  // namespace

namespace {
// One edge's vectors b and c, and K and q.
struct EdgeVectors {
    Lanes b[3], c[3], K, q;
};
}  // namespace

namespace {
// Derivatives of every edge's logarithm and of its share of the solid angles; bends only where they are asked for.
struct Slopes {
    std::vector<EdgeSlope> slopes;
    std::vector<EdgeBend> bends;
};
}  // namespace

static void edge_vectors(const SeenVertex &i, const SeenVertex &j, EdgeVectors &__restrict out) {
    for (int k = 0; k < LANES; ++k) {
        const double over = i.r[k] > 0 ? 1 / i.r[k] : 0.0, under = j.r[k] > 0 ? 1 / j.r[k] : 0.0;
        out.b[0][k] = i.a[0][k] * over + j.a[0][k] * under;
        out.b[1][k] = i.a[1][k] * over + j.a[1][k] * under;
        out.b[2][k] = i.a[2][k] * over + j.a[2][k] * under;
        out.c[0][k] = i.a[1][k] * j.a[2][k] - i.a[2][k] * j.a[1][k];
        out.c[1][k] = i.a[2][k] * j.a[0][k] - i.a[0][k] * j.a[2][k];
        out.c[2][k] = i.a[0][k] * j.a[1][k] - i.a[1][k] * j.a[0][k];
    }
}

// The same in the lanes where the edge is near.
static void near_vectors(const SeenVertex &i, const SeenVertex &j, const SeenEdge &edge, const NearEdge &near, Vec3 t,
                         double length, EdgeVectors &out) {
    for (int k = 0; k < LANES; ++k) {
        const double product = i.r[k] * j.r[k];
        if (!near.lane[k] || product == 0) continue;
        for (int x = 0; x < 3; ++x) {
            const int y = (x + 1) % 3, z = (x + 2) % 3;
            out.b[x][k] = ((i.r[k] + j.r[k]) * edge.base[x][k] + near.Y[k] * t[x]) / product;
            out.c[x][k] = length * (edge.base[y][k] * t[z] - edge.base[z][k] * t[y]);
        }
    }
}

static void edge_slope(const SeenVertex &i, const SeenVertex &j, const SeenEdge &edge, double length,
                       EdgeVectors &__restrict vectors, EdgeSlope &__restrict out) {
    for (int k = 0; k < LANES; ++k) {
        const double X = edge.X[k], product = i.r[k] * j.r[k] * X;
        vectors.K[k] = product > 0 ? length / X : 0.0;
        vectors.q[k] = product > 0 ? (i.r[k] + j.r[k]) / product : 0.0;
    }
    for (int x = 0; x < 3; ++x)
        for (int k = 0; k < LANES; ++k) {
            out.log[x][k] = vectors.K[k] * vectors.b[x][k];
            out.angle[x][k] = vectors.q[k] * vectors.c[x][k];
        }
}

namespace {
// Factors of an edge's second derivatives: 1/r², s/X − 1/s, K s/X, K/r; and ∇q.
struct BendFactors {
    Lanes i2, j2, q, b, i, j, dq[3];
};
}  // namespace

static void bend_factors(const SeenVertex &i, const SeenVertex &j, const SeenEdge &edge, const EdgeVectors &vectors,
                         BendFactors &__restrict out) {
    for (int k = 0; k < LANES; ++k) {
        const double s = i.r[k] + j.r[k], K = vectors.K[k], X = edge.X[k];
        const bool some = vectors.q[k] > 0;
        const double over = some ? 1 / i.r[k] : 0.0, under = some ? 1 / j.r[k] : 0.0;
        out.i2[k] = over * over;
        out.j2[k] = under * under;
        out.q[k] = (some ? s / X : 0.0) - 1 / s;
        out.b[k] = some ? K * s / X : 0.0;
        out.i[k] = K * over;
        out.j[k] = K * under;
    }
    for (int x = 0; x < 3; ++x)
        for (int k = 0; k < LANES; ++k)
            out.dq[x][k] = vectors.q[k] * (out.q[k] * vectors.b[x][k] + out.i2[k] * i.a[x][k] + out.j2[k] * j.a[x][k]);
}

static void edge_bend(const SeenVertex &i, const SeenVertex &j, const EdgeVectors &v, const BendFactors &f,
                      EdgeBend &__restrict out) {
    for (int pair = 0; pair < 6; ++pair) {
        const auto [x, y] = PAIRS[pair];
        const double same = x == y ? 1.0 : 0.0;
        for (int k = 0; k < LANES; ++k) {
            const double of_i = f.i[k] * (f.i2[k] * i.a[x][k] * i.a[y][k] - same);
            const double of_j = f.j[k] * (f.j2[k] * j.a[x][k] * j.a[y][k] - same);
            out.log[pair][k] = f.b[k] * v.b[x][k] * v.b[y][k] + of_i + of_j;
            out.angle[pair][k] = 0.5 * (v.c[x][k] * f.dq[y][k] + v.c[y][k] * f.dq[x][k]);
        }
    }
}

// ∇Λ and q c, and if there is room for them their derivatives; zero on the edge itself, where there are none.
static void edge_slopes(const Surface &surface, const Seen &seen, Slopes &out) {
    EdgeVectors vectors;
    BendFactors factors;
    for (int64_t e = 0; e < surface.edges.shape[0]; ++e) {
        const SeenVertex &i = seen.vertices[surface.edges(e, 0)], &j = seen.vertices[surface.edges(e, 1)];
        const SeenEdge &edge = seen.edges[e];
        const double length = surface.length(e);
        edge_vectors(i, j, vectors);
        if (seen.near[e].count) near_vectors(i, j, edge, seen.near[e], row3(surface.tangent, e), length, vectors);
        edge_slope(i, j, edge, length, vectors, out.slopes[e]);
        if (out.bends.empty()) continue;
        bend_factors(i, j, edge, vectors, factors);
        edge_bend(i, j, vectors, factors, out.bends[e]);
    }
}

// Orientation of each side of a triangle along its edge.
static Vec3 side_signs(const Surface &surface, int64_t t) {
    Vec3 sign;
    for (int l = 0; l < 3; ++l)
        sign[l] = surface.edges(surface.sides(t, l), 0) == surface.triangles(t, l) ? 1.0 : -1.0;
    return sign;
}

// u a + v b + w c.
static void combined(Vec3 by, const Lanes &a, const Lanes &b, const Lanes &c, Lanes &__restrict out) {
    for (int k = 0; k < LANES; ++k) out[k] = by.x * a[k] + by.y * b[k] + by.z * c[k];
}

// h = base · m of a side.
static void heights(const SeenEdge &edge, Vec3 m, Lanes &__restrict h) {
    for (int k = 0; k < LANES; ++k) h[k] = edge.base[0][k] * m.x + edge.base[1][k] * m.y + edge.base[2][k] * m.z;
}

namespace {
// One triangle: its sides, and ∇Ω and ∇∇Ω.
struct Triangle {
    const SeenTriangle *seen;
    const SeenEdge *side[3];
    const EdgeSlope *slope[3];
    const EdgeBend *bend[3];
    Lanes angle_slope[3], angle_bend[6];
};
}  // namespace

static void begin_triangle(const Surface &surface, const Seen &seen, const Slopes &slopes, int64_t t, Triangle &out) {
    out.seen = &seen.triangles[t];
    for (int l = 0; l < 3; ++l) {
        const int64_t e = surface.sides(t, l);
        out.side[l] = &seen.edges[e];
        out.slope[l] = &slopes.slopes[e];
        if (!slopes.bends.empty()) out.bend[l] = &slopes.bends[e];
    }
    const Vec3 sign = side_signs(surface, t);
    for (int x = 0; x < 3; ++x)
        combined(sign, out.slope[0]->angle[x], out.slope[1]->angle[x], out.slope[2]->angle[x], out.angle_slope[x]);
    if (slopes.bends.empty()) return;
    for (int pair = 0; pair < 6; ++pair)
        combined(sign, out.bend[0]->angle[pair], out.bend[1]->angle[pair], out.bend[2]->angle[pair],
                 out.angle_bend[pair]);
}

static void psi_gradient(const Triangle &on, double n, Vec3 m, Lanes &__restrict psi) {
    constexpr double quarter = 1 / (4 * PI);
    const Lanes &L0 = on.side[0]->log, &L1 = on.side[1]->log, &L2 = on.side[2]->log;
    for (int k = 0; k < LANES; ++k)
        psi[k] = quarter * (on.seen->angle[k] * n - (m.x * L0[k] + m.y * L1[k] + m.z * L2[k]));
}

// h: of the side, across: m·g, m and n: along the axis x.
static void add_phi_gradient(const Triangle &on, int x, const Lanes &h, const Lanes &across, Vec3 gram, double m,
                             double n, double scale, Lanes &__restrict phi) {
    const Lanes &G0 = on.slope[0]->log[x], &G1 = on.slope[1]->log[x], &G2 = on.slope[2]->log[x];
    const Lanes &omega = on.angle_slope[x];
    for (int k = 0; k < LANES; ++k) {
        const double gamma = gram.x * G0[k] + gram.y * G1[k] + gram.z * G2[k];
        phi[k] += scale * (h[k] * omega[k] - on.seen->angle[k] * m - n * across[k] + on.seen->d[k] * gamma);
    }
}

// ∇φ and ∇ψ into tables (3, c + f).
static void gradients(const Surface &surface, const Seen &seen, const Slopes &slopes, Lanes *table) {
    const int64_t c = surface.points.shape[0], size = surface.size();
    for (int x = 0; x < 3; ++x) std::fill(table[x * size].at, table[x * size + c].at, 0.0);
    Triangle on;
    Lanes h, across;
    for (int64_t t = 0; t < surface.triangles.shape[0]; ++t) {
        begin_triangle(surface, seen, slopes, t, on);
        const Vec3 n = row3(surface.normal, t), m[3] = {surface.m(t, 0), surface.m(t, 1), surface.m(t, 2)};
        for (int x = 0; x < 3; ++x) psi_gradient(on, n[x], {m[0][x], m[1][x], m[2][x]}, table[x * size + c + t]);
        for (int l = 0; l < 3; ++l) {
            const Vec3 gram = surface.gram_row(t, l);
            const double scale = 1 / (4 * PI) / surface.height(t, l);
            heights(*on.side[l], m[l], h);
            combined(gram, on.side[0]->log, on.side[1]->log, on.side[2]->log, across);
            for (int x = 0; x < 3; ++x)
                add_phi_gradient(on, x, h, across, gram, m[l][x], n[x], scale,
                                 table[x * size + surface.opposite(t, l)]);
        }
    }
}

static void psi_hessian(const Triangle &on, int x, int y, Vec3 n, const Vec3 m[3], Lanes &__restrict psi) {
    constexpr double eighth = 1 / (8 * PI);
    const EdgeSlope &G0 = *on.slope[0], &G1 = *on.slope[1], &G2 = *on.slope[2];
    const double nx = n[x], ny = n[y], ax = m[0][x], bx = m[1][x], cx = m[2][x], ay = m[0][y], by = m[1][y],
                 cy = m[2][y];
    for (int k = 0; k < LANES; ++k) {
        double total = nx * on.angle_slope[y][k] + ny * on.angle_slope[x][k];
        total -= ax * G0.log[y][k] + bx * G1.log[y][k] + cx * G2.log[y][k];
        total -= ay * G0.log[x][k] + by * G1.log[x][k] + cy * G2.log[x][k];
        psi[k] = eighth * total;
    }
}

// h: of the side, gamma: γ.
static void add_phi_hessian(const Triangle &on, int pair, const Lanes &h, const Lanes gamma[3], Vec3 gram, Vec3 m,
                            Vec3 n, double scale, Lanes &__restrict phi) {
    const int x = PAIRS[pair][0], y = PAIRS[pair][1];
    const double *H0 = on.bend[0]->log[pair].at, *H1 = on.bend[1]->log[pair].at, *H2 = on.bend[2]->log[pair].at;
    const double *omega_x = on.angle_slope[x].at, *omega_y = on.angle_slope[y].at;
    const double *gamma_x = gamma[x].at, *gamma_y = gamma[y].at;
    const double *twist = on.angle_bend[pair].at, mx = m[x], my = m[y], nx = n[x], ny = n[y];
    for (int k = 0; k < LANES; ++k) {
        const double bend = gram.x * H0[k] + gram.y * H1[k] + gram.z * H2[k];
        const double lean = mx * omega_y[k] + my * omega_x[k] + nx * gamma_y[k] + ny * gamma_x[k];
        phi[k] += scale * (h[k] * twist[k] - lean + on.seen->d[k] * bend);
    }
}

// ∇∇φ and ∇∇ψ into tables (6, c + f).
static void hessians(const Surface &surface, const Seen &seen, const Slopes &slopes, Lanes *table) {
    const int64_t c = surface.points.shape[0], size = surface.size();
    for (int pair = 0; pair < 6; ++pair) std::fill(table[pair * size].at, table[pair * size + c].at, 0.0);
    Triangle on;
    Lanes h, gamma[3];
    for (int64_t t = 0; t < surface.triangles.shape[0]; ++t) {
        begin_triangle(surface, seen, slopes, t, on);
        const Vec3 n = row3(surface.normal, t), m[3] = {surface.m(t, 0), surface.m(t, 1), surface.m(t, 2)};
        for (int pair = 0; pair < 6; ++pair)
            psi_hessian(on, PAIRS[pair][0], PAIRS[pair][1], n, m, table[pair * size + c + t]);
        for (int l = 0; l < 3; ++l) {
            const Vec3 gram = surface.gram_row(t, l);
            const double scale = 1 / (4 * PI * surface.height(t, l));
            heights(*on.side[l], m[l], h);
            for (int x = 0; x < 3; ++x)
                combined(gram, on.slope[0]->log[x], on.slope[1]->log[x], on.slope[2]->log[x], gamma[x]);
            for (int pair = 0; pair < 6; ++pair)
                add_phi_hessian(on, pair, h, gamma, gram, m[l], n, scale, table[pair * size + surface.opposite(t, l)]);
        }
    }
}

// Columns of a table (size,) as `count` rows; a few entries at a time, so that they stay in the cache.
static void store_rows(const Lanes *table, int64_t size, int64_t count, double *out, int64_t stride) {
    constexpr int64_t FEW = 8;
    for (int64_t first = 0; first < size; first += FEW)
        for (int64_t k = 0; k < count; ++k)
            for (int64_t i = first; i < std::min(first + FEW, size); ++i) out[k * stride + i] = table[i].at[k];
}

// Rows of φ and ψ (n, c + f), gradients (n, 3, c + f) and Hessians (n, 6, c + f), each unless its table has no rows,
// and winding numbers (n,), for points begin to end.
static void rows(In<double, 2> points, Surface surface, In<int64_t, 1> through, Out<double, 1> winding,
                 Out<double, 2> values, Out<double, 3> gradient, Out<double, 3> hessian, int64_t begin, int64_t end) {
    const int64_t size = surface.size(), edges = surface.edges.shape[0];
    const bool first_order = gradient.shape[0] > 0, second_order = hessian.shape[0] > 0;
    Seen seen(surface);
    Slopes slopes{std::vector<EdgeSlope>(first_order || second_order ? edges : 0),
                  std::vector<EdgeBend>(second_order ? edges : 0)};
    std::vector<Lanes> table(size * (second_order ? 6 : first_order ? 3 : 1));
    for (int64_t first = begin; first < end; first += LANES) {
        const int64_t count = std::min<int64_t>(LANES, end - first);
        look(points, first, count, surface, &through, seen);
        windings(seen, count, &winding(first));
        green_values(surface, seen, table.data());
        store_rows(table.data(), size, count, &values(first, 0), size);
        if (first_order || second_order) edge_slopes(surface, seen, slopes);
        if (first_order) {
            gradients(surface, seen, slopes, table.data());
            for (int x = 0; x < 3; ++x)
                store_rows(table.data() + x * size, size, count, &gradient(first, x, 0), 3 * size);
        }
        if (second_order) {
            hessians(surface, seen, slopes, table.data());
            for (int pair = 0; pair < 6; ++pair)
                store_rows(table.data() + pair * size, size, count, &hessian(first, pair, 0), 6 * size);
        }
    }
}
EXPORT(green_rows, rows)

// Five columns a sample of row i of Hessians (6, c + f), as green.py has it, by the roots of the weights, which
// are zero for lanes beyond the last sample.
static void weighted_columns(const Lanes *table, int64_t size, int64_t i, const Lanes &root, double *__restrict out) {
    const double root_yy = std::sqrt(0.75);
    const Lanes &xx = table[i], &yy = table[size + i];
    for (int k = 0; k < LANES; ++k) {
        out[k] = root[k] * (xx[k] + 0.5 * yy[k]);
        out[LANES + k] = root[k] * root_yy * yy[k];
    }
    for (int pair = 0; pair < 3; ++pair)
        for (int k = 0; k < LANES; ++k) out[(2 + pair) * LANES + k] = root[k] * table[(3 + pair) * size + i][k];
}

// The Hessians of points begin to end as (c + f, 5 LANES ceil(count / LANES)), whose product with its transpose sums
// their weighted squares.
static void hessian_columns(In<double, 2> points, In<double, 1> weights, Surface surface, Out<double, 2> out,
                            int64_t begin, int64_t end) {
    const int64_t size = surface.size();
    Seen seen(surface);
    Slopes slopes{std::vector<EdgeSlope>(surface.edges.shape[0]), std::vector<EdgeBend>(surface.edges.shape[0])};
    std::vector<Lanes> table(6 * size);
    for (int64_t first = begin; first < end; first += LANES) {
        const int64_t count = std::min<int64_t>(LANES, end - first);
        look(points, first, count, surface, nullptr, seen);
        edge_slopes(surface, seen, slopes);
        hessians(surface, seen, slopes, table.data());
        Lanes root;
        for (int k = 0; k < LANES; ++k) root[k] = k < count ? std::sqrt(2 * weights(first + k)) : 0.0;
        for (int64_t i = 0; i < size; ++i)
            weighted_columns(table.data(), size, i, root, &out(i, 5 * (first - begin)));
    }
}
EXPORT(green_hessian_columns, hessian_columns)
