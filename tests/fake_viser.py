"""A stand-in for viser's client: it keeps nodes and widgets, and lets a test move sliders, press, drag and click.

As viser does, it calls back on a loop in a thread of its own, and also when the program itself gives a widget another
value, a moment later; what is removed takes along what is in it, and raises when a property is assigned.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import warnings
from concurrent.futures import Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

LARGE = ("vertices", "points", "batched_positions", "batched_wxyzs", "batched_scales")
PATIENCE = 60.0
LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, name="page", daemon=True).start()


def tell(callbacks: list[Any], event: Any) -> Future[None]:
    """Call callbacks one after the other on the page's loop."""

    async def told() -> None:
        for callback in list(callbacks):
            heard = callback(event)
            if inspect.isawaitable(heard):
                await heard

    return asyncio.run_coroutine_threadsafe(told(), LOOP)


def fire(callbacks: list[Any], event: Any) -> None:
    """What a visitor does, and wait until the page has heard of it."""
    tell(callbacks, event).result(PATIENCE)


def do(session: Any, name: str, *given: Any) -> None:
    """What a visitor does on the studio's own part of the page, such as to scrub the timeline."""
    asyncio.run_coroutine_threadsafe(session.page.do(name, *given), LOOP).result(PATIENCE)


def all_done(*workers: Any) -> bool:
    """Wait until nothing is left to do on the page's loop, nor beside it; whether that came about in time."""
    while all(worker.idle(PATIENCE) for worker in workers):
        fire([], None)  # whatever the program has set before is heard by now
        if all(worker.idle(0.0) for worker in workers):
            return True
    return False


class Widget:
    """Anything on the page that has properties: a slider, a button, a folder, a mesh, a handle."""

    __hash__ = None  # type: ignore[assignment]  # as viser's, which compare by value

    removed = False
    lag = 0.0
    """Seconds that it takes to assign what is large."""

    def __init__(self, kind: str, name: str, owner: dict[str, Any], **props: Any) -> None:
        self.kind, self.name, self.owner = kind, name, owner
        self.callbacks: list[Any] = []
        self.drags: list[Any] = []
        self.inner: list[Widget] = []
        self._open = props.pop("open_folders", None)
        self.visible, self.disabled = True, False
        self._value, self._options = props.pop("value", None), props.pop("options", ())
        self.__dict__.update(props)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in LARGE:
            time.sleep(self.lag)
        if self.removed and not name.startswith("_"):
            raise RuntimeError(f"Cannot assign to {name!r} on a removed {self.kind}.")
        super().__setattr__(name, value)

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if self._takes(value):
            tell(self.callbacks, SimpleNamespace(target=self, client=None))

    @property
    def options(self) -> tuple[str, ...]:
        return self._options

    @options.setter
    def options(self, options: Any) -> None:
        self._options = tuple(options)
        if self.value not in self._options:
            self.value = self._options[0]

    def _takes(self, value: Any) -> bool:
        """Have a value, of the type of the one before; whether it is another."""
        typed = value if self._value is None else type(self._value)(value)
        other = typed != self._value
        self._value = typed
        return other

    def _listen(self, callback: Any) -> Any:
        if self.removed:
            raise RuntimeError(f"Cannot register or remove callbacks on a removed {self.kind}.")
        self.callbacks.append(callback)
        return callback

    on_update = _listen

    def on_drag(self, button: str = "left", *, modifier: Any = None) -> Any:
        return lambda callback: self.drags.append(callback) or callback

    def remove(self) -> None:
        if self.removed:
            warnings.warn(f"Attempted to remove an already removed {self.kind}.", stacklevel=2)
            return
        self.__dict__["removed"] = True
        for one in self.inner:
            if not one.removed:
                one.remove()
        if self.owner.get(self.name) is self:
            del self.owner[self.name]

    def __enter__(self) -> Widget:
        self._open.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._open.pop() is self, "folders are open in two threads at a time"

    # What a visitor does

    def set(self, value: Any) -> None:
        """Move a slider, choose, type."""
        usable = not (self.removed or self.disabled)
        assert usable, f"{self.name} cannot be used"
        if self._takes(value):
            fire(self.callbacks, SimpleNamespace(target=self, client=None))

    def press(self) -> None:
        """Click a button."""
        usable = not (self.removed or self.disabled)
        assert usable, f"{self.name} cannot be pressed"
        fire(self.callbacks, SimpleNamespace(target=self, client=None))

    def drag(self, position: Any = None, wxyz: Any = None, phase: str = "update") -> None:
        """Move or turn a handle."""
        self.position = np.array(self.position if position is None else position, dtype=float)
        self.wxyz = np.array(self.wxyz if wxyz is None else wxyz, dtype=float)
        fire(self.callbacks, SimpleNamespace(target=self, phase=phase))

    def click(self, origin: Any, direction: Any) -> None:
        """Click a node along a ray, in the page's coordinates."""
        fire(self.callbacks, SimpleNamespace(target=self, ray_origin=tuple(origin), ray_direction=tuple(direction)))

    def pull(self, start: Any, end: Any, phase: str = "update") -> None:
        """Drag a node itself, in the page's coordinates."""
        fire(self.drags, SimpleNamespace(start_position=tuple(start), end_position=tuple(end), phase=phase))


