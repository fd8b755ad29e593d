"""What reaches the terminal: no name acts on it or fakes a line, no stream that is gone ends in a traceback."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pliant
from conftest import hear_signals
from pliant import Animation, Labels, Mesh, Shapes
from pliant.core import terminal
from pliant.core.progress import progress
from pliant.core.terminal import visible

NASTY = "a\x1b]0;owned\x07\x1b[2J\x9b31m\r\nFaked.\x7f\u202eetihw\u2066[red]<b>\ud800"
ACTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]


@pytest.fixture
def nasty(tmp_path, monkeypatch):
    """Files whose names, and all names in which, are nasty."""
    monkeypatch.chdir(tmp_path)
    labels = {kind: Labels((NASTY,), [0] * 4) for kind in ("object", "group", "material")}
    mesh = Mesh(POINTS, FACES, labels=labels, vertex_groups={NASTY: np.ones(4)}, attributes={NASTY: np.ones(4)})
    stem = "b\x1b[31m\r\nFaked\x9bc\u202e[red]"
    pliant.write(f"{stem}.npz", mesh)
    pliant.write(f"{stem}s.npz", Shapes(mesh, np.stack([POINTS, 2 * POINTS]), (NASTY, NASTY + "2")))
    pliant.write(f"{stem}c.npz", Animation(mesh, np.stack([POINTS, 2 * POINTS, 3 * POINTS]), name=NASTY))
    (tmp_path / f"{stem}.obj").write_text("v 0 0 0\nf 1 2 \x1b[31m3\n")
    (tmp_path / f"{stem}.toml").write_text('engine = "\\u001b[31m"\n')
    return stem


def test_other_threads_may_note_while_notes_are_shown(monkeypatch):
    printed, done = [], threading.Event()
    monkeypatch.setattr(terminal, "_notes", {})
    monkeypatch.setattr(terminal, "_complain", printed.extend)

    def noting():
        for k in range(100_000):
            terminal.note(f"note {k}")
        done.set()

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=noting)
    try:
        thread.start()
        while not done.is_set():
            terminal.show_notes()
    finally:
        sys.setswitchinterval(switching)
        thread.join()
    terminal.show_notes()
    assert printed == [f"note {k}" for k in range(100_000)]


def test_escapes_are_shown():
    assert visible("plain ünïcödé × 日本 [red]") == "plain ünïcödé × 日本 [red]"
    assert visible("\x1b[0m\n\x9b\u202e\udcff\x7f") == r"\x1b[0m\n\x9b\u202e\udcff\x7f"
    assert not ACTIVE.search(visible(NASTY))


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "{}.npz"],
        ["info", "{}s.npz"],
        ["info", "{}c.npz"],
        ["info", "{}*.npz"],
        ["info", "{}.obj"],
        ["info", "{}.missing"],
        ["info", "."],
        ["info", "{}.npz", "--json"],
        ["report", "{}c.npz"],
        ["report", "{}c.npz", "--json"],
        ["convert", "{}.npz", "{}.obj"],
        ["convert", "{}.npz", "{}.glb"],
        ["convert", "{}.npz", "{}.no such format"],
        ["render", "{}s.npz", "-o", "{}.png", "--size", "64x48"],
        ["render", "{}.npz", "-o", "a.png", "--measure", "{}"],
        ["run", "{}.toml"],
        ["scene", "--check", "{}.toml"],
        ["scene", "--examples", "{}"],
        ["--{}"],
        ["{}"],
    ],
)
def test_names_do_not_act_on_the_terminal(command_line, nasty, arguments):
    code, out, err = command_line(*(word.format(nasty) for word in arguments))
    assert code in (0, 2)
    assert "internal error" not in err
    for line in (out + err).split("\n"):
        assert not ACTIVE.search(line)
        assert not line.startswith("Faked")
    if "--json" in arguments:
        assert json.loads(out)


def test_names_do_not_act_on_a_page(tmp_path):
    from pliant.app.report import page

    text = page.page(NASTY, [NASTY], [page.section(NASTY, page.facts({NASTY: "</script><img onerror=x>"}))])
    written = page.write(tmp_path / "page.html", text).read_text(encoding="utf-8")
    assert not ACTIVE.search(written)
    assert "<img" not in written
    assert "<b>" not in written


def test_progress_shows_names_as_they_are(monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress("[red]\x1b]0;owned\x07") as show:
        show(1, 2, "[blue]\x9b31m")
    assert r"[red]\x1b]0;owned\x07" in screen.getvalue()
    assert r"[blue]\x9b31m" in screen.getvalue()
    assert "\x1b]0;" not in screen.getvalue()


# Streams that are gone, or cannot hold what is printed


def pliant_in_shell(command, folder, **environment):
    words = command.replace("pliant", f"{sys.executable} -m pliant")
    return subprocess.run(
        ["bash", "-c", words], cwd=folder, capture_output=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.fixture
def file(tmp_path):
    pliant.write(tmp_path / "a.obj", Mesh(POINTS, FACES))
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("set -o pipefail; pliant info a.obj | head -c 0", 0, ""),
        ("set -o pipefail; pliant info missing.obj 2>&1 | true", 2, ""),
        ("pliant info missing.obj >&-", 2, "missing.obj"),
        ("pliant convert a.obj b.glb <&- >&- 2>&- && test -s b.glb", 0, ""),
        ("test -w /dev/full || exit 2; pliant info a.obj > /dev/full", 2, ""),
        ("pliant info missing.obj 2> /dev/full; test $? = 2", 0, ""),
        pytest.param("set -o pipefail; pliant --help | true", 0, "", marks=pytest.mark.slow),
        pytest.param("set -o pipefail; pliant info a.obj --json | true", 0, "", marks=pytest.mark.slow),
        pytest.param("pliant info a.obj >&-", 0, "", marks=pytest.mark.slow),
        pytest.param("pliant info a.obj >&- 2>&-", 0, "", marks=pytest.mark.slow),
        pytest.param("pliant info missing.obj 2>&-", 2, "", marks=pytest.mark.slow),
        pytest.param("pliant info a.obj <&-", 0, "", marks=pytest.mark.slow),
    ],
)
def test_streams_that_are_gone(file, command, code, said):
    done = pliant_in_shell(command, file)
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_the_exit_code_survives_a_closed_pipe(file):
    """A computation that did not converge is told by 1, whoever reads along."""
    code = """
