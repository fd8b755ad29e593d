"""Two lists of the page: what follows a motion, and what of the motion it follows. What was found is filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pliant.app.studio.widgets import Widgets

NOTHING = "(nothing)"


class Pairing:
    """A folder with both lists, seen while there is something to be paired; a button of it opens them side by side on
    the page, to draw lines between.

    changed: gets all pairs once a visitor has changed one; "" stands for nothing.
    """

    def __init__(self, widgets: Widgets, title: str, changed: Callable[[dict[str, str]], None]) -> None:
        self._widgets, self._changed, gui = widgets, changed, widgets.desk.gui
        self.pairs: dict[str, str] = {}
        self._sources: tuple[str, ...] = ()
        self.folder = gui.add_folder(title, visible=False, expand_by_default=False)
        with self.folder:
            self.found = gui.add_markdown("")
            self.follower = gui.add_dropdown("This", ("...",), hint="What is moved, and what it follows now")
            self.followed = gui.add_dropdown("follows", ("...",), hint="What of the motion it is to follow")
            widgets.button("Draw lines", self._open, hint="Both lists side by side, with a line for each pair")
            hint = "Have the motion followed as these lists say"
            self.agree = widgets.button("Take these pairs", lambda: changed(self.pairs), visible=False, hint=hint)
        self._title, self._asks, self._opened = title, False, False
        self._page, hear = widgets.desk.page, widgets.desk.stage.hear
        self._page.on(
            pair=hear(lambda given: self._pair(*given)),
            agree=hear(lambda given: changed(self.pairs)),
            paired=hear(lambda given: self._open(False)),
        )
        widgets.on(self.follower, lambda label: self._show_chosen())
        widgets.on(self.followed, lambda source: self._pair(self._chosen, "" if source == NOTHING else source))

    def show(self, pairs: Mapping[str, str], sources: Sequence[str], found: str = "", *, asks: bool = False) -> None:
        """Have pairs, by what is moved; none: the folder is not seen. found: how sure they are, as text. asks: whether
        they are not taken before a visitor has agreed."""
        if not pairs and self._opened:  # lines can be drawn on while others are found
            return
        chosen = self._chosen
        self.pairs, self._sources = dict(pairs), tuple(sources)
        self.folder.visible, self.agree.visible, self._asks = bool(pairs), asks, asks
        self._open(self._opened)
        if pairs:
            self.found.content = found
            at = chosen if chosen in self.pairs else next(iter(self.pairs))
            self._widgets.show(self.follower, self._label(at), tuple(map(self._label, self.pairs)))
            self._show_chosen()

    @property
    def _chosen(self) -> str:
        return str(self.follower.value).partition(" ← ")[0]

    def _label(self, name: str) -> str:
        return f"{name} ← {self.pairs[name] or NOTHING}"

    def _show_chosen(self) -> None:
        self._widgets.show(self.followed, self.pairs.get(self._chosen, "") or NOTHING, (NOTHING, *self._sources))

    def _pair(self, follower: str, source: str) -> None:
        if follower in self.pairs and source in ("", *self._sources):
            self.pairs = self.pairs | {follower: source}
            self._open(self._opened)
            self._changed(self.pairs)

    def _open(self, opened: bool = True) -> None:
        """Show the lists side by side, or do not any more."""
        self._opened = opened
        lists = {"title": self._title, "pairs": self.pairs, "sources": self._sources, "asks": self._asks}
        self._page.show(pairing=lists if opened and self.pairs else None)
