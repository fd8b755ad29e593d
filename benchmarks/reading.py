"""Reading 250k-vertex files: pliant beside trimesh, in one run, processor seconds, best of five each. Alembic clips."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import trimesh

import pliant


def sphere_grid(rows: int, columns: int) -> pliant.Mesh:
    """A closed-looking band of rows × columns vertices, in quads cut to triangles."""
    u, v = np.meshgrid(np.linspace(0.01, np.pi - 0.01, rows), np.linspace(0, 2 * np.pi, columns, False), indexing="ij")
    points = np.stack([np.sin(u) * np.cos(v), np.cos(u), np.sin(u) * np.sin(v)], axis=-1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns), indexing="ij")
    a, b = (i * columns + j).ravel(), (i * columns + (j + 1) % columns).ravel()
    faces = np.concatenate([np.stack([a, b, b + columns], 1), np.stack([a, b + columns, a + columns], 1)])
    return pliant.Mesh(points, faces)


def best(function, path: Path, rounds: int = 5) -> float:
    """Seconds of the quickest of several calls."""
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        function(path)
        times.append(time.process_time() - begun)
    return min(times)


def alembic(path: Path) -> None:
    """A clip of 20,000 vertices and 120 frames, written and read."""
    mesh = sphere_grid(100, 200)
    noise = 0.01 * np.random.default_rng(0).standard_normal((120, *mesh.points.shape))
    clip = pliant.Animation(mesh, mesh.points + noise, 24.0)
    writing = best(lambda p: pliant.write(p, clip), path)
    reading = best(pliant.read_animation, path)
    size = path.stat().st_size / 1e6
    print(f"\nAlembic, {size:.1f} MB: written at {size / writing:.0f} MB/s, read at {size / reading:.0f} MB/s")


def main() -> None:
    mesh = sphere_grid(500, 500)
    slower: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("a.obj", "text.ply", "binary.ply", "a.stl", "a.off")}
        for name in ("a.obj", "binary.ply", "a.stl", "a.off"):
            pliant.write(files[name], mesh)
        as_trimesh = trimesh.Trimesh(mesh.points, mesh.triangles, process=False)
        as_trimesh.export(files["text.ply"], encoding="ascii")
        print(f"{len(mesh.points):,} vertices, {len(mesh.triangles):,} triangles; seconds, best of 5\n")
        print(f"{'file':12} {'MB':>6} {'pliant':>8} {'trimesh':>8} {'ratio':>6}")
        for name, path in files.items():
            pliant.read_mesh(path)
            ours = best(pliant.read_mesh, path)
            theirs = best(lambda p: trimesh.load(p, force="mesh"), path)
            size = path.stat().st_size / 1e6
            print(f"{name:12} {size:6.1f} {ours:8.3f} {theirs:8.3f} {theirs / ours:6.1f}")
            slower += [name] if ours > theirs else []
        alembic(Path(folder) / "clip.abc")
    if slower:
        raise SystemExit(f"slower than trimesh on {', '.join(slower)}")


if __name__ == "__main__":
    main()
