"""What is in a file, and what is wrong with it: ``pliant info``.

`inspect` reads every kind of content that a file holds and describes each: meshes by counts, bounds, topology and
faults (see `mesh`), animations by time and largest step, shapes by how far each moves, skeletons by
their joints. `problems` are sentences, each with what to do about it, the most important first. A file that cannot be
read raises the reader's `FileError`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from pliant import io
from pliant.app.inspection.mesh import MeshFacts, bounds, counted, inspect_mesh
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError, MissingFacesError, RepairWarning, TopologyError
from pliant.core.scaling import scaling_of
from pliant.core.shapes import Mesh, PointCloud, TetMesh, bounding_diagonal
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Polygons
from pliant.geometry.quality import popping
from pliant.io.scan import check_finite, scan_numbers
from pliant.io.source import PathLike, Source, find

LISTED_NUMBERS, LISTED_NAMES = 6, 200
"""Numbers, and names, that are listed; names are what options such as --clip take."""
Facts = dict[str, Any]
MOST_FILES = 20
"""How many unrelated files of a folder or archive are looked into."""
SUDDEN = 10.0
"""A step this many times a point's median step is worth a word."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """What `inspect` found."""

    path: str
    format: str
    bytes: int
    files: tuple[str, ...]
    """The files that `path` stands for."""
    kinds: tuple[str, ...]
    """What can be read from it, the richest first."""
    contents: Mapping[str, Facts]
    """By kind ("mesh", "animation", ...), what it is in numbers; "file" holds what the format itself tells."""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Facts:
        """Plain values, ready for JSON."""
        values = {"path": self.path, "format": self.format, "bytes": self.bytes, "files": list(self.files)}
        values |= {"kinds": list(self.kinds), **{kind: _plain(facts) for kind, facts in self.contents.items()}}
        return values | {"problems": list(self.problems), "notes": list(self.notes)}

    def lines(self) -> list[str]:
        """Plain text, line by line."""
        kinds = ", ".join(self.kinds)
        lines = [f"{self.path}: {self.format}, {size_text(self.bytes)}, holds {kinds}"]
        if len(self.files) > 1:
            names = [label.replace(":", "/").rsplit("/", 1)[-1] for label in self.files]
            lines.append(f"  {counted(len(names), 'file')}: {_shortened(names)}")
        for kind, facts in self.contents.items():
            rows = _mesh_rows(facts) if kind == "mesh" else _rows(facts)
            width = max((len(name) for name, _ in rows), default=0)
            lines += [kind, *(f"  {name.ljust(width)}  {value}" for name, value in rows)]
        for title, sentences in (("problems", self.problems), ("notes", self.notes)):
            lines += [title, *(f"  - {sentence}" for sentence in sentences)] if sentences else []
        return lines if self.problems else [*lines, "No problems found."]


def inspect(path: PathLike, *, deep: bool = False) -> Inspection:
    """Describe a file, folder, glob or archive; `deep` looks for triangles that cross each other too."""
    with _repairs() as repaired:
        found = _inspect(path, deep)
    return replace(found, problems=(*found.problems, *repaired))


@contextmanager
def _repairs() -> Iterator[dict[str, None]]:
    """What reading had to repair: problems of the file. Other warnings go on as ever."""
    repaired: dict[str, None] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RepairWarning)
        yield repaired
    for warning in caught:
        if issubclass(warning.category, RepairWarning):
            repaired[f"{warning.message}."] = None
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _inspect(path: PathLike, deep: bool) -> Inspection:
    sources = find(path, lambda name: Path(name).suffix.lower() in io.BY_SUFFIX)
    if not sources:
        raise FileError(path, f"holds nothing readable; expected {' '.join(sorted(io.BY_SUFFIX))}")
    if len(sources) > 1:
        return _inspect_several(path, sources, deep)
    source = sources[0]
    form = io.format_of(source.label, source.suffix)
    contents: dict[str, Facts] = {}
    if facts := io.formats.describe(source):
        contents["file"] = facts
    if source.suffix == ".target":
        contents["shapes"] = _target_facts(source)
    else:
        contents |= {kind: _facts_of(content, deep) for kind, content in _read_all(path, io.kinds_in(source)).items()}
    return _finish(path, form.name, sources, [kind for kind in contents if kind != "file"], contents)


