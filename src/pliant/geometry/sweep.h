// Segments against boxes; see spatial.py.
#pragma once

#include <algorithm>

#include "geometry/bvh.h"

// The fraction at which the segment p + s d, s up to `best`, comes to a box; infinite if it does not.
inline double reaches(Vec3 p, Vec3 d, const In<double, 2> &boxes, int64_t node, double best, double eps) {
    double low = 0.0, high = best;
    for (int axis = 0; axis < 3; ++axis) {
        const double near = boxes(node, axis) - eps - p[axis], far = boxes(node, 3 + axis) + eps - p[axis];
        if (d[axis] == 0) {
            if (near > 0 || far < 0) return INF;
            continue;
        }
        const double s = near / d[axis], t = far / d[axis];
        low = std::max(low, std::min(s, t));
        high = std::min(high, std::max(s, t));
    }
    return low <= high ? low : INF;
}
