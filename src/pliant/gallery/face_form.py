"""The face at rest, eyes and lips closed: an analytic surface over rows and columns.

The head is lofted: each row is an arc from a point of the profile (in the plane x = 0) to a point in front of the ear,

    x = X sin θ,   (y, z) = side + (front - side) (1 - |sin θ|^p)^(1/p)

with front, side, X and p smooth functions of the row. On it lie the features, each a smooth function of the head's own
x and y: sums of Gaussians (`FORMS`: brow, sockets, cheeks, chin, folds), the nose (`_nose`), the lips, which roll into
the mouth like quarter circles (`_lips`), and the closed lids, a ball that shows through the skin (`_lids`).
One unit is about 10 cm; y is 0 at the eyes, z is 0 at the ears.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats
from pliant.gallery.face_grid import FaceGrid, Resolution
from pliant.gallery.ramps import smoothstep, spread

MOUTH_Y, MOUTH_HALF = -0.715, 0.265
EYE = np.array([0.31, 0.0, 0.512])
"""Centre of the left eyeball."""
EYE_HALF = 0.145
"""From the middle of the slit of the lids to a corner."""
LID_RADIUS, EYEBALL_RADIUS = 0.182, 0.172
OUTERMOST = np.radians(84)

# row: t, then the profile's y and z, the half width X, and y and z in front of the ear, and the roundness p
LOFT = np.array(
    [
        [-1.42, -1.23, 0.36, 0.56, -0.95, 0.03, 1.95],
        [-1.26, -1.21, 0.56, 0.59, -0.87, 0.03, 1.9],
        [-1.14, -1.12, 0.70, 0.62, -0.78, 0.03, 1.85],
        [-0.98, -0.97, 0.765, 0.65, -0.66, 0.02, 1.88],
        [MOUTH_Y, MOUTH_Y, 0.79, 0.685, -0.52, 0.02, 2.0],
        [-0.40, -0.40, 0.79, 0.735, -0.28, 0.02, 2.2],
        [0.00, 0.00, 0.765, 0.755, 0.00, 0.00, 2.25],
        [0.25, 0.25, 0.765, 0.755, 0.18, 0.00, 2.3],
        [0.55, 0.55, 0.715, 0.745, 0.38, 0.00, 2.3],
        [0.95, 0.92, 0.53, 0.70, 0.62, -0.02, 2.2],
    ]
)

# Forms of the left half, mirrored to the right: x, y, reach in x, reach in y, tilt of the long axis (degrees),
# then the push along x, y and z. Forms on the middle line stand once.
FORMS = np.array(
    [
        [0.20, 0.01, 0.10, 0.11, 0, 0.0, 0.0, -0.080],  # socket, inner
        [0.36, 0.00, 0.17, 0.12, 0, 0.0, 0.0, -0.060],  # socket
        [0.24, 0.23, 0.17, 0.075, 12, 0.0, 0.0, 0.030],  # brow
        [0.42, 0.24, 0.14, 0.09, -15, 0.0, 0.0, 0.022],  # outer brow
        [0.46, -0.27, 0.17, 0.13, 20, 0.01, 0.0, 0.036],  # cheek bone
        [0.28, -0.30, 0.13, 0.15, 0, 0.0, 0.0, -0.030],  # beside the nose
        [0.36, -0.62, 0.16, 0.16, 0, 0.0, 0.0, -0.030],  # hollow cheek
        [0.27, -0.56, 0.05, 0.15, 24, 0.0, 0.0, -0.014],  # fold from nose to mouth
        [0.285, -0.72, 0.06, 0.06, 0, 0.0, 0.0, -0.022],  # mouth corner
        [0.06, -1.04, 0.10, 0.10, 0, 0.0, 0.0, 0.034],  # chin
        [0.40, -0.95, 0.20, 0.14, 40, -0.01, 0.0, -0.020],  # jaw
        [0.62, 0.25, 0.14, 0.25, 0, -0.02, 0.0, -0.020],  # temple
        [0.19, 0.56, 0.17, 0.14, 0, 0.0, 0.0, 0.015],  # forehead
        [0.036, -0.575, 0.026, 0.075, 0, 0.0, 0.0, 0.009],  # ridge beside the philtrum
    ]
)
MIDDLE_FORMS = np.array(
    [
        [0.0, -0.575, 0.024, 0.08, 0, 0.0, 0.0, -0.010],  # philtrum
        [0.0, -0.865, 0.17, 0.06, 0, 0.0, 0.0, -0.045],  # groove under the lip
        [0.0, -0.66, 0.26, 0.20, 0, 0.0, 0.0, 0.045],  # the mouth's mound over the teeth
        [0.0, 0.21, 0.07, 0.07, 0, 0.0, 0.0, -0.004],  # between the brows
    ]
)

# The nose from root to lip: y, how far its ridge stands out, its half width.
NOSE = np.array(
    [
        [0.24, 0.0, 0.08],
        [0.12, 0.03, 0.07],
        [0.02, 0.06, 0.062],
        [-0.14, 0.122, 0.078],
        [-0.29, 0.190, 0.105],
        [-0.365, 0.210, 0.115],
        [-0.42, 0.170, 0.115],
        [-0.47, 0.060, 0.11],
        [-0.51, 0.012, 0.11],
        [-0.56, 0.0, 0.11],
    ]
)


def gaussian(x: Floats, y: Floats, form: Floats) -> Floats:
    """exp(-(u/a)² - (v/b)²) with u, v along the axes of a form (x, y, a, b, tilt)."""
    tilt = np.radians(form[4])
    dx, dy = x - form[0], y - form[1]
    along, across = dx * np.cos(tilt) + dy * np.sin(tilt), dy * np.cos(tilt) - dx * np.sin(tilt)
    return np.asarray(np.exp(-((along / form[2]) ** 2) - (across / form[3]) ** 2))


def chart(grid: FaceGrid) -> tuple[Floats, Floats]:
    """Row t and angle θ of every skin vertex: crowded at the mouth, the nose and the eyes, even towards the sides."""
    r: Resolution = grid.resolution
    column, sign = np.abs(grid.column), np.sign(grid.column)
    X_eye, X_mouth = (float(np.interp(t, LOFT[:, 0], LOFT[:, 3])) for t in (0.0, MOUTH_Y))
    corners = [float(np.arcsin((EYE[0] + k * EYE_HALF) / X_eye)) for k in (-1, 1)]
    at_eyes = spread([0.0, *corners, OUTERMOST], [r.nose, r.eye, r.side], np.array([[0.25, 0.5, 0.25]]))
    corner = float(np.arcsin(MOUTH_HALF / X_mouth))
    at_mouth = spread([0.0, corner, OUTERMOST], [r.mouth, r.half - r.mouth], np.array([[corner, 1.0, 0.15]]))
    knots, counts = [LOFT[0, 0], MOUTH_Y, 0.0, LOFT[-1, 0]], [r.chin, r.middle, r.brow]
    crowd = np.array([[MOUTH_Y, 5.0, 0.09], [-0.44, 2.5, 0.09], [0.0, 3.0, 0.12]])
    inner, outer = spread(knots, counts, crowd), spread(knots, counts, crowd * [1, 0.25, 1.5])
    away = smoothstep(at_eyes[column], 0.5, 1.1)
    t = (1 - away) * inner[grid.row] + away * outer[grid.row]
    low = smoothstep(-t, 0.15, 0.6)
    rounded = 1 - 0.10 * smoothstep(-t, 0.3, 1.6) - 0.12 * smoothstep(t, 0.0, 1.1)  # the mask's corners
    return t, sign * rounded * ((1 - low) * at_eyes[column] + low * at_mouth[column])


def skin(t: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """(g, 3) the closed face at rows t and angles θ, and (g,) the height of each vertex above the mouth's row."""
    head = _head(t, theta)
    x, y = np.abs(head[:, 0]), head[:, 1]
    over = y - _head(np.full_like(t, MOUTH_Y), theta)[:, 1]
    mirror = np.sign(head[:, 0])
    points = head.copy()
    for form in FORMS:
        weight = (gaussian(x, y, form) + gaussian(-x, y, form))[:, None]
        points += weight * np.stack([form[5] * mirror, np.full(len(x), form[6]), np.full(len(x), form[7])], axis=1)
    for form in MIDDLE_FORMS:
        points += gaussian(x, y, form)[:, None] * form[5:]
    points += _nose(x, y, mirror)
    points += _lips(x, over)
    return _lids(points), over


