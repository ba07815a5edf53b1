"""One node: a busy master, files, the names of connections."""

from __future__ import annotations

import threading
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest

from inspector.model import Exchange, Identity, Request, Response
from inspector.proxy.identity import KeyDirectory
from inspector.rehearsal import compiling, requests
from inspector.rehearsal.client import Target
from inspector.rehearsal.compiling import Compiled, Role, Task
from inspector.runs.examples import catalog, talk
from tests.support.compared import decoded, file
from tests.support.rehearsals import new_master

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.rehearsals import NewMaster

NODE = "node1.example"


def compiled(master: NewMaster, *, files: bool = False, known: dict[str, str] | None = None) -> Compiled:
    master.enrol(NODE)
    of = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))
    credentials = KeyDirectory(master.keys).credentials_for(None, NODE)  # type: ignore[arg-type]
    assert credentials is not None
    task = Task(
        NODE, of, {Role.PLAIN: requests.as_recorded(of)}, credentials, Identity("keys", NODE), files, known or {}
    )
    host, _, port = master.address.partition(":")
    return compiling.compile_all(Target(host, int(port), master.tool.ca, 30.0), task, threading.Event())


def test_a_busy_master_is_asked_again(tmp_path: Path) -> None:
    left = [2]

    def busy(_: Request) -> Response | None:
        left[0] -= 1
        return Response(status=503, headers=(("Retry-After", "0"),)) if left[0] >= 0 else None

    with new_master(tmp_path, before=busy) as master:
        found = compiled(master)
    (exchange,) = found.exchanges[Role.PLAIN]
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert len(master.received) == 3


def test_a_master_that_stays_busy_is_left(tmp_path: Path) -> None:
    busy = Response(status=503, headers=(("Retry-After", "0"),))
    with new_master(tmp_path, before=lambda _: busy) as master:
        found = compiled(master)
    (exchange,) = found.exchanges[Role.PLAIN]
    assert exchange.response is not None
    assert exchange.response.status == 503
    assert len(master.received) == compiling.ATTEMPTS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), ("99999999999999999999", 300.0), ("soon", 4.0), ("", 4.0), (formatdate(0.0, usegmt=True), 0.0)],
)
def test_retry_after(text: str, seconds: float) -> None:
    assert compiling.retry_after(Response(status=503, headers=(("Retry-After", text),)), 4.0) == seconds


def test_the_files_of_a_catalog(tmp_path: Path) -> None:
    def sources(*_: Any) -> list[dict[str, Any]]:
        return [
            file("/a", source="puppet:///modules/m/a"),
            file("/b", source=["puppet:///modules/m/none", "puppet:///modules/m/b"]),
            file("/c", source="puppet://elsewhere.example/modules/m/c"),
        ]

    with new_master(tmp_path, sources, files={"modules/m/a": b"a", "modules/m/b": b"b"}) as master:
        known = {"modules/m/a": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}
        compiled(master, files=True, known=known)
    assert [(request.method, request.path) for request, _ in master.received[1:]] == [
        ("GET", "/puppet/v3/file_metadata/modules/m/a"),
        ("GET", "/puppet/v3/file_metadata/modules/m/none"),
        ("GET", "/puppet/v3/file_metadata/modules/m/b"),
        ("GET", "/puppet/v3/file_content/modules/m/b"),
    ]


def test_sources_of_a_static_catalog_and_of_directories_are_left() -> None:
    made = decoded([
        file("/dir", source="puppet:///modules/m/dir", recurse=True), file("/text", content="x"),
        file("/odd", source={"a": 1}), file("/plain", source="puppet:///modules/m/plain/"),
    ])  # fmt: skip
    assert list(compiling.sources_of(made)) == [["modules/m/plain"]]


def test_the_name_of_a_connection_says_what_it_was_for() -> None:
    assert compiling.read_name(f"{compiling.connection_name('a#b.example', Role.AGAIN)}.2/agent") == (
        "a#b.example", Role.AGAIN,
    )  # fmt: skip
    assert compiling.read_name("a.example/1") is None
    assert compiling.read_name("a#other.1/agent") is None
