"""pliant in Blender: physical shape keys, flesh on armatures, transferred motion.

`scenes` turns objects into a scene of pliant's, `jobs` runs it in a process beside Blender, `results` shows what it
gives as a point cache on a copy of the object. `live` follows shape keys while they are dragged.
"""

from . import live, operators, panels, properties

MODULES = (properties, operators, live, panels)


def register() -> None:
    for module in MODULES:
        module.register()


def unregister() -> None:
    for module in reversed(MODULES):
        module.unregister()
