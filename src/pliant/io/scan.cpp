// Numbers out of text, and tables of them; the rules are in scan.py.
#include "io/scan.h"

#include <algorithm>
#include <cstring>

constexpr int MOST_DIGITS = 19;  // that 64 bits hold

namespace {
// mantissa · 10^exponent; `exact` unless digits were dropped that are not zero.
struct Decimal {
    uint64_t mantissa = 0;
    int64_t exponent = 0, digits = 0;
    int used = 0;
    bool exact = true;
};
}  // namespace

namespace {
struct Doubles {
    double high, low;
};
}  // namespace

// a·b as an exact sum of two doubles (Dekker).
static Doubles two_product(double a, double b) {
    constexpr double SPLIT = 134217729.0;
    const double product = a * b;
    double c = SPLIT * a;
    const double a_high = c - (c - a), a_low = a - a_high;
    c = SPLIT * b;
    const double b_high = c - (c - b), b_low = b - b_high;
    return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// The decimal rounded to a double; TIE where that rounding is not certain.
static Number rounded(const Decimal &decimal, const Powers &powers) {
    if (!decimal.exact) return {0.0, TIE};
    if (decimal.mantissa == 0) return {0.0, NUMBER};
    const int64_t range = powers.shape[1] / 2;
    if (decimal.exponent < -range || decimal.exponent > range) return {0.0, TIE};
    const double power = powers(0, decimal.exponent + range), power_low = powers(1, decimal.exponent + range);
    const double top = double(decimal.mantissa >> 32) * 4294967296.0, bottom = double(decimal.mantissa & 0xFFFFFFFFu);
    const double m = top + bottom, m_low = bottom - (m - top);
    const Doubles product = two_product(m, power);
    const double error = product.low + (m * power_low + m_low * power);
    const double value = product.high + error, rest = error - (value - product.high);
    const double slack = std::abs(value) * 1e-30;
    const bool certain = value + (rest + slack) == value && value + (rest - slack) == value;
    return certain ? Number{value, NUMBER} : Number{0.0, TIE};
}

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static bool is_sign(uint8_t c) { return c == '+' || c == '-'; }

// Takes the digits at byte i, before the point or behind it; returns the byte after them.
static int64_t take_digits(const Text &text, int64_t i, int64_t stop, bool behind, Decimal &decimal) {
    const int64_t begin = i;
    for (; i < stop && is_digit(text(i)); ++i) {
        if (decimal.used < MOST_DIGITS) {
            decimal.mantissa = decimal.mantissa * 10 + (text(i) - '0');
            decimal.used += decimal.mantissa > 0;
            decimal.exponent -= behind;
        } else {
            decimal.exponent += !behind;
            decimal.exact = decimal.exact && text(i) == '0';
        }
    }
    decimal.digits += i - begin;
    return i;
}

// Takes the exponent whose e is at byte i; returns the byte after it, or -1 if there is no number.
static int64_t take_exponent(const Text &text, int64_t i, int64_t stop, Decimal &decimal) {
    ++i;
    const bool minus = i < stop && text(i) == '-';
    if (i < stop && is_sign(text(i))) ++i;
    if (!(i < stop && is_digit(text(i)))) return -1;
    int64_t power = 0;
    for (; i < stop && is_digit(text(i)); ++i) power = std::min<int64_t>(power * 10 + (text(i) - '0'), 100000);
    decimal.exponent += minus ? -power : power;
    return i;
}

// Whether the token starts as nan or inf do, in any spelling.
static bool is_nan_or_inf(const Text &text, Token token) {
    int64_t i = token.begin;
    if (i < token.end && is_sign(text(i))) ++i;
    if (i + 3 > token.end) return false;
    const int a = text(i) | 32, b = text(i + 1) | 32, c = text(i + 2) | 32;
    return (a == 'n' && b == 'a' && c == 'n') || (a == 'i' && b == 'n' && c == 'f');
}

Number parse_token(const Text &text, Token token, const Powers &powers) {
    const int64_t stop = token.end;
    int64_t i = token.begin;
    const bool negative = i < stop && text(i) == '-';
    if (i < stop && is_sign(text(i))) ++i;
    Decimal decimal;
    i = take_digits(text, i, stop, false, decimal);
    if (i < stop && text(i) == '.') i = take_digits(text, i + 1, stop, true, decimal);
    if (decimal.digits && i < stop && (text(i) | 32) == 'e') i = take_exponent(text, i, stop, decimal);
    if (!decimal.digits || i < 0) {
        if (is_nan_or_inf(text, token)) return {std::numeric_limits<double>::quiet_NaN(), NUMBER};
        return {0.0, WORD};
    }
    if (i != stop) return {0.0, WORD};
    const Number number = rounded(decimal, powers);
    return {negative ? -number.value : number.value, number.status};
}

int64_t line_end(const Text &text, int64_t i, int64_t stop) {
    if (i >= stop) return stop;
    const void *found = std::memchr(&text(i), '\n', size_t(stop - i));
    return found ? static_cast<const uint8_t *>(found) - text.data : stop;
}

namespace {
// How far reading a table has got, in the order of Python's array.
enum Progress { BYTE, LINE, IN_ROW, NUMBERS, ROWS, TIES, STOPPED, PROGRESS };
}  // namespace

// All numbers of the text up to byte `stop`, from where `at` says: values, (start, line) of each row, and ties as rows
// (slot, begin, end). Returns whether an array is full: then it goes on from there when it is called with larger ones.
// It ends early at a word, whose byte becomes at[STOPPED].
static bool read_table(Text text, int64_t stop, Powers powers, Out<double, 1> values, Out<int64_t, 2> rows,
                       Out<int64_t, 2> ties, Out<int64_t, 1> at) {
    int64_t now[PROGRESS];
    std::copy_n(&at(0), PROGRESS, now);
    stop = std::min(stop, text.shape[0]);
    bool full = false;
    while (now[BYTE] < stop) {
        const Token token = next_token(text, now[BYTE], stop, ',');
        if (token.none()) {  // at the end of a line, or at a comment
            now[BYTE] = line_end(text, token.begin, stop) + 1;
            ++now[LINE];
            now[IN_ROW] = 0;
            continue;
        }
        full = now[NUMBERS] >= values.shape[0] || now[ROWS] >= rows.shape[0] || now[TIES] >= ties.shape[0];
        if (full) break;
        const Number number = parse_token(text, token, powers);
        if (number.status == WORD) {
            now[STOPPED] = token.begin;
            break;
        }
        if (!now[IN_ROW]) {
            rows(now[ROWS], 0) = now[NUMBERS];
            rows(now[ROWS]++, 1) = now[LINE];
            now[IN_ROW] = 1;
        }
        if (number.status == TIE) note_tie(ties, now[TIES], now[NUMBERS], token);
        values(now[NUMBERS]++) = number.value;
        now[BYTE] = token.end;
    }
    std::copy_n(now, PROGRESS, &at(0));
    return full;
}
EXPORT(scan_table, read_table)
