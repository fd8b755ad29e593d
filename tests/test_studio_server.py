"""The studio's server: where it listens, and whom it turns away."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pliant.errors import FileError, InputError

viser = pytest.importorskip("viser", reason="the extra studio is not installed")

import msgspec  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from pliant.studio import Studio  # noqa: E402
from pliant.studio.server import limit_uploads  # noqa: E402


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    made = Studio(folders=[tmp_path], port=0)
    yield made
    made.close()


CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [0.0, -3.0, 0.0], "fov": 1.0, "near": 0.1,
    "far": 100.0, "image_height": 600, "image_width": 800, "look_at": [0.0, 0.0, 0.0], "up_direction": [0.0, 0.0, 1.0],
}  # fmt: skip
"""What a page sends first; only then does it count as a window."""


def joined(studio: Studio, origin: str | None, seconds: float = 1.5) -> bool:
    """Whether a page from somewhere gets a session."""
    address = studio.address.replace("http", "ws")
    with connect(address, origin=origin, subprotocols=[f"viser-v{viser.__version__}"]) as page:  # type: ignore[list-item, arg-type]
        page.send(msgspec.msgpack.encode(CAMERA))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if studio._server.get_clients() and studio.sessions:
                return True
            time.sleep(0.02)
    return False


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


@pytest.mark.parametrize("origin", ["http://evil.example", "http://evil.example:8080", "null", "http://127.0.0.1:1"])
def test_pages_of_other_sites_get_no_session(studio: Studio, origin: str) -> None:
    assert not joined(studio, origin)


def test_its_own_page_gets_one(studio: Studio) -> None:
    assert joined(studio, studio.address, seconds=20)


def test_it_cannot_be_shared_over_the_network(studio: Studio) -> None:
    assert studio._server.request_share_url() is None


def test_bad_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        Studio([tmp_path / "none.obj"])
    with pytest.raises(FileError, match="is not a folder"):
        Studio(folders=[tmp_path / "none"])
    with pytest.raises(InputError, match="port"):
        Studio(port=70000, folders=[tmp_path])


def test_uploads_that_are_too_large_are_cut_off_while_they_come() -> None:
    kept: list[str] = []
    handlers: dict[Any, Any] = {}
    states: dict[str, dict[str, int]] = {"a": {"transferred_bytes": 900}}
    notes: list[str] = []
    gui = SimpleNamespace(
        _websock_interface=SimpleNamespace(
            unregister_handler=lambda kind, old: None, register_handler=handlers.__setitem__
        ),
        _current_file_upload_states=states,
        _handle_file_transfer_start=lambda client, message: kept.append("start"),
        _handle_file_transfer_part=lambda client, message: kept.append("part"),
    )
    limit_uploads(SimpleNamespace(gui=gui, add_notification=lambda *words, **_: notes.append(words[1])), 1000)
    start, part = handlers.values()
    start(0, SimpleNamespace(size_bytes=1001))
    part(0, SimpleNamespace(transfer_uuid="a", content=bytes(200)))
    assert not kept
    assert not states
    assert len(notes) == 2
    start(0, SimpleNamespace(size_bytes=1000))
    part(0, SimpleNamespace(transfer_uuid="b", content=bytes(200)))
    assert kept == ["start", "part"]
