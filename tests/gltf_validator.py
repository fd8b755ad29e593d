"""The Khronos glTF validator, installed by npm into a cache folder of the user, outside the tree."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

VALIDATOR = "gltf-validator@2.0.0-dev.3.10"
SCRIPT = """
const validator = require("gltf-validator"), fs = require("fs"), path = require("path"), lines = require("readline");
(async () => {
  for await (const line of lines.createInterface({ input: process.stdin })) {
    const file = JSON.parse(line);
    const load = (uri) => fs.promises.readFile(path.join(path.dirname(file), decodeURIComponent(uri)));
    const bytes = new Uint8Array(fs.readFileSync(file));
    const fetch = async (uri) => new Uint8Array(await load(uri));
    const options = { uri: path.basename(file), externalResourceFunction: fetch };
    console.log(JSON.stringify((await validator.validateBytes(bytes, options)).issues));
  }
})();
"""
"""A file's name in a line on standard input gives its issues in a line."""


def installed() -> tuple[str, Path | None]:
    """Where the validator is, installed if need be; or why it is not, and None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return "the Khronos glTF validator needs node and npm, which are not installed", None
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pliant-tests"
    home = cache / VALIDATOR.replace("@", "-")
    if home.is_dir():
        return "", home
    cache.mkdir(parents=True, exist_ok=True)
    fresh = tempfile.mkdtemp(dir=cache)
    install = [npm, "install", "--no-audit", "--no-fund", "--prefix", fresh, VALIDATOR]
    try:
        subprocess.run(install, capture_output=True, text=True, timeout=60, check=True)
        os.replace(fresh, home)
    except subprocess.SubprocessError as error:
        shutil.rmtree(fresh)
        return f"npm could not install {VALIDATOR} ({error})", None
    except OSError:  # another process was quicker
        shutil.rmtree(fresh)
    return "", home


@cache
def _process(home: Path) -> subprocess.Popen[str]:
    """Started once; it ends when its input does."""
    pipe = subprocess.PIPE
    started = subprocess.Popen(["node", "-e", SCRIPT], cwd=home, stdin=pipe, stdout=pipe, text=True)
    atexit.register(started.communicate)
    return started


def check(home: Path, *files: Path, allow: tuple[str, ...] = ()) -> None:
    """Fail on any error or warning that the validator finds in the files, but for the codes in `allow`."""
    process = _process(home)
    assert process.stdin is not None
    assert process.stdout is not None
    for file in files:
        process.stdin.write(json.dumps(str(file)) + "\n")
        process.stdin.flush()
        issues = json.loads(process.stdout.readline())
        bad = [m for m in issues["messages"] if m["severity"] < 2 and m["code"] not in allow]
        assert not bad, (file, bad[:5])
        assert not issues["truncated"]
