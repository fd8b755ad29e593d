"""Arrays in a zip, each as an .npy member: written with fixed dates, so that equal content gives equal bytes.

Reading believes no count: a member's size must be what its .npy header says, and all together must stay below the
limits of `pliant.io.archive.check_unpacked`, before anything is allocated.
"""

from __future__ import annotations

import lzma
import os
import struct
import sys
import tokenize
import warnings
import zipfile
import zlib
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pliant.core.errors import FileError
from pliant.core.values import stack_frames
from pliant.io.archive import check_unpacked
from pliant.io.source import LARGEST_UNPACKED, Source

LARGEST_HEADER = 10_000
LARGEST_BLOCK = 1 << 18
"""Bytes that are written in one go."""
SAMPLED_BLOCKS, SAMPLED_BYTES = 6, 1 << 14
WORTHWHILE = 0.8
"""Size of the samples of an array, compressed, below which it is compressed."""
EARLIEST = (1980, 1, 1, 0, 0, 0)
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,  # encrypted, or a compression this Python lacks (NotImplementedError)
    OSError,
    ValueError,
    OverflowError,
    struct.error,
    IndexError,
    TypeError,
    SyntaxError,
    tokenize.TokenError,
    MemoryError,
)


def read_arrays(source: Source) -> dict[str, NDArray[Any]]:
    """All arrays of an NPZ file, by key."""
    location = "archive"
    arrays = {}
    try:
        with source.open() as file:
            if file.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
                raise source.error("is not a zip archive; expected an NPZ file", location="byte 0")
            archive = zipfile.ZipFile(file)
            members = [item for item in archive.infolist() if not item.is_dir()]
            check_unpacked(
                source.label, sum(item.file_size for item in members), file.seek(0, os.SEEK_END), LARGEST_UNPACKED
            )
            for item in members:
                location = f"{item.filename:.80}"
                with archive.open(item) as stream:
                    arrays[item.filename.removesuffix(".npy")] = _read_array(source, stream, item)
    except FileError:
        raise
    except BROKEN as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise source.error(f"is damaged or not an NPZ file ({reason:.120})", location=location) from error
    return arrays


def _read_array(source: Source, stream: IO[bytes], item: zipfile.ZipInfo) -> NDArray[Any]:
    location = f"{item.filename:.80}"
    version = npy.read_magic(stream)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise source.error(f"is .npy version {version}; expected 1, 2 or 3", location=location)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's remark that an old header was slow to parse
        shape, by_columns, dtype = header(stream, max_header_size=LARGEST_HEADER)
    if dtype.hasobject:
        raise source.error("holds Python objects; expected numbers or text", location=location)
    if not dtype.itemsize:
        raise source.error(f"holds items of type {dtype} without a size", location=location)
    start = stream.tell()
    claimed = prod(shape) * dtype.itemsize
    if any(extent < 0 for extent in shape) or item.file_size - start != claimed:
        raise source.error(f"claims {shape} of {dtype}; {item.file_size - start:,} bytes are there", location=location)
    if len(shape) == 3 and dtype == np.float64 and not by_columns and claimed:
        return stack_frames(_row(source, stream, shape[1:], location) for _ in range(shape[0]))
    data = stream.read()
    if len(data) != claimed:
        raise source.error(f"holds {len(data):,} bytes; expected {claimed:,}", location=location)
    flat = np.frombuffer(data, dtype=dtype) if claimed else np.zeros(prod(shape), dtype=dtype)
    if dtype.kind == "U" and (flat.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder)) > sys.maxunicode).any():
        raise source.error(
            "holds letters that are none; the text is damaged", location=location
        )  # Python would take them
    return flat.reshape(shape, order="F" if by_columns else "C")


def _row(source: Source, stream: IO[bytes], shape: tuple[int, ...], location: str) -> NDArray[np.float64]:
    """The next numbers of an array."""
    data = stream.read(8 * prod(shape))
    if len(data) != 8 * prod(shape):
        raise source.error(f"holds {len(data):,} bytes of {8 * prod(shape):,} in a row", location=location)
    return np.frombuffer(data).reshape(shape)


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Arrays as members of a zip, compressed where that helps, in their order and without the time of writing."""
    with zipfile.ZipFile(path, "w") as archive:
        for key, values in arrays.items():
            entry = zipfile.ZipInfo(f"{key}.npy", EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED if _is_compressible(values) else zipfile.ZIP_STORED
            entry.external_attr = 0o644 << 16
            with archive.open(entry, "w", force_zip64=values.nbytes > 1 << 30) as stream:
                _write_array(stream, values)


def _is_compressible(values: NDArray[Any]) -> bool:
    """By samples of a long array. Points that move differ in all but a few bits, and hardly shrink in a long time."""
    if values.nbytes <= SAMPLED_BLOCKS * SAMPLED_BYTES or not values.flags.c_contiguous:
        return True
    flat, count = values.reshape(-1), SAMPLED_BYTES // values.itemsize
    firsts = np.linspace(0, flat.size - count, SAMPLED_BLOCKS + 2)[1:-1].astype(int)  # not the ends: shapes as given
    packed = sum(len(zlib.compress(flat[k : k + count].tobytes())) for k in firsts)
    return packed < WORTHWHILE * SAMPLED_BLOCKS * SAMPLED_BYTES


def _write_array(stream: IO[bytes], values: NDArray[Any]) -> None:
    """As NumPy does, which takes 16 MB at a time; a long array by its rows."""
    if values.ndim < 2 or values.nbytes <= LARGEST_BLOCK or not values.flags.c_contiguous:
        npy.write_array(stream, np.asarray(values, order="C"), allow_pickle=False)
        return
    npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(values))
    rows = max(1, LARGEST_BLOCK // values[0].nbytes)
    for first in range(0, len(values), rows):
        stream.write(values[first : first + rows].tobytes())
