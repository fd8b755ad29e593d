"""Reports: what was made, how it compares, and how the solver went, as one web page that needs nothing else.

Each engine writes its own (such as `pliant.engines.blend.app.report`) from the parts here: page, curves, close-ups and
contact.
"""

from pliant.app.report.contact import Contact
from pliant.former import attribute as __getattr__  # noqa: F401

__all__ = ["Contact"]
