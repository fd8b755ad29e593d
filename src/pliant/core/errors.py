"""Exceptions and warnings. Every message is one line: what was given, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class PliantError(Exception):
    """Base class of pliant's errors."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())  # what was given may print as several lines


class InputError(PliantError, ValueError):
    """An argument that cannot be used.

    argument: its name, and the index in it, such as ``("pulls", 2)``, so that a caller who read it from a file can
    give the location there; empty where no single argument is wrong.
    """

    def __init__(self, *message: object, argument: str | tuple[int | str, ...] = ()) -> None:
        self.argument = (argument,) if isinstance(argument, str) else argument
        super().__init__(*message)


@contextmanager
def about_argument(*argument: int | str) -> Iterator[None]:
    """Errors raised inside are about this argument, or about the part of it that they name."""
    try:
        yield
    except InputError as error:
        error.argument = (*argument, *error.argument)
        raise


class FileError(InputError):
    """A file that cannot be read or written: names the file, the location in it, and what was expected.

    >>> str(FileError("face.obj", "vertex 9 does not exist; the file has 8", location="line 12"))
    'face.obj, line 12: vertex 9 does not exist; the file has 8'
    """

    def __init__(
        self,
        label: object,
        problem: str,
        *,
        location: str = "",
        argument: str | tuple[int | str, ...] = (),
        place: str = "",
    ) -> None:
        location = location or place  # its former name
        self.label, self.problem, self.location = str(label), problem, location
        message = f"{self.label}, {location}: {problem}" if location else f"{self.label}: {problem}"
        super().__init__(message, argument=argument)

    @property
    def place(self) -> str:
        """`location` under its former name."""
        return self.location

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_file_error, (self.label, self.problem, self.location, self.argument)


def _rebuild_file_error(label: str, problem: str, location: str, argument: tuple[int | str, ...]) -> FileError:
    return FileError(label, problem, location=location, argument=argument)


class MissingFacesError(FileError):
    """A file of points only, where a mesh was expected."""


class TopologyError(FileError):
    """A file whose mesh is not of the same topology as another one."""


class MissingExtraError(PliantError, ImportError):
    """Something that needs an optional dependency which is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(f'{what} needs the extra "{extra}": pip install "pliant[{extra}]"')

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, (self.what, self.extra)


class LinearSolveError(PliantError, ArithmeticError):
    """A matrix that cannot be factorised."""


class SingularMatrixError(LinearSolveError):
    """The matrix has a null space: some motion is unconstrained."""


class IndefiniteMatrixError(LinearSolveError):
    """The matrix has negative eigenvalues where a positive definite one was expected."""


class PliantWarning(UserWarning):
    """Something was repaired, ignored or approximated; the result is usable."""


class RepairWarning(PliantWarning):
    """Values that cannot be drawn or computed with were replaced."""