def _read_all(path: PathLike, kinds: tuple[io.ContentKind, ...]) -> dict[str, io.Content]:
    """What a file holds, by kind; not the points of a mesh nor the skeleton of a motion, which tell nothing more."""
    found: dict[str, io.Content] = {}
    for kind in kinds:
        if (kind == "points" and "mesh" in found) or (kind == "skeleton" and "motion" in found):
            continue
        try:
            found[kind] = io.read(path, kind)
        except MissingFacesError:
            if "points" not in kinds:
                raise
    if "tets" in found and isinstance(found.get("mesh"), Mesh):
        found["mesh"] = _without_unused(cast(Mesh, found["mesh"]))
    return found


def _without_unused(mesh: Mesh) -> Mesh:
    """A surface without the points inside it, which belong to tetrahedra."""
    used, corners = np.unique(mesh.polygons.corners, return_inverse=True)
    return Mesh(mesh.points[used], Polygons(corners, mesh.polygons.offsets))


def _inspect_several(path: PathLike, sources: list[Source], deep: bool) -> Inspection:
    """Several files: frames of one shape if they match, else each by itself."""
    forms = [io.format_of(source.label, source.suffix) for source in sources]
    name = " and ".join(dict.fromkeys(form.name for form in forms))
    if all("mesh" in form.reads for form in forms):
        try:
            clip = io.read_animation(path)
        except TopologyError:
            return _inspect_each(path, name, sources, deep)
        contents = {"animation": animation_facts(clip), "mesh": asdict(inspect_mesh(_mesh(clip), deep=deep))}
        return _finish(path, name, sources, ("animation", "shapes", "mesh"), contents)
    return _inspect_each(path, name, sources, deep)


def _inspect_each(path: PathLike, form: str, sources: list[Source], deep: bool) -> Inspection:
    """A line for each of several files that do not belong together, and the worst problem of each."""
    values: dict[str, str] = {}
    problems = []
    for source in sources[:MOST_FILES]:
        try:
            one = inspect(source.path / source.member if source.member else source.path, deep=deep)
        except FileError as error:
            values[source.name] = "cannot be read"
            problems.append(str(error))
            continue
        values[source.name] = f"{one.format}, holds {', '.join(one.kinds)}"
        problems += [f"{source.name}: {text}" for text in one.problems[:1]]
    notes = ["These files are not frames of one shape; inspect them one by one for more."]
    if len(sources) > MOST_FILES:
        notes.append(f"Only the first {MOST_FILES} of {len(sources)} files were looked at.")
    return _finish(path, form, sources, ["several"], {"each": {**values, "problems": problems, "notes": notes}})


def _mesh(clip: Animation) -> Mesh:
    assert isinstance(clip.shape, Mesh)
    return clip.shape


def _finish(
    path: PathLike, form: str, sources: list[Source], kinds: Iterable[str], contents: dict[str, Facts]
) -> Inspection:
    """Gather the problems and notes of all contents, meshes' first."""
    order = sorted(contents, key=lambda kind: kind != "mesh")
    problems = [text for kind in order for text in contents[kind].pop("problems", ())]
    notes = [text for kind in order for text in contents[kind].pop("notes", ())]
    files = tuple(source.label for source in sources)
    return Inspection(str(path), form, _bytes(sources), files, tuple(kinds), contents, tuple(problems), tuple(notes))


def _bytes(sources: list[Source]) -> int:
    return sum(path.stat().st_size for path in {source.path for source in sources})


def _facts_of(content: io.Content, deep: bool) -> Facts:
    if isinstance(content, Mesh):
        return asdict(inspect_mesh(content, deep=deep))
    if isinstance(content, TetMesh):
        return tet_facts(content)
    if isinstance(content, PointCloud):
        return cloud_facts(content)
    if isinstance(content, Shapes):
        return shapes_facts(content)
    if isinstance(content, Animation):
        return animation_facts(content)
    return motion_facts(content) if isinstance(content, Motion) else skeleton_facts(content)


