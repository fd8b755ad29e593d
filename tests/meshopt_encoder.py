"""An encoder of EXT_meshopt_compression, plain and slow, for tests of the decoder: every kind of code is used."""

from __future__ import annotations

import numpy as np

WIDTHS = {0: [(0, 2, 4, 8)], 1: [(0, 1, 2, 4), (1, 2, 4, 8)]}


def number(v: int) -> bytes:
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def zigzag(d: int, bits: int) -> int:
    d = (d + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return (d << 1 ^ d >> (bits - 1)) & ((1 << bits) - 1)


def group(values: list[int], bits: int) -> bytes:
    """Sixteen bytes in so many bits each, then those that do not fit."""
    if bits in (0, 8):
        return bytes(values) if bits else b""
    escape, packed, late = (1 << bits) - 1, bytearray(16 * bits // 8), b""
    for k, value in enumerate(values):
        code = min(value, escape)
        late += bytes([value]) if code == escape else b""
        slot = k % (8 // bits)
        packed[k // (8 // bits)] |= code << (slot if bits == 1 else 8 - bits * (slot + 1))
    return bytes(packed) + late


def byte_stream(values: list[int], widths: tuple[int, ...]) -> bytes:
    values = values + [0] * (-len(values) % 16)
    groups = [values[k : k + 16] for k in range(0, len(values), 16)]
    fitting = [[mode for mode, bits in enumerate(widths) if bits or not any(some)] for some in groups]
    chosen = [
        min(modes, key=lambda mode, g=g: len(group(g, widths[mode]))) for g, modes in zip(groups, fitting, strict=True)
    ]
    header = bytearray((len(groups) + 3) // 4)
    for k, mode in enumerate(chosen):
        header[k // 4] |= mode << k % 4 * 2
    return bytes(header) + b"".join(group(g, widths[mode]) for g, mode in zip(groups, chosen, strict=True))


def attributes(vertices: np.ndarray, version: int, channels: list[int]) -> bytes:
    """vertices: (count, stride) bytes; channels: for every four bytes, how differences are taken (0 in version 0)."""
    count, stride = vertices.shape
    most = min(8192 // stride & ~15, 256)
    last, out = vertices[0].copy(), b""
    for first in range(0, count, most):
        block = vertices[first : first + most]
        differences = np.zeros((len(block), stride), np.uint8)
        for i, row in enumerate(block):
            for k in range(0, stride, 4):
                differences[i, k : k + 4] = np.frombuffer(_difference(row, last, k, channels[k // 4]), np.uint8)
            last = row
        control, body = bytearray(stride // 4), b""
        for k in range(stride):
            values = differences[:, k].tolist()
            ways = [byte_stream(values, widths) for widths in WIDTHS[version]]
            how = 0 if version == 0 else k % 4  # every way is used
            if how == 2 and any(values):
                how = 3
            if how == 0 and version and any(byte > 15 for byte in values):
                how = 1
            control[k // 4] |= how << 2 * (k % 4)
            body += ways[how] if how < 2 else bytes(values) if how == 3 else b""
        out += (bytes(control) if version else b"") + body
    extra = bytes(channels) if version else b""
    tail = vertices[0].tobytes() + extra
    return bytes([0xA0 | version]) + out + bytes(max((24 if version else 32) - len(tail), 0)) + tail


def _difference(row: np.ndarray, last: np.ndarray, k: int, channel: int) -> bytes:
    a, b = row[k : k + 4].tobytes(), last[k : k + 4].tobytes()
    if channel & 3 == 0:
        return bytes(zigzag(x - y, 8) for x, y in zip(a, b, strict=True))
    if channel & 3 == 1:
        pairs = zip(np.frombuffer(a, "<u2").tolist(), np.frombuffer(b, "<u2").tolist(), strict=True)
        return b"".join(zigzag(x - y, 16).to_bytes(2, "little") for x, y in pairs)
    v, rotation = int.from_bytes(a, "little") ^ int.from_bytes(b, "little"), channel >> 4
    return ((v << rotation | v >> (32 - rotation)) & 0xFFFFFFFF).to_bytes(4, "little")


def indices(sequence: list[int]) -> bytes:
    last, out = [0, 0], b""
    for index in sequence:
        which = int(abs(index - last[1]) < abs(index - last[0]))
        out += number(zigzag(index - last[which], 32) << 1 | which)
        last[which] = index
    return b"\xd1" + out + bytes(4)


def triangles(faces: list[tuple[int, int, int]]) -> tuple[bytes, list[tuple[int, int, int]]]:
    """The code, and the triangles as it rotates them."""
    edges, recent, next_, last = [], [], 0, 0
    codes, late, rotated = b"", b"", []
    for face in faces:
        turns = [face[k:] + face[:k] for k in range(3)]
        known = [(edges[-16:][::-1].index(t[:2]), t) for t in turns if t[:2] in edges[-16:]]
        known = [(e, t) for e, t in known if e < 15]
        if known:
            edge, (a, b, c) = known[0]
            third = recent[-16:][::-1].index(c) if c in recent[-16:] else 99
            if c == next_:
                codes, next_, recent = codes + bytes([edge << 4]), next_ + 1, [*recent, c]
            elif 0 < third < 13:
                codes += bytes([edge << 4 | third])
            elif c - last in (-1, 1):
                codes, recent = codes + bytes([edge << 4 | (13 if c < last else 14)]), [*recent, c]
                last = c
            else:
                codes, late, recent = codes + bytes([edge << 4 | 15]), late + number(zigzag(c - last, 32)), [*recent, c]
                last = c
            edges += [(c, b), (a, c)]
        else:
            a, b, c = face
            first = 0 if a == next_ else 15
            next_ += first == 0
            second = 0 if b == next_ else 15
            next_ += second == 0
            third = 0 if c == next_ else 15
            next_ += third == 0
            codes += b"\xfe" if first == 0 else b"\xff"
            late += bytes([second << 4 | third])
            for vertex, kind in ((a, first), (b, second), (c, third)):
                if kind == 15:
                    late, last = late + number(zigzag(vertex - last, 32)), vertex
            recent += [a, b, c]
            edges += [(b, a), (c, b), (a, c)]
        rotated.append((a, b, c))
    return b"\xe1" + codes + late + bytes(16), rotated
