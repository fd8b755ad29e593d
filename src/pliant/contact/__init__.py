"""Contact: what shapes bump into, and how they give way."""

from pliant.contact.mesh_obstacle import MeshObstacle as MeshObstacle
from pliant.contact.obstacle_files import parse_obstacle as parse_obstacle, read_motion as read_motion
from pliant.contact.obstacles import MovingObstacle as MovingObstacle, Obstacle as Obstacle, as_obstacle as as_obstacle
from pliant.contact.solids import (
    Box as Box,
    Capsule as Capsule,
    Cylinder as Cylinder,
    HalfSpace as HalfSpace,
    Sphere as Sphere,
)
