"""The studio's server: it listens on the loopback address, and gives each window a session of its own.

Nobody else may use it. A browser tells in `Host` which address it was asked for, and in `Origin` which page asks:
requests for another address (a name of an attacker's that leads to this machine) and from pages of other sites are
refused, and no page may show the studio in a frame. Other users of this machine can reach its port, too: so its address
has a token, which the browser gets back as a cookie, and whoever has neither is refused. Nothing is shared over the
network, and uploads that say or turn out to be too large are cut off while they come in.
"""

from __future__ import annotations

import atexit
import copy
import inspect
import logging
import secrets
import shutil
import tempfile
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from hmac import compare_digest
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pliant.app.scene import read_scene, scene_from
from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.folders import LARGEST_UPLOAD, Folders
from pliant.app.studio.opening import document_for, examples, offers, opened
from pliant.app.studio.page import SOCKET, with_own_part
from pliant.app.studio.panel import Panel
from pliant.app.studio.session import Session, current
from pliant.core.errors import FileError, InputError, MissingExtraError, PliantWarning
from pliant.engines.registry import ENGINES

log = logging.getLogger("pliant.app.studio")

LOOPBACK = "127.0.0.1"
OWN_HOSTS = (LOOPBACK, "localhost", "[::1]")
HEADERS = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Of every response."""
NO_TOKEN = "Open the address that pliant studio has printed: it has a token, by which the studio knows you.\n"


class Studio:
    """A running studio.

    files: what each window opens with: a scene, or shapes; without any, the gallery.
    folders: what pages may read and write; the first is where they save. By default the files' folders, or the one
        pliant was started in.
    port: where it listens; 0 takes one that is free.
    largest_upload: bytes of one uploaded file.
    token: whether its address has a token, without which nobody is answered.
    """

    def __init__(
        self,
        files: Sequence[str | Path] = (),
        *,
        folders: Sequence[str | Path] = (),
        port: int = 8080,
        largest_upload: int = LARGEST_UPLOAD,
        token: bool = True,
    ) -> None:
        viser = _viser()
        if not isinstance(port, int) or not 0 <= port < 65536:
            raise InputError(f"port is {port!r}; expected a whole number from 0 to 65535")
        for file in files:
            if not Path(file).exists():
                raise FileError(file, "there is no such file")
        around = [Path(file).resolve().parent if Path(file).is_file() else Path(file) for file in files]
        self._document = _first_document([Path(file).resolve() for file in files])
        self._title = Path(files[0]).name if len(files) == 1 else ""
        self._uploads = tempfile.mkdtemp(prefix="pliant-studio-")
        atexit.register(shutil.rmtree, self._uploads, ignore_errors=True)
        self.folders = Folders.of([*folders, *around] or [Path.cwd()], self._uploads)
        self._largest = largest_upload
        self._lock = threading.Lock()
        self.sessions: dict[int, Session] = {}
        self._gone_ids: set[int] = set()
        self._left: Document | None = None
        self._token = secrets.token_urlsafe(16) if token else ""
        self._invitations: set[str] = set()
        with (
            redirect_stdout(StringIO()),
            own_pages_only(self._token, self._invitations, self._talk),
        ):  # the command says where it listens in its own words
            self._server = viser.ViserServer(host=LOOPBACK, port=port, label="pliant studio", verbose=False)
        self._server.request_share_url = _refuse  # a public address for this machine is nothing to hand out
        self._server.on_client_connect(self._joined)
        self._server.on_client_disconnect(self._gone)
        self._before = warnings.showwarning, warnings.filters[:]
        warnings.showwarning = self._warned  # type: ignore[assignment]
        warnings.simplefilter("always", PliantWarning)
        for pattern in ("Queued a .* on a closed connection", "Attempted to remove an already removed"):
            warnings.filterwarnings("ignore", pattern)  # of a window that was closed

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.port}" + (f"/?token={self._token}" if self._token else "")

    def invitation(self) -> str:
        """An address that serves once: others may read the command line that opens a browser."""
        if not self._token:
            return self.address
        self._invitations.add(token := secrets.token_urlsafe(16))
        return self.address.replace(self._token, token)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.get_port())

    def wait(self) -> None:
        """Serve until it is interrupted."""
        threading.Event().wait()

    def close(self) -> None:
        """End all sessions, and forget what was uploaded."""
        for session in list(self.sessions.values()):
            session.close()
        with redirect_stdout(StringIO()):
            self._server.stop()
        warnings.showwarning, warnings.filters[:] = self._before  # type: ignore[index]
        shutil.rmtree(self._uploads, ignore_errors=True)

    async def _talk(self, connection: Any) -> None:
        """Serve the socket of a window's own part."""
        name = connection.request.path.removeprefix(SOCKET)
        pages = [session.page for session in list(self.sessions.values())]
        page = next((page for page in pages if compare_digest(page.name.encode(), name.encode())), None)
        if page is not None:
            await page.serve(connection)

    def _joined(self, client: Any) -> None:
        """A window has opened."""
        with self._lock:
            left = self._left
        session = Session(
            client, self.folders, panels(), copy.deepcopy(self._document), largest_upload=self._largest, left=left,
            title=self._title,
        )  # fmt: skip
        with self._lock:
            gone = client.client_id in self._gone_ids
            if not gone:
                self.sessions[client.client_id] = session
        if gone:  # while it was being made
            session.close()

    def _gone(self, client: Any) -> None:
        """A window has closed; what it had can be brought back in another."""
        with self._lock:
            self._gone_ids.add(client.client_id)
            session = self.sessions.pop(client.client_id, None)
        if session is not None:
            left = session.close()
            with self._lock:
                self._left = left or self._left

    def _warned(self, message: Any, category: Any, *rest: Any) -> None:
        session = getattr(current, "session", None)
        if session is not None and issubclass(category, PliantWarning):
            session.warn(str(message))
        else:
            self._before[0](message, category, *rest)


