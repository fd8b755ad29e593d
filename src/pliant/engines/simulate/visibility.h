// How much of a surface stands between two places inside it; what that means is in mls.py.
#pragma once

#include "geometry/bvh.h"

// How much a place is hidden from a node: 0 not at all, 1 or more altogether.
// around: surfaces around the node, 1 if it is inside one part. eps: how close to the place the surface may be.
double hidden(Vec3 node, Vec3 place, int64_t around, const Tree &tree, double eps);
