"""What a window shows: shapes, balls, lines and handles to drag, in the world's own coordinates.

Models come in millimetres and metres, near the origin and far from it, with y or z up. The page shows all of them in
one box of size 2 about its middle, z up: display = A (world - middle) / half, A a rotation. So the camera, the ground,
handles and single precision fit each; users of the stage give and get coordinates of the world.

Callbacks run one after the other on the page's own loop, so they must be quick: they note what was done and ask a
`Worker` for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.app.studio.scope import Scope, hear
from pliant.app.studio.selection import Movable, Phase as Phase, Selection, WhenMoved
from pliant.app.studio.stream import Stream
from pliant.core.normals import unit
from pliant.core.rotations import IDENTITY, between, inverse, matrix, multiply, rotate
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh, bounding_diagonal
from pliant.core.topology import Floats, Ints
from pliant.gallery.primitives import sphere_mesh
from pliant.geometry.axes import SignedAxis, up_vector
from pliant.geometry.spatial import SurfaceTree
from pliant.render.parts import vertex_colors

RGB = tuple[int, int, int]

SHAPE_COLOR: RGB = (222, 189, 160)
GHOST_COLOR: RGB = (110, 150, 200)
HANDLE_COLOR: RGB = (236, 120, 40)
CAGE_COLOR: RGB = (60, 110, 190)
VIEWPORT_BONE_COLOR: RGB = (245, 225, 90)
OBSTACLE_COLOR: RGB = (120, 160, 110)
CAMERA = (0.75, -1.7, 0.42)
"""The direction that it looks from at first: in front, a little to the side and above."""
GRID_COLORS: dict[bool, RGB] = {False: (214, 216, 222), True: (70, 72, 80)}
SECTION_COLORS: dict[bool, RGB] = {False: (190, 194, 204), True: (92, 95, 105)}
"""Of the ground, by whether the page is dark."""
HANDLE_SCALE = 0.28
"""Size of handles, of half the box."""
ROD = Mesh(
    np.array([[0, 0, 0], [1, 0, 0.15], [0, 1, 0.15], [-1, 0, 0.15], [0, -1, 0.15], [0, 0, 1]]),
    [[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 1, 4], [5, 1, 2], [5, 2, 3], [5, 3, 4], [5, 4, 1]],
)
"""From the origin to 1 along z."""


FILE_COLORS, MATCAP = "the file's colours", "matcap"
SURFACES = ("smooth", "flat", "wireframe", FILE_COLORS, MATCAP)
"""How shapes can be drawn."""
OVER, BY_NORMAL = "toon3", "toon5"
"""Materials of viser's that page.html draws in its own way: over all that is solid, and shaded by the normal alone."""
CAMERA_SIDES = {"Front": (0.0, -1.0, 0.0), "Side": (1.0, 0.0, 0.0), "Top": (0.0, -1e-3, 1.0)}
"""Where the camera can look from, on the page."""
NEAREST = 0.1
"""That the camera comes to what is framed, such as a single point."""
FRAME_MARGIN = 1.4
"""Of what is framed, to the page's edges: handles have room there."""


WhenClicked = Callable[[Floats, Floats], None]
"""Gets the ray of a click: where it starts and which direction it goes, in the world."""
WhenDragged = Callable[[Floats, Floats, Phase], None]
"""Gets where something was grabbed and where the pointer is now, in the world, and the phase."""


@dataclass(frozen=True)
class Grip:
    """What is done with balls themselves."""

    clicked: WhenClicked
    dragged: WhenDragged


@dataclass
class ViewStyle:
    """How a window shows its scenes."""

    surface: str = SURFACES[0]
    up: SignedAxis | None = None
    """The axis that points up; None: as each shape says."""
    dark: bool = False


