"""Shapes converted to what the rasteriser draws: triangles with corner normals and colours, balls, and lines.

A mesh's own normals are used where it has them; else vertex normals that break at edges sharper than 50 degrees, so
that a box looks like a box. A normal more than 70 degrees away from its triangle's is replaced by the triangle's own:
folds and creases show as such, whatever a file says. Split vertices (UV seams) are joined for this, not for
anything else.

A corner between corners i and j of a triangle carries ``(1 - t) v_i + t v_j`` of all they carry. A triangle with one
corner ahead of the near plane keeps one triangle, one with two keeps two.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.normals import triangle_normals, unit
from pliant.core.shapes import Appearance, Image, Mesh, PointCloud, Shape, TetMesh, bounding_diagonal
from pliant.core.skeleton import Skeleton, SkeletonPose
from pliant.core.srgb import decoded
from pliant.core.topology import Floats, Ints, weld_map
from pliant.render.camera import bounds_of
from pliant.render.color import BONE_COLOR, CLAY_COLOR, UNKNOWN, WIRE, Color, Scale, linear_color
from pliant.render.raster import corner_slots, creased_normals

Drawable = Shape | Skeleton | SkeletonPose
Style = Literal["solid", "wire", "xray"]

CREASE = math.cos(math.radians(50))
ASTRAY = math.cos(math.radians(70))
LARGEST_TEXTURE = 1024


def _floats(*shape: int) -> Callable[[], Floats]:
    return lambda: np.zeros(shape)


def _ints(*shape: int) -> Callable[[], Ints]:
    return lambda: np.zeros(shape, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RenderPart:
    """One shape, ready to draw. Colours are linear light."""

    points: Floats
    """(n, 3) world coordinates of the corners of triangles and lines."""
    triangles: Ints = field(default_factory=_ints(0, 3))
    normals: Floats = field(default_factory=_floats(0, 3))
    """(3 m, 3) unit normals of the triangles' corners, one after another."""
    colors: Floats = field(default_factory=_floats(0, 3))
    color_index: Ints = field(default_factory=_ints(0, 3))
    """(m, 3) row in `colors` of each corner."""
    uvs: Floats = field(default_factory=_floats(0, 2))
    uv_index: Ints = field(default_factory=_ints(0, 3))
    image: Ints = field(default_factory=_ints(0))
    """(m,) which of `textures` a triangle has, -1 for none."""
    textures: tuple[Texture, ...] = ()
    measured: bool = False
    """Whether the colours stand for numbers."""
    balls: Floats = field(default_factory=_floats(0, 3))
    radii: Floats = field(default_factory=_floats(0))
    ball_colors: Floats = field(default_factory=_floats(0, 3))
    ball_normals: Floats = field(default_factory=_floats(0, 3))
    lines: Ints = field(default_factory=_ints(0, 2))
    line_color: Floats = field(default_factory=_floats(3))
    style: Style = "solid"

    @property
    def extent(self) -> Floats:
        """The points a camera has to show."""
        used = np.zeros(len(self.points), dtype=bool)
        used[self.triangles] = True
        used[self.lines] = True
        return np.concatenate([self.points[used], self.balls])


@dataclass(frozen=True, eq=False)
class Texture:
    """An image to look colours up in."""

    pixels: NDArray[np.float32]
    """(rows, columns, 3) linear light."""
    stops: bool = False
    """Whether lookups outside stay at the border; else the image repeats."""


@dataclass(frozen=True, eq=False)
class Paint:
    """What to colour a shape by."""

    color: Color | None = None
    values: Floats | None = None
    """(n,) a measure, with its scale."""
    scale: Scale | None = None
    edges: bool = False
    style: Style = "solid"
    fallback: Color = CLAY_COLOR


