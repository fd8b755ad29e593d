// A body's implicit field: round cones in stretched frames, blended; the equations are in implicit.py.
#include <algorithm>
#include <cstring>
#include <vector>

#include "native/vec3.h"

constexpr double FAR = 1e9;
constexpr int64_t BLOCK = 16, SMALL = 4;  // samples along the sides of the cubes in which a grid is filled

namespace {

// A row of the body's table of parts.
struct Part {
    double S[9];       // world to the frame in which it is a round cone along y
    double c[3];       // where it starts
    double h, r0, r1;  // length and radii
    double k;          // radius of the smooth union with the parts before it
    double carve, group;
    double slab;       // half the thickness of a plane figure; 0 for a solid of revolution
    double reach;      // radius of a sphere around all, at c
};
static_assert(sizeof(Part) == 20 * sizeof(double), "a part is a row of the table");

struct Group {
    double parent, join, crease;
};
static_assert(sizeof(Group) == 3 * sizeof(double), "a group is a row of the table");

template <class Row>
std::vector<Row> rows_of(const In<double, 2> &table) {
    std::vector<Row> rows(table.shape[0]);
    if (!rows.empty()) std::memcpy(rows.data(), table.data, rows.size() * sizeof(Row));
    return rows;
}

// Distance and gradient; the gradient is not of unit length where parts are stretched.
struct Value {
    double d;
    Vec3 g;
};

Value negative(const Value &a) { return {-a.d, -a.g}; }

// A plane figure at distance f, with gradient g, thickened to |w| < t with edges rounded by 0.7 t.
Value slab(double f, Vec3 g, double w, double t) {
    const double rim = 0.7 * t;
    double a = std::max(f + rim, 0.0), b = std::max(std::abs(w) - t + rim, 0.0);
    double corner = std::sqrt(a * a + b * b) + 1e-12;
    if (corner < 1e-9) {
        const bool side = f > std::abs(w) - t;
        a = side ? 1.0 : 0.0, b = side ? 0.0 : 1.0, corner = 1.0;
        f = std::max(f, std::abs(w) - t);
    } else {
        f = corner - rim;
    }
    const double sign = w > 0 ? 1.0 : w < 0 ? -1.0 : 0.0;
    return {f, {g.x * a / corner, g.y * a / corner, sign * b / corner}};
}

Value part_distance(const Part &part, Vec3 p) {
    const double *S = part.S;
    const double dx = p.x - part.c[0], dy = p.y - part.c[1], dz = p.z - part.c[2];
    const double u = S[0] * dx + S[1] * dy + S[2] * dz, w = S[6] * dx + S[7] * dy + S[8] * dz;
    double v = S[3] * dx + S[4] * dy + S[5] * dz, r = part.r0;
    const double length = part.h;
    const double q = part.slab > 0 ? std::abs(u) : std::sqrt(u * u + w * w);
    const double slope = length > 0 ? (part.r0 - part.r1) / length : 0.0;
    const double rise = std::sqrt(std::max(1.0 - slope * slope, 0.0));
    const double along = rise * v - slope * q;
    double f, gq, gv;
    if (length > 0 && 0 <= along && along <= rise * length) {
        f = rise * q + slope * v - r, gq = rise, gv = slope;
    } else {
        if (along > 0 && length > 0) v -= length, r = part.r1;
        const double size = std::sqrt(q * q + v * v) + 1e-12;
        f = size - r, gq = q / size, gv = v / size;
    }
    Value here = {f, {gq, gv, 0.0}};
    if (q > 1e-12) here.g = {gq * u / q, gv, gq * w / q};
    if (part.slab > 0) here = slab(f, here.g, w, part.slab);
    const Vec3 g = {S[0] * here.g.x + S[3] * here.g.y + S[6] * here.g.z,
                    S[1] * here.g.x + S[4] * here.g.y + S[7] * here.g.z,
                    S[2] * here.g.x + S[5] * here.g.y + S[8] * here.g.z};
    const double size = norm(g) + 1e-12;
    return {here.d / size, g / size};
}

Value soft_min(const Value &a, const Value &b, double k) {
    const double gap = a.d - b.d;
    const double h = k > 0 ? std::max(k - std::abs(gap), 0.0) / k : 0.0;
    const double share = gap > 0 ? 1 - h / 2 : h / 2;
    return {std::min(a.d, b.d) - h * h * k / 4, a.g + share * (b.g - a.g)};
}

using Numbers = std::vector<int64_t>;

// A body's parts and groups, and buffers to blend them in.
class Field {
   public:
    Field(const In<double, 2> &parts, const In<double, 2> &groups)
        : parts(rows_of<Part>(parts)), groups(rows_of<Group>(groups)), own_(groups.shape[0]), all_(groups.shape[0]) {}

