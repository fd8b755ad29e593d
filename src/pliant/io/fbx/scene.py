"""An FBX file as one shape: every mesh at every node, in world space, at rest or in any pose.

    v = p + Σ_s offsets_s(w_s)           morphed; a slider with in-betweens goes straight from one to the next
    x = W_node G v                       a plain mesh; G its geometry's transform at the node
    x = Σ_j w_j W_j B_j v                a skinned one; B_j from the geometry to joint j when it was bound

At rest, joints stand where they were bound, as in Blender; where nothing was bound to a joint, as it hangs on its
parent.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.errors import FileError, MissingExtraError, PliantWarning
from pliant.core.shapes import Appearance, Image, Labels, Layer, Mesh, World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints, locked
from pliant.io.apart import run_apart
from pliant.io.fbx.parse import FBX_ALLOWANCE
from pliant.io.joining import Part, checked_polygons, joined_mesh, object_labels
from pliant.io.naming import PICTURE_MARKS, unique_names
from pliant.io.posing import joint_motion, morphed, parent_joints, rest_skeleton, skinned
from pliant.io.source import LARGEST_UNPACKED, Source

LINEAR_SKINNING = (0, 1)
"""Of ufbx's methods of skinning, those that blend transforms linearly."""


@dataclass(frozen=True, eq=False)
class FbxMesh:
    """A mesh at a node."""

    number: int
    """Among the file's parts."""
    name: str
    part: Part
    joints: Ints
    """(j,) nodes that move it; the last is its own, which carries what no joint does."""
    to_joint: Floats
    """(j, 4, 4) from the geometry to each."""
    influence: Any
    """(n, j) sparse weights, in sum 1."""
    sliders: dict[str, tuple[Floats, Floats]]
    """By name, at which weights (m,) the slider has which offsets (m, n, 3)."""
    material: Ints
    """(polygons,) of the node's materials."""
    materials: tuple[str, ...]

    def points(self, world: Floats, weights: Floats) -> Floats:
        """(frames, n, 3) for transforms (frames, nodes, 4, 4) and weights (frames, sliders)."""
        shares, targets = [], []
        for (at, offsets), weight in zip(self.sliders.values(), weights.T, strict=True):
            shares.append(_shares(at, weight))
            targets += list(offsets)
        table = np.concatenate([*shares, np.zeros((len(weights), 0))], axis=1)
        shape = morphed(self.part.points, targets, table)
        return skinned(shape, self.influence, world[:, self.joints] @ self.to_joint)