def _head(t: Floats, theta: Floats) -> Floats:
    from scipy.interpolate import CubicSpline

    front_y, front_z, width, side_y, side_z, p = CubicSpline(LOFT[:, 0], LOFT[:, 1:], bc_type="natural")(t).T
    sine = np.sin(theta)
    fall = (1 - np.abs(sine) ** p) ** (1 / p)
    return np.stack([width * sine, side_y + (front_y - side_y) * fall, side_z + (front_z - side_z) * fall], axis=1)


def _nose(x: Floats, y: Floats, mirror: Floats) -> Floats:
    """Bridge, tip, wings and nostrils: offsets (g, 3)."""
    from scipy.interpolate import PchipInterpolator

    ridge, half = PchipInterpolator(NOSE[::-1, 0], NOSE[::-1, 1:])(np.clip(y, NOSE[-1, 0], NOSE[0, 0])).T
    body = ridge * np.exp(-0.7 * (x / half) ** 2.5)
    tip = 0.030 * gaussian(x, y, np.array([0.0, -0.365, 0.075, 0.07, 0]))
    wing = gaussian(x, y, np.array([0.130, -0.405, 0.058, 0.062, 0]))
    crease = gaussian(x, y, np.array([0.20, -0.39, 0.022, 0.075, 10]))
    nostril = gaussian(x, y, np.array([0.066, -0.445, 0.036, 0.030, 20]))
    under = gaussian(x, y, np.array([0.0, -0.44, 0.14, 0.05, 0]))
    offset_z = body + tip + 0.105 * wing - 0.022 * crease - 0.05 * nostril
    offset_y = -0.028 * under - 0.012 * wing + 0.016 * nostril
    offset_x = mirror * (0.012 * wing)
    return np.stack([offset_x, offset_y, offset_z], axis=1)


