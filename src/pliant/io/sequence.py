"""File names of a sequence: ``walk_0001.obj``, ... for frames, ``face_smile.obj``, ... for shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pliant.core.errors import FileError
from pliant.io.naming import unique_name

LONGEST_NAME = 100
MARK = b"pliant"
"""In the first bytes of the files that pliant writes."""


def frame_names(stem: str, count: int) -> list[str]:
    """``stem_0001`` to ``stem_<count>``, without suffix."""
    width = _width(count)
    return [f"{stem}_{k:0{width}d}" for k in range(1, count + 1)]


def shape_names(stem: str, names: Iterable[str]) -> list[str]:
    """A file name without suffix for each shape, none twice (also where capitals do not count)."""
    taken: set[str] = set()
    files = []
    for name in names:
        legal = re.sub(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]', "_", name)[:LONGEST_NAME].strip(" .") or "shape"
        wanted = f"{stem}_{legal}" if stem else legal
        folded = wanted.casefold()
        files.append(wanted + unique_name(folded, taken)[len(folded) :])
    return files


def is_numbered(stems: Iterable[str]) -> bool:
    """Whether names are those of frames: all alike but for a number at the end, or at the start."""
    names = list(stems)
    ends = {re.sub(r"\d+$", "", name) for name in names}
    starts = {re.sub(r"^\d+", "", name) for name in names}
    return any(len(rest) == 1 and not rest & set(names) for rest in (ends, starts))


def stale_frames(folder: Path, stem: str, suffix: str, count: int) -> list[Path]:
    """Frames of an older, longer sequence of this name, and their materials: they would be read as part of the new one.

    Only pliant's own files are returned, for removal. A file of that name by another program is an error.
    """
    numbered = re.compile(re.escape(stem) + r"_(\d{4,})" + re.escape(suffix), re.ASCII)
    stale = []
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = numbered.fullmatch(file.name)
        if match is None or (int(match[1]) <= count and len(match[1]) == _width(count)):
            continue
        if not _is_ours(file):
            problem = f"would be read as part of the {count} frames written beside it, and pliant did not write it"
            raise FileError(file, f"{problem}; move it away or choose another name")
        stale += [file, *(beside for beside in [file.with_suffix(".mtl")] if suffix == ".obj" and _is_ours(beside))]
    return stale


def _width(count: int) -> int:
    return max(4, len(str(count)))


def _is_ours(file: Path) -> bool:
    if not file.is_file() or file.is_symlink():
        return False
    with file.open("rb") as stream:
        return MARK in stream.read(200)
