"""The engines there are, by name, as `pliant.io.FORMATS` lists formats.

An engine's name is its command, the ``engine`` of its scenes, and its entry in the studio. Whatever goes by engine
(``pliant run``, ``pliant scene``, the commands, the JSON schema, the reference in the docs, the studio's list) looks
here, so another engine is one more entry:

    ENGINES["squash"] = Engine("squash", "flattens a shape", ...)
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pliant.core.errors import InputError, PliantWarning
from pliant.core.options import Options, closest, shown
from pliant.engines.blend.options import BlendOptions
from pliant.engines.simulate.options import RodOptions, SimulateOptions
from pliant.engines.transfer.options import PosedOptions, TransferOptions, Weights

Lazy = Any
"""An object, or where it is: ``"package.module:name"``, imported when it is first needed."""


Division = Literal["any", "order", "whole"]
"""How frames of a scene can be solved apart: each alone, each after the one before, or all in one go."""


@dataclass(frozen=True)
class Engine:
    """An engine, and where its parts are."""

    name: str
    summary: str
    """What it does, in a line."""
    options: type[Options]
    """Those of its command and its main kind of scene."""
    records: Mapping[str, Lazy]
    """What its scenes may say, each a `Record`, by a title."""
    read: Lazy
    """(text, **changes) -> scene: the scene in a document, with options that count instead of what that says."""
    solve: Lazy
    """(scene, solver, show, seconds) -> run: all frames. solver: what ``scene.prepare()`` gave, in so many seconds.
    A run has a `clip`, a `failure` (which frames did not converge; empty if all did), `lines()`, a summary for a
    terminal, and `to_dict()`, all figures for scripts."""
    report: Lazy
    """(run, *, title, view, up) -> page: the report as HTML."""
    further_options: tuple[type[Options], ...] = ()
    """Those of tables of its scenes, or of other kinds of scenes."""
    write: Lazy = None
    """(output, run) -> paths: writes the clip, if there is more to it than its points."""
    joints: bool = False
    """Whether it writes a motion of joints, too."""
    command: Lazy = "pliant.app.cli.flags"
    """The module that adds arguments to the command, and makes a document of them; by default, from the record."""
    further: tuple[Lazy, ...] = ()
    """Modules of further commands, each with ``add_commands``."""
    frames: Lazy = None
    """The module that solves some frames of a scene, for batches; None: all are solved in one go, by `solve`.
    division(scene) -> `Division`. prepare_frames(scene, solver, frames): where each is solved alone, compute what they
    share, before workers copy the solver. shots(scene, solver) -> of frames in order, those that depend on none before.
    solve_frames(scene, solver, frames, before) -> (results, ended): what the solver found in ascending frames, from the
    result `before` them where they are solved in order; ended: whether the clip ends there.
    gathered(scene, solver, frames, results, setup seconds, solve seconds) -> run."""
    samples: Lazy = None
    """The module that poses a rig for data sets (`pliant.app.batch.data_set`).
    document(rig, options) -> the scene. dimensions(scene, options) -> how many numbers from 0 to 1 say a pose.
    posed(scene, solver, numbers, k, options) -> arrays of pose k by name. facts(scene, solver) -> what to note."""
    driven_by: str = ""
    """What moves it there: "weights" or "joints"."""
    description: str = ""
    """Of the command, in a few lines."""
    page: str = ""
    """What the report shows, in a few words."""
    panel: Lazy = "pliant.app.studio.panel:Panel"
    """The studio's panel: (desk, document) -> panel; by default, a widget for every option."""
    shape_key: str = "shape"
    """The key of its scenes under which the shape stands."""
    opens: Lazy = None
    """(shape, kinds) -> (rank, document): what the studio opens with it; None if nothing. shape: the table of a scene
    that names a file, several files or one of the gallery. kinds: what the file holds. It raises an InputError if it
    cannot use the shape. Of several engines the highest rank counts: 4 the file is made for it, 2 it needs a solid
    shape, 1 any shape will do, 0 only if it is chosen; the engine that is shown counts 3."""
    examples: Lazy = None
    """Scenes to begin with in the studio, by title."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Former names, each with what to write instead."""

    @property
    def title(self) -> str:
        """In the studio's list."""
        return self.name.capitalize()

    @property
    def changes(self) -> tuple[str, ...]:
        """Options that may be given beside a scene file."""
        return self.options.names(overrides=True)

    def all_options(self) -> tuple[type[Options], ...]:
        """The classes that declare its options."""
        return self.options, *self.further_options

    def part(self, name: str) -> Any:
        """A part of it, imported if it has to be."""
        return imported(getattr(self, name))

    def all_records(self) -> dict[str, Any]:
        """What its scenes may say, by title."""
        return {title: imported(record) for title, record in self.records.items()}

    def record(self, document: Mapping[str, Any]) -> Any:
        """What a scene such as this one may say: the record that knows most of its keys, the last of several."""
        records = reversed(list(self.all_records().values()))
        return max(records, key=lambda record: len(set(record.keys) & set(document)))