def part_of(shape: Drawable, paint: Paint) -> RenderPart:
    """The part that draws a shape."""
    if isinstance(shape, TetMesh):
        surface = shape.surface
        # Inner points are not drawn, and tetrahedra without any leave a cloud.
        return part_of(surface if len(surface.polygons) else PointCloud(shape.points), paint)
    if isinstance(shape, Mesh):
        if not len(shape.triangles):
            return _cloud_part(PointCloud(shape.points, attributes=shape.attributes), paint)
        return _wire_part(shape, paint) if paint.style == "wire" else _mesh_part(shape, paint)
    if isinstance(shape, PointCloud):
        return _cloud_part(shape, paint)
    if isinstance(shape, Skeleton):
        return _skeleton_part(shape.rest_pose(), paint)
    if isinstance(shape, SkeletonPose):
        return _skeleton_part(shape, paint)
    raise InputError(
        f"cannot draw a {type(shape).__name__}; expected a Mesh, TetMesh, PointCloud, Skeleton or SkeletonPose"
    )


def _wire_part(mesh: Mesh, paint: Paint) -> RenderPart:
    color = linear_color(paint.color or WIRE)
    return RenderPart(mesh.points, lines=mesh.edges, line_color=color, style="wire")


def _mesh_part(mesh: Mesh, paint: Paint) -> RenderPart:
    colors, color_index, uvs, uv_index, image, textures = _surface_colors(mesh, paint)
    return RenderPart(
        mesh.points,
        triangles=mesh.triangles,
        normals=corner_normals(mesh),
        colors=colors,
        color_index=color_index,
        uvs=uvs,
        uv_index=uv_index,
        image=image,
        textures=textures,
        measured=paint.values is not None,
        lines=mesh.edges if paint.edges else np.zeros((0, 2), np.int64),
        line_color=np.full(3, 0.02),
        style=paint.style,
    )


def corner_normals(mesh: Mesh) -> Floats:
    """(3 m, 3) unit normals at the triangles' corners."""
    # Scaled to a unit size, so that the squares of areas neither overflow nor vanish.
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    size = float(np.max(high / 2 - low / 2)) or 1.0
    area = triangle_normals((mesh.points - low) / size, mesh.triangles)
    if mesh.normals is not None:
        polygons = mesh.polygons
        slots = corner_slots(mesh.triangles, mesh.triangle_polygon, polygons.corners, polygons.offsets)
        normals = unit(mesh.normals.at_corners[slots])
    else:
        joined = weld_map(mesh.points, mesh.boundary_vertices, 0.0)[mesh.triangles]
        normals = creased_normals(area, joined, len(mesh.points), CREASE).astype(np.float64)
    flat_normals = np.repeat(unit(area)[:, None], 3, axis=1)
    astray = np.einsum("tkj,tkj->tk", normals, flat_normals) < ASTRAY
    return np.where(astray[..., None], flat_normals, normals).reshape(-1, 3)


SurfaceColors = tuple[Floats, Ints, Floats, Ints, Ints, tuple[Texture, ...]]


def _surface_colors(mesh: Mesh, paint: Paint) -> SurfaceColors:
    """Colour tables of a mesh: by measure, by one colour, by its own colours, by its materials, or clay."""
    count = len(mesh.triangles)
    nowhere = np.zeros((1, 2)), np.zeros((count, 3), np.int64), np.full(count, -1)
    if paint.values is not None and paint.scale is not None:
        return _measured(mesh, paint.values, paint.scale)
    if paint.color is None:
        own = mesh.attributes.get("color")
        if own is not None and own.ndim == 2 and own.shape[1] in (3, 4):
            return np.clip(own[:, :3], 0, 1).astype(np.float64), mesh.triangles, *nowhere, ()
        if "material" in mesh.labels and any(_says_something(look) for look in mesh.appearances.values()):
            return _material_colors(mesh)
    one = linear_color(paint.color or paint.fallback)[None]
    return one, np.zeros((count, 3), np.int64), *nowhere, ()


