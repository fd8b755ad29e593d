// The preconditioner on several levels; the equations are in multigrid.py.
#pragma once

#include "engines/simulate/warping.h"

// Vectors of all levels stand one after the other, so that a node has one number on all of them.
struct Levels {
    In<int64_t, 1> begin;       // (levels + 1,) first node of each level, the body's own first, and their number
    In<int64_t, 1> down_start;  // rows of Pᵀ for the nodes of all levels but the first
    In<int32_t, 1> down_column;
    In<float, 1> down_value;
    In<int64_t, 1> up_start;  // rows of P for the nodes of all levels but the last
    In<int32_t, 1> up_column;
    In<float, 1> up_value;
    In<float, 2> diagonal;  // (nodes, 6) D⁻¹ of all levels but the last, or of the only one
    In<float, 2> inverse;   // (3m, 3m) A⁻¹ of the last level
    using Fields = Types<In<int64_t, 1>, In<int64_t, 1>, In<int32_t, 1>, In<float, 1>, In<int64_t, 1>, In<int32_t, 1>,
                         In<float, 1>, In<float, 2>, In<float, 2>>;
};

struct LevelScratch {
    std::vector<Four<float>> rest, up;  // of all levels
    std::vector<float> last;            // the last level's, three by three
};

// z = B⁻¹ r at the free nodes; turns (free, 9) are their rotations.
void precondition(Team &team, const Levels &levels, const In<float, 2> &turns, const Four<float> *r, Four<float> *z,
                  LevelScratch &scratch);
