"""Physical blendshapes (Ma et al. 2011): poses of one mesh, blended as a body of springs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
