"""Writing USD: one prim below a default prim, in the shape's own axes and units (y up, metres), no subdivision.

    /model             Xform, or SkelRoot where there are blend shapes; the default prim
    /model/mesh        Mesh (or Points): points, faces, normals, primvars:st, displayColor, extent
    /model/mesh/...    GeomSubsets where there are several materials; BlendShapes
    /model/materials   UsdPreviewSurface materials
    /model/skeleton    of a skinned animation its joints; else one that never moves, which UsdSkel requires
    /model/motion      SkelAnimation of the joints, and of the weights of correctives

An animation becomes time samples of points, normals and extent, from time code 1. Names that USD cannot hold are kept
as custom data, vertex groups, labels and other values as primvars in the namespace "pliant".
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError, InputError
from pliant.core.normals import vertex_normals
from pliant.core.shapes import Appearance, Labels, Layer, Mesh, PointCloud, TetMesh, World
from pliant.core.skinned import SkinnedAnimation
from pliant.core.topology import Floats, Ints
from pliant.io.npz.arrays import EARLIEST
from pliant.io.output import settle
from pliant.io.pc2 import single_precision
from pliant.io.usd.geometry import ATTRIBUTES_PROPERTY, GROUPS, LABELS_PROPERTY, NAME_PROPERTY, ORDER
from pliant.io.usd.join import BASE
from pliant.io.usd.joints import PLIANT
from pliant.io.usd.material import identifier, write_materials
from pliant.io.usd.stage import complaint, library, quiet

ROOT = "/model"
FIRST_FRAME = 1
ALIGNMENT, PADDING = 64, 0x1986
"""Of the files in a package, which are mapped into memory; and the zip field that USD pads them with."""


def write_mesh(path: Path, content: Mesh) -> None:
    """A mesh with its materials, UVs, normals, colours, labels and groups."""
    with _new_stage(path, "Xform", content.world) as (stage, stage_path):
        _define_mesh(stage, content, stage_path)


def write_points(path: Path, content: PointCloud) -> None:
    """A point cloud."""
    with _new_stage(path, "Xform", content.world) as (stage, _):
        _define_points(stage, content)


def write_shapes(path: Path, content: Shapes) -> None:
    """A mesh with the other shapes as UsdSkel blend shapes, in their order."""
    with _new_stage(path, "SkelRoot", content.base.world) as (stage, stage_path):
        mesh = _define_mesh(stage, content.base, stage_path)
        stage.GetDefaultPrim().SetCustomDataByKey(BASE, content.names[0])
        _bind_to_one_joint(stage, mesh)
        _define_blend_shapes(stage, mesh, content)
        low, high = content.points.min(axis=(0, 1)), content.points.max(axis=(0, 1))
        library("UsdSkel").Root(stage.GetDefaultPrim()).CreateExtentAttr(_vectors(np.stack([low, high])))


def write_animation(path: Path, content: Animation) -> None:
    """Time samples of a mesh or of points; tetrahedra are written as their surface."""
    shape = content.shape.surface if isinstance(content.shape, TetMesh) else content.shape
    single_precision(content.points)
    with _new_stage(path, "Xform", shape.world) as (stage, stage_path):
        prim = _define_mesh(stage, shape, stage_path) if isinstance(shape, Mesh) else _define_points(stage, shape)
        _set_frames(stage, content)
        for frame, points in enumerate(content.points):
            time = FIRST_FRAME + frame
            prim.GetPointsAttr().Set(_vectors(points), time)
            prim.GetExtentAttr().Set(_extent(prim, points), time)
            if isinstance(shape, Mesh) and shape.normals is not None:
                normals = shape.with_points(points).normals
                assert normals is not None
                prim.GetNormalsAttr().Set(_vectors(normals.at_corners), time)


def write_skinned(path: Path, content: SkinnedAnimation) -> None:
    """A mesh bound to joints that move, its correctives as blend shapes whose weights move."""
    mesh = content.shape
    assert isinstance(mesh, Mesh)
    single_precision(content.points)
    with _new_stage(path, "SkelRoot", mesh.world) as (stage, stage_path):
        prim = _define_mesh(stage, mesh, stage_path)
        skeleton, tokens = _define_joints(stage, content)
        _bind(prim, skeleton, content.joints, content.weights)
        shapes: list[str] = []
        if len(content.correctives):
            points = np.concatenate([mesh.points[None], mesh.points + content.correctives])
            names = ("base", *(f"corrective {k}" for k in range(len(content.correctives))))
            shapes = _define_blend_shapes(stage, prim, Shapes(mesh, points, names))
        _define_motion(stage, skeleton, tokens, shapes, content)
        _set_frames(stage, content)
        low, high = content.points.min(axis=(0, 1)), content.points.max(axis=(0, 1))
        library("UsdSkel").Root(stage.GetDefaultPrim()).CreateExtentAttr(_vectors(np.stack([low, high])))


def _set_frames(stage: Any, content: Animation) -> None:
    stage.SetTimeCodesPerSecond(content.fps)
    stage.SetFramesPerSecond(content.fps)
    stage.SetStartTimeCode(FIRST_FRAME)
    stage.SetEndTimeCode(FIRST_FRAME + len(content) - 1)


@contextlib.contextmanager
def _new_stage(path: Path, root: str, world: World | None) -> Iterator[tuple[Any, Path]]:
    """A stage in memory with its default prim, and where files beside it go; saved to `path` at the end."""
    Tf, Usd, UsdGeom = library("Tf"), library("Usd"), library("UsdGeom")
    with contextlib.ExitStack() as stack:
        suffix = path.suffix.lower()
        stage_path = path
        if suffix == ".usdz":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pliant-usd-"))
            stage_path = Path(folder, "model.usdc")
        elif suffix != path.suffix:  # USD knows its suffixes in lower case only
            stage_path = path.with_suffix(suffix)
        stack.enter_context(quiet())
        try:
            stage = Usd.Stage.CreateInMemory()
            world = world or World()
            UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z if world.up == "z" else UsdGeom.Tokens.y)
            UsdGeom.SetStageMetersPerUnit(stage, world.metres or 1.0)
            stage.SetDefaultPrim(stage.DefinePrim(ROOT, root))
            yield stage, stage_path
            done = stage.GetRootLayer().Export(str(stage_path))
        except Tf.ErrorException as error:
            raise FileError(path, f"USD cannot write it ({complaint(error)})") from error
        if not done:
            raise FileError(path, "USD could not write it")
        if suffix == ".usdz":
            _pack(path, stage_path)
        elif stage_path != path:
            os.replace(stage_path, path)


def _pack(path: Path, layer: Path) -> None:
    """A package of a layer and the pictures below its folder: a zip without compression, every file aligned.

    USD's own packer stores the time, and does not notice a full disk.
    """
    settle(layer)
    pictures = sorted(file for file in layer.parent.rglob("*") if file.is_file() and file != layer)
    try:
        with path.open("wb") as stream, zipfile.ZipFile(stream, "w", allowZip64=False) as archive:
            for file in (layer, *pictures):
                entry = zipfile.ZipInfo(file.relative_to(layer.parent).as_posix(), EARLIEST)
                entry.external_attr = 0o644 << 16
                header = 30 + len(entry.filename.encode()) + 4
                gap = -(stream.tell() + header) % ALIGNMENT
                entry.extra = struct.pack("<HH", PADDING, gap) + bytes(gap)
                archive.writestr(entry, file.read_bytes())
    except zipfile.LargeZipFile as error:
        raise FileError(path, "would have more than 2 GB, which no package holds; write .usdc") from error


def _vectors(values: NDArray[Any]) -> Any:
    return library("Vt").Vec3fArray.FromNumpy(np.ascontiguousarray(single_precision(values)))


def _extent(prim: Any, points: Floats) -> Any:
    if not len(points):
        return _vectors(np.zeros((2, 3)))
    pad = 0.0
    if prim.GetPrim().IsA(library("UsdGeom").Points):
        pad = float(prim.GetWidthsAttr().Get()[0]) / 2
    single = single_precision(points).astype(np.float64)
    return _vectors(np.stack([single.min(axis=0) - pad, single.max(axis=0) + pad]))


def _define_mesh(stage: Any, mesh: Mesh, stage_path: Path) -> Any:
    UsdGeom, Vt = library("UsdGeom"), library("Vt")
    if not len(mesh.polygons):
        raise InputError("the mesh has no faces; write it as a point cloud")
    objects = mesh.labels.get("object")
    name = objects.names[0] if objects and len(objects.names) == 1 else "mesh"
    prim = UsdGeom.Mesh.Define(stage, f"{ROOT}/{identifier(name, {'materials', 'skeleton', 'motion'})}")
    prim.GetPrim().SetCustomDataByKey(PLIANT, True)
    prim.CreatePointsAttr(_vectors(mesh.points))
    prim.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(mesh.polygons.sizes.astype(np.int32)))
    prim.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(mesh.polygons.corners.astype(np.int32)))
    prim.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    prim.CreateExtentAttr(_extent(prim, mesh.points))
    if mesh.normals is not None:
        prim.CreateNormalsAttr(_vectors(mesh.normals.at_corners))
        prim.SetNormalsInterpolation(UsdGeom.Tokens.faceVarying)
    if mesh.uvs is not None:
        _write_uvs(prim, mesh.uvs)
    _write_values(prim, mesh.attributes, mesh.vertex_groups)
    taken: set[str] = set()
    for label, labels in mesh.labels.items():
        if label != "material":
            _write_label(prim, identifier(label, taken), label, labels)
    _write_looks(stage, prim, mesh, stage_path)
    return prim


def _define_points(stage: Any, cloud: PointCloud) -> Any:
    UsdGeom, Vt = library("UsdGeom"), library("Vt")
    prim = UsdGeom.Points.Define(stage, f"{ROOT}/points")
    prim.GetPrim().SetCustomDataByKey(PLIANT, True)
    prim.CreatePointsAttr(_vectors(cloud.points))
    # Wide enough to be seen, narrow enough to leave gaps: half the spacing of as many points in a square.
    width = 0.5 * cloud.diagonal / np.sqrt(max(len(cloud.points), 1)) or 1.0
    prim.CreateWidthsAttr(Vt.FloatArray([min(width, 3e38)]))
    prim.SetWidthsInterpolation(UsdGeom.Tokens.constant)
    prim.CreateExtentAttr(_extent(prim, cloud.points))
    if cloud.normals is not None:
        prim.CreateNormalsAttr(_vectors(cloud.normals))
        prim.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    _write_values(prim, cloud.attributes, {})
    return prim


def _write_uvs(prim: Any, layer: Layer) -> None:
    Sdf, UsdGeom, Vt = library("Sdf"), library("UsdGeom"), library("Vt")
    kind = Sdf.ValueTypeNames.TexCoord2fArray
    primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("st", kind, UsdGeom.Tokens.faceVarying)
    primvar.Set(Vt.Vec2fArray.FromNumpy(np.ascontiguousarray(single_precision(layer.values[:, :2]))))
    primvar.SetIndices(Vt.IntArray.FromNumpy(layer.index.astype(np.int32)))


def _write_values(prim: Any, attributes: Mapping[str, NDArray[Any]], groups: Mapping[str, Floats]) -> None:
    """Colours as USD's own, the rest as primvars of pliant's."""
    Sdf, Vt = library("Sdf"), library("Vt")
    types = Sdf.ValueTypeNames
    taken: set[str] = set()
    for name, values in attributes.items():
        table = np.asarray(values)
        if name == "color" and table.ndim == 2 and table.shape[1] in (3, 4) and table.dtype.kind == "f":
            _write_color(prim, table)
        elif table.dtype.kind in "fiub" and not (table.dtype.kind == "f" and not np.isfinite(table).all()):
            whole = table.dtype.kind != "f"
            flat = np.ascontiguousarray(table, dtype=np.int64 if whole else np.float64).reshape(-1)
            buffer = Vt.Int64Array.FromNumpy(flat) if whole else Vt.DoubleArray.FromNumpy(flat)
            kind = types.Int64Array if whole else types.DoubleArray
            primvar = _primvar(prim, f"{ATTRIBUTES_PROPERTY}:{identifier(name, taken)}", kind, name, buffer)
            primvar.SetElementSize(max(int(np.prod(table.shape[1:], dtype=np.int64)), 1))
            primvar.GetAttr().SetCustomDataByKey("shape", Vt.IntArray(list(table.shape[1:])))
    taken = set()
    for name, weights in groups.items():
        values = Vt.FloatArray.FromNumpy(np.ascontiguousarray(single_precision(np.asarray(weights))))
        _primvar(prim, f"{GROUPS}:{identifier(name, taken)}", types.FloatArray, name, values)


def _primvar(prim: Any, path: str, kind: Any, name: str, values: Any, interpolation: str = "vertex") -> Any:
    primvar = library("UsdGeom").PrimvarsAPI(prim).CreatePrimvar(path, kind, interpolation)
    primvar.Set(values)
    primvar.GetAttr().SetCustomDataByKey(NAME_PROPERTY, name)
    primvar.GetAttr().SetCustomDataByKey(ORDER, len(prim.GetPrim().GetAuthoredPropertiesInNamespace("primvars:pliant")))
    return primvar


def _write_color(prim: Any, color: NDArray[Any]) -> None:
    UsdGeom, Vt = library("UsdGeom"), library("Vt")
    prim.CreateDisplayColorPrimvar(UsdGeom.Tokens.vertex).Set(_vectors(color[:, :3]))
    if color.shape[1] == 4:
        opacity = np.ascontiguousarray(single_precision(color[:, 3]))
        prim.CreateDisplayOpacityPrimvar(UsdGeom.Tokens.vertex).Set(Vt.FloatArray.FromNumpy(opacity))


def _write_label(prim: Any, key: str, name: str, labels: Labels) -> None:
    Sdf, Vt = library("Sdf"), library("Vt")
    values = Vt.IntArray.FromNumpy(labels.index.astype(np.int32))
    primvar = _primvar(prim, f"{LABELS_PROPERTY}:{key}", Sdf.ValueTypeNames.IntArray, name, values, "uniform")
    primvar.GetAttr().SetCustomDataByKey("names", Vt.StringArray(list(labels.names)))


def _write_looks(stage: Any, prim: Any, mesh: Mesh, stage_path: Path) -> None:
    """Materials, bound to the mesh if there is one, to subsets of its faces if there are several."""
    UsdGeom, UsdShade, Vt = library("UsdGeom"), library("UsdShade"), library("Vt")
    label = mesh.labels.get("material")
    used = [name for name in label.names if name] if label else []
    looks = {name: mesh.appearances.get(name, Appearance()) for name in dict.fromkeys([*used, *mesh.appearances])}
    materials = write_materials(stage, f"{ROOT}/materials", looks, stage_path)
    if label is None or not used:
        return
    if len(label.names) == 1:
        UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(materials[used[0]])
        return
    family = UsdShade.Tokens.materialBind
    binding = UsdShade.MaterialBindingAPI.Apply(prim.GetPrim())
    taken: set[str] = set()
    for k, name in enumerate(label.names):
        faces = np.flatnonzero(label.index == k).astype(np.int32)
        if name and len(faces):
            subset = binding.CreateMaterialBindSubset(identifier(name, taken), Vt.IntArray.FromNumpy(faces))
            UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(materials[name])
    whole = "" not in label.names
    kind = UsdGeom.Tokens.partition if whole else UsdGeom.Tokens.nonOverlapping
    UsdGeom.Subset.SetFamilyType(prim, family, kind)


def _bind_to_one_joint(stage: Any, mesh: Any) -> None:
    """The skeleton that UsdSkel requires: a single joint at the origin, which holds every point."""
    Gf, UsdSkel, Vt = library("Gf"), library("UsdSkel"), library("Vt")
    skeleton = UsdSkel.Skeleton.Define(stage, f"{ROOT}/skeleton")
    identity = Vt.Matrix4dArray([Gf.Matrix4d(1)])
    skeleton.CreateJointsAttr(Vt.TokenArray(["root"]))
    skeleton.CreateBindTransformsAttr(identity)
    skeleton.CreateRestTransformsAttr(identity)
    skeleton.GetPrim().SetCustomDataByKey(PLIANT, True)
    _bind(mesh, skeleton, np.zeros((1, 1), dtype=np.int64), np.ones((1, 1)))


def _bind(mesh: Any, skeleton: Any, joints: Ints, weights: Floats) -> None:
    """The joints of each point (n, k) and their weights; of one row, those of all points."""
    Gf, UsdSkel, Vt = library("Gf"), library("UsdSkel"), library("Vt")
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateGeomBindTransformAttr(Gf.Matrix4d(1))
    constant, width = len(joints) == 1, joints.shape[1]
    numbers = np.where(weights > 0, joints, 0).astype(np.int32).reshape(-1)
    binding.CreateJointIndicesPrimvar(constant, width).Set(Vt.IntArray.FromNumpy(numbers))
    binding.CreateJointWeightsPrimvar(constant, width).Set(
        Vt.FloatArray.FromNumpy(weights.astype(np.float32).reshape(-1))
    )


def _define_joints(stage: Any, clip: SkinnedAnimation) -> tuple[Any, Any]:
    """The skeleton at rest, and its joints' paths."""
    Gf, UsdSkel, Vt = library("Gf"), library("UsdSkel"), library("Vt")
    skeleton, taken = clip.motion.skeleton, set[str]()
    paths: list[str] = []
    for name, parent in zip(skeleton.names, skeleton.parents.tolist(), strict=True):
        own = identifier(name, taken)
        paths.append(own if parent < 0 else f"{paths[parent]}/{own}")

    def transforms(positions: Floats, quaternions: Floats) -> Any:
        rows = (
            Gf.Matrix4d(Gf.Matrix3d(*R.T.ravel().tolist()), Gf.Vec3d(*x.tolist()))
            for R, x in zip(rotations.matrix(quaternions), positions, strict=True)
        )
        return Vt.Matrix4dArray(list(rows))

    prim = UsdSkel.Skeleton.Define(stage, f"{ROOT}/skeleton")
    tokens = Vt.TokenArray(paths)
    prim.CreateJointsAttr(tokens)
    prim.CreateJointNamesAttr(Vt.TokenArray(list(skeleton.names)))
    prim.CreateBindTransformsAttr(transforms(*skeleton.rest_world))
    prim.CreateRestTransformsAttr(transforms(skeleton.offsets, skeleton.rest_rotations))
    return prim, tokens


