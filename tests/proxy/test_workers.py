"""The port that several workers will share is theirs before they listen."""

from __future__ import annotations

import dataclasses
import socket
import time
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.lab.ca import LabCA
from inspector.proxy import options, workers
from inspector.proxy.engine.server import LISTENS
from inspector.proxy.recorder import CONTINUES
from tests.support import proxies

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def settings(tmp_path: Path) -> options.Settings:
    """Those of a proxy that may take any port."""
    place = LabCA("master.example").enrol(tmp_path / "ssl", "proxy.example")
    given = {"puppet_listen": proxies.HOST, "puppet_master": "master.example", "puppet_ssldir": str(place.path)}
    resolved = options.resolve(
        options.with_defaults(**given, puppet_capture=str(tmp_path / "c.sqlite")), own_mode=False
    )
    # Not a port where another test of this process has left closed connections.
    with socket.socket() as unused:
        unused.bind((proxies.HOST, 0))
        return dataclasses.replace(resolved, listen=unused.getsockname())


def bind(address: tuple[str, int], option: int) -> None:
    """Take an address as a program with this socket option does. Raises OSError."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, option, 1)
        other.bind(address)


def test_a_reserved_port_is_the_workers_own(settings: options.Settings) -> None:
    reserved, held = workers._reserved(settings)
    with held:
        bind(reserved.listen, socket.SO_REUSEPORT)
        with pytest.raises(OSError, match="in use"):
            bind(reserved.listen, socket.SO_REUSEADDR)
        assert options.listen_again(settings).listen[1] > reserved.listen[1]


def test_what_an_earlier_proxy_left_behind_is_no_hindrance(settings: options.Settings) -> None:
    with socket.create_server(settings.listen) as server:
        agent = socket.create_connection(settings.listen)
        server.accept()[0].close()  # who closes first has the port until the other has long gone
        agent.close()
    # A worker that is started again looks at the port while no other holds it.
    assert options._free(settings.listen, port_given=True, shared=True) == settings.listen
    reserved, held = workers._reserved(settings)
    with held:
        assert reserved.listen == settings.listen
        assert options._free(reserved.listen, port_given=True, shared=True) == settings.listen


def test_what_a_worker_reports_last_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In which capture it went on: that one is still to be analyzed."""
    place = LabCA("master.example").enrol(tmp_path / "ssl", "proxy.example")
    given = {"puppet_listen": proxies.HOST, "puppet_master": "master.example", "puppet_ssldir": str(place.path)}
    site = workers.Workers({**given, "puppet_capture": str(tmp_path / "c.sqlite")}, 2)
    later, continues_in = tmp_path / "later.sqlite", site._continues_in

    def slowly(path: Path) -> bool:
        time.sleep(0.2)
        return continues_in(path)

    monkeypatch.setattr(site, "_continues_in", slowly)
    monkeypatch.setattr(workers, "_command", lambda *_: ["echo", f"{CONTINUES}{later}"])
    with site._reserved:
        site._end(site._start_worker(0))
    assert site._current == later


def test_without_a_place_to_meet_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(InspectorError, match="No space left") as error:
        workers._meeting_place()
    assert "TMPDIR" in error.value.hint


def test_no_capture_is_deleted_that_a_worker_may_still_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that takes another's place is given the current capture; captures go on while it starts."""
    place = LabCA("master.example").enrol(tmp_path / "ssl", "proxy.example")
    given = {"puppet_listen": proxies.HOST, "puppet_master": "master.example", "puppet_ssldir": str(place.path)}
    site = workers.Workers({**given, "puppet_capture": str(tmp_path), "puppet_keep": "1"}, 2)
    first = site._current
    with Capture.create(first) as capture:
        following = capture.continue_in(tmp_path / "puppet-29991231T000000Z-1.sqlite")
        Capture.create(following, after=1).close()
    monkeypatch.setattr(workers, "_command", lambda *_: ["sh", "-c", f"read line && echo {LISTENS} && read line"])
    with site._reserved:
        worker = site._start_worker(0)
        assert worker.stdin
        site._continues_in(following)
        site._delete_old(2)
        assert first.exists()
        worker.stdin.write("opened\n")
        worker.stdin.flush()
        assert site._ready.acquire(timeout=10)
        site._delete_old(2)
        assert not first.exists()
        site._end(worker)
