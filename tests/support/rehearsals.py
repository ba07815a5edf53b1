"""A master that compiles what a test wants, and captures of agents to rehearse there."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.lab.server import LabServer
from inspector.model import Exchange, Identity, Response
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.proxy.identity import KeyDirectory
from inspector.rehearsal import compiling, requests
from inspector.rehearsal.client import Target
from inspector.rehearsal.compiling import Compiled, Question, Role, Task
from inspector.rehearsal.requests import V4
from inspector.runs.examples import catalog, report, talk, together
from tests.support.captures import save
from tests.support.compared import file

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from inspector.model import Request
    from inspector.proxy.identity import Credentials
    from tests.conftest import Run

    type Compile = Callable[[str, dict[str, Any], str], list[dict[str, Any]] | Response]
    """From certname, facts and environment to resources, or to another answer."""

NAME = "localhost"
NODE = "node1.example"
OF = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))
"""What a node asked."""
JSON = ("Content-Type", "application/json;charset=utf-8")
VERSION = ("X-Puppet-Version", "8.10.0")


def usual(certname: str, _facts: dict[str, Any], _environment: str) -> list[dict[str, Any]]:
    """What every node gets."""
    return [file("/etc/always"), file("/etc/name", content=certname)]


@dataclass
class NewMaster:
    """A master on loopback."""

    folder: Path
    ca: LabCA
    compiles: Compile = usual
    v4_allowed: bool = True
    files: dict[str, bytes] = field(default_factory=dict)
    logs: list[dict[str, Any]] = field(default_factory=list)
    """What it logs while it compiles."""
    catalog: dict[str, Any] = field(default_factory=dict)
    """What is in each catalog besides resources."""
    before: Callable[[Request], Response | None] = lambda _: None
    """What it answers instead."""
    received: list[tuple[Request, str | None]] = field(default_factory=list)
    handshakes: int = 0

    def __post_init__(self) -> None:
        self.place = self.ca.enrol(self.folder / "master", NAME)
        self.tool = self.ca.enrol(self.folder / "tool", "tool.example")
        self.keys = self.folder / "keys"
        self.keys.mkdir()
        self.cadir = self.folder / "cadir"
        self.ca.write_cadir(self.cadir)
        self._server = LabServer(self._context, self._answer)
        self.address = f"{NAME}:{self._server.address[1]}"

    def _context(self) -> ssl.SSLContext:
        self.handshakes += 1
        return self.ca.server_context(self.place)

    def __enter__(self) -> NewMaster:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def enrol(self, *names: str) -> None:
        """Give agents keys that it accepts."""
        for name in names:
            place = self.ca.enrol(self.folder / name, name)
            pki.write_private(self.keys / f"{name}.pem", place.key.read_bytes() + place.certificate.read_bytes())

    @property
    def v4(self) -> list[object]:
        """The words of a command that takes the road v4."""
        place = self.tool
        return ["--master", self.address, "--ca", place.ca, "--cert", place.certificate, "--key", place.key]

    def as_agents(self, road: str = "keys") -> list[object]:
        """The words of a command that asks as the agents do."""
        directory = self.keys if road == "keys" else self.cadir
        return ["--master", self.address, "--ca", self.tool.ca, "--road", f"{road}:{directory}",
                "--stores-data-of-nodes"]  # fmt: skip

    def _answer(self, request: Request, certname: str | None) -> Response:
        self.received.append((request, certname))
        if instead := self.before(request):
            return instead
        path = unquote(request.path)
        if path == V4:
            return self._v4(json.loads(request.body), certname)
        if path.startswith("/puppet/v3/catalog/"):
            asked = decode.catalog_request(request)
            assert isinstance(asked, d.CatalogRequest)
            assert isinstance(asked.facts, d.Facts)
            name = path.rpartition("/")[2]
            if name != certname:
                return Response(status=403, body=b"Forbidden request")
            return self._compiled(name, asked.facts.values, asked.environment or "", lambda made: made)
        kind, _, name = path.removeprefix("/puppet/v3/").partition("/")
        if kind == "file_metadatas":
            below = [path for path in self.files if path.startswith(f"{name}/")]
            return _json([
                metadata(name, self.files[path]) | {"relative_path": path.removeprefix(f"{name}/")} for path in below
            ])  # fmt: skip
        content = self.files.get(name)
        if content is None:
            return Response(status=404, headers=(JSON, VERSION), body=b'{"message": "Not Found"}')
        if kind in ("file_content", "static_file_content"):
            return Response(status=200, headers=(("Content-Type", "application/octet-stream"),), body=content)
        assert parse_qs(request.query)["checksum_type"] == ["sha256"]
        return _json(metadata(name, content))

    def _v4(self, body: dict[str, Any], certname: str | None) -> Response:
        assert body["persistence"] == {"facts": False, "catalog": False}
        if not self.v4_allowed or certname != "tool.example":
            return Response(status=403, body=b"Forbidden request: /puppet/v4/catalog (method :post).")
        return self._compiled(
            body["certname"], body["facts"]["values"], body["environment"],
            lambda made: {"catalog": made, "logs": self.logs},
        )  # fmt: skip

    def _compiled(
        self, name: str, facts: dict[str, Any], environment: str, wrap: Callable[[dict[str, Any]], object]
    ) -> Response:
        made = self.compiles(name, facts, environment)
        if isinstance(made, Response):
            return made
        return _json(wrap({"name": name, "environment": environment, "resources": made, **self.catalog}))


def metadata(name: str, content: bytes) -> dict[str, Any]:
    import hashlib

    value = "{sha256}" + hashlib.sha256(content).hexdigest()
    return {"path": f"/code/{name}", "relative_path": None, "links": "manage", "owner": None, "group": None,
            "mode": None, "type": "file", "destination": None,
            "checksum": {"type": "sha256", "value": value}}  # fmt: skip


def _json(document: object) -> Response:
    return Response(status=200, headers=(JSON, VERSION), body=json.dumps(document).encode())


def failing(text: str = "no role for this node") -> Response:
    """A compile that failed."""
    body = {"message": f"Server Error: {text}", "issue_kind": "RUNTIME_ERROR"}
    return Response(status=500, headers=(JSON, VERSION), body=json.dumps(body).encode())


@contextmanager
def new_master(
    folder: Path, compiles: Compile = usual, *, name: str = "new", ca: LabCA | None = None, **options: Any
) -> Iterator[NewMaster]:
    """``ca``: that of another one, so that both accept the same certificates."""
    place = folder / name
    place.mkdir()
    with NewMaster(place, ca or LabCA(name), compiles, **options) as master:
        yield master


def fleet(folder: Path, *names: str, facts: Mapping[str, Any] | None = None) -> Path:
    """A capture with a run of each node, which got the usual catalog."""
    talks = [
        talk(catalog(resources=usual(name, {}, ""), facts=facts), report(), certname=name, after=60.0 * number)
        for number, name in enumerate(names)
    ]
    return save(folder / "fleet.sqlite", *together(*talks))


def identity_of(master: NewMaster) -> tuple[Credentials, Identity]:
    credentials = KeyDirectory(master.keys).stored(NODE)
    return credentials, Identity("keys", NODE)


def compiled(master: NewMaster, *, files: bool = False, known: dict[str, str] | None = None) -> Compiled:
    master.enrol(NODE)
    host, _, port = master.address.partition(":")
    question = Question(Target(host, int(port), master.tool.ca, 30.0), requests.as_recorded(OF))
    task = Task(NODE, OF, {Role.PLAIN: question}, *identity_of(master), files, known or {})
    return compiling.compile_all(task, threading.Event())


def rehearsed(run: Run, tmp_path: Path, master: NewMaster, capture: Path, *words: object) -> tuple[int, str]:
    status, out, err = run("rehearse", capture, *master.v4, "-o", tmp_path / "new.sqlite", *words)
    assert err == ""
    return status, out
