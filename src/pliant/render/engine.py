"""From parts and a camera to pixels: gather, rasterise, light, overlay, average.

Parts in style "solid" share one depth buffer. "xray" parts (skeletons by default) have their own and shine through
what is in front of them. "wire" parts and edges are lines over both; hidden ones are faint or left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import unit
from pliant.core.topology import Floats
from pliant.render.camera import Camera
from pliant.render.light import finish, ground_key, ground_pixels, ground_sky, illuminate, occlusion
from pliant.render.parts import RenderPart, Texture, clipped
from pliant.render.raster import (
    Array,
    SampleBuffers,
    Screen,
    SurfaceAttributes,
    draw_lines,
    rasterize,
    resolve,
    resolve_splats,
    splat,
)

SAMPLES_PER_AXIS = 2
"""Samples a pixel in each direction."""
SHADOW_SIZE = 1024
KEY_GRID, SKY_GRID = 288, 144
OCCLUSION_RADIUS = 0.16
LIGHT_WIDTH = 0.1
"""Width of the key light over its distance: how soft shadows are."""
LIGHTS = unit(np.array([[-0.46, 0.62, -0.66], [0.85, 0.10, -0.50], [0.35, 0.55, 0.75]]))
"""Directions towards key, fill and rim light in camera axes (right, up, away)."""


@dataclass(frozen=True, eq=False)
class Ground:
    """The plane below a shape, in world coordinates."""

    up: Floats
    level: float
    """Height along `up`."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """Several parts as one set of arrays, in camera coordinates."""

    points: Floats
    triangles: Array
    normals: Array
    colors: Array
    color_index: Array
    uvs: Array
    uv_index: Array
    image: Array
    measured: Array
    texels: Array
    layout: Array
    balls: Floats
    radii: Floats
    ball_colors: Array
    ball_normals: Array

    @property
    def surface(self) -> SurfaceAttributes:
        """What the triangles look like."""
        return SurfaceAttributes(*(getattr(self, name) for name in SurfaceAttributes._fields))

    @property
    def casters(self) -> tuple[Floats, Array]:
        """Points and triangles that cast shadows; a ball is two crossing squares."""
        if not len(self.balls):
            return self.points, self.triangles
        axes = LIGHTS[0], *np.eye(3)[:2]
        across = unit(np.cross(axes[0], axes[1]))
        other = np.cross(axes[0], across)
        corners = [
            self.balls + self.radii[:, None] * (i * across + j * other)
            for i, j in ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))
        ]
        count = len(self.balls)
        square = np.arange(count)[:, None] + len(self.points)
        quads = np.concatenate([square + count * np.array([[0, 1, 2]]), square + count * np.array([[0, 2, 3]])])
        return np.concatenate([self.points, *corners]), np.concatenate([self.triangles, quads])


def gather(parts: list[RenderPart], camera: Camera) -> Gathered:
    """Join parts, with their indices moved along."""

    def join(arrays: list[Array], kind: Any) -> Array:
        return np.ascontiguousarray(np.concatenate(arrays), dtype=kind)

    def shifted(name: str, table: str) -> Array:
        sizes = np.cumsum([0, *(len(getattr(part, table)) for part in parts)])
        return join([getattr(part, name) + start for part, start in zip(parts, sizes, strict=False)], np.int64)

    textures = [texture for part in parts for texture in part.textures]
    starts = np.cumsum([0, *(len(part.textures) for part in parts)])
    image = [np.where(part.image >= 0, part.image + start, -1) for part, start in zip(parts, starts, strict=False)]
    texels, layout = _pack(textures)
    return Gathered(
        points=camera.see(join([part.points for part in parts], np.float64)),
        triangles=shifted("triangles", "points"),
        normals=join([part.normals @ camera.axes.T for part in parts], np.float32),
        colors=join([part.colors for part in parts], np.float32),
        color_index=shifted("color_index", "colors"),
        uvs=join([part.uvs for part in parts], np.float64),
        uv_index=shifted("uv_index", "uvs"),
        image=join(image, np.int64),
        measured=join([np.full(len(part.triangles), part.measured) for part in parts], np.bool_),
        texels=texels,
        layout=layout,
        balls=camera.see(join([part.balls for part in parts], np.float64)),
        radii=join([part.radii / camera.scale for part in parts], np.float64),
        ball_colors=join([part.ball_colors for part in parts], np.float32),
        ball_normals=join([part.ball_normals @ camera.axes.T for part in parts], np.float32),
    )


def _pack(textures: list[Texture]) -> tuple[Array, Array]:
    """Textures one after another, and where each is."""
    if not textures:
        return np.zeros((1, 3), np.float32), np.zeros((1, 4), np.int64)
    sizes = [texture.pixels.shape[0] * texture.pixels.shape[1] for texture in textures]
    offsets = np.cumsum([0, *sizes[:-1]])
    layout = [
        [offset, *texture.pixels.shape[:2], int(texture.stops)]
        for offset, texture in zip(offsets, textures, strict=True)
    ]
    return np.concatenate([t.pixels.reshape(-1, 3) for t in textures]), np.array(layout, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Lens:
    """The camera's frame at the resolution of samples."""

    height: int
    width: int
    focal: float
    column: float
    row: float

    @classmethod
    def of(cls, camera: Camera) -> Lens:
        """Of a camera, with SAMPLES_PER_AXIS² samples a pixel."""
        frame = camera.frame
        column, row = frame.middle
        return cls(
            SAMPLES_PER_AXIS * frame.height,
            SAMPLES_PER_AXIS * frame.width,
            SAMPLES_PER_AXIS * frame.focal,
            SAMPLES_PER_AXIS * column,
            SAMPLES_PER_AXIS * row,
        )

    @property
    def coarseness(self) -> int:
        """What to divide the sizes of shadow maps by: small pictures do with less."""
        return 1 if max(self.height, self.width) > 480 * SAMPLES_PER_AXIS else 2

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Focal length, centre column, centre row."""
        return self.focal, self.column, self.row

    def project(self, points: Floats) -> Screen:
        """Where points in camera coordinates are seen."""
        ahead = points[:, 2] > 1e-3
        w = np.divide(1.0, points[:, 2], out=np.zeros(len(points)), where=ahead)
        return Screen(self.column + self.focal * points[:, 0] * w, self.row - self.focal * points[:, 1] * w, w)


@dataclass(frozen=True, eq=False)
class ShadedSamples:
    """What samples show: inverse depth, normal, colour, and kind (see `raster.resolve`)."""

    depth: Array
    normal: Array
    albedo: Array
    kind: Array


def draw_layer(scene: Gathered, lens: Lens) -> ShadedSamples:
    """Rasterise triangles and balls, and look up what each sample shows."""
    shape = lens.height, lens.width
    depth, kind = np.zeros(shape, np.float32), np.zeros(shape, np.uint8)
    normal, albedo = np.empty((*shape, 3), np.float32), np.empty((*shape, 3), np.float32)
    samples = SampleBuffers(np.full(shape, -1, np.int32), normal, albedo)
    screen, base = lens.project(scene.points), len(scene.triangles)
    rasterize(screen, scene.triangles, depth, samples.number)
    if len(scene.balls):
        x, y, w = lens.project(scene.balls)
        splat(x, y, scene.balls[:, 2].copy(), scene.radii, lens.focal, base, depth, samples.number)
        reach = np.maximum(lens.focal * scene.radii * w, 0.75)
        resolve_splats(x, y, reach, scene.ball_normals, scene.ball_colors, base, samples)
    if base:
        resolve(screen, scene.surface, samples, kind)
    return ShadedSamples(depth, normal, albedo, kind)


@dataclass(frozen=True, eq=False)
class Shadow:
    """A depth map drawn from the key light."""

    depth: Array
    to_map: Floats
    """(3, 4) from camera coordinates to column, row and closeness to the light."""

    @property
    def density(self) -> float:
        """Pixels of the map over a length of 1."""
        return float(np.linalg.norm(self.to_map[0, :3]))


def draw_shadow(scene: Gathered, middle: Floats, size: int) -> Shadow:
    """The shadow map of all that casts shadows within the normalised scene, a ball of radius 1 around `middle`."""
    depth = np.zeros((size, size), np.float32)
    number = np.empty((size, size), np.int32)
    points, triangles = scene.casters
    key = LIGHTS[0]
    across = unit(np.cross([0.0, 1.0, 0.0], key))
    basis = np.stack([across, np.cross(key, across), key])
    seen = points @ basis.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    low[:2], high[:2] = np.maximum(low, basis @ middle - 1)[:2], np.minimum(high, basis @ middle + 1)[:2]
    span = max(float(np.max(high[:2] - low[:2])), 0.01)
    ratio = 0.9 * size / span
    to_map = np.hstack([basis, np.zeros((3, 1))])
    to_map[:2] *= ratio
    to_map[:2, 3] = 0.5 * size - ratio * 0.5 * (low[:2] + high[:2])
    to_map[2, 3] = 1 - low[2]
    placed = points @ to_map[:, :3].T + to_map[:, 3]
    rasterize(Screen(*np.ascontiguousarray(placed.T)), triangles, depth, number)
    return Shadow(depth, to_map)


def light_layer(layer: ShadedSamples, shadow: Shadow, lens: Lens, camera: Camera, up: Floats, image: Array) -> None:
    """Light a layer's samples and write them over the image."""
    occluded = occlusion(layer.depth, layer.normal, lens.numbers, OCCLUSION_RADIUS)
    lights = np.vstack([LIGHTS, camera.axes @ up])
    step = max(2, round(lens.height / 500))
    seen = layer.depth, layer.normal, layer.albedo, layer.kind, occluded
    shade = shadow.depth, shadow.to_map, LIGHT_WIDTH * shadow.density, 1 / shadow.density
    illuminate(seen, shade, lens.numbers, lights, step, image)