def imported(part: Lazy) -> Any:
    """What is named, imported if it has to be."""
    if not isinstance(part, str):
        return part
    module, _, name = part.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            "blend",
            "poses of one mesh, blended as a body: limbs turn, volume is kept",
            BlendOptions,
            {"blend": "pliant.engines.blend.app.scene_keys:BLEND"},
            read="pliant.engines.blend.app.scene:read_blend",
            solve="pliant.engines.blend.app.result:solve",
            report="pliant.engines.blend.app.report:blend_report",
            frames="pliant.engines.blend.app.result",
            samples="pliant.engines.blend.app.sampling",
            driven_by="weights",
            command="pliant.engines.blend.app.command",
            further=("pliant.engines.blend.app.correctives_command",),
            description="Blend shapes of one topology as a body of springs, from the first through all to the last or "
            "by a table of weights, and write the clip by suffix.",
            page="beside linear blending, with curves and figures",
            panel="pliant.engines.blend.app.panel:BlendPanel",
            shape_key="shapes",
            opens="pliant.engines.blend.app.panel_opening:opens",
            examples="pliant.engines.blend.app.panel_opening:BLEND_EXAMPLES",
        ),
        Engine(
            "transfer",
            "the motion of one thing on another, in a cage",
            TransferOptions,
            {
                "transfer": "pliant.engines.transfer.app.scene_keys:TRANSFER",
                "transfer, posed by hand": "pliant.engines.transfer.app.scene_keys:CAGE_SCENE",
            },
            read="pliant.engines.transfer.app.scene:read_caged",
            solve="pliant.engines.transfer.app.result:solve",
            report="pliant.engines.transfer.app.report:transfer_report",
            further_options=(Weights, PosedOptions),
            write="pliant.engines.transfer.app.result:write",
            joints=True,
            command="pliant.engines.transfer.app.command",
            further=("pliant.engines.transfer.app.cage_command",),
            description="Carry a motion over to another shape: its pieces turn and stretch the target's cage from "
            "inside, and the cage carries the target along, details and all.",
            page="source, target and cage, the energy, and how well the controls are met",
            panel="pliant.engines.transfer.app.panel:CagePanel",
            shape_key="target",
            opens="pliant.engines.transfer.app.panel_opening:opens",
            examples="pliant.engines.transfer.app.panel_opening:TRANSFER_EXAMPLES",
            aliases={"cage": 'engine = "transfer"; gradients and positions without sources are posed by hand'},
        ),
        Engine(
            "simulate",
            "flesh that follows a skeleton, as poses or as dynamics",
            SimulateOptions,
            {"simulate": "pliant.engines.simulate.app.scene_keys:SIMULATE"},
            read="pliant.engines.simulate.app.scene:read_elastic",
            solve="pliant.engines.simulate.app.result:solve",
            report="pliant.engines.simulate.app.report:simulate_report",
            frames="pliant.engines.simulate.app.result",
            samples="pliant.engines.simulate.app.sampling",
            driven_by="joints",
            further_options=(RodOptions,),
            command="pliant.engines.simulate.app.command",
            description="Let a shape follow a skeleton as flesh does: it bends, swings, sags and gives way. No weights "
            "are painted; bones that are not given are found in the mesh.",
            page="bones and body, curves of volume and energy",
            panel="pliant.engines.simulate.app.panel:ElasticPanel",
            opens="pliant.engines.simulate.app.panel_opening:opens",
            examples="pliant.engines.simulate.app.panel_opening:SIMULATE_EXAMPLES",
            aliases={"elastic": 'engine = "simulate"'},
        ),
    )
}


def engine_named(name: Any) -> Engine:
    """The engine of this name; a former name gets a warning that says what to write."""
    if isinstance(name, str) and name in ENGINES:
        return ENGINES[name]
    for engine in ENGINES.values():
        if isinstance(name, str) and name in engine.aliases:
            instead = engine.aliases[name]
            warnings.warn(f'engine = "{name}" is deprecated; write {instead}', PliantWarning, stacklevel=2)
            return engine
    hint = closest(name, list(ENGINES)) if isinstance(name, str) else f"expected one of {', '.join(ENGINES)}"
    raise InputError(f"there is no engine {shown(name)}; {hint}", argument="engine")
