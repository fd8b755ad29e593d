"""An object's options (`object.pliant`), whose ranges and defaults are those of pliant, and where caches go."""

import tempfile
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, IntProperty, PointerProperty, StringProperty

from pliant.engines.blend.options import BlendOptions
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.transfer.options import TransferOptions

FLOAT_DIGITS = 4


def slider(options: Any, name: str) -> Any:
    """The property of an option of pliant's."""
    about = options.about(name)
    words: dict[str, Any] = {
        "name": about.label or about.name.replace("_", " ").capitalize(),
        "description": about.help + (f", in {about.unit}" if about.unit else ""),
        "default": about.default,
    }
    if isinstance(about.default, bool):
        return BoolProperty(**words)
    words |= {"soft_min": about.slider[0], "soft_max": about.slider[1]}
    if isinstance(about.default, int):
        return IntProperty(**words, min=about.kind.least, max=about.kind.most)
    return bpy.props.FloatProperty(**words, precision=FLOAT_DIGITS)


def can_be_source(self: Any, thing: bpy.types.Object) -> bool:
    return thing.type in ("MESH", "ARMATURE") and thing != self.id_data


def can_be_cage(self: Any, thing: bpy.types.Object) -> bool:
    return thing.type == "MESH" and thing != self.id_data


class PLIANT_PG_region(bpy.types.PropertyGroup):
    """A vertex group with a firmness of its own; `name` is the group's."""

    young: slider(SimulateOptions, "young")


class PLIANT_PG_object(bpy.types.PropertyGroup):
    """What pliant is told about an object."""

    young: slider(SimulateOptions, "young")
    poisson: slider(SimulateOptions, "poisson")
    density: slider(SimulateOptions, "density")
    damping: slider(SimulateOptions, "damping")
    nodes: slider(SimulateOptions, "nodes")
    regions: CollectionProperty(type=PLIANT_PG_region)
    friction: slider(BlendOptions, "friction")
    correctives: IntProperty(
        name="Corrective keys", min=0, max=64, soft_max=16,
        description="bake to so many keys beside the object's own, at most; 0: to a Mesh Cache",
    )  # fmt: skip
    self_contact: slider(BlendOptions, "self_contact")
    colliders: PointerProperty(type=bpy.types.Collection, name="Colliders", description="closed meshes in the way")
    pulls: PointerProperty(type=bpy.types.Collection, name="Pulls", description="empties that drag vertices")
    source: PointerProperty(
        type=bpy.types.Object, name="Follows", description="the animated mesh or armature whose motion it takes over",
        poll=can_be_source,
    )  # fmt: skip
    cage: PointerProperty(
        type=bpy.types.Object, name="Cage", description="a closed coarse mesh around it; one is built if none is given",
        poll=can_be_cage,
    )  # fmt: skip
    cage_faces: slider(TransferOptions, "faces")


class PLIANT_preferences(bpy.types.AddonPreferences):
    """Of the whole extension."""

    bl_idname = __package__

    folder: StringProperty(
        name="Cache folder", subtype="DIR_PATH",
        description="where point caches go; empty: pliant_cache beside the .blend file, or a temporary folder",
    )  # fmt: skip
    threads: IntProperty(name="Threads", description="of a bake; 0: as many as there are cores", min=0, max=256)

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.prop(self, "folder")
        self.layout.prop(self, "threads")


def preference(context: bpy.types.Context, name: str) -> Any:
    """A preference, or its default where the extension is not installed as such."""
    found = context.preferences.addons.get(__package__)
    return getattr(found.preferences, name) if found else PLIANT_preferences.bl_rna.properties[name].default


def cache_folder(context: bpy.types.Context) -> Path:
    """Where caches go."""
    chosen = preference(context, "folder")
    if chosen:
        return Path(bpy.path.abspath(chosen))
    if bpy.data.filepath:
        return Path(bpy.data.filepath).parent / "pliant_cache"
    return Path(bpy.app.tempdir or tempfile.gettempdir()) / "pliant_cache"


CLASSES = (PLIANT_PG_region, PLIANT_PG_object, PLIANT_preferences)


def register() -> None:
    for each in CLASSES:
        bpy.utils.register_class(each)
    bpy.types.Object.pliant = PointerProperty(type=PLIANT_PG_object)


def unregister() -> None:
    del bpy.types.Object.pliant
    for each in reversed(CLASSES):
        bpy.utils.unregister_class(each)
