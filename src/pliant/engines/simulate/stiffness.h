// Which nodes reach which points; see stiffness.py.
#pragma once

#include "native/kernel.h"

struct NodeIncidence {
    In<int64_t, 1> start;  // (q + 1,) rows of the points
    In<int32_t, 1> node;   // (nnz,) the nodes of each point
    In<int64_t, 1> first;  // (n + 1,) rows of the nodes
    In<int64_t, 1> point;  // (nnz,) the points of each node
    using Fields = Types<In<int64_t, 1>, In<int32_t, 1>, In<int64_t, 1>, In<int64_t, 1>>;
};
