// Short vectors of numbers.
#pragma once

#include <cstring>

#include "native/kernel.h"

// Four numbers that are added and multiplied at once, by the vectors of GCC and Clang.
template <class Real>
struct Four {
    typedef Real Lanes __attribute__((vector_size(4 * sizeof(Real))));
    Lanes v;

    void load(const Real *from) { std::memcpy(&v, from, sizeof v); }
};
