// What is seen where: triangles, balls and lines in a z-buffer, and what its samples show; see raster.py.
// Rows from `begin` to `end` are drawn. Each visits everything in order, so that threads can share a picture.
#include "render/raster.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "native/vec3.h"

namespace {

constexpr int64_t MOST_JOINED = 64;  // triangles at a vertex beyond which they are one group

struct Screen {
    In<double, 1> x, y, w;  // columns, rows and inverse depths of points

    using Fields = Types<In<double, 1>, In<double, 1>, In<double, 1>>;
};

struct Spot {
    double x, y, w;
};

Spot spot(const Screen &screen, int64_t v) { return {screen.x(v), screen.y(v), screen.w(v)}; }

// A triangle on the screen, its corners in the order in which its area is positive.
struct Flat {
    Spot corner[3];
    double left, right, farthest, nearest;
    double w_x, w_y;  // slopes of the inverse depth

    Flat(Spot a, Spot b, Spot c, double area) : corner{a, b, c} {
        if (area < 0) {
            std::swap(b, c);
            std::swap(corner[1], corner[2]);
            area = -area;
        }
        w_x = ((b.w - a.w) * (c.y - a.y) - (c.w - a.w) * (b.y - a.y)) / area;
        w_y = ((c.w - a.w) * (b.x - a.x) - (b.w - a.w) * (c.x - a.x)) / area;
        left = std::min({a.x, b.x, c.x}), right = std::max({a.x, b.x, c.x});
        farthest = std::min({a.w, b.w, c.w}), nearest = std::max({a.w, b.w, c.w});
    }
};

struct Span {
    double start, stop;
};

// Where a row is inside: right of the sides that go up, left of those that go down.
Span inside(const Flat &flat, double centre) {
    Span span = {flat.left, flat.right};
    for (int side = 0; side < 3; ++side) {
        const Spot &p = flat.corner[side], &q = flat.corner[side < 2 ? side + 1 : 0];
        const double slope = q.y - p.y;
        if (slope == 0) continue;
        // Inside where (x_q - x_p)(centre - y_p) - slope (s - x_p) >= 0, a bound on s.
        const double crossing = p.x + (q.x - p.x) * (centre - p.y) / slope;
        if (slope > 0) span.stop = std::min(span.stop, crossing);
        else span.start = std::max(span.start, crossing);
    }
    return span;
}

void draw_row(const Flat &flat, int32_t t, int64_t row, const Out<float, 2> &depth, const Out<int32_t, 2> &number) {
    const int64_t width = depth.shape[1];
    const double centre = double(row) + 0.5;
    const Spot a = flat.corner[0];
    const Span span = inside(flat, centre);
    const int64_t first = whole(std::ceil(span.start - 0.5 - 1e-7), 0, width);
    const int64_t end = whole(std::floor(span.stop + 0.5 + 1e-7), 0, width);
    if (first >= end) return;
    float *const nearest = &depth(row, 0);
    int32_t *const shown = &number(row, 0);
    for (int64_t column = first; column < end; ++column) {
        const double w = a.w + flat.w_x * (double(column) + 0.5 - a.x) + flat.w_y * (centre - a.y);
        const float here = float(std::min(std::max(w, flat.farthest), flat.nearest));
        if (here > nearest[column]) {
            nearest[column] = here;
            shown[column] = t;
        }
    }
}

void rasterize(Screen screen, In<int64_t, 2> triangles, Out<float, 2> depth, Out<int32_t, 2> number, int64_t begin,
               int64_t end) {
    for (int64_t t = 0; t < triangles.shape[0]; ++t) {
        const Spot a = spot(screen, triangles(t, 0)), b = spot(screen, triangles(t, 1));
        const Spot c = spot(screen, triangles(t, 2));
        const double low = std::min({a.y, b.y, c.y}), high = std::max({a.y, b.y, c.y});
        if (high <= double(begin) || low >= double(end) || a.w <= 0 || b.w <= 0 || c.w <= 0) continue;
        const double area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
        const int64_t first = whole(std::ceil(low - 0.5), begin, end), stop = whole(std::floor(high + 0.5), begin, end);
        if (area == 0 || first >= stop) continue;
        const Flat flat(a, b, c, area);
        for (int64_t row = first; row < stop; ++row) draw_row(flat, int32_t(t), row, depth, number);
    }
}

struct Balls {
    In<double, 1> x, y;       // centres on the screen
    In<double, 1> z, radius;  // in camera units

