// Spring energies, their gradients, and rotations of edge vectors; the equations are in kernels.py.
// Vertices or springs from `begin` to `end` are done; each vertex gathers from its own springs.
#include <algorithm>
#include <vector>

#include "engines/blend/springs.h"

namespace {

constexpr double PI = 3.141592653589793;

// Matrix i of an (n, 3, 3) table.
Mat3 matrix(const In<double, 3> &table, int64_t i) {
    const double *m = &table(i, 0, 0);
    return {{{m[0], m[1], m[2]}, {m[3], m[4], m[5]}, {m[6], m[7], m[8]}}};
}

void fans(In<int64_t, 2> edges, Out<int64_t, 1> start, Out<int64_t, 1> other, Out<int64_t, 1> spring) {
    const int64_t count = start.shape[0] - 1, springs = edges.shape[0];
    std::fill_n(start.data, count + 1, 0);
    for (int64_t q = 0; q < springs; ++q)
        for (int end = 0; end < 2; ++end) ++start(edges(q, end) + 1);
    for (int64_t i = 0; i < count; ++i) start(i + 1) += start(i);
    std::vector<int64_t> next(start.data, start.data + count);
    for (int64_t q = 0; q < springs; ++q)
        for (int end = 0; end < 2; ++end) {
            const int64_t at = next[size_t(edges(q, end))]++;
            other(at) = edges(q, 1 - end);
            spring(at) = q;
        }
}

void energy_and_gradient(In<double, 2> x, Fans fans, In<double, 1> k, In<double, 1> r, In<double, 2> p, double mu,
                         Out<double, 2> gradient, Out<double, 1> share, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const Vec3 xi = row3(x, i);
        Vec3 g = {0.0, 0.0, 0.0};
        double e = 0.0;
        for (int64_t at = fans.start(i); at < fans.start(i + 1); ++at) {
            const int64_t q = fans.spring(at);
            const Vec3 d = xi - row3(x, fans.other(at));
            const double length = norm(d), stretch = length - r(q);
            e += k(q) * stretch * stretch;
            if (mu > 0) {
                const Vec3 along = row3(p, q), across = d - dot(d, along) * along;
                const double m = mu * k(q);
                e += m * dot(across, across);
                g = g + m * across;
            }
            g = g + (k(q) * stretch / std::max(length, SMALLEST)) * d;
        }
        store(gradient, i, g);
        share(i) = e;
    }
}

void compression(In<double, 2> x, Fans fans, In<double, 1> k, In<double, 1> r, Out<double, 1> share, int64_t begin,
                 int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const Vec3 xi = row3(x, i);
        double compressed = 0.0, total = SMALLEST;
        for (int64_t at = fans.start(i); at < fans.start(i + 1); ++at) {
            const int64_t q = fans.spring(at);
            const double length = std::max(norm(xi - row3(x, fans.other(at))), SMALLEST);
            compressed += k(q) * larger(r(q) / length - 1, 0.0);
            total += k(q);
        }
        share(i) = compressed / total;
    }
}

// The energy of one vertex's springs where it is at xi; and its derivatives, if asked for.
double energy_around(const In<double, 2> &x, const Fans &fans, const In<double, 1> &k, const In<double, 1> &r,
                     const In<double, 2> &p, double mu, int64_t i, Vec3 xi, Vec3 *gradient, Mat3 *hessian) {
    double energy = 0.0;
    for (int64_t at = fans.start(i); at < fans.start(i + 1); ++at) {
        const int64_t q = fans.spring(at);
        const Vec3 d = xi - row3(x, fans.other(at)), along = row3(p, q), across = d - dot(d, along) * along;
        const double length = std::max(norm(d), SMALLEST), stretch = length - r(q), f = stretch / length;
        energy += 0.5 * k(q) * (stretch * stretch + mu * dot(across, across));
        if (!gradient) continue;
        *gradient = *gradient + k(q) * (f * d + mu * across);
        const Vec3 u = d / length;
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b <= a; ++b)
                (*hessian)[a][b] += k(q) * ((1 - f) * u[a] * u[b] - mu * along[a] * along[b] + (a == b ? f + mu : 0.0));
    }
    return energy;
}

