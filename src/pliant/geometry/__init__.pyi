from . import quality as quality
from . import spatial as spatial