    using Fields = Types<In<double, 1>, In<double, 1>, In<double, 1>, In<double, 1>>;
};

void splat(Balls balls, double focal, int64_t base, Out<float, 2> depth, Out<int32_t, 2> number, int64_t begin,
           int64_t end) {
    const int64_t width = depth.shape[1];
    for (int64_t k = 0; k < balls.x.shape[0]; ++k) {
        const double x = balls.x(k), y = balls.y(k), z = balls.z(k), radius = balls.radius(k);
        if (z <= radius) continue;
        const double reach = std::max(focal * radius / z, 0.75);
        if (y + reach <= double(begin) || y - reach >= double(end)) continue;
        const int64_t last_row = whole(std::floor(y + reach + 0.5), begin, end);
        for (int64_t row = whole(std::ceil(y - reach - 0.5), begin, end); row < last_row; ++row) {
            const double v = (double(row) + 0.5 - y) / reach;
            const double half = reach * std::sqrt(std::max(0.0, 1 - v * v));
            const int64_t last = whole(std::floor(x + half + 0.5), 0, width);
            for (int64_t column = whole(std::ceil(x - half - 0.5), 0, width); column < last; ++column) {
                const double u = (double(column) + 0.5 - x) / reach;
                const float here = float(1 / (z - radius * std::sqrt(std::max(0.0, 1 - u * u - v * v))));
                if (here > depth(row, column)) {
                    depth(row, column) = here;
                    number(row, column) = int32_t(base + k);
                }
            }
        }
    }
}

struct Line {
    Spot a, b;
    double along_x, along_y, length, inverse;
    double reach;  // half its width, and half a sample to fade out

