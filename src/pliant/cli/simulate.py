"""``pliant simulate``: a shape, its bones and their motion in, flesh that follows out."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.cli.arguments import Choices, add_command, count, positive, view
from pliant.cli.contact import add_obstacles, not_negative, obstacle_words, read_obstacles
from pliant.cli.results import tell
from pliant.cli.targets import Located, named_by_user, set_up
from pliant.errors import FileError, InputError
from pliant.io import write_clip
from pliant.io.source import Source, text_of
from pliant.progress import progress

if TYPE_CHECKING:
    from pliant.elastic import ElasticBody
    from pliant.report import SimulateRun
    from pliant.scene import ElasticScene
    from pliant.skeleton import Motion

SCENE = ".toml"
LEFT_TO_SCENES = (
    "skeleton", "joints", "motion", "clip", "map", "frames", "static", "young", "poisson", "density", "size",
    "gravity", "damping", "drag", "dt", "hold", "obstacle", "obstacle_motion", "friction", "warping", "rotations",
)  # fmt: skip
"""Options that a scene file says."""


def add_commands(commands: Any) -> None:
    """Make it known."""
    parser = add_command(commands, _simulate, "simulate", "flesh that follows a skeleton, as poses or as dynamics")
    parser.add_argument("input", metavar="MESH", help="a closed mesh, tetrahedra, points with normals, or a scene file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="clip: .glb .usdc .pc2 .npz, or a folder")
    what = parser.add_argument_group("what moves it")
    what.add_argument(
        "--skeleton", metavar="FILE", help="bones inside the mesh (default: the mesh file's own, or else found in it)"
    )
    what.add_argument("--joints", type=count, help="how many joints the skeleton has that is found in the mesh")
    what.add_argument("--motion", metavar="FILE", help="how the bones move: .bvh .glb .npz (default: the mesh file's)")
    what.add_argument("--clip", help="name, part of a name or number of the clip, where there are several")
    what.add_argument(
        "--map", metavar="A=B,...", help="joints of the skeleton and those of the motion that they follow, or a .json"
    )
    what.add_argument("--frames", metavar="A:B", type=_span, help="of the motion, counted from 0, the last one too")
    what.add_argument("--static", action="store_true", help="every frame at rest, without inertia")
    what.add_argument("--hold", type=not_negative, help="seconds to go on in the last pose")
    made = parser.add_argument_group("what it is made of (metres, kilograms, seconds)")
    made.add_argument("--young", type=positive, help="Young's modulus in pascals (default: 1e5, soft flesh)")
    made.add_argument("--poisson", type=_number, help="Poisson's ratio, below 0.5 (default: 0.4)")
    made.add_argument("--density", type=positive, help="kilograms per cubic metre (default: 1000)")
    made.add_argument(
        "--size", type=_size, help='metres of the longest side of its box (default: 2), or "file": as the file says'
    )
    made.add_argument("--gravity", type=_gravity, help="down the up axis, such as 9.81, or X,Y,Z (default: none)")
    made.add_argument(
        "--up",
        metavar="AXIS",
        default="auto",
        choices=Choices("pliant.render.camera", "Up"),
        help="which axis points up, for gravity, the ground of a motion and the report: %(choices)s; auto: as the file "
        "says, or y",
    )
    made.add_argument("--damping", type=not_negative, help="seconds, viscosity over stiffness (default: 0.005)")
    made.add_argument("--drag", type=not_negative, help="per second, against the bones' own motion (default: 0)")
    add_obstacles(parser.add_argument_group("what it gives way to"))
    how = parser.add_argument_group("how")
    how.add_argument("--nodes", type=count, help="points that carry the deformation (default: 3000)")
    how.add_argument("--dt", type=positive, help="the longest step in seconds (default: 1/60)")
    how.add_argument("--fps", type=positive, help="frames a second of the clip (default: the motion's, at most 1/dt)")
    for name, module in (
        ("warping", "pliant.engines.simulate.options"),
        ("rotations", "pliant.engines.simulate.options"),
    ):
        words = "to compare with: %(choices)s (default: the first)"
        how.add_argument(f"--{name}", metavar="WORD", choices=Choices(module, name.capitalize()), help=words)
    told = parser.add_argument_group("what is told")
    told.add_argument("--report", metavar="FILE", help="a web page: bones and body, curves of volume and energy")
    told.add_argument(
        "--view",
        type=view,
        default="auto",
        help="of the report: front, side, top, three-quarter, or AZIMUTH,ELEVATION in degrees",
    )
    told.add_argument("--quiet", action="store_true", help="say nothing but errors and notes")
    told.add_argument("--json", action="store_true", help="print all figures, frame by frame, for scripts")


def _span(text: str) -> tuple[int, int | None]:
    first, colon, last = text.partition(":")
    good = colon and (first or "0").isdecimal() and (not last or last.isdecimal())
    if not good or (last and int(last) < int(first or 0)):
        raise argparse.ArgumentTypeError(f'"{text}" is not A:B, such as 0:47, 10: or :47')
    return int(first or 0), int(last) if last else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number') from None


def _size(text: str) -> float | str:
    return text if text == "file" else positive(text)


def _gravity(text: str) -> float | tuple[float, ...]:
    parts = [_number(part) for part in text.split(",")]
    if len(parts) not in (1, 3):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number or X,Y,Z, such as 9.81 or 0,-9.81,0')
    return parts[0] if len(parts) == 1 else tuple(parts)


def _simulate(options: argparse.Namespace) -> int:
    """Let a shape follow a skeleton as flesh does: it bends, swings, sags and gives way. No weights are painted; bones
    that are not given are found in the mesh.
    """
    if Path(options.input).suffix.lower() == SCENE:
        _refuse_beside_scene(options)
    return made(options, lambda: _scene(options), obstacle_words(options))


def _refuse_beside_scene(options: argparse.Namespace) -> None:
    for name in (*LEFT_TO_SCENES, "up"):
        value = getattr(options, name)
        if not any(value is unsaid for unsaid in (None, False)) and value not in ([], "auto"):
            raise InputError(f"--{name.replace('_', '-')} was given beside a scene file; write it into the file")


def made(
    options: argparse.Namespace,
    read: Callable[[], ElasticScene],
    words: Mapping[str, str] | None = None,
    located: Located = named_by_user,
) -> int:
    """The clip of a scene, and what is told of it; the exit code. `words` tell of its obstacles, if given."""
    begun = time.perf_counter()
    with progress("reading, and filling it with nodes", quiet=options.quiet):
        scene, body = set_up(options.output, options.report, read, located)
    run = _moved(options, scene, body, time.perf_counter() - begun, words or {})
    written = write_clip(options.output, run.clip)
    if options.report:
        from pliant.report import write_simulate_report

        up = scene.up if options.up == "auto" else options.up
        with progress("drawing the report", quiet=options.quiet):
            write_simulate_report(options.report, run, view=options.view, up=up)
    return tell(options, run, written)


def _moved(
    options: argparse.Namespace, scene: ElasticScene, body: ElasticBody, seconds: float, words: Mapping[str, str]
) -> SimulateRun:
    """Move the body; seconds: what it took to set up."""
    from pliant.report import Contact, SimulateRun

    ready = time.perf_counter()
    with progress("posing" if scene.static else "simulating", quiet=options.quiet) as show:
        moved = scene.run(show, body=body)
    solved = time.perf_counter() - ready
    return SimulateRun(
        moved.body,
        moved.clip,
        moved.frames,
        scene.motion,
        moved.stopped,
        scene.title,
        seconds,
        solved,
        {**_settings(scene), **words},
        Contact(scene.obstacles, scene.options.get("friction", 0.0), names=scene.obstacle_names),
        scene.unit,
    )


def _settings(scene: ElasticScene) -> dict[str, str]:
    """What was asked for, in words."""
    made = scene.material
    words = {"scene": scene.file} if scene.file else {}
    words["material"] = f"E {made.young:g} Pa, ν {made.poisson:g}, {made.density:g} kg/m³"
    words |= {"regions": str(len(scene.regions))} if scene.regions else {}
    words["size"] = f"1 unit is {scene.unit:.4g} m"
    words |= {"gravity": str(scene.gravity)} if scene.gravity is not None else {}
    words |= {"obstacles": "; ".join(scene.obstacle_names)} if scene.obstacles else {}
    return words | {name: str(value) for name, value in (*scene.schemes.items(), *scene.options.items())}


def _scene(options: argparse.Namespace) -> ElasticScene:
    """From a scene file, or from the options that stand for one."""
    if Path(options.input).suffix.lower() != SCENE:
        return _from_options(options)
    from pliant.scene import ElasticScene, read_scene

    scene = read_scene(options.input, nodes=options.nodes, fps=options.fps)
    if not isinstance(scene, ElasticScene):
        raise FileError(options.input, f'is a scene of the engine "{scene.engine}"; expected "elastic", or: pliant run')
    return scene


def _from_options(options: argparse.Namespace) -> ElasticScene:
    import pliant
    from pliant.elastic import Material
    from pliant.engines.simulate.options import INERTIA, SimulateOptions
    from pliant.scene.elastic import ElasticScene, skeleton_of
    from pliant.scene.media import shape_in

    for name in INERTIA:
        if options.static and getattr(options, name) is not None:
            raise InputError(f"--{name} was given beside --static, which leaves out inertia; leave out one of them")
    chosen = {name: getattr(options, name) for name in ("young", "poisson", "density")}
    material = Material(**{name: value for name, value in chosen.items() if value is not None})
    obstacles, names = read_obstacles(options)
    shape = shape_in(options.input)
    if options.skeleton:
        if options.joints:
            raise InputError("--joints was given beside --skeleton; expected one or the other")
        skeleton = pliant.read_skeleton(options.skeleton)
    else:
        skeleton = _about(options.input, lambda: skeleton_of(shape, options.input, options.joints))
    asked = {name: getattr(options, name) for name in ("dt", "fps", "hold", "damping", "drag", "friction")}
    schemes = {name: getattr(options, name) for name in ("warping", "rotations")}
    return ElasticScene(
        shape,
        skeleton,
        _motion(options, shape, skeleton),
        static=options.static,
        material=material,
        size=SimulateOptions.size if options.size is None else options.size,
        nodes=options.nodes or SimulateOptions.nodes,
        gravity=options.gravity,
        up=options.up,
        obstacles=obstacles,
        obstacle_names=names,
        schemes={name: value for name, value in schemes.items() if value is not None},
        options={name: value for name, value in asked.items() if value is not None},
        title=f"{Path(options.input).name}{f' by {Path(options.motion).name}' if options.motion else ''}",
    )


def _about(file: str, work: Any) -> Any:
    """What is wrong is wrong with this file."""
    try:
        return work()
    except FileError:
        raise
    except InputError as error:
        raise FileError(file, str(error)) from None


def _motion(options: argparse.Namespace, shape: Any, skeleton: Any) -> Motion:
    """How the bones move, on this skeleton."""
    import pliant
    from pliant.scene.elastic import motion_of, motion_on, still_motion, up_axis

    clip = int(options.clip) if options.clip and options.clip.isdigit() else options.clip
    motion = pliant.read_motion(options.motion, clip=clip) if options.motion else motion_of(options.input, clip)
    if motion is None:
        if options.hold:
            return still_motion(skeleton)
        raise InputError(f"nothing moves the bones of {options.input}; give --motion FILE, or --hold SECONDS")
    file = options.motion or options.input
    first, last = options.frames or (0, None)
    last = len(motion) - 1 if last is None else last
    if max(first, last) >= len(motion):
        raise InputError(f"--frames ends at {max(first, last)}; {file} has {len(motion)} frames, numbered from 0")
    names = _names(options.map) if options.map else None
    up = up_axis(shape, options.up)
    moved: Motion = _about(file, lambda: motion_on(motion, skeleton, names, up=up, first=first, last=last))
    return moved


def _names(text: str) -> Mapping[str, str]:
    """From joints of the skeleton to those of the motion, as written, or from a file."""
    if Path(text).suffix.lower() == ".json":
        source = Source(Path(text))
        written = text_of(source)
        try:
            found = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise source.error(f"is not JSON ({error})") from None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise source.error('expected {"joint of the skeleton": "joint of the motion", ...}')
        return found
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not pairs or not all(equals and name.strip() for name, equals, _ in pairs):
        raise InputError(f'--map is "{text:.60}"; expected JOINT=JOINT,..., the skeleton\'s first, or a .json file')
    return {name.strip(): other.strip() for name, _, other in pairs}
