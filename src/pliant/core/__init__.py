"""Data types that every other package uses: shapes, clips, skeletons, rotations, topology, options, errors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
