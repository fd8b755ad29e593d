"""Cage deformation and transfer (Chen et al. 2010): Green coordinates, and a cage that follows constraints."""

from pliant.cage.checked import Cage
from pliant.cage.controls import Weights
from pliant.cage.green import green_coordinates
from pliant.cage.mean_value import mean_value_coordinates
from pliant.cage.rig import CagePose, CageRig, CageSolution

__all__ = [
    "Cage",
    "CagePose",
    "CageRig",
    "CageSolution",
    "Weights",
    "green_coordinates",
    "mean_value_coordinates",
]