import sys, types
from pliant import cli
def parser():
    def run(options):
        cli.terminal.say("x" * 100000)
        return 1
    return types.SimpleNamespace(parse_args=lambda words: types.SimpleNamespace(run=run))
cli.parser_of_all = parser
cli.main(["x"])
"""
    done = subprocess.run(["bash", "-c", 'set -o pipefail; "$0" -c "$1" | true', sys.executable, code], timeout=60)
    assert done.returncode == 1


def test_an_encoding_without_the_letters(file):
    (file / "ü×日.obj").write_bytes((file / "a.obj").read_bytes())
    for environment in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        done = pliant_in_shell("pliant info ü×日.obj; pliant info ü.obj", file, **environment)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
        assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "module",
    ["pliant.engines.blend.app.command", "numpy", "pliant.app.inspection", "pliant.io.obj", "pliant.native"],
)
def test_an_interrupt_during_import(file, module):
    code = f"""
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from pliant.app.cli import main
main(["info", "a.obj"])
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=file, capture_output=True, text=True, timeout=120, preexec_fn=hear_signals, check=False
    )
    assert done.returncode == 128 + signal.SIGINT
    assert re.fullmatch(r"pliant: interrupted.*\n", done.stderr)


def test_long_work_says_in_a_pipe_that_it_goes_on(capsys, monkeypatch):
    monkeypatch.setattr("pliant.core.progress.FIRST_LINE", 0.05)
    with progress("solving") as show:
        show(3, 10)
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "solving: 3 of 10, 0 s"
    assert 2 <= len(lines) <= 5  # ever more rarely
    with progress("solving", quiet=True):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
