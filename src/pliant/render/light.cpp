// Light on what the rasteriser sees: ambient occlusion, shadows, ground, and the sum of it all; see light.py.
// Rows from `begin` to `end` are done.
#include <algorithm>
#include <vector>

#include "native/vec3.h"
#include "render/raster.h"

namespace {

constexpr int TAPS = 12;
constexpr int GROUND_TAPS = 64, SHADOW_TAPS = 10;
constexpr int64_t TILE = 32;              // pixels of the shadow map that are looked at together
constexpr double GROUND_SEARCH = 0.07;    // how far around a point of the ground casters are looked for, of the map
constexpr double PI = 3.141592653589793;

struct Lens {
    double focal, x, y;  // focal length, centre column, centre row

    using Fields = Types<double, double, double>;

    Vec3 seen(int64_t row, int64_t column, double z) const {
        return {(double(column) + 0.5 - x) * z / focal, (y - double(row) - 0.5) * z / focal, z};
    }
};

using Spirals = In<float, 3>;  // (16, 64, 2) unit steps; see light.py

// Which of the 16 turns of the spiral a sample uses; neighbours differ much.
int64_t turn_of(int64_t row, int64_t column) { return ((row & 3) * 4 + (column & 3) * 7) & 15; }

Vec3 normal_at(const In<float, 3> &normal, int64_t row, int64_t column) {
    const float *n = &normal(row, column, 0);
    return {n[0], n[1], n[2]};
}

// How much of the sky the sample loses.
double lost_sky(const In<float, 2> &depth, Vec3 normal, int64_t row, int64_t column, const Lens &lens, double radius,
                const Spirals &spirals) {
    const int64_t height = depth.shape[0], width = depth.shape[1];
    const double z = 1 / double(depth(row, column));
    const Vec3 p = lens.seen(row, column, z);
    const double reach = std::min(lens.focal * radius / z, 0.25 * double(width));
    const float *spiral = &spirals(turn_of(row, column), 0, 0);
    double total = 0.0;
    for (int k = 0; k < TAPS; ++k) {
        const double share = (k + 0.5) / TAPS;
        const double step = std::max(reach * share * share, 1.5 + share);
        const int64_t i = whole(double(row) + step * spiral[2 * k + 1] + 0.5, -1, height);
        const int64_t j = whole(double(column) + step * spiral[2 * k] + 0.5, -1, width);
        if (i < 0 || j < 0 || i >= height || j >= width || depth(i, j) <= 0) continue;
        const Vec3 d = lens.seen(i, j, 1 / double(depth(i, j))) - p;
        const double square = dot(d, d);
        if (square < radius * radius && square > 0) {
            const double cosine = dot(d, normal) / std::sqrt(square);
            total += std::max(0.0, cosine - 0.12) * (1 - square / (radius * radius));
        }
    }
    return std::min(1.0, 1.9 * total / TAPS);
}

void occlusion(In<float, 2> depth, In<float, 3> normal, Lens lens, double radius, Spirals spirals, Out<float, 2> result,
               int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
        for (int64_t column = row & 1; column < depth.shape[1]; column += 2)
            if (!(depth(row, column) <= 0))
                result(row, column) =
                    float(lost_sky(depth, normal_at(normal, row, column), row, column, lens, radius, spirals));
}

// Mean over the 4 x 4 tile around a sample, of those at the same depth on the chessboard of `occlusion`.
double smoothed(const In<float, 2> &noisy, const In<float, 2> &depth, int64_t row, int64_t column, double tolerance) {
    const float here = depth(row, column);
    const double apart = tolerance * here;
    const int64_t first = std::max<int64_t>(0, column - 2), last = std::min(depth.shape[1], column + 2);
    double total = 0.0;
    int count = 0;
    for (int64_t i = std::max<int64_t>(0, row - 2); i < std::min(depth.shape[0], row + 2); ++i)
        for (int64_t j = first + ((first + i) & 1); j < last; j += 2)
            if (std::abs(depth(i, j) - here) < apart) {
                total += noisy(i, j);
                ++count;
            }
    return total / std::max(count, 1);
}

// Turning of the normals across a sample: positive on ridges, negative in valleys, 0 beside a silhouette.
double cavity(const In<float, 2> &depth, const In<float, 3> &normal, int64_t row, int64_t column, int64_t step) {
    const int64_t height = depth.shape[0], width = depth.shape[1];
    if (row < step || column < step || row >= height - step || column >= width - step) return 0.0;
    const float here = depth(row, column);
    const auto gap = [&](int64_t i, int64_t j) { return std::abs(depth(i, j) - here); };
    const float widest = std::max({gap(row - step, column), gap(row + step, column), gap(row, column - step),
                                   gap(row, column + step)});
    if (widest > 0.02 * here) return 0.0;
    const float across = normal(row, column + step, 0) - normal(row, column - step, 0);
    return across + normal(row - step, column, 1) - normal(row + step, column, 1);
}

// How far out the taps of a disc are, over its radius.
template <int COUNT>
struct Disc {
    double radius[COUNT];

