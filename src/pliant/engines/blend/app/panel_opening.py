"""What the studio opens to be blended."""

from __future__ import annotations

from typing import Any

import pliant
from pliant import gallery
from pliant.app.studio.desk import Document
from pliant.core.errors import FileError, InputError

BLEND_EXAMPLES: dict[str, Document] = {
    "Hand: blend poses": {"engine": "blend", "shapes": {"gallery": "hand"}},
    "Face: blend expressions": {"engine": "blend", "shapes": {"gallery": "face"}},
    "Animal: blend poses": {"engine": "blend", "shapes": {"gallery": "animal"}},
}


def opens(shape: dict[str, Any], kinds: tuple[str, ...]) -> tuple[int, Document]:
    """See `pliant.engines.registry.Engine.opens`: several poses. Bones say more than poses, if a file has both."""
    posed = "files" in shape or shape.get("gallery") in gallery.POSED
    if not posed and not (("shapes" in kinds or not kinds) and _has_poses(shape)):
        raise InputError("this shape has one pose; open another pose of the same mesh, and they are blended")
    return 0 if "motion" in kinds else 4, {"engine": "blend", "shapes": shape}


def _has_poses(shape: dict[str, Any]) -> bool:
    try:
        return "file" in shape and len(pliant.read_shapes(shape["file"])) > 1
    except FileError:
        return False
