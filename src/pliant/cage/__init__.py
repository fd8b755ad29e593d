"""Cage deformation and transfer (Chen et al. 2010): Green coordinates, and a cage that follows constraints."""

from pliant.cage.adapt import after_from, before_from
from pliant.cage.blocks import rigid_blocks
from pliant.cage.bones import bone_controls
from pliant.cage.build import build_cage
from pliant.cage.checked import Cage
from pliant.cage.controls import Weights
from pliant.cage.green import green_coordinates
from pliant.cage.groups import rigid_groups
from pliant.cage.mean_value import mean_value_coordinates
from pliant.cage.plan import Control, Follow
from pliant.cage.rig import CagePose, CageRig, CageSolution
from pliant.cage.sources import Track, cell_tracks, group_tracks, joint_tracks, matrix_tracks, rod_tracks
from pliant.cage.transfer import Transfer, transfer

__all__ = [
    "Cage",
    "CagePose",
    "CageRig",
    "CageSolution",
    "Control",
    "Follow",
    "Track",
    "Transfer",
    "Weights",
    "after_from",
    "before_from",
    "bone_controls",
    "build_cage",
    "cell_tracks",
    "green_coordinates",
    "group_tracks",
    "joint_tracks",
    "matrix_tracks",
    "mean_value_coordinates",
    "rigid_blocks",
    "rigid_groups",
    "rod_tracks",
    "transfer",
]
