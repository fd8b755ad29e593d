"""The sidebar of the 3D view: one panel an engine."""

from __future__ import annotations

import bpy

from . import live


class Sidebar:
    bl_space_type, bl_region_type, bl_category = "VIEW_3D", "UI", "pliant"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.object is not None and context.object.type == "MESH"


class PLIANT_PT_keys(Sidebar, bpy.types.Panel):
    bl_label = "Shape keys"

    def draw(self, context: bpy.types.Context) -> None:
        layout, thing = self.layout, context.object
        follows = thing.name in live.followers
        layout.operator("pliant.live_keys", text="Stop following" if follows else "Follow shape keys", depress=follows)
        layout.prop(thing.pliant, "correctives")
        layout.operator("pliant.bake_keys")
        _draw_contact(layout, thing)
        layout.prop(thing.pliant, "pulls")
        layout.operator("pliant.add_pull")


class PLIANT_PT_flesh(Sidebar, bpy.types.Panel):
    bl_label = "Flesh"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, options = self.layout, context.object.pliant
        for name in ("young", "poisson", "density", "damping", "nodes"):
            layout.prop(options, name)
        for k, region in enumerate(options.regions):
            row = layout.row()
            row.prop(region, "young", text=region.name)
            row.operator("pliant.remove_region", text="", icon="X").index = k
        layout.operator("pliant.add_region")
        _draw_contact(layout, context.object)
        layout.operator("pliant.bake_flesh")


class PLIANT_PT_transfer(Sidebar, bpy.types.Panel):
    bl_label = "Transfer"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, options = self.layout, context.object.pliant
        layout.prop(options, "source")
        layout.prop(options, "cage")
        layout.prop(options, "cage_faces")
        layout.operator("pliant.build_cage")
        layout.operator("pliant.bake_transfer")


def _draw_contact(layout: bpy.types.UILayout, thing: bpy.types.Object) -> None:
    layout.prop(thing.pliant, "colliders")
    if thing.pliant.colliders is not None:
        layout.prop(thing.pliant, "friction")
    layout.prop(thing.pliant, "self_contact")


CLASSES = (PLIANT_PT_keys, PLIANT_PT_flesh, PLIANT_PT_transfer)


def register() -> None:
    for each in CLASSES:
        bpy.utils.register_class(each)


def unregister() -> None:
    for each in reversed(CLASSES):
        bpy.utils.unregister_class(each)
