"""The Khronos glTF validator, installed by npm into a cache folder of the user, outside the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VALIDATOR = "gltf-validator@2.0.0-dev.3.10"
SCRIPT = """
const validator = require("gltf-validator"), fs = require("fs"), path = require("path");
(async () => {
  const reports = [];
  for (const file of process.argv.slice(1)) {
    const load = (uri) => fs.promises.readFile(path.join(path.dirname(file), decodeURIComponent(uri)));
    const bytes = new Uint8Array(fs.readFileSync(file));
    const fetch = async (uri) => new Uint8Array(await load(uri));
    const options = { uri: path.basename(file), externalResourceFunction: fetch };
    reports.push((await validator.validateBytes(bytes, options)).issues);
  }
  console.log(JSON.stringify(reports));
})();
"""


def validator():
    """A function that checks a list of files: it fails on any error or warning. Skips where node or npm is absent."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("the Khronos glTF validator needs node and npm, which are not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pliant-tests"
    home = cache / VALIDATOR.replace("@", "-")
    if not home.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=cache)
        done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--prefix", fresh, VALIDATOR],
                              capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
        if done.returncode:
            shutil.rmtree(fresh)
            pytest.skip(f"npm could not install {VALIDATOR}: {done.stderr.strip().splitlines()[-1:]}")
        try:
            os.replace(fresh, home)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)

    def check(*files, allow=()):
        done = subprocess.run([node, "-e", SCRIPT, *map(str, files)], cwd=home, capture_output=True, text=True,
                              timeout=120, check=True)  # fmt: skip
        reports = json.loads(done.stdout)
        assert len(reports) == len(files)
        for file, issues in zip(files, reports, strict=True):
            bad = [m for m in issues["messages"] if m["severity"] < 2 and m["code"] not in allow]
            assert not bad, (file, bad[:5])
            assert not issues["truncated"]

    return check
