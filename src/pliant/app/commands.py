"""Commands as one types them."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path


def shell_command(*tokens: str | Path) -> str:
    """A command to be pasted into this system's shell: spaces and the like are quoted, and no path is an option."""
    join = subprocess.list2cmdline if os.name == "nt" else shlex.join
    return join([f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in tokens])
