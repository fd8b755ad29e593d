"""NPZ, pliant's own lossless container: a zip of NumPy arrays that holds every kind of content to the bit.

Arrays, by key (``numpy.load(path)["points"]``; nothing is ever pickled):

    pliant            the layout's version, 1
    kind              "mesh", "tets", "points", "shapes", "animation", "motion" or "skeleton"
    words             JSON: names, materials, frame rate, axes and units; whatever is not numbers
    points            (n, 3) vertices
    face_corners      (c,) vertex of every polygon corner      face_offsets      (f + 1,) where each polygon starts
    triangles         (m, 3) the polygons cut into triangles   triangle_polygon  (m,) the polygon of each
    uv_values         (k, d) and uv_index (c,): texture coordinates of the corners; normal_values, normal_index alike
    label_0, ...      (f,) the polygons' index in the names that words["labels"][0] lists
    attribute_0, ...  per-vertex values that words["attributes"][0] names; group_0, ... vertex weights alike
    bind_0, ...       (n, 3) where words["binds"] names joints whose skin was bound elsewhere
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

from pliant.core.clips import DEFAULT_FPS, Animation, Shapes
from pliant.core.errors import InputError
from pliant.core.shapes import Appearance, Labels, Layer, Mesh, PointCloud, TetMesh, World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Polygons, locked
from pliant.io.npz.arrays import write_arrays
from pliant.io.npz.contents import KINDS_IN, VERSION, Contents
from pliant.io.npz.tagged_json import to_json
from pliant.io.source import Source

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]


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
    contents = _expect(source, "shapes")
    return Shapes(_mesh(contents), contents.numbers("shape_points", 3), _names(contents, "names"))


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """An animation, sampled at `fps` if given."""
    contents = _expect(source, "animation")
    name = contents.field("name", str, source.stem)
    if clip is not None and clip not in (0, name):
        raise source.error(f'has no clip {clip!r}; it holds one, "{name}"', argument="clip")
    moving = Animation(_shape(contents), contents.numbers("frames", 3), contents.field("fps", float, DEFAULT_FPS), name)
    return moving if fps is None or fps == moving.fps else moving.resampled(fps)


def read_skeleton(source: Source) -> Skeleton:
    """A skeleton, or that of a motion."""
    return _skeleton(_expect(source, "skeleton"))


def read_motion(source: Source, *, clip: str | int | None = None) -> Motion:
    """A skeleton's motion."""
    contents = _expect(source, "motion")
    name = contents.field("name", str, source.stem)
    if clip is not None and clip not in (0, name):
        raise source.error(f'has no clip {clip!r}; it holds one, "{name}"', argument="clip")
    channels = contents.metadata.get("channels")
    if channels is not None:
        rows = channels if isinstance(channels, (list, tuple)) else ()
        channels = tuple(_names(contents, "channels", {"channels": row}) for row in rows)
    quaternions, positions = contents.numbers("rotations", 3), contents.numbers("translations", 3)
    fps = contents.field("fps", float, DEFAULT_FPS)
    return Motion(_skeleton(contents), quaternions, positions, fps, channels, name)


def _holds(contents: Contents) -> tuple[str, ...]:
    if contents.kind != "animation":
        return KINDS_IN[contents.kind]
    return ("animation", *KINDS_IN.get(contents.field("shape", str, "mesh"), ()))


def _expect(source: Source, kind: str) -> Contents:
    contents = Contents(source)
    if kind not in _holds(contents):
        raise source.error(f"holds {', '.join(_holds(contents))}; expected {kind}")
    return contents


def _shape(contents: Contents) -> Mesh | TetMesh | PointCloud:
    kind = contents.field("shape", str, "mesh") if contents.kind == "animation" else contents.kind
    if kind == "points":
        normals = contents.numbers("normals", 2) if "normals" in contents.arrays else None
        return PointCloud(contents.numbers("points", 2), normals, _named(contents, "attribute"), _world(contents))
    if kind == "tets":
        tets = contents.indices("tets", len(contents.numbers("points", 2)), "point", 2)
        triangles = np.zeros((0, 3), np.int64)
        if "triangles" in contents.arrays:
            triangles = contents.indices("triangles", len(contents.array("points")), "point", 2)
        if tets.shape[1] != 4 or triangles.shape[1:] != (3,):
            raise contents.source.error(
                f"tets have shape {tets.shape}, triangles {triangles.shape}; expected four, three"
            )
        return TetMesh(contents.numbers("points", 2), tets, triangles, _named(contents, "attribute"), _world(contents))
    return _mesh(contents)