class Viewport:
    """What is seen of one open scene. failed: called with what a callback raised. style: the window's. tell: shows what
    is selected on the page. stream: moves and paints shapes there."""

    def __init__(
        self,
        scope: Scope,
        failed: Callable[[Exception], None],
        style: ViewStyle | None = None,
        tell: Callable[..., None] = lambda **state: None,
        stream: Stream | None = None,
    ) -> None:
        self.stream = stream or Stream(tell, lambda: None)
        self.stream.clear()
        self._scene, self._scope, self._failed, self.style = scope.scene, scope, failed, style or ViewStyle()
        self._shapes: dict[str, Drawn] = {}  # drawn in the window's style
        self._framed: dict[str, Drawn] = {}  # had in view
        self.middle: Floats = np.zeros(3)
        self.half = 1.0
        self._upright: Floats = IDENTITY
        self._nodes: dict[str, Any] = {}
        self.selection = Selection(tell, self.move)
        self._scene.configure_default_lights(True, cast_shadow=True)

    # Where things are

    def look_at(self, points: Floats, up: SignedAxis = "y", *, camera: bool = True, ground: str = "/ground") -> None:
        """Fit the box around points, put the ground below them and, unless told not to, the camera before them."""
        self._upright = between(up_vector(self.style.up or up), [0.0, 0.0, 1.0])
        self.middle = (points.min(axis=0) + points.max(axis=0)) / 2
        self.half = max(bounding_diagonal(points) / 2, 1e-300)
        low = float(self.shown(points)[:, 2].min())
        self._nodes[ground] = self._scene.add_grid(
            ground, plane="xy", infinite_grid=True, cell_size=0.25, section_size=1.0, position=(0.0, 0.0, low),
            cell_color=GRID_COLORS[self.style.dark], section_color=SECTION_COLORS[self.style.dark], fade_distance=12.0,
            shadow_opacity=0.25,
        )  # fmt: skip
        if camera:
            self._frame(self.shown(points), CAMERA)

    def look_from(self, side: str | None = None) -> None:
        """Have all shapes in view, from a side (`CAMERA_SIDES`) or from where the camera is."""
        every = [self.shown(drawn.points) for drawn in list(self._framed.values())]
        if not every:
            return
        view = self._scope.camera
        direction = CAMERA_SIDES[side] if side else np.subtract(view.position, view.look_at)
        self._frame(np.concatenate(every), direction)

    def _frame(self, points: Floats, direction: Any) -> None:
        """Have points of the page in view, as large as they can be, from a direction.

        A point p is seen at (p·right, p·above) / (away - p·ahead) over the tangents of the view's half angles.
        """
        view, ahead = self._scope.camera, unit(np.asarray(direction, dtype=np.float64))
        right = unit(np.cross(view.up_direction, ahead))
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
        own, high = points - centre, np.tan(view.fov / 2) / FRAME_MARGIN
        aside = np.abs(own @ right) / (high * view.aspect), np.abs(own @ np.cross(ahead, right)) / high
        away = max(float((own @ ahead + np.maximum(*aside)).max()), NEAREST)
        with self._scope.atomic():
            view.position, view.look_at = centre + away * ahead, centre
            view.near, view.far = 0.01, 200.0

    def restyle(self) -> None:
        """Draw all shapes in the window's style."""
        for drawn in list(self._shapes.values()):
            drawn.dress()
        ground = self._nodes.get("/ground")
        if ground is not None:
            ground.cell_color, ground.section_color = GRID_COLORS[self.style.dark], SECTION_COLORS[self.style.dark]

    def shown(self, points: Any) -> Floats:
        """Points of the world as the page has them."""
        return (np.asarray(points, dtype=np.float64) - self.middle) @ (matrix(self._upright) / self.half).T

    def world(self, points: Any) -> Floats:
        """Points of the page as the world has them."""
        return rotate(inverse(self._upright), np.asarray(points, dtype=np.float64)) * self.half + self.middle

    @property
    def eye(self) -> Floats:
        """Where the camera is in the world."""
        return self.world(self._scope.camera.position)

    def shown_rotation(self, rotation: Any) -> Floats:
        """A rotation (w, x, y, z) of the world as the page has it."""
        return multiply(multiply(self._upright, rotation), inverse(self._upright))

    def world_rotation(self, rotation: Any) -> Floats:
        """A rotation of the page as the world has it."""
        return multiply(multiply(inverse(self._upright), rotation), self._upright)

    # What there is

    def shape(
        self, name: str, shape: Shape, *, color: RGB = SHAPE_COLOR, opacity: float | None = None, framed: bool = True
    ) -> Drawn:
        """A mesh, the skin of tetrahedra, or points. framed: whether it is had in view."""
        drawn = Drawn(self, name, shape, color, opacity)
        self._keep(name, drawn.handle)
        if framed:
            self._framed[name] = drawn
        if color == SHAPE_COLOR:
            self._shapes[name] = drawn
            drawn.dress()
        return drawn

    def wires(self, name: str, mesh: Mesh, *, color: RGB = CAGE_COLOR) -> Drawn:
        """The edges of a mesh's triangles."""
        drawn = self.shape(name, mesh, color=color)
        drawn.handle.wireframe = True
        return drawn

    def ball(self, name: str, at: Any, radius: float, *, color: RGB = HANDLE_COLOR) -> Any:
        """A ball of a radius of the world; move it by `move`."""
        made = self._scene.add_icosphere(
            name, radius=radius / self.half, color=color, position=self.shown(at), subdivisions=3
        )
        return self._keep(name, made)

    def lines(self, name: str, segments: Any, *, color: RGB = CAGE_COLOR, width: float = 2.0) -> Any:
        """Segments (k, 2, 3), so many pixels wide; for others of the same colour, call it again with the same name."""
        positions = self.shown(segments).astype(np.float32).reshape(-1, 2, 3)
        node = self._nodes.get(name)
        if node is not None:
            node.points = positions
            return node
        made = self._scene.add_line_segments(name, positions, color, thickness=width, thickness_units="screen")
        return self._keep(name, made)

    def balls(self, name: str, at: Any, radius: float, colors: Any, *, grip: Grip | None = None) -> Any:
        """Balls of one radius at (k, 3), in one or (k, 3) colours, seen through all that is solid; call it again to
        move or recolour them. grip: what is done with them."""
        positions = self.shown(at).reshape(-1, 3)
        rotations = np.tile([1.0, 0.0, 0.0, 0.0], (len(positions), 1))
        sizes = np.full((len(positions), 3), radius / self.half)
        return self._many(name, lambda: sphere_mesh(200, 1.0), rotations, positions, sizes, colors, grip)

    def rods(self, name: str, segments: Any, radius: float, colors: Any) -> Any:
        """Rods along segments (k, 2, 3), thick near their start and pointed, as bones are drawn; as `balls`."""
        ends = self.shown(segments).reshape(-1, 2, 3)
        along = ends[:, 1] - ends[:, 0]
        lengths = np.linalg.norm(along, axis=1)
        rotations = between(np.tile([0.0, 0.0, 1.0], (len(along), 1)), along)
        thick = np.minimum(radius / self.half, 0.2 * lengths)
        sizes = np.stack([thick, thick, lengths], axis=1)
        return self._many(name, lambda: ROD, rotations, ends[:, 0], sizes, colors, None)

    def on_click(self, node: Any, clicked: WhenClicked) -> None:
        """Have clicks on a node heard."""

        def heard(event: Any) -> None:
            start = self.world(event.ray_origin)
            ahead = self.world(np.add(event.ray_origin, event.ray_direction))
            clicked(start, (ahead - start) / self.half)

        node.on_click(self.hear(heard))

    def on_drag(self, node: Any, dragged: WhenDragged, *, modifier: Any = None) -> None:
        """Have drags of a node itself heard, with a key that is pressed meanwhile.

        A pointer beyond the horizon is nowhere: a drag that ends there ends where it was last.
        """
        last: tuple[Floats, Floats] | None = None

        def heard(event: Any) -> None:
            nonlocal last
            now, ends = (self.world(event.start_position), self.world(event.end_position)), event.phase == "end"
            given = now if np.isfinite(now).all() else last if ends else None
            last = None if ends else given or last
            if given is not None:
                dragged(*given, event.phase)

        node.on_drag("left", modifier=modifier)(self.hear(heard))

    def _many(
        self, name: str, unit: Callable[[], Mesh], rotations: Floats, positions: Floats, sizes: Floats, colors: Any,
        grip: Grip | None,
    ) -> Any:  # fmt: skip
        """As many of one mesh as there are positions, each with its own rotation and size."""
        node = self._nodes.get(name)
        shades = np.broadcast_to(np.asarray(colors, dtype=np.uint8), positions.shape)
        single = {"batched_wxyzs": rotations, "batched_positions": positions, "batched_scales": sizes}
        given = {key: value.astype(np.float32) for key, value in single.items()} | {"batched_colors": shades.copy()}
        if node is not None and len(node.batched_positions) == len(positions):
            with self._scope.atomic():
                for key, value in given.items():
                    setattr(node, key, value)
            return node
        mesh = unit()
        faces = mesh.triangles.astype(np.uint32)
        made = self._scene.add_batched_meshes_simple(
            name, mesh.points.astype(np.float32), faces, **given, lod="off", flat_shading=mesh is ROD, material=OVER,
            cast_shadow=False, receive_shadow=False,
        )  # fmt: skip
        if grip is not None:
            self.on_click(made, grip.clicked)
            self.on_drag(made, grip.dragged)
        return self._keep(name, made)

    def label(self, name: str, text: str, at: Any) -> Any:
        """Text at a point."""
        return self._keep(name, self._scene.add_label(name, text, position=self.shown(at)))

    def handle(
        self,
        name: str,
        at: Any,
        moved: WhenMoved,
        *,
        title: str,
        rotation: Any = (1.0, 0.0, 0.0, 0.0),
        moves: bool = True,
        rotates: bool = False,
        scale: float = HANDLE_SCALE,
        select: bool = True,
        chosen: Callable[[], None] | None = None,
        remove: Callable[[], None] | None = None,
    ) -> Any:
        """A handle to drag, seen while it is selected; see `Movable`."""
        limits = ((-1e6, 1e6),) * 3
        gizmo = self._scene.add_transform_controls(
            name, scale=scale, disable_axes=not moves, disable_sliders=not moves, disable_rotations=not rotates,
            translation_limits=limits, depth_test=False, position=self.shown(at),
            wxyz=self.shown_rotation(rotation),
        )  # fmt: skip

        def heard(event: Any) -> None:
            at, rotation = self.world(event.target.position), self.world_rotation(event.target.wxyz)
            if not np.isfinite([*at, *rotation]).all():  # an arrow that points at the eye
                movable = self.selection.movables.get(name)
                if movable is None:
                    return
                at, rotation = movable.at, movable.rotation
                self.move(name, at, rotation)
                if event.phase != "end":
                    return
            if name != self.selection.name:
                self.selection.select(name)
            if self.selection.follow(name, at, rotation):
                moved(at, rotation, event.phase)

        gizmo.on_update(self.hear(heard))
        self._keep(name, gizmo)
        movable = Movable(title, gizmo, moved, np.array(at), np.array(rotation), moves, rotates, chosen, remove)
        self.selection.add(name, movable, select=select)
        return gizmo

    def move(self, name: str, at: Any, rotation: Any = None) -> None:
        """Move something, if it is there."""
        node = self._nodes.get(name)
        if node is None:  # taken away by another thread just now
            return
        node.position = self.shown(at)
        if rotation is not None:
            node.wxyz = self.shown_rotation(rotation)
        if name in self.selection.movables:
            self.selection.follow(name, np.asarray(at), rotation)

    def has(self, name: str) -> bool:
        """Whether there is something of this name."""
        return name in self._nodes

    def show(self, name: str, visible: bool) -> None:
        """Show or hide something that is there."""
        node = self._nodes.get(name)
        if name in self.selection.movables:
            self.selection.allow(name, visible)
        elif node is not None:
            node.visible = visible

    def remove(self, name: str) -> None:
        """Take something away, and all whose names start with its name and a slash."""
        for known in list(self._nodes):
            if known == name or known.startswith(f"{name}/"):
                node = self._nodes.pop(known, None)
                self._shapes.pop(known, None)
                self._framed.pop(known, None)
                self.stream.remove(known)
                self.selection.drop(known)
                if node is not None:  # or another thread has taken it away
                    node.remove()

    def open(self) -> AbstractContextManager[None]:
        """Keep it open meanwhile; raises StoppedError if its scene is closed."""
        return self._scope.open()

    def hear(self, callback: Callable[[Any], None]) -> Any:
        """A callback for viser that keeps events in order, and whose errors are shown on the page."""

        return hear(callback, self._failed)

    def _keep(self, name: str, node: Any) -> Any:
        self._nodes[name] = node
        return node