@contextmanager
def own_pages_only(token: str, invitations: set[str], talk: Callable[[Any], Awaitable[None]]) -> Iterator[None]:
    """Servers of websockets that are made meanwhile answer their own pages alone, to those who have the token.

    invitations: tokens that serve once. talk: serves the sockets of the studio's own part of the page.
    """
    from websockets.asyncio import server

    serve = server.serve

    def guarded(handler: Any, *arguments: Any, process_request: Any, **options: Any) -> Any:
        async def handled(connection: Any) -> None:
            await (talk if connection.request.path.startswith(SOCKET) else handler)(connection)

        async def checked(connection: Any, request: Any) -> Any:
            status = refused(request.headers, connection.local_address[1])
            if status is not None:
                log.warning("a page of another site tried to use the studio; it was turned away")
                return connection.respond(status, "The studio is for pages of its own.\n")
            cookie = f"pliant-{connection.local_address[1]}"  # cookies count for all ports
            given = parse_qs(urlsplit(request.path).query).get("token", [])
            invited = [invitation for invitation in invitations if is_given(invitation, given)]
            if is_given(token, given) or invited:
                invitations.difference_update(invited)
                welcome = connection.respond(HTTPStatus.SEE_OTHER, "")
                welcome.headers["Location"] = "/"
                welcome.headers["Set-Cookie"] = f"{cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
                return welcome
            if token and not is_given(token, cookies(request.headers, cookie)):
                return connection.respond(HTTPStatus.UNAUTHORIZED, NO_TOKEN)
            answer = process_request(connection, request)
            return await answer if inspect.isawaitable(answer) else answer

        def headed(connection: Any, request: Any, response: Any) -> None:
            with_own_part(response)
            response.headers.update(HEADERS)

        return serve(handled, *arguments, process_request=checked, process_response=headed, **options)

    server.serve = guarded  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        server.serve = serve  # type: ignore[misc]


def refused(headers: Any, port: int) -> HTTPStatus | None:
    """The status that a request to the studio at a port is refused with; None if it comes from a page of its own."""
    own = {f"{host}:{port}" for host in OWN_HOSTS} | (set(OWN_HOSTS) if port == 80 else set())
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(hosts) != 1 or hosts[0].lower() not in own:
        return HTTPStatus.MISDIRECTED_REQUEST
    if any(origin.lower() not in {f"http://{host}" for host in own} for origin in origins):
        return HTTPStatus.FORBIDDEN
    return None


def is_given(token: str, found: Sequence[str]) -> bool:
    """Whether a token is the one that was found."""
    return bool(token) and len(found) == 1 and compare_digest(token.encode(), found[0].encode())


def cookies(headers: Any, name: str) -> list[str]:
    """The cookies of this name."""
    read: SimpleCookie = SimpleCookie()
    try:
        for line in headers.get_all("Cookie"):
            read.load(line)
    except CookieError:
        return []
    return [read[name].value] if name in read else []


def panels() -> dict[str, Callable[[Desk, Document], Panel]]:
    """The engines' panels."""
    return {name: engine.part("panel") for name, engine in ENGINES.items()}


def _first_document(files: list[Path]) -> Document:
    """What every window opens with."""
    if not files:
        return document_for(next(iter(examples())))
    if len(files) > 1:
        together = offers({"files": [str(file) for file in files]})[0]
        scene_from(together, files[0].parent)  # what does not fit together is reported at once
        return together
    if files[0].suffix.lower() == ".toml":
        read_scene(files[0])  # what is wrong is reported at once, with its line
    found = opened(files[0], "")
    if not found:
        raise FileError(files[0], "holds no shape; expected a scene, shapes to blend, or a mesh")
    return found[0]


def _refuse(*_: Any, **__: Any) -> None:
    log.warning("the studio is not shared over the network")


def _viser() -> Any:
    try:
        import viser
    except ImportError:
        raise MissingExtraError("the studio", "studio") from None
    return viser