def _define_motion(stage: Any, skeleton: Any, tokens: Any, shapes: list[str], clip: SkinnedAnimation) -> None:
    """What the joints and the weights of correctives do, as the skeleton's animation."""
    Gf, UsdSkel, Vt = library("Gf"), library("UsdSkel"), library("Vt")
    motion = UsdSkel.Animation.Define(stage, f"{ROOT}/motion")
    motion.CreateJointsAttr(tokens)
    motion.CreateScalesAttr(Vt.Vec3hArray([Gf.Vec3h(1)] * len(tokens)))
    spins, moves = motion.CreateRotationsAttr(), motion.CreateTranslationsAttr()
    for frame, (quaternions, positions) in enumerate(zip(clip.motion.rotations, clip.motion.translations, strict=True)):
        time = FIRST_FRAME + frame
        spins.Set(Vt.QuatfArray([Gf.Quatf(*map(float, q)) for q in quaternions]), time)
        moves.Set(_vectors(positions), time)
    if shapes:
        motion.CreateBlendShapesAttr(Vt.TokenArray(shapes))
        weights = motion.CreateBlendShapeWeightsAttr()
        for frame, row in enumerate(clip.curves):
            weights.Set(Vt.FloatArray(row.tolist()), FIRST_FRAME + frame)
    UsdSkel.BindingAPI.Apply(skeleton.GetPrim()).CreateAnimationSourceRel().SetTargets([motion.GetPath()])


