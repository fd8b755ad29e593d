"""NPZ, pliant's own lossless container: a zip of NumPy arrays that holds every kind of content to the bit.

Arrays, by key (``numpy.load(path)["points"]``; nothing is ever pickled):

    pliant            the layout's version, 1
    kind              "mesh", "tets", "points", "shapes", "animation", "motion" or "skeleton"
    words             JSON: names, materials, frame rate, axes and units; whatever is not numbers
    points            (n, 3) vertices
    face_corners      (c,) vertex of every polygon corner      face_offsets      (f + 1,) where each polygon starts
    triangles         (m, 3) the polygons cut into triangles   triangle_polygon  (m,) the polygon of each
    uv_values         (k, d) and uv_index (c,): texture coordinates of the corners; normal_values, normal_index alike
    label_0, ...      (f,) the polygons' place in the names that words["labels"][0] lists
    attribute_0, ...  per-vertex values that words["attributes"][0] names; group_0, ... vertex weights alike
    tets              (t, 4)                                   normals           (n, 3) of a point cloud
    blob_0, ...       bytes (uint8) and arrays that the materials refer to: textures, a format's own data
    shape_points      (s, n, 3) named shapes, the base first   frames            (f, n, 3) an animation
    parents, offsets, rest_rotations, ends          a skeleton
    rotations, translations                         (f, j, 4) and (f, j, 3) its motion

Plain files of others are read too, where the keys say what they hold: ``vertices``, ``points`` or ``v`` with
``faces``, ``triangles`` or ``f``, with ``tets``, or ``frames`` (f, n, 3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pliant.core.clips import Animation, Shapes
from pliant.core.errors import InputError
from pliant.core.shapes import Appearance, Labels, Layer, Mesh, PointCloud, TetMesh, World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Polygons, locked
from pliant.io.npz.arrays import write_arrays
from pliant.io.npz.contents import HELD, VERSION, Contents
from pliant.io.npz.words import to_words
from pliant.io.source import Source

Arrays = dict[str, NDArray[Any]]
Words = dict[str, Any]


def kinds(source: Source) -> tuple[str, ...]:
    """What the file holds, the richest first."""
    return _holds(Contents(source))


def read_mesh(source: Source) -> Mesh:
    """A mesh: the base of shapes, the shape of an animation, the surface of tetrahedra."""
    shape = _shape(_expect(source, "mesh"))
    return cast(Mesh, shape.surface if isinstance(shape, TetMesh) else shape)


def read_tets(source: Source) -> TetMesh:
    """Tetrahedra."""
    return cast(TetMesh, _shape(_expect(source, "tets")))


def read_points(source: Source) -> PointCloud:
    """A point cloud, or the vertices of what the file holds."""
    shape = _shape(_expect(source, "points"))
    if isinstance(shape, PointCloud):
        return shape
    return PointCloud(shape.points, attributes=shape.attributes, world=shape.world)


def read_shapes(source: Source) -> Shapes:
    """Named shapes, the base first."""
    held = _expect(source, "shapes")
    return Shapes(_mesh(held), held.numbers("shape_points", 3), _names(held, "names"))


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """An animation, sampled at `fps` if given."""
    held = _expect(source, "animation")
    name = held.word("name", str, source.stem)
    if clip is not None and clip not in (0, name):
        raise source.error(f'has no clip {clip!r}; it holds one, "{name}"', argument="clip")
    moving = Animation(_shape(held), held.numbers("frames", 3), held.word("fps", float, 30.0), name)
    return moving if fps is None or fps == moving.fps else moving.resampled(fps)


def read_skeleton(source: Source) -> Skeleton:
    """A skeleton, or that of a motion."""
    return _skeleton(_expect(source, "skeleton"))


def read_motion(source: Source, *, clip: str | int | None = None) -> Motion:
    """A skeleton's motion."""
    held = _expect(source, "motion")
    name = held.word("name", str, source.stem)
    if clip is not None and clip not in (0, name):
        raise source.error(f'has no clip {clip!r}; it holds one, "{name}"', argument="clip")
    channels = held.words.get("channels")
    if channels is not None:
        rows = channels if isinstance(channels, (list, tuple)) else ()
        channels = tuple(_names(held, "channels", {"channels": row}) for row in rows)
    turns, places, fps = held.numbers("rotations", 3), held.numbers("translations", 3), held.word("fps", float, 30.0)
    return Motion(_skeleton(held), turns, places, fps, channels, name)


def _holds(held: Contents) -> tuple[str, ...]:
    if held.kind != "animation":
        return HELD[held.kind]
    return ("animation", *HELD.get(held.word("shape", str, "mesh"), ()))


def _expect(source: Source, kind: str) -> Contents:
    held = Contents(source)
    if kind not in _holds(held):
        raise source.error(f"holds {', '.join(_holds(held))}; expected {kind}")
    return held


