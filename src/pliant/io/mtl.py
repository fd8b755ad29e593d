"""MTL, the materials of OBJ files: blocks of statements, each begun by ``newmtl name``.

pliant knows ``Kd r g b`` (colour), ``d`` and ``Tr`` (opacity, and one minus it) and ``map_Kd [-options] picture``. All
statements are kept as ``native["obj"]`` and given back; those four are written anew where the appearance says something
else by then. A map_Kd whose picture was read is kept without the picture's name, since pictures are written to a folder
of their own; one whose picture is missing keeps it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from pliant.core.errors import FileError
from pliant.core.shapes import Appearance, Image
from pliant.io.naming import file_stem, one_line, picture_name
from pliant.io.source import Source, text_of

_MAP_OPTIONS = re.compile(
    r"(?:-(?:(?:imfchan|type)\s+\w+|\w+(?:\s+(?:on|off|[-+]?[.\d]+(?:[eE][-+]?\d+)?)(?=\s|$))+)(?:\s+|$))*"
)
_COLOR, _OPACITY, _MAP = ("Kd",), ("d", "Tr"), ("map_Kd",)


def split_statement(line: str) -> tuple[str, str]:
    """A line's keyword, and what follows it after a blank (as `pliant.io.scan` has them)."""
    keyword, *rest = re.split(r"[ \t\r\v\f]+", line.strip(" \t\r\v\f"), maxsplit=1)
    return keyword, rest[0].strip() if rest else ""


def sibling(source: Source, name: str) -> Source | None:
    """The file of that name near `source`; None if it is missing, or elsewhere on the machine it was made on."""
    try:
        return source.sibling(name)
    except (FileError, OSError):  # OSError: no file can have such a name
        return None


def pictures(source: Source) -> list[Source]:
    """The pictures that a file's materials name and that are there."""
    statements = [split_statement(line) for line in text_of(source).splitlines()]
    names = [_split_map(argument)[1] for keyword, argument in statements if keyword in _MAP]
    return [file for file in (sibling(source, name) for name in names if name) if file is not None]


def read_library(source: Source, textures: dict[Source, bytes] | None = None) -> dict[str, Appearance]:
    """The materials of a file, by name. `textures` gathers the pictures, so that each is read once."""
    textures = {} if textures is None else textures
    materials: dict[str, Appearance] = {}
    for block in re.split(r"(?m)^[ \t]*newmtl\b", text_of(source))[1:]:
        name, _, rest = block.partition("\n")
        statements = [line.strip() for line in rest.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        materials[name.strip()] = _appearance(source, statements, textures)
    return materials


def _appearance(source: Source, statements: list[str], textures: dict[Source, bytes]) -> Appearance:
    for statement in statements:
        if not _readable(statement):
            raise source.error(f'"{statement[:60]}" has text where a number is expected')
    texture, kept = None, []
    for statement in statements:
        keyword, argument = split_statement(statement)
        if keyword in _MAP:
            options, name = _split_map(argument)
            image = _texture(source, name, textures)
            texture = image or texture
            statement = f"map_Kd {options}".strip() if image else statement
        kept.append(statement)
    return Appearance(_stated_color(statements), texture, {"obj": kept})


def _readable(statement: str) -> bool:
    try:
        return all(math.isfinite(value) for value in _stated_color([statement]))
    except ValueError:
        return False


def _stated_color(statements: Iterable[str]) -> tuple[float, float, float, float]:
    """Colour and opacity as the statements have them; the last of each counts."""
    color, opacity = (0.8, 0.8, 0.8), 1.0
    for keyword, argument in map(split_statement, statements):
        values = argument.split()
        if keyword in _COLOR and len(values) >= 3:
            color = (float(values[0]), float(values[1]), float(values[2]))
        elif keyword in _OPACITY and values:
            opacity = float(values[-1]) if keyword == "d" else 1 - float(values[-1])
    return (*color, opacity)


def _split_map(argument: str) -> tuple[str, str]:
    """The options of a map_Kd (-s 1 1 1 and the like), and its picture."""
    options = _MAP_OPTIONS.match(argument)
    end = options.end() if options else 0
    return argument[:end].strip(), argument[end:].strip()


def _texture(source: Source, name: str, textures: dict[Source, bytes]) -> Image | None:
    file = sibling(source, name) if name else None
    if file is None:
        return None
    if file not in textures:
        textures[file] = file.read()
    suffix = PurePosixPath(name).suffix.lower()
    mime = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}.get(suffix, "image/*")
    return Image(name.replace("\\", "/"), textures[file], mime)


def write_library(path: Path, looks: Mapping[str, Appearance], names: Mapping[str, str]) -> None:
    """All materials under the given names; their pictures go to the folder ``<stem>_textures`` beside it."""
    lines = ["# pliant"]
    pictures: dict[bytes, str] = {}
    taken: set[str] = set()
    for name, look in looks.items():
        statements = _written_statements(look)
        if look.texture is not None:
            data = look.texture.data
            if data not in pictures:
                pictures[data] = _write_picture(path, data, picture_name(look.texture, taken))
            statements = _restated(statements, _MAP, _map_statement(statements, pictures[data]))
        lines += [f"newmtl {names[name]}", *statements, ""]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _written_statements(look: Appearance) -> list[str]:
    """The material's own statements, with colour and opacity as they are now."""
    own = statements = _own_statements(look)
    stated = _stated_color(own)
    if not own or any(abs(a - b) > 1e-6 for a, b in zip(stated[:3], look.color[:3], strict=True)):
        statements = _restated(statements, _COLOR, "Kd " + " ".join(f"{value:.9g}" for value in look.color[:3]))
    if not own or abs(stated[3] - look.color[3]) > 1e-6:
        statements = _restated(statements, _OPACITY, f"d {look.color[3]:.9g}")
    return statements


def _own_statements(look: Appearance) -> list[str]:
    """The statements that the material came with, but for a map_Kd whose picture was taken away since."""
    native = look.native.get("obj")
    kept = []
    for statement in native if isinstance(native, (list, tuple)) else ():
        line = one_line(statement) if isinstance(statement, str) else ""
        keyword, argument = split_statement(line)
        bare = keyword in _MAP and not _split_map(argument)[1]
        if line and keyword != "newmtl" and _readable(line) and not (bare and look.texture is None):
            kept.append(line)
    return kept


def _map_statement(statements: Iterable[str], picture: str) -> str:
    """A map_Kd of that picture, with the options of the one in `statements`."""
    arguments = [argument for keyword, argument in map(split_statement, statements) if keyword in _MAP]
    return " ".join(filter(None, ["map_Kd", _split_map(arguments[-1])[0] if arguments else "", picture]))


def _restated(statements: list[str], keywords: tuple[str, ...], statement: str) -> list[str]:
    """The statements with this one in place of those that begin with one of the keywords; at the end if none does."""
    where = [k for k, one in enumerate(statements) if split_statement(one)[0] in keywords]
    rest = [one for one in statements if split_statement(one)[0] not in keywords]
    at = where[0] if where else len(rest)
    return [*rest[:at], statement, *rest[at:]]


def _write_picture(path: Path, data: bytes, name: str) -> str:
    """Where the picture is, relative to `path`; the frames of a sequence, which are staged together, share one file."""
    for stored in path.parent.glob(f"*_textures/{name}"):
        if stored.read_bytes() == data:
            return f"{stored.parent.name}/{name}"
    folder = path.parent / f"{file_stem(path.name)}_textures"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return f"{folder.name}/{name}"