class Pressed(Widget):
    """A button, or what is clicked in the scene."""

    __hash__ = None  # type: ignore[assignment]
    on_click = Widget._listen


class Gui:
    """``client.gui``: every ``add_...`` makes a widget, found again by its label."""

    def __init__(self) -> None:
        self.widgets: dict[str, Widget] = {}
        self.every: list[Widget] = []
        self._open: list[Widget] = []
        self.main_panel = _Placed()

    def add_panel(self) -> Any:
        return _Placed(self)

    def __getattr__(self, call: str) -> Any:
        if not call.startswith("add_"):
            return lambda *args, **props: None

        def add(label: Any = "", *args: Any, **props: Any) -> Widget:
            if call in ("add_markdown", "add_html"):
                props["content"] = label
            elif call == "add_progress_bar":
                props["value"] = label
            elif call == "add_dropdown":
                props["options"] = tuple(args[0] if args else props["options"])
                props.setdefault("initial_value", props["options"][0])
            elif call == "add_slider":
                props |= dict(zip(("min", "max", "step", "initial_value"), args, strict=False))
                props["initial_value"] = _on_slider(
                    **{key: props[key] for key in ("min", "max", "step")}, value=props["initial_value"]
                )
            elif args and call in ("add_text", "add_checkbox", "add_number", "add_vector3"):
                props["initial_value"] = args[0]
            if "initial_value" in props:
                props["value"] = props.pop("initial_value")
            props.setdefault("label", label)
            widget = (Pressed if "button" in call else Widget)(
                call[4:], str(label), self.widgets, open_folders=self._open, **props
            )
            self.widgets[str(label)] = widget
            self.every.append(widget)
            if self._open:
                self._open[-1].inner.append(widget)
            return widget

        return add

    def __getitem__(self, label: str) -> Widget:
        return self.widgets[label]

    def inside(self, folder: str) -> dict[str, Widget]:
        """The widgets in a folder, by label."""
        return {widget.name: widget for widget in self.widgets[folder].inner}


def _on_slider(*, min: float, max: float, step: float, value: float) -> float:
    """A slider's first value, checked and of the type that viser gives it."""
    if not min <= value <= max:
        raise ValueError(f"add_slider: initial_value ({value}) is outside of [{min}, {max}]")
    return float(value) if any(isinstance(one, float) for one in (min, max, step)) else value


class _Placed:
    """A window on the page, wherever it is put."""

    def __init__(self, gui: Gui | None = None) -> None:
        self._gui = gui

    def add_tab(self, label: str) -> Widget:
        assert self._gui is not None
        return self._gui.add_folder(label)

    def __getattr__(self, call: str) -> Any:
        return lambda *args, **props: None


class Scene:
    """``client.scene``: every ``add_...`` makes a node, found again by its name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Widget] = {}

    def __getattr__(self, call: str) -> Any:
        if not call.startswith("add_"):
            return lambda *args, **props: None

        def add(name: str, *args: Any, **props: Any) -> Widget:
            if call == "add_mesh_simple":
                props |= {"vertices": args[0], "faces": args[1]}
            elif call == "add_point_cloud" or call == "add_line_segments":
                props |= {"points": args[0]}
            elif call == "add_glb":
                props |= {"glb_data": args[0]}
            props.setdefault("position", np.zeros(3))
            props.setdefault("wxyz", np.array([1.0, 0.0, 0.0, 0.0]))
            node = Pressed(call[4:], name, self.nodes, **props)
            if name in self.nodes:
                self.nodes[name].remove()
            self.nodes[name] = node
            return node

        return add

    def __getitem__(self, name: str) -> Widget:
        return self.nodes[name]


class Client:
    """``viser.ClientHandle``, as far as the studio uses it."""

    def __init__(self, client_id: int = 0) -> None:
        self.client_id = client_id
        self.gui, self.scene = Gui(), Scene()
        self.camera = SimpleNamespace(
            image_height=30, image_width=40, position=np.array([0.0, -2.0, 0.0]), look_at=np.zeros(3), fov=1.0,
            aspect=4 / 3, up_direction=np.array([0.0, 0.0, 1.0]),
        )  # fmt: skip
        self.notes: list[tuple[str, str]] = []
        self.downloads: dict[str, bytes] = {}

    @contextmanager
    def atomic(self) -> Any:
        yield

    def get_render(self, height: int, width: int, **_: Any) -> np.ndarray:
        return np.zeros((height, width, 4), np.uint8)

    def add_notification(self, title: str, body: str, **_: Any) -> None:
        self.notes.append((title, body))

    def send_file_download(self, name: str, content: bytes, **_: Any) -> None:
        self.downloads[name] = content
