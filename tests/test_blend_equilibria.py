"""What accuracy and `converged` promise, and that a shape does not depend on how its inputs lie, or in which order."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import Blendshapes, Mesh, Pull, Shapes, gallery
from pliant.core import rotations
from pliant.engines.blend.equilibrium import newton
from pliant.engines.blend.network import Objective
from pliant.engines.blend.pulls import read_load

SIZES = {"bar": (600, "bent 180"), "gingerbread": (700, "bowing"), "face": (700, "surprise"), "hand": (900, "fist")}
TURN = rotations.matrix(rotations.exp(np.array([1.1, -0.7, 2.0])))
AWAY = np.array([0.3, -2.0, 5.0])


def pair(name: str) -> list[Mesh]:
    size, target = SIZES[name]
    shapes = getattr(gallery, name)(size)
    return [shapes.base, shapes.named(target)]


def moved(mesh: Mesh) -> Mesh:
    return mesh.with_points(mesh.points @ TURN.T + AWAY)


@pytest.fixture(scope="module")
def rigs():
    """Rigs by shape and model, made once."""
    made: dict[tuple[str, str], Blendshapes] = {}

    def rig(name: str, model: str = "turned") -> Blendshapes:
        if (name, model) not in made:
            made[name, model] = Blendshapes(pair(name), model=model)
        return made[name, model]

    return rig


def distance(rig: Blendshapes, x: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(x - exact, axis=1).max() / rig.body.size)


@pytest.mark.parametrize("accuracy", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("model", ["turned", "paper"])
@pytest.mark.parametrize("name", ["bar", "gingerbread", "hand"])
def test_a_converged_shape_is_as_near_to_equilibrium_as_was_asked_for(rigs, name, model, accuracy):
    rig, seen = rigs(name, model), []
    w = rig.weights([0.45, 0.55])
    pose = rig.solve(w, accuracy=accuracy, watch=lambda x, _: seen.append(x))
    assert pose.converged
    x = seen[-1] if seen else rig.statics.start(w)
    exact = newton(Objective(rig.body.network, rig.body.rest(w)), x, tolerance=1e-11)
    assert exact.converged
    assert distance(rig, x, exact.x) < 3 * accuracy


@pytest.mark.parametrize("accuracy", [1e-3, 1e-5])
@pytest.mark.parametrize("to", [True, False])
def test_so_is_one_under_a_load(rigs, to, accuracy):
    rig, seen = rigs("gingerbread"), []
    tip = int(np.argmax(rig.shapes.base.points[:, 0]))
    w, size = rig.weights([0.5, 0.5]), rig.body.diagonal
    pull = Pull(tip, to=rig.solve(w).points[tip] + 0.05 * size) if to else Pull(tip, force=(0.0, 0.2, 0.1))
    assert rig.solve(w, pulls=[pull], accuracy=accuracy, watch=lambda x, _: seen.append(x)).converged
    load = read_load(rig, [pull], None)
    free, rest = rig.statics.free(w, rig.statics.start(w), 1e-8)
    network, _ = rig.statics.loaded(load, free)
    exact = newton(Objective(network, rest, load.force), seen[-1], tolerance=1e-10)
    assert exact.converged
    assert distance(rig, seen[-1], exact.x) < 3 * accuracy


@pytest.mark.parametrize("name", SIZES)
def test_turned_shapes_blend_into_a_turned_shape(rigs, name):
    turned = Blendshapes([moved(mesh) for mesh in pair(name)])
    for t in (0.4, 0.5):
        plain, other = (rig.solve([1 - t, t]).points for rig in (rigs(name), turned))
        assert np.abs((other - AWAY) @ TURN - plain).max() < 1e-5 * rigs(name).body.diagonal


@pytest.mark.parametrize("name", SIZES)
def test_it_does_not_matter_which_shape_comes_first(rigs, name):
    other = Blendshapes(pair(name)[::-1])
    for t in (0.4, 0.5):
        plain, exchanged = rigs(name).solve([1 - t, t]).points, other.solve([t, 1 - t]).points
        assert np.abs(plain - exchanged).max() < 1e-5 * rigs(name).body.diagonal


@pytest.mark.parametrize("name", ["bar", "face"])
def test_a_slider_that_hardly_moves_changes_hardly_anything(name):
    base, target = pair(name)
    third = base.with_points(base.points * [1.1, 0.9, 1.2])
    rig = Blendshapes(Shapes.of([base, target, third]))
    for t in (0.3, 0.5):
        before, after = (rig.solve([1 - t - e, t, e]).points for e in (0.0, 1e-9))
        assert np.abs(after - before).max() < 1e-8 * rig.body.diagonal


def test_interiors_are_filled_alike_in_a_shape_that_has_grown():
    """A shape that only grows is blended into one in between, whatever is inside."""
    sphere = gallery.sphere(500)
    for growth in (0.1, 10.0):
        half = Blendshapes([sphere, sphere.with_points(growth * sphere.points)]).solve([0.5, 0.5]).points
        assert np.abs(half - 0.5 * (1 + growth) * sphere.points).max() < 1e-9 * sphere.diagonal
