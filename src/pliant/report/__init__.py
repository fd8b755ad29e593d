"""Reports: what was made, how it compares, and how the solver went, as one web page that needs nothing else.

rig = pliant.Blendshapes(shapes)
weights = rig.path(36)
run = BlendRun(rig, weights, list(rig.poses(weights)))
write_blend_report("report.html", run)
"""

from pliant.report.blend import blend_report, write_blend_report
from pliant.report.contact import Contact
from pliant.report.run import BlendRun
from pliant.report.simulate import simulate_report, write_simulate_report
from pliant.report.simulate_run import SimulateRun
from pliant.report.transfer import transfer_report, write_transfer_report
from pliant.report.transfer_run import TransferRun

__all__ = [
    "BlendRun",
    "Contact",
    "SimulateRun",
    "TransferRun",
    "blend_report",
    "simulate_report",
    "transfer_report",
    "write_blend_report",
    "write_simulate_report",
    "write_transfer_report",
]