def vertex_colors(mesh: Mesh) -> Floats | None:
    """(n, 3) linear colours at the vertices, a mesh's own or those of its materials and textures; None without any."""
    colors, color_index, uvs, uv_index, image, textures = _surface_colors(mesh, Paint())
    if len(colors) == 1 and not textures:
        return None
    corners = colors[color_index]
    for k, texture in enumerate(textures):
        height, width = texture.pixels.shape[:2]
        mine = image == k
        u, v = np.moveaxis(uvs[uv_index[mine]] % 1.0, -1, 0)
        columns, rows = (u * (width - 1)).astype(int), ((1 - v) * (height - 1)).astype(int)
        corners[mine] = corners[mine] * texture.pixels[rows, columns]
    around = np.bincount(mesh.triangles.ravel(), minlength=len(mesh.points))
    sums = [np.bincount(mesh.triangles.ravel(), corners[..., c].ravel(), len(mesh.points)) for c in range(3)]
    return np.stack(sums, axis=1) / np.maximum(around, 1)[:, None]


def _says_something(look: Appearance) -> bool:
    """Whether a material has a texture or is not just the light grey or white that exporters write by default."""
    return look.texture is not None or min(look.color[:3]) < 0.5 or len(set(look.color[:3])) > 1


def _measured(mesh: Mesh, values: Floats, scale: Scale) -> SurfaceColors:
    """The measure as a texture coordinate into the colour map, so that colours between vertices are the map's own."""
    ramp = decoded(scale.srgb((np.arange(256) + 0.5) / 256))
    share = scale.share(values)
    known = np.isfinite(share)[mesh.triangles].all(axis=1)
    uvs = np.stack([np.nan_to_num(share, posinf=1.0, neginf=0.0), np.full(len(share), 0.5)], axis=1)
    colors = np.stack([np.ones(3), linear_color(UNKNOWN)])
    color_index = np.repeat(np.where(known, 0, 1)[:, None], 3, axis=1)
    texture = Texture(ramp[None].astype(np.float32), stops=True)
    return colors, color_index, uvs, mesh.triangles, np.where(known, 0, -1), (texture,)


def _material_colors(mesh: Mesh) -> SurfaceColors:
    """Each material's base colour times its texture."""
    labels = mesh.labels["material"]
    looks = [mesh.appearances.get(name) for name in labels.names]
    colors = np.array([look.color[:3] if look else linear_color(CLAY_COLOR) for look in looks]).reshape(-1, 3)
    textures: list[Texture] = []
    image_of = np.full(len(looks), -1)
    for k, look in enumerate(looks):
        texture = decode_texture(look.texture) if look and look.texture and mesh.uvs else None
        if texture:
            image_of[k] = len(textures)
            textures.append(texture)
    of_triangle = labels.index[mesh.triangle_polygon]
    color_index = np.repeat(of_triangle[:, None], 3, axis=1)
    if mesh.uvs is None or not textures:
        return colors, color_index, np.zeros((1, 2)), np.zeros_like(color_index), np.full(len(of_triangle), -1), ()
    slots = corner_slots(mesh.triangles, mesh.triangle_polygon, mesh.polygons.corners, mesh.polygons.offsets)
    return colors, color_index, mesh.uvs.values[:, :2], mesh.uvs.index[slots], image_of[of_triangle], tuple(textures)


def decode_texture(image: Image) -> Texture | None:
    """The pixels of a PNG or JPEG, or nothing if Pillow cannot read it."""
    from PIL import Image as Pillow

    try:
        with Pillow.open(io.BytesIO(image.data)) as opened:
            opened.thumbnail((LARGEST_TEXTURE, LARGEST_TEXTURE))
            pixels = np.asarray(opened.convert("RGB"), dtype=np.float64) / 255
    except (OSError, ValueError, Pillow.DecompressionBombError):
        return None
    return Texture(decoded(pixels).astype(np.float32))


