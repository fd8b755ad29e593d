// The passes over an OBJ file's lines; see obj.py.
#include "io/scan.h"

#include <algorithm>

namespace {
enum Kind { VERTEX, TEXTURE, NORMAL, FACE, WORDS, BLANK };
}  // namespace
namespace {
enum Problem { FINE, NOT_A_NUMBER, TOO_FEW, FACE_TOO_SMALL, BAD_CORNER, OUT_OF_RANGE, MIXED_CORNERS, OVERFULL };
}  // namespace
namespace {
enum Count { CORNERS = 4, WORD_LINES = 5 };  // behind those of the kinds VERTEX to FACE

constexpr int64_t ABSENT = -2, MISSING = -1;  // a part of a corner that is left out, or that the file does not have
constexpr int64_t HUGE_INDEX = int64_t(1) << 56;

struct Line {
    Kind kind;
    int64_t values, end;  // the byte where its values (of words: the line itself) begin, and its end
};
}  // namespace

static Line line_at(const Text &text, int64_t i) {
    const int64_t end = line_end(text, i, text.shape[0]);
    const Token word = next_token(text, i, end);
    const int64_t length = word.end - word.begin;
    if (length == 0) return {BLANK, word.begin, end};
    const uint8_t first = text(word.begin);
    if (length == 1 && first == 'v') return {VERTEX, word.end, end};
    if (length == 1 && first == 'f') return {FACE, word.end, end};
    if (length == 2 && first == 'v' && text(word.begin + 1) == 't') return {TEXTURE, word.end, end};
    if (length == 2 && first == 'v' && text(word.begin + 1) == 'n') return {NORMAL, word.end, end};
    return {WORDS, word.begin, end};
}

// (6,) counts: vertices, texture coordinates, normals, faces, face corners, lines of words.
static void count_lines(Text text, Out<int64_t, 1> counts) {
    for (int64_t i = 0; i < text.shape[0];) {
        const Line line = line_at(text, i);
        if (line.kind == FACE)
            for (Token t = next_token(text, line.values, line.end); !t.none(); t = next_token(text, t.end, line.end))
                ++counts(CORNERS);
        if (line.kind != BLANK) ++counts(line.kind == WORDS ? int(WORD_LINES) : int(line.kind));
        i = line.end + 1;
    }
}
EXPORT(obj_count_lines, count_lines)

// Where the k-th line of a kind begins.
static int64_t byte_of_line(Text text, int64_t kind, int64_t k) {
    int64_t i = 0;
    while (i < text.shape[0]) {
        const Line line = line_at(text, i);
        k -= line.kind == kind;
        if (k < 0) break;
        i = line.end + 1;
    }
    return i;
}
EXPORT(obj_byte_of_line, byte_of_line)

namespace {
struct Values {
    int64_t count, bad;  // numbers of a line, and the byte of a token that is none (or -1)
};
}  // namespace

// Numbers of a line into row k of the table, as far as it is wide.
static Values read_values(const Text &text, const Line &line, const Powers &powers, const Out<double, 2> &table,
                          int64_t k, const Out<int64_t, 2> &ties, int64_t &tied) {
    const int64_t width = table.shape[1];
    int64_t count = 0;
    for (Token t = next_token(text, line.values, line.end); !t.none(); t = next_token(text, t.end, line.end)) {
        const Number number = parse_token(text, t, powers);
        if (number.status == WORD) return {count, t.begin};
        if (count < width) {
            table(k, count) = number.value;
            if (number.status == TIE) note_tie(ties, tied, k * width + count, t);
        }
        ++count;
    }
    return {count, -1};
}

// A signed whole number (0 if there is none) at byte i, which moves behind it.
static int64_t read_whole(const Text &text, int64_t &i, int64_t end) {
    const bool minus = i < end && text(i) == '-';
    if (minus || (i < end && text(i) == '+')) ++i;
    int64_t value = 0;
    for (; i < end && text(i) >= '0' && text(i) <= '9'; ++i) value = std::min(value * 10 + (text(i) - '0'), HUGE_INDEX);
    return minus ? -value : value;
}

// OBJ's index (from 1, or negative from the latest) to an index from 0.
static int64_t resolve(int64_t number, int64_t seen, int64_t total) {
    const int64_t index = number < 0 ? seen + number : number - 1;
    return number != 0 && index >= 0 && index < total ? index : MISSING;
}

// The token a, a/b, a//c or a/b/c into a row of three.
static Problem read_corner(const Text &text, Token token, const int64_t *seen, const In<int64_t, 1> &totals,
                           const Out<int64_t, 1> &corner) {
    int64_t i = token.begin;
    const int64_t number = read_whole(text, i, token.end);
    if (i == token.begin) return BAD_CORNER;
    corner(0) = resolve(number, seen[0], totals(0));
    for (int slot = 1; slot < 3; ++slot) {
        corner(slot) = ABSENT;
        if (!(i < token.end && text(i) == '/')) continue;
        const int64_t begin = ++i, index = read_whole(text, i, token.end);
        if (i > begin) corner(slot) = resolve(index, seen[slot], totals(slot));
    }
    if (i < token.end) return BAD_CORNER;
    return corner(0) == MISSING || corner(1) == MISSING || corner(2) == MISSING ? OUT_OF_RANGE : FINE;
}

