"""Reads an FBX file with ufbx and prints what it holds as an NPZ: run as a separate process, which may crash.

Arguments: the file, a request as JSON, and the folders to import from. The request names a clip by number (or none),
its frames a second (or none: the file's own), and whether geometry is wanted. Leaves with `REFUSED` and a line that
says why if ufbx refuses the file, and any other code but 0 if it crashes or takes too much.

Lists of ufbx 0.0.5, when they are freed, give back a reference to their scene that they never took, and soon the scene
is freed under the others. So everything is kept, and the process ends without freeing anything.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = sys.argv[3:]
from pliant.core.limits import REFUSED, Allowance, RefusedError

FBX_ALLOWANCE = Allowance(1 << 30, 100, 60, 1 << 20)
MOST_FBX_FRAMES = 1_000_000
MOST_TRANSFORMS = 20_000_000
"""Nodes times frames."""
FBX_AXES = ("POSITIVE_X", "POSITIVE_Y", "POSITIVE_Z")

_kept: list[Any] = []


def main() -> int:
    """Parse, and print."""
    path, request = sys.argv[1:3]
    FBX_ALLOWANCE.limit(os.path.getsize(path))
    import ufbx

    try:
        about, arrays = parsed(path, **json.loads(request))
    except (RefusedError, ufbx.UfbxError) as error:
        own = isinstance(error, RefusedError)
        text = str(error) if own else f"ufbx cannot read it ({error}); expected an FBX scene"
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        return REFUSED
    buffer = io.BytesIO()
    np.savez(buffer, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    sys.stdout.buffer.write(buffer.getbuffer())
    return 0


def keep(value: Any) -> Any:
    """A value that is never freed."""
    _kept.append(value)
    return value


def listed(values: Any) -> Iterator[Any]:
    """What a list of ufbx holds."""
    for k in range(len(keep(values))):
        yield keep(values[k])


def table(values: Any, width: int, kind: type = float) -> Any:
    """A list of ufbx as an array (n, width), or (n,) for a width of 0."""
    return np.array(list(keep(values)), dtype=kind).reshape((-1, width) if width else -1)


def matrix(value: Any) -> Any:
    """(4, 4) of columns (4, 3)."""
    return np.vstack([np.array(value, dtype=float).T, [0, 0, 0, 1]])


def loaded(path: str, **options: Any) -> Any:
    """The scene: right-handed, y or z up, and every node's scale that of its parent times its own."""
    import ufbx

    options["inherit_mode_handling"] = ufbx.InheritModeHandling.HELPER_NODES
    options["index_error_handling"] = ufbx.IndexErrorHandling.ABORT_LOADING  # not: clamp them, and show another shape
    scene = keep(ufbx.load_file(path, **options))
    axes = keep(scene.settings).axes
    if axes.up in (ufbx.CoordinateAxis.POSITIVE_Y, ufbx.CoordinateAxis.POSITIVE_Z) and right_handed(axes):
        return scene
    if ufbx.CoordinateAxis.UNKNOWN in axes:
        return scene
    target = ufbx.CoordinateAxes(*(ufbx.CoordinateAxis[name] for name in FBX_AXES))
    return keep(ufbx.load_file(path, target_axes=target, handedness_conversion_axis=ufbx.MirrorAxis.X, **options))


