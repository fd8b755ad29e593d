"""Safe names in text formats and of files, and names of sequences: ``walk_0001.obj``, ..., ``face_smile.obj``, ...

A name comes from another file and may hold anything: line breaks that would end a statement, folders that would lead
out of the output's own, the name of a file that is already there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from pliant.core.errors import FileError
from pliant.core.options import closest
from pliant.core.shapes import Image
from pliant.io.source import Source

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


def unique_names(names: list[str]) -> list[str]:
    """The names with repeated ones numbered: "arm", "arm 2", ..."""
    taken, seen = set(names), set[str]()
    following: dict[str, int] = {}
    result = []
    for name in names:
        fresh = name
        while fresh in seen or (fresh != name and fresh in taken):
            following[name] = following.get(name, 1) + 1
            fresh = f"{name} {following[name]}"
        seen.add(fresh)
        result.append(fresh)
    return result


def chosen_clip(source: Source, names: Sequence[str], clip: str | int | None) -> int:
    """Which of a file's clips is meant: by name, by a part of it that no other has, or by number; the first if None."""
    if isinstance(clip, str) and clip not in names and clip.isascii() and clip.isdigit():
        clip = int(clip)
    if isinstance(clip, str):
        # "Walk" for "Armature|TRex_Walk"; "Gallop" for "Armature|Gallop" beside "Armature|Gallop_Jump"
        alike = [name for name in names if clip.lower() in name.lower()]
        exact = [name for name in alike if name.rpartition("|")[2].lower() == clip.lower()]
        for some in (alike, exact):
            if clip not in names and len(some) == 1:
                clip = some[0]
        if clip not in names:
            last = [name.rpartition("|")[2] for name in names]
            known = last if len(set(last)) == len(names) else list(names)
            raise source.error(f'has no clip "{clip}"; {closest(clip, known)}', argument="clip")
        return names.index(clip)
    number = 0 if clip is None else clip
    if not 0 <= number < len(names):
        raise source.error(f"has no clip {number}; there are {len(names)}, from 0: {', '.join(names)}", argument="clip")
    return number


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
