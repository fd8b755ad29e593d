from .bend_twist import Centreline as Centreline, bend as bend, twist as twist
from .cages import cage as cage
from .creatures import creature as creature, creature_skeleton as creature_skeleton, creature_walk as creature_walk
from .dinosaurs import dinosaur as dinosaur, dinosaur_skeleton as dinosaur_skeleton, dinosaur_walk as dinosaur_walk
from .faces import face as face
from .gingerbread_man import gingerbread as gingerbread, gingerbread_skeleton as gingerbread_skeleton
from .hands import hand as hand, hand_skeleton as hand_skeleton
from .primitives import (
    bar as bar,
    bar_tets as bar_tets,
    box as box,
    cylinder as cylinder,
    sphere as sphere,
    tube as tube,
)
from .quadruped import (
    animal as animal,
    animal_gait as animal_gait,
    animal_gallop as animal_gallop,
    animal_skeleton as animal_skeleton,
)
from .robots import robot as robot
from .soup_cloud_tets import cloud as cloud, soup as soup, tets as tets
from .tentacles import tentacle as tentacle, tentacle_curl as tentacle_curl, tentacle_skeleton as tentacle_skeleton

SHAPES: tuple[str, ...]
POSED: tuple[str, ...]
SKELETONS: tuple[str, ...]
JOINT_MOTIONS: tuple[str, ...]
MOTIONS: tuple[str, ...]
CAGES: tuple[str, ...]
