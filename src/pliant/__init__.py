"""pliant: shapes that deform the way bodies do.

The public names are those in `__init__.pyi`. Each loads when it is first used, so importing pliant is quick and needs
no optional dependency.
"""

import lazy_loader

from pliant import former

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
former.install(set(__all__))
