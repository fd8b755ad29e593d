"""Reads a whole USD file and discards it: run as a separate process, to find out whether the file can be read at all.

Arguments: the file, and the folders to import from. Leaves with 0 if all values could be read, and with `REFUSED` and
a line that says why if the stage refers to what it may not, or would grow too large. A crash or running out of memory
or time is any other code.

A few references to references make a stage of any size, so its size is found first: with every prim that refers to
another made instanceable, each target is composed once, and the sizes are multiplied out instead of built.
"""

from __future__ import annotations

import os
import sys
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = sys.argv[2:]
from pliant.core.limits import REFUSED, Allowance, RefusedError

USD_ALLOWANCE = Allowance(768 << 20, 40, 10, 4 << 20)
"""By the bytes of all files of a stage."""
MOST_SUBLAYERS = 1000
MOST_PRIMS, BYTES_PER_PRIM = 20_000, 20
MOST_VALUES = 10_000_000
"""Points and face corners of a stage, all instances counted; or as many as its files have bytes, if that is more."""


def main() -> int:
    """Look at the files, count, and read every value."""
    path = sys.argv[1]
    USD_ALLOWANCE.limit(os.path.getsize(path))
    from pxr import Tf

    try:
        layers, size = layers_of(path)
        USD_ALLOWANCE.limit(size)
        check_size(path, layers, size)
        read_all(path, size)
    except RefusedError as error:
        sys.stdout.buffer.write(str(error).encode("utf-8", "replace"))
        return REFUSED
    except Tf.ErrorException:
        return 3
    except TypeError:  # a value that Python cannot hold, which the reader meets again and reports
        return 0
    return 0


def layers_of(path: str) -> tuple[list[Any], int]:
    """The layers that a stage is made of, each seen to lie in the stage's folder before it is opened; their bytes."""
    from pxr import Ar, Sdf

    folder = os.path.join(os.path.dirname(os.path.realpath(path)), "")
    waiting: list[tuple[str, dict[str, Any]]] = [(path, {})]
    layers, files, seen = [], {path}, set()
    below: dict[str, list[str]] = {}
    while waiting:
        name, outer = waiting.pop()
        layer = Sdf.Layer.FindOrOpen(name) if name == path else _opened(name)
        if layer is None:
            continue
        layers.append(layer)
        variables = {**layer.expressionVariables, **outer}
        found = {written: _resolved(layer, written, variables) for written in _written(layer)}
        below[name] = [found[written] for written in layer.subLayerPaths if found.get(written)]
        for target in filter(None, found.values()):
            file = Ar.SplitPackageRelativePathOuter(target)[0]
            if not os.path.realpath(file).startswith(folder):
                raise RefusedError(f'refers to "{file}"; expected files in its own folder or below')
            if not os.path.isfile(file):
                raise RefusedError(f'refers to "{file}", which is no file; expected files in its own folder or below')
            files.add(file)
            key = (target, str(sorted(variables.items())))
            if key not in seen:
                seen.add(key)
                waiting.append((target, variables))
    stack = max(_stacked(name, below, {}) for name in below)
    if stack > MOST_SUBLAYERS:
        raise RefusedError(f"is a stack of {stack:,} layers, all sublayers counted; the limit is {MOST_SUBLAYERS:,}")
    return layers, sum(map(os.path.getsize, files))


def _stacked(name: str, below: dict[str, list[str]], known: dict[str, int]) -> int:
    """How many layers a layer and its sublayers make, those that occur twice counted twice."""
    if name not in known:
        known[name] = 0  # a layer below itself, which USD refuses
        known[name] = 1 + sum(_stacked(layer, below, known) for layer in below.get(name, ()))
    return known[name]


def _written(layer: Any) -> set[str]:
    """All that a layer refers to, as it is written there; asset values and value clips too, which USD opens as well."""
    from pxr import Sdf, Usd, UsdUtils

    composed = set(layer.GetCompositionAssetDependencies())
    others = {path for paths in UsdUtils.ExtractExternalReferences(layer.identifier) for path in paths}
    is_layer = Usd.Stage.IsSupportedFile
    return composed | {path for path in others if Sdf.VariableExpression.IsExpression(path) or is_layer(path)}


