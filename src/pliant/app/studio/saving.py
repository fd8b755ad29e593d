"""What a window writes into the studio's folder: scenes, with the files they need, and clips.

Nothing is lost by it: a file that the scene reads is never written over, any other that was there before only if the
same is asked for a second time, and links are not followed. Uploaded files that a scene uses go into a folder beside
it, ``NAME-files``, so that the scene runs when the studio has ended.
"""

from __future__ import annotations

import filecmp
import glob
import os
import shutil
from pathlib import Path

from pliant.app.scene import write_scene
from pliant.app.scene.output import replaces
from pliant.app.scene.paths import files_named, files_read, renamed_files
from pliant.app.studio.desk import Document
from pliant.app.studio.folders import Folders
from pliant.core.clips import Animation
from pliant.core.errors import FileError
from pliant.io import BY_SUFFIX, write_clip
from pliant.io.output import staged

CLIP_FORMATS = {"GLB": ".glb", "USD": ".usdc", "OBJ sequence": ""}
"""What clips are written as; without a suffix, a folder of frames."""


class Saving:
    """One window's writing."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._own: set[Path] = set()
        """What this window has written, which it may write again."""
        self._asked: Path | None = None
        """What was there already when it was last to be written."""

    def scene(self, name: str, document: Document) -> Path:
        """Write a scene, and copies of the uploaded files that it uses."""
        stem = name.strip().removesuffix(".toml") or "scene"
        path = self.target(f"{stem}.toml", document)
        kept = renamed_files(document, lambda file: self._kept(file, stem), self.folders.given[0])
        write_scene(path, kept)
        self._own.add(path)
        return path

    def clip_target(self, name: str, kind: str, document: Document) -> Path:
        """Where a clip of a scene is to go."""
        suffix = CLIP_FORMATS[kind]
        stem = name.strip().removesuffix(suffix) or "clip"
        if Path(stem).suffix.lower() in BY_SUFFIX:
            given = Path(stem).suffix
            raise FileError(stem, f'ends in {given}; expected a name alone, since "Clip as" says what is written')
        return self.target(f"{stem}{suffix}", document)

    def clip(self, path: Path, clip: Animation) -> None:
        """Write a clip to where `clip_target` gave."""
        write_clip(path, clip)
        self._own.add(path)

    def target(self, name: str, document: Document) -> Path:
        """A path to write to, if nothing is lost by it."""
        path = self.folders.to_write(name)
        read = [file.resolve() for file in files_read(document, self.folders.given[0])]
        if any(replaces(path, file) or file.is_relative_to(path) for file in read):
            raise FileError(name, "is what the scene is made of; choose another name")
        if path.is_dir() and any(entry.is_symlink() for entry in path.iterdir()):
            raise FileError(name, "is a folder with links in it; choose another name")
        if path.exists() and path not in self._own and self._asked != path:
            self._asked = path
            raise FileError(name, "is there already; choose another name, or press again to replace it")
        self._asked = None
        return path

    def _kept(self, name: str, stem: str) -> str:
        """A file's name as the saved scene is to have it."""
        here = self.folders.given[0]
        for start in (str(here), glob.escape(str(here))):
            if name.startswith(start + os.sep):
                return name[len(start) + 1 :]
        uploads = str(self.folders.uploads)
        if not name.startswith(uploads + os.sep):
            return name
        window, _, inner = name[len(uploads) + 1 :].partition(os.sep)
        for file in files_named(name, here):
            self._copy(file, here / f"{stem}-files" / file.relative_to(self.folders.uploads / window))
        return f"{stem}-files/{inner}"

    def _copy(self, file: Path, to: Path) -> None:
        same = to.is_file() and not to.is_symlink() and filecmp.cmp(file, to, shallow=False)
        if same:
            return
        if to.exists() or to.is_symlink() or to.parent.resolve() != to.parent:
            where = to.relative_to(self.folders.given[0])
            raise FileError(where, "is there already and is something else; save under another name")
        with staged(to) as target:
            shutil.copyfile(file, target)