def right_handed(axes: Any) -> bool:
    """Whether right, up and front, each an axis (2 for each of x, y and z: forth and back), are."""
    vectors = [np.eye(3)[int(axis) // 2] * (1 - 2 * (int(axis) % 2)) for axis in axes]
    return bool(np.linalg.det(vectors) > 0)


def parsed(path: str, clip: int | None, fps: float | None, geometry: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the file holds: names and numbers, and arrays; what is of part 3 is called "3.points" and so on."""
    import ufbx

    scene = loaded(path, ignore_geometry=not geometry, ignore_embedded=not geometry)
    settings = keep(scene.settings)
    nodes = list(listed(scene.nodes))
    number = {node.element_id: k for k, node in enumerate(nodes)}
    parents = [number[above.element_id] if (above := keep(node.parent)) else -1 for node in nodes]
    stacks = [stack for stack in listed(scene.anim_stacks) if moves(stack)]
    arrays: dict[str, Any] = {
        "parents": np.array(parents, dtype=np.int64),
        "local": np.stack([matrix(node.node_to_parent) for node in nodes]),
    }
    parts: list[dict[str, Any]] = []
    for node in nodes:
        mesh = keep(node.mesh)
        if mesh and node.visible:
            found, values = part(node, mesh, number)
            arrays |= {f"{len(parts)}.{name}": value for name, value in values.items()}
            parts.append(found)
    about: dict[str, Any] = {
        "creator": str(keep(scene.metadata).creator),
        "version": int(keep(scene.metadata).version),
        "up": "z" if settings.axes.up == ufbx.CoordinateAxis.POSITIVE_Z else "y",
        "metres": settings.unit_meters,
        "fps": settings.frames_per_second,
        "nodes": [node.name for node in nodes],
        "bones": [k for k, node in enumerate(nodes) if keep(node.bone)],
        "clips": [[stack.name, *span(stack)] for stack in stacks],
        "parts": parts,
        "materials": {},
    }
    for k, material in enumerate(listed(scene.materials)):
        found, arrays[f"texture {k}"] = look(material)
        about["materials"].setdefault(material.name, {**found, "number": k})  # of several with one name, the first
    if clip is not None and clip < len(stacks):
        about["rate"], motion = moved(scene, stacks[clip], nodes, fps or settings.frames_per_second)
        arrays |= motion
    return about, arrays


def moves(stack: Any) -> bool:
    """Whether anything is animated."""
    return any(len(keep(layer.anim_props)) for layer in listed(stack.layers))


def span(stack: Any) -> tuple[float, float]:
    """When a clip begins and ends, in seconds: as it says, or else at its first and last key."""
    if stack.time_end > stack.time_begin:
        return stack.time_begin, stack.time_end
    values = [value for layer in listed(stack.layers) for value in listed(layer.anim_values)]
    curves = [curve for value in values for curve in keep(value.curves) if curve and len(keep(curve.keyframes))]
    if not curves:
        return stack.time_begin, stack.time_begin
    return min(curve.min_time for curve in curves), max(curve.max_time for curve in curves)


def channels(mesh: Any) -> list[tuple[str, Any]]:
    """The sliders of a mesh and their names, without that of the deformer in front, as Maya writes it."""
    found = []
    for deformer in listed(mesh.blend_deformers):
        for channel in listed(deformer.channels):
            found.append((channel.name.removeprefix(f"{deformer.name}."), channel))
    plain = [name for name, _ in found]
    return [(name if plain.count(name) == 1 else channel.name, channel) for name, channel in found]


def part(node: Any, mesh: Any, number: dict[int, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A mesh at a node."""
    sizes = np.array([face.num_indices for face in keep(mesh.faces)], dtype=np.int64)
    arrays = {
        "points": table(mesh.vertices, 3),
        "sizes": sizes,
        "corners": table(mesh.vertex_indices, 0, int),
        "to_node": matrix(node.geometry_to_node),
        "material": table(mesh.face_material, 0, int),
    }
    layers = {"uv": (mesh.vertex_uv, 2), "normal": (mesh.vertex_normal, 3), "color": (mesh.vertex_color, 4)}
    for name, (layer, width) in layers.items():
        if keep(layer).exists:
            arrays[name], arrays[f"{name}_index"] = table(layer.values, width), table(layer.indices, 0, int)
    sliders = []
    for k, (name, channel) in enumerate(channels(mesh)):
        frames = list(listed(channel.keyframes))
        sliders.append({"name": name, "at": [frame.target_weight for frame in frames], "weight": channel.weight})
        for m, frame in enumerate(frames):
            shape = keep(frame.shape)
            arrays[f"target{k}.{m}.rows"] = table(shape.offset_vertices, 0, int)
            arrays[f"target{k}.{m}.offsets"] = table(shape.position_offsets, 3)
    deformers = list(listed(mesh.skin_deformers))
    about = {
        "node": number[node.element_id],
        "mesh": mesh.name,
        "materials": [material.name for material in listed(node.materials)],
        "sliders": sliders,
        "skins": len(deformers),
        "method": int(deformers[0].skinning_method) if deformers else 0,
    }
    return about, arrays | (skin(deformers[0], number) if deformers else {})


def skin(deformer: Any, number: dict[int, int]) -> dict[str, Any]:
    """Joints, how they are bound, and their weights as rows, columns and values."""
    clusters = [(cluster, bone) for cluster in listed(deformer.clusters) if (bone := keep(cluster.bone_node))]
    rows = [table(cluster.vertices, 0, int) for cluster, _ in clusters]
    return {
        "joints": np.array([number[bone.element_id] for _, bone in clusters], dtype=np.int64),
        "to_joint": np.array([matrix(cluster.geometry_to_bone) for cluster, _ in clusters]).reshape(-1, 4, 4),
        "bind": np.array([matrix(cluster.bind_to_world) for cluster, _ in clusters]).reshape(-1, 4, 4),
        "rows": np.concatenate([*rows, np.zeros(0, np.int64)]),
        "columns": np.repeat(np.arange(len(rows)), [len(one) for one in rows]),
        "weights": np.concatenate([*(table(cluster.weights, 0) for cluster, _ in clusters), np.zeros(0)]),
    }


def look(material: Any) -> tuple[dict[str, Any], Any]:
    """A material's colour and the names of its texture's file, and the texture itself if it is in the file."""
    color = keep(keep(material.pbr).base_color)
    if not color.has_value and not keep(color.texture):
        color = keep(keep(material.fbx).diffuse_color)
    texture = keep(color.texture)
    names = (texture.relative_filename, texture.filename, texture.absolute_filename) if texture else ()
    found = {
        "color": list(color.value_vec4)[:3] if color.has_value else None,
        "textures": [name for name in dict.fromkeys(names) if name],
    }
    return found, np.frombuffer(bytes(texture.content) if texture else b"", np.uint8)


def moved(scene: Any, stack: Any, nodes: list[Any], fps: float) -> tuple[float, dict[str, Any]]:
    """Frames a second, and the transforms of nodes and weights of sliders in a clip."""
    import ufbx

    begin, end = span(stack)
    length = (end - begin) * fps
    if not (math.isfinite(length) and 0 <= length < min(MOST_FBX_FRAMES, MOST_TRANSFORMS / len(nodes))):
        raise RefusedError(
            f'has a clip "{stack.name}" of {length:.3g} frames of {len(nodes)} nodes; expected fewer: give a lower fps'
        )
    times = begin + np.arange(math.ceil(length - 1e-3) + 1) / fps
    anim = keep(stack.anim)
    local = np.empty((len(times), len(nodes), 10))
    for k, time in enumerate(times.tolist()):
        for j, node in enumerate(nodes):
            at = ufbx.evaluate_transform(anim, node, time)
            local[k, j] = (*at.translation, *at.rotation, *at.scale)
    arrays: dict[str, Any] = {"moved": local}
    drawn = [mesh for node in nodes if (mesh := keep(node.mesh)) and node.visible]
    for p, mesh in enumerate(drawn):
        sliders = [channel for _, channel in channels(mesh)]
        values = [[ufbx.evaluate_blend_weight(anim, each, time) for each in sliders] for time in times.tolist()]
        arrays[f"{p}.shares"] = np.array(values).reshape(len(times), len(sliders))
    return fps, arrays


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
