// The walk over PLY elements whose rows differ in length; see ply.py.
#include <cstring>

#include "native/kernel.h"

constexpr int64_t FLOAT64 = 9;

// A list's length: unsigned of `code` = 1, 2 or 4 bytes, or a double; -1 if it is none.
static int64_t count_at(const In<uint8_t, 1> &data, int64_t at, int64_t code, bool big) {
    if (code == FLOAT64) {
        double value;
        std::memcpy(&value, &data(at), sizeof value);
        return value >= 0 && value < 1e9 && value == std::floor(value) ? int64_t(value) : -1;
    }
    int64_t value = 0;
    for (int64_t k = 0; k < code; ++k) value = value * 256 + data(at + (big ? k : code - 1 - k));
    return value;
}

// Follows the rows from byte `at`: first byte and length of the wanted list in each. Returns the number of whole rows;
// ended (1,): the byte after them.
static int64_t walk_rows(In<uint8_t, 1> data, int64_t at, In<bool, 1> is_list, In<int64_t, 1> count_code,
                         In<int64_t, 1> item_size, int64_t wanted, bool big, Out<int64_t, 1> begins,
                         Out<int64_t, 1> counts, Out<int64_t, 1> ended) {
    const int64_t stop = data.shape[0];
    for (int64_t row = 0; row < begins.shape[0]; ++row) {
        for (int64_t p = 0; p < is_list.shape[0]; ++p) {
            const int64_t size = item_size(p), code = count_code(p);
            int64_t count = 1;
            if (is_list(p)) {
                const int64_t width = code == FLOAT64 ? 8 : code;
                if (width > stop - at) return row;
                count = count_at(data, at, code, big);
                at += width;
            }
            if (count < 0 || count > (stop - at) / size) return row;
            if (p == wanted) {
                begins(row) = at;
                counts(row) = count;
            }
            at += count * size;
        }
    }
    ended(0) = at;
    return begins.shape[0];
}
EXPORT(ply_walk_rows, walk_rows)
