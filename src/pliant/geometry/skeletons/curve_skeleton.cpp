// Neighbours in a voxel grid, shortest paths, and the tree of a field's peaks; see voxels.py.
#include <algorithm>
#include <memory>
#include <vector>

#include "native/kernel.h"

constexpr int AROUND = 26;

// Whether a step of (a, b, c) has a way round in single steps.
static bool is_open(const In<int64_t, 3> &number, int64_t x, int64_t y, int64_t z, int64_t a, int64_t b, int64_t c) {
    const int axes = (a != 0) + (b != 0) + (c != 0);
    if (axes == 1) return true;
    const bool one[3] = {a != 0 && number(x + a, y, z) >= 0, b != 0 && number(x, y + b, z) >= 0,
                         c != 0 && number(x, y, z + c) >= 0};
    if (axes == 2) return one[0] || one[1] || one[2];
    const bool two[3] = {number(x, y + b, z + c) >= 0, number(x + a, y, z + c) >= 0, number(x + a, y + b, z) >= 0};
    return (one[0] && (two[1] || two[2])) || (one[1] && (two[0] || two[2])) || (one[2] && (two[0] || two[1]));
}

// (n, 26) neighbours of the voxels `cells` (n, 3), -1 for none, and (26,) how far they are, in cells.
static void neighbours(In<int64_t, 2> cells, In<int64_t, 3> number, Out<int64_t, 2> table, Out<double, 1> length) {
    int64_t steps[AROUND][3];
    int count = 0;
    for (int64_t x = -1; x <= 1; ++x)
        for (int64_t y = -1; y <= 1; ++y)
            for (int64_t z = -1; z <= 1; ++z)
                if (x != 0 || y != 0 || z != 0) {
                    steps[count][0] = x, steps[count][1] = y, steps[count][2] = z;
                    length(count++) = std::sqrt(double(x * x + y * y + z * z));
                }
    for (int64_t i = 0; i < cells.shape[0]; ++i)
        for (int k = 0; k < AROUND; ++k) {
            const int64_t x = cells(i, 0), y = cells(i, 1), z = cells(i, 2);
            const auto [a, b, c] = steps[k];
            table(i, k) = is_open(number, x, y, z, a, b, c) ? number(x + a, y + b, z + c) : -1;
        }
}
EXPORT(curve_skeleton_neighbours, neighbours)

namespace {

struct Reached {
    double key;
    int64_t item;
};

// A binary heap, the least key first, with a fixed capacity.
class Heap {
   public:
    explicit Heap(size_t most) : keys(new double[most]), items(new int64_t[most]) {}
    bool empty() const { return size == 0; }
    void push(double key, int64_t item) {
        size_t k = size++;
        while (k > 0) {
            const size_t above = (k - 1) / 2;
            if (keys[above] <= key) break;
            keys[k] = keys[above], items[k] = items[above];
            k = above;
        }
        keys[k] = key, items[k] = item;
    }
    Reached pop() {
        const Reached least = {keys[0], items[0]};
        const double key = keys[--size];
        const int64_t item = items[size];
        size_t k = 0;
        for (size_t below = 1; below < size; below = 2 * k + 1) {
            if (below + 1 < size && keys[below + 1] < keys[below]) ++below;
            if (keys[below] >= key) break;
            keys[k] = keys[below], items[k] = items[below];
            k = below;
        }
        keys[k] = key, items[k] = item;
        return least;
    }

   private:
    std::unique_ptr<double[]> keys;
    std::unique_ptr<int64_t[]> items;
    size_t size = 0;
};

}  // namespace