def _cloud_part(cloud: PointCloud, paint: Paint) -> RenderPart:
    """Balls about as wide as the points are apart."""
    count = len(cloud.points)
    own = cloud.attributes.get("color")
    if paint.values is not None and paint.scale is not None:
        share = paint.scale.share(paint.values)
        known = np.isfinite(share)[:, None]
        colors = np.where(known, decoded(paint.scale.srgb(np.nan_to_num(share))), linear_color(UNKNOWN))
    elif paint.color is None and own is not None and own.ndim == 2 and own.shape[1] in (3, 4):
        colors = np.clip(own[:, :3], 0, 1).astype(np.float64)
    else:
        colors = np.tile(linear_color(paint.color or paint.fallback), (count, 1))
    normals = unit(cloud.normals) if cloud.normals is not None else np.zeros((count, 3))
    return RenderPart(
        np.zeros((0, 3)),
        balls=cloud.points,
        radii=0.55 * spacing(cloud.points),
        ball_colors=colors,
        ball_normals=normals,
        style="xray" if paint.style == "xray" else "solid",
    )


def spacing(points: Floats) -> Floats:
    """(n,) how far apart points are around each, within a factor of 3 of what is typical (1 for a single position)."""
    from scipy.spatial import cKDTree

    centre, size = bounds_of([points])  # scaled, so that squares of distances neither overflow nor vanish
    local = points / size - centre / size
    if not np.ptp(local, axis=0).any():
        return np.ones(len(points))
    nearest = cKDTree(local).query(local, k=min(5, len(points)), workers=-1)[0][:, 1:].mean(axis=1)
    typical = min(float(np.median(nearest)) or 2.0, 0.1)
    return np.clip(nearest, typical / 3, 3 * typical) * size


def _skeleton_part(pose: SkeletonPose, paint: Paint) -> RenderPart:
    """Bones as four-sided spindles, wide near the parent, and joints as balls."""
    positions, quaternions = pose.world()
    skeleton = pose.skeleton
    ends = [positions[j] + rotations.rotate(quaternions[j], end) for j, end in skeleton.ends.items()]
    pairs = [(positions[a], positions[b]) for a, b in skeleton.bones]
    pairs += [(positions[j], end) for j, end in zip(skeleton.ends, ends, strict=True)]
    diagonal = bounding_diagonal(np.concatenate([positions, np.reshape(ends, (-1, 3))])) or 1.0
    points, triangles = _spindles(pairs, 0.026 * diagonal)
    mesh = Mesh(points, triangles) if len(triangles) else None
    color = linear_color(paint.color or (BONE_COLOR if paint.style == "xray" else paint.fallback))
    radius = np.full(len(positions), 0.013 * diagonal)
    return RenderPart(
        points,
        triangles=triangles,
        normals=corner_normals(mesh) if mesh else np.zeros((0, 3)),
        colors=color[None],
        color_index=np.zeros_like(triangles),
        uvs=np.zeros((1, 2)),
        uv_index=np.zeros_like(triangles),
        image=np.full(len(triangles), -1),
        balls=positions,
        radii=radius,
        ball_colors=np.tile(0.6 * color, (len(positions), 1)),
        ball_normals=np.zeros((len(positions), 3)),
        style="solid" if paint.style == "wire" else paint.style,
    )


def _spindles(pairs: list[tuple[Floats, Floats]], widest: float) -> tuple[Floats, Ints]:
    """Points and triangles of one spindle for each pair of ends that are apart."""
    sides = np.array([[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 1, 4], [5, 1, 2], [5, 2, 3], [5, 3, 4], [5, 4, 1]])
    points: list[Floats] = []
    for start, end in pairs:
        along = end - start
        length = float(np.linalg.norm(along))
        if length == 0:
            continue
        across = np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))])
        across /= np.linalg.norm(across)
        other = np.cross(along / length, across)
        width, waist = min(0.12 * length, widest), start + 0.15 * along
        ring = [waist + width * side for side in (across, other, -across, -other)]
        points.append(np.stack([start, *ring, end]))
    if not points:
        return np.zeros((0, 3)), np.zeros((0, 3), np.int64)
    triangles = np.concatenate([sides + 6 * k for k in range(len(points))])
    return np.concatenate(points), triangles


NEAR_PLANE = 0.02
"""Distance of the near plane from the viewer, in units of the normalised scene."""

Corners = tuple[Ints, Ints, Ints, Floats]
"""For corners of new triangles: old triangle, its corners i and j, and t."""


