"""What flesh is made of: Young's modulus E, Poisson's ratio ν and density, and where in the body each holds.

Hooke's law for small strains: ``σ = λ tr(ε) 1 + 2μ ε`` with Lamé's constants

    λ = E ν / ((1 + ν)(1 − 2ν)),    μ = E / (2 (1 + ν)).

ν = 1/2 is incompressible: λ is infinite, and no displacement method can follow. ν at most −1 or E at most 0 would be a
material that gives out energy when it is deformed.
"""

from __future__ import annotations

from dataclasses import dataclass

from pliant.engines.simulate.options import USUAL_SIZE, SimulateOptions


@dataclass(frozen=True)
class Material:
    """An elastic material. Units are those of the mesh: with metres, pascals and kilograms per cubic metre."""

    young: float = SimulateOptions.young
    """Young's modulus E, a stress."""
    poisson: float = SimulateOptions.poisson
    """Poisson's ratio ν, above -1 and below 0.5."""
    density: float = SimulateOptions.density
    sliding: float = SimulateOptions.sliding
    """Thickness of a skin that slides over what is below it, a length; 0: there is none."""

    def __post_init__(self) -> None:
        for name, value in SimulateOptions.check(**vars(self)).items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_length(cls, length: float) -> Material:
        """Soft flesh for a shape whose longest side is so many units, of which nobody says how long they are.

        From 2 on, it moves as it would on a shape of 2 metres: √(E/ρ) is a speed, and has to grow with the length.
        """
        return cls(young=SimulateOptions.young * max(1.0, length / USUAL_SIZE) ** 2)

    @property
    def lame(self) -> tuple[float, float]:
        """Lamé's constants λ and μ."""
        young, nu = self.young, self.poisson
        return young * nu / ((1 + nu) * (1 - 2 * nu)), young / (2 * (1 + nu))
