"""Contact: what shapes bump into, and how they give way."""

from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.obstacle_files import parse_obstacle, read_motion
from pliant.contact.obstacles import MovingObstacle, Obstacle, as_obstacle
from pliant.contact.solids import Box, Capsule, Cylinder, HalfSpace, Sphere

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "HalfSpace",
    "MeshObstacle",
    "MovingObstacle",
    "Obstacle",
    "Sphere",
    "as_obstacle",
    "parse_obstacle",
    "read_motion",
]