def draw_ground(
    scene: Gathered, shadow: Shadow, lens: Lens, camera: Camera, ground: Ground, depth: Array, image: Array
) -> None:
    """Darken the background where the ground lies in the shape's shadow."""
    up = camera.axes @ ground.up
    level = (ground.level - float(camera.centre @ ground.up)) / camera.scale + float(up @ camera.offset)
    if level >= 0:
        return  # the viewer is below the ground
    points, triangles = scene.casters
    height = points @ up - level
    inside = np.linalg.norm(points - camera.offset, axis=1) < 1.2
    if not inside.any():
        return
    axes, middle, extent = _ground_square(points[inside], height[inside], up, level)
    grid = SKY_GRID // lens.coarseness
    cell = 2 * extent / grid
    covered, heights = _lowest_above((points - middle) @ axes.T / cell + 0.5 * grid, height, triangles, grid)
    sky = _softened(ground_sky(grid, covered, np.maximum(heights / cell, 0.8) ** 2))
    grid = KEY_GRID // lens.coarseness
    steps = ((np.arange(grid) + 0.5) * (2 * extent / grid) - extent)[:, None]
    spots = middle + (steps * axes[0])[:, None] + (steps * axes[1])[None]
    position = spots @ shadow.to_map[:, :3].T + shadow.to_map[:, 3]
    key = ground_key(shadow.depth, position, LIGHT_WIDTH * shadow.density, 2 / shadow.density)
    ground_pixels(depth, lens.numbers, np.stack([middle, up]), axes, extent, _softened(key), sky, image)


