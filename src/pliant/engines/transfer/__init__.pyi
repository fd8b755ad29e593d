from .app.posed_scene import CageScene as CageScene
from .app.report import transfer_report as transfer_report, write_transfer_report as write_transfer_report
from .app.result import TransferRun as TransferRun
from .app.scene import TransferScene as TransferScene
from .blocks import rigid_blocks as rigid_blocks
from .build import build_cage as build_cage
from .cage import Cage as Cage
from .controls import Weights as Weights
from .deformation_transfer import Transfer as Transfer, transfer as transfer
from .green import green_coordinates as green_coordinates
from .groups import rigid_groups as rigid_groups
from .mean_value import mean_value_coordinates as mean_value_coordinates
from .plan import (
    Control as Control,
    Follow as Follow,
    after_from as after_from,
    before_from as before_from,
    bone_controls as bone_controls,
)
from .rig import CagePose as CagePose, CageRig as CageRig, CageSolution as CageSolution
from .rigged import RiggedTransfer as RiggedTransfer, transfer_to_rig as transfer_to_rig
from .sources import (
    Track as Track,
    cell_tracks as cell_tracks,
    group_tracks as group_tracks,
    joint_tracks as joint_tracks,
    matrix_tracks as matrix_tracks,
    rod_tracks as rod_tracks,
)
