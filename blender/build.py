"""Build the extension's zip for this platform: ``python blender/build.py [--output dist]`` (``make blender``).

The zip holds the extension, pliant's own wheel, and wheels of all that it needs but NumPy, which Blender brings along.
Blender installs them for the extension alone. Those wheels are listed in the manifest, as Blender expects it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
EXTENSION = ROOT / "blender" / "pliant_extension"
PLATFORMS = {"linux": "linux-x64", "manylinux": "linux-x64", "win": "windows-x64", "macosx": "macos-arm64"}
"""Blender's names, by how the tags of wheels begin."""
OLDEST_NUMPY = {"3.11": "1.24", "3.13": "2.1"}
"""By the Pythons of Blender (4.2 to 5.0, and 5.1 on): packages are chosen that can do with it. Blender installs the
wheels that suit its own Python."""
SIDE = ("cholespy",)
"""What the extra for speed brings."""


def build(output: Path) -> Path:
    """The zip."""
    manifest = (EXTENSION / "blender_manifest.toml").read_text(encoding="utf-8")
    about = tomllib.loads(manifest)
    with tempfile.TemporaryDirectory() as name:
        wheels = collect(Path(name))
        ends = [wheel.stem.split("-")[-1] for wheel in wheels]
        tags = {tag for start, tag in PLATFORMS.items() if any(end.startswith(start) for end in ends)}
        platform = min(tags) if tags else "all"
        lines = ",\n".join(f'  "./wheels/{wheel.name}"' for wheel in wheels)
        added = (f'platforms = ["{platform}"]\n' if tags else "") + f"wheels = [\n{lines},\n]\n"
        whole = manifest.replace("# blender/build.py adds platforms and wheels.\n", added)
        if whole == manifest:
            raise SystemExit("blender_manifest.toml lacks the line that wheels are put in place of")
        tomllib.loads(whole)
        output.mkdir(parents=True, exist_ok=True)
        path = output / f"pliant-{about['version']}-{platform}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
            package.writestr("blender_manifest.toml", whole)
            for source in sorted(EXTENSION.glob("*.py")):
                package.write(source, source.name)
            for wheel in wheels:
                package.write(wheel, f"wheels/{wheel.name}", zipfile.ZIP_STORED)
    return path


def collect(folder: Path) -> list[Path]:
    """pliant's wheel, and those that it needs."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], check=True)
    own = next(folder.glob("pliant-*.whl"))
    for python, numpy in OLDEST_NUMPY.items():
        these = ["--python-version", python, "--only-binary=:all:", "--dest", folder]
        subprocess.run([*pip, "download", *these, own, *SIDE, f"numpy=={numpy}.*"], check=True)
    return sorted(wheel for wheel in folder.glob("*.whl") if not re.match(r"numpy-", wheel.name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    made = build(parser.parse_args().output)
    print(f"{made} ({made.stat().st_size / 1e6:.0f} MB)")
