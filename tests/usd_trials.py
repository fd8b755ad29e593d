"""Trial reads of USD files without a start of Python for each: a process that has USD loaded forks for every one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pliant.io import apart
from pliant.io.usd import trial_read

SERVER = """
import json, os, sys
sys.path[:] = json.loads(sys.stdin.readline())
from pxr import Ar, Sdf, Tf, Usd, UsdGeom, UsdUtils
from pliant.io.usd import trial_read
for line in sys.stdin:
    sys.argv, printed = json.loads(line)
    process = os.fork()
    if not process:
        os.dup2(os.open(printed, os.O_WRONLY), 1)
        code = 1
        try:
            code = trial_read.main()
            sys.stdout.flush()
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


class ForkedTrials:
    """Stands for the module `subprocess` in `pliant.io.apart`."""

    DEVNULL, TimeoutExpired = subprocess.DEVNULL, subprocess.TimeoutExpired

    def __init__(self) -> None:
        self.server: subprocess.Popen[str] | None = None

    def run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        if Path(command[2]) != Path(trial_read.__file__):
            return subprocess.run(command, **options)  # type: ignore[no-any-return]
        if self.server is None:
            pipe, none = subprocess.PIPE, subprocess.DEVNULL
            program = [sys.executable, "-I", "-c", SERVER]
            self.server = subprocess.Popen(
                program, stdin=pipe, stdout=pipe, stderr=none, text=True, env=options["env"], start_new_session=True
            )
            self._send(sys.path)
        with tempfile.NamedTemporaryFile() as printed:
            self._send([command[2:4], printed.name])
            assert self.server.stdout is not None
            code = int(self.server.stdout.readline())
            return subprocess.CompletedProcess(command, code, Path(printed.name).read_bytes())

    def _send(self, words: Any) -> None:
        assert self.server is not None
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(words) + "\n")
        self.server.stdin.flush()

    def close(self) -> None:
        if self.server is not None:
            self.server.communicate()


def forked(patch: Any) -> ForkedTrials | None:
    """Have the reader of USD use it, where processes can fork."""
    if not hasattr(os, "fork"):
        return None
    trials = ForkedTrials()
    patch.setattr(apart, "subprocess", trials)
    return trials