@dataclass(frozen=True, eq=False)
class FbxScene:
    """What a file holds."""

    source: Source
    about: dict[str, Any]
    arrays: dict[str, Any]

    @cached_property
    def meshes(self) -> tuple[FbxMesh, ...]:
        """What is drawn."""
        parts = [self._mesh(k, about) for k, about in enumerate(self.about["parts"]) if len(self.arrays[f"{k}.sizes"])]
        if any(about["method"] not in LINEAR_SKINNING for about in self.about["parts"]):
            text = f"{self.source.label}: is skinned by dual quaternions; taken as linear skinning"
            warnings.warn(text, PliantWarning, stacklevel=2)
        return tuple(parts)

    def drawn(self) -> tuple[FbxMesh, ...]:
        """What is drawn, which must be something."""
        if not self.meshes:
            raise self.source.error("holds no mesh with faces")
        return self.meshes

    @property
    def clips(self) -> tuple[str, ...]:
        """The names of what moves."""
        return tuple(unique_names([name or f"clip {k}" for k, (name, *_) in enumerate(self.about["clips"])]))

    @cached_property
    def parents(self) -> Ints:
        """(nodes,) -1 for the root, which comes first."""
        parents: Ints = self.arrays["parents"]
        return parents

    @cached_property
    def order(self) -> Ints:
        """Of nodes, parents first."""
        depth = np.zeros(len(self.parents), dtype=np.int64)
        above = self.parents.copy()
        while (above >= 0).any():
            depth += above >= 0
            above = np.where(above >= 0, self.parents[above], -1)
        return np.argsort(depth, kind="stable")

    @cached_property
    def rest(self) -> Floats:
        """(nodes, 4, 4) at rest."""
        bound: dict[int, Floats] = {}
        for k in range(len(self.about["parts"])):
            if f"{k}.joints" in self.arrays:
                for joint, bind in zip(self.arrays[f"{k}.joints"], self.arrays[f"{k}.bind"], strict=True):
                    if abs(np.linalg.det(bind)) > 1e-30:
                        bound.setdefault(int(joint), bind)
        return self._world(self.arrays["local"][None], bound)[0]

    def _world(self, local: Floats, given: dict[int, Floats]) -> Floats:
        """(frames, nodes, 4, 4) from transforms against the parents; given: of some nodes, what they are."""
        world = local.copy()
        for node in self.order:
            if int(node) in given:
                world[:, node] = given[int(node)]
            elif self.parents[node] >= 0:
                world[:, node] = world[:, self.parents[node]] @ local[:, node]
        if not np.isfinite(world).all():
            raise self.source.error("has transforms that are not finite")
        return world

    @cached_property
    def moved(self) -> Floats:
        """(frames, nodes, 4, 4) in the clip that was asked for."""
        values = self.arrays["moved"]
        local = np.zeros((*values.shape[:2], 4, 4))
        R = rotations.matrix(rotations.normalize(np.roll(values[..., 3:7], 1, axis=-1)))
        local[..., :3, :3] = R * values[..., None, 7:]
        local[..., :3, 3] = values[..., :3]
        local[..., 3, 3] = 1
        return self._world(local, {})

    def shares(self, mesh: FbxMesh) -> Floats:
        """(frames, sliders) of a mesh in the clip that was asked for."""
        shares: Floats = self.arrays[f"{mesh.number}.shares"]
        return shares

    # Shapes

    @cached_property
    def mesh(self) -> Mesh:
        """All meshes as one, at rest."""
        meshes = self.drawn()
        points = [one.points(self.rest[None], np.zeros((1, len(one.sliders))))[0] for one in meshes]
        names, paths = [one.name for one in meshes], [f"{one.name} {k}" for k, one in enumerate(meshes)]
        parts = [one.part for one in meshes]
        labels = {"object": object_labels(parts, names, paths), **self._materials(meshes)}
        frames = [self.rest[one.joints[-1]] @ one.to_joint[-1] for one in meshes]
        joined = joined_mesh(parts, [frame.T for frame in frames], labels, self._looks(labels))
        return replace(joined.with_points(np.concatenate(points)), world=self.world)

    @property
    def world(self) -> World:
        """Its axes and units."""
        return World(self.about["up"], self.about["metres"])

    def animated(self) -> Floats:
        """(frames, n, 3) in the clip that was asked for."""
        meshes = self.drawn()
        count = sum(len(one.part.points) for one in meshes)
        if len(self.moved) * count * 24 > LARGEST_UNPACKED:
            raise self.source.error(f"has {len(self.moved)} frames of {count} points; give a lower fps")
        return locked(np.concatenate([one.points(self.moved, self.shares(one)) for one in meshes], axis=1))

    def slider_names(self) -> tuple[str, ...]:
        """Of all meshes; one that several have moves them together."""
        return tuple(dict.fromkeys(name for one in self.drawn() for name in one.sliders))

    # Joints

    @cached_property
    def joints(self) -> list[int]:
        """Nodes that are bones or that something is bound to, parents first."""
        bound = {int(j) for k in range(len(self.about["parts"])) for j in self.arrays.get(f"{k}.joints", ())}
        chosen = bound | set(self.about["bones"])
        if not chosen:
            raise self.source.error("holds no bones; expected a skeleton")
        return [int(node) for node in self.order if int(node) in chosen]

    @cached_property
    def skeleton(self) -> Skeleton:
        """The joints at rest."""
        frames, parents = self.rest[self.joints], parent_joints(self.joints, self.parents, self.order)
        return rest_skeleton(list(self._joint_names.values()), parents, frames, self.world)

    @cached_property
    def _joint_names(self) -> dict[int, str]:
        """Of the joints, each different."""
        names = unique_names([self.about["nodes"][joint] or "joint" for joint in self.joints])
        return dict(zip(self.joints, names, strict=True))

    def motion(self, name: str) -> Motion:
        """The joints in the clip that was asked for."""
        rest, moved = self.rest[self.joints], self.moved[:, self.joints]
        return joint_motion(self.skeleton, rest, moved, self.about["rate"], name)

    # Parts

    def _mesh(self, k: int, about: dict[str, Any]) -> FbxMesh:
        a = {name.partition(".")[2]: value for name, value in self.arrays.items() if name.startswith(f"{k}.")}
        points, location = a["points"], about["mesh"] or self.about["nodes"][about["node"]]
        if not np.isfinite(points).all():
            raise self.source.error("has points that are not finite", location=location)
        faces = a["sizes"] >= 3
        corners = np.repeat(faces, a["sizes"])
        polygons = checked_polygons(self.source, a["sizes"][faces], a["corners"][corners], len(points), location)
        part = Part(
            points,
            polygons,
            np.arange(len(polygons.corners)),
            uvs=_layer(a, "uv", corners),
            normals=_layer(a, "normal", corners),
            color=_point_colors(a, corners, polygons.corners, len(points)),
        )
        joints = np.append(a.get("joints", np.zeros(0, np.int64)), about["node"])
        to_joint = np.concatenate([a.get("to_joint", np.zeros((0, 4, 4))), a["to_node"][None]])
        influence = self._influence(a, len(points), len(joints), location)
        groups: dict[str, Floats] = {}
        for j in np.flatnonzero(influence[:, : len(joints) - 1].sum(axis=0)):
            name = self._joint_names[int(joints[j])]
            groups[name] = groups.get(name, 0.0) + influence[:, [j]].toarray()[:, 0]  # several clusters of one bone
        return FbxMesh(
            k,
            self.about["nodes"][about["node"]] or about["mesh"] or f"mesh {k}",
            replace(part, groups=groups),
            joints,
            to_joint,
            influence,
            {each["name"]: self._offsets(a, s, each, len(points), location) for s, each in enumerate(about["sliders"])},
            a["material"][faces] if len(a["material"]) else np.full(len(polygons), -1),
            tuple(about["materials"]),
        )

    def _influence(self, a: dict[str, Any], count: int, joints: int, location: str) -> Any:
        """(n, j) sparse weights in sum 1; what no joint moves, its own node does."""
        from scipy.sparse import csr_array

        rows, columns, weights = (a.get(name, np.zeros(0)) for name in ("rows", "columns", "weights"))
        if len(rows) and (rows.min() < 0 or rows.max() >= count):
            raise self.source.error(f"its skin refers to point {rows.max():.0f}; there are {count}", location=location)
        kept = np.isfinite(weights) & (weights > 0)
        table = csr_array(
            (weights[kept], (rows[kept].astype(np.int64), columns[kept].astype(np.int64))), shape=(count, joints)
        )
        total = np.asarray(table.sum(axis=1)).ravel()
        free = np.flatnonzero(total <= 0)
        own = csr_array((np.ones(len(free)), (free, np.full(len(free), joints - 1))), shape=(count, joints))
        return (table.multiply(1 / np.where(total > 0, total, 1)[:, None]) + own).tocsr()

    def _offsets(
        self, a: dict[str, Any], number: int, about: dict[str, Any], count: int, location: str
    ) -> tuple[Floats, Floats]:
        dense = np.zeros((len(about["at"]), count, 3))
        for m in range(len(about["at"])):
            rows, offsets = a[f"target{number}.{m}.rows"], a[f"target{number}.{m}.offsets"]
            if len(rows) != len(offsets) or (len(rows) and not 0 <= rows.min() <= rows.max() < count):
                problem = f'shape "{about["name"]}" does not fit the {count} points'
                raise self.source.error(problem, location=location)
            np.add.at(dense[m], rows, np.nan_to_num(offsets))
        return np.array(about["at"]), dense

    def _materials(self, meshes: tuple[FbxMesh, ...]) -> dict[str, Labels]:
        names = list(dict.fromkeys(name for one in meshes for name in one.materials))
        if not names:
            return {}
        number = {name: k for k, name in enumerate(names)}
        pieces = []
        for one in meshes:
            own = np.array([number[name] for name in one.materials] or [-1])
            pieces.append(np.where(one.material >= 0, own[np.clip(one.material, 0, len(own) - 1)], -1))
        used, compact = np.unique(np.concatenate(pieces), return_inverse=True)
        return {"material": Labels(tuple(names[k] if k >= 0 else "" for k in used), compact.reshape(-1))}

    def _looks(self, labels: dict[str, Labels]) -> dict[str, Appearance]:
        known = list(self.about["materials"])
        used = [name for name in labels["material"].names if name in known] if "material" in labels else []
        return {name: self._look(self.about["materials"][name]) for name in used}

    def _look(self, about: dict[str, Any]) -> Appearance:
        content = self.arrays[f"texture {about['number']}"]
        color = about["color"] if about["color"] and np.isfinite(about["color"]).all() else (0.8, 0.8, 0.8)
        files = [file.replace("\\", "/") for file in about["textures"]]
        image = self._image(bytes(content), files) if files else None
        red, green, blue = (1.0, 1.0, 1.0) if image else color
        return Appearance((red, green, blue, 1.0), image)

    def _image(self, data: bytes, files: list[str]) -> Image | None:
        """A texture: from the file itself, or from beside it."""
        names = [name for file in files for name in (file, file.rsplit("/", 1)[-1])]
        sources = (self._beside(name) for name in names)
        data = data or next((source.read() for source in sources if source is not None), b"")
        for mark, mime, _ in PICTURE_MARKS:
            if data.startswith(mark):
                return Image(names[1], data, mime)
        problem = "is not a picture" if data else "is missing"
        text = f'{self.source.label}: the texture "{names[1]}" {problem} and is left out'
        warnings.warn(text, PliantWarning, stacklevel=2)
        return None

    def _beside(self, file: str) -> Source | None:
        try:
            return self.source.sibling(file)
        except FileError:  # it leads elsewhere, so that it is not read
            return None


