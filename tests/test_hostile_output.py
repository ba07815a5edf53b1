"""Captured text is hostile: whatever is in a capture, no command prints what a terminal, or a parser, would obey."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.model import Exchange, Handshake, Record, Response
from inspector.pages.message import file_name
from tests.support import json_output
from tests.support.captures import save
from tests.support.compared import file
from tests.support.conversations import Agent, together
from tests.support.recorded import SAMPLES
from tests.support.rehearsals import fleet, new_master

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import Run

CONTROL = "\u200b\u00ad\ufe0f\U000e0041\u3164\x1b[2J\x1b]0;x\x07\x9b31m\r\u202egnp\u2066\u2028<b>&[red]\x00"
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e0fff]"
)
WIRE_FIELDS = frozenset(
    {"method", "target", "http_version", "reason", "error", "alert", "tls_version", "cipher", "sni"}
)
"""The fields whose text comes from the wire as it is."""


def hostile(value: Any, name: str = "") -> Any:
    """A record with control characters in all of its captured text."""
    if isinstance(value, str):
        return value + CONTROL if name in WIRE_FIELDS and value else value
    if isinstance(value, tuple) and name in ("headers", "stripped"):
        return tuple(
            (item[0] + "\x1b[2J", item[1] + CONTROL) if name == "headers" else item + CONTROL for item in value
        )
    if isinstance(value, bytes) and name == "body":
        # In documents as JSON writes it; in what is no JSON, raw.
        escaped = json.dumps(CONTROL)[1:-1].encode()
        return value.replace(b"production", b"production" + escaped).replace(
            b"node1.example", b"node1.example" + escaped
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: hostile(getattr(value, field.name), field.name) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    return value


@functools.cache
def sampled(path: Path) -> list[Record]:
    with Capture.open(path) as capture:
        return [dataclasses.replace(hostile(record), seq=0) for record in capture.records()]


def spoken() -> list[Record]:
    """Agents whose very names are hostile, and who are refused."""
    name = CONTROL.encode("ascii", "ignore").decode()  # as much of it as a certificate takes
    agents = [Agent(name).ca().crl().csr().poll(), Agent(f"../../{name}"[:64], "192.0.2.2").run()]
    agents.append(Agent("c.example", "192.0.2.3").refused("revoked" + CONTROL, own=True))
    return list(together(*agents))


def commands(path: Path, records: Sequence[Record]) -> list[tuple[object, ...]]:
    shown = [("show", path, number) for number, _ in enumerate(records[:40], 1)]
    return [
        ("runs", path), ("list", path), ("check", path), ("doctor", path), ("bootstrap", path),
        ("readiness", path), ("readiness", path, "--json"),
        ("list", path, "--filter", "phase:catalog"), ("check", path, "--format", "junit"),
        ("check", path, "--format", "sarif"), ("check", path, "--json"), ("runs", path, "--json"),
        ("list", path, "--json"), ("bootstrap", path, "--json"), *shown,
    ]  # fmt: skip


@pytest.mark.parametrize("made", ["spoken", *(path.stem for path in SAMPLES)])
def test_no_command_prints_a_control_character(made: str, run: Run, tmp_path: Path) -> None:
    path = next((path for path in SAMPLES if path.stem == made), None)
    records = sampled(path) if path else spoken()
    assert any(isinstance(record, Exchange | Handshake) for record in records)
    capture = save(tmp_path / "c.sqlite", *records)
    printed = False
    for argv in commands(capture, records):
        status, out, err = run(*argv)
        assert status in (0, 1), (argv, err)
        found = UNSEEN.search(out.replace("\r\n", "\n") + err)
        assert not found, (argv, out[max(0, found.start() - 80) : found.end() + 20])
        printed |= "gnp" in out  # what is told is told, in a form that does nothing
        if "junit" in argv:
            assert ET.fromstring(out).tag == "testsuite"  # noqa: S314 - it is our own
        if "sarif" in argv or "--json" in argv:
            json.loads(out)
    assert printed


def hostile_bodies(path: Path) -> list[Record]:
    """Records that are well-formed but for the texts in their bodies."""
    found: list[Record] = []
    with Capture.open(path) as capture:
        for record in capture.records():
            if isinstance(record, Exchange):
                messages = {
                    name: dataclasses.replace(message, body=hostile(message.body, "body"))
                    for name, message in (("request", record.request), ("response", record.response))
                    if message is not None
                }
                found.append(dataclasses.replace(record, seq=0, **messages))  # type: ignore[arg-type]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--json",), ("--full", "--tags", "--volatile", "none")])
def test_no_difference_prints_a_control_character(more: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    sync, error = (next(path for path in SAMPLES if path.stem == name) for name in ("out-of-sync", "compile-error"))
    capture = save(tmp_path / "c.sqlite", *hostile_bodies(sync), *hostile_bodies(error))
    _, listed, _ = run("runs", capture, "--json")
    numbers = [each["run"] for each in json.loads(listed)]
    assert len(numbers) == 3
    honest, resource = f"{sync}:1", f"File[/srv/agent/node1.example{CONTROL}/managed/content.txt]"
    printed = ""
    for argv in (
        *(("diff", honest, f"{capture}:{number}", *more) for number in numbers),
        *(("diff", f"{capture}:{number}", honest, *more) for number in numbers),
        ("diff", capture, "--agent", "*", *more),
        *(("why", capture, resource, form) for form in ("--full", "--json")),
        ("why", capture, resource.replace("txt", "tx")),
    ):
        status, out, err = run(*argv)
        assert status in (0, 1, 2), (argv, err)
        assert "Traceback" not in err
        found = UNSEEN.search(out + err)
        assert not found, (argv, out[max(0, found.start() - 80) : found.end() + 20])
        printed += out
    assert "gnp" in printed
    assert "catalog: " in printed or '"catalog"' in printed


class HostileMaster:
    """What a master answers to catalogs, so that everything in its answers is hostile."""

    LOGS: tuple[dict[str, Any], ...] = (
        {"level": "warning" + CONTROL, "message": "deprecated" + CONTROL, "file": "/m/" + CONTROL, "line": 3},
    )
    VERSION = ("X-Puppet-Version", "8.10.0\x1b[2J\x9b31m")

    def __call__(self, name: str, _facts: object, environment: str) -> list[dict[str, Any]] | Response:
        if name == "b.example":
            body = json.dumps({"message": "Server Error: " + CONTROL, "issue_kind": CONTROL}).encode()
            return Response(
                status=500, reason="Bad\x1b[2J", headers=(("Content-Type", "application/json"), self.VERSION), body=body
            )
        changed = {"content" + CONTROL: "x" + CONTROL, "content": f"one\n{CONTROL}\n", "list": [{CONTROL: [CONTROL]}]}
        return [
            file("/etc/a" + CONTROL, mode=CONTROL), file("/etc/always", **changed),
            file("/etc/c", source="puppet:///modules/m/c"),
            file("/etc/x", require=f"File[{CONTROL}]", __ptype=CONTROL) | {"file": CONTROL},
        ]  # fmt: skip


@pytest.mark.parametrize("road", ["v4", pytest.param("keys", marks=pytest.mark.slow)])
@pytest.mark.parametrize("more", [(), ("--json",), ("--full", "--tags", "--files"), ("--fact", "a=b" + CONTROL[:20])])
def test_no_answer_of_another_master_prints_a_control_character(
    more: tuple[str, ...], road: str, run: Run, tmp_path: Path
) -> None:
    capture = fleet(tmp_path, "a.example", "b.example")
    edges = [{"source": CONTROL, "target": f"Class[{CONTROL}"}]
    options: dict[str, Any] = {"logs": [*HostileMaster.LOGS], "catalog": {"version": CONTROL, "edges": edges}}
    options["files"] = {"modules/m/c": CONTROL.encode()}
    with new_master(tmp_path, HostileMaster(), **options) as master:
        master.enrol("a.example", "b.example")
        words = master.v4 if road == "v4" else master.as_agents()
        cases, output = tmp_path / "cases.xml", tmp_path / "new.sqlite"
        status, out, err = run("rehearse", capture, *words, "-o", output, "--junit", cases, "--twice", *more)
    assert (status, err) == (2, "")
    printed = out + cases.read_text()
    found = UNSEEN.search(printed)
    assert not found, printed[max(0, found.start() - 80) : found.end() + 20]
    assert "gnp" in out
    assert [case.tag for case in ET.fromstring(cases.read_text())] == ["testcase"] * 2  # noqa: S314 - it is our own
    if "--json" in more:
        json_output.valid("rehearse", out)
    for argv in (("runs", output), ("list", output), ("diff", capture, output), ("diff", capture, output, "--json")):
        status, out, err = run(*argv)
        assert "Traceback" not in err
        assert not UNSEEN.search(out + err), argv


def test_no_captured_text_is_in_a_files_name() -> None:
    analyzer = Analyzer()
    names = [file_name(analyzer.feed(record), side) for record in spoken() for side in ("request", "response")]
    assert len(names) > 10
    assert [name for name in names if not re.fullmatch(r"[0-9]+-[a-z_]+-(request|response)", name)] == []
