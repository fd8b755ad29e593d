// The search for equal rows, by an open-addressing hash table; see stl.py.
#include <algorithm>

#include "native/kernel.h"

static uint64_t hash(const uint32_t *row, int64_t width) {
    uint64_t mix = 14695981039346656037u;
    for (int64_t k = 0; k < width; ++k) {
        mix = (mix ^ row[k]) * 1099511628211u;
        mix ^= mix >> 29;
    }
    return mix;
}

static bool equal(const uint32_t *a, const uint32_t *b, int64_t width) {
    for (int64_t k = 0; k < width; ++k)
        if (a[k] != b[k]) return false;
    return true;
}

// The rows that appear first, in order, and for every row the number of its equal; returns how many differ.
// slots: the table, a power of two of slots, more than there are rows.
static int64_t merge_rows(In<uint32_t, 2> keys, Out<int64_t, 1> slots, Out<int64_t, 1> first, Out<int64_t, 1> index) {
    const int64_t count = keys.shape[0], width = keys.shape[1];
    const uint64_t mask = uint64_t(slots.shape[0]) - 1;
    std::fill_n(slots.data, slots.shape[0], int64_t(-1));
    int64_t found = 0;
    for (int64_t row = 0; row < count; ++row) {
        const uint32_t *key = keys.row(row).data;
        uint64_t at = hash(key, width) & mask;
        int64_t other = slots(at);
        while (other >= 0 && !equal(key, keys.row(first(other)).data, width)) other = slots(at = (at + 1) & mask);
        if (other < 0) {
            other = slots(at) = found++;
            first(other) = row;
        }
        index(row) = other;
    }
    return found;
}
EXPORT(stl_merge_rows, merge_rows)
