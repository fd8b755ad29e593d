"""Weights over time: a clip of a rig's own (.glb .gltf .usd*), or a table of sliders (.csv .json), one row a frame."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.clips import WeightClip
from pliant.core.errors import FileError, InputError
from pliant.core.validation import frame_rate
from pliant.core.values import locked
from pliant.io.formats import BY_SUFFIX
from pliant.io.output import staged
from pliant.io.shape_names import ShapeNames
from pliant.io.source import PathLike, Source, find
from pliant.io.weight_tables import WEIGHT_TABLES, note_lost, read_table

WRITTEN = (".csv", ".json")


def read_weights(
    path: PathLike, names: Sequence[str] | None = None, *, clip: str | int | None = None, fps: float | None = None
) -> WeightClip:
    """Weights over time of the shapes called `names`, the base first; 0 where the file does not name a shape.

    path: a rig whose clips move its morph targets (.glb .gltf .usd*), a table (.csv .json) or a recording of a face
        (Live Link Face's and others' .csv).
    names: of the shapes; of a rig, by default its own. Capitals, underscores, and how left and right are written need
        not match.
    clip: name or number of one of a rig's clips; by default the first that moves weights.
    fps: frames a second to sample at; by default the file's own.
    """
    rate = None if fps is None else frame_rate(fps)
    source = Source(Path(path))
    if source.suffix in WEIGHT_TABLES:
        if names is None:
            raise source.error("is a table; give the names of the shapes that its columns are for", argument="names")
        if clip is not None:
            raise source.error(f"is a table; clip={clip!r} needs a file with clips, such as .glb", argument="clip")
        table = read_table(source, ShapeNames(names))
        return table if rate is None else table.resampled(rate)
    if _reader(source) is None:
        known = " ".join(sorted({*WEIGHT_TABLES, *(suffix for suffix in BY_SUFFIX if _reader_of(suffix))}))
        raise source.error(f'unknown format "{source.suffix}" for weights; expected one of {known}')
    found = clip_weights(source, clip=clip, fps=rate)
    if found is None:
        raise source.error("holds no clip that moves morph targets; expected one, or a table: .csv or .json")
    return found if names is None else fitted(found, names, source.label)


def write_weights(path: PathLike, clip: WeightClip) -> Path:
    """Write weights as a table, which `read_weights` and ``pliant blend --weights`` take: .csv, or .json."""
    target = Path(path)
    if target.suffix.lower() not in WRITTEN:
        raise FileError(target, f'unknown format "{target.suffix}" for weights; expected one of {" ".join(WRITTEN)}')
    with staged(target) as part:
        if target.suffix.lower() == ".json":
            columns = dict(zip(clip.names, clip.values.T.tolist(), strict=True))
            text = json.dumps({"weights": columns} | ({} if clip.fps is None else {"fps": clip.fps}), indent=1)
            part.write_text(text + "\n", encoding="utf-8")
            return target
        rate = clip.fps if len(clip) > 1 else None
        with part.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow([*([] if rate is None else ["seconds"]), *clip.names])
            for k, row in enumerate(clip.values):
                rows.writerow([*([] if rate is None else [repr(k / rate)]), *(f"{value:.9g}" for value in row)])
    return target


def own_weights(
    path: PathLike, *, clip: str | int | None = None, fps: float | None = None
) -> tuple[WeightClip, str] | None:
    """How a rig's own clip moves its shapes, and the rig's file; None if it is no rig, or none of its clips does."""
    sources = find(path, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
    if len(sources) != 1 or _reader(sources[0]) is None:
        return None
    found = clip_weights(sources[0], clip=clip, fps=fps)
    return None if found is None else (found, sources[0].label)


def clip_weights(source: Source, *, clip: str | int | None, fps: float | None) -> WeightClip | None:
    """The weights in a rig's clip; None if no clip was asked for, and none moves any."""
    given = {"clip": clip, "fps": fps}
    read = _reader(source)
    found: WeightClip | None = read(source, **{key: value for key, value in given.items() if value is not None})
    return found


def _reader(source: Source) -> Any:
    return _reader_of(source.suffix)


def _reader_of(suffix: str) -> Any:
    """The ``read_weights`` of a format, if it has one."""
    format = BY_SUFFIX.get(suffix)
    module = None if format is None else importlib.import_module(f"pliant.io.{format.module}")
    return getattr(module, "read_weights", None)


def fitted(clip: WeightClip, names: Sequence[str], label: str) -> WeightClip:
    """A clip's weights for the shapes called `names`, the base first; what moves none of them is noted."""
    known = ShapeNames(names)
    values = np.zeros((len(clip), len(known)))
    lost, found = [], False
    for k, (name, column) in enumerate(zip(clip.names, clip.values.T, strict=True)):
        try:
            shapes = known.column(name)
        except KeyError:
            shapes = ()
        values[:, list(shapes)] = column[:, None]
        found |= bool(shapes) and k > 0
        if not shapes and k > 0 and column.any():
            lost.append(name)
    if not found:
        raise InputError(f"{label}: moves {', '.join(clip.names[1:13])}, none of the shapes here; {known.listed}")
    note_lost(label, lost)
    return WeightClip(tuple(names), locked(values), clip.fps, clip.name)
