from .app.report import blend_report as blend_report, write_blend_report as write_blend_report
from .app.result import BlendRun as BlendRun
from .app.scene import BlendScene as BlendScene
from .autodiff import jax_shape as jax_shape, torch_shape as torch_shape
from .blendshapes import Blendshapes as Blendshapes
from .live import LiveBlend as LiveBlend
from .pulls import Pull as Pull