def _shares(at: Floats, weight: Floats) -> Floats:
    """(frames, m) of the shapes that a slider has at weights (m,), on straight lines from 0 from one to the next.

    Beyond the last on either side, or 0, the nearest shape goes on in proportion.
    """
    shares = np.zeros((len(weight), len(at)))
    for side in (1.0, -1.0):
        on, own = side * weight > 0, np.flatnonzero(side * at > 0)
        own = own[np.argsort(np.abs(at[own]), kind="stable")]
        if not len(own):  # nothing on this side: the nearest of the other, backwards
            for k in sorted(np.flatnonzero(at), key=lambda k: abs(at[k]))[:1]:
                shares[on, k] = weight[on] / at[k]
            continue
        knots = np.append(0.0, np.abs(at[own]))
        for column, k in enumerate(own):
            shares[on, k] = np.interp(np.abs(weight[on]), knots, np.eye(len(knots))[column + 1])
        over = on & (np.abs(weight) > knots[-1])
        shares[over, own[-1]] = np.abs(weight[over]) / knots[-1]
    return shares


def _layer(a: dict[str, Any], name: str, corners: Any) -> Layer | None:
    """Values on the corners that are kept."""
    if name not in a or not len(a[name]):
        return None
    index = a[f"{name}_index"]
    if len(index) != len(corners) or (len(index) and not 0 <= index.min() <= index.max() < len(a[name])):
        return None
    return Layer(np.nan_to_num(a[name]), index[corners])


