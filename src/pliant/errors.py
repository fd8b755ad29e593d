"""What can go wrong, by name. Every message is one line: what was given, what was expected, what to do."""

from __future__ import annotations


class PliantError(Exception):
    """Anything pliant says no to."""


class InputError(PliantError, ValueError):
    """An argument that cannot be used."""


class FileError(InputError):
    """A file that cannot be read or written: names the file, the place in it, and what was expected.

    >>> str(FileError("face.obj", "vertex 9 does not exist; the file has 8", place="line 12"))
    'face.obj, line 12: vertex 9 does not exist; the file has 8'
    """

    def __init__(self, label: object, problem: str, *, place: str = "") -> None:
        self.label, self.problem, self.place = str(label), problem, place
        super().__init__(f"{self.label}, {place}: {problem}" if place else f"{self.label}: {problem}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_file_error, (self.label, self.problem, self.place)


def _rebuild_file_error(label: str, problem: str, place: str) -> FileError:
    return FileError(label, problem, place=place)


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
    """The matrix has a null space: something is free to move that nothing holds."""


class IndefiniteMatrixError(LinearSolveError):
    """The matrix has negative eigenvalues where a positive definite one was expected."""


class PliantWarning(UserWarning):
    """Something was repaired, ignored or approximated; the result is usable."""