    Line(Spot a, Spot b, double reach) : a(a), b(b), along_x(b.x - a.x), along_y(b.y - a.y), reach(reach) {
        length = std::hypot(along_x, along_y);
        inverse = 1 / std::max(length * length, 1e-12);
    }
    Span span(double v) const {
        Span span = {std::min(a.x, b.x) - reach, std::max(a.x, b.x) + reach};
        if (std::abs(along_y) > 1e-9) {
            const double middle = a.x + along_x * v / along_y, spread = reach * length / std::abs(along_y);
            span = {std::max(span.start, middle - spread), std::min(span.stop, middle + spread)};
        }
        return span;
    }
};

void draw_lines(Screen screen, In<int64_t, 2> edges, double thickness, double slack, In<float, 2> depth,
                Out<float, 2> seen, Out<float, 2> hidden, int64_t begin, int64_t end) {
    const int64_t width = depth.shape[1];
    const double reach = 0.5 * thickness + 0.5;
    for (int64_t e = 0; e < edges.shape[0]; ++e) {
        const Spot a = spot(screen, edges(e, 0)), b = spot(screen, edges(e, 1));
        const double low = std::min(a.y, b.y) - reach, high = std::max(a.y, b.y) + reach;
        if (a.w <= 0 || b.w <= 0 || high <= double(begin) || low >= double(end)) continue;
        const Line line(a, b, reach);
        const int64_t last_row = whole(std::ceil(high) + 1, begin, end);
        for (int64_t row = whole(std::floor(low), begin, end); row < last_row; ++row) {
            const double v = double(row) + 0.5 - a.y;
            const Span span = line.span(v);
            const int64_t last = whole(std::ceil(span.stop) + 1, 0, width);
            for (int64_t column = whole(std::floor(span.start), 0, width); column < last; ++column) {
                const double u = double(column) + 0.5 - a.x;
                const double t = std::min(std::max((u * line.along_x + v * line.along_y) * line.inverse, 0.0), 1.0);
                const double away_x = u - t * line.along_x, away_y = v - t * line.along_y;
                const float cover = float(std::min(reach - std::sqrt(away_x * away_x + away_y * away_y), 1.0));
                if (!(cover > 0)) continue;
                const bool is_seen = (a.w + t * (b.w - a.w)) * (1 + slack) >= double(depth(row, column));
                float &most = is_seen ? seen(row, column) : hidden(row, column);
                most = std::max(most, cover);
            }
        }
    }
}

void corner_slots(In<int64_t, 2> triangles, In<int64_t, 1> triangle_polygon, In<int64_t, 1> corners,
                  In<int64_t, 1> offsets, Out<int64_t, 2> slots) {
    for (int64_t t = 0; t < triangles.shape[0]; ++t) {
        const int64_t first = offsets(triangle_polygon(t)), stop = offsets(triangle_polygon(t) + 1);
        for (int k = 0; k < 3; ++k) {
            slots(t, k) = 0;
            for (int64_t slot = first; slot < stop; ++slot) {
                if (corners(slot) != triangles(t, k)) continue;
                slots(t, k) = slot;
                break;
            }
        }
    }
}

// For each vertex its triangle corners 3 t + k, as start (count + 1,) and a flat list.
void incident_corners(In<int64_t, 2> triangles, Out<int64_t, 1> start, Out<int64_t, 1> flat) {
    const int64_t count = start.shape[0] - 1, corners = 3 * triangles.shape[0];
    std::fill_n(start.data, count + 1, 0);
    for (int64_t c = 0; c < corners; ++c) ++start(triangles(c / 3, c % 3) + 1);
    for (int64_t v = 0; v < count; ++v) start(v + 1) += start(v);
    std::vector<int64_t> next(start.data, start.data + count);
    for (int64_t c = 0; c < corners; ++c) flat(next[triangles(c / 3, c % 3)]++) = c;
}

// Whether two triangles at vertex v share an edge there and meet at less than the crease angle.
bool smooth_neighbours(const In<int64_t, 2> &triangles, const In<double, 2> &area, int64_t s, int64_t t, int64_t v,
                       double cosine) {
    bool shared = false;
    for (int k = 0; k < 3; ++k)
        for (int q = 0; q < 3; ++q) shared |= triangles(s, k) == triangles(t, q) && triangles(s, k) != v;
    if (!shared) return false;
    const Vec3 a = row3(area, s), b = row3(area, t);
    const double size_a = dot(a, a), size_b = dot(b, b);
    // A triangle without area has no direction to disagree with.
    return size_a == 0 || size_b == 0 || dot(a, b) >= cosine * std::sqrt(size_a * size_b);
}

// Numbers the groups of the corners `around` vertex v.
void join_smooth(const In<int64_t, 2> &triangles, const In<double, 2> &area, const int64_t *around, int64_t v,
                 double cosine, std::vector<int64_t> &group) {
    std::iota(group.begin(), group.end(), 0);
    for (size_t i = 0; i < group.size(); ++i)
        for (size_t j = 0; j < i; ++j)
            if (group[i] != group[j] && smooth_neighbours(triangles, area, around[i] / 3, around[j] / 3, v, cosine))
                std::replace(group.begin(), group.end(), int64_t(group[i]), int64_t(group[j]));
}

void creased_normals(In<double, 2> area, In<int64_t, 2> triangles, In<int64_t, 1> start, In<int64_t, 1> flat,
                     double cosine, Out<float, 3> normals, int64_t begin, int64_t end) {
    std::vector<int64_t> group;
    std::vector<Vec3> total;
    for (int64_t v = begin; v < end; ++v) {
        const int64_t count = start(v + 1) - start(v);
        if (count == 0) continue;
        const int64_t *around = &flat(start(v));
        group.assign(size_t(count), 0);
        if (count <= MOST_JOINED) join_smooth(triangles, area, around, v, cosine, group);
        total.assign(size_t(count), Vec3{0.0, 0.0, 0.0});
        for (int64_t i = 0; i < count; ++i) {
            Vec3 &sum = total[size_t(group[size_t(i)])];
            sum = sum + row3(area, around[i] / 3);
        }
        for (int64_t i = 0; i < count; ++i) {
            const Vec3 n = total[size_t(group[size_t(i)])];
            const double length = norm(n);
            if (!(length > 0)) continue;
            for (int k = 0; k < 3; ++k) normals(around[i] / 3, around[i] % 3, k) = float(n[k] / length);
        }
    }
}

// What triangles look like: normals (3 m, 3) of their corners one after another, the rest as in `Part`.
struct Surface {
    In<int64_t, 2> triangles;
    In<float, 2> normals;
    In<float, 2> colors;
    In<int64_t, 2> color_index;
    In<double, 2> uvs;
    In<int64_t, 2> uv_index;
    In<int64_t, 1> image;
    In<bool, 1> measured;
    In<float, 2> texels;    // (t, 3) the images one after another
    In<int64_t, 2> layout;  // (images, 4) offset, height, width, and whether lookups stop at the border or repeat

