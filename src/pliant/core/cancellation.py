"""Solves that can be stopped half-way, because nobody waits for their result any more.

    with cancelled_by(check):
        body.simulate(motion)       # ends with whatever `check` raises

Solvers call `check_cancelled` once in each of their iterations. It holds for the thread it was begun in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Have solvers call `check`, which raises what is to end them."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_cancelled() -> None:
    """End here, if the solve is no longer wanted."""
    check = _CHECK.get()
    if check is not None:
        check()
