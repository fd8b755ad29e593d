from . import quality as quality, spatial as spatial