def _softened(grid: Array) -> Array:
    """Each value averaged with its neighbours (1 2 1), twice in both directions, to hide the grid."""
    for axis in (0, 1, 0, 1):
        padded = np.pad(grid, [(1, 1) if k == axis else (0, 0) for k in (0, 1)], mode="edge")
        low, high = (padded[:-2], padded[2:]) if axis == 0 else (padded[:, :-2], padded[:, 2:])
        grid = np.float32(0.5) * grid + np.float32(0.25) * (low + high)
    return grid


def _ground_square(points: Floats, height: Floats, up: Floats, level: float) -> tuple[Floats, Floats, float]:
    """Directions (2, 3), middle and half width of the square of ground that holds the shape's shadow."""
    key = LIGHTS[0]
    lean = float(key @ up)
    cast = points - np.outer(height / lean, key) if lean > 0.1 else points
    first = unit(np.cross(up, key))
    axes = np.stack([first, np.cross(up, first)])
    both = np.concatenate([points, cast]) @ axes.T
    low, high = both.min(axis=0), both.max(axis=0)
    return axes, axes.T @ (0.5 * (low + high)) + level * up, 0.9 * float(np.max(high - low)) + 0.2


def _lowest_above(local: Floats, height: Floats, triangles: Array, grid: int) -> tuple[Array, Floats]:
    """Grid points that have something above them, and how high its lowest is."""
    top = 1 + float(np.max(height))
    row, column = np.ascontiguousarray(local.T)
    lowest = np.zeros((grid, grid), np.float32)
    rasterize(Screen(column, row, top - height), triangles, lowest, np.empty(lowest.shape, np.int32))
    covered = np.argwhere(lowest > 0)
    return covered, np.maximum(top - lowest[lowest > 0], 0).astype(np.float64)


