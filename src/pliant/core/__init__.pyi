from . import rotations as rotations, shapes as shapes, skeleton as skeleton, topology as topology