def clipped(part: RenderPart, depth: Floats) -> RenderPart:
    """The part with all that is nearer than NEAR_PLANE cut off; depth: (n,) of its points."""
    part = _clipped_lines(part, depth) if len(part.lines) else part
    if not len(part.triangles):
        return part
    ahead = depth[part.triangles] > NEAR_PLANE
    count = ahead.sum(axis=1)
    whole, ones, twos = (np.flatnonzero(count == k) for k in (3, 1, 2))
    if len(whole) == len(part.triangles):
        return part
    # Turned so that the corner that differs from the other two comes first.
    single = _around(ones, np.argmax(ahead[ones], axis=1))
    double = _around(twos, np.argmin(ahead[twos], axis=1))
    pieces = [
        _triangle(ones, single, (0, 0), (0, 1), (0, 2)),
        _triangle(twos, double, (0, 1), (1, 1), (2, 2)),
        _triangle(twos, double, (0, 1), (2, 2), (0, 2)),
    ]
    old, i, j = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    low, high = depth[part.triangles[old, i]], depth[part.triangles[old, j]]
    gap = high - low
    t = np.divide(NEAR_PLANE - low, gap, out=np.zeros(len(gap)), where=gap != 0)
    return _assembled(part, whole, (old, i, j, np.clip(t * (1 + 1e-9 * np.sign(gap)), 0, 1)))


def _around(rows: Ints, first: Ints) -> Ints:
    """(k, 3) corner numbers starting with `first`."""
    return (first[:, None] + np.arange(3)) % 3 if len(rows) else np.zeros((0, 3), np.int64)


def _triangle(rows: Ints, order: Ints, *corners: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """Old triangle, corner i and corner j for the three corners of one new triangle for each row."""
    old = np.repeat(rows, 3)
    i = np.stack([order[:, a] for a, _ in corners], axis=1).ravel()
    j = np.stack([order[:, b] for _, b in corners], axis=1).ravel()
    return old, i, j


def _assembled(part: RenderPart, whole: Ints, corners: Corners) -> RenderPart:
    """Whole triangles, then new ones with rows of their own in every table."""
    old, i, j, t = corners

    def between(table: Floats, index: Ints) -> Floats:
        return (1 - t)[:, None] * table[index[old, i]] + t[:, None] * table[index[old, j]]

    def index(kept: Ints, table: Floats) -> Ints:
        return np.concatenate([kept[whole], len(table) + np.arange(len(old)).reshape(-1, 3)])

    normal_index = np.arange(3 * len(part.triangles)).reshape(-1, 3)
    return replace(
        part,
        points=np.concatenate([part.points, between(part.points, part.triangles)]),
        triangles=index(part.triangles, part.points),
        normals=np.concatenate([part.normals[normal_index[whole].ravel()], between(part.normals, normal_index)]),
        colors=np.concatenate([part.colors, between(part.colors, part.color_index)]),
        color_index=index(part.color_index, part.colors),
        uvs=np.concatenate([part.uvs, between(part.uvs, part.uv_index)]),
        uv_index=index(part.uv_index, part.uvs),
        image=np.concatenate([part.image[whole], part.image[old[::3]]]),
    )


def _clipped_lines(part: RenderPart, depth: Floats) -> RenderPart:
    """Lines shortened to what is ahead."""
    ends = depth[part.lines]
    ahead = ends > NEAR_PLANE
    whole = part.lines[ahead.all(axis=1)]
    across = ahead[:, 0] != ahead[:, 1]
    if not across.any():
        return replace(part, lines=whole)
    a, b = np.where(ahead[across, :1], part.lines[across], part.lines[across][:, ::-1]).T
    t = (1 - 1e-9) * (depth[a] - NEAR_PLANE) / (depth[a] - depth[b])
    cut = part.points[a] + t[:, None] * (part.points[b] - part.points[a])
    lines = np.stack([a, len(part.points) + np.arange(len(a))], axis=1)
    return replace(part, points=np.concatenate([part.points, cut]), lines=np.concatenate([whole, lines]))
