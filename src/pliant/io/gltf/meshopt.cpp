// Decoders of EXT_meshopt_compression's bitstreams; see meshopt.py. Every read is checked against the bytes that are
// there; each function returns whether the stream was whole and ended where it should.
#include <algorithm>
#include <cstring>

#include "native/kernel.h"

namespace {

struct Bytes {
    const uint8_t *at, *end;
    bool whole = true;

    uint8_t next() {
        if (at >= end) {
            whole = false;
            return 0;
        }
        return *at++;
    }
    const uint8_t *take(int64_t count) {
        if (end - at < count) {
            whole = false;
            return nullptr;
        }
        at += count;
        return at - count;
    }
    // A number in groups of seven bits, the lowest first.
    uint32_t number() {
        uint32_t result = 0;
        for (int shift = 0; shift < 35; shift += 7) {
            const uint8_t group = next();
            result |= uint32_t(group & 127) << shift;
            if (group < 128) break;
        }
        return result;
    }
    // The same, as a signed difference.
    uint32_t step() {
        const uint32_t v = number();
        return (v >> 1) ^ (0u - (v & 1));
    }
};

constexpr int GROUP = 16, MOST_STRIDE = 256, MOST_BLOCK = 256;

// Sixteen bytes of 0, 1, 2, 4 or 8 bits each; those that do not fit are all ones, and follow after the others.
bool decode_group(Bytes &stream, int bits, uint8_t *values) {
    if (bits == 0) {
        std::memset(values, 0, GROUP);
        return true;
    }
    const int in_byte = 8 / bits, escape = (1 << bits) - 1;
    const uint8_t *packed = stream.take(GROUP / in_byte);
    if (!packed) return false;
    for (int k = 0; k < GROUP; ++k) {
        const int slot = k % in_byte, shift = bits == 1 ? slot : 8 - bits * (slot + 1);
        const uint8_t value = uint8_t((packed[k / in_byte] >> shift) & escape);
        values[k] = value == escape && bits < 8 ? stream.next() : value;
    }
    return stream.whole;
}

// One byte of each of `count` vertices, in groups whose bits are widths[mode].
bool decode_bytes(Bytes &stream, const int *widths, int64_t count, uint8_t *values) {
    const int64_t groups = (count + GROUP - 1) / GROUP;
    const uint8_t *modes = stream.take((groups + 3) / 4);
    for (int64_t g = 0; modes && g < groups; ++g)
        if (!decode_group(stream, widths[(modes[g / 4] >> (g % 4 * 2)) & 3], values + g * GROUP)) return false;
    return modes != nullptr;
}

// Differences of whole numbers of so many bytes, with their signs in the lowest bit.
template <class T>
T plus(T before, T zigzag) {
    return T(before + T(T(0 - (zigzag & 1)) ^ T(zigzag >> 1)));
}

// Four bytes of every vertex from their differences: as bytes, as 16 bits, or as rotated 32 bits that are xored.
void undo_differences(const uint8_t (*block)[MOST_BLOCK + GROUP], int channel, int64_t count, uint8_t *last,
                      Array<uint8_t, 2> vertices, int64_t first, int64_t k) {
    const int rotation = (32 - (channel >> 4)) & 31;
    for (int64_t i = 0; i < count; ++i) {
        if ((channel & 3) == 0) {
            for (int j = 0; j < 4; ++j) last[j] = plus<uint8_t>(last[j], block[j][i]);
        } else if ((channel & 3) == 1) {
            for (int j = 0; j < 4; j += 2) {
                const uint16_t before = uint16_t(last[j] | last[j + 1] << 8);
                const uint16_t now = plus<uint16_t>(before, uint16_t(block[j][i] | block[j + 1][i] << 8));
                last[j] = uint8_t(now);
                last[j + 1] = uint8_t(now >> 8);
            }
        } else {
            uint32_t v = 0;
            for (int j = 0; j < 4; ++j) v |= uint32_t(block[j][i]) << (8 * j);
            v = rotation ? v << rotation | v >> (32 - rotation) : v;
            for (int j = 0; j < 4; ++j) last[j] ^= uint8_t(v >> (8 * j));
        }
        for (int j = 0; j < 4; ++j) vertices(first + i, k + j) = last[j];
    }
}

}  // namespace