namespace {
// What a file is read into: tables as wide as they are, corners (c, 3), words (w, 2): byte, and faces before it.
struct ObjTables {
    Out<double, 2> vertices;
    Out<int64_t, 1> vertex_sizes;
    Out<double, 2> textures, normals;
    Out<int64_t, 2> corners;
    Out<int64_t, 1> face_start;
    Out<int64_t, 2> words, vertex_ties, texture_ties, normal_ties;

    using Fields = Types<Out<double, 2>, Out<int64_t, 1>, Out<double, 2>, Out<double, 2>, Out<int64_t, 2>,
                         Out<int64_t, 1>, Out<int64_t, 2>, Out<int64_t, 2>, Out<int64_t, 2>, Out<int64_t, 2>>;
};
}  // namespace

namespace {
// How much of the tables is filled, and what is wrong at which byte.
struct Filling {
    int64_t seen[3] = {}, tied[3] = {};  // of vertices, texture coordinates and normals
    int64_t faces = 0, corners = 0, words = 0;
    int64_t at = 0;

    Problem stop(Problem problem, int64_t byte) {
        at = byte;
        return problem;
    }
};
}  // namespace

static Problem fill_row(const Text &text, const Line &line, int64_t begin, const Powers &powers,
                        const ObjTables &tables, Filling &filling) {
    const bool vertex = line.kind == VERTEX, texture = line.kind == TEXTURE;
    const Out<double, 2> &table = vertex ? tables.vertices : texture ? tables.textures : tables.normals;
    const Out<int64_t, 2> &ties = vertex ? tables.vertex_ties : texture ? tables.texture_ties : tables.normal_ties;
    const int64_t k = filling.seen[line.kind];
    if (k >= table.shape[0] || (vertex && k >= tables.vertex_sizes.shape[0])) return filling.stop(OVERFULL, begin);
    const Values values = read_values(text, line, powers, table, k, ties, filling.tied[line.kind]);
    if (values.bad >= 0) return filling.stop(NOT_A_NUMBER, values.bad);
    if (values.count < (texture ? 1 : 3)) return filling.stop(TOO_FEW, begin);
    if (vertex) tables.vertex_sizes(k) = values.count;
    ++filling.seen[line.kind];
    return FINE;
}

static Problem fill_face(const Text &text, const Line &line, int64_t begin, const In<int64_t, 1> &counts,
                         const ObjTables &tables, Filling &filling) {
    if (filling.faces + 1 >= tables.face_start.shape[0]) return filling.stop(OVERFULL, begin);
    const int64_t first = filling.corners;
    tables.face_start(filling.faces) = first;
    for (Token t = next_token(text, line.values, line.end); !t.none(); t = next_token(text, t.end, line.end)) {
        const int64_t k = filling.corners;
        if (k >= tables.corners.shape[0]) return filling.stop(OVERFULL, t.begin);
        const Problem problem = read_corner(text, t, filling.seen, counts, tables.corners.row(k));
        if (problem) return filling.stop(problem, t.begin);
        for (int slot = 1; slot < 3; ++slot)
            if ((tables.corners(k, slot) == ABSENT) != (tables.corners(first, slot) == ABSENT))
                return filling.stop(MIXED_CORNERS, t.begin);
        ++filling.corners;
    }
    if (filling.corners - first < 3) return filling.stop(FACE_TOO_SMALL, line.values);
    ++filling.faces;
    return FINE;
}

static Problem fill_line(const Text &text, const Line &line, int64_t begin, const Powers &powers,
                         const In<int64_t, 1> &counts, const ObjTables &tables, Filling &filling) {
    if (line.kind <= NORMAL) return fill_row(text, line, begin, powers, tables, filling);
    if (line.kind == FACE) return fill_face(text, line, begin, counts, tables, filling);
    if (line.kind == BLANK) return FINE;
    if (filling.words >= tables.words.shape[0]) return filling.stop(OVERFULL, begin);
    tables.words(filling.words, 0) = line.values;
    tables.words(filling.words++, 1) = filling.faces;
    return FINE;
}

// Fills the tables that `count_lines` sized; returns what is wrong. found (4,): at which byte, and the counts of ties.
static int64_t fill_lines(Text text, Powers powers, In<int64_t, 1> counts, ObjTables tables, Out<int64_t, 1> found) {
    Filling filling;
    Problem problem = FINE;
    for (int64_t i = 0; i < text.shape[0] && !problem;) {
        const Line line = line_at(text, i);
        problem = fill_line(text, line, i, powers, counts, tables, filling);
        i = line.end + 1;
    }
    if (!problem && filling.faces >= tables.face_start.shape[0]) problem = OVERFULL;
    if (!problem) tables.face_start(filling.faces) = filling.corners;
    found(0) = filling.at;
    for (int kind = 0; kind < 3; ++kind) found(1 + kind) = filling.tied[kind];
    return problem;
}
EXPORT(obj_fill_lines, fill_lines)
