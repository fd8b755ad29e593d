// What kernels of springs share: lists of the springs at a vertex.
#pragma once

#include <algorithm>

#include "native/mat3.h"

namespace {

using Indices = In<int64_t, 1>;

struct Fans {
    Indices start, other, spring;  // where each vertex's list starts, the other end and the spring

    using Fields = Types<Indices, Indices, Indices>;
};

}  // namespace
