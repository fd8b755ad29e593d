// What the sources of the renderer share.
#pragma once

#include "native/kernel.h"

// A number without its fraction, from `least` to `most`; NaN is the least. No other number may become an index.
inline int64_t whole(double value, int64_t least, int64_t most) {
    if (double(least) < value && value < double(most)) return int64_t(value);
    return value >= double(most) ? most : least;
}