// -H⁻¹ g of a symmetric H by its lower triangle; as of a multiple of 1 where H is not clearly positive definite.
Vec3 descent(const Mat3 &h, Vec3 g) {
    const double trace = h[0][0] + h[1][1] + h[2][2], least = 1e-2 * std::abs(trace);
    const double l00 = h[0][0], l10 = h[1][0] / l00, l20 = h[2][0] / l00;
    const double d1 = h[1][1] - l10 * h[1][0], l21 = (h[2][1] - l20 * h[1][0]) / d1;
    const double d2 = h[2][2] - l20 * h[2][0] - l21 * l21 * d1;
    if (!(l00 > least && d1 > least && d2 > least)) return (-1 / (std::abs(trace) + SMALLEST)) * g;
    const double y1 = g.y - l10 * g.x, y2 = g.z - l20 * g.x - l21 * y1;
    const double z = y2 / d2, y = y1 / d1 - l21 * z;
    return {-(g.x / l00 - l10 * y - l20 * z), -y, -z};
}

void relax(Out<double, 2> x, Fans fans, In<double, 1> k, In<double, 1> r, In<double, 2> p, double mu, Indices chosen,
           int64_t sweeps, double least) {
    constexpr int HALVINGS = 8;
    for (double largest = INF; sweeps > 0 && largest > least; --sweeps) {
        largest = 0.0;
        for (int64_t at = 0; at < chosen.shape[0]; ++at) {
            const int64_t i = chosen(at);
            const Vec3 xi = row3(x, i);
            Vec3 g = {0.0, 0.0, 0.0};
            Mat3 h = {};
            const double before = energy_around(x, fans, k, r, p, mu, i, xi, &g, &h);
            Vec3 step = descent(h, g);
            int halvings = 0;
            while (!(energy_around(x, fans, k, r, p, mu, i, xi + step, nullptr, nullptr) <= before) &&
                   ++halvings < HALVINGS)
                step = 0.5 * step;
            if (halvings == HALVINGS) continue;
            store(x, i, xi + step);
            largest = std::max(largest, norm(step));
        }
    }
}

void fit_rotations(In<double, 2> x, Fans fans, In<int64_t, 2> edges, In<double, 1> k, In<double, 2> v,
                Out<double, 3> rotations, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const Vec3 xi = row3(x, i);
        Mat3 a = {};
        for (int64_t at = fans.start(i); at < fans.start(i + 1); ++at) {
            const int64_t q = fans.spring(at);
            const Vec3 d = (edges(q, 0) == i ? k(q) : -k(q)) * (xi - row3(x, fans.other(at)));
            for (int column = 0; column < 3; ++column) {
                a[0][column] += d.x * v(q, column);
                a[1][column] += d.y * v(q, column);
                a[2][column] += d.z * v(q, column);
            }
        }
        nearest_rotation(a, &rotations(i, 0, 0));
    }
}

void corotated_energy_and_gradient(In<double, 2> x, Fans fans, In<int64_t, 2> edges, In<double, 1> k, In<double, 1> r,
                                 In<double, 2> v, double mu, In<double, 3> rotations, Out<double, 2> gradient,
                                 Out<double, 1> share, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const Vec3 xi = row3(x, i);
        const Mat3 rotation = matrix(rotations, i);
        Vec3 g = {0.0, 0.0, 0.0};
        double e = 0.0;
        for (int64_t at = fans.start(i); at < fans.start(i + 1); ++at) {
            const int64_t j = fans.other(at), q = fans.spring(at);
            const Vec3 d = xi - row3(x, j), vq = (edges(q, 0) == i ? 1.0 : -1.0) * row3(v, q);
            const double length = norm(d), stretch = length - r(q), f = stretch / std::max(length, SMALLEST);
            const Vec3 a = d - rotation * vq, b = d - matrix(rotations, j) * vq;
            e += k(q) * (stretch * stretch + mu * dot(a, a));
            g = g + k(q) * (f * d + (0.5 * mu) * (a + b));
        }
        store(gradient, i, g);
        share(i) = e;
    }
}