def tet_facts(tets: TetMesh) -> Facts:
    """Tetrahedra in numbers."""
    lower, upper = bounds(tets.points)
    scaled = replace(tets, points=scaling_of(tets.points)(tets.points))
    smallest = 1e-15 * scaled.diagonal**3
    flat = int((np.abs(scaled.volumes) <= smallest).sum())
    negative = int((scaled.volumes < -smallest).sum())
    problems = []
    if negative and negative < len(tets.tets) - flat:
        problems.append(f"{negative:,} of {len(tets.tets):,} tetrahedra are inside out; swap two of their corners.")
    if flat:
        problems.append(f"{counted(flat, 'tetrahedron has', 'tetrahedra have')} no volume; mesh the volume anew.")
    return {
        "points": len(tets.points),
        "tetrahedra": len(tets.tets),
        "listed triangles": len(tets.triangles),
        "lower": lower,
        "upper": upper,
        "diagonal": tets.diagonal,
        "volume": float(np.abs(tets.volumes).sum()),
        "inside out": negative,
        "flat": flat,
        "problems": problems,
    }


def cloud_facts(cloud: PointCloud) -> Facts:
    """A point cloud in numbers."""
    lower, upper = bounds(cloud.points)
    return {
        "points": len(cloud.points),
        "distinct points": len(np.unique(cloud.points, axis=0)),
        "lower": lower,
        "upper": upper,
        "diagonal": cloud.diagonal,
        "normals": cloud.normals is not None,
        "attributes": list(cloud.attributes),
    }


def shapes_facts(shapes: Shapes) -> Facts:
    """Named shapes, and how far each moves the base, over its diagonal."""
    diagonal = bounding_diagonal(shapes.points[0]) or 1.0
    moves = [float(np.linalg.norm(p - shapes.points[0], axis=1).max(initial=0.0)) / diagonal for p in shapes.points]
    unmoved = [name for name, move in zip(shapes.names[1:], moves[1:], strict=True) if move == 0]
    notes = (
        [f"{counted(len(unmoved), 'shape moves', 'shapes move')} nothing: {_shortened(unmoved)}."] if unmoved else []
    )
    return {
        "shapes": len(shapes),
        "points": len(shapes.base.points),
        "largest displacement": dict(zip(shapes.names, moves, strict=True)),
        "notes": notes,
    }


def animation_facts(clip: Animation) -> Facts:
    """A clip's time, and the largest step from one frame to the next, over the diagonal."""
    pops = popping(clip, rest=clip.shape.points)
    frame, sudden = int(pops.step.argmax()), int(pops.frame.argmax())
    notes = []
    if len(clip) > 1 and not pops.step.any():
        notes.append("Nothing moves: all frames are the same.")
    elif pops.worst > SUDDEN:
        jump = f"something moves {pops.worst:.3g} times as far as it usually does"
        notes.append(f"From frame {sudden - 1} to {sudden} {jump}; look there for popping.")
    return {
        "name": clip.name,
        "frames": len(clip),
        "fps": clip.fps,
        "seconds": clip.duration,
        "points": clip.points.shape[1],
        "largest step": float(pops.step[frame]),
        "at frame": frame,
        "notes": notes,
    }


def skeleton_facts(skeleton: Skeleton) -> Facts:
    """Joints, roots and bones of a skeleton."""
    length = np.linalg.norm(skeleton.offsets[skeleton.bones[:, 1]], axis=1)
    size = float(length.max(initial=0.0))
    flat = [skeleton.names[child] for child in skeleton.bones[length <= 1e-9 * size, 1]]
    notes = [f"{counted(len(flat), 'bone has', 'bones have')} no length: to {_shortened(flat)}."] if flat else []
    return {
        "joints": len(skeleton),
        "names": list(skeleton.names),
        "roots": [skeleton.names[k] for k in np.flatnonzero(skeleton.parents < 0)],
        "bones": len(skeleton.bones),
        "end sites": len(skeleton.ends),
        "longest bone": size,
        "bones without length": flat,
        "notes": notes,
    }


