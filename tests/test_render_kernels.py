"""The compiled loops of the renderer beside plain NumPy, and that threads do not change a picture."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pliant import native
from pliant.render import light, raster
from render_shapes import ball, pixels

HEIGHT, WIDTH = 40, 60


def scattered(count: int, seed: int) -> tuple[raster.Screen, np.ndarray]:
    rng = np.random.default_rng(seed)
    screen = raster.Screen(
        rng.uniform(-10, WIDTH + 10, count), rng.uniform(-10, HEIGHT + 10, count), rng.uniform(0.2, 2, count)
    )
    return screen, rng.integers(0, count, (count, 3))


def drawn(screen: raster.Screen, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    depth, number = np.zeros((HEIGHT, WIDTH), np.float32), np.full((HEIGHT, WIDTH), -1, np.int32)
    raster.rasterize(screen, triangles, depth, number)
    return depth, number


def weights_everywhere(screen: raster.Screen, corners: np.ndarray) -> np.ndarray:
    """(h, w, 3) barycentric coordinates of the samples' centres on the screen."""
    columns, rows = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    matrix = np.stack([screen.x[corners], screen.y[corners], np.ones(3)])
    return np.einsum("kj,jrc->rck", np.linalg.inv(matrix), np.stack([columns, rows, np.ones_like(rows)]))


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_triangle_of_each_sample(seed: int) -> None:
    screen, triangles = scattered(12, seed)
    triangles = triangles[[len(set(t)) == 3 for t in triangles.tolist()]]
    depth, number = drawn(screen, triangles)
    nearest, unsure = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH), dtype=bool)
    for corners in triangles:
        weights = weights_everywhere(screen, corners)
        inside = weights.min(axis=2) > 0
        unsure |= np.abs(weights.min(axis=2)) < 1e-4
        nearest = np.where(inside, np.maximum(nearest, weights @ screen.w[corners]), nearest)
    sure = ~unsure
    assert sure.mean() > 0.9
    np.testing.assert_allclose(depth[sure], nearest[sure], rtol=1e-5)
    np.testing.assert_array_equal(number[sure] >= 0, nearest[sure] > 0)


def test_balls_bulge_towards_the_viewer() -> None:
    depth, number = np.zeros((HEIGHT, WIDTH), np.float32), np.full((HEIGHT, WIDTH), -1, np.int32)
    x, y, z, radius, focal = 31.3, 18.2, 4.0, 0.8, 50.0
    raster.splat(*(np.array([value]) for value in (x, y, z, radius)), focal, 5, depth, number)
    columns, rows = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    reach = focal * radius / z
    square = ((columns - x) ** 2 + (rows - y) ** 2) / reach**2
    expected = np.where(square < 1, 1 / (z - radius * np.sqrt(np.maximum(1 - square, 0))), 0)
    np.testing.assert_allclose(depth, expected, rtol=1e-6)
    np.testing.assert_array_equal(number, np.where(square < 1, 5, -1))


def test_lines_cover_by_their_distance_and_are_seen_or_hidden() -> None:
    screen, ends = raster.Screen(*np.array([[8.2, 51.7], [5.1, 33.3], [1.0, 1.0]])), np.array([[0, 1]])
    depth = np.zeros((HEIGHT, WIDTH), np.float32)
    depth[:, 30:] = 1.5
    seen, hidden = np.zeros_like(depth), np.zeros_like(depth)
    raster.draw_lines(screen, ends, 3.0, 1e-3, depth, seen, hidden)
    columns, rows = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    places = np.stack([columns, rows], axis=-1)
    a, b = np.stack(screen[:2], axis=-1)
    t = np.clip((places - a) @ (b - a) / np.sum((b - a) ** 2), 0, 1)
    cover = np.clip(2 - np.linalg.norm(places - a - t[..., None] * (b - a), axis=-1), 0, 1)
    np.testing.assert_allclose(seen, np.where(columns < 30, cover, 0), atol=1e-6)
    np.testing.assert_allclose(hidden, np.where(columns < 30, 0, cover), atol=1e-6)


