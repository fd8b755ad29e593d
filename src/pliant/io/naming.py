"""Safe names: on one line in text formats, and without path separators as file names of textures.

A name comes from another file and may hold anything: line breaks that would end a statement, folders that would lead
out of the output's own, the name of a file that is already there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from pliant.core.shapes import Image

PICTURE_MARKS = (
    (b"\x89PNG", "image/png", ".png"),
    (b"\xff\xd8\xff", "image/jpeg", ".jpg"),
    (b"RIFF", "image/webp", ".webp"),
    (b"\x76\x2f\x31\x01", "image/x-exr", ".exr"),
    (b"GIF8", "image/gif", ".gif"),
    (b"BM", "image/bmp", ".bmp"),
    (b"II*\0", "image/tiff", ".tif"),
    (b"MM\0*", "image/tiff", ".tif"),
)
"""How picture files begin, their media type, and the suffix they are written with."""
_UNMARKED = (".tga", ".hdr", ".dds", ".ktx", ".ktx2", ".psd")
"""Suffixes of pictures that begin in other ways, which are kept."""


def unique_name(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if it is taken; it is taken from now on."""
    unique, free = name, 1
    if name in taken:
        while f"{name}_{free}" in taken:
            free *= 2
        used = free // 2
        while free - used > 1:  # halving: many names may be alike
            middle = (used + free) // 2
            used, free = (middle, free) if f"{name}_{middle}" in taken else (used, middle)
        unique = f"{name}_{free}"
    taken.add(unique)
    return unique


def one_line(name: str) -> str:
    """The name without line breaks, other control characters, blanks around it, and halves of characters."""
    encodable = name.encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", encodable).strip()


def written_names(names: Iterable[str], clean: Callable[[str], str] = one_line) -> dict[str, str]:
    """How each name is written: as it is if `clean` leaves it so, else cleaned; no two alike."""
    given = list(dict.fromkeys(names))
    fine = {name for name in given if clean(name) == name}
    taken = set(fine)
    return {name: name if name in fine else unique_name(clean(name) or "unnamed", taken) for name in given}


def file_stem(name: str) -> str:
    """A file's stem made of letters, digits, dashes and underscores only."""
    stem = PurePosixPath(name.replace("\\", "/")).stem
    return re.sub(r"[^\w-]", "_", stem, flags=re.ASCII)[:80].lstrip("-") or "texture"


def picture_name(image: Image, taken: set[str]) -> str:
    """A file name for a picture: its own stem, and the suffix that its bytes call for.

    Numbered if a name in `taken` differs at most in upper and lower case, as some file systems know no such difference.
    """
    own = PurePosixPath(image.name.replace("\\", "/")).suffix.lower()
    fallback = own if own in _UNMARKED else ".image"
    suffix = next((end for mark, _, end in PICTURE_MARKS if image.data.startswith(mark)), fallback)
    stem = file_stem(image.name)
    number = unique_name(stem.lower(), taken)[len(stem) :]
    return f"{stem}{number}{suffix}"