def _shape(held: Contents) -> Mesh | TetMesh | PointCloud:
    kind = held.word("shape", str, "mesh") if held.kind == "animation" else held.kind
    if kind == "points":
        normals = held.numbers("normals", 2) if "normals" in held.arrays else None
        return PointCloud(held.numbers("points", 2), normals, _named(held, "attribute"), _world(held))
    if kind == "tets":
        tets = held.indices("tets", len(held.numbers("points", 2)), "point", 2)
        triangles = np.zeros((0, 3), np.int64)
        if "triangles" in held.arrays:
            triangles = held.indices("triangles", len(held.array("points")), "point", 2)
        if tets.shape[1] != 4 or triangles.shape[1:] != (3,):
            raise held.source.error(f"tets have shape {tets.shape}, triangles {triangles.shape}; expected four, three")
        return TetMesh(held.numbers("points", 2), tets, triangles, _named(held, "attribute"), _world(held))
    return _mesh(held)


def _mesh(held: Contents) -> Mesh:
    if "face_corners" not in held.arrays:
        faces = held.array("faces")
        if faces.ndim != 2:
            raise held.source.error(f"faces have shape {faces.shape}; expected (f, 3) or (f, 4)")
        return Mesh(held.numbers("points", 2), faces)
    count = len(held.numbers("points", 2))
    corners = held.indices("face_corners", count, "point")
    offsets = held.indices("face_offsets", len(corners) + 1, "corner")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(corners) or (np.diff(offsets) < 3).any():
        raise held.source.error("does not cut the corners into polygons of three or more", place="face_offsets.npy")
    polygons = Polygons(locked(corners), locked(offsets))
    triangles = held.indices("triangles", count, "point", 2)
    owner = held.indices("triangle_polygon", len(polygons), "face")
    if triangles.shape != (len(owner), 3):
        raise held.source.error(f"has shape {triangles.shape}; expected ({len(owner)}, 3)", place="triangles.npy")
    return Mesh(
        held.numbers("points", 2),
        polygons,
        triangles=triangles,
        triangle_polygon=owner,
        uvs=_layer(held, "uv"),
        normals=_layer(held, "normal"),
        labels=_labels(held),
        appearances=_appearances(held),
        attributes=_named(held, "attribute"),
        vertex_groups=_named(held, "group"),
        world=_world(held),
    )


def _world(held: Contents) -> World | None:
    up = held.word("up", str, "")
    return World(cast(Any, up), float(held.word("metres", float, 1.0))) if up else None


def _layer(held: Contents, name: str) -> Layer | None:
    if f"{name}_values" not in held.arrays:
        return None
    values = held.numbers(f"{name}_values", 2)
    return Layer(locked(values), locked(held.indices(f"{name}_index", len(values), "value")))


def _names(held: Contents, key: str, words: Words | None = None) -> tuple[str, ...]:
    names = (held.words if words is None else words).get(key, [])
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise held.source.error(f'"{key}" is {names!r:.40}; expected a list of names', place="words.npy")
    return tuple(names)


def _labels(held: Contents) -> dict[str, Labels]:
    labels = {}
    for k, entry in enumerate(held.word("labels", list, [])):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise held.source.error("labels have no name", place="words.npy")
        names = _names(held, "names", entry)
        labels[entry["name"]] = Labels(names, locked(held.indices(f"label_{k}", len(names), "name")))
    return labels


def _named(held: Contents, kind: str) -> dict[str, NDArray[Any]]:
    names = _names(held, f"{kind}s")
    if kind == "group":
        return {name: held.numbers(f"group_{k}", 1) for k, name in enumerate(names)}
    named = {name: held.array(f"{kind}_{k}") for k, name in enumerate(names)}
    if not all(values.ndim for values in named.values()):
        raise held.source.error("has an attribute that is a single value; expected one row a point")
    return named


def _appearances(held: Contents) -> dict[str, Appearance]:
    looks = held.word("appearances", dict, {})
    for name, look in looks.items():
        if not isinstance(look, Appearance):
            raise held.source.error(f'material "{name:.40}" is not one', place="words.npy")
    return looks


def _skeleton(held: Contents) -> Skeleton:
    names = _names(held, "joints")
    where = held.word("ends", list, [])
    ends = held.numbers("ends", 2)
    if not all(isinstance(j, int) and 0 <= j < len(names) for j in where) or ends.shape != (len(where), 3):
        raise held.source.error(f"has {ends.shape} ends for joints {where!r:.40}", place="ends.npy")
    parents = held.array("parents")
    if not np.issubdtype(parents.dtype, np.integer):
        raise held.source.error(f"holds {parents.dtype}; expected joint numbers", place="parents.npy")
    tips = {j: locked(ends[k]) for k, j in enumerate(where)}
    return Skeleton(names, parents, held.numbers("offsets", 2), held.numbers("rest_rotations", 2), tips)


