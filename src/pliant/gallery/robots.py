"""A toy robot of many closed parts: what a scene or a CAD export looks like, several objects and materials in one mesh.

Each part is a rounded box, a cylinder or a sphere in quads, with vertices by its share of the surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.core.rotations import from_axis_angle, rotate
from pliant.core.shapes import Appearance, Labels, Layer, Mesh
from pliant.core.topology import Floats
from pliant.gallery.primitives import box_mesh, cylinder_mesh, sphere_mesh
from pliant.gallery.sizes import check_count

MATERIALS = {
    "shell": (0.80, 0.27, 0.06, 1.0),
    "panel": (0.88, 0.82, 0.68, 1.0),
    "steel": (0.32, 0.34, 0.37, 1.0),
    "rubber": (0.05, 0.05, 0.06, 1.0),
    "lamp": (0.10, 0.60, 0.75, 1.0),
    "button": (0.80, 0.05, 0.04, 1.0),
}


@dataclass(frozen=True)
class RobotPart:
    """One closed solid of the robot."""

    name: str
    form: Literal["box", "cylinder", "sphere"]
    size: tuple[float, float, float]
    """Width, height and depth; of a cylinder diameter, height, diameter before the tilt."""
    centre: tuple[float, float, float]
    material: str
    tilt: tuple[float, float] = (0.0, 0.0)
    """Degrees about x, then about z."""
    rounding: float = 0.0

    @property
    def area(self) -> float:
        """Surface of the box around it."""
        x, y, z = self.size
        return 2 * (x * y + y * z + z * x)

    def mesh(self, n: int) -> Mesh:
        """The part at its position, with about n vertices."""
        x, y, _ = self.size
        if self.form == "box":
            mesh = box_mesh(n, np.array(self.size), self.rounding)
        elif self.form == "cylinder":
            mesh = cylinder_mesh(n, x / 2, y, self.rounding)
        else:
            mesh = sphere_mesh(n, x / 2)
        about_x, about_z = (
            from_axis_angle(axis, np.radians(angle)) for axis, angle in zip(np.eye(3)[[0, 2]], self.tilt, strict=True)
        )
        return mesh.with_points(rotate(about_z, rotate(about_x, mesh.points)) + self.centre)


def _pair(part: RobotPart) -> list[RobotPart]:
    """The part and its mirror image: left (+x), right (-x)."""
    x, y, z = part.centre
    left = RobotPart(f"left {part.name}", part.form, part.size, (x, y, z), part.material, part.tilt, part.rounding)
    tilt = (part.tilt[0], -part.tilt[1])
    return [left, RobotPart(f"right {part.name}", part.form, part.size, (-x, y, z), part.material, tilt, part.rounding)]


def _parts() -> list[RobotPart]:
    single = [
        RobotPart("body", "box", (1.10, 1.15, 0.72), (0, 1.55, 0), "shell", rounding=0.12),
        RobotPart("chest panel", "box", (0.72, 0.52, 0.10), (0, 1.68, 0.36), "panel", rounding=0.04),
        RobotPart("dial", "cylinder", (0.26, 0.08, 0.26), (-0.17, 1.72, 0.43), "lamp", (90, 0), 0.02),
        RobotPart("belt", "box", (1.16, 0.14, 0.78), (0, 1.10, 0), "steel", rounding=0.04),
        RobotPart("neck", "cylinder", (0.30, 0.24, 0.30), (0, 2.20, 0), "steel"),
        RobotPart("head", "box", (0.86, 0.66, 0.66), (0, 2.58, 0), "shell", rounding=0.14),
        RobotPart("mouth", "box", (0.42, 0.10, 0.08), (0, 2.40, 0.33), "steel", rounding=0.03),
        RobotPart("antenna", "cylinder", (0.06, 0.34, 0.06), (0, 3.05, 0), "steel"),
        RobotPart("antenna ball", "sphere", (0.17, 0.17, 0.17), (0, 3.28, 0), "button"),
        RobotPart("button", "sphere", (0.12, 0.12, 0.12), (0.20, 1.78, 0.42), "button"),
        RobotPart("switch", "box", (0.16, 0.08, 0.08), (0.20, 1.58, 0.42), "rubber", rounding=0.02),
    ]
    paired = [
        RobotPart("eye", "sphere", (0.25, 0.25, 0.25), (0.20, 2.66, 0.30), "lamp"),
        RobotPart("ear", "cylinder", (0.26, 0.12, 0.26), (0.48, 2.58, 0), "steel", (0, 90), 0.03),
        RobotPart("shoulder", "sphere", (0.36, 0.36, 0.36), (0.68, 1.95, 0), "steel"),
        RobotPart("upper arm", "cylinder", (0.22, 0.46, 0.22), (0.80, 1.66, 0), "rubber", (0, 18)),
        RobotPart("elbow", "sphere", (0.26, 0.26, 0.26), (0.88, 1.42, 0), "steel"),
        RobotPart("forearm", "box", (0.30, 0.50, 0.30), (0.88, 1.16, 0.12), "shell", (-28, 0), 0.07),
        RobotPart("hand", "cylinder", (0.22, 0.12, 0.22), (0.88, 0.90, 0.26), "steel", (-28, 0), 0.03),
        RobotPart("outer finger", "box", (0.07, 0.22, 0.14), (0.97, 0.78, 0.33), "rubber", (-28, 10), 0.02),
        RobotPart("inner finger", "box", (0.07, 0.22, 0.14), (0.79, 0.78, 0.33), "rubber", (-28, -10), 0.02),
        RobotPart("thigh", "cylinder", (0.28, 0.44, 0.28), (0.30, 0.86, 0), "rubber"),
        RobotPart("knee", "sphere", (0.32, 0.32, 0.32), (0.30, 0.63, 0), "steel"),
        RobotPart("shin", "box", (0.36, 0.42, 0.38), (0.30, 0.38, 0), "shell", rounding=0.08),
        RobotPart("foot", "box", (0.46, 0.22, 0.70), (0.30, 0.11, 0.10), "steel", rounding=0.09),
    ]
    return single + [part for one in paired for part in _pair(one)]


def robot(n: int = 6000) -> Mesh:
    """A toy robot of 37 closed parts and about n vertices, with objects, materials and UVs."""
    check_count(n, "robot")
    parts = _parts()
    meshes = _divided(parts, n)
    starts = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    quads = np.concatenate(
        [mesh.polygons.corners.reshape(-1, 4) + start for mesh, start in zip(meshes, starts, strict=False)]
    )
    owner = np.repeat(np.arange(len(parts)), [len(mesh.polygons) for mesh in meshes])
    materials = tuple(MATERIALS)
    of_part = np.array([materials.index(part.material) for part in parts])
    return Mesh(
        np.concatenate([mesh.points for mesh in meshes]),
        quads,
        uvs=_joined_uvs(meshes),
        labels={
            "object": Labels(tuple(part.name for part in parts), owner),
            "material": Labels(materials, of_part[owner]),
        },
        appearances={name: Appearance(color) for name, color in MATERIALS.items()},
    )


def _divided(parts: list[RobotPart], n: int) -> list[Mesh]:
    """The parts with vertices by area, the body taking what rounding leaves over."""
    areas = np.array([part.area for part in parts])
    share = n * areas / areas.sum()
    floor = np.maximum(share, 8)
    meshes = [part.mesh(max(8, round(count))) for part, count in zip(parts, floor * n / floor.sum(), strict=True)]
    rest = n - sum(len(mesh.points) for mesh in meshes[1:])
    return [parts[0].mesh(max(8, rest)), *meshes[1:]]


def _joined_uvs(meshes: list[Mesh]) -> Layer:
    values: list[Floats] = []
    index, start = [], 0
    for mesh in meshes:
        assert mesh.uvs is not None
        values.append(mesh.uvs.values)
        index.append(mesh.uvs.index + start)
        start += len(mesh.uvs.values)
    return Layer(np.concatenate(values), np.concatenate(index))
