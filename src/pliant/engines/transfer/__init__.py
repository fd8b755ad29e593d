"""Cage deformation and transfer (Chen et al. 2010): Green coordinates, and a cage that follows constraints."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