    using Fields = Types<In<int64_t, 2>, In<float, 2>, In<float, 2>, In<int64_t, 2>, In<double, 2>, In<int64_t, 2>,
                         In<int64_t, 1>, In<bool, 1>, In<float, 2>, In<int64_t, 2>>;
};

struct Samples {
    In<int32_t, 2> number;
    Out<float, 3> normal, albedo;

    using Fields = Types<In<int32_t, 2>, Out<float, 3>, Out<float, 3>>;
};

struct Weights {
    double a, b, c;  // of a triangle's corners
    double of(double p, double q, double r) const { return a * p + b * q + c * r; }
};

// Perspective-correct weights at a sample.
Weights weights_at(Spot a, Spot b, Spot c, double area, int64_t row, int64_t column) {
    const double px = double(column) + 0.5, py = double(row) + 0.5;
    double wb = ((px - a.x) * (c.y - a.y) - (py - a.y) * (c.x - a.x)) / area;
    double wc = ((b.x - a.x) * (py - a.y) - (b.y - a.y) * (px - a.x)) / area;
    wb = std::min(std::max(wb, 0.0), 1.0), wc = std::min(std::max(wc, 0.0), 1.0);
    const double wa = std::max(0.0, 1 - wb - wc) * a.w;
    wb *= b.w, wc *= c.w;
    const double total = wa + wb + wc;
    return {wa / total, wb / total, wc / total};
}

int64_t wrapped(int64_t i, int64_t count) { return i < 0 ? i + count : i >= count ? i - count : i; }

// Multiplies a colour by the bilinear lookup in an image, v upwards.
void tint(const Surface &surface, int64_t image, double u, double v, float *color) {
    const auto &layout = surface.layout;
    const int64_t offset = layout(image, 0), rows = layout(image, 1), columns = layout(image, 2);
    const bool stops = layout(image, 3) == 1;
    u = stops ? std::min(std::max(u, 0.0), 1.0) : u - std::floor(u);
    v = stops ? std::min(std::max(v, 0.0), 1.0) : v - std::floor(v);
    const double column = u * double(columns) - 0.5, row = (1 - v) * double(rows) - 0.5;
    int64_t left = whole(std::floor(column), -1, columns - 1), top = whole(std::floor(row), -1, rows - 1);
    int64_t right = left + 1, bottom = top + 1;
    const double p = column - double(left), q = row - double(top);
    if (stops) {
        left = std::max<int64_t>(left, 0), right = std::min(right, columns - 1);
        top = std::max<int64_t>(top, 0), bottom = std::min(bottom, rows - 1);
    } else {
        left = wrapped(left, columns), right = wrapped(right, columns);
        top = wrapped(top, rows), bottom = wrapped(bottom, rows);
    }
    const float *upper_left = &surface.texels(offset + top * columns + left, 0);
    const float *upper_right = &surface.texels(offset + top * columns + right, 0);
    const float *lower_left = &surface.texels(offset + bottom * columns + left, 0);
    const float *lower_right = &surface.texels(offset + bottom * columns + right, 0);
    for (int k = 0; k < 3; ++k) {
        const double upper = (1 - p) * upper_left[k] + p * upper_right[k];
        const double lower = (1 - p) * lower_left[k] + p * lower_right[k];
        color[k] = float(color[k] * ((1 - q) * upper + q * lower));
    }
}

// The normal, turned over where a triangle is seen from behind (side -1).
void mix_normal(const In<float, 2> &normals, int64_t t, Weights weights, double side, float *normal) {
    const float *a = &normals(3 * t, 0), *b = &normals(3 * t + 1, 0), *c = &normals(3 * t + 2, 0);
    double length = 0.0;
    for (int k = 0; k < 3; ++k) {
        const double value = weights.of(a[k], b[k], c[k]);
        normal[k] = float(value);
        length += value * value;
    }
    const double scale = length > 1e-20 ? side / std::sqrt(length) : 0.0;
    for (int k = 0; k < 3; ++k) normal[k] = float(normal[k] * scale);
}

void mix_color(const Surface &surface, int64_t t, Weights weights, float *color) {
    const float *a = &surface.colors(surface.color_index(t, 0), 0);
    const float *b = &surface.colors(surface.color_index(t, 1), 0);
    const float *c = &surface.colors(surface.color_index(t, 2), 0);
    for (int k = 0; k < 3; ++k) color[k] = float(weights.of(a[k], b[k], c[k]));
    if (surface.image(t) < 0) return;
    const double *p = &surface.uvs(surface.uv_index(t, 0), 0);
    const double *q = &surface.uvs(surface.uv_index(t, 1), 0);
    const double *r = &surface.uvs(surface.uv_index(t, 2), 0);
    tint(surface, surface.image(t), weights.of(p[0], q[0], r[0]), weights.of(p[1], q[1], r[1]), color);
}

void resolve(Screen screen, Surface surface, Samples samples, Out<uint8_t, 2> kind, int64_t begin, int64_t end) {
    const auto &triangles = surface.triangles;
    for (int64_t row = begin; row < end; ++row)
        for (int64_t column = 0; column < kind.shape[1]; ++column) {
            const int64_t t = samples.number(row, column);
            if (t < 0 || t >= triangles.shape[0]) continue;
            const Spot a = spot(screen, triangles(t, 0)), b = spot(screen, triangles(t, 1));
            const Spot c = spot(screen, triangles(t, 2));
            const double area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
            const Weights weights = weights_at(a, b, c, area, row, column);
            kind(row, column) = uint8_t((area > 0 ? 1 : 0) + (surface.measured(t) ? 2 : 0));
            // Screen rows count downwards, so a counter-clockwise (front) face has negative area there.
            mix_normal(surface.normals, t, weights, area < 0 ? 1.0 : -1.0, &samples.normal(row, column, 0));
            mix_color(surface, t, weights, &samples.albedo(row, column, 0));
        }
}

void resolve_splats(In<double, 1> x, In<double, 1> y, In<double, 1> reach, In<float, 2> normals, In<float, 2> colors,
                    int64_t base, Samples samples, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
        const int32_t *const shown = &samples.number(row, 0);
        float *const normal = &samples.normal(row, 0, 0), *const albedo = &samples.albedo(row, 0, 0);
        for (int64_t column = 0; column < samples.number.shape[1]; ++column) {
            const int64_t k = shown[column] - base;
            if (k < 0) continue;
            Vec3 n = {normals(k, 0), normals(k, 1), normals(k, 2)};
            if (n == Vec3{0.0, 0.0, 0.0}) {
                const double u = (double(column) + 0.5 - x(k)) / reach(k), v = -(double(row) + 0.5 - y(k)) / reach(k);
                n = {u, v, -std::sqrt(std::max(0.0, 1 - u * u - v * v))};
            } else if (n.z > 0) {
                n = -n;
            }
            for (int channel = 0; channel < 3; ++channel) {
                normal[3 * column + channel] = float(n[channel]);
                albedo[3 * column + channel] = colors(k, channel);
            }
        }
    }
}

}  // namespace

EXPORT(raster_rasterize, rasterize)
EXPORT(raster_splat, splat)
EXPORT(raster_draw_lines, draw_lines)
EXPORT(raster_corner_slots, corner_slots)
EXPORT(raster_incident_corners, incident_corners)
EXPORT(raster_creased_normals, creased_normals)
EXPORT(raster_resolve, resolve)
EXPORT(raster_resolve_splats, resolve_splats)