def motion_facts(motion: Motion) -> Facts:
    """A skeleton, and how long and how far it moves."""
    root = motion.world()[0][:, 0]
    return {
        "name": motion.name,
        "frames": len(motion),
        "fps": motion.fps,
        "seconds": motion.duration,
        "root travels": float(np.linalg.norm(np.diff(root, axis=0), axis=1).sum()),
        **skeleton_facts(motion.skeleton),
    }


def _target_facts(source: Source) -> Facts:
    """A sparse target: which vertices of its base it moves, and how far."""
    table = scan_numbers(source, source.read())
    rows = check_finite(source, table.block(source, 0, len(table), 4, "offsets"), table.line.__getitem__, "offset")
    note = "It moves the vertices of a base mesh; read it together with that mesh: read_shapes(..., base=mesh)."
    return {
        "name": source.stem,
        "moved vertices": len(np.unique(rows[:, 0])),
        "largest vertex": int(rows[:, 0].max(initial=-1)),
        "largest offset": float(np.linalg.norm(rows[:, 1:], axis=1).max(initial=0.0)),
        "notes": [note],
    }


# Words


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    number = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(number, float) and not math.isfinite(number) else number


def size_text(count: int) -> str:
    """Bytes, in a unit that suits them."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if unit != "bytes" else f"{count} bytes"
        count = count / 1000  # type: ignore[assignment]
    return f"{count:.3g} GB"


def _shortened(names: Iterable[str], most: int = LISTED_NUMBERS) -> str:
    """The first names, and how many there are in all."""
    shown = list(names)
    more = f", ... ({len(shown)} in all)" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping) and "name" in value:
        rest = ", ".join(f"{name} {_text(item)}" for name, item in value.items() if name != "name")
        return f"{value['name']} ({rest})" if rest else str(value["name"])
    if isinstance(value, Mapping):
        return _shortened(f"{name} {_text(item)}" for name, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        most = LISTED_NAMES if any(isinstance(item, (str, Mapping)) for item in value) else LISTED_NUMBERS
        return _shortened((_text(item) for item in value), most) or "none"
    return str(value) or "none"


def _rows(facts: Facts) -> list[tuple[str, str]]:
    return [(name if "." in name else name.replace("_", " "), _text(value)) for name, value in facts.items()]


def _mesh_rows(facts: Facts) -> list[tuple[str, str]]:
    """A mesh's facts, put together into few lines."""
    known = MeshFacts(**facts)
    by_size = (("triangle", known.triangles), ("quad", known.quads), ("larger polygon", known.polygons))
    faces = ", ".join(counted(number, name) for name, number in by_size if number)
    extent = " × ".join(f"{high - low:.6g}" for low, high in zip(known.lower, known.upper, strict=True))
    carried = [name for name in ("uvs", "normals", "colors") if getattr(known, name)]
    surface = "watertight" if known.watertight else "closed once welded" if known.closed else "open"
    rows = [
        ("vertices", f"{known.vertices:,}"),
        ("faces", f"{known.faces:,}" + (f" ({faces})" if faces else "")),
        ("parts", f"{known.parts:,}"),
        ("bounds", f"{_text(known.lower)} to {_text(known.upper)}"),
        ("size", f"{extent}, diagonal {known.diagonal:.6g}"),
        (
            "surface",
            f"{surface}, area {known.area:.6g}" + ("" if known.volume is None else f", volume {known.volume:.6g}"),
        ),
        ("carries", ", ".join([*carried, *known.attributes]) or "points and faces only"),
    ]
    for name in ("objects", "groups", "materials", "textures", "vertex_groups"):
        names = getattr(known, name)
        rows += [(name.replace("_", " "), f"{len(names)}: {_shortened(names, LISTED_NAMES)}")] if names else []
    if known.self_intersections is not None:
        rows.append(("crossings", f"{counted(known.self_intersections, 'pair')} of triangles"))
    return rows
