"""Ways to break a file, each a function of (generator, bytes); `mutated` applies a few and mends what guards the rest.

Where a container has checksums or lengths (zip, GLB), its content is mutated and the container made anew half of the
time: else every case would end at the checksum.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable

import numpy as np

Generator = np.random.Generator

NUMBERS = (
    b"nan", b"inf", b"-inf", b"-1", b"0", b"1e400", b"-0.0", b"1e-320", b"99999999999", b"9223372036854775808", b"1e18",
    b"4294967295", b"-2147483649", b"", b"1.5", b"0x10", b"1_000", "٣".encode(), b"1e150", b"3000000", b"true",
)  # fmt: skip
SPACES = (*(bytes([code]) for code in (*range(14), *range(0x1C, 0x20), 0x85, 0xA0)), "\u2028".encode())
NAMES = (
    b"\x1b[31mred\x1b[0m", b"\x1b]0;title\x07", b"../../etc/passwd", b"/etc/passwd", b"C:\\x", b"con", b"a" * 5000,
    b"[bold]x", b"\xff\xfe", "\u202egnp".encode(), b"<script>", b"%s%n", b"", b"a\nb", b"*", b"file:///dev/zero",
    b"/dev/zero",
)  # fmt: skip
WHOLE = tuple(struct.pack("<i", n) for n in (-1, 0, 1, 2**31 - 1, -(2**31), 65536)) + tuple(
    struct.pack("<f", f) for f in (np.nan, np.inf, 1e38, 1e-45)
)


def flip_bytes(rng: Generator, data: bytes) -> bytes:
    changed = np.frombuffer(data, np.uint8).copy()
    where = rng.integers(0, len(data), rng.integers(1, 9))
    changed[where] = rng.integers(0, 256, len(where))
    return changed.tobytes()


def flip_bits(rng: Generator, data: bytes) -> bytes:
    changed = np.frombuffer(data, np.uint8).copy()
    where = rng.integers(0, len(data), rng.integers(1, 9))
    changed[where] ^= 1 << rng.integers(0, 8, len(where)).astype(np.uint8)
    return changed.tobytes()


def cut_off(rng: Generator, data: bytes) -> bytes:
    return data[: rng.integers(0, len(data))]


def delete_span(rng: Generator, data: bytes) -> bytes:
    a, b = _span(rng, data)
    return data[:a] + data[b:]


def repeat_span(rng: Generator, data: bytes) -> bytes:
    a, b = _span(rng, data)
    return data[:b] + data[a:b] * int(rng.choice([1, 2, 50])) + data[b:]


def exchange_spans(rng: Generator, data: bytes) -> bytes:
    a, b, c, d = np.sort(rng.integers(0, len(data) + 1, 4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def insert_space(rng: Generator, data: bytes) -> bytes:
    at = _edge(rng, data)
    return data[:at] + SPACES[rng.integers(len(SPACES))] + data[at:]


def overwrite_words(rng: Generator, data: bytes) -> bytes:
    at = int(rng.integers(0, max(1, len(data) - 4)))
    at -= at % 4 if rng.random() < 0.7 else 0
    return data[:at] + WHOLE[rng.integers(len(WHOLE))] + data[at + 4 :]


def replace_number(rng: Generator, data: bytes) -> bytes:
    return _replace(rng, data, rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?", NUMBERS)


def replace_name(rng: Generator, data: bytes) -> bytes:
    return _replace(rng, data, rb'(?<=")[^"\n]*(?=")|(?<=[ /])[A-Za-z_]\w+', NAMES)


def change_lines(rng: Generator, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    k = int(rng.integers(len(lines)))
    way = rng.integers(5)
    if way == 0:
        lines[k:k] = [lines[k]] * int(rng.choice([1, 3, 1000]))
    elif way == 1:
        del lines[k]
    elif way == 2:
        j = int(rng.integers(len(lines)))
        lines[k], lines[j] = lines[j], lines[k]
    elif way == 3:
        lines[k] = lines[k].rstrip(b"\r\n") * int(rng.choice([2, 500])) + b"\n"
    else:
        return data.replace(b"\n", [b"\r\n", b"\r", b"\n\n"][rng.integers(3)])
    return b"".join(lines)


def nest_brackets(rng: Generator, data: bytes) -> bytes:
    at = _edge(rng, data)
    opened = [b"[", b"{", b"(", b'{"a":', b"{ a = "][rng.integers(5)]
    return data[:at] + opened * int(rng.choice([1, 3000])) + data[at:]


ANY: tuple[Callable[[Generator, bytes], bytes], ...] = (
    flip_bytes, flip_bits, cut_off, delete_span, repeat_span, exchange_spans, overwrite_words,
)  # fmt: skip
TEXT = (replace_number, replace_number, replace_name, insert_space, change_lines, nest_brackets, *ANY[:5])


def mutated(rng: Generator, data: bytes) -> bytes:
    """The file with one to three things wrong."""
    if not data:
        return data
    if data[:2] == b"PK" and rng.random() < 0.5:
        return _in_zip(rng, data)
    if data[:4] == b"glTF" and rng.random() < 0.6:
        return _in_glb(rng, data)
    ways = TEXT if b"\0" not in data else ANY
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        if data:
            data = ways[rng.integers(len(ways))](rng, data)[:LARGEST]
    return data


def _span(rng: Generator, data: bytes) -> tuple[int, int]:
    a = int(rng.integers(0, len(data)))
    return a, min(len(data), a + int(rng.choice([1, 4, 30, 1000])))


def _edge(rng: Generator, data: bytes) -> int:
    """A place in the text, by preference beside a blank or a line's end, where tokenizers differ."""
    edges = [m.start() for m in re.finditer(rb"\s", data[:LONGEST_LOOK])]
    return int(rng.choice(edges)) if edges and rng.random() < 0.7 else int(rng.integers(0, len(data) + 1))


