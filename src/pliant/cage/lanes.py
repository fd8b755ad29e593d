"""Logarithms and arcs of whole arrays, written so that the compiler turns the loops into vector instructions.

The libraries' own functions are called for one number at a time. Here nothing branches: ``log`` splits off the exponent
by the bits of the number (the reduction and polynomial of fdlibm), ``atan2`` folds its arguments into one octant and
takes Cephes' rational function there. Both are exact to about one unit in the last place.
"""

from __future__ import annotations

from math import pi

from pliant.jit import kernel
from pliant.topology import Floats, Ints

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SQRT2 = 1.4142135623730951
MANTISSA, ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000
EXPONENT, SHIFT = 0x4330000000000000, 4503599627370496.0 + 1023.0  # 2⁵² + k, as bits, is the number 2⁵² + k
L1, L2, L3, L4 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
L5, L6, L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
P0, P1, P2 = -8.750608600031904122785e-01, -1.615753718733365076637e01, -7.500855792314704667340e01
P3, P4 = -1.228866684490136173410e02, -6.485021904942025371773e01
Q0, Q1, Q2 = 2.485846490142306297962e01, 1.650270098316988542046e02, 4.328810604912902668951e02
Q3, Q4 = 4.853903996359136964868e02, 1.945506571482613964425e02


@kernel
def logarithms(x: Floats, bits: Ints, exponent: Floats, exponent_bits: Ints, out: Floats) -> None:
    """log x into `out`, for positive normal x; x is lost. All are flat; `bits` views x, `exponent_bits` `exponent`."""
    for k in range(len(x)):
        exponent_bits[k] = (bits[k] >> 52) | EXPONENT
        bits[k] = (bits[k] & MANTISSA) | ONE
    for k in range(len(x)):
        large = x[k] > SQRT2
        m = 0.5 * x[k] if large else x[k]
        e = exponent[k] - SHIFT + (1.0 if large else 0.0)
        f = m - 1
        s = f / (2 + f)
        z = s * s
        R = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * (L6 + z * L7))))))
        half = 0.5 * f * f
        out[k] = e * LN2_HIGH - ((half - (s * (half + R) + e * LN2_LOW)) - f)


@kernel
def arcs(y: Floats, x: Floats, out: Floats) -> None:
    """atan2(y, x) into `out`, 0 where both are 0. All are flat."""
    for k in range(len(x)):
        u, v = abs(y[k]), abs(x[k])
        low, high = min(u, v), max(u, v)
        steep = low > 0.66 * high
        above = low - high if steep else low
        below = low + high if steep else high
        t = above / (below if below > 0 else 1.0)
        z = t * t
        p = z * ((((P0 * z + P1) * z + P2) * z + P3) * z + P4)
        q = ((((z + Q0) * z + Q1) * z + Q2) * z + Q3) * z + Q4
        a = t + t * (p / q) + (pi / 4 if steep else 0.0)
        a = pi / 2 - a if u > v else a
        a = pi - a if x[k] < 0 else a
        out[k] = -a if y[k] < 0 else a
