"""The studio: all three engines in a browser, with the mouse.

    studio = Studio(["hand.glb"])           # or a scene, or nothing for the gallery
    print(studio.address)
    studio.wait()

A window's state is a scene document (`pliant.scene`), which the engine's panel (`blend`, `cage`, `elastic`) changes and
shows on its `Stage`; a `Worker` solves beside the page, coarse while something is dragged and finer when it rests.
"""

from pliant.studio.server import Studio

__all__ = ["Studio"]
