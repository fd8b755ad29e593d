"""Files: one module for each format, and functions that read and write by suffix.

A format module offers ``read_<kind>(source, ...)`` and ``write_<kind>(path, content)`` for the kinds that its entry in
`FORMATS` names. Readers take a `Source`, raise `FileError`, and check every count against the bytes that are there.
Writers write to the path they are given, and beside it; `write` stages and renames.
"""

from pliant.io.formats import (
    BY_SUFFIX as BY_SUFFIX,
    FORMATS,
    KIND_NAMES as KIND_NAMES,
    KIND_OF as KIND_OF,
    Content,
    ContentKind,
    ContentKind as Kind,
    format_of as format_of,
    kinds_in,
    siblings_of as siblings_of,
)
from pliant.io.reading import (
    convertible_kind,
    read,
    read_animation,
    read_mesh,
    read_motion,
    read_points,
    read_shapes,
    read_skeleton,
    read_tets,
)
from pliant.io.sandbox import readable
from pliant.io.source import find
from pliant.io.weights import read_weights, write_weights
from pliant.io.writing import write, write_clip as write_clip, write_frames as write_frames, write_stream

__all__ = [
    "FORMATS",
    "Content",
    "ContentKind",
    "Kind",
    "convertible_kind",
    "find",
    "kinds_in",
    "read",
    "read_animation",
    "read_mesh",
    "read_motion",
    "read_points",
    "read_shapes",
    "read_skeleton",
    "read_tets",
    "read_weights",
    "readable",
    "write",
    "write_stream",
    "write_weights",
]