    Disc() {
        for (int k = 0; k < COUNT; ++k) radius[k] = std::sqrt((k + 0.5) / COUNT);
    }
};

// Share of the key light that reaches a point at (u, v) of the shadow map, w towards the light.
//
// A first round of taps, over a disc of radius `wide` (of the map), finds how far away the casters are; the second
// averages over a disc of that distance times `size`.
template <int COUNT>
double lit_share(const In<float, 2> &shadow, double u, double v, double w, const float *spiral, const Disc<COUNT> &disc,
                 double wide, double size, double bias) {
    const int64_t rows = shadow.shape[0], columns = shadow.shape[1];
    const double widest = wide * double(rows);
    double gap = 0.0;
    const auto count_blockers = [&](double search) {
        int blockers = 0;
        for (int k = 0; k < COUNT; ++k) {
            const double step = search * disc.radius[k];
            const int64_t i = whole(v + step * spiral[2 * k + 1], -1, rows);
            const int64_t j = whole(u + step * spiral[2 * k], -1, columns);
            if (i < 0 || j < 0 || i >= rows || j >= columns) continue;
            if (shadow(i, j) > std::max(w + bias * (1 + step), 0.0)) {
                ++blockers;
                gap += shadow(i, j) - w;
            }
        }
        return blockers;
    };
    const int around = count_blockers(widest);
    if (around == 0) return 1.0;
    return 1 - double(count_blockers(std::min(std::max(size * gap / around, 1.2), widest))) / COUNT;
}

// Which tiles of the shadow map have a caster within `wide` of the map.
struct CasterTiles {
    int64_t rows, columns;
    std::vector<uint8_t> near;

    CasterTiles(const In<float, 2> &shadow, double wide)
        : rows(shadow.shape[0] / TILE + 1), columns(shadow.shape[1] / TILE + 1), near(size_t(rows * columns), 0) {
        const int64_t reach = int64_t(wide * double(shadow.shape[0])) / TILE + 1;
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                if (has_caster(shadow, i, j)) mark(i, j, reach);
    }
    static bool has_caster(const In<float, 2> &shadow, int64_t i, int64_t j) {
        const int64_t last_row = std::min((i + 1) * TILE, shadow.shape[0]);
        const int64_t last_column = std::min((j + 1) * TILE, shadow.shape[1]);
        for (int64_t row = i * TILE; row < last_row; ++row)
            for (int64_t column = j * TILE; column < last_column; ++column)
                if (shadow(row, column) > 0) return true;
        return false;
    }
    void mark(int64_t i, int64_t j, int64_t reach) {
        const int64_t first = std::max<int64_t>(j - reach, 0), last = std::min(j + reach + 1, columns);
        for (int64_t row = std::max<int64_t>(i - reach, 0); row < std::min(i + reach + 1, rows); ++row)
            std::fill(&near[size_t(row * columns + first)], &near[size_t(row * columns)] + last, 1);
    }
    bool around(double u, double v) const {
        return near[size_t(whole(v / TILE, 0, rows - 1) * columns + whole(u / TILE, 0, columns - 1))] != 0;
    }
};

void ground_key(In<float, 2> shadow, In<double, 3> position, double size, double bias, Spirals spirals,
                Out<float, 2> result, int64_t begin, int64_t end) {
    const Disc<GROUND_TAPS> disc;
    const CasterTiles tiles(shadow, GROUND_SEARCH);
    const float *spiral = &spirals(0, 0, 0);
    for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < result.shape[1]; ++j) {
            const double u = position(i, j, 0), v = position(i, j, 1), w = position(i, j, 2);
            result(i, j) = tiles.around(u, v)
                               ? float(lit_share(shadow, u, v, w, spiral, disc, GROUND_SEARCH, size, bias))
                               : 1.0F;
        }
}

void ground_sky(In<int64_t, 2> covered, In<double, 1> heights, Out<float, 2> result, int64_t begin, int64_t end) {
    const int64_t columns = result.shape[1];
    std::vector<double> lost(size_t(columns), 0.0);
    for (int64_t i = begin; i < end; ++i) {
        std::fill(lost.begin(), lost.end(), 0.0);
        double *const at = lost.data();
        for (int64_t k = 0; k < covered.shape[0]; ++k) {
            const double down = double(covered(k, 0) - i), column = double(covered(k, 1)), height = heights(k);
            const double near = height + down * down;
            for (int j = 0; j < int(columns); ++j) {
                const double across = column - j, square = near + across * across;
                at[j] += height / (square * square);
            }
        }
        for (int64_t j = 0; j < columns; ++j) result(i, j) = float(std::max(0.0, 1 - at[j] / PI));
    }
}

