"""Bounds on what a process may take: for readers of others' libraries, which trust the files they read."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

REFUSED = 4
"""Exit code of a process that printed why a file is not read."""


class RefusedError(Exception):
    """Why a file is not read; the message follows its name."""


@dataclass(frozen=True)
class Allowance:
    """What a process may take to read a file: something for the smallest, and more for each byte."""

    memory: int
    """Bytes."""
    memory_per_byte: int
    processor_time: int
    """Seconds."""
    bytes_per_second: int

    def seconds(self, size: int) -> int:
        """Of processor time, for a file of so many bytes."""
        return self.processor_time + size // self.bytes_per_second

    def limit(self, size: int) -> None:
        """Bound this process, which reads so many bytes."""
        limit(self.memory + self.memory_per_byte * size, self.seconds(size))


def limit(memory: int, seconds: int) -> None:
    """Bound this process to bytes of memory and seconds of processor time; a second call may only raise the bounds."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds)):
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
