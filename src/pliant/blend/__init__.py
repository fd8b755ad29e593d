"""Physical blendshapes (Ma et al. 2011): poses of one mesh, blended as a body of springs."""

from pliant.blend.blendshapes import Blendshapes
from pliant.blend.live import LiveBlend
from pliant.blend.pulls import Pull

__all__ = ["Blendshapes", "LiveBlend", "Pull"]
