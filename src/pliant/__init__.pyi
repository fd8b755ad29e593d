from . import gallery as gallery
from . import io as io
from . import render as render
from .app import inspection as inspection
from .app import report as report
from .app import scene as scene
from .core import rotations as rotations
from .core import shapes as shapes
from .core import skeleton as skeleton
from .core import topology as topology
from .core.clips import Animation as Animation
from .core.clips import Pose as Pose
from .core.clips import Shapes as Shapes
from .core.errors import (
    FileError as FileError,
)
from .core.errors import (
    IndefiniteMatrixError as IndefiniteMatrixError,
)
from .core.errors import (
    InputError as InputError,
)
from .core.errors import (
    LinearSolveError as LinearSolveError,
)
from .core.errors import (
    MissingExtraError as MissingExtraError,
)
from .core.errors import (
    PliantError as PliantError,
)
from .core.errors import (
    PliantWarning as PliantWarning,
)
from .core.errors import (
    SingularMatrixError as SingularMatrixError,
)
from .core.regions import Sphere as Sphere
from .core.shapes import (
    Appearance as Appearance,
)
from .core.shapes import (
    Image as Image,
)
from .core.shapes import (
    Labels as Labels,
)
from .core.shapes import (
    Layer as Layer,
)
from .core.shapes import (
    Mesh as Mesh,
)
from .core.shapes import (
    PointCloud as PointCloud,
)
from .core.shapes import (
    TetMesh as TetMesh,
)
from .core.shapes import (
    World as World,
)
from .core.skeleton import Motion as Motion
from .core.skeleton import Skeleton as Skeleton
from .core.skeleton import SkeletonPose as SkeletonPose
from .engines.blend import Blendshapes as Blendshapes
from .engines.blend import Pull as Pull
from .engines.simulate import (
    ElasticBody as ElasticBody,
)
from .engines.simulate import (
    ElasticPose as ElasticPose,
)
from .engines.simulate import (
    Material as Material,
)
from .engines.simulate import (
    Rod as Rod,
)
from .engines.simulate import (
    RodPose as RodPose,
)
from .engines.simulate import (
    Simulation as Simulation,
)
from .engines.transfer import (
    CageRig as CageRig,
)
from .engines.transfer import (
    Control as Control,
)
from .engines.transfer import (
    Follow as Follow,
)
from .engines.transfer import (
    Track as Track,
)
from .engines.transfer import (
    Transfer as Transfer,
)
from .engines.transfer import (
    Weights as Weights,
)
from .engines.transfer import (
    after_from as after_from,
)
from .engines.transfer import (
    before_from as before_from,
)
from .engines.transfer import (
    bone_controls as bone_controls,
)
from .engines.transfer import (
    build_cage as build_cage,
)
from .engines.transfer import (
    cell_tracks as cell_tracks,
)
from .engines.transfer import (
    green_coordinates as green_coordinates,
)
from .engines.transfer import (
    group_tracks as group_tracks,
)
from .engines.transfer import (
    joint_tracks as joint_tracks,
)
from .engines.transfer import (
    matrix_tracks as matrix_tracks,
)
from .engines.transfer import (
    mean_value_coordinates as mean_value_coordinates,
)
from .engines.transfer import (
    rigid_blocks as rigid_blocks,
)
from .engines.transfer import (
    rigid_groups as rigid_groups,
)
from .engines.transfer import (
    rod_tracks as rod_tracks,
)
from .engines.transfer import (
    transfer as transfer,
)
from .geometry import quality as quality
from .geometry import spatial as spatial
from .geometry.retargeting import retarget as retarget
from .geometry.skeletons import click_joint as click_joint
from .geometry.skeletons import extract_skeleton as extract_skeleton
from .io import (
    read as read,
)
from .io import (
    read_animation as read_animation,
)
from .io import (
    read_mesh as read_mesh,
)
from .io import (
    read_motion as read_motion,
)
from .io import (
    read_points as read_points,
)
from .io import (
    read_shapes as read_shapes,
)
from .io import (
    read_skeleton as read_skeleton,
)
from .io import (
    read_tets as read_tets,
)
from .io import (
    write as write,
)
from .numerics import linalg as linalg

__version__: str
