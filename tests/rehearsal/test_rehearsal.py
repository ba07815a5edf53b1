"""A rehearsal as a whole: noise, files, environments, nodes that fail, and what is on the wire of a hostile capture."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.store import Capture
from inspector.lab.ca import LabCA
from inspector.model import Exchange, Response
from inspector.runs.examples import (
    altered,
    asked,
    bucket,
    catalog,
    content,
    csr,
    node,
    plugins,
    report,
    talk,
    together,
)
from tests.support.captures import save
from tests.support.compared import file
from tests.support.rehearsals import fleet, metadata, new_master, rehearsed, usual

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Request
    from tests.conftest import Run


def test_other_bytes_behind_the_same_catalog(run: Run, tmp_path: Path) -> None:
    resources = [file("/etc/a", source="puppet:///modules/m/a"), file("/etc/b", source="puppet:///modules/m/b")]
    recorded = talk(
        plugins(), catalog(resources=resources),
        asked("file_metadata/modules/m/a", metadata("modules/m/a", b"one\n")), content("modules/m/a", b"one\n"),
        asked("file_metadata/modules/m/b", metadata("modules/m/b", b"same\n")),
        report(), certname="a.example",
    )  # fmt: skip
    capture = save(tmp_path / "a.sqlite", *recorded)
    files = {"modules/m/a": b"two\n", "modules/m/b": b"same\n"}
    with new_master(tmp_path, lambda *_: resources, files=files) as master:
        status, out = rehearsed(run, tmp_path, master, capture, "--files")
    assert status == 1
    assert "~ modules/m/a/content: " in out
    assert "      -one\n      +two\n" in out
    assert "modules/m/b" not in out
    assert [request.path for request, _ in master.received if "file_content" in request.path] == [
        "/puppet/v3/file_content/modules/m/a"
    ]


def test_another_environment(run: Run, tmp_path: Path) -> None:
    def compiles(name: str, facts: dict[str, Any], environment: str) -> list[dict[str, Any]]:
        return [*usual(name, facts, environment), file("/etc/environment", content=environment)]

    with new_master(tmp_path, compiles) as master:
        status, out = rehearsed(
            run, tmp_path, master, fleet(tmp_path, "a.example"), "--environment", "staging", "--full"
        )
    assert status == 1
    assert 'content => "staging"' in out


def test_nodes_that_cannot_be_rehearsed_are_listed(run: Run, tmp_path: Path) -> None:
    records = together(
        talk(catalog(resources=usual("a.example", {}, "")), report(), certname="a.example"),
        talk(node(), report(), certname="b.example", after=60),
        talk(catalog(status=500), certname="c.example", after=120),
    )
    capture = save(tmp_path / "a.sqlite", *records)
    with new_master(tmp_path) as master:
        status, out = rehearsed(run, tmp_path, master, capture)
        master.received.clear()
        (tmp_path / "new.sqlite").unlink()
        master.enrol("a.example")
        words = [capture, *master.as_agents(), "-o", tmp_path / "new.sqlite"]
        _, by_key, _ = run("rehearse", *words)
    assert status == 2
    assert "not compared: 1 node: b.example\n  it asked for no catalog\n" in out
    assert (
        "not compared: 1 node: c.example\n  it has a catalog now; the recorded run got no catalog: no catalog\n"
    ) in out
    assert "without a change: 1 node: a.example" in out
    assert "no key for c.example: " in by_key
    assert len(master.received) == 1


def test_a_master_that_ends_in_the_middle(run: Run, tmp_path: Path) -> None:
    left = [1]

    def ends(_: Any) -> Response | None:
        left[0] -= 1
        if left[0] < 0:
            raise ConnectionAbortedError
        return None

    with new_master(tmp_path, before=ends) as master:
        status, out = rehearsed(run, tmp_path, master, fleet(tmp_path, "a.example", "b.example"), "--jobs", "1")
    assert status == 2
    assert "without a change: 1 node: a.example" in out
    assert "not compared: 1 node: b.example\n  no catalog: the connection was closed without an answer" in out


@pytest.mark.parametrize("road", ["v4", "keys"])
def test_only_compiles_and_reads_are_on_the_wire(run: Run, tmp_path: Path, road: str) -> None:
    """Whatever a capture contains: reports, signing requests, the filebucket, paths that lead elsewhere."""
    hostile = [
        file("/up", source="puppet:///modules/../../../puppet-ca/v1/certificate_status/a"),
        file("/crlf", source="puppet:///modules/m/a\r\nDELETE /x HTTP/1.1\r\n\r\n"),
        file("/away", source="puppet://elsewhere.example/modules/m/a"),
        file("/web", source="https://elsewhere.example/a"),
    ]
    header = ("X-Client-DN", "CN=admin")
    records = together(
        talk(csr(), node(), plugins(), catalog(resources=hostile), bucket(), report(), certname="a.example"),
        talk(altered(catalog(), request={"target": "/puppet/v3/report/b.example?environment=production"}),
             report(), certname="b.example", after=60),
        talk(altered(catalog(), request={"target": "/puppet/v3/catalog/..%2fb.example"}),
             certname="c.example", after=90),
        talk(altered(catalog(), request={"method": "PUT"}), certname="d.example", after=120),
        talk(altered(catalog(), request={"headers": (header,)}), report(), certname="e.example", after=180),
    )  # fmt: skip
    capture = save(tmp_path / "a.sqlite", *records)
    with new_master(tmp_path, lambda *_: hostile, files={"modules/m/a": b"a"}) as master:
        master.enrol(*(f"{letter}.example" for letter in "abcde"))
        words = master.v4 if road == "v4" else master.as_agents()
        run("rehearse", capture, *words, "-o", tmp_path / "new.sqlite", "--files", "--twice")
    assert master.received
    for request, _ in master.received:
        catalogs = request.path == "/puppet/v4/catalog" or request.path.startswith("/puppet/v3/catalog/")
        reads = request.path.startswith(("/puppet/v3/file_metadata/modules/m/", "/puppet/v3/file_content/modules/m/"))
        assert (request.method == "POST" and catalogs) or (request.method == "GET" and reads), request.target
        assert request.header("x-client-dn") is None
    with Capture.open(tmp_path / "new.sqlite") as made:
        recorded = [record for record in made.records() if isinstance(record, Exchange)]
    assert len(recorded) == len(master.received)


def test_a_shared_capture_is_warned_of_before_anything_is_sent(run: Run, tmp_path: Path) -> None:
    capture = fleet(tmp_path, "a.example")
    shared = tmp_path / "shared.sqlite"
    assert run("share", capture, "-o", shared)[0] == 0
    masked = save(tmp_path / "masked.sqlite", *talk(
        catalog(resources=usual("b", {}, ""), facts={"db_password": "MASKED"}), report(), certname="b.example",
    ))  # fmt: skip
    words = [shared, masked, "-o", tmp_path / "new.sqlite", "--json"]
    _, _, err = run("rehearse", *words, "--master", "localhost:1", "--ca", shared)
    with new_master(tmp_path) as master:
        _, out, err = run("rehearse", *words, *master.v4)
    sentences = [
        "shared.sqlite is a shared capture: its names and facts are not those of the nodes",
        "masked.sqlite was recorded without secrets (puppet_redact): its facts are masked in part",
    ]
    assert json.loads(out)["warnings"] == sentences
    assert err == "".join(f"puppet-inspector: {each}. The rehearsal says little about them.\n" for each in sentences)


def test_a_file_that_was_not_asked_for_is_not_compared(run: Run, tmp_path: Path) -> None:
    """Its resource was skipped in the recorded run; what is new in the catalog counts."""
    resources = [
        file("/etc/a", source="puppet:///modules/m/a"),
        file("/etc/d", source="puppet:///modules/m/d", recurse=True),
    ]
    recorded = talk(plugins(), catalog(resources=resources), report(), certname="a.example")
    capture = save(tmp_path / "a.sqlite", *recorded)
    files = {"modules/m/a": b"x\n", "modules/m/new": b"y\n"}
    with new_master(tmp_path, lambda *_: resources, files=files) as master:
        status, out = rehearsed(run, tmp_path, master, capture, "--files")
        assert status == 0, out
        assert "  not compared: 1 file for which the agents did not ask when they were recorded\n" in out
        master.compiles = lambda *_: [*resources, file("/etc/new", source="puppet:///modules/m/new")]
        status, out, _ = run("rehearse", capture, *master.v4, "-o", tmp_path / "more.sqlite", "--files")
    assert status == 1
    assert "+ modules/m/new" in out
    assert "modules/m/a" not in out


def test_a_first_node_without_an_answer_does_not_hide_the_rule(run: Run, tmp_path: Path) -> None:
    count = itertools.count()

    def instead(_: Request) -> Response:
        if next(count) == 0:
            raise ConnectionAbortedError
        return Response(status=403, body=b"Forbidden")

    with new_master(tmp_path, before=instead) as master:
        words = [fleet(tmp_path, "a.example", "b.example"), *master.v4, "-o", tmp_path / "new.sqlite", "--jobs", "1"]
        status, out, err = run("rehearse", *words)
    assert (status, out) == (2, "")
    assert "does not allow tool.example to compile catalogs of nodes (403)." in err
    assert 'allow: ["tool.example"]' in err


def test_a_certificate_of_another_ca(run: Run, tmp_path: Path) -> None:
    other = LabCA("other").enrol(tmp_path / "other", "tool.example")
    with new_master(tmp_path) as master:
        words = ["--master", master.address, "--ca", master.tool.ca]
        words += ["--cert", other.certificate, "--key", other.key, "-o", tmp_path / "new.sqlite"]
        status, out, err = run("rehearse", fleet(tmp_path, "a.example", "b.example"), *words)
    assert (status, out) == (2, "")
    assert f"{master.address} does not accept the certificate of tool.example: its CA is unknown there." in err
    assert not (tmp_path / "new.sqlite").exists()
