"""Where anchors are put: inside, and at the same place whichever way the triangles face."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import InputError, Mesh, gallery
from pliant.engines.blend.anchor import make_anchors
from pliant.geometry.spatial import SurfaceTree

BENT = gallery.bar(500).named("bent 180")


def turned(share: float, seed: int = 3) -> Mesh:
    """The bent bar with that share of its triangles the other way round."""
    some = np.random.default_rng(seed).random(len(BENT.triangles)) < share
    return Mesh(BENT.points, np.where(some[:, None], BENT.triangles[:, ::-1], BENT.triangles))


def anchors(mesh: Mesh, anchor: object = "auto") -> list[np.ndarray]:
    return [a.corners for a in make_anchors(mesh, mesh.points[None], np.zeros(len(mesh.points), dtype=bool), anchor)]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_way_that_triangles_face_does_not_matter(share):
    (expected,) = anchors(Mesh(BENT.points, BENT.triangles))
    (found,) = anchors(turned(share))
    assert np.abs(found - expected).max() < 1e-9 * BENT.diagonal
    assert (np.abs(SurfaceTree(BENT).winding(found)) > 0.5).all()


def test_a_given_place_is_inside_or_refused_whichever_way_triangles_face():
    (corners,) = anchors(BENT)
    inside = corners.mean(axis=0)
    low, high = BENT.points.min(axis=0), BENT.points.max(axis=0)
    outside = np.array([(low + high)[0] / 2, high[1] - 0.01, (low + high)[2] / 2])  # between the arms
    assert abs(SurfaceTree(BENT).winding(outside[None])[0]) < 0.5
    for share in (0.0, 0.5):
        assert np.allclose(anchors(turned(share), inside)[0].mean(axis=0), inside)
        with pytest.raises(InputError, match="is outside the base shape"):
            anchors(turned(share), outside)


def test_every_solid_part_has_its_own_and_loose_vertices_have_none():
    count, away = len(BENT.points), np.array([3 * BENT.diagonal, 0, 0])
    points = np.concatenate([BENT.points, BENT.points + away, -away[None]])
    half = turned(0.5)
    both = Mesh(points, np.concatenate([BENT.triangles, half.triangles + count]))
    first, second = anchors(both)
    assert np.abs(second - first - away).max() < 1e-9 * BENT.diagonal
