"""A rig's shape as a differentiable function of its sliders, in PyTorch and in JAX.

    shape = torch_shape(rig)                   # or jax_shape(rig), which may be jitted
    loss = ((shape(sliders) - seen) ** 2).sum()
    loss.backward()                            # or jax.grad(...)

The gradient is that of `pliant.engines.blend.jacobian`, one linear solve on the equilibrium at hand; second derivatives
there are none. Both run on the CPU in float64, whatever the sliders are. The extras `pliant[torch]` and `pliant[jax]`
bring the libraries.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.errors import InputError, MissingExtraError
from pliant.core.topology import Floats

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes
    from pliant.engines.blend.jacobian import Jacobian


class _Shape:
    """The shape at sliders, and its gradient; keeps the last, since a gradient follows its shape."""

    def __init__(self, rig: Blendshapes, options: dict[str, Any]) -> None:
        self.rig, self.options = rig, options
        self._last: tuple[bytes, Jacobian] | None = None

    def at(self, sliders: Any) -> Jacobian:
        given = np.asarray(sliders, dtype=np.float64)
        if given.shape != (len(self.rig.sliders.names),):
            raise InputError(f"sliders have shape {given.shape}; expected ({len(self.rig.sliders.names)},)")
        key = given.tobytes()
        if self._last is None or self._last[0] != key:
            by_name = dict(zip(self.rig.sliders.names, given.tolist(), strict=True))
            self._last = key, self.rig.jacobian(by_name, **self.options)
        return self._last[1]

    def points(self, sliders: Any) -> Floats:
        return np.array(self.at(sliders).pose.points)

    def back(self, sliders: Any, gradient: Any) -> Floats:
        return self.at(sliders).backward(np.asarray(gradient, dtype=np.float64))


def _imported(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingExtraError(f"a shape in {library}", library) from error


def torch_shape(rig: Blendshapes, **options: Any) -> Callable[[Any], Any]:
    """A function from sliders, a tensor (sliders,), to points (n, 3), with a gradient. options: of `rig.jacobian`."""
    torch, shape = _imported("torch"), _Shape(rig, options)

    class BlendedShape(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(context: Any, sliders: Any) -> Any:
            context.save_for_backward(sliders)
            return torch.as_tensor(shape.points(sliders.detach().cpu())).to(sliders)

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
        def backward(context: Any, gradient: Any) -> Any:
            (sliders,) = context.saved_tensors
            return torch.as_tensor(shape.back(sliders.detach().cpu(), gradient.detach().cpu())).to(sliders)

    return lambda sliders: BlendedShape.apply(sliders)


def jax_shape(rig: Blendshapes, **options: Any) -> Callable[[Any], Any]:
    """A function from sliders, an array (sliders,), to points (n, 3), with a gradient. options: of `rig.jacobian`."""
    jax, shape = _imported("jax"), _Shape(rig, options)
    count = len(rig.shapes.base.points)

    def called(function: Callable[..., Floats], size: tuple[int, ...], sliders: Any, *more: Any) -> Any:
        """On the host."""
        result = jax.ShapeDtypeStruct(size, sliders.dtype)
        return jax.pure_callback(
            lambda *values: function(*values).astype(result.dtype), result, sliders, *more, vmap_method="sequential"
        )

    @jax.custom_vjp  # type: ignore[untyped-decorator, unused-ignore]
    def blended(sliders: Any) -> Any:
        return called(shape.points, (count, 3), sliders)

    def forward(sliders: Any) -> tuple[Any, Any]:
        return blended(sliders), sliders

    def backward(sliders: Any, gradient: Any) -> tuple[Any]:
        return (called(shape.back, sliders.shape, sliders, gradient),)

    blended.defvjp(forward, backward)

    def checked(sliders: Any) -> Any:
        found: Any = blended(jax.numpy.asarray(sliders, dtype=jax.numpy.result_type(float)))
        return found

    return checked