@pytest.mark.parametrize("stops", [0, 1])
def test_samples_have_the_perspective_mean_of_their_corners(stops: int) -> None:
    rng = np.random.default_rng(stops)
    screen = raster.Screen(np.array([3.0, 55, 20]), np.array([4.0, 12, 37]), np.array([0.3, 1.0, 2.0]))
    triangle = np.array([[0, 1, 2]])
    number = drawn(screen, triangle)[1]
    normals, colors = rng.normal(size=(3, 3)).astype(np.float32), rng.random((3, 3)).astype(np.float32)
    uvs, texels = rng.uniform(-1, 2, (3, 2)), rng.random((35, 3)).astype(np.float32)
    surface = raster.SurfaceAttributes(
        triangle, normals, colors, triangle, uvs, triangle, np.zeros(1, np.int64), np.ones(1, dtype=bool),
        texels, np.array([[0, 5, 7, stops]]),
    )  # fmt: skip
    samples = raster.SampleBuffers(
        number, np.zeros((HEIGHT, WIDTH, 3), np.float32), np.zeros((HEIGHT, WIDTH, 3), np.float32)
    )
    kind = np.zeros((HEIGHT, WIDTH), np.uint8)
    raster.resolve(screen, surface, samples, kind)
    shown = number == 0
    assert shown.sum() > 300
    weights = np.clip(weights_everywhere(screen, triangle[0])[shown], 0, 1) * screen.w
    weights /= weights.sum(axis=1, keepdims=True)
    normal = weights @ -normals  # the triangle is seen from behind
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    np.testing.assert_allclose(samples.normal[shown], normal, atol=1e-5)
    looked_up = bilinear(texels.reshape(5, 7, 3), weights @ uvs, bool(stops))
    np.testing.assert_allclose(samples.albedo[shown], weights @ colors * looked_up, atol=1e-5)
    assert set(kind[shown]) == {3}


def bilinear(pixels: np.ndarray, uvs: np.ndarray, stops: bool) -> np.ndarray:
    rows, columns = pixels.shape[:2]
    u, v = (np.clip(uvs, 0, 1) if stops else uvs % 1).T
    column, row = u * columns - 0.5, (1 - v) * rows - 0.5
    total = np.zeros((len(uvs), 3))
    for i in (0, 1):
        for j in (0, 1):
            r, c = np.floor(row).astype(int) + i, np.floor(column).astype(int) + j
            share = (1 - np.abs(row - r)) * (1 - np.abs(column - c))
            r, c = (np.clip(r, 0, rows - 1), np.clip(c, 0, columns - 1)) if stops else (r % rows, c % columns)
            total += share[:, None] * pixels[r, c]
    return total


def test_corner_normals_are_means_over_smooth_edges() -> None:
    """A cube of two triangles a side: every corner has its side's normal; with no crease, that of the whole corner."""
    from render_shapes import box

    mesh = box()
    a, b, c = (mesh.points[mesh.triangles[:, k]] for k in range(3))
    area = 0.5 * np.cross(b - a, c - a)
    own = area / np.linalg.norm(area, axis=1, keepdims=True)
    creased = raster.creased_normals(area, mesh.triangles, len(mesh.points), math.cos(math.radians(50)))
    np.testing.assert_allclose(creased, np.repeat(own[:, None], 3, axis=1), atol=1e-6)
    smooth = raster.creased_normals(area, mesh.triangles, len(mesh.points), -1.0)
    total = np.zeros_like(mesh.points)
    np.add.at(total, mesh.triangles, area[:, None])
    np.testing.assert_allclose(
        smooth, (total / np.linalg.norm(total, axis=1, keepdims=True))[mesh.triangles], atol=1e-6
    )


def test_the_ground_loses_the_sky_that_is_covered() -> None:
    rng = np.random.default_rng(0)
    covered, heights = rng.integers(0, 24, (50, 2)), rng.uniform(0.7, 30, 50)
    i, j = np.meshgrid(np.arange(24), np.arange(24), indexing="ij")
    square = heights + (covered[:, 0] - i[..., None]) ** 2 + (covered[:, 1] - j[..., None]) ** 2
    expected = np.maximum(0, 1 - (heights / square**2).sum(axis=-1) / math.pi)
    np.testing.assert_allclose(light.ground_sky(24, covered, heights), expected, atol=1e-6)


def test_pixels_are_the_srgb_of_the_mean_light_of_their_samples() -> None:
    image = np.random.default_rng(0).uniform(-0.2, 1.3, (20, 30, 3)).astype(np.float32)
    mean = np.clip(image, 0, 1).reshape(10, 2, 15, 2, 3).mean(axis=(1, 3))
    coded = np.where(mean <= 0.0031308, 12.92 * mean, 1.055 * mean ** (1 / 2.4) - 0.055)
    assert np.abs(light.finish(image) - 255 * coded).max() < 0.6


def test_a_picture_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"size": (480, 360), "ground": True, "edges": True}
    expected = pixels(ball(), **options)
    monkeypatch.setattr(raster, "BAND", 1 << 10)
    for cores in (1, 5):
        monkeypatch.setattr(native, "CORES", cores)
        np.testing.assert_array_equal(pixels(ball(), **options), expected)