def _opened(name: str) -> Any:
    """A layer that another refers to; None if it is damaged, which USD reports when it composes the stage."""
    from pxr import Sdf, Tf

    try:
        return Sdf.Layer.FindOrOpen(name)
    except Tf.ErrorException:
        return None


def _resolved(layer: Any, path: str, variables: dict[str, Any]) -> str:
    """The file that an asset path, or an expression for one, leads to; empty if there is none."""
    from pxr import Ar, Sdf

    if Sdf.VariableExpression.IsExpression(path):
        value = Sdf.VariableExpression(path).Evaluate(variables).value
        path = value if isinstance(value, str) else ""
    path = Sdf.Layer.SplitIdentifier(path)[0]  # a name may end in arguments for the format
    return str(Ar.GetResolver().Resolve(layer.ComputeAbsolutePath(path))) if path else ""


def check_size(path: str, layers: list[Any], size: int) -> None:
    """Refuse a stage that is composed of more prims or points than its files make credible."""
    from pxr import Usd

    refers = [_share(layer) for layer in layers]
    if not any(refers):
        return
    stage = Usd.Stage.Open(path)
    _check_count(stage, size)
    del stage
    for layer in layers:
        layer.Reload(force=True)


def _check_count(stage: Any, size: int) -> None:
    prims, values = _weight(stage.GetPseudoRoot(), {})
    for found, most, what in (
        (prims, max(MOST_PRIMS, size // BYTES_PER_PRIM), "prims"),
        (values, max(MOST_VALUES, size), "points and corners"),
    ):
        if found > most:
            raise RefusedError(
                f"is composed of {found:,} {what}, all references counted; the limit for its size is {most:,}"
            )


def _share(layer: Any) -> bool:
    """Make every prim that refers to another instanceable; whether there is one."""
    marked: list[Any] = []

    def mark(path: Any) -> None:
        prim = layer.GetPrimAtPath(path) if path.IsPrimPath() or path.IsPrimVariantSelectionPath() else None
        refers = prim and (prim.hasReferences or prim.hasPayloads or prim.hasInheritPaths or prim.hasSpecializes)
        if refers or (prim and prim.HasInfo("instanceable")):
            marked.append(prim)

    layer.Traverse("/", mark)
    if marked:
        layer.SetPermissionToEdit(True)
    for prim in marked:
        prim.instanceable = True
    return bool(marked)


def _weight(root: Any, known: dict[Any, tuple[int, int]]) -> tuple[int, int]:
    """Prims below a prim, and their points and corners, with what its instances stand for."""
    from pxr import Usd

    prims = values = 0
    for prim in Usd.PrimRange(root, Usd.PrimDefaultPredicate):
        prims, values = prims + 1, values + _length(prim, "points") + _length(prim, "faceVertexIndices")
        if prim.IsInstance():
            shared = prim.GetPrototype()
            if shared.GetPath() not in known:
                known[shared.GetPath()] = _weight(shared, known)
            prims, values = prims + known[shared.GetPath()][0] - 1, values + known[shared.GetPath()][1]
    return prims, values


def _length(prim: Any, name: str) -> int:
    from pxr import Usd

    attribute = prim.GetAttribute(name)
    value: Any = attribute.Get(Usd.TimeCode.EarliestTime()) if attribute else None
    return len(value) if hasattr(value, "__len__") else 0


def read_all(path: str, size: int) -> None:
    """Read every value of every prim, of those that instances share once."""
    from pxr import Usd

    stage = Usd.Stage.Open(path)
    _check_count(stage, size)  # again: a prim that is made instanceable loses what the file has below it
    for root in (stage.GetPseudoRoot(), *stage.GetPrototypes()):
        for prim in Usd.PrimRange(root, Usd.PrimAllPrimsPredicate):
            for attribute in prim.GetAttributes():
                attribute.Get()
                for time in attribute.GetTimeSamples():
                    attribute.Get(time)
            for relationship in prim.GetRelationships():
                relationship.GetTargets()


if __name__ == "__main__":
    sys.exit(main())
