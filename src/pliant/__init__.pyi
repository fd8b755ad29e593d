from . import gallery as gallery, io as io, render as render
from .app import inspection as inspection, report as report, scene as scene
from .core import rotations as rotations, shapes as shapes, skeleton as skeleton, topology as topology
from .core.clips import (
    Animation as Animation,
    Pose as Pose,
    Shapes as Shapes,
    SolvedAnimation as SolvedAnimation,
    WeightClip as WeightClip,
)
from .core.errors import (
    FileError as FileError,
    IndefiniteMatrixError as IndefiniteMatrixError,
    InputError as InputError,
    LinearSolveError as LinearSolveError,
    MissingExtraError as MissingExtraError,
    PliantError as PliantError,
    PliantWarning as PliantWarning,
    SingularMatrixError as SingularMatrixError,
)
from .core.regions import Sphere as Sphere
from .core.shapes import (
    Appearance as Appearance,
    Image as Image,
    Labels as Labels,
    Layer as Layer,
    Mesh as Mesh,
    PointCloud as PointCloud,
    TetMesh as TetMesh,
    World as World,
)
from .core.skeleton import Motion as Motion, Skeleton as Skeleton, SkeletonPose as SkeletonPose
from .core.skinned import SkinnedAnimation as SkinnedAnimation
from .engines.blend import Blendshapes as Blendshapes, Pull as Pull
from .engines.simulate import (
    ElasticBody as ElasticBody,
    ElasticPose as ElasticPose,
    Flexion as Flexion,
    Material as Material,
    Muscle as Muscle,
    Rod as Rod,
    RodPose as RodPose,
    Simulation as Simulation,
)
from .engines.transfer import (
    CageRig as CageRig,
    Control as Control,
    Follow as Follow,
    RiggedTransfer as RiggedTransfer,
    Track as Track,
    Transfer as Transfer,
    Weights as Weights,
    after_from as after_from,
    before_from as before_from,
    bone_controls as bone_controls,
    build_cage as build_cage,
    cell_tracks as cell_tracks,
    green_coordinates as green_coordinates,
    group_tracks as group_tracks,
    joint_tracks as joint_tracks,
    matrix_tracks as matrix_tracks,
    mean_value_coordinates as mean_value_coordinates,
    rigid_blocks as rigid_blocks,
    rigid_groups as rigid_groups,
    rod_tracks as rod_tracks,
    transfer_to_rig as transfer_to_rig,
)
from .engines.transfer.deformation_transfer import transfer as transfer
from .geometry import quality as quality, spatial as spatial
from .geometry.retargeting import retarget as retarget
from .geometry.skeletons import click_joint as click_joint, extract_skeleton as extract_skeleton
from .geometry.skinning import skin as skin
from .io import (
    read as read,
    read_animation as read_animation,
    read_mesh as read_mesh,
    read_motion as read_motion,
    read_points as read_points,
    read_shapes as read_shapes,
    read_skeleton as read_skeleton,
    read_tets as read_tets,
    read_weights as read_weights,
    write as write,
    write_stream as write_stream,
    write_weights as write_weights,
)
from .numerics import linalg as linalg

__version__: str
