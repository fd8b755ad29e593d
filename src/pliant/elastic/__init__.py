"""Elastic: meshless flesh on a skeleton (Song et al. 2006, "Meshless simulation for skeleton driven elastic ...").

A body is filled with nodes (`nodes`), whose functions are moving least squares (`mls`, Eq. 4-8), integrated on
background cells cut by the surface (`cells`). Bones hold it by their samples (`bones`, `samples`), whose rotations
diffuse through it (`diffusion`, Eq. 12-14) and warp Hooke's law (`warping`, Eq. 9-11). `ElasticBody` poses it in one
step (`statics`, Eq. 2) or lets it swing (`dynamics`, Eq. 15). Skeletons are found in a mesh (`curve_skeleton`), drawn
by clicks (`clicks`), and bend as nonlinear rods (`rod`).
"""

from pliant.elastic.body import ElasticBody, ElasticPose
from pliant.elastic.clicks import click_joint
from pliant.elastic.curve_skeleton import extract_skeleton
from pliant.elastic.dynamics import BodyState
from pliant.elastic.material import Material
from pliant.elastic.rod import Rod, RodPose
from pliant.elastic.simulation import Simulation

__all__ = [
    "BodyState",
    "ElasticBody",
    "ElasticPose",
    "Material",
    "Rod",
    "RodPose",
    "Simulation",
    "click_joint",
    "extract_skeleton",
]
