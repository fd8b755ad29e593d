// Numbers of a group of points, whose loops the compiler turns into vector instructions.
#pragma once

#include "native/elementary.h"

constexpr int LANES = 32;  // points in a group; as in green.py

// One number for each point of a group. Where a function writes one it is declared __restrict, since nothing else in
// the function is the same: only so the loops become vector instructions.
struct alignas(64) Lanes {
    double at[LANES];

    Lanes() {}  // not zero
    double operator[](int k) const { return at[k]; }
    double &operator[](int k) { return at[k]; }
};
