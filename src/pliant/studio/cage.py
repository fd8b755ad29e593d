from pliant.studio.blend import BlendPanel as CagePanel

__all__ = ["CagePanel"]
