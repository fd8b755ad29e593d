"""Reads one broken file after the other as a user would, in a process with bounded memory: run by `campaign`.

Each line on standard input is JSON: the file, how it is read, and what to do after ("convert", "render"). Each line
that comes back is JSON: the outcome, processor seconds, and what went wrong.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import traceback
import unicodedata
import warnings
from pathlib import Path
from typing import Any

SHAPES = ("open", "fist")


def main() -> None:
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pliant.app.cli  # noqa: F401  (imports count neither as time nor as memory of a case)

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed does not mix with the answers
    for line in sys.stdin:
        case = json.loads(line)
        begun = _processor_seconds()
        outcome, detail = examine(Path(case["file"]), case["role"], case["then"])
        answers.write(json.dumps([outcome, _processor_seconds() - begun, detail]) + "\n")
        answers.flush()


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def examine(file: Path, role: str, then: str) -> tuple[str, str]:
    """What becomes of a file: "clean", "refused", "traceback" or "memory", and the particulars."""
    try:
        if role == "model":
            outcome, detail = _command("info", "--json", str(file))
            if outcome == "clean":
                outcome, detail = _command("info", str(file))
            if outcome == "clean" and then == "convert":
                return _command("convert", str(file), str(file.parent / "out.npz"))
            if outcome == "clean" and then == "render":
                return _command("render", str(file), "-o", str(file.parent / "out.png"), "--size", "48x32", "--quiet")
            return outcome, detail
        if role == "scene":
            return _command("scene", "--check", str(file))
        return _table(file, role)
    except MemoryError:
        return "memory", "MemoryError"


def _table(file: Path, role: str) -> tuple[str, str]:
    from pliant.core.errors import PliantError
    from pliant.io.pins import read_pins
    from pliant.io.weights import read_weights

    try:
        read_pins(file, 10) if role == "pins" else read_weights(file, SHAPES)
    except PliantError as error:
        return "refused", str(error)
    except Exception:
        return "traceback", traceback.format_exc()
    return "clean", ""


def _command(*words: str) -> tuple[str, str]:
    """Run ``pliant``: it ends with 0 (JSON is JSON) or with 2 and one line; nothing printed moves the cursor."""
    from pliant.app.cli import main as pliant_main

    code, printed, complaints = _run(pliant_main, list(words))
    lines = [line for line in complaints.splitlines() if not line.startswith("pliant: note:")]
    if "not enough memory" in complaints:
        return "memory", complaints
    if "internal error" in complaints:
        return "traceback", _traced(pliant_main, list(words))
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t" for c in printed + complaints):
        return "traceback", f"control characters reach the terminal: {printed + complaints!r:.500}"
    if code == 0 and "--json" in words:
        try:
            json.loads(printed, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError):
            return "traceback", f"not JSON: {printed:.300}"
    if code == 0:
        return "clean", ""
    if code != 2 or len(lines) != 1:
        return "traceback", f"exit code {code} with {len(lines)} lines: {complaints:.500}"
    return "refused", lines[0]


def _run(program: Any, words: list[str]) -> tuple[int, str, str]:
    out, complaints = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        shown = warnings.showwarning
        try:
            program(words)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            warnings.showwarning = shown
    return code, out.getvalue(), complaints.getvalue()


def _traced(program: Any, words: list[str]) -> str:
    os.environ["PLIANT_DEBUG"] = "1"
    try:
        _run(program, words)
    except Exception:
        return traceback.format_exc()
    finally:
        del os.environ["PLIANT_DEBUG"]
    return "an internal error that did not come again"


if __name__ == "__main__":
    main()