def _mesh(contents: Contents) -> Mesh:
    if "face_corners" not in contents.arrays:
        faces = contents.array("faces")
        if faces.ndim != 2:
            raise contents.source.error(f"faces have shape {faces.shape}; expected (f, 3) or (f, 4)")
        return Mesh(contents.numbers("points", 2), faces)
    count = len(contents.numbers("points", 2))
    corners = contents.indices("face_corners", count, "point")
    offsets = contents.indices("face_offsets", len(corners) + 1, "corner")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(corners) or (np.diff(offsets) < 3).any():
        raise contents.source.error(
            "does not cut the corners into polygons of three or more", location="face_offsets.npy"
        )
    polygons = Polygons(locked(corners), locked(offsets))
    triangles = contents.indices("triangles", count, "point", 2)
    owner = contents.indices("triangle_polygon", len(polygons), "face")
    if triangles.shape != (len(owner), 3):
        raise contents.source.error(
            f"has shape {triangles.shape}; expected ({len(owner)}, 3)", location="triangles.npy"
        )
    return Mesh(
        contents.numbers("points", 2),
        polygons,
        triangles=triangles,
        triangle_polygon=owner,
        uvs=_layer(contents, "uv"),
        normals=_layer(contents, "normal"),
        labels=_labels(contents),
        appearances=_appearances(contents),
        attributes=_named(contents, "attribute"),
        vertex_groups=_named(contents, "group"),
        world=_world(contents),
        bind_offsets={name: contents.numbers(f"bind_{k}", 2) for k, name in enumerate(_names(contents, "binds"))},
    )


def _world(contents: Contents) -> World | None:
    up = contents.field("up", str, "")
    metres = float(contents.field("metres", float, 1.0)) if "metres" in contents.metadata else None
    return World(cast(Any, up), metres) if up else None


def _layer(contents: Contents, name: str) -> Layer | None:
    if f"{name}_values" not in contents.arrays:
        return None
    values = contents.numbers(f"{name}_values", 2)
    return Layer(locked(values), locked(contents.indices(f"{name}_index", len(values), "value")))


def _names(contents: Contents, key: str, metadata: Metadata | None = None) -> tuple[str, ...]:
    names = (contents.metadata if metadata is None else metadata).get(key, [])
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise contents.source.error(f'"{key}" is {names!r:.40}; expected a list of names', location="words.npy")
    return tuple(names)


def _labels(contents: Contents) -> dict[str, Labels]:
    labels = {}
    for k, entry in enumerate(contents.field("labels", list, [])):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise contents.source.error("labels have no name", location="words.npy")
        names = _names(contents, "names", entry)
        labels[entry["name"]] = Labels(names, locked(contents.indices(f"label_{k}", len(names), "name")))
    return labels


def _named(contents: Contents, kind: str) -> dict[str, NDArray[Any]]:
    names = _names(contents, f"{kind}s")
    if kind == "group":
        return {name: contents.numbers(f"group_{k}", 1) for k, name in enumerate(names)}
    named = {name: contents.array(f"{kind}_{k}") for k, name in enumerate(names)}
    if not all(values.ndim for values in named.values()):
        raise contents.source.error("has an attribute that is a single value; expected one row a point")
    return named


def _appearances(contents: Contents) -> dict[str, Appearance]:
    looks = contents.field("appearances", dict, {})
    for name, look in looks.items():
        if not isinstance(look, Appearance):
            raise contents.source.error(f'material "{name:.40}" is not one', location="words.npy")
    return looks


def _skeleton(contents: Contents) -> Skeleton:
    names = _names(contents, "joints")
    where = contents.field("ends", list, [])
    ends = contents.numbers("ends", 2)
    if not all(isinstance(j, int) and 0 <= j < len(names) for j in where) or ends.shape != (len(where), 3):
        raise contents.source.error(f"has {ends.shape} ends for joints {where!r:.40}", location="ends.npy")
    parents = contents.array("parents")
    if not np.issubdtype(parents.dtype, np.integer):
        raise contents.source.error(f"holds {parents.dtype}; expected joint numbers", location="parents.npy")
    tips = {j: locked(ends[k]) for k, j in enumerate(where)}
    offsets, at_rest = contents.numbers("offsets", 2), contents.numbers("rest_rotations", 2)
    return Skeleton(names, parents, offsets, at_rest, tips, _world(contents))


def write_mesh(path: Path, content: Mesh) -> None:
    """A mesh with all its layers, labels and materials."""
    _write(path, "mesh", *_mesh_entries(content))


def write_tets(path: Path, content: TetMesh) -> None:
    """Tetrahedra."""
    _write(path, "tets", *_shape_entries(content))


