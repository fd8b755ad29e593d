"""Factorising and solving with each installed method, processor time: a 3-D grid, a surface, the springs of two blends.

"500 columns" are those of the inverse at 500 neighbouring unknowns, at these alone: what contact needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from pliant import Blendshapes, Shapes, gallery, linalg


def grid(m: int) -> sp.csr_array:
    """7-point Laplacian of an m × m × m grid whose outside is held."""
    L = sp.diags([-np.ones(m - 1), np.full(m, 2.0), -np.ones(m - 1)], offsets=[-1, 0, 1])
    one = sp.identity(m)
    terms = ((L, one, one), (one, L, one), (one, one, L))
    return sp.csr_array(sum(sp.kron(sp.kron(a, b), c) for a, b, c in terms))


def surface(m: int) -> sp.csr_array:
    """Graph Laplacian of a triangulated torus of m × m vertices, weakly held everywhere."""
    number = np.arange(m * m).reshape(m, m)
    right, up = np.roll(number, -1, axis=0), np.roll(number, -1, axis=1)
    ends = np.concatenate([right, up, np.roll(right, -1, axis=1)]).ravel()
    starts = np.tile(number.ravel(), 3)
    W = sp.coo_array((np.ones(len(starts)), (starts, ends)), shape=(m * m, m * m))
    W = W + W.T
    return sp.csr_array(sp.diags(W.sum(axis=1) + 1e-4) - W)


def springs(shapes: Shapes, first: str, second: str) -> sp.csr_array:
    """The springs' Laplacian of a filled shape, weakly held everywhere."""
    network = Blendshapes([shapes.named(first), shapes.named(second)]).springs
    a, b = network.edges.T
    W = sp.coo_array((network.stiffness, (a, b)), shape=(int(network.edges.max()) + 1,) * 2)
    W = W + W.T
    degree = W.sum(axis=1)
    return sp.csr_array(sp.diags(degree + 1e-4 * degree.mean()) - W)


def best(function: Callable[[], object]) -> float:
    """Milliseconds of the quickest of three calls."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        function()
        times.append(time.process_time() - begun)
    return 1000 * min(times)


def main() -> None:
    heading = f"{'factorise':>10} {'checked':>8} {'again':>8} {'solve':>7} {'solve 3':>8} {'500 columns':>12}"
    print(f"{'milliseconds':26} {'method':8} {heading}")
    bar, hand = springs(gallery.bar(8000), "straight", "bent 90"), springs(gallery.hand(8000), "open", "fist")
    for name, A in (("3-D grid", grid(31)), ("surface", surface(173)), ("bar", bar), ("hand", hand)):
        near = np.sort(breadth_first_order(A, A.shape[0] // 2)[0][:500]).astype(np.int64)
        b = np.random.default_rng(0).normal(size=(A.shape[0], 3))
        for method in linalg.available():
            factorization = linalg.factorize(A, method=method)
            columns = (
                best(lambda: linalg.factorize(A, method=method, check=False)),  # noqa: B023
                best(lambda: linalg.factorize(A, method=method)),  # noqa: B023
                best(lambda: factorization.refactorize(A, check=False)),  # noqa: B023
                best(lambda: factorization.solve(b[:, 0])),  # noqa: B023
                best(lambda: factorization.solve(b)),  # noqa: B023
                best(lambda: factorization.inverse(near, near)),  # noqa: B023
            )
            label = f"{name}, {A.shape[0]:,} unknowns"
            print(f"{label:26} {method:8} " + "{:10.0f} {:8.0f} {:8.0f} {:7.1f} {:8.1f} {:12.0f}".format(*columns))


if __name__ == "__main__":
    main()