def _point_colors(a: dict[str, Any], corners: Any, points: Ints, count: int) -> Floats | None:
    layer = _layer(a, "color", corners)
    if layer is None:
        return None
    colors = np.ones((count, 4))
    colors[points] = layer.at_corners
    return colors


def read_scene(source: Source, *, clip: int | None = None, fps: float | None = None) -> FbxScene:
    """What a file holds, with the motion of clip number `clip`."""
    return _parsed(source, {"clip": clip, "fps": fps, "geometry": True})


def read_outline(source: Source) -> FbxScene:
    """What a file holds, without geometry; remembered for as long as the file does not change."""
    request = {"clip": None, "fps": None, "geometry": False}
    if source.member:
        return _parsed(source, request)
    status = source.path.stat()
    key = (str(source.path.resolve()), status.st_size, status.st_mtime_ns)
    found = _outlines.get(key)
    if found is None:
        found = _parsed(source, request)
        _outlines.clear()
        _outlines[key] = found
    return replace(found, source=source)


_outlines: dict[tuple[str, int, int], FbxScene] = {}
"""Of the file that was looked at last."""


def _parsed(source: Source, request: dict[str, Any]) -> FbxScene:
    """What another process finds in a file."""
    try:
        import ufbx  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("reading FBX", "fbx") from error
    data = source.read()
    if not data:
        raise source.error("is empty")
    with tempfile.TemporaryDirectory(prefix="pliant-fbx-") as folder:
        path = Path(folder, "scene.fbx")
        path.write_bytes(data)  # as it was checked; it may be inside an archive
        script = Path(__file__).with_name("parse.py")
        seconds = 3 * FBX_ALLOWANCE.seconds(len(data))  # on a busy machine
        printed = run_apart(source, script, str(path), json.dumps(request), library="ufbx", seconds=seconds)
    if printed is None:
        raise source.error("needs a process of its own to be read, and none can be started here")
    with np.load(BytesIO(printed)) as arrays:
        found = dict(arrays)
    return FbxScene(source, json.loads(found.pop("about").tobytes()), found)
