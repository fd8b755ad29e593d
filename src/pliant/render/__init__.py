"""Pictures of shapes and clips, drawn in software: no display, driver or system library is needed.

`picture` draws one shape, `contact_sheet` the frames of a clip (or several clips, one a row), `movie` and `turntable`
write GIF or MP4. All share one look: clay in soft light from the upper left, edges sharper than 50 degrees kept
sharp, folds darkened by ambient occlusion, the insides of open or inverted surfaces tinted blue, a shadow on the
ground. Nothing is smoothed: what looks crumpled is.

Views: azimuth rotates about the up axis, 0 looks from +z, or from -y where z is up; elevation 90 looks down.
``view="auto"`` is from the right and a little above; an open surface, such as a face, is shown from the side that it
faces at rest, the same in every frame and row. ``up`` is one of x, y, z, -x, -y, -z; ``"auto"`` is what the shape's
file says (its `world`), or else y, whatever the shape looks like; a skeleton whose file does not say, as BVH, stands on
its legs. Units and position do not matter: the camera fits what it is shown.
"""

from __future__ import annotations

from pliant.render.camera import Up, View
from pliant.render.color import Color, Colormap
from pliant.render.movie import movie, turntable
from pliant.render.parts import Drawable, Style
from pliant.render.pictures import picture, save
from pliant.render.scene import Extra
from pliant.render.sheet import contact_sheet

__all__ = [
    "Color",
    "Colormap",
    "Drawable",
    "Extra",
    "Style",
    "Up",
    "View",
    "contact_sheet",
    "movie",
    "picture",
    "save",
    "turntable",
]