// Rotation matrix of a rotation vector (Rodrigues).
Mat3 rotation(Vec3 v) {
    const double angle2 = dot(v, v), angle = std::sqrt(angle2);
    const bool small = angle2 < 1e-14;
    const double a = small ? 1 - angle2 / 6 : std::sin(angle) / angle;
    const double b = small ? 0.5 - angle2 / 24 : (1 - std::cos(angle)) / angle2;
    const double c = 1 - b * angle2;
    return {{{c + b * v.x * v.x, b * v.x * v.y - a * v.z, b * v.x * v.z + a * v.y},
             {b * v.x * v.y + a * v.z, c + b * v.y * v.y, b * v.y * v.z - a * v.x},
             {b * v.x * v.z - a * v.y, b * v.y * v.z + a * v.x, c + b * v.z * v.z}}};
}

// Σ (-y)^k / (2k + first)!: for first = 0 cos √y, for first = 1 sin √y / √y. To rounding where y < LARGEST_SQUARE.
template <int first>
[[gnu::always_inline]] inline double series(double y) {
    constexpr int TERMS = 12;
    struct Coefficients {
        double of[TERMS];
        constexpr Coefficients() : of{1.0} {
            for (int k = 1; k < TERMS; ++k) of[k] = -of[k - 1] / ((2 * k + first) * (2 * k + first - 1));
        }
    };
    constexpr Coefficients c;
    const double y2 = y * y;
    double even = c.of[TERMS - 2], odd = c.of[TERMS - 1];
#pragma GCC unroll 12
    for (int k = TERMS - 4; k >= 0; k -= 2) even = even * y2 + c.of[k], odd = odd * y2 + c.of[k + 1];
    return even + odd * y;
}
constexpr double LARGEST_SQUARE = 2.6;  // of half an angle: rotations by up to 184°

// The vector v rotated by a rotation vector ω, from the cosine of half its angle and the sine over it.
[[gnu::always_inline]] inline Vec3 rotated(Vec3 v, Vec3 rotvec, double cosine, double sine) {
    const Vec3 axis = (0.5 * sine) * rotvec, twice = 2.0 * cross(axis, v);
    return v + cosine * twice + cross(axis, twice);
}

// The vector v rotated by a rotation vector.
inline Vec3 rotated(Vec3 v, Vec3 rotvec) {
    const double half = 0.5 * norm(rotvec);
    return rotated(v, rotvec, std::cos(half), half < 1e-8 ? 1.0 : std::sin(half) / half);
}

// Calls store(i, v(i) rotated by rotvec(i)) for i from begin to end, several at once.
template <class Vectors, class Rotvecs, class Store>
[[gnu::always_inline]] inline void rotate_all(int64_t begin, int64_t end, Vectors v, Rotvecs rotvec, Store store) {
    constexpr int64_t BLOCK = 64;
    Vec3 w[BLOCK];
    double square[BLOCK] = {}, cosine[BLOCK], sine[BLOCK];
    for (; begin < end; begin += BLOCK) {
        const int64_t count = std::min(BLOCK, end - begin);
        for (int64_t i = 0; i < count; ++i) w[i] = rotvec(begin + i), square[i] = 0.25 * dot(w[i], w[i]);
        for (int64_t i = 0; i < BLOCK; ++i) cosine[i] = series<0>(square[i]);
        for (int64_t i = 0; i < BLOCK; ++i) sine[i] = series<1>(square[i]);
        for (int64_t i = 0; i < count; ++i)
            store(begin + i, square[i] < LARGEST_SQUARE ? rotated(v(begin + i), w[i], cosine[i], sine[i])
                                                        : rotated(v(begin + i), w[i]));
    }
}

// The mean rotation vector of an edge's two frames.
Vec3 mean_rotvec(const In<double, 2> &rotvecs, const In<int64_t, 2> &frames, int64_t q) {
    return 0.5 * (row3(rotvecs, frames(q, 0)) + row3(rotvecs, frames(q, 1)));
}
Vec3 edge(const In<double, 2> &points, const In<int64_t, 2> &edges, int64_t q) {
    return row3(points, edges(q, 0)) - row3(points, edges(q, 1));
}

