"""glTF clips, skins and skeletons, against a slow and plain evaluation: one vertex, one joint, one key at a time."""

import json
import math
import struct

import numpy as np
import pytest

import pliant
from gltf_maker import FACES, TETRAHEDRON, Maker, rigged
from pliant import FileError, InputError, PliantWarning
from pliant.core import rotations
from pliant.io.gltf import read_motion
from pliant.io.source import Source


class Plain:
    """A GLB evaluated by loops, straight from the specification."""

    def __init__(self, path):
        data = path.read_bytes()
        size = struct.unpack_from("<I", data, 12)[0]
        self.json = json.loads(data[20 : 20 + size])
        self.data = data[28 + size :]
        self.parent = {c: k for k, node in enumerate(self.json["nodes"]) for c in node.get("children", [])}

    def numbers(self, k):
        """Rows of an accessor, read value by value."""
        entry = self.json["accessors"][k]
        view = self.json["bufferViews"][entry["bufferView"]] if "bufferView" in entry else None
        letter, size = {5121: ("B", 1), 5123: ("H", 2), 5126: ("f", 4)}[entry["componentType"]]
        width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}[entry["type"]]
        rows = [[0.0] * width for _ in range(entry["count"])]
        if view is not None:
            start = view.get("byteOffset", 0) + entry.get("byteOffset", 0)
            step = view.get("byteStride", width * size)
            rows = [
                list(struct.unpack_from(f"<{width}{letter}", self.data, start + i * step)) for i in range(len(rows))
            ]
        if "sparse" in entry:
            some = entry["sparse"]
            index = self.json["bufferViews"][some["indices"]["bufferView"]]["byteOffset"]
            values = self.json["bufferViews"][some["values"]["bufferView"]]["byteOffset"]
            for i in range(some["count"]):
                (row,) = struct.unpack_from("<H", self.data, index + 2 * i)
                rows[row] = list(struct.unpack_from(f"<{width}f", self.data, values + 4 * width * i))
        if entry.get("normalized"):
            rows = [[x / (2 ** (8 * size) - 1) for x in row] for row in rows]
        return rows

    def sampled(self, clip, t):
        """{(node, path): value} at time t."""
        result = {}
        for channel in self.json["animations"][clip]["channels"]:
            sampler = self.json["animations"][clip]["samplers"][channel["sampler"]]
            path = channel["target"]["path"]
            times = [row[0] for row in self.numbers(sampler["input"])]
            flat = [x for row in self.numbers(sampler["output"]) for x in row]
            mode = sampler.get("interpolation", "LINEAR")
            width = len(flat) // len(times)
            keys = [flat[i * width : (i + 1) * width] for i in range(len(times))]
            result[channel["target"]["node"], path] = self.key(times, keys, mode, path, t)
        return result

    def key(self, times, keys, mode, path, t):
        width = len(keys[0]) // (3 if mode == "CUBICSPLINE" else 1)
        value = lambda k: keys[k][width : 2 * width] if mode == "CUBICSPLINE" else keys[k]  # noqa: E731
        if t <= times[0]:
            return value(0)
        if t >= times[-1]:
            return value(-1)
        k = max(i for i, time in enumerate(times) if time <= t)
        d = times[k + 1] - times[k]
        u = (t - times[k]) / d
        a, b = value(k), value(k + 1)
        if mode == "STEP":
            return a
        if mode == "CUBICSPLINE":
            out, into = keys[k][2 * width :], keys[k + 1][:width]
            h = [2 * u**3 - 3 * u**2 + 1, d * (u**3 - 2 * u**2 + u), -2 * u**3 + 3 * u**2, d * (u**3 - u**2)]
            return [h[0] * p + h[1] * q + h[2] * r + h[3] * s for p, q, r, s in zip(a, out, b, into, strict=True)]
        if path != "rotation":
            return [(1 - u) * p + u * q for p, q in zip(a, b, strict=True)]
        dot = sum(p * q for p, q in zip(a, b, strict=True))
        b = [-q for q in b] if dot < 0 else b
        angle = math.acos(min(1.0, abs(dot)))
        if angle < 1e-9:
            return a
        return [(math.sin((1 - u) * angle) * p + math.sin(u * angle) * q) / math.sin(angle)
                for p, q in zip(a, b, strict=True)]  # fmt: skip

    def world(self, node, pose):
        entry = self.json["nodes"][node]
        if "matrix" in entry:
            local = np.array(entry["matrix"]).reshape(4, 4).T
        else:
            x, y, z, w = np.array(pose.get((node, "rotation"), entry.get("rotation", [0, 0, 0, 1])), float)
            x, y, z, w = np.array([x, y, z, w]) / math.sqrt(x * x + y * y + z * z + w * w)
            turn = np.array([
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ])  # fmt: skip
            local = np.eye(4)
            local[:3, :3] = turn @ np.diag(pose.get((node, "scale"), entry.get("scale", [1, 1, 1])))
            local[:3, 3] = pose.get((node, "translation"), entry.get("translation", [0, 0, 0]))
        return self.world(self.parent[node], pose) @ local if node in self.parent else local

    def points(self, node, pose, every=1):
        """World positions of every so many vertices of a node's mesh."""
        entry = self.json["nodes"][node]
        mesh = self.json["meshes"][entry["mesh"]]
        result = []
        for primitive in mesh["primitives"]:
            where = primitive["attributes"]
            rest = self.numbers(where["POSITION"])
            targets = [self.numbers(target["POSITION"]) for target in primitive.get("targets", [])]
            weights = pose.get((node, "weights"), entry.get("weights", mesh.get("weights", [0] * len(targets))))
            frame = self.world(node, pose)
            if "skin" in entry:
                skin = self.json["skins"][entry["skin"]]
                binds = [np.array(row).reshape(4, 4).T for row in self.numbers(skin["inverseBindMatrices"])]
                frames = [self.world(j, pose) @ bind for j, bind in zip(skin["joints"], binds, strict=True)]
                joints, shares = self.numbers(where["JOINTS_0"]), self.numbers(where["WEIGHTS_0"])
            for v in range(0, len(rest), every):
                p = np.array(rest[v]) + sum((w * np.array(t[v]) for w, t in zip(weights, targets, strict=True)), 0)
                if "skin" in entry:
                    total = sum(shares[v])
                    frame = sum(s / total * frames[int(j)] for j, s in zip(joints[v], shares[v], strict=True))
                result.append((frame @ [*p, 1])[:3])
        return np.array(result)


