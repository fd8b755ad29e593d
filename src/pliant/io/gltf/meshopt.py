"""EXT_meshopt_compression: buffer views that are packed, as gltfpack writes them.

Three bitstreams (attributes, triangles, indices; the kernels are in meshopt.cpp), and filters that stored numbers
went through before they were packed:

    octahedral   unit vectors (x, y) on an octahedron that is folded flat: z = 1 - |x| - |y|
    quaternion   the three smaller components, scaled by √2; the fourth follows from the length
    exponential  mantissas of 24 bits and exponents of 8: m · 2^e
    colour       luma and two differences (YCoCg); the highest bit of the opacity says how many bits they have
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.io.gltf.checked_json import Entry
from pliant.io.scan import Bytes
from pliant.native import kernels

MESHOPT = ("EXT_meshopt_compression", "KHR_meshopt_compression")
GROUP_OF_NOTHING = 256
"""Bytes of vertices that one packed bit can stand for, at most."""


def unpacked(entry: Entry, packed: memoryview) -> Bytes:
    """The bytes of a buffer view, from its extension's entry and the packed bytes."""
    count, stride = entry.whole("count", least=1), entry.whole("byteStride", least=1)
    mode, data = entry.text("mode"), np.frombuffer(packed, np.uint8)
    if count * stride > GROUP_OF_NOTHING * max(len(data), 64):
        raise entry.error(f"claims {count * stride:,} bytes in {len(data):,} packed ones")
    if mode == "ATTRIBUTES":
        result = np.empty((count, stride), np.uint8)
        good = kernels.meshopt_attributes(data, result)
    elif mode in ("TRIANGLES", "INDICES") and stride in (2, 4) and (mode == "INDICES" or count % 3 == 0):
        indices = np.empty((count // 3, 3) if mode == "TRIANGLES" else (count,), np.uint32)
        decode = kernels.meshopt_triangles if mode == "TRIANGLES" else kernels.meshopt_indices
        good = decode(data, indices)
        result = indices.astype("<u2" if stride == 2 else "<u4").reshape(count, -1).view(np.uint8)
    else:
        raise entry.error(f'has mode "{mode}" with a stride of {stride}; expected ATTRIBUTES, TRIANGLES or INDICES')
    if not good:
        raise entry.error("its packed bytes are broken, or of a later version")
    return np.ascontiguousarray(_filtered(entry, entry.text("filter") or "NONE", result)).reshape(-1)


def _filtered(entry: Entry, name: str, rows: Bytes) -> Bytes:
    """(count, stride) bytes after a filter."""
    stride = rows.shape[1]
    if name == "NONE":
        return rows
    if name == "OCTAHEDRAL" and stride in (4, 8):
        return _unfolded(rows.view("<i1" if stride == 4 else "<i2")).view(np.uint8)
    if name == "QUATERNION" and stride == 8:
        return _quaternions(rows.view("<i2")).view(np.uint8)
    if name == "COLOR" and stride in (4, 8):
        return _colors(rows.view("u1" if stride == 4 else "<u2")).view(np.uint8)
    if name == "EXPONENTIAL" and stride % 4 == 0:
        stored = rows.view("<i4")
        with np.errstate(over="ignore"):
            return np.ldexp((stored << 8 >> 8).astype(np.float32), stored >> 24).astype("<f4").view(np.uint8)
    raise entry.error(f'has filter "{name}" with a stride of {stride}')


def _rounded(values: NDArray[np.float32], kind: np.dtype[np.generic]) -> NDArray[np.generic]:
    return np.trunc(values + np.copysign(np.float32(0.5), values)).astype(kind)


def _unfolded(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    """Unit vectors (count, 4) whose third number is 1, in the same units; the fourth is left as it is."""
    largest = np.float32(np.iinfo(rows.dtype.str).max)
    x, y, one = (rows[:, k].astype(np.float32) for k in range(3))
    z = one - np.abs(x) - np.abs(y)
    fold = np.minimum(z, 0)
    x, y = x + np.where(x >= 0, fold, -fold), y + np.where(y >= 0, fold, -fold)
    length = np.sqrt(x * x + y * y + z * z)
    scale = largest / np.where(length > 0, length, 1)
    result = rows.copy()
    for k, values in enumerate((x, y, z)):
        result[:, k] = _rounded(values * scale, rows.dtype)
    return result


def _quaternions(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    """(count, 4) from three components and, in the fourth number, the scale and which component is left out."""
    last = rows[:, 3].astype(np.int64)
    scale = np.float32(2**-0.5) / (last | 3).astype(np.float32)
    three = rows[:, :3].astype(np.float32) * scale[:, None]
    w = np.sqrt(np.maximum(1 - (three * three).sum(axis=1), 0))
    result = rows.copy()
    left_out, each = last & 3, np.arange(len(rows))
    for k, values in enumerate((three[:, 0], three[:, 1], three[:, 2], w)):
        result[each, (left_out + 1 + k) % 4] = _rounded(values * np.float32(32767), rows.dtype)
    return result


def _colors(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    """(count, 4) red, green, blue and opacity, in the whole range of their type."""
    bits = 8 * rows.dtype.itemsize
    y, alpha = (rows[:, k].astype(np.int64) for k in (0, 3))
    orange, green = (rows[:, k].view(f"<i{rows.dtype.itemsize}").astype(np.int64) for k in (1, 2))
    largest = alpha.copy()
    for shift in (1, 2, 4, 8)[: bits.bit_length() - 1]:
        largest |= largest >> shift
    opacity = (alpha << 1 & largest) | (alpha & 1)
    scale = np.float32((1 << bits) - 1) / np.maximum(largest, 1).astype(np.float32)
    mixed = (y + orange - green, y + green, y - orange - green, opacity)
    return np.stack([np.trunc(values * scale + np.float32(0.5)).astype(rows.dtype) for values in mixed], axis=1)