// Value of a square grid over [-1, 1]^2.
double bilinear(const In<float, 2> &grid, double u, double v) {
    const int64_t count = grid.shape[0];
    double p = (0.5 + 0.5 * u) * double(count) - 0.5, q = (0.5 + 0.5 * v) * double(count) - 0.5;
    const int64_t i = whole(p, 0, count - 2), j = whole(q, 0, count - 2);
    p = std::min(std::max(p - double(i), 0.0), 1.0), q = std::min(std::max(q - double(j), 0.0), 1.0);
    const double first = (1 - q) * grid(i, j) + q * grid(i, j + 1);
    return (1 - p) * first + p * ((1 - q) * grid(i + 1, j) + q * grid(i + 1, j + 1));
}

struct Layer {
    In<float, 2> depth;
    In<float, 3> normal, albedo;
    In<uint8_t, 2> kind;
    In<float, 2> occluded;

    using Fields = Types<In<float, 2>, In<float, 3>, In<float, 3>, In<uint8_t, 2>, In<float, 2>>;
};

struct Shadow {
    In<float, 2> depth;
    In<double, 2> to_map;  // (3, 4) from camera coordinates to column, row and closeness to the light
    double softness, bias;

    using Fields = Types<In<float, 2>, In<double, 2>, double, double>;

    double along(int axis, Vec3 p) const {
        return to_map(axis, 0) * p.x + to_map(axis, 1) * p.y + to_map(axis, 2) * p.z + to_map(axis, 3);
    }
};

// What lights a sample, before its own colour.
struct Light {
    double key, fill, ambient, relief, sky, gloss, glow;

    double of_channel(int k) const {
        const double warm = 1.0 + 0.05 * (1 - k);
        const double light = ambient * (2 - warm) + 0.78 * std::max(0.0, key) * warm + 0.24 * fill * (0.4 + 0.6 * sky);
        return light * (relief * (0.5 + 0.5 * sky));
    }
};

// Light above 0.6 bent towards 1, so that white keeps its shading.
double shoulder(double light) { return light < 0.6 ? light : 0.6 + 0.4 * (1 - std::exp((0.6 - light) / 0.4)); }

struct Lamps {
    Vec3 key, fill, rim, up;
};

double key_light(Vec3 p, Vec3 n, Vec3 towards, const Shadow &shadow, const float *spiral,
                 const Disc<SHADOW_TAPS> &disc) {
    const double key = dot(n, towards);
    if (!(key > 0)) return key;
    // The point is lifted off its surface, so that it does not shade itself.
    const Vec3 s = p + (6 * shadow.bias) * n;
    return key * (0.25 + 0.75 * lit_share(shadow.depth, shadow.along(0, s), shadow.along(1, s), shadow.along(2, s),
                                          spiral, disc, 0.03, shadow.softness, shadow.bias));
}

Light light_at(Vec3 p, Vec3 n, double sky, double valley, double key, const Lamps &lamps) {
    const double size = norm(p);
    const Vec3 v = -p / size, h = lamps.key + v;
    const double facing = std::max(0.0, dot(n, v));
    const double rim = std::max(0.0, dot(n, lamps.rim)) * (1 - facing) * (1 - facing);
    const double up = 0.5 + 0.5 * dot(n, lamps.up);
    double half = std::max(0.0, dot(n, h) / norm(h));
    half *= half, half *= half, half *= half;
    Light light{};
    light.key = key;
    light.fill = std::max(0.0, dot(n, lamps.fill));
    light.ambient = (0.18 + 0.31 * up) * sky;
    light.relief = 1 + (valley > 0 ? 0.2 : 0.65) * valley / (0.8 + std::abs(valley));
    light.sky = sky;
    light.gloss = 0.07 * half * half * half * std::max(0.0, key);
    light.glow = 0.25 * rim * sky;
    return light;
}

double lit_color(double color, const Light &light, int channel, uint8_t kind) {
    const double strength = light.of_channel(channel);
    if (kind & 1) color = 0.25 * color + 0.75 * (0.10 + 0.09 * channel);
    if (kind & 2) return color * (0.3 + 0.75 * strength) + 0.03 * strength + 0.5 * light.gloss;
    return shoulder(color * strength + light.gloss * light.sky + light.glow);
}

