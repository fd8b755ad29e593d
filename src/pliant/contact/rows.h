// Rows of contacts, each a point by up to four vertices and weights; see forces.py.
#pragma once

#include "native/kernel.h"

struct Points {
    In<int64_t, 2> vertices;   // (m, 4)
    In<double, 2> weights;     // (m, 4)
    In<double, 2> directions;  // (m, 3)

    using Fields = Types<In<int64_t, 2>, In<double, 2>, In<double, 2>>;
};