void local_changes(In<double, 2> base, In<double, 2> points, In<double, 2> rotvecs, In<int64_t, 2> edges,
                   In<int64_t, 2> frames, Indices chosen, Out<double, 2> changes, int64_t begin, int64_t end) {
    rotate_all(begin, end, [&](int64_t at) { return edge(points, edges, chosen(at)); },
               [&](int64_t at) { return -mean_rotvec(rotvecs, frames, chosen(at)); },
               [&](int64_t at, Vec3 v) { store(changes, at, v - edge(base, edges, chosen(at))); });
}

void add_changes(Indices chosen, In<double, 2> changes, double weight, Out<double, 2> vectors, int64_t begin,
                 int64_t end) {
    for (int64_t at = begin; at < end; ++at)
        store(vectors, chosen(at), row3(vectors, chosen(at)) + weight * row3(changes, at));
}

void rotated_edges(In<double, 2> vectors, In<double, 2> rotvecs, In<int64_t, 2> frames, Out<double, 2> out,
                   int64_t begin, int64_t end) {
    rotate_all(begin, end, [&](int64_t q) { return row3(vectors, q); },
               [&](int64_t q) { return mean_rotvec(rotvecs, frames, q); },
               [&](int64_t q, Vec3 v) { store(out, q, v); });
}

// J(ω) δ, J the left Jacobian of a rotation vector ω: the rotation by which exp(ω) rotates on when ω changes by δ.
Vec3 left_jacobian(Vec3 rotvec, Vec3 change) {
    const double angle2 = dot(rotvec, rotvec), angle = std::sqrt(angle2);
    const bool small = angle < 1e-3;
    const double first = small ? 0.5 - angle2 / 24 : (1 - std::cos(angle)) / angle2;
    const double second = small ? 1.0 / 6 - angle2 / 120 : (angle - std::sin(angle)) / (angle * angle2);
    const Vec3 once = cross(rotvec, change);
    return change + first * once + second * cross(rotvec, once);
}

void edge_changes(Indices chosen, In<double, 2> local, In<double, 2> own, In<double, 2> blended, In<int64_t, 2> frames,
                  In<double, 2> vectors, Out<double, 2> changes, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
        const int64_t q = chosen(at);
        const Vec3 total = mean_rotvec(blended, frames, q);
        const Vec3 turning = left_jacobian(total, mean_rotvec(own, frames, q));
        store(changes, q, rotated(row3(local, at), total) + cross(turning, row3(vectors, q)));
    }
}

void rest_forces(In<int64_t, 2> edges, In<double, 2> x, In<double, 2> vectors, In<double, 2> changes, In<double, 1> k,
                 double mu, Out<double, 2> forces, int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        const Vec3 v = row3(vectors, q), change = row3(changes, q), d = row3(x, edges(q, 0)) - row3(x, edges(q, 1));
        const double r = std::max(norm(v), SMALLEST);
        const Vec3 p = v / r, across = (change - dot(p, change) * p) / r;
        const double along = dot(p, change) / std::max(norm(d), SMALLEST);
        store(forces, q, -k(q) * (along * d + mu * (dot(d, across) * p + dot(d, p) * across)));
    }
}

void lengths_and_directions(In<double, 2> vectors, Out<double, 1> lengths, Out<double, 2> directions, int64_t begin,
                            int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        const Vec3 v = row3(vectors, q);
        lengths(q) = norm(v);
        store(directions, q, (1 / std::max(lengths(q), SMALLEST)) * v);
    }
}

void gathered(Indices start, Indices column, In<double, 1> value, In<double, 2> vectors, Out<double, 2> out,
              int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        Vec3 sum = {0.0, 0.0, 0.0};
        for (int64_t e = start(q); e < start(q + 1); ++e) sum = sum + value(e) * row3(vectors, column(e));
        store(out, q, sum);
    }
}

void rotated_vectors(In<double, 2> vectors, In<double, 2> rotvecs, double sign, Out<double, 2> out, int64_t begin,
                     int64_t end) {
    rotate_all(begin, end, [&](int64_t i) { return row3(vectors, i); },
               [&](int64_t i) { return sign * row3(rotvecs, i); }, [&](int64_t i, Vec3 v) { store(out, i, v); });
}

