"""Opening USD files safely: the library on demand, a silent terminal, files inside archives, damaged files refused.

USD's binary reader trusts the file: a damaged one can stop the whole program or ask for all memory, and so can a few
lines of text that refer to each other. So a file that is binary or refers to anything is first read by a separate
process (a quarter of a second) with bounded memory and time; see `pliant.io.usd.trial_read`. Only a file that survives
is opened here.

A stage may refer to any file of the machine. One whose layers lie outside its own folder is refused; `within` tells
that of other files too. Links are followed first, so that none leads out.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import struct
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from pliant.core.errors import FileError, MissingExtraError, PliantWarning
from pliant.io.apart import one_line, run_apart
from pliant.io.sandbox import readable, regular
from pliant.io.source import Source
from pliant.io.usd.trial_read import USD_ALLOWANCE

TEXTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".exr", ".tif", ".tiff", ".bmp", ".gif", ".tga", ".hdr")
LAYERS = (".usd", ".usda", ".usdc", ".usdz")
REFERENCES = (b"@", b"references", b"payload", b"inherits", b"specializes", b"clip")
"""What text has in it that refers to other files, however it spells their names, or to other prims."""
SECTION = struct.Struct("<16sqq")
DEEPEST_BRACKETS = 400
STEPS = bytes.maketrans(b"([{)]}", b"\x01\x01\x01\xff\xff\xff")
"""Brackets as steps up or down, read as int8."""
NO_BRACKETS = bytes(letter for letter in range(256) if letter not in b"([{)]}")

_silence = threading.RLock()
_survived: set[tuple[str, int, int]] = set()


def library(name: str) -> Any:
    """A module of the USD library, such as "UsdGeom"."""
    try:
        return importlib.import_module(f"pxr.{name}")
    except ImportError as error:
        raise MissingExtraError("reading and writing USD", "usd") from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what USD prints from C++ off the terminal; pliant's own warnings follow at the end.

    It holds for the whole process, so it lets in one thread at a time.
    """
    with _silence:
        with warnings.catch_warnings(record=True) as ours, _muted():
            warnings.simplefilter("always", PliantWarning)
            yield
        for warning in ours:
            warnings.warn(warning.message, stacklevel=4)


@contextlib.contextmanager
def _muted() -> Iterator[None]:
    """Standard error goes nowhere, both Python's and the one C++ writes to."""
    with tempfile.TemporaryFile() as nowhere, contextlib.redirect_stderr(io.StringIO()):
        try:
            terminal = os.dup(2)
        except OSError:  # a process without standard error
            yield
            return
        try:
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


@contextlib.contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The stage of a file or of an archive's member; whatever USD objects to is a `FileError`."""
    Usd = library("Usd")
    with _on_disk(source) as path:
        _check_bytes(source, path)
        with _reading(source):
            stage = Usd.Stage.Open(str(path))
            _check_layers(source, stage)
            _note_missing_layers(source, stage)
            yield stage
            _check_layers(source, stage)  # value clips are opened on access


@contextlib.contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Silence, but for a `FileError` about whatever USD objects to."""
    Tf = library("Tf")
    with quiet():
        try:
            yield
        except FileError:
            raise
        except Tf.ErrorException as error:
            raise source.error(f"USD cannot read it ({complaint(error)})") from error
        except UnicodeDecodeError as error:
            raise source.error("holds names that are not UTF-8 text; the file is damaged") from error


def within(stage: Any, path: str) -> bool:
    """Whether a file, or the package that holds it, lies in the folder of the stage's own file or below."""
    return _is_below(Path(stage.GetRootLayer().realPath).parent, _outer(path))


def _outer(path: str) -> Path:
    """A file, or the package that holds it."""
    return Path(library("Ar").SplitPackageRelativePathOuter(path)[0])


