// Spring energies, their gradients, and rotations of edge vectors; the equations are in kernels.py.
// Vertices or springs from `begin` to `end` are done; each vertex gathers from its own springs.
#include <algorithm>
#include <vector>

#include "engines/blend/springs.h"

namespace {

constexpr double PI = 3.141592653589793;

// Matrix i of an (n, 3, 3) table, and row (s, i) of an (s, n, 3) one.
Mat3 matrix(const In<double, 3> &table, int64_t i) {
    const double *m = &table(i, 0, 0);
    return {{{m[0], m[1], m[2]}, {m[3], m[4], m[5]}, {m[6], m[7], m[8]}}};
}
Vec3 vector(const In<double, 3> &table, int64_t s, int64_t i) {
    const double *v = &table(s, i, 0);
    return {v[0], v[1], v[2]};
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

// The vector v rotated by a rotation vector (Rodrigues).
[[gnu::always_inline]] inline Vec3 rotated(Vec3 v, Vec3 rotvec) {
    const double angle2 = dot(rotvec, rotvec);
    double s, t, cosine;
    if (angle2 < 1e-14) {
        s = 1 - angle2 / 6, t = 0.5 - angle2 / 24, cosine = 1 - angle2 / 2;
    } else {
        const double angle = std::sqrt(angle2);
        cosine = std::cos(angle);
        s = std::sin(angle) / angle, t = (1 - cosine) / angle2;
    }
    return cosine * v + s * cross(rotvec, v) + (t * dot(rotvec, v)) * rotvec;
}

void blended_edges(In<double, 3> points, In<double, 3> rotvecs, In<bool, 2> moves, Indices used, In<double, 1> weights,
                   In<int64_t, 2> edges, In<int64_t, 2> frames, Out<double, 2> blended, int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        const int64_t i = edges(q, 0), j = edges(q, 1), f = frames(q, 0), g = frames(q, 1);
        const Vec3 base = vector(points, 0, i) - vector(points, 0, j);
        Vec3 total = {0.0, 0.0, 0.0}, local = base;
        for (int64_t u = 0; u < used.shape[0]; ++u) {
            const int64_t s = used(u);
            if (!(moves(f, s) || moves(g, s))) continue;
            const Vec3 rotvec = 0.5 * (vector(rotvecs, s, f) + vector(rotvecs, s, g));
            total = total + weights(s) * rotvec;
            local = local + weights(s) * (rotated(vector(points, s, i) - vector(points, s, j), -rotvec) - base);
        }
        store(blended, q, rotated(local, total));
    }
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

void edge_changes(In<double, 3> points, In<double, 3> rotvecs, In<bool, 2> moves, int64_t s, In<int64_t, 2> edges,
                  In<int64_t, 2> frames, In<double, 2> blended, In<double, 2> vectors, Out<double, 2> changes,
                  int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        const int64_t i = edges(q, 0), j = edges(q, 1), f = frames(q, 0), g = frames(q, 1);
        Vec3 change = {0.0, 0.0, 0.0};
        if (moves(f, s) || moves(g, s)) {
            const Vec3 own = 0.5 * (vector(rotvecs, s, f) + vector(rotvecs, s, g));
            const Vec3 total = 0.5 * (row3(blended, f) + row3(blended, g));
            const Vec3 base = vector(points, 0, i) - vector(points, 0, j);
            const Vec3 local = rotated(vector(points, s, i) - vector(points, s, j), -own) - base;
            change = rotated(local, total) + cross(left_jacobian(total, own), row3(vectors, q));
        }
        store(changes, q, change);
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

void rotated_edges(In<double, 2> points, In<double, 2> rotvecs, In<int64_t, 2> edges, Out<double, 2> vectors,
                  int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        const int64_t i = edges(q, 0), j = edges(q, 1);
        store(vectors, q, rotated(row3(points, i) - row3(points, j), 0.5 * (row3(rotvecs, i) + row3(rotvecs, j))));
    }
}

void rotated_vectors(In<double, 2> vectors, In<double, 2> rotvecs, double sign, Out<double, 2> out, int64_t begin,
                    int64_t end) {
    for (int64_t i = begin; i < end; ++i) store(out, i, rotated(row3(vectors, i), sign * row3(rotvecs, i)));
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
EXPORT(springs_fit_rotations, fit_rotations)
EXPORT(springs_corotated_energy_and_gradient, corotated_energy_and_gradient)
EXPORT(springs_blended_edges, blended_edges)
EXPORT(springs_edge_changes, edge_changes)
EXPORT(springs_rest_forces, rest_forces)
EXPORT(springs_lengths_and_directions, lengths_and_directions)
EXPORT(springs_rotated_edges, rotated_edges)
EXPORT(springs_rotated_vectors, rotated_vectors)
EXPORT(springs_divergence, divergence)
EXPORT(springs_unwrap, unwrap)
