"""Geometry processing that knows no engine: distances, surface nets, simplification, skeletons, quality."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
