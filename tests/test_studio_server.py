"""The studio's server: where it listens, and whom it turns away."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

import pliant
from fake_viser import Client
from pliant.core.errors import FileError, InputError

viser = pytest.importorskip("viser", reason="the extra studio is not installed")

import msgspec  # noqa: E402
from websockets.datastructures import Headers  # noqa: E402
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from pliant.app.studio import Studio  # noqa: E402
from pliant.app.studio.server import refused  # noqa: E402


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    made = Studio(folders=[tmp_path], port=0, token=False)
    yield made
    made.close()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Studio]:
    made = Studio(folders=[tmp_path], port=0)
    yield made
    made.close()


POOLED = 8
"""Threads that viser and others may keep for later."""
CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [0.0, -3.0, 0.0], "fov": 1.0, "near": 0.1,
    "far": 100.0, "image_height": 600, "image_width": 800, "look_at": [0.0, 0.0, 0.0], "up_direction": [0.0, 0.0, 1.0],
}  # fmt: skip
"""What a page sends first; only then does it count as a window."""


@contextmanager
def page(studio: Studio, origin: str | None) -> Iterator[Any]:
    """A connection as a page from somewhere has it."""
    address = studio.address.replace("http", "ws")
    with connect(address, origin=origin, subprotocols=[f"viser-v{viser.__version__}"]) as made:  # type: ignore[list-item, arg-type]
        made.send(msgspec.msgpack.encode(CAMERA))
        yield made


def until(true: Any, seconds: float = 20.0) -> bool:
    """Whether something comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not true():
        time.sleep(0.02)
    return bool(true())