LONGEST_LOOK = 20_000
LARGEST = 8 << 20
"""Bytes of a broken file: repetitions of repetitions are cut off there."""


def _replace(rng: Generator, data: bytes, pattern: bytes, values: tuple[bytes, ...]) -> bytes:
    start = int(rng.integers(0, max(1, len(data) - LONGEST_LOOK))) if rng.random() < 0.5 else 0
    found = list(re.finditer(pattern, data[start : start + LONGEST_LOOK]))
    if not found:
        return flip_bytes(rng, data)
    a, b = (start + end for end in found[rng.integers(len(found))].span())
    return data[:a] + values[rng.integers(len(values))] + data[b:]


def _in_zip(rng: Generator, data: bytes) -> bytes:
    """One member mutated, the archive whole."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        infos = old.infolist()
        chosen = int(rng.integers(len(infos)))
        for k, info in enumerate(infos):
            content = old.read(info)
            new.writestr(info, mutated(rng, content) if k == chosen else content)
    return stream.getvalue()


def _in_glb(rng: Generator, data: bytes) -> bytes:
    """The JSON mutated as text or as a tree, the lengths right."""
    (length,) = struct.unpack_from("<I", data, 12)
    text, rest = data[20 : 20 + length], data[20 + length :]
    text = _in_json(rng, text) if rng.random() < 0.7 else mutated(rng, text)
    text += b" " * (-len(text) % 4)
    return b"glTF" + struct.pack("<IIII", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest


def _in_json(rng: Generator, text: bytes) -> bytes:
    """One value of the tree replaced."""
    tree = json.loads(text)
    node, values = tree, (None, -1, 0, 1, 1e300, 2**31, "", "\x1b[31m", [], {}, True, [0], 5126, 65)
    for _ in range(int(rng.integers(1, 9))):
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = keys[rng.integers(len(keys))]
        if not isinstance(node[key], (dict, list)) or rng.random() < 0.2:
            node[key] = values[rng.integers(len(values))]
            break
        node = node[key]
    return json.dumps(tree).encode()
