// The Gauss–Newton matrix of a caged shape, and the curvature of its normals; see solver_kernels.py.
#include <algorithm>
#include <vector>

#include "engines/transfer/dense.h"
#include "native/vec3.h"

namespace {
// Corners (3 t + k) at each vertex, one vertex after the other, and where each starts.
struct Incidence {
    std::vector<int64_t> corners, start;

    Incidence(const In<int64_t, 2> &triangles, int64_t count) : corners(triangles.size()), start(count + 1, 0) {
        for (int64_t i = 0; i < triangles.size(); ++i) ++start[triangles.data[i] + 1];
        for (int64_t v = 0; v < count; ++v) start[v + 1] += start[v];
        std::vector<int64_t> at(start.begin(), start.end() - 1);
        for (int64_t i = 0; i < triangles.size(); ++i) corners[at[triangles.data[i]]++] = i;
    }
};
}  // namespace

// Column (v, y) of G times A, for x, y and z: (3, c + f).
static void left_product(const In<double, 2> &A, const In<double, 4> &J, const Incidence &at, int64_t v, int y,
                         std::vector<double> &factors, std::vector<const double *> &rows, double *out) {
    const int64_t size = A.shape[0], count = size - J.shape[0], many = at.start[v + 1] - at.start[v];
    std::fill(out, out + 3 * size, 0.0);
    std::copy(A.data + v * size, A.data + (v + 1) * size, out + y * size);
    factors.resize(many);
    rows.resize(many);
    for (int x = 0; x < 3; ++x) {
        for (int64_t slot = 0; slot < many; ++slot) {
            const int64_t t = at.corners[at.start[v] + slot] / 3, k = at.corners[at.start[v] + slot] % 3;
            factors[slot] = J(t, x, k, y);
            rows[slot] = A.data + (count + t) * size;
        }
        add_rows(factors.data(), rows.data(), many, size, out + x * size);
    }
}

// Times G: (3 c,), as far as the vertex `last`.
static void right_product(const double *left, int64_t size, const In<double, 4> &J, const In<int64_t, 2> &triangles,
                          int64_t last, double *__restrict out) {
    const int64_t count = size - J.shape[0];
    for (int64_t v = 0; v <= last; ++v)
        for (int z = 0; z < 3; ++z) out[3 * v + z] = left[z * size + v];
    for (int64_t t = 0; t < triangles.shape[0]; ++t) {
        const double p = left[count + t], q = left[size + count + t], r = left[2 * size + count + t];
        const double *of = &J(t, 0, 0, 0);  // [x, corner, y]
        for (int k = 0; k < 3; ++k) {
            const int64_t v = triangles(t, k);
            if (v > last) continue;
            for (int z = 0; z < 3; ++z)
                out[3 * v + z] += p * of[3 * k + z] + q * of[9 + 3 * k + z] + r * of[18 + 3 * k + z];
        }
    }
}

// The blocks on and below the diagonal of H (3 c, 3 c), which is zero, from A (c + f, c + f) and J (f, 3, 3, 3).
static void gauss_newton_matrix(In<double, 2> A, In<double, 4> J, In<int64_t, 2> triangles, Out<double, 2> H) {
    const int64_t size = A.shape[0], count = H.shape[0] / 3;
    const Incidence at(triangles, count);
    std::vector<double> left(3 * size), factors;
    std::vector<const double *> rows;
    for (int64_t v = 0; v < count; ++v)
        for (int y = 0; y < 3; ++y) {
            left_product(A, J, at, v, y, factors, rows, left.data());
            right_product(left.data(), size, J, triangles, v, &H(3 * v + y, 0));
        }
}
EXPORT(cage_gauss_newton_matrix, gauss_newton_matrix)

// Derivatives by V (k, c, 3) of sums over r of rows (k, r, c + f) times X times factors (k, r, 3).
static void chained(In<double, 3> rows, In<double, 3> factors, In<double, 4> J, In<int64_t, 2> triangles,
                    Out<double, 3> out) {
    const int64_t size = rows.shape[2], count = out.shape[1];
    std::vector<double> by_state(3 * size);
    for (int64_t k = 0; k < out.shape[0]; ++k) {
        std::fill(by_state.begin(), by_state.end(), 0.0);
        for (int64_t r = 0; r < rows.shape[1]; ++r) {
            const double *row = &rows(k, r, 0), *f = &factors(k, r, 0);
            for (int64_t i = 0; i < size; ++i)
                for (int x = 0; x < 3; ++x) by_state[3 * i + x] += row[i] * f[x];
        }
        double *to = &out(k, 0, 0);
        std::copy(by_state.begin(), by_state.begin() + 3 * count, to);
        for (int64_t t = 0; t < triangles.shape[0]; ++t) {
            const double *n = &by_state[3 * (count + t)], *of = &J(t, 0, 0, 0);  // [x, corner, y]
            for (int corner = 0; corner < 3; ++corner) {
                double *at = to + 3 * triangles(t, corner);
                for (int y = 0; y < 3; ++y)
                    at[y] += n[0] * of[3 * corner + y] + n[1] * of[9 + 3 * corner + y] + n[2] * of[18 + 3 * corner + y];
            }
        }
    }
}
EXPORT(cage_chained, chained)

