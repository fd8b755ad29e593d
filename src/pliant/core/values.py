"""Immutable values: read-only arrays and dictionaries, and pickles that keep them so.

A value takes each array through `owned`, which copies it unless it is read-only down to the memory that it views, so
what a caller does to an array later never reaches the value. Code that has just made an array and gives it away marks
it with `locked`; then it is not copied.
"""

from __future__ import annotations

import importlib
import math
import mmap
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pliant.core.errors import FileError, InputError

CLIP_BYTES_IN_MEMORY = 1 << 29
"""Of clips that are longer, frames are in a file without a name."""


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """The same array made read-only, together with what it is a view of: for arrays that no one else writes to."""
    array.flags.writeable = False
    if isinstance(array.base, np.ndarray):
        locked(array.base)
    return array


def owned(values: ArrayLike, what: str, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """An array that nobody can write to: the very one given, if it is so already, or else a read-only copy."""
    if type(values) is np.ndarray and _is_locked(values) and (dtype is None or values.dtype == dtype):
        return values
    return locked(as_array(values, what, dtype, copy=True))


def as_array(values: ArrayLike, what: str, dtype: DTypeLike | None = None, *, copy: bool = False) -> NDArray[Any]:
    """NumPy's array or asarray, with an `InputError` where they fail."""
    try:
        return np.array(values, dtype=dtype) if copy else np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} are {_excerpt(values)}; expected numbers in rows of equal length") from None


def _is_locked(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, (bytes, mmap.mmap))


class Buffers:
    """Arrays in the memory of those that are gone: to get new memory takes as long as to fill it."""

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of any content, whose memory is used again when nobody holds the array, nor a view of it."""
        size = max(1, math.prod(shape) * np.dtype(dtype).itemsize)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = None
        if memory is None or len(memory) != size:
            memory = mmap.mmap(-1, size, **_PRIVATE)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                memory.madvise(mmap.MADV_HUGEPAGE)
        array: NDArray[Any] = np.ndarray(shape, dtype, buffer=memory)
        # A view's base is this array and not the memory, which is no array: when it is gone, so are they.
        weakref.finalize(array, self._keep, memory).atexit = False
        return array

    def _keep(self, memory: mmap.mmap) -> None:
        self._free[:] = [memory]

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffers, ()


_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def stack_frames(frames: Iterable[NDArray[Any]], *, folder: Path | None = None) -> NDArray[np.float64]:
    """(frames, ...) of arrays of one shape, as they come; a clip longer than memory is in a file that ends with it.

    folder: where the file is; that of temporary files if not given.
    """
    kept: list[NDArray[np.float64]] = []
    size = 0
    stored: IO[bytes] | None = None
    try:
        for frame in frames:
            kept.append(np.ascontiguousarray(frame, dtype=np.float64))
            size += kept[-1].nbytes
            if size > CLIP_BYTES_IN_MEMORY:
                stored = stored or tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
                stored.writelines(one.data for one in kept)
                shape = kept[-1].shape
                kept.clear()
        if stored is None:
            return locked(np.stack(kept))
        stored.flush()
        return np.asarray(np.memmap(stored, np.float64, "r")).reshape(-1, *shape)
    except OSError as error:
        where, reason = folder or tempfile.gettempdir(), (error.strerror or str(error)).lower()
        raise FileError(where, f"cannot hold a clip of {size:,} bytes ({reason})") from error
    finally:
        if stored is not None:
            stored.close()


def _excerpt(values: Any) -> str:
    text = " ".join(repr(values).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def owned_table(table: Mapping[Any, ArrayLike] | None, what: str) -> Mapping[Any, NDArray[Any]]:
    """A read-only dictionary of arrays that nobody can write to."""
    return MappingProxyType({name: owned(values, f'{what} "{name}"') for name, values in (table or {}).items()})


class Displayed:
    """What Jupyter shows as a 3-D view."""

    def _repr_html_(self) -> str:
        # By name: what draws stands above what is drawn.
        return str(importlib.import_module("pliant.render.notebook").html_of(self))


Converted = TypeVar("Converted", bound="Convertible")


class Convertible(Displayed):
    """To and from the meshes of other libraries (see `pliant.core.interop`)."""

    @classmethod
    def of(cls: type[Converted], other: Any) -> Converted:
        """From (V, F) arrays, or a mesh of trimesh, PyVista or meshio."""
        from pliant.core.interop import MESH_FORMS, as_shape

        shape = as_shape(other)
        if isinstance(shape, cls):
            return shape
        hint = f"{type(shape).__name__}.of" if isinstance(shape, Convertible) else MESH_FORMS
        raise InputError(f"a {type(other).__name__} is no {cls.__name__}; expected {hint}")

    from_trimesh = from_pyvista = from_meshio = of

    def to_trimesh(self) -> Any:
        """A `trimesh.Trimesh` of the triangles, or a `trimesh.PointCloud`, with UVs or colours of the vertices."""
        from pliant.core import interop

        return interop.to_trimesh(self)

    def to_pyvista(self) -> Any:
        """A `pyvista.PolyData`, or a `pyvista.UnstructuredGrid` of tetrahedra, with the attributes."""
        from pliant.core import interop

        return interop.to_pyvista(self)

    def to_meshio(self) -> Any:
        """A `meshio.Mesh` with the attributes."""
        from pliant.core import interop

        return interop.to_meshio(self)


class Value:
    """Base of frozen dataclasses of arrays and read-only dictionaries: they pickle and deepcopy, and stay read-only."""

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in vars(self).items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: _locked_again(value) for name, value in state.items()})


def _locked_again(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return locked(value)
    if isinstance(value, dict):
        return MappingProxyType(
            {name: _locked_again(inner) if isinstance(inner, np.ndarray) else inner for name, inner in value.items()}
        )
    if isinstance(value, tuple):
        for inner in value:
            _locked_again(inner)
    return value