// Vertices (count, stride), stored as differences from the vertex before. Version 1 says for every four bytes how.
static bool decode_attributes(In<uint8_t, 1> data, Out<uint8_t, 2> vertices) {
    static const int WIDTHS[2][5] = {{0, 2, 4, 8, 8}, {0, 1, 2, 4, 8}};
    const int64_t count = vertices.shape[0], stride = vertices.shape[1];
    if (data.shape[0] < 1 || (data(0) != 0xa0 && data(0) != 0xa1)) return false;
    if (stride % 4 || stride > MOST_STRIDE || stride < 4) return false;
    const int version = data(0) & 1;
    const int64_t extra = version ? stride / 4 : 0, tail = std::max<int64_t>(stride + extra, version ? 24 : 32);
    if (data.shape[0] < 1 + tail) return false;
    Bytes stream{data.data + 1, data.data + data.shape[0] - tail};
    const uint8_t *channels = data.data + data.shape[0] - extra;
    uint8_t last[MOST_STRIDE], block[4][MOST_BLOCK + GROUP];
    std::memcpy(last, channels - stride, size_t(stride));
    const int64_t most = std::min<int64_t>((8192 / stride) & ~int64_t(15), MOST_BLOCK);
    for (int64_t first = 0; first < count; first += most) {
        const int64_t some = std::min(most, count - first);
        const uint8_t *control = stream.take(extra);
        if (!control) return false;
        for (int64_t k = 0; k < stride; k += 4) {
            for (int j = 0; j < 4; ++j) {
                const int how = version ? control[k / 4] >> (2 * j) & 3 : 0;
                const uint8_t *raw = how == 3 ? stream.take(some) : nullptr;
                if (how == 2) std::memset(block[j], 0, size_t(some));
                if (raw) std::memcpy(block[j], raw, size_t(some));
                if (how == 3 && !raw) return false;
                if (how < 2 && !decode_bytes(stream, WIDTHS[version] + how, some, block[j])) return false;
            }
            const int channel = version ? channels[k / 4] : 0;
            if ((channel & 3) == 3) return false;
            undo_differences(block, channel, some, last + k, vertices, first, k);
        }
    }
    return stream.at == stream.end;
}
EXPORT(meshopt_attributes, decode_attributes)

namespace {

// The last sixteen edges and vertices, which most triangles refer to.
struct Recent {
    uint32_t edges[16][2], vertices[16];
    unsigned edge = 0, vertex = 0;

    Recent() {
        std::memset(edges, -1, sizeof edges);
        std::memset(vertices, -1, sizeof vertices);
    }
    void push_edge(uint32_t a, uint32_t b) {
        edges[edge][0] = a;
        edges[edge][1] = b;
        edge = (edge + 1) & 15;
    }
    void push_vertex(uint32_t v, bool really = true) {
        vertices[vertex] = v;
        vertex = (vertex + really) & 15;
    }
};

}  // namespace

// Triangles (m, 3): a byte each that says which recent edge it continues, and what is not recent after all of them.
static bool decode_triangles(In<uint8_t, 1> data, Out<uint32_t, 2> triangles) {
    const int64_t count = triangles.shape[0], table_size = 16;
    if (data.shape[0] < 1 + count + table_size || (data(0) & 0xf0) != 0xe0 || (data(0) & 15) > 1) return false;
    const int largest_recent = (data(0) & 15) >= 1 ? 13 : 15;
    const uint8_t *codes = data.data + 1, *table = data.data + data.shape[0] - table_size;
    Bytes stream{codes + count, table};
    Recent recent;
    uint32_t next = 0, last = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int code = codes[i];
        uint32_t a, b, c;
        if (code < 0xf0) {
            const uint32_t *edge = recent.edges[(recent.edge - 1 - unsigned(code >> 4)) & 15];
            const int which = code & 15;
            a = edge[0];
            b = edge[1];
            if (which < largest_recent) {
                c = which == 0 ? next++ : recent.vertices[(recent.vertex - 1 - unsigned(which)) & 15];
                recent.push_vertex(c, which == 0);
            } else {
                last = c = which != 15 ? last + uint32_t(which - (which ^ 3)) : last + stream.step();
                recent.push_vertex(c);
            }
            recent.push_edge(c, b);
            recent.push_edge(a, c);
        } else {
            const bool listed = code < 0xfe;
            const int pair = listed ? table[code & 15] : stream.next();
            const int first = listed || code == 0xfe ? 0 : 15, second = pair >> 4, third = pair & 15;
            if (!listed && pair == 0) next = 0;
            a = first == 0 ? next++ : 0;
            b = second == 0 ? next++ : recent.vertices[(recent.vertex - unsigned(second)) & 15];
            c = third == 0 ? next++ : recent.vertices[(recent.vertex - unsigned(third)) & 15];
            if (first == 15) last = a = last + stream.step();
            if (!listed && second == 15) last = b = last + stream.step();
            if (!listed && third == 15) last = c = last + stream.step();
            recent.push_vertex(a);
            recent.push_vertex(b, second == 0 || (!listed && second == 15));
            recent.push_vertex(c, third == 0 || (!listed && third == 15));
            recent.push_edge(b, a);
            recent.push_edge(c, b);
            recent.push_edge(a, c);
        }
        triangles(i, 0) = a;
        triangles(i, 1) = b;
        triangles(i, 2) = c;
    }
    return stream.whole && stream.at == stream.end;
}
EXPORT(meshopt_triangles, decode_triangles)

// Indices (n,), each the difference from one of two before it.
static bool decode_indices(In<uint8_t, 1> data, Out<uint32_t, 1> indices) {
    const int64_t tail = 4;
    if (data.shape[0] < 1 + tail || (data(0) & 0xf0) != 0xd0 || (data(0) & 15) > 1) return false;
    Bytes stream{data.data + 1, data.data + data.shape[0] - tail};
    uint32_t last[2] = {0, 0};
    for (int64_t i = 0; i < indices.shape[0] && stream.whole; ++i) {
        const uint32_t v = stream.number(), step = v >> 1;
        indices(i) = last[v & 1] += (step >> 1) ^ (0u - (step & 1));
    }
    return stream.whole && stream.at == stream.end;
}
EXPORT(meshopt_indices, decode_indices)
