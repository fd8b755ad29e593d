"""Where the results of a scene go, and that they do not go over what it is made of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pliant.app.scene.located_toml import TomlText
from pliant.app.scene.media import from_folder, from_scene
from pliant.app.scene.paths import file_names, files_named
from pliant.app.scene.schema import OUTPUT, read_as
from pliant.core.errors import FileError
from pliant.io import BY_SUFFIX
from pliant.io.naming import file_stem

ADVICE = "give another name: -o, or [output] file"
TEXTURES = r"_textures/.+"
WRITTEN_BESIDE = {
    ".obj": rf"(_\d+)?(\.mtl|{TEXTURES})",
    ".gltf": r"\.bin",
    **dict.fromkeys((".usd", ".usda", ".usdc"), TEXTURES),
}
"""What is written beside a clip, after its name, by the clip's suffix."""


@dataclass(frozen=True)
class Output:
    """Names of what is to be written; None for what a scene does not say."""

    text: TomlText
    file: str | None = None
    report: str | None = None

    @property
    def beside(self) -> str:
        """The name of a clip beside the scene, called as it is."""
        source = self.text.source
        if source.member:
            raise source.error("is in an archive, beside which nothing is written; give -o OUT")
        return str(source.path.with_suffix(".glb"))

    def check_not_read(self, name: str) -> None:
        """Refuse to write over a file that the scene itself is made of, or to where it would be read as a part of it.

        name: of the clip, or of a folder for its frames.
        """
        target = Path(name).resolve()
        folder = self.text.source.path.parent.resolve()
        for path, reference in file_names(self.text.content, folder):
            for file in files_named(reference, folder):
                if replaces(target, file.resolve()):
                    problem = f"is {_described(reference, file)}, which the result would be written over; {ADVICE}"
                    raise self.text.error(problem, path)
                if target == file.resolve().parent:
                    problem = (
                        f"is {_described(reference, file)}, which is in {name}, where the frames would go; {ADVICE}"
                    )
                    raise self.text.error(problem, path)
            if joins(target, from_folder(folder, reference)):
                problem = f"is {reference}, which would take in the result, {name}, when it is read again; {ADVICE}"
                raise self.text.error(problem, path)

    @contextmanager
    def about(self, key: Literal["file", "report"]) -> Iterator[None]:
        """Errors of checking one of the names that the scene says are at its key."""
        try:
            yield
        except FileError as error:
            if getattr(self, key) is None:
                raise
            raise self.text.error(error.problem, ("output", key)) from None


def output_in(text: TomlText) -> Output:
    """What the table [output] of a document says."""
    table: Any = text.content.get("output")
    if table is None:
        return Output(text)
    read = read_as(OUTPUT.kind, text, table, ("output",))
    return Output(text, **{key: None if name is None else from_scene(text, name) for key, name in read.items()})


def _described(reference: str, file: Path) -> str:
    return reference if Path(reference).name == file.name else f"{reference}, among it {file.name}"


def replaces(target: Path, file: Path) -> bool:
    """Whether writing a clip, or the frames of one into a folder, may take the place of a file."""
    clip = target if target.suffix else target / "frame.obj"
    suffix = clip.suffix.lower()
    names = [
        rf"(_\d+)?{re.escape(suffix)}" if _is_in_frames(clip) else re.escape(suffix),
        WRITTEN_BESIDE.get(suffix, ""),
    ]
    own = f"({re.escape(clip.stem)}|{re.escape(file_stem(clip.name))})({'|'.join(filter(None, names))})"
    if file == target:
        return True
    if not file.is_relative_to(clip.parent):
        return False
    return re.fullmatch(own, file.relative_to(clip.parent).as_posix(), re.IGNORECASE) is not None


def joins(target: Path, name: str) -> bool:
    """Whether a clip that is written would be one of the files that a folder or a glob stands for."""
    first = target if target.suffix else target / "frame_0001.obj"
    if _is_in_frames(target):
        first = target.with_stem(f"{target.stem}_0001")
    if os.path.isdir(name):
        return Path(name).resolve() == first.parent and first.suffix.lower() in BY_SUFFIX
    pattern, path = os.path.normpath(name), str(first)
    return fnmatchcase(path, pattern) and ("**" in pattern or path.count(os.sep) == pattern.count(os.sep))


def _is_in_frames(target: Path) -> bool:
    """Whether each frame is a file of its own, called as the clip and numbered."""
    format = BY_SUFFIX.get(target.suffix.lower())
    return format is not None and "animation" not in format.writes