    // active: numbers of the parts that count; a negative one ends the list. offsets: how far each is pushed away.
    Value at(Vec3 p, const int64_t *active, const double *offsets, int64_t count) {
        std::fill(own_.begin(), own_.end(), Value{FAR, {0.0, 0.0, 0.0}});
        for (int64_t slot = 0; slot < count && active[slot] >= 0; ++slot)
            add(p, parts[active[slot]], offsets ? offsets[slot] : 0.0);
        return joined();
    }
    Value at(Vec3 p, const Numbers &active) { return at(p, active.data(), nullptr, int64_t(active.size())); }

    const std::vector<Part> parts;
    const std::vector<Group> groups;

   private:
    // Joins a part to its group, or carves it out.
    void add(Vec3 p, const Part &part, double offset) {
        Value &here = own_[int64_t(part.group)];
        const double sign = part.carve > 0 ? -1.0 : 1.0;
        const double dx = p.x - part.c[0], dy = p.y - part.c[1], dz = p.z - part.c[2];
        const double clear = sign * here.d + part.k - offset + part.reach;
        if (clear < 0 || dx * dx + dy * dy + dz * dz > clear * clear) return;  // its bounding sphere is too far to matter
        Value value = part_distance(part, p);
        value.d += offset;
        here = sign < 0 ? negative(soft_min(negative(here), value, part.k)) : soft_min(here, value, part.k);
    }

    // Joins each group, with its children, to its parent alone; children come after their parents.
    Value joined() {
        all_ = own_;
        for (size_t g = groups.size(); g-- > 1;) {
            const Value &base = own_[int64_t(groups[g].parent)];
            Value &parent = all_[int64_t(groups[g].parent)];
            const Value with = soft_min(all_[g], base, groups[g].join);
            const double crease = std::min({groups[g].crease, base.d - with.d, base.d - parent.d});
            parent = soft_min(parent, with, std::max(0.0, crease));
        }
        return all_[0];
    }

    std::vector<Value> own_, all_;
};

// A grid of samples at origin + cell * index.
class Grid {
   public:
    Grid(Field &field, const In<double, 1> &origin, double cell, const Out<float, 3> &values)
        : field_(field), origin_{origin(0), origin(1), origin(2)}, cell_(cell), values_(values) {
        for (size_t i = 0; i < field.parts.size(); ++i) every_.push_back(int64_t(i));
    }
    void fill_block(int64_t x, int64_t y, int64_t z);

   private:
    struct Cube {
        int64_t low[3], high[3], side;
    };
    Cube cube(int64_t x, int64_t y, int64_t z, int64_t side) const {
        Cube made = {{x, y, z}, {}, side};
        for (int axis = 0; axis < 3; ++axis) made.high[axis] = std::min(made.low[axis] + side, values_.shape[axis]);
        return made;
    }
    void open(const Cube &cube, const Numbers &active, Numbers &near);
    void sample(const Cube &cube, const Numbers &active);

