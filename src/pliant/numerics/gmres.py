"""Generalised minimal residuals (Saad and Schultz 1986): linear problems that are not symmetric, by products alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pliant.core.topology import Floats


def gmres(
    product: Callable[[Floats], Floats],
    right: Floats,
    precondition: Callable[[Floats], Floats],
    reduction: float,
    most: int,
) -> tuple[Floats, list[Floats]]:
    """(k,) and k directions (n,), whose sum with these factors is about the x with A x = right.

    product: A of a direction, of each once, in their order. precondition: about A⁻¹. reduction: of the residual, that
    ends it. most: products.
    """
    size = float(np.linalg.norm(right))
    factors: Floats = np.zeros(0)
    directions: list[Floats] = []
    basis = [right / max(size, 1e-300)]
    H, goal = np.zeros((most + 1, most)), np.zeros(most + 1)
    goal[0] = size
    for k in range(most if size > 0 else 0):
        directions.append(precondition(basis[k]))
        image = product(directions[k])
        largest = float(np.linalg.norm(image))
        for j, earlier in enumerate(basis):
            H[j, k] = image @ earlier
            image = image - H[j, k] * earlier
        H[k + 1, k] = np.linalg.norm(image)
        known = H[: k + 2, : k + 1]
        factors = np.asarray(np.linalg.lstsq(known, goal[: k + 2], rcond=None)[0], np.float64)
        if np.linalg.norm(known @ factors - goal[: k + 2]) <= reduction * size or H[k + 1, k] <= 1e-14 * largest:
            break
        basis.append(image / H[k + 1, k])
    return factors, directions