def check_clip(path, clip, nodes, *, every=1, frames=None):
    """Compare an animation with the plain evaluation, at some frames."""
    plain = Plain(path)
    animation = pliant.read_animation(path, clip=clip)
    starts = [min(plain.numbers(s["input"])[0][0] for s in plain.json["animations"][clip]["samplers"])]
    for k in frames or range(len(animation)):
        pose = plain.sampled(clip, starts[0] + k / animation.fps)
        expected = np.concatenate([plain.points(node, pose, every) for node in nodes])
        actual = animation.points[k, ::every]
        assert np.abs(actual - expected).max() < 1e-4 * animation.shape.diagonal / animation.fps


@pytest.mark.parametrize("clip", [0, 1, 2])
def test_clips_of_every_kind_match_a_plain_evaluation(tmp_path, clip):
    check_clip(rigged().glb(tmp_path / "a.glb"), clip, [2, 4])


@pytest.mark.data
def test_fox_walk_and_hand_spline_match_a_plain_evaluation(data):
    check_clip(data / "models/fox/Fox.glb", 1, [1], every=97, frames=[0, 5, 17])
    hand = data / "poses/hand/leftHandHigh.glb"
    node = next(k for k, n in enumerate(Plain(hand).json["nodes"]) if "mesh" in n)
    check_clip(hand, 2, [node], every=89, frames=[0, 3, 6])


def test_a_quarter_turn_is_halfway_at_half_time(tmp_path):
    m = Maker()
    m.add("nodes", mesh=m.mesh(TETRAHEDRON, FACES))
    half = math.sqrt(0.5)
    m.clip("spin", (0, "rotation", [0, 1], [[0, 0, 0, 1], [0, 0, half, half]], "LINEAR"))
    animation = pliant.read_animation(m.glb(tmp_path / "a.glb"), fps=2)
    assert len(animation) == 3
    np.testing.assert_allclose(animation.points[1, 1], [half, half, 0], atol=1e-7)
    np.testing.assert_allclose(animation.points[2, 1], [0, 1, 0], atol=1e-7)


