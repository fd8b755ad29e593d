from . import inspection as inspection, report as report, scene as scene