def write_mesh(path: Path, content: Mesh) -> None:
    """A mesh with everything its file said."""
    _write(path, "mesh", *_mesh_entries(content))


def write_tets(path: Path, content: TetMesh) -> None:
    """Tetrahedra."""
    _write(path, "tets", *_shape_entries(content))


def write_points(path: Path, content: PointCloud) -> None:
    """A point cloud."""
    _write(path, "points", *_shape_entries(content))


def write_shapes(path: Path, content: Shapes) -> None:
    """Named shapes of one mesh."""
    arrays, words = _mesh_entries(content.base)
    _write(path, "shapes", {**arrays, "shape_points": content.points}, {**words, "names": content.names})


def write_animation(path: Path, content: Animation) -> None:
    """A moving shape of any kind."""
    arrays, words = _shape_entries(content.shape)
    shape = {Mesh: "mesh", TetMesh: "tets", PointCloud: "points"}[type(content.shape)]
    words = {**words, "shape": shape, "fps": float(content.fps), "name": content.name}
    _write(path, "animation", {**arrays, "frames": content.points}, words)


def write_skeleton(path: Path, content: Skeleton) -> None:
    """A skeleton at rest."""
    _write(path, "skeleton", *_skeleton_entries(content))


def write_motion(path: Path, content: Motion) -> None:
    """A skeleton and its motion."""
    arrays, words = _skeleton_entries(content.skeleton)
    arrays = {**arrays, "rotations": content.rotations, "translations": content.translations}
    words = {**words, "fps": float(content.fps), "name": content.name, "channels": content.channels}
    _write(path, "motion", arrays, words)


def _shape_entries(shape: Mesh | TetMesh | PointCloud) -> tuple[Arrays, Words]:
    if isinstance(shape, Mesh):
        return _mesh_entries(shape)
    arrays, words = _numbered("attribute", shape.attributes)
    words.update(_world_words(shape.world))
    arrays["points"] = shape.points
    if isinstance(shape, TetMesh):
        return {**arrays, "tets": shape.tets, "triangles": shape.triangles}, words
    if shape.normals is not None:
        arrays["normals"] = shape.normals
    return arrays, words


def _mesh_entries(mesh: Mesh) -> tuple[Arrays, Words]:
    arrays: Arrays = {
        "points": mesh.points,
        "face_corners": mesh.polygons.corners,
        "face_offsets": mesh.polygons.offsets,
        "triangles": mesh.triangles,
        "triangle_polygon": mesh.triangle_polygon,
    }
    words: Words = {"appearances": dict(mesh.appearances), "labels": [], **_world_words(mesh.world)}
    for key, layer in (("uv", mesh.uvs), ("normal", mesh.normals)):
        if layer is not None:
            arrays.update({f"{key}_values": layer.values, f"{key}_index": layer.index})
    for k, (name, label) in enumerate(mesh.labels.items()):
        arrays[f"label_{k}"] = label.index
        words["labels"].append({"name": name, "names": label.names})
    for kind, values in (("attribute", mesh.attributes), ("group", mesh.vertex_groups)):
        more_arrays, more_words = _numbered(kind, values)
        arrays.update(more_arrays)
        words.update(more_words)
    return arrays, words


def _world_words(world: World | None) -> Words:
    return {} if world is None else {"up": world.up, "metres": float(world.metres)}


def _numbered(kind: str, values: Mapping[str, NDArray[Any]]) -> tuple[Arrays, Words]:
    arrays = {f"{kind}_{k}": np.asarray(table) for k, table in enumerate(values.values())}
    return arrays, {f"{kind}s": list(values)}


def _skeleton_entries(skeleton: Skeleton) -> tuple[Arrays, Words]:
    ends = sorted(skeleton.ends)
    arrays: Arrays = {
        "parents": skeleton.parents,
        "offsets": skeleton.offsets,
        "rest_rotations": skeleton.rest_rotations,
        "ends": np.array([skeleton.ends[j] for j in ends], dtype=np.float64).reshape(-1, 3),
    }
    return arrays, {"joints": skeleton.names, "ends": [int(j) for j in ends]}


def _write(path: Path, kind: str, arrays: Arrays, words: Words) -> None:
    blobs: Arrays = {}
    text = json.dumps(to_words(words, blobs), ensure_ascii=True)
    head: Arrays = {"pliant": np.array(VERSION), "kind": np.array(kind), "words": np.array(text)}
    for key, values in arrays.items():
        if values.dtype.hasobject:
            raise InputError(f'"{key}" holds Python objects; expected numbers')
    write_arrays(path, {**head, **arrays, **blobs})
