from .app.report import simulate_report as simulate_report, write_simulate_report as write_simulate_report
from .app.result import SimulateRun as SimulateRun
from .app.scene import ElasticScene as ElasticScene
from .body import ElasticBody as ElasticBody, ElasticPose as ElasticPose
from .dynamics import BodyState as BodyState
from .material import Material as Material
from .muscles import Flexion as Flexion, Muscle as Muscle
from .reduced import ReducedBody as ReducedBody
from .rod import Rod as Rod, RodPose as RodPose
from .simulation import Simulation as Simulation
