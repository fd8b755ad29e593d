"""A Griffe extension: docstrings say ``name: what it is`` where a name does not say enough; this makes tables of them.

Each function's table has all of its parameters with type and default, from the signature, and the description from
the docstring where there is one. So have classes, unless they are dataclasses, whose fields are listed one by one. A
default such as ``BlendOptions.anchor`` is an engine's option: its value is shown, and its help where the docstring
says nothing.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import (
    Class,
    Docstring,
    DocstringParameter,
    DocstringSectionParameters,
    DocstringSectionText,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    Parameters,
)  # fmt: skip

from pliant.engines.registry import ENGINES
from pliant.engines.transfer.options import CageOptions, CageSolverOptions

OPTIONS = {
    f"{options.__name__}.{option.name}": option
    for engine in ENGINES.values()
    for options in (*engine.all_options(), CageOptions, CageSolverOptions)
    for option in options.all()
}


class ParameterTables(Extension):
    """Splits docstrings into text and tables of parameters."""

    def on_package(self, *, pkg: Module, **kwargs: Any) -> None:
        """All functions and classes of the package."""
        visit(pkg)


def visit(scope: Object) -> None:
    """Those of a module or class, and of what is in it."""
    for member in scope.members.values():
        if member.is_alias or not isinstance(member, Module | Class | Function):
            continue
        visit(member)
        if isinstance(member, Function) or (isinstance(member, Class) and "dataclass" not in member.labels):
            parameters = [p for p in passed_on(member) if p.name not in ("self", "cls")]
            if parameters and not (isinstance(member, Function) and member.name.startswith("_")):
                split(member, parameters)


def passed_on(member: Function | Class) -> list[Parameter]:
    """The parameters, with those that a function passes on to another one (`pliant.core.signatures`)."""
    by = [re.match(r"takes_\w+_of\((\w+)(.*)\)", str(one.value)) for one in getattr(member, "decorators", [])]
    for match in filter(None, by):
        other, without = member.parent.members[match[1]], re.findall(r"'(\w+)'", match[2])
        own = {p.name: p for p in member.parameters if "variadic" not in p.kind.value}
        further = [p for p in passed_on(other) if p.name not in (*own, *without)]
        member.parameters = Parameters(*own.values(), *further)
        _, described = entries(other.docstring.value, {p.name for p in further}) if other.docstring else ("", {})
        for p in further:
            member.extra["pliant"].setdefault(p.name, described.get(p.name, ""))
    return list(member.parameters)


def split(member: Function | Class, parameters: list[Parameter]) -> None:
    """Give a docstring its sections: text, and a table of parameters."""
    if member.docstring is None:
        member.docstring = Docstring("", parent=member)
    text, described = entries(member.docstring.value, {p.name for p in parameters})
    described = member.extra["pliant"] | described
    table = []
    for p in parameters:
        option = OPTIONS.get(str(p.default))
        if option is not None:
            p.default = repr(option.default)
            described.setdefault(p.name, option.help)
        about = described.get(p.name, "")
        table.append(DocstringParameter(p.name, annotation=p.annotation, value=p.default, description=about))
    member.docstring.__dict__["parsed"] = [DocstringSectionText(text), DocstringSectionParameters(table)]


def entries(docstring: str, names: set[str]) -> tuple[str, dict[str, str]]:
    """The docstring without its entries of parameters, and these, by name.

    A paragraph or line that starts with ``name: `` holds entries; further ones may follow within it, after a full stop.
    """
    name = "|".join(map(re.escape, sorted(names)))
    entry = re.compile(rf"(?:^|(?<=[.;)] ))((?:(?:{name}), )*(?:{name})): ")
    kept: list[str] = []
    found: dict[str, str] = {}
    for paragraph in docstring.split("\n\n"):
        lines = paragraph.splitlines()
        first = next((k for k, line in enumerate(lines) if entry.match(line)), len(lines))
        kept.append("\n".join(lines[:first]))
        pieces = entry.split(" ".join(re.sub(entry, r". \1: ", line.strip(), count=1) for line in lines[first:]))
        for key, text in zip(pieces[1::2], pieces[2::2], strict=True):
            found |= dict.fromkeys(key.split(", "), text.strip().removesuffix(" ."))
    return "\n\n".join(part for part in kept if part).strip(), found
