// Logarithms and arcs that the compiler turns into vector instructions.
//
// The libraries' own functions are called for one number at a time. Here nothing branches: the logarithm splits off the
// exponent by the bits of the number (the reduction and polynomial of fdlibm), the arc folds its arguments into one
// octant and takes Cephes' rational function there. Both are exact to about one unit in the last place.
#pragma once

#include <algorithm>
#include <cstring>

#include "native/kernel.h"

constexpr double PI = 3.14159265358979323846;

// log x of a positive normal x.
inline double logarithm(double x) {
    constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
    constexpr double SQRT2 = 1.4142135623730951;
    constexpr double L1 = 6.666666666666735130e-01, L2 = 3.999999999940941908e-01, L3 = 2.857142874366239149e-01;
    constexpr double L4 = 2.222219843214978396e-01, L5 = 1.818357216161805012e-01, L6 = 1.531383769920937332e-01;
    constexpr double L7 = 1.479819860511658591e-01;
    constexpr uint64_t MANTISSA = 0x000FFFFFFFFFFFFF, ONE = 0x3FF0000000000000, EXPONENT = 0x4330000000000000;
    constexpr double SHIFT = 4503599627370496.0 + 1023.0;  // 2⁵² + k, as bits, is the number 2⁵² + k

    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint64_t exponent_bits = (bits >> 52) | EXPONENT, mantissa_bits = (bits & MANTISSA) | ONE;
    double exponent, mantissa;
    std::memcpy(&exponent, &exponent_bits, sizeof exponent);
    std::memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    const bool large = mantissa > SQRT2;
    const double m = large ? 0.5 * mantissa : mantissa, e = exponent - SHIFT + (large ? 1.0 : 0.0);
    const double f = m - 1;
    const double s = f / (2 + f);
    const double z = s * s;
    const double R = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * (L6 + z * L7))))));
    const double half = 0.5 * f * f;
    return e * LN2_HIGH - ((half - (s * (half + R) + e * LN2_LOW)) - f);
}

// atan2(y, x), 0 where both are 0.
inline double arc(double y, double x) {
    constexpr double P0 = -8.750608600031904122785e-01, P1 = -1.615753718733365076637e01;
    constexpr double P2 = -7.500855792314704667340e01, P3 = -1.228866684490136173410e02;
    constexpr double P4 = -6.485021904942025371773e01;
    constexpr double Q0 = 2.485846490142306297962e01, Q1 = 1.650270098316988542046e02;
    constexpr double Q2 = 4.328810604912902668951e02, Q3 = 4.853903996359136964868e02;
    constexpr double Q4 = 1.945506571482613964425e02;

    const double u = std::fabs(y), v = std::fabs(x);
    const double low = std::min(u, v), high = std::max(u, v);
    const bool steep = low > 0.66 * high;
    const double above = steep ? low - high : low, below = steep ? low + high : high;
    const double t = above / (below > 0 ? below : 1.0);
    const double z = t * t;
    const double p = z * ((((P0 * z + P1) * z + P2) * z + P3) * z + P4);
    const double q = ((((z + Q0) * z + Q1) * z + Q2) * z + Q3) * z + Q4;
    const double octant = t + t * (p / q) + (steep ? PI / 4 : 0.0);
    const double quadrant = u > v ? PI / 2 - octant : octant;
    const double half = x < 0 ? PI - quadrant : quadrant;
    return y < 0 ? -half : half;
}