@pytest.mark.parametrize(("spacing", "fps"), [(1 / 24, 24), (1 / 60, 60), (0.1, 10), (1.0, 30), (1 / 240, 30)])
def test_frame_rate_is_that_of_the_keys(tmp_path, spacing, fps):
    m = Maker()
    m.add("nodes", mesh=m.mesh(TETRAHEDRON, FACES))
    times = 2 + np.arange(5) * spacing
    m.clip("go", (0, "translation", times, np.outer(np.arange(5), [1.0, 0, 0]), "LINEAR"))
    animation = pliant.read_animation(m.glb(tmp_path / "a.glb"))
    assert animation.fps == fps
    assert animation.points[-1, 0, 0] == pytest.approx(4, abs=1e-5)
    if spacing * fps == 1:
        np.testing.assert_allclose(animation.points[:, 0, 0], np.arange(5), atol=1e-12)


def test_irregular_keys_are_sampled_at_thirty(tmp_path):
    m = Maker()
    m.add("nodes", mesh=m.mesh(TETRAHEDRON, FACES))
    m.clip("go", (0, "translation", [0, 0.03, 0.2, 1], np.outer([0, 0.03, 0.2, 1], [1.0, 0, 0]), "LINEAR"))
    animation = pliant.read_animation(m.glb(tmp_path / "a.glb"))
    np.testing.assert_allclose(animation.points[:, 0, 0], np.arange(31) / 30, atol=1e-6)


def test_clips_by_name_and_number(tmp_path):
    path = rigged().glb(tmp_path / "a.glb")
    assert pliant.read_animation(path).name == "turn"
    grow = pliant.read_animation(path, clip="grow")
    assert np.array_equal(grow.points, pliant.read_animation(path, clip=1).points)
    assert np.array_equal(grow.points, pliant.read_animation(path, clip="1").points)
    for wrong in ("jump", 3, -1):
        with pytest.raises(FileError, match="turn, grow, spline"):
            pliant.read_animation(path, clip=wrong)
    with pytest.raises(InputError, match="fps is 0"):
        pliant.read_animation(path, fps=0)


def test_skinned_clips_without_targets_are_shapes(tmp_path):
    m = rigged()
    del m.json["meshes"][0]["primitives"][0]["targets"], m.json["meshes"][0]["extras"], m.json["meshes"][0]["weights"]
    del m.json["animations"][1]
    path = m.glb(tmp_path / "a.glb")
    shapes = pliant.read_shapes(path)
    assert shapes.names == ("rest", "turn", "spline")
    assert np.array_equal(shapes.points[0], pliant.read_mesh(path).points)
    assert np.array_equal(shapes.points[2], pliant.read_animation(path, clip="spline").points[-1])


def test_skeleton_stands_where_the_joints_stand(tmp_path):
    path = rigged().glb(tmp_path / "a.glb")
    plain = Plain(path)
    bones = pliant.read_skeleton(path)
    assert bones.names == ("hip", "knee")
    assert bones.parents.tolist() == [-1, 0]
    places, turns = bones.rest_pose().world()
    for k, node in enumerate((1, 3)):
        frame = plain.world(node, {})
        np.testing.assert_allclose(places[k], frame[:3, 3], atol=1e-12)
        np.testing.assert_allclose(rotations.matrix(turns[k]), frame[:3, :3], atol=1e-12)


@pytest.mark.parametrize("scale", [3.0, -2.0])
def test_scale_goes_into_the_bones_and_nodes_between_are_folded_in(tmp_path, scale):
    m = rigged()
    m.json["nodes"][0]["scale"] = [scale] * 3
    m.json["nodes"][1]["children"] = [5]
    m.add("nodes", name="between", children=[3], translation=[0.5, 0, 0], rotation=[0, 0.6, 0, 0.8])
    path = m.glb(tmp_path / "a.glb")
    plain = Plain(path)
    motion = pliant.read_motion(path, clip="turn")
    places, _ = motion.world()
    assert motion.skeleton.parents.tolist() == [-1, 0]
    for frame in (0, 11, len(motion) - 1):
        pose = plain.sampled(0, frame / motion.fps)
        np.testing.assert_allclose(places[frame], [plain.world(k, pose)[:3, 3] for k in (1, 3)], atol=1e-6)
    lengths = np.linalg.norm(motion.translations[:, 1], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)


