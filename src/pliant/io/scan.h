// Tokens and numbers of text files; the rules, and how numbers are converted, are in scan.py.
#pragma once

#include "native/kernel.h"

using Text = In<uint8_t, 1>;
using Powers = In<double, 2>;  // (2, 2 r + 1) powers of ten from 10^-r to 10^r, and what the doubles leave of them

enum NumberStatus { NUMBER = 0, WORD = 1, TIE = 2 };  // TIE: its rounding is left to Python

struct Number {
    double value;
    NumberStatus status;
};

struct Token {
    int64_t begin, end;
    bool none() const { return begin == end; }
};

inline bool parts_tokens(uint8_t c, uint8_t separator) {
    return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n') || c == separator;
}

// The line's first token in text[i:stop]; none at the end of the line or at a comment.
inline Token next_token(const Text &text, int64_t i, int64_t stop, uint8_t separator = ' ') {
    while (i < stop && parts_tokens(text(i), separator)) ++i;
    int64_t end = i;
    while (end < stop && text(end) != '\n' && text(end) != '#' && !parts_tokens(text(end), separator)) ++end;
    return {i, end};
}

// The line feed that ends the line of byte i, or `stop`.
int64_t line_end(const Text &text, int64_t i, int64_t stop);

// The number that is the whole token; NaN for all spellings of nan and inf.
Number parse_token(const Text &text, Token token, const Powers &powers);

// A row (slot, begin, end) of `ties`; those beyond its length are counted only: the caller enlarges it and retries.
inline void note_tie(const Out<int64_t, 2> &ties, int64_t &tied, int64_t slot, Token token) {
    if (tied < ties.shape[0]) {
        ties(tied, 0) = slot;
        ties(tied, 1) = token.begin;
        ties(tied, 2) = token.end;
    }
    ++tied;
}
