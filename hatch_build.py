"""Builds the library of kernels at installation: ``pip install .`` and ``pip install -e .`` run this."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the C++ sources into the package, and makes the wheel one for this platform and any Python 3."""

    def dependencies(self) -> list[str]:
        """A compiler that pip can install, where there is none."""
        return [] if self._maker().compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        maker = self._maker()
        try:
            if version != "editable" or maker.is_stale():
                maker.build_library()
        except maker.NoCompilerError as error:
            self.app.abort(str(error))
        platform = next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(maker.LIBRARY.relative_to(Path(self.root).resolve()).as_posix())

    def _maker(self) -> ModuleType:
        """`pliant.native.build`, which has to be loaded from its file: pliant is not installed yet."""
        path = Path(self.root, "src", "pliant", "native", "build.py")
        spec = importlib.util.spec_from_file_location("pliant_native_build", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
