// The vector functions of lanes.h on whole arrays, by which they are tested.
#include "engines/transfer/lanes.h"

static void logarithms(In<double, 1> x, Out<double, 1> out) {
    for (int64_t k = 0; k < x.size(); ++k) out.data[k] = logarithm(x.data[k]);
}
EXPORT(lanes_logarithms, logarithms)

static void arcs(In<double, 1> y, In<double, 1> x, Out<double, 1> out) {
    for (int64_t k = 0; k < x.size(); ++k) out.data[k] = arc(y.data[k], x.data[k]);
}
EXPORT(lanes_arcs, arcs)
