"""Functions that pass their arguments on to another one, in whose signature these stand once.

    @takes_arguments_of(states)
    def simulate(*arguments: Any, **options: Any) -> Simulation: ...

    @takes_keywords_of(solve, without=("start",))
    def poses(self, weights: ArrayLike, *, jobs: int = 1, **options: Any) -> Iterator[Pose]: ...

``help``, notebooks and the reference show the whole signature; a keyword that is not in it gets an error that names the
closest one.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from pliant.core.errors import InputError
from pliant.core.kinds import suggestion

P = ParamSpec("P")
R = TypeVar("R")


def takes_arguments_of(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """A function takes what another one takes."""

    def decorated(function: Callable[..., R]) -> Callable[P, R]:
        returned = inspect.signature(function).return_annotation
        return _shown(function, inspect.signature(other).replace(return_annotation=returned))

    return decorated


def takes_keywords_of(
    other: Callable[..., Any], *, without: tuple[str, ...] = (), filled: bool = False
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """The ``**options`` of a function are the keywords of another, but for some of them.

    filled: it gets all of them, by default with the other's defaults.
    """

    def decorated(function: Callable[..., R]) -> Callable[..., R]:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in kept}.union(without)
        taken = [p for p in inspect.signature(other).parameters.values() if p.kind is p.KEYWORD_ONLY]
        added = [p for p in taken if p.name not in names]
        defaults = {p.name: p.default for p in added} if filled else {}
        return _shown(function, own.replace(parameters=[*kept, *added]), defaults)

    return decorated


def former_arguments(instead: str, **without_effect: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function no longer takes some arguments; each is given with the value that it still acts by, which only warns.

    instead: what to do, for the error about another value.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*arguments: P.args, **options: P.kwargs) -> R:
            for name in without_effect.keys() & options.keys():
                value = options.pop(name)
                if value != without_effect[name]:
                    raise InputError(f"{name}={value!r:.40} is no longer possible: {instead}", argument=name)
                warnings.warn(f"{name}={value!r} is the only way now: leave it out", DeprecationWarning, stacklevel=2)
            return function(*arguments, **options)

        return checked

    return decorated


def _shown(
    function: Callable[..., R], signature: inspect.Signature, defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[..., R]:
    """A function with another signature, which its keywords are checked by. defaults: of those that it gets anyway."""

    @wraps(function)
    def checked(*arguments: Any, **options: Any) -> R:
        for name in options:
            if name not in signature.parameters:
                hint = suggestion(name, signature.parameters) or f"see help({function.__qualname__})"
                raise TypeError(f'{function.__qualname__}() has no argument "{name}"; {hint}')
        return function(*arguments, **{**defaults, **options})

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked
