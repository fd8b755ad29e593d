"""Elastic: meshless flesh on a skeleton (Song et al. 2006, "Meshless simulation for skeleton driven elastic ...").

A body is filled with nodes (`nodes`), whose functions are moving least squares (`mls`, Eq. 4-8), integrated on
background cells cut by the surface (`cells`). Bones hold it by their samples (`bones`, `samples`), whose rotations
diffuse through it (`diffusion`, Eq. 12-14) and warp Hooke's law (`warping`, Eq. 9-11). `ElasticBody` poses it in one
step (`statics`, Eq. 2) or lets it swing (`dynamics`, Eq. 15). Skeletons are found in a mesh (`curve_skeleton`), drawn
by clicks (`clicks`), and bend as nonlinear rods (`rod`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
