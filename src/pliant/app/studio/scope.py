"""What one open scene has on the page, and its end.

The page's loop, the window's worker, the timeline and the frames that are solved ahead run in threads of their own, and
any of them may be drawing when another scene is opened. So a scene's widgets and nodes are made through its scope
alone, and `Scope.close` removes all of them in one step. Whoever would add or change something afterwards gets a
`StoppedError`, which ends that work and nothing else.

The scope's lock is held while one thing is added or changed, never while something is computed or waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from pliant.app.studio.worker import StoppedError


class Closable(Protocol):
    """Something that runs until it is closed."""

    def close(self) -> None:
        """End it."""


Running = TypeVar("Running", bound=Closable)


class Scope:
    """The owner of all that an open scene shows and runs. client: viser's, of one window."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.RLock()
        self.closed = False
        self._widgets: list[Handle] = []
        self._nodes: dict[str, Handle] = {}
        self._running: list[Closable] = []
        self._inside: list[Handle] = []  # folders that widgets are being put into
        self.gui, self.scene = Api(self, client.gui, self._keep_widget), Api(self, client.scene, self._keep_node)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep it open meanwhile; raises StoppedError if it is closed."""
        with self._lock:
            if self.closed:
                raise StoppedError
            yield

    def guard(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, while the scene is open."""

        def guarded(*given: Any, **named: Any) -> Any:
            with self.open():
                return call(*given, **named)

        return guarded

    def own(self, running: Running) -> Running:
        """Close something together with the scene, or at once if that is closed."""
        with self._lock:
            if not self.closed:
                self._running.append(running)
                return running
        running.close()
        raise StoppedError

    def close(self) -> None:
        """Remove all widgets and nodes, then end what is running."""
        with self._lock:
            self.closed = True
            for handle in [*self._widgets, *self._nodes.values()]:
                handle.remove()
            self._widgets, self._nodes = [], {}
            running, self._running = self._running, []
        for one in running:
            one.close()

    def hide(self) -> Callable[[], None]:
        """Have nothing seen of the scene; what is returned has it seen again."""
        with self.open():
            seen = [node for node in self._nodes.values() if node.visible]
            for node in seen:
                node.visible = False

        def show() -> None:
            with self.open():
                for node in seen:
                    node.visible = True

        return show

    @property
    def camera(self) -> Any:
        """The window's."""
        return self._client.camera

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Have the page show what is changed meanwhile in one step."""
        with self.open(), self._client.atomic():
            yield

    @contextmanager
    def _in_folder(self, folder: Handle) -> Iterator[None]:
        """Put the widgets that are made meanwhile into a folder; those of other threads wait."""
        with self.open(), folder._made:
            self._inside.append(folder)
            try:
                yield
            finally:
                self._inside.pop()

    def _keep_widget(self, widget: Handle) -> None:
        (self._inside[-1]._inner if self._inside else self._widgets).append(widget)

    def _keep_node(self, node: Handle) -> None:
        before = self._nodes.get(node.name)
        if before is not None:
            before._forget()  # viser removes a node whose name is given again
        self._nodes[node.name] = node


class Api:
    """viser's ``gui`` or ``scene`` for one open scene: what it adds is kept."""

    def __init__(self, scope: Scope, api: Any, keep: Callable[[Handle], None]) -> None:
        self._scope, self._api, self._keep = scope, api, keep

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._api, name)
        return self._scope.guard(lambda *given, **named: self._add(call(*given, **named)))

    def _add(self, made: Any) -> Any:
        if made is None:
            return None
        handle = Handle(self._scope, made)
        self._keep(handle)
        return handle


class Handle:
    """A widget or a node of an open scene, used as viser's own; once it is removed, changing it does nothing."""

    _scope: Scope
    _made: Any
    _inner: list[Handle]
    _removed: bool

    def __init__(self, scope: Scope, made: Any) -> None:
        self.__dict__.update(_scope=scope, _made=made, _inner=[], _removed=False)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        return self._scope.guard(found) if name.startswith("on_") else found

    def __setattr__(self, name: str, value: Any) -> None:
        with self._scope.open():
            if not self._removed:
                setattr(self._made, name, value)

    def remove(self) -> None:
        """Take it off the page, with what is in it."""
        with self._scope._lock:
            if not self._removed:
                self._forget()
                self._made.remove()

    def _forget(self) -> None:
        self.__dict__["_removed"] = True
        for one in self._inner:
            one._forget()

    def __enter__(self) -> Handle:
        inside = self._scope._in_folder(self)
        inside.__enter__()
        self.__dict__["_entered"] = inside
        return self

    def __exit__(self, *raised: Any) -> None:
        self.__dict__.pop("_entered").__exit__(*raised)


def hear(callback: Callable[[Any], None], failed: Callable[[Exception], None]) -> Any:
    """A callback for viser that keeps events in order, and whose errors are shown on the page."""

    async def heard(event: Any) -> None:
        try:
            callback(event)
        except StoppedError:  # its scene has been closed
            pass
        except Exception as error:
            failed(error)

    return heard
