"""A human face as an open surface with expressions: forehead to chin, ear to ear, with lips, lids and eyeballs.

Built in three steps, each in its own module: the quads (`face_grid`), the form at rest (`face_form`), the motion
(`face_motion`). The expressions are not drawn but moved there: the jaw turns about its hinge, the lids about the
eyeballs, and muscles slide the skin over the head, so that between neutral and expression the true path is known and
curved.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.shapes import Labels, Layer, Mesh
from pliant.core.topology import Floats, Polygons
from pliant.gallery.face_form import chart, lip_heights, skin
from pliant.gallery.face_grid import EYE_RINGS_LID, FaceGrid, Resolution, face_grid
from pliant.gallery.face_motion import FaceControls, ball_angles, lining, pose_face
from pliant.gallery.ramps import smoothstep
from pliant.gallery.sizes import check_count, kept

EXPRESSIONS: dict[str, FaceControls] = {
    "smile": FaceControls((("smile", 1, 1), ("brow outer", 0.15, 0.15)), 0, (17, 17), (7, 7)),
    "frown": FaceControls((("frown", 1, 1), ("brow knit", 1, 1)), 0, (16, 16), (9, 9)),
    "surprise": FaceControls(
        (("brow inner", 1, 1), ("brow outer", 1, 1), ("pucker", 0.25, 0.25)), 19, (30, 30), (15, 15)
    ),
    "blink": FaceControls(upper_lid=(0.2, 0.2), lower_lid=(0, 0)),
    "wink": FaceControls((("smile", 0.1, 0.7),), 0, (19, 0.2), (12, 0)),
    "kiss": FaceControls((("pucker", 1, 1), ("brow inner", 0.3, 0.3)), 0, (14, 14), (8, 8)),
    "puffed cheeks": FaceControls((("puff", 1, 1), ("pucker", 0.2, 0.2)), 0, (22, 22), (11, 11)),
    "raised brows": FaceControls((("brow inner", 1.1, 1.1), ("brow outer", 1.1, 1.1)), 0, (26, 26), (12, 12)),
    "sneer": FaceControls((("sneer", 0.3, 1.2), ("brow knit", 0.7, 1.0)), 0, (20, 16), (7, 4)),
    "laugh": FaceControls((("smile", 1.15, 1.15), ("lip up", 0.4, 0.4)), 12, (14, 14), (3, 3)),
    "wide open": FaceControls((("brow inner", 0.4, 0.4),), 33, (20, 20), (6, 6)),
}


@kept
def face(n: int = 8000, *, expressions: Mapping[str, FaceControls] = EXPRESSIONS) -> Shapes:
    """A face with about `n` vertices: neutral first, then the expressions.

    Give your own `expressions` for other poses: muscles and lids have separate amounts for the right and the left half.
    Faces are grouped as "skin", "mouth" (its lining and teeth), "right eye" and "left eye".
    """
    check_count(n, "face")
    grid = face_grid(resolution_for(n))
    rest, over = skin(*chart(grid))
    poses = {"neutral": FaceControls(), **expressions}
    points = np.stack([pose_face(grid, rest, over, controls) for controls in poses.values()])
    polygons = Polygons.of([corners for table in grid.faces for corners in table.tolist()])
    base = Mesh(
        points[0],
        polygons,
        uvs=_front_uvs(points[0], polygons),
        labels={"group": _groups(grid)},
        attributes={"color": _colors(grid, rest, over)},
    )
    return Shapes(base, points, tuple(poses))


def resolution_for(n: int) -> Resolution:
    """The resolution whose number of vertices is nearest to n."""
    scales = np.geomspace(0.15, 6.0, 4000)
    counts = np.array([Resolution.of_scale(scale).vertices for scale in scales])
    return Resolution.of_scale(scales[np.abs(counts - n).argmin()])


def _groups(grid: FaceGrid) -> Labels:
    """Skin, the mouth's three tables of faces, and two tables for each eye."""
    owner = np.repeat([0, 1, 1, 1, 2, 2, 3, 3], [len(table) for table in grid.faces])
    return Labels(("skin", "mouth", "right eye", "left eye"), owner)


def _front_uvs(points: Floats, polygons: Polygons) -> Layer:
    """Texture coordinates as seen from the front, the face filling the unit square's height."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    uvs = 0.5 + (points[:, :2] - (low + high) / 2) / (high - low).max()
    return Layer(uvs, polygons.corners)


def _colors(grid: FaceGrid, rest: Floats, over: Floats) -> Floats:
    """(n, 3) linear colours: skin, lips, brows; eyeballs; the inside of the mouth."""
    colors = np.tile([0.62, 0.36, 0.26], (grid.count, 1))
    x = np.abs(rest[:, 0])
    height = np.where((over > 0) | (grid.side > 0), *lip_heights(x))
    red = (1 - smoothstep(np.abs(over) / height, 0.85, 1.15)) * (1 - smoothstep(x, 0.235, 0.27))
    arch = 0.215 + 0.22 * (x - 0.12) - 0.42 * (x - 0.12) ** 2
    thick = 0.030 * (1 - smoothstep(x, 0.25, 0.56)) + 0.008
    hair = np.exp(-(((rest[:, 1] - arch) / thick) ** 2)) * smoothstep(x, 0.05, 0.15) * (1 - smoothstep(x, 0.38, 0.54))
    for weight, color in ((red, [0.45, 0.13, 0.11]), (0.85 * hair, [0.07, 0.035, 0.02])):
        colors[: len(rest)] += weight[:, None] * (np.array(color) - colors[: len(rest)])
    half = len(grid.mouth.loop) // 2
    for ring, (rise, depth) in zip(grid.mouth.rings, lining(len(grid.mouth.rings))[0], strict=True):
        colors[ring] = np.array([0.30, 0.06, 0.05]) * (1 - smoothstep(np.array([depth]), 0.03, 0.25))
        if rise < 0.045 and depth < 0.1:
            colors[ring[1:half]] = [0.75, 0.73, 0.68]
    for slit in grid.eyes:
        colors[slit.loop] = [0.10, 0.04, 0.03]  # lashes
        colors[slit.rings[:2]] = [0.45, 0.18, 0.14]
        colors[slit.rings[2:]] = [0.80, 0.78, 0.76]
        angles = ball_angles(len(slit.rings) - EYE_RINGS_LID)
        colors[slit.rings[EYE_RINGS_LID:][angles < np.radians(21)]] = [0.05, 0.14, 0.22]
        colors[slit.rings[EYE_RINGS_LID:][angles < np.radians(9)]] = 0.01
        colors[slit.tip] = 0.01
    return colors
