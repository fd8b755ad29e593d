"""Flesh that gives way each vertex by itself: what it is pressed into, and what counts as converged."""

import numpy as np
import pytest

from pliant.contact.forces import Rows
from pliant.contact.response import settle
from pliant.engines.simulate.contacts import HeldLayer


class Watching:
    """Rows at one vertex each, by a function of the shape: the points' (m,) vertices, directions and violations."""

    def __init__(self, rows_at):
        self.rows_at = rows_at

    def rows(self, x):
        vertices, directions, violations = self.rows_at(x)
        m = len(vertices)
        corners = np.tile(np.asarray(vertices)[:, None], (1, 4))
        weights = np.tile([1.0, 0.0, 0.0, 0.0], (m, 1))
        return Rows.pushing(corners, weights, directions, violations, np.full(m, 1e6))

    def refresh(self, x):
        return False

    def meet(self, before, after):
        return 1.0, False


def nearest_plane(normals, offsets):
    """Of each point the plane that it is farthest beyond, as of a corner whose sides are seen one at a time."""

    def rows_at(x):
        beyond = offsets - x @ normals.T
        side = beyond.argmax(axis=1)
        return np.arange(len(x)), normals[side], beyond[np.arange(len(x)), side]

    return Watching(rows_at)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sides", [2, 3])
def test_flesh_in_a_corner_whose_sides_take_turns_comes_to_rest_at_its_edge(seed, sides):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    normals = turn[:sides] + 0.3 * turn[0] * (np.arange(sides)[:, None] > 0)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    inward = np.linalg.solve(np.vstack([normals, turn[sides:]]), np.r_[np.ones(sides), np.zeros(3 - sides)])
    # Pressed against every side: what holds a point is a sum of the sides' forces.
    free = -rng.uniform(0.02, 0.05, (5, sides)) @ normals + 0.5 * turn[2] * (sides == 2)
    body = HeldLayer(free, rng.uniform(0.5, 2.0, 5), 1.0)
    found = settle(body, body.compliance, nearest_plane(normals, np.zeros(sides)), 0.1 * np.tile(inward, (5, 1)))
    assert found.converged
    edge = free - np.linalg.lstsq(normals, normals @ free.T, rcond=None)[0].T
    assert np.abs(found.x - edge).max() < body.compliance.settled


@pytest.mark.parametrize("quiet", [0, 1, 30])
def test_flesh_that_is_never_in_balance_has_not_converged(quiet):
    """A wall that comes after a point as far as it gives way; others rest on a plane."""

    def rows_at(x):
        directions = np.concatenate([[[1.0, 0.0, 0.0]], np.tile([0.0, 0.0, 1.0], (quiet, 1))])
        return np.arange(1 + quiet), directions, np.r_[0.1, 0.5 - x[1:, 2]]

    body = HeldLayer(np.zeros((1 + quiet, 3)), np.ones(1 + quiet), 1.0)
    assert not settle(body, body.compliance, Watching(rows_at), np.zeros((1 + quiet, 3))).converged