def _define_blend_shapes(stage: Any, mesh: Any, shapes: Shapes) -> list[str]:
    """Sparse offsets from the base as it is stored, so that base and offset add up to the shape; their tokens."""
    UsdSkel, Vt = library("UsdSkel"), library("Vt")
    binding = UsdSkel.BindingAPI(mesh.GetPrim())
    base = single_precision(shapes.base.points).astype(np.float64)
    taken = {str(child.GetName()) for child in mesh.GetPrim().GetChildren()}
    upright = vertex_normals(shapes.base.points, shapes.base.triangles)
    names, paths = [], []
    for name, points in zip(shapes.names[1:], shapes.points[1:], strict=True):
        offsets = points - base
        offsets[points == shapes.base.points] = 0
        chosen = np.flatnonzero(offsets.any(axis=1))
        token = identifier(name, taken)
        shape = UsdSkel.BlendShape.Define(stage, mesh.GetPath().AppendChild(token))
        shape.GetPrim().SetCustomDataByKey(NAME_PROPERTY, name)
        shape.CreateOffsetsAttr(_vectors(offsets[chosen]))
        change = vertex_normals(points, shapes.base.triangles) - upright
        shape.CreateNormalOffsetsAttr(_vectors(change[chosen]))
        shape.CreatePointIndicesAttr(Vt.IntArray.FromNumpy(chosen.astype(np.int32)))
        names.append(token)
        paths.append(shape.GetPath())
    binding.CreateBlendShapesAttr(Vt.TokenArray(names))
    binding.CreateBlendShapeTargetsRel().SetTargets(paths)
    return names