def test_it_listens_on_the_loopback_address_alone(studio: Studio) -> None:
    assert studio.address.startswith("http://127.0.0.1:")
    sockets = studio._server._websock_server
    assert sockets._host == "127.0.0.1"
    port = int(studio.address.rpartition(":")[2])
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(OSError):  # noqa: PT011
                socket.create_connection((address, port), timeout=1)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://evil.example:8080", "null", "http://127.0.0.1:1", "http://127.0.0.1:x", "file://"],
)
def test_pages_of_other_sites_are_not_connected(studio: Studio, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"), page(studio, origin):
        pass
    assert not studio.sessions


def answer(studio: Studio, *headers: str, path: str = "/") -> Message:
    """The headers of what is sent for a request, and its status as "status"."""
    port = studio.port
    lines = [f"GET {path} HTTP/1.1", *(line.replace("PORT", str(port)) for line in headers), "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as made:
        made.sendall("\r\n".join(lines).encode())
        status, _, rest = made.makefile("rb").read().partition(b"\r\n")
    found = message_from_bytes(rest)
    found["status"] = status.split()[1].decode()
    return found


UPGRADE = (
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)  # fmt: skip


@pytest.mark.parametrize("more", [(), UPGRADE], ids=["page", "websocket"])
@pytest.mark.parametrize(
    "hosts",
    [
        ("evil.example:PORT",), ("evil.example",), ("127.0.0.1",), ("127.0.0.1:1",), ("localhost.:PORT",), ("",), (),
        ("127.0.0.1.evil.example:PORT",), ("x@127.0.0.1:PORT",), ("127.0.0.1:PORT", "evil.example:PORT"),
        ("0.0.0.0:PORT",),
    ],
)  # fmt: skip
def test_requests_for_another_address_are_refused(
    studio: Studio, hosts: tuple[str, ...], more: tuple[str, ...]
) -> None:
    """A name of an attacker's may lead to this machine; a browser takes the studio for a page of that name."""
    found = answer(studio, *(f"Host: {host}" for host in hosts), *more)
    assert found["status"] == "421"
    assert "viser" not in str(found.get_payload())


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LocalHost:PORT", "[::1]:PORT"])
def test_its_own_addresses_are_answered(studio: Studio, host: str) -> None:
    assert answer(studio, f"Host: {host}")["status"] == "200"


def test_port_80_is_not_named_by_browsers() -> None:
    assert refused(Headers(Host="localhost", Origin="http://localhost"), 80) is None
    assert refused(Headers(Host="localhost", Origin="http://localhost:8080"), 80) == 403
    assert refused(Headers(Host="localhost"), 8080) == 421


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        (("Host: 127.0.0.1:PORT",), "/", "200"),
        (("Host: 127.0.0.1:PORT",), "/none", "404"),
        (("Host: evil.example",), "/", "421"),
        (("Host: 127.0.0.1:PORT", "Origin: http://evil.example"), "/", "403"),
        (("Host: 127.0.0.1:PORT", "Origin: null", "Origin: null"), "/", "403"),
    ],
)
def test_no_page_may_show_it_in_a_frame(studio: Studio, headers: tuple[str, ...], path: str, status: str) -> None:
    found = answer(studio, *headers, path=path)
    assert found["status"] == status
    assert found["X-Frame-Options"] == "DENY"
    assert found["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert found["X-Content-Type-Options"] == "nosniff"
    assert found["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("more", [(), UPGRADE], ids=["page", "websocket"])
@pytest.mark.parametrize(
    "given", ["", "Cookie: pliant-PORT=x", "Cookie: other=TOKEN", "Cookie: pliant-PORT=TOKENx", "Cookie: ;="]
)
def test_whoever_has_no_token_is_refused(guarded: Studio, given: str, more: tuple[str, ...]) -> None:
    """Other users of the machine can reach its port."""
    token = guarded.address.rpartition("=")[2]
    assert len(token) >= 20
    headers = ["Host: 127.0.0.1:PORT", *more, *filter(None, [given.replace("TOKEN", token)])]
    for path in ("/", "/?token=", "/?token=x", f"/?token={token[:-1]}", f"/?token={token}&token=x", "/assets/none.js"):
        found = answer(guarded, *headers, path=path)
        assert found["status"] == "401"
        assert "Open the address that pliant studio has printed" in str(found.get_payload())
        assert found["X-Frame-Options"] == "DENY"
        assert token not in str(found)


def test_the_address_has_a_token_that_becomes_a_cookie(guarded: Studio) -> None:
    path = guarded.address.partition(str(guarded.port))[2]
    found = answer(guarded, "Host: 127.0.0.1:PORT", path=path)
    assert (found["status"], found["Location"]) == ("303", "/")
    cookie, *rules = found["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(rules)
    assert answer(guarded, "Host: 127.0.0.1:PORT", f"Cookie: {cookie}")["status"] == "200"
    assert answer(guarded, "Host: 127.0.0.1:PORT", f"Cookie: a=b; {cookie}")["status"] == "200"
    assert answer(guarded, "Host: evil.example", f"Cookie: {cookie}", path=path)["status"] == "421"


def test_an_invitation_serves_once(guarded: Studio) -> None:
    """The command line of a browser can be read by other users."""
    path = guarded.invitation().partition(str(guarded.port))[2]
    assert path not in guarded.address
    assert [answer(guarded, "Host: 127.0.0.1:PORT", path=path)["status"] for _ in range(2)] == ["303", "401"]


def test_its_own_page_has_a_session_until_it_closes(studio: Studio) -> None:
    before = threading.active_count()
    with page(studio, studio.address):
        assert until(lambda: studio.sessions)
        (session,) = studio.sessions.values()
        assert until(lambda: session.panel is not None)
    assert until(lambda: not studio.sessions)
    assert until(lambda: threading.active_count() <= before + POOLED)


def test_files_come_through_the_own_socket_of_a_window_up_to_a_limit(tmp_path: Path) -> None:
    studio = Studio(folders=[tmp_path], port=0, largest_upload=4000, token=False)
    mesh = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    try:
        with page(studio, studio.address):
            assert until(lambda: studio.sessions)
            (session,) = studio.sessions.values()
            came: list[tuple[str, bytes]] = []
            session._uploaded = lambda *file: came.append(file)
            told: list[str] = []
            session.fail = lambda error: told.append(str(error))
            address = f"ws://127.0.0.1:{studio.port}/pliant/"
            assert until(lambda: "history" in session.page.state)
            with connect(address + session.page.name, origin=studio.address) as own:
                assert "history" in json.loads(own.recv())
                own.send(json.dumps(["file", "large.obj", 4001]))
                own.send(bytes(4001))
                own.send(json.dumps(["file", "small.obj", len(mesh)]))
                own.send(mesh[:10])
                own.send(mesh[10:] + b"more than was said")
                for nonsense in ("{", "[]", "7", '["no such action"]', '["scrub"]', '["scrub", "x"]', '["file", 1, 2]'):
                    own.send(nonsense)
                own.send(json.dumps(["undo"]))
                assert until(lambda: came)
                assert came == [("small.obj", mesh)]
                assert [line for line in told if "large.obj" in line and "larger than" in line]
            with connect(address + "another", origin=studio.address) as other, pytest.raises(ConnectionClosed):
                other.recv()
    finally:
        studio.close()


def test_a_window_that_leaves_while_it_is_made_leaves_nothing(studio: Studio) -> None:
    client = Client(7)
    studio._gone(client)
    studio._joined(client)
    assert not studio.sessions


def test_it_cannot_be_shared_over_the_network(studio: Studio) -> None:
    assert studio._server.request_share_url() is None


def test_bad_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        Studio([tmp_path / "none.obj"])
    with pytest.raises(FileError, match="is not a folder"):
        Studio(folders=[tmp_path / "none"])
    with pytest.raises(InputError, match="port"):
        Studio(port=70000, folders=[tmp_path])
    pliant.write(tmp_path / "a.ply", pliant.gallery.sphere(500))
    pliant.write(tmp_path / "b.ply", pliant.gallery.sphere(800))
    with pytest.raises(InputError, match="vertices"):
        Studio([tmp_path / "a.ply", tmp_path / "b.ply"])


@pytest.mark.parametrize(("port", "words"), [("0", ""), ("65536", "is not a port"), ("-1", "is not a port")])
def test_ports_on_the_command_line(command_line, monkeypatch, tmp_path, port, words):
    """0 is any port that is free."""
    asked = []

    def started(files: Any, **options: Any) -> Any:
        asked.append(options["port"])
        raise InputError("that will do")

    monkeypatch.setattr("pliant.app.studio.Studio", started)
    code, _, err = command_line("studio", f"--port={port}", "--no-browser", "--folder", str(tmp_path))
    assert code == 2
    assert words in err
    assert asked == ([0] if port == "0" else [])
