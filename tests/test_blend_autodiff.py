"""A rig's shape as a function in PyTorch and JAX; skips where they are not installed."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.engines.blend.autodiff import jax_shape, torch_shape

AT = np.array([0.3, 0.2, 0.4])


@pytest.fixture(scope="module")
def rig():
    bar = gallery.bar(500)
    return pliant.Blendshapes(pliant.Shapes(bar.base, bar.points[:4], bar.names[:4]))


@pytest.fixture(scope="module")
def seen(rig):
    return rig.solve(AT + 0.1, accuracy=1e-8).points


@pytest.fixture(scope="module")
def expected(rig, seen):
    """The value and gradient of the squared distance, by differences."""

    def distance(at):
        return float(((rig.jacobian(at).pose.points - seen) ** 2).sum())

    steps = 1e-5 * np.eye(3)
    return distance(AT), np.array([(distance(AT + step) - distance(AT - step)) / 2e-5 for step in steps])


def test_a_missing_library_is_named(rig, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(pliant.MissingExtraError, match=r"pliant\[torch\]"):
        torch_shape(rig)


def test_torch(rig, seen, expected):
    torch = pytest.importorskip("torch")
    shape = torch_shape(rig)
    sliders = torch.tensor(AT, requires_grad=True)
    loss = ((shape(sliders) - torch.tensor(np.array(seen))) ** 2).sum()
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(sliders.grad.numpy(), expected[1], rtol=1e-6)
    assert shape(torch.tensor(AT, dtype=torch.float32)).dtype == torch.float32
    with pytest.raises(pliant.InputError, match=r"\(3,\)"):
        shape(torch.zeros(2))


def test_jax(rig, seen, expected):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        shape = jax_shape(rig)
        loss = jax.jit(jax.value_and_grad(lambda sliders: ((shape(sliders) - seen) ** 2).sum()))
        value, gradient = loss(AT)
        assert float(value) == pytest.approx(expected[0], rel=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-6)
        many = jax.vmap(shape)(np.stack([AT, 0.5 * AT]))
        np.testing.assert_allclose(many[1], rig.jacobian(0.5 * AT).pose.points, atol=1e-12)
