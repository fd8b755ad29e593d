from . import rotations as rotations
from . import shapes as shapes
from . import skeleton as skeleton
from . import topology as topology
