"""What users start: command line, scene files, reports, studio and demo, all driven by the table of engines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
