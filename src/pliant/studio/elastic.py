from pliant.studio.blend import BlendPanel as ElasticPanel

__all__ = ["ElasticPanel"]