void divergence(In<double, 2> vectors, In<double, 1> k, In<int64_t, 2> edges, Indices start, Indices spring,
                Out<double, 2> out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        Vec3 sum = {0.0, 0.0, 0.0};
        for (int64_t at = start(i); at < start(i + 1); ++at) {
            const int64_t q = spring(at);
            sum = sum + (edges(q, 0) == i ? k(q) : -k(q)) * row3(vectors, q);
        }
        store(out, i, sum);
    }
}

bool is_inverted(In<double, 2> x, In<int64_t, 2> tets, int64_t t) {
    const Vec3 a = row3(x, tets(t, 0));
    const Vec3 b = row3(x, tets(t, 1)) - a, c = row3(x, tets(t, 2)) - a, d = row3(x, tets(t, 3)) - a;
    return dot(b, cross(c, d)) < 0;
}

int64_t inverted_tets(In<double, 2> x, In<int64_t, 2> tets) {
    int64_t count = 0;
    for (int64_t t = 0; t < tets.shape[0]; ++t) count += is_inverted(x, tets, t);
    return count;
}

// Those that are inverted at x and were not before.
int64_t newly_inverted_tets(In<double, 2> x, In<double, 2> before, In<int64_t, 2> tets) {
    int64_t count = 0;
    for (int64_t t = 0; t < tets.shape[0]; ++t) count += is_inverted(x, tets, t) && !is_inverted(before, tets, t);
    return count;
}

struct Rotation {
    double angle;
    Vec3 vector;
};

// The rotation from that of vector a to that of vector b.
Rotation rotation_between(Vec3 a, Vec3 b) {
    const Mat3 from = rotation(a), to = rotation(b);
    Mat3 m;
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 3; ++column)
            m[row][column] = to[row][0] * from[column][0] + to[row][1] * from[column][1] + to[row][2] * from[column][2];
    const double angle = std::acos(std::min(1.0, std::max(-1.0, (m[0][0] + m[1][1] + m[2][2] - 1) / 2)));
    const double scale = angle < 1e-6 ? 0.5 : angle / (2 * std::sin(angle));
    return {angle, scale * Vec3{m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]}};
}

void unwrap(Indices order, Indices parent, In<double, 2> rotvecs, Out<double, 2> out) {
    std::copy_n(rotvecs.data, rotvecs.size(), out.data);
    for (int64_t at = 0; at < order.shape[0]; ++at) {
        const int64_t i = order(at), p = parent(i);
        if (p < 0) continue;
        const Vec3 own = row3(rotvecs, i), above = row3(out, p);
        const double angle = norm(own);
        if (angle > 1e-9) {
            const double along = dot(own, above) / angle;  // the parent's angle about this axis
            const double whole = std::nearbyint((along - angle) / (2 * PI));
            store(out, i, ((angle + 2 * PI * whole) / angle) * own);
        }
        if (dot(above, above) > 16) {
            const Rotation between = rotation_between(above, own);
            if (between.angle < 2 && norm(row3(out, i) - above) > 3 * between.angle + 0.1)
                store(out, i, above + 0.5 * (between.vector + rotated(between.vector, -above)));
        }
    }
}

}  // namespace

EXPORT(springs_fans, fans)
EXPORT(springs_energy_and_gradient, energy_and_gradient)
EXPORT(springs_compression, compression)
EXPORT(springs_relax, relax)
EXPORT(springs_fit_rotations, fit_rotations)
EXPORT(springs_corotated_energy_and_gradient, corotated_energy_and_gradient)
EXPORT(springs_local_changes, local_changes)
EXPORT(springs_add_changes, add_changes)
EXPORT(springs_edge_changes, edge_changes)
EXPORT(springs_rest_forces, rest_forces)
EXPORT(springs_lengths_and_directions, lengths_and_directions)
EXPORT(springs_rotated_edges, rotated_edges)
EXPORT(springs_gathered, gathered)
EXPORT(springs_rotated_vectors, rotated_vectors)
EXPORT(springs_divergence, divergence)
EXPORT(springs_inverted_tets, inverted_tets)
EXPORT(springs_newly_inverted_tets, newly_inverted_tets)
EXPORT(springs_unwrap, unwrap)