def write_points(path: Path, content: PointCloud) -> None:
    """A point cloud."""
    _write(path, "points", *_shape_entries(content))


def write_shapes(path: Path, content: Shapes) -> None:
    """Named shapes of one mesh."""
    arrays, metadata = _mesh_entries(content.base)
    _write(path, "shapes", {**arrays, "shape_points": content.points}, {**metadata, "names": content.names})


def write_animation(path: Path, content: Animation) -> None:
    """A moving shape of any kind."""
    arrays, metadata = _shape_entries(content.shape)
    shape = {Mesh: "mesh", TetMesh: "tets", PointCloud: "points"}[type(content.shape)]
    metadata = {**metadata, "shape": shape, "fps": float(content.fps), "name": content.name}
    _write(path, "animation", {**arrays, "frames": content.points}, metadata)


def write_skeleton(path: Path, content: Skeleton) -> None:
    """A skeleton at rest."""
    _write(path, "skeleton", *_skeleton_entries(content))


def write_motion(path: Path, content: Motion) -> None:
    """A skeleton and its motion."""
    arrays, metadata = _skeleton_entries(content.skeleton)
    arrays = {**arrays, "rotations": content.rotations, "translations": content.translations}
    metadata = {**metadata, "fps": float(content.fps), "name": content.name, "channels": content.channels}
    _write(path, "motion", arrays, metadata)


def _shape_entries(shape: Mesh | TetMesh | PointCloud) -> tuple[Arrays, Metadata]:
    if isinstance(shape, Mesh):
        return _mesh_entries(shape)
    arrays, metadata = _numbered("attribute", shape.attributes)
    metadata.update(_world_metadata(shape.world))
    arrays["points"] = shape.points
    if isinstance(shape, TetMesh):
        return {**arrays, "tets": shape.tets, "triangles": shape.triangles}, metadata
    if shape.normals is not None:
        arrays["normals"] = shape.normals
    return arrays, metadata


def _mesh_entries(mesh: Mesh) -> tuple[Arrays, Metadata]:
    arrays: Arrays = {
        "points": mesh.points,
        "face_corners": mesh.polygons.corners,
        "face_offsets": mesh.polygons.offsets,
        "triangles": mesh.triangles,
        "triangle_polygon": mesh.triangle_polygon,
    }
    metadata: Metadata = {"appearances": dict(mesh.appearances), "labels": [], **_world_metadata(mesh.world)}
    for key, layer in (("uv", mesh.uvs), ("normal", mesh.normals)):
        if layer is not None:
            arrays.update({f"{key}_values": layer.values, f"{key}_index": layer.index})
    for k, (name, label) in enumerate(mesh.labels.items()):
        arrays[f"label_{k}"] = label.index
        metadata["labels"].append({"name": name, "names": label.names})
    named = ("attribute", mesh.attributes), ("group", mesh.vertex_groups), ("bind", mesh.bind_offsets)
    for kind, values in named:
        more_arrays, more_metadata = _numbered(kind, values)
        arrays.update(more_arrays)
        metadata.update(more_metadata)
    return arrays, metadata


def _world_metadata(world: World | None) -> Metadata:
    if world is None:
        return {}
    return {"up": world.up} if world.metres is None else {"up": world.up, "metres": float(world.metres)}


def _numbered(kind: str, values: Mapping[str, NDArray[Any]]) -> tuple[Arrays, Metadata]:
    arrays = {f"{kind}_{k}": np.asarray(table) for k, table in enumerate(values.values())}
    return arrays, {f"{kind}s": list(values)}


def _skeleton_entries(skeleton: Skeleton) -> tuple[Arrays, Metadata]:
    ends = sorted(skeleton.ends)
    arrays: Arrays = {
        "parents": skeleton.parents,
        "offsets": skeleton.offsets,
        "rest_rotations": skeleton.rest_rotations,
        "ends": np.array([skeleton.ends[j] for j in ends], dtype=np.float64).reshape(-1, 3),
    }
    metadata = _world_metadata(skeleton.world)
    return arrays, {**metadata, "joints": skeleton.names, "ends": [int(j) for j in ends]}


def _write(path: Path, kind: str, arrays: Arrays, metadata: Metadata) -> None:
    blobs: Arrays = {}
    text = json.dumps(to_json(metadata, blobs), ensure_ascii=True)
    head: Arrays = {"pliant": np.array(VERSION), "kind": np.array(kind), "words": np.array(text)}
    for key, values in arrays.items():
        if values.dtype.hasobject:
            raise InputError(f'"{key}" holds Python objects; expected numbers')
    write_arrays(path, {**head, **arrays, **blobs})