// (n,) cost of the cheapest path from the sources, infinite for none, and (n,) the voxel before, -1 for a source.
static void shortest_paths(In<int64_t, 2> table, In<double, 1> length, In<double, 1> cost, In<int64_t, 1> sources,
                           Out<double, 1> reached, Out<int64_t, 1> before) {
    std::fill_n(reached.data, reached.shape[0], INF);
    std::fill_n(before.data, before.shape[0], -1);
    Heap heap(size_t(table.size() + sources.shape[0]) + 1);  // a step along each edge at most
    for (int64_t k = 0; k < sources.shape[0]; ++k) {
        reached(sources(k)) = 0.0;
        heap.push(0.0, sources(k));
    }
    while (!heap.empty()) {
        const Reached at = heap.pop();
        if (at.key > reached(at.item)) continue;
        for (int64_t k = 0; k < table.shape[1]; ++k) {
            const int64_t other = table(at.item, k);
            if (other < 0) continue;
            const double total = at.key + length(k) * (cost(at.item) + cost(other)) / 2;
            if (total < reached(other)) {
                reached(other) = total, before(other) = at.item;
                heap.push(total, other);
            }
        }
    }
}
EXPORT(curve_skeleton_shortest_paths, shortest_paths)

namespace {

// The tree of a field's peaks while voxels are taken in, from the highest to the lowest.
struct PeakTree {
    In<int64_t, 2> table;
    In<double, 1> height;
    Out<int64_t, 1> arc_of, into, peak, end;
    std::vector<int64_t> leader, arc_at;  // arc_at: of a component, by its leader
    int64_t arcs = 0;

    int64_t leader_of(int64_t item) {
        while (leader[item] != item) {
            leader[item] = leader[leader[item]];
            item = leader[item];
        }
        return item;
    }
    double top(int64_t component) const { return height(peak(arc_at[component])); }
    int64_t begin_arc(int64_t at) {
        into(arcs) = arcs, peak(arcs) = at, end(arcs) = -1;
        return arcs++;
    }
    void end_arc(int64_t arc, int64_t in, int64_t at) { into(arc) = in, end(arc) = at; }

    void take(int64_t item, double least);
    int64_t join(int64_t item, const int64_t *around, int count, bool fork, int64_t main);
};

}  // namespace

// Joins the components around a voxel; returns the arc that goes on.
int64_t PeakTree::join(int64_t item, const int64_t *around, int count, bool fork, int64_t main) {
    const int64_t on = fork ? begin_arc(peak(main)) : main;
    for (int j = 0; j < count; ++j)
        if (fork || arc_at[around[j]] != main) end_arc(arc_at[around[j]], on, item);
    return on;
}

void PeakTree::take(int64_t item, double least) {
    int64_t around[AROUND];
    int count = 0, tall = 0;
    for (int64_t k = 0; k < table.shape[1]; ++k) {
        const int64_t other = table(item, k);
        if (other < 0 || leader[other] < 0) continue;
        const int64_t component = leader_of(other);
        if (std::find(around, around + count, component) != around + count) continue;
        around[count++] = component;
        tall += top(component) - height(item) >= least;
    }
    if (count == 0) {
        leader[item] = item;
        arc_of(item) = arc_at[item] = begin_arc(item);
        return;
    }
    int64_t best = around[0];
    for (int j = 1; j < count; ++j)
        if (top(around[j]) > top(best)) best = around[j];
    const int64_t main = join(item, around, count, tall > 1, arc_at[best]);
    for (int j = 0; j < count; ++j) leader[around[j]] = best;
    leader[item] = best;
    arc_of(item) = arc_at[best] = main;
}

// (n,) the arc of each voxel, and of the arcs, in (n,) arrays, the arc in which each ends, its peak and its end;
// returns how many there are.
static int64_t peak_tree(In<int64_t, 2> table, In<double, 1> height, In<int64_t, 1> order, double least,
                         Out<int64_t, 1> arc_of, Out<int64_t, 1> into, Out<int64_t, 1> peak, Out<int64_t, 1> end) {
    if (table.shape[1] > AROUND) return 0;
    const size_t n = size_t(table.shape[0]);
    PeakTree tree = {table, height, arc_of, into, peak, end, std::vector<int64_t>(n, -1), std::vector<int64_t>(n)};
    std::fill_n(arc_of.data, arc_of.shape[0], -1);
    for (int64_t k = 0; k < order.shape[0]; ++k) tree.take(order(k), least);
    return tree.arcs;
}
EXPORT(curve_skeleton_peak_tree, peak_tree)
