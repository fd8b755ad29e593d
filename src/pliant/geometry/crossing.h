// Whether two triangles cross; the rule is in spatial.py.
#pragma once

#include "native/vec3.h"

struct Triangle {
    Vec3 corners[3];
    Vec3 operator[](int k) const { return corners[k]; }
};

// Or, if asked, overlap in one plane.
bool triangles_cross(const Triangle &a, const Triangle &b, double eps, bool coplanar);