    Field &field_;
    Vec3 origin_;
    double cell_;
    Out<float, 3> values_;
    Numbers every_, near_, nearer_;
};

// The active parts that can matter in a cube of the grid; none, and the cube filled, if the surface is far.
void Grid::open(const Cube &cube, const Numbers &active, Numbers &near) {
    const double reach = cell_ * double(cube.side) * 0.87, half = cell_ * double(cube.side - 1) / 2;
    Vec3 middle;
    for (int axis = 0; axis < 3; ++axis) middle[axis] = origin_[axis] + cell_ * double(cube.low[axis]) + half;
    const double value = field_.at(middle, active).d;
    for (int64_t i = cube.low[0]; i < cube.high[0]; ++i)
        for (int64_t j = cube.low[1]; j < cube.high[1]; ++j)
            std::fill_n(&values_(i, j, cube.low[2]), cube.high[2] - cube.low[2], float(value));
    near.clear();
    if (!(std::abs(value) < 1.5 * reach)) return;
    for (const int64_t i : active) {
        const Part &part = field_.parts[i];
        const double bound = std::abs(value) + 3 * reach + 2 * part.k + field_.groups[int64_t(part.group)].join;
        if (part_distance(part, middle).d < bound) near.push_back(i);
    }
}

void Grid::sample(const Cube &cube, const Numbers &active) {
    for (int64_t i = cube.low[0]; i < cube.high[0]; ++i)
        for (int64_t j = cube.low[1]; j < cube.high[1]; ++j)
            for (int64_t k = cube.low[2]; k < cube.high[2]; ++k) {
                const Vec3 p = origin_ + cell_ * Vec3{double(i), double(j), double(k)};
                values_(i, j, k) = float(field_.at(p, active).d);
            }
}

void Grid::fill_block(int64_t x, int64_t y, int64_t z) {
    const Cube block = cube(x, y, z, BLOCK);
    open(block, every_, near_);
    if (near_.empty()) return;
    for (int64_t i = x; i < block.high[0]; i += SMALL)
        for (int64_t j = y; j < block.high[1]; j += SMALL)
            for (int64_t k = z; k < block.high[2]; k += SMALL) {
                const Cube small = cube(i, j, k, SMALL);
                open(small, near_, nearer_);
                if (!nearer_.empty()) sample(small, nearer_);
            }
}

}  // namespace

// Blocks begin to end, counted along z first.
static void sample_grid(In<double, 2> parts, In<double, 2> groups, In<double, 1> origin, double cell,
                        Out<float, 3> values, int64_t begin, int64_t end) {
    Field field(parts, groups);
    Grid grid(field, origin, cell, values);
    const int64_t ny = (values.shape[1] + BLOCK - 1) / BLOCK, nz = (values.shape[2] + BLOCK - 1) / BLOCK;
    for (int64_t b = begin; b < end; ++b) grid.fill_block(b / (ny * nz) * BLOCK, b / nz % ny * BLOCK, b % nz * BLOCK);
}
EXPORT(implicit_sample_grid, sample_grid)

// active and offsets have one row for all points, or one for each.
static Value value_at(Field &field, Vec3 p, const In<int64_t, 2> &active, const In<double, 2> &offsets, int64_t n) {
    const int64_t count = active.shape[1], row = n % active.shape[0];
    return field.at(p, active.data + row * count, offsets.data + row * count, count);
}

// Moves points along the gradient until the field has their target value; each step goes at most `limit` far.
static void project(Out<double, 2> points, In<double, 1> targets, In<double, 2> parts, In<double, 2> groups,
                    In<int64_t, 2> active, In<double, 2> offsets, int64_t steps, double limit, int64_t begin,
                    int64_t end) {
    Field field(parts, groups);
    for (int64_t n = begin; n < end; ++n) {
        Vec3 p = row3(points, n);
        for (int64_t step = 0; step < steps; ++step) {
            const Value here = value_at(field, p, active, offsets, n);
            const double size = dot(here.g, here.g), missing = targets(n) - here.d;
            if (size < 0.05 || std::abs(missing) < 1e-3 * limit) break;
            p = p + std::min(std::max(missing / size, -limit), limit) * here.g;
        }
        store(points, n, p);
    }
}
EXPORT(implicit_project, project)

static void field_values(In<double, 2> points, In<double, 2> parts, In<double, 2> groups, In<int64_t, 2> active,
                         In<double, 2> offsets, Out<double, 1> out, int64_t begin, int64_t end) {
    Field field(parts, groups);
    for (int64_t n = begin; n < end; ++n) out(n) = value_at(field, row3(points, n), active, offsets, n).d;
}
EXPORT(implicit_field_values, field_values)

// The part whose surface is nearest; carved parts do not count.
static void nearest_part(In<double, 2> points, In<double, 2> table, Out<int64_t, 1> out, int64_t begin, int64_t end) {
    const std::vector<Part> parts = rows_of<Part>(table);
    for (int64_t n = begin; n < end; ++n) {
        double least = FAR;
        out(n) = 0;
        for (size_t i = 0; i < parts.size(); ++i) {
            if (parts[i].carve != 0) continue;
            const double d = part_distance(parts[i], row3(points, n)).d;
            if (d < least) least = d, out(n) = int64_t(i);
        }
    }
}
EXPORT(implicit_nearest_part, nearest_part)
