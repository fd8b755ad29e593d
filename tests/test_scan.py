"""The tokenizer reads numbers exactly as Python does, and says where it cannot."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pliant.core.errors import FileError
from pliant.io.scan import scan_numbers
from pliant.io.source import Source

SOURCE = Source(Path("numbers.txt"))


def scan(text: str):
    return scan_numbers(SOURCE, text.encode())


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_shortest_decimals_come_back_to_the_bit(values):
    assert scan(" ".join(map(repr, values))).values.tolist() == values


@settings(max_examples=25)
@given(st.from_regex(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_any_decimal_equals_pythons_float(token):
    assert scan(token).values.tolist() == [float(token)]


@pytest.mark.parametrize(
    "token",
    [
        "9007199254740993",  # halfway between two doubles
        "9007199254740993.00000000000000000000000000001",
        "0.1", "-.5", "5.", "1e-320", "2.2250738585072011e-308", "1.7976931348623157e308", "0e999",
        "00000000000000000000001",
        str(2**1024 - 2**970) + ".0",  # halfway between the largest double and infinity
    ],
)  # fmt: skip
def test_hard_decimals(token):
    assert scan(token).values.tolist() == [float(token)]


def test_rows_lines_comments_and_separators():
    table = scan("1 2\t3\r\n\n# a comment\n4,5 # tail\n  6")
    assert [table.row(k).tolist() for k in range(len(table))] == [[1, 2, 3], [4, 5], [6]]
    assert table.line.tolist() == [1, 4, 5]


def test_nan_and_infinity_are_values_that_are_not_finite():
    assert not np.isfinite(scan("nan -NaN inf -Infinity nan(ind)").values).any()


@pytest.mark.parametrize("token", ["x", "1x", "1.2.3", "--1", "1e", "0x10", "."])
def test_a_word_is_named_with_its_line(token):
    with pytest.raises(FileError, match=f'numbers.txt, line 2: found "{token}"'):
        scan(f"1 2\n3 {token} 4\n")


def test_empty_text_has_no_rows():
    assert len(scan("")) == 0
    assert len(scan("\n# nothing\n")) == 0