def test_uneven_scales_are_kept(tmp_path):
    """x = p + Δ S (X - P) is what the file's frames do to a point that is bound to a joint."""
    path = rigged().glb(tmp_path / "a.glb")
    plain, motion = Plain(path), pliant.read_motion(path, clip="grow")
    assert motion.scaled_joints == ["hip", "knee"]
    point, (P, rest) = np.array([0.3, -0.2, 0.5]), motion.skeleton.rest_world
    p, world = motion.world()
    for frame in (0, 11, len(motion) - 1):
        pose = plain.sampled(1, frame / motion.fps)
        for j, node in enumerate((1, 3)):
            there = np.array(plain.world(node, pose)) @ np.linalg.inv(plain.world(node, {})) @ [*point, 1]
            R = rotations.matrix(rotations.multiply(world[frame, j], rotations.inverse(rest[j])))
            moved = p[frame, j] + R @ motion.scales[frame, j] @ (point - P[j])
            np.testing.assert_allclose(moved, there[:3], atol=1e-6)
    np.testing.assert_allclose(motion.at([2.5]).scales[0], motion.scales[2:4].mean(axis=0))
    assert pliant.read_motion(path, clip="turn").scales is None
    with pytest.warns(PliantWarning, match="left out how joints are scaled: hip, knee"):
        pliant.write(tmp_path / "a.bvh", motion)


def test_joints_in_any_order_come_out_parents_first(tmp_path):
    m = rigged()
    m.json["skins"][0]["joints"] = [3, 1]
    bones = pliant.read_skeleton(m.glb(tmp_path / "a.glb"))
    assert bones.names == ("hip", "knee")


@pytest.mark.data
@pytest.mark.parametrize("name", ["models/fox/Fox.glb", "models/dino/Trex.glb", "models/dino/Velociraptor.glb",
                                  "poses/hand/leftHandHigh.glb"])  # fmt: skip
def test_real_motions_put_joints_where_the_file_does(data, name):
    path = data / name
    plain = Plain(path)
    motion = read_motion(Source(path), clip=1)
    nodes = [next(k for k, n in enumerate(plain.json["nodes"]) if n.get("name") == joint)
             for joint in motion.skeleton.names]  # fmt: skip
    frame = len(motion) // 2
    pose = plain.sampled(1, frame / motion.fps)
    expected = np.array([plain.world(node, pose)[:3, 3] for node in nodes])
    places, _ = motion.world()
    assert np.abs(places[frame] - expected).max() < 1e-3 * np.ptp(expected, axis=0).max()
    assert np.linalg.norm(motion.skeleton.offsets, axis=1).max() > 0


@pytest.mark.data
@pytest.mark.parametrize(("name", "vertices", "welded", "faces", "targets"), [
    ("poses/morph-glb/Horse.glb", 796, 494, 984, 15),
    ("poses/morph-glb/Flamingo.glb", 337, 273, 542, 14),
    ("poses/morph-glb/Parrot.glb", 497, 315, 626, 12),
    ("poses/hand/leftHandHigh.glb", 1425, 1162, 2320, 7),
    ("models/dino/Trex.glb", 3496, 912, 1820, 6),
    ("models/dino/Velociraptor.glb", 2576, 626, 1248, 6),
    ("models/fox/Fox.glb", 1728, 290, 576, 3),
])  # fmt: skip
def test_real_files_hold_what_their_notes_say(data, name, vertices, welded, faces, targets):
    shapes = pliant.read_shapes(data / name)
    base = shapes.base
    assert (len(base.points), len(base.polygons), len(shapes) - 1) == (vertices, faces, targets)
    weld = base.welded()
    assert len(weld.mesh.points) == welded
    assert weld.mesh.is_watertight
    assert base.volume > 0
    for points in shapes.points:
        assert np.abs(points - weld.restore(points[weld.kept])).max() < 1e-5 * base.diagonal  # seams stay shut


@pytest.mark.data
def test_horse_gallops_through_its_targets(data):
    path = data / "poses/morph-glb/Horse.glb"
    shapes, animation = pliant.read_shapes(path), pliant.read_animation(path)
    apart = np.abs(animation.points[:, None] - shapes.points[None, 1:]).max(axis=(2, 3)) / shapes.base.diagonal
    assert (apart.min(axis=1) < 1e-6).all()  # every key shows one target
    assert len(set(apart.argmin(axis=1))) == 15
