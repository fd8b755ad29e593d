// Contacts that share vertices, and what the layer's softness makes between them; see contacts.py.
#include <algorithm>
#include <numeric>
#include <vector>

#include "native/vec3.h"

namespace {

// Contacts (c, 4) in `order`, group by group; `first` of each group, and behind the last. Returns how many there are.
// Groups of more than `most` are taken apart.
int64_t groups(In<int64_t, 2> vertices, In<double, 2> weights, int64_t points, int64_t most, Out<int64_t, 1> order,
               Out<int64_t, 1> first) {
    const int64_t count = vertices.shape[0];
    std::vector<int64_t> above(static_cast<size_t>(count)), seen(static_cast<size_t>(points), -1), size(above.size(), 0);
    std::iota(above.begin(), above.end(), 0);
    const auto root = [&](int64_t k) {
        while (above[k] != k) k = above[k] = above[above[k]];
        return k;
    };
    for (int64_t k = 0; k < count; ++k)
        for (int i = 0; i < 4; ++i) {
            if (weights(k, i) == 0) continue;
            int64_t &other = seen[vertices(k, i)];
            if (other >= 0) {
                const int64_t a = root(k), b = root(other);
                above[std::max(a, b)] = std::min(a, b);
            }
            other = k;
        }
    std::vector<int64_t> group(above.size());
    for (int64_t k = 0; k < count; ++k) ++size[group[k] = root(k)];
    for (int64_t k = 0; k < count; ++k)
        if (size[group[k]] > most) group[k] = k;
    std::iota(order.data, order.data + count, 0);
    std::stable_sort(order.data, order.data + count, [&](int64_t a, int64_t b) { return group[a] < group[b]; });
    int64_t number = 0;
    for (int64_t k = 0; k < count; ++k)
        if (k == 0 || group[order(k)] != group[order(k - 1)]) first(number++) = k;
    first(number) = count;
    return number;
}
EXPORT(contact_groups, groups)

// Full matrices J k⁻¹ Jᵀ + ρ⁻¹ of the groups, each from `begin` on. softness: (points,) k⁻¹.
void softness(In<int64_t, 2> vertices, In<double, 2> weights, In<double, 2> directions, In<double, 1> rho,
              In<double, 1> soft, In<int64_t, 1> order, In<int64_t, 1> first, In<int64_t, 1> begin, Out<double, 1> out) {
    struct Entry {
        int64_t vertex, place;
        double weight;
    };
    std::vector<Entry> entries;
    for (int64_t g = 0; g + 1 < first.shape[0]; ++g) {
        const int64_t size = first(g + 1) - first(g);
        entries.clear();
        for (int64_t a = 0; a < size; ++a) {
            const int64_t k = order(first(g) + a);
            out(begin(g) + a * (size + 1)) += 1 / rho(k);
            for (int i = 0; i < 4; ++i)
                if (weights(k, i) != 0) entries.push_back({vertices(k, i), a, weights(k, i)});
        }
        std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.vertex < b.vertex; });
        for (size_t from = 0, to; from < entries.size(); from = to) {
            for (to = from; to < entries.size() && entries[to].vertex == entries[from].vertex;) ++to;
            for (size_t i = from; i < to; ++i)
                for (size_t j = from; j < to; ++j) {
                    const Entry &one = entries[i], &other = entries[j];
                    const Vec3 n = row3(directions, order(first(g) + one.place));
                    const Vec3 m = row3(directions, order(first(g) + other.place));
                    out(begin(g) + one.place * size + other.place) +=
                        soft(one.vertex) * one.weight * other.weight * dot(n, m);
                }
        }
    }
}
EXPORT(contact_softness, softness)

}  // namespace
