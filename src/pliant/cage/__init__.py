"""Cage deformation and transfer (Chen et al. 2010): Green coordinates, and a cage that follows constraints."""

from pliant.cage.checked import Cage
from pliant.cage.green import green_coordinates

__all__ = ["Cage", "green_coordinates"]
