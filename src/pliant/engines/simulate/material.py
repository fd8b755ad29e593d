"""What flesh is made of: Young's modulus E, Poisson's ratio ν and density, and where in the body each holds.

Hooke's law for small strains: ``σ = λ tr(ε) 1 + 2μ ε`` with Lamé's constants

    λ = E ν / ((1 + ν)(1 − 2ν)),    μ = E / (2 (1 + ν)).

ν = 1/2 is incompressible: λ is infinite, and no displacement method can follow. ν at most −1 or E at most 0 would be a
material that gives out energy when it is deformed.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from pliant.core.errors import InputError
from pliant.engines.simulate.options import SimulateOptions


@dataclass(frozen=True)
class Material:
    """An elastic material. Units are those of the mesh: with metres, pascals and kilograms per cubic metre."""

    young: float = SimulateOptions.young
    """Young's modulus E, a stress."""
    poisson: float = SimulateOptions.poisson
    """Poisson's ratio ν, above -1 and below 0.5."""
    density: float = SimulateOptions.density

    def __post_init__(self) -> None:
        for name in ("young", "poisson", "density"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
                raise InputError(f"{name} is {value!r:.40}; expected a finite number", argument=name)
            object.__setattr__(self, name, float(value))
        if self.young <= 0:
            raise InputError(
                f"young is {self.young:g}; expected a positive stress, such as 1e5 for soft flesh", argument="young"
            )
        if self.poisson >= 0.5:
            raise InputError(
                f"poisson is {self.poisson:g}; expected below 0.5 (incompressible), such as 0.45", argument="poisson"
            )
        if self.poisson <= -1:
            raise InputError(f"poisson is {self.poisson:g}; expected above -1, such as 0.4", argument="poisson")
        if self.density <= 0:
            raise InputError(
                f"density is {self.density:g}; expected a positive mass per volume, such as 1000", argument="density"
            )

    @property
    def lame(self) -> tuple[float, float]:
        """Lamé's constants λ and μ."""
        young, nu = self.young, self.poisson
        return young * nu / ((1 + nu) * (1 - 2 * nu)), young / (2 * (1 + nu))