@dataclass(frozen=True, eq=False)
class Hit:
    """Where a ray meets a shape."""

    vertex: int
    """The nearest one."""
    point: Floats
    away: float
    """From where the ray starts."""
    corners: Ints | None
    """Vertices of the triangle that was met; None for points."""


TINTS = ("paint", "map", "file")
"""What colours a shape, the first before the others."""


class Drawn:
    """A shape on a stage, whose points can move."""

    def __init__(self, stage: Viewport, name: str, shape: Shape, color: RGB, opacity: float | None) -> None:
        self.stage, self.name, self.shape = stage, name, shape
        self.points: Floats = shape.points
        self._tints: dict[str, Floats | None] = dict.fromkeys(TINTS)
        positions = stage.shown(shape.points).astype(np.float32)
        if isinstance(shape, PointCloud):
            size = 2.0 * len(positions) ** -0.5 / 2
            self.handle = stage._scene.add_point_cloud(name, positions, color, point_size=size, point_shape="circle")
            return
        self.triangles: Ints = shape.surface.triangles if isinstance(shape, TetMesh) else shape.triangles
        with stage.open():
            faces = stage.stream.add(name, len(positions), self.triangles.astype(np.uint32), color)
            self.handle = stage._scene.add_mesh_simple(
                name, positions, faces, color=color, opacity=opacity, side="double", receive_shadow=False
            )

    def move(self, points: Floats) -> None:
        """Show other positions of its points."""
        self.points = points
        if isinstance(self.shape, PointCloud):
            self.handle.points = self.stage.shown(points).astype(np.float32)
            return
        with self.stage.open():
            if not self.stage.stream.move(self.name, points, self.stage.shown):
                self.handle.vertices = self.stage.shown(points).astype(np.float32)

    def fade(self, opacity: float | None) -> None:
        """Have it translucent; None: solid."""
        if not isinstance(self.shape, PointCloud):
            self.handle.opacity = opacity

    def dress(self) -> None:
        """Draw it in the window's style."""
        if isinstance(self.shape, PointCloud):
            return
        surface = self.stage.style.surface
        self.handle.wireframe, self.handle.flat_shading = surface == "wireframe", surface == "flat"
        self.handle.material = BY_NORMAL if surface == MATCAP else "standard"
        self.tint(
            "file", vertex_colors(self.shape) if surface == FILE_COLORS and isinstance(self.shape, Mesh) else None
        )

    def tint(self, why: str, colors: Floats | None) -> None:
        """Draw it in linear colours (n, 3) at its points, unless what comes before in `TINTS` has others; None: as it
        is otherwise."""
        self._tints[why] = colors
        with self.stage.open():
            self.stage.stream.paint(self.name, self.colors)

    @property
    def colors(self) -> Floats | None:
        """Linear, at its points; None: all in one."""
        return next((colors for colors in self._tints.values() if colors is not None), None)

    def hit(self, start: Floats, direction: Floats) -> Hit | None:
        """What a ray meets first of the shape as it is shown, of points the one that is nearest to it; None if nothing.

        It takes a while for large shapes: not for callbacks.
        """
        ahead, points = direction / np.linalg.norm(direction), self.points
        if isinstance(self.shape, PointCloud):
            along = (points - start) @ ahead
            beside = np.linalg.norm(points - start - along[:, None] * ahead, axis=1)
            nearest = int(np.argmin(np.where(along > 0, beside, np.inf)))
            return Hit(nearest, points[nearest], float(along[nearest]), None)
        end = start + ahead * 2 * float(np.linalg.norm(points - start, axis=1).max())
        tree = SurfaceTree(points, self.triangles)
        hits = [tree.first_hit(start[None], end[None], leaving=side) for side in (False, True)]
        fraction, triangle = min((float(f[0]), int(t[0])) for f, t in hits)
        if triangle < 0:
            return None
        point, corners = start + fraction * (end - start), self.triangles[triangle]
        nearest = int(corners[np.argmin(np.linalg.norm(points[corners] - point, axis=1))])
        return Hit(nearest, point, float(np.linalg.norm(point - start)), corners)

    def vertex_hit(self, start: Floats, direction: Floats) -> int | None:
        """The vertex nearest to where a ray meets the shape first, as it is shown; None if it does not."""
        found = self.hit(start, direction)
        return None if found is None else found.vertex

    def on_click(self, clicked: WhenClicked) -> None:
        """Have clicks on the shape heard."""
        self.stage.on_click(self.handle, clicked)

    def on_drag(self, dragged: WhenDragged, *, modifier: Any = "shift") -> None:
        """Have drags of the shape itself heard."""
        self.stage.on_drag(self.handle, dragged, modifier=modifier)


def heat(shares: Floats) -> Floats:
    """(n, 3) linear colours for shares (n,) from 0 (pale) over a half (orange) to 1 and more (dark red)."""
    at = np.linspace(0.0, 1.0, len(HEAT_SCALE))
    known = np.clip(np.nan_to_num(shares), 0.0, 1.0)
    encoded = np.stack([np.interp(known, at, HEAT_SCALE[:, k]) for k in range(3)], axis=1)
    return encoded**2.2


HEAT_SCALE = np.array([[232, 230, 222], [250, 214, 120], [240, 134, 50], [204, 44, 36], [110, 8, 40]]) / 255
"""What `heat` goes through, evenly, as screens encode it."""