def draw_lines_over(part: RenderPart, lens: Lens, camera: Camera, depth: Array, image: Array, thickness: float) -> None:
    """Blend a part's lines over the image; those of wire parts stay faintly visible behind surfaces."""
    if not len(part.lines):
        return
    seen, hidden = np.zeros(depth.shape, np.float32), np.zeros(depth.shape, np.float32)
    screen = lens.project(camera.see(part.points))
    draw_lines(screen, part.lines, SAMPLES_PER_AXIS * thickness, 2e-3, depth, seen, hidden)
    strength = 0.9 if part.style == "wire" else 0.75
    alpha = strength * np.maximum(seen, 0.25 * hidden if part.style == "wire" else 0.0)[..., None]
    image += alpha * (part.line_color.astype(np.float32) - image)


def draw(
    parts: list[RenderPart], camera: Camera, background: Floats, ground: Ground | None, up: Floats
) -> NDArray[np.uint8]:
    """(h, w, 3) the picture as sRGB bytes. background: linear light."""
    lens = Lens.of(camera)
    image = np.empty((lens.height, lens.width, 3), np.float32)
    image[:] = background
    depth = np.zeros((lens.height, lens.width), np.float32)
    cut = [clipped(part, camera.see(part.points)[:, 2]) for part in parts]
    solid = [part for part in cut if part.style == "solid"]
    if solid:
        scene = gather(solid, camera)
        shadow = draw_shadow(scene, camera.offset, SHADOW_SIZE // lens.coarseness)
        layer = draw_layer(scene, lens)
        depth = layer.depth
        if ground is not None:
            draw_ground(scene, shadow, lens, camera, ground, depth, image)
        light_layer(layer, shadow, lens, camera, up, image)
    xray = [part for part in cut if part.style == "xray"]
    if xray:
        scene = gather(xray, camera)
        layer = draw_layer(scene, lens)
        over = image.copy()
        light_layer(layer, draw_shadow(scene, camera.offset, SHADOW_SIZE // lens.coarseness), lens, camera, up, over)
        alpha = np.where(layer.depth > 0, np.where(layer.depth >= depth, 1.0, 0.62), 0.0).astype(np.float32)
        image += alpha[..., None] * (over - image)
    for part in cut:
        draw_lines_over(part, lens, camera, depth, image, 1.1 if part.style == "wire" else 0.9)
    return finish(image)
