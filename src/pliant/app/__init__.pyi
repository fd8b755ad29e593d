from . import inspection as inspection
from . import report as report
from . import scene as scene
