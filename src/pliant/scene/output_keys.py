"""Where the results of a scene go, said in the same words for every engine: the table [output]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pliant.errors import FileError
from pliant.scene.located_toml import Path, TomlText
from pliant.scene.media import located
from pliant.scene.schema import Key, Record, Text, read_as

OUTPUT = Key(
    Record(
        {
            "file": Key(
                Text("the name of a clip, .glb .usdc .pc2 .npz ..., or of a folder, from the scene's folder"),
                "the clip to write; without one, it is called as the scene is, with .glb",
            ),
            "report": Key(Text("the name of a web page, .html, from the scene's folder"), "a report to write"),
        }
    ),
    "where the results go; -o and --report count instead",
)


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
        """Refuse to write over a file that the scene itself is made of."""
        target = FilePath(name).resolve()
        for path, said in _texts({key: value for key, value in self.text.content.items() if key != "output"}):
            if FilePath(located(self.text, said)).resolve() == target:
                problem = f"is {name}, which the result would be written over; give another name: -o, or [output] file"
                raise self.text.error(problem, path)

    def error(self, key: str, problem: str) -> FileError:
        """An error about one of the names."""
        return self.text.error(problem, ("output", key))


def output_in(text: TomlText) -> Output:
    """What the table [output] of a document says."""
    said: Any = text.content.get("output")
    if said is None:
        return Output(text)
    read = read_as(OUTPUT.kind, text, said, ("output",))
    return Output(text, **{key: None if name is None else located(text, name) for key, name in read.items()})


def _texts(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """All texts in a document, with where they stand."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, (dict, list)):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(entry, (*path, key))
