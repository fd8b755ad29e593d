"""Conjugate gradients agree with a factorisation, and say where they do not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from pliant.numerics import conjugate_gradients as module
from pliant.numerics.conjugate_gradients import conjugate_gradients
from pliant.numerics.linalg import factorize


def grid(n: int) -> sp.csr_array:
    """The Laplacian of n³ nodes whose surroundings are fixed, with springs of very different stiffness."""
    line = sp.diags_array([np.full(n, 2.0), np.full(n - 1, -1.0), np.full(n - 1, -1.0)], offsets=[0, 1, -1])
    one = sp.identity(n)
    A = sum(sp.kron(sp.kron(a, b), c) for a, b, c in ((line, one, one), (one, line, one), (one, one, line)))
    scale = sp.diags_array(10 ** np.random.default_rng(0).uniform(-3, 3, n**3))
    return sp.csr_array(scale @ A @ scale)


def test_each_right_hand_side_is_solved_as_by_a_factorisation() -> None:
    A, rng = grid(12), np.random.default_rng(1)
    wanted = rng.normal(size=(12**3, 4)) * [1e-9, 1, 1e9, 0]
    x = conjugate_gradients(A, A @ wanted)
    exact = factorize(A).solve(A @ wanted)
    assert x is not None
    weight = np.sqrt(A.diagonal())[:, None]  # in which all springs are alike
    size = np.abs(weight * wanted).max(axis=0)
    assert (np.abs(weight * (x - exact)).max(axis=0) <= 1e-11 * size).all()
    assert not x[:, 3].any()


def test_what_is_not_solved_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CG_ITERATIONS", 5)
    A = grid(12)
    assert conjugate_gradients(A, np.ones((12**3, 1))) is None