def _is_below(folder: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def siblings(source: Source) -> list[Source]:
    """The layers and pictures in the file's folder or below that its stage is made of."""
    if source.member:  # they are in the same archive
        return []
    _check_bytes(source, source.path)
    Sdf, UsdUtils = library("Sdf"), library("UsdUtils")
    with _reading(source):
        layers, assets, _ = UsdUtils.ComputeAllDependencies(Sdf.AssetPath(str(source.path)))
        paths = [_outer(path) for path in (*(str(layer.realPath) for layer in layers), *map(str, assets))]
    own = source.path.resolve()
    return [Source(path) for path in dict.fromkeys(paths) if path.resolve() != own and _is_below(own.parent, path)]


def size_of(stage: Any) -> int:
    """Bytes of all files that a stage is made of."""
    files = {_outer(str(layer.realPath)) for layer in stage.GetUsedLayers() if layer.realPath}
    return sum(file.stat().st_size for file in files if file.is_file())


def _check_layers(source: Source, stage: Any) -> None:
    own = stage.GetRootLayer().realPath
    for layer in stage.GetUsedLayers(includeClipLayers=True):
        path = str(layer.realPath)
        if not layer.anonymous and path != own and not path.startswith(f"{own}[") and not within(stage, path):
            raise source.error(f'refers to "{one_line(path)}"; expected files in its own folder or below')


def complaint(error: Any) -> str:
    """The first of USD's error messages, without the C++ source locations."""
    try:
        comments = [str(part.commentary) for part in error.args if getattr(part, "commentary", "")]
        return one_line(comments[0] if comments else error)
    except UnicodeDecodeError:  # it quotes the damaged bytes
        return "the file is damaged"


def _note_missing_layers(source: Source, stage: Any) -> None:
    complaints = stage.GetCompositionErrors() if hasattr(stage, "GetCompositionErrors") else []
    if complaints:
        more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
        text = f"{source.label}: parts are missing: {one_line(complaints[0])}{more}"
        warnings.warn(text, PliantWarning, stacklevel=4)


@contextlib.contextmanager
def _on_disk(source: Source) -> Iterator[Path]:
    """The file itself; an archive's member is unpacked for as long as it is needed, with its layers and pictures."""
    if not source.member:
        yield source.path
        return
    with tempfile.TemporaryDirectory(prefix="pliant-usd-") as folder:
        members = source._members or {}
        for name in members:
            relative = PurePosixPath(name)
            if name != source.member and relative.suffix.lower() not in (*TEXTURE_SUFFIXES, *LAYERS):
                continue
            if relative.is_absolute() or ".." in relative.parts:
                continue
            target = Path(folder, *relative.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(members[name])
        path = Path(folder, *PurePosixPath(source.member).parts)
        if not path.is_file():
            raise source.error("has a name that leads out of its archive")
        yield path


def _check_bytes(source: Source, path: Path) -> None:
    """Whether the first bytes are what the suffix says, and whether USD survives the rest."""
    with readable(source.path), regular(path).open("rb") as stream:
        head = stream.read(8)
        if not head:
            raise source.error("is empty")
        binary, package = head == b"PXR-USDC", head[:2] == b"PK"
        text = head.lstrip(b"\xef\xbb\xbf").startswith(b"#usda")
        fits = {".usda": text, ".usdc": binary, ".usdz": package, ".usd": text or binary or package}
        if not fits[source.suffix]:
            expected = {".usda": '"#usda"', ".usdc": '"PXR-USDC"', ".usdz": "a zip archive"}
            raise source.error(
                f"does not start with {expected.get(source.suffix, 'any mark of USD')}", location="byte 0"
            )
        if binary:
            _check_sections(source, stream)
        refers = _check_nesting(source, stream) if text else True
    if package and not zipfile.is_zipfile(path):
        raise source.error("is not a whole zip archive; the file is cut off or damaged")
    if refers:
        _try_apart(source, path)


def _check_sections(source: Source, stream: IO[bytes]) -> None:
    """A binary file's table of contents, which is its end, must lie in the file, and so must what it lists."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(16)
    (start,) = struct.unpack("<q", stream.read(8).ljust(8, b"\0"))
    problem = "is cut off or damaged; its table of contents does not fit the file"
    if not 88 <= start <= size - 8:
        raise source.error(f"{problem} of {size:,} bytes", location="byte 16")
    stream.seek(start)
    (count,) = struct.unpack("<Q", stream.read(8))
    if count > (size - start - 8) // SECTION.size:
        raise source.error(f"{problem} of {size:,} bytes", location=f"byte {start}")
    for _ in range(count):
        name, begin, length = SECTION.unpack(stream.read(SECTION.size))
        if not (0 <= begin <= size and 0 <= length <= size - begin):
            section = name.rstrip(b"\0").decode("ascii", "replace")
            raise source.error(f"{problem}; the section {section!r:.20} reaches beyond it", location=f"byte {start}")


def _check_nesting(source: Source, stream: IO[bytes]) -> bool:
    """Refuse text nested so deeply that USD's parser would overflow; tell whether it refers to other files or prims."""
    stream.seek(0)
    depth, lowest, refers, tail = 0, 0, False, b""
    while chunk := stream.read(1 << 24):
        refers = refers or any(word in tail + chunk for word in REFERENCES)
        steps = np.frombuffer(chunk.translate(STEPS, NO_BRACKETS), dtype=np.int8)
        levels = depth + np.cumsum(steps, dtype=np.int64)
        floor = np.minimum.accumulate(np.minimum(levels, lowest))  # stray closing brackets, in comments, hide nothing
        if (levels - floor).max(initial=0) > DEEPEST_BRACKETS:
            raise source.error(f"has brackets nested more than {DEEPEST_BRACKETS} deep; expected a USD stage")
        if len(levels):
            depth, lowest = int(levels[-1]), int(floor[-1])
        tail = chunk[-max(map(len, REFERENCES)) :]
    return refers


def _try_apart(source: Source, path: Path) -> None:
    """Let another process read everything first; refuse the file if that process does not come back well."""
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    if key in _survived:
        return
    run_apart(
        source,
        Path(__file__).with_name("trial_read.py"),
        str(path),
        library="USD",
        seconds=3 * USD_ALLOWANCE.seconds(status.st_size),  # on a busy machine
        environment={"PXR_WORK_THREAD_LIMIT": "1", "MALLOC_ARENA_MAX": "2"},  # each takes memory
    )
    _survived.add(key)
