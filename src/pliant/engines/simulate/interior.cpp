// Where parallel lines cross triangles: each triangle, seen along the lines, is drawn onto their grid; see interior.py.
#include <algorithm>

#include "native/vec3.h"

constexpr double EDGE = 1e-10;  // how far beyond its edges a triangle reaches, in barycentric coordinates

// Crossings of the lines through (i + ½, j + ½) with triangles (m, 3, 3), third coordinate along them: number of the
// line (row · columns + column) and height along it. Fills as many as there is room for; returns how many there are.
static int64_t line_crossings(In<double, 3> corners, int64_t columns, Out<int64_t, 1> line, Out<double, 1> height) {
    int64_t found = 0;
    for (int64_t t = 0; t < corners.shape[0]; ++t) {
        const Vec3 a = corner(corners, t, 0), b = corner(corners, t, 1), c = corner(corners, t, 2);
        const double area = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
        if (area == 0) continue;
        const int64_t first_i = int64_t(std::ceil(std::min({a.x, b.x, c.x}) - 0.5));
        const int64_t last_i = int64_t(std::floor(std::max({a.x, b.x, c.x}) - 0.5));
        const int64_t first_j = int64_t(std::ceil(std::min({a.y, b.y, c.y}) - 0.5));
        const int64_t last_j = int64_t(std::floor(std::max({a.y, b.y, c.y}) - 0.5));
        for (int64_t i = first_i; i <= last_i; ++i)
            for (int64_t j = first_j; j <= last_j; ++j) {
                const double x = double(i) + 0.5, y = double(j) + 0.5;
                const double v = ((x - a.x) * (c.y - a.y) - (c.x - a.x) * (y - a.y)) / area;
                const double w = ((b.x - a.x) * (y - a.y) - (x - a.x) * (b.y - a.y)) / area;
                if (v < -EDGE || w < -EDGE || v + w > 1 + EDGE) continue;
                if (found < line.shape[0]) {
                    line(found) = i * columns + j;
                    height(found) = a.z + v * (b.z - a.z) + w * (c.z - a.z);
                }
                ++found;
            }
    }
    return found;
}
EXPORT(interior_line_crossings, line_crossings)