def mouth_line(x: Floats) -> Floats:
    """Height of the line between the lips above the middle of the mouth's row."""
    u = np.clip(np.abs(x) / MOUTH_HALF, 0, 1.2)
    return 0.012 * np.exp(-((u / 0.55) ** 2)) * (1 - 1.6 * np.exp(-((u / 0.18) ** 2))) + 0.006 * u**2


def lip_heights(x: Floats) -> tuple[Floats, Floats]:
    """How tall the red of the upper and of the lower lip is, along the mouth."""
    u = np.clip(np.abs(x) / MOUTH_HALF, 0, 1)
    upper = 0.056 * (1 - u**2.2) ** 0.9 * (1 - 0.25 * np.exp(-((u / 0.13) ** 2))) + 0.016
    return upper, 0.071 * (1 - u**2.4) ** 0.9 + 0.016


def _lips(x: Floats, over: Floats) -> Floats:
    """Lips that roll in towards the line between them, and the bow of that line: offsets (g, 3)."""
    upper, lower = lip_heights(x)
    fade = 1 - smoothstep(x, 0.55 * MOUTH_HALF, 1.12 * MOUTH_HALF)
    offset_z = np.zeros_like(x)
    for height, bulge, side in ((upper, 0.034, over >= 0), (lower, 0.040, over < 0)):
        q = np.abs(over) / height
        roll = np.where(q < 1, np.sqrt(np.clip(q * (2 - q), 0, 1)), np.exp(-(((q - 1) / 0.8) ** 2)))
        offset_z += np.where(side, (roll - 0.75 * np.exp(-(q**2))) * bulge * fade, 0)
    bow = mouth_line(x) * np.exp(-((over / 0.11) ** 2)) * (1 - smoothstep(x, MOUTH_HALF, 2 * MOUTH_HALF))
    return np.stack([np.zeros_like(x), bow, offset_z], axis=1)


def _lids(points: Floats) -> Floats:
    """The skin pushed forward, smoothly, by the balls of the closed eyes."""
    away = (np.abs(points[:, 0]) - EYE[0]) ** 2 + (points[:, 1] - EYE[1]) ** 2
    ball = EYE[2] + np.sqrt(np.clip(LID_RADIUS**2 - away, 0, None))
    softness = 0.06
    gap = np.clip((softness - np.abs(ball - points[:, 2])) / softness, 0, None)
    lifted = np.maximum(points[:, 2], ball) + softness * gap**3 / 6
    return np.column_stack([points[:, :2], np.where(away < LID_RADIUS**2, lifted, points[:, 2])])
