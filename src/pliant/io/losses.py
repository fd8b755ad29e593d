"""Warnings about what a format cannot store: one line for each file, the same for all frames of a clip."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from pliant.core.errors import PliantWarning
from pliant.core.shapes import Mesh, World

_LABEL_NAMES = {"object": "objects", "group": "groups", "material": "material assignments", "smoothing": "smoothing"}


def warn_of_losses(format: str, lost: Collection[str]) -> None:
    """Say that a file of this format does not hold these; nothing if there are none."""
    if lost:
        warnings.warn(f"{format} cannot hold {', '.join(lost)}: left out", PliantWarning, stacklevel=3)


def mesh_losses(mesh: Mesh, *, keeps: Collection[str] = (), attributes: Collection[str] = ()) -> list[str]:
    """What a mesh has beyond its points and faces that is not among what the format `keeps`.

    keeps: of "uvs", "normals", "labels", "appearances" and "vertex_groups". attributes: the names of those kept.
    Not counted: a partition into one part, and the axes and units that are assumed anyway.
    """
    field_names = {"uvs": "UVs", "normals": "normals", "appearances": "materials", "vertex_groups": "vertex groups"}
    lost = [word for field, word in field_names.items() if field not in keeps and getattr(mesh, field)]
    if "labels" not in keeps:
        parted = [name for name, label in mesh.labels.items() if len(label.names) > 1]
        lost += [_LABEL_NAMES.get(name, f'labels "{name}"') for name in parted]
    lost += ["axes and units"] if mesh.world not in (None, World()) else []
    return lost + [f'attribute "{name}"' for name in mesh.attributes if name not in attributes]