void illuminate(Layer layer, Shadow shadow, Lens lens, In<double, 2> lights, int64_t cavity_step, Spirals spirals,
                Out<float, 3> image, int64_t begin, int64_t end) {
    const Lamps lamps = {row3(lights, 0), row3(lights, 1), row3(lights, 2), row3(lights, 3)};
    const Disc<SHADOW_TAPS> disc;
    const auto &depth = layer.depth;
    for (int64_t row = begin; row < end; ++row)
        for (int64_t column = 0; column < depth.shape[1]; ++column) {
            if (depth(row, column) <= 0) continue;
            const Vec3 p = lens.seen(row, column, 1 / double(depth(row, column)));
            const Vec3 n = normal_at(layer.normal, row, column);
            const double sky = 1 - smoothed(layer.occluded, depth, row, column, 0.02);
            const double valley = cavity(depth, layer.normal, row, column, cavity_step);
            const double key = key_light(p, n, lamps.key, shadow, &spirals(turn_of(row, column), 0, 0), disc);
            const Light light = light_at(p, n, sky, valley, key, lamps);
            for (int k = 0; k < 3; ++k)
                image(row, column, k) =
                    float(lit_color(layer.albedo(row, column, k), light, k, layer.kind(row, column)));
        }
}

struct Ground {
    In<double, 2> plane;  // a point of it and its unit normal
    In<double, 2> axes;   // (2, 3) the grids' directions
    double extent;        // half width of the grids
    In<float, 2> key, sky;

    using Fields = Types<In<double, 2>, In<double, 2>, double, In<float, 2>, In<float, 2>>;

    // How dark the ground is at a point, given from the plane's.
    double darkness(Vec3 d) const {
        const double u = dot(d, row3(axes, 0)) / extent, v = dot(d, row3(axes, 1)) / extent;
        const double fade = std::min(1.0, 3 * (1 - std::sqrt(u * u + v * v)));
        if (fade <= 0) return 0.0;
        const double dark = 0.34 * (1 - bilinear(key, u, v)) + 0.5 * (1 - bilinear(sky, u, v));
        return std::min(std::max(dark - 0.012, 0.0), 0.7) * fade * fade * (3 - 2 * fade);
    }
};

// Rows count pixels of 2 x 2 samples.
void ground_pixels(In<float, 2> depth, Lens lens, Ground ground, Out<float, 3> image, int64_t begin, int64_t end) {
    const Vec3 point = row3(ground.plane, 0), normal = row3(ground.plane, 1);
    const double lift = dot(point, normal);
    for (int64_t row = 2 * begin; row < 2 * end; row += 2)
        for (int64_t column = 0; column + 1 < depth.shape[1]; column += 2) {
            if (depth(row, column) > 0 && depth(row, column + 1) > 0 && depth(row + 1, column) > 0 &&
                depth(row + 1, column + 1) > 0)
                continue;
            const double x = (double(column) + 1 - lens.x) / lens.focal, y = (lens.y - double(row) - 1) / lens.focal;
            const double slope = x * normal.x + y * normal.y + normal.z;
            if (slope * lift <= 0) continue;
            const double z = lift / slope;
            const double dark = ground.darkness(Vec3{x * z, y * z, z} - point);
            if (dark == 0) continue;
            for (int k = 0; k < 4; ++k) {
                const int64_t i = row + (k >> 1), j = column + (k & 1);
                if (!(depth(i, j) <= 0)) continue;
                for (int channel = 0; channel < 3; ++channel)
                    image(i, j, channel) = float(image(i, j, channel) * (1 - dark));
            }
        }
}

void finish(In<float, 3> image, In<uint8_t, 1> encoded, Out<uint8_t, 3> result, int64_t begin, int64_t end) {
    const auto clamped = [](float light) { return std::min(std::max(light, 0.0F), 1.0F); };
    const int64_t columns = result.shape[1];
    if (columns == 0) return;
    for (int64_t row = begin; row < end; ++row) {
        const float *const upper = &image(2 * row, 0, 0), *const lower = &image(2 * row + 1, 0, 0);
        uint8_t *const bytes = &result(row, 0, 0);
        for (int64_t column = 0; column < columns; ++column)
            for (int k = 0; k < 3; ++k) {
                const float *const a = upper + 6 * column + k, *const b = lower + 6 * column + k;
                const float total = clamped(a[0]) + clamped(a[3]) + clamped(b[0]) + clamped(b[3]);
                bytes[3 * column + k] = encoded(whole(total * (8191.0F / 4) + 0.5F, 0, 8191));
            }
    }
}

}  // namespace

EXPORT(light_occlusion, occlusion)
EXPORT(light_ground_key, ground_key)
EXPORT(light_ground_sky, ground_sky)
EXPORT(light_illuminate, illuminate)
EXPORT(light_ground_pixels, ground_pixels)
EXPORT(light_finish, finish)