namespace {
// A triangle at rest, and the pull on its normal.
struct Pulled {
    double aa, ab, bb, area, rounded;  // products of its edge vectors, twice its area
    Vec3 force;
};
}  // namespace

// ∂(λ·N)/∂(a, b) of a triangle with edge vectors a and b, as ScaledNormals.jacobian has it.
static void pull(const Pulled &on, const double D[6], double out[6]) {
    const Vec3 a = {D[0], D[1], D[2]}, b = {D[3], D[4], D[5]};
    const double form = on.bb * dot(a, a) - 2 * on.ab * dot(a, b) + on.aa * dot(b, b);
    const double s = std::sqrt(std::max(form, 0.0) / 2) / on.area;
    const double scale = 1 / (on.area * s * s);
    const Vec3 u = scale * cross(a, b);
    const double square = dot(u, u), d2 = on.rounded * on.rounded;
    const bool plain = square >= d2;
    const double k = plain ? 1 / std::sqrt(square) : 2 * on.rounded / (square + d2);
    const double slope = plain ? -k * k * k : -4 * on.rounded / ((square + d2) * (square + d2));
    const double along = dot(on.force, u);
    const double by_s = -along * (k + 2 * slope * square);
    const Vec3 by_u = k * on.force + (slope * along) * u;
    const double factor = by_s / (2 * on.area * on.area * s), over = s * scale;
    const Vec3 at_a = factor * (on.bb * a - on.ab * b) + over * cross(b, by_u);
    const Vec3 at_b = factor * (on.aa * b - on.ab * a) - over * cross(a, by_u);
    for (int i = 0; i < 3; ++i) out[i] = at_a[i], out[3 + i] = at_b[i];
}

// (f, 6, 6) λ·∂²N/∂(a, b)² from central differences; tables of vectors (f, 3), twice the area at rest (f,).
static void normal_curvatures(In<double, 2> a, In<double, 2> b, In<double, 2> a0, In<double, 2> b0, In<double, 1> area,
                              double rounded, In<double, 2> force, Out<double, 3> out) {
    double D[6], low[6], high[6];
    for (int64_t t = 0; t < a.shape[0]; ++t) {
        const Vec3 p = row3(a0, t), q = row3(b0, t);
        const Pulled on = {dot(p, p), dot(p, q), dot(q, q), area(t), rounded, row3(force, t)};
        double square = 0.0;
        for (int i = 0; i < 6; ++i) {
            D[i] = i < 3 ? a(t, i) : b(t, i - 3);
            square += D[i] * D[i];
        }
        const double step = 1e-5 * std::sqrt(square);
        for (int i = 0; i < 6; ++i) {
            const double middle = D[i];
            D[i] = middle - step;
            pull(on, D, low);
            D[i] = middle + step;
            pull(on, D, high);
            D[i] = middle;
            for (int j = 0; j < 6; ++j) out(t, i, j) = (high[j] - low[j]) / (2 * step);
        }
        for (int i = 0; i < 6; ++i)
            for (int j = 0; j < i; ++j) out(t, i, j) = out(t, j, i) = 0.5 * (out(t, i, j) + out(t, j, i));
    }
}
EXPORT(cage_normal_curvatures, normal_curvatures)

// Adds blocks (f, 6, 6) over the edge vectors to H (3 c, 3 c): a = v_1 − v_0, b = v_2 − v_1.
static void add_curvatures(Out<double, 2> H, In<double, 3> K, In<int64_t, 2> triangles) {
    constexpr double SIGNS[3][2] = {{-1.0, 0.0}, {1.0, -1.0}, {0.0, 1.0}};
    for (int64_t t = 0; t < triangles.shape[0]; ++t)
        for (int p = 0; p < 3; ++p)
            for (int q = 0; q < 3; ++q)
                for (int e = 0; e < 2; ++e)
                    for (int f = 0; f < 2; ++f) {
                        const double sign = SIGNS[p][e] * SIGNS[q][f];
                        if (sign == 0) continue;
                        for (int x = 0; x < 3; ++x) {
                            double *to = &H(3 * triangles(t, p) + x, 3 * triangles(t, q));
                            const double *from = &K(t, 3 * e + x, 3 * f);
                            for (int y = 0; y < 3; ++y) to[y] += sign * from[y];
                        }
                    }
}
EXPORT(cage_add_curvatures, add_curvatures)
