"""Bounds on what a process may take: for readers of others' libraries, which trust the files they read."""

from __future__ import annotations

import contextlib


def limit(memory: int, seconds: int) -> None:
    """Bound this process to bytes of memory and seconds of processor time; a second call may only raise the bounds."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds)):
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
