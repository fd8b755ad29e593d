"""The studio: all three engines in a browser, with the mouse.

    studio = Studio(["hand.glb"])           # or a scene, or nothing for the gallery
    print(studio.address)
    studio.wait()

A window's state is a scene document (`pliant.app.scene`), which the engine's panel changes and shows on its
`Viewport`; a `Worker` solves beside the page, coarse while something is dragged and finer when it rests.
"""

from pliant.app.studio.server import Studio

__all__ = ["Studio"]
