"""What is exported comes back: each record, connection and finding of jsonl and HAR, every exchange of flows. And files
that are cut off, damaged or hostile."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.io import FlowWriter, tnetstring
from mitmproxy.test import tflow

from inspector.analysis import verdicts
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import exporting, jsonl
from inspector.formats.importing import load
from inspector.formats.mitm_flows import export_flows
from inspector.model import (
    Closed,
    Connection,
    Exchange,
    Gap,
    Handshake,
    Leg,
    Record,
    Request,
    Response,
)
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import keep
from tests.support.conversations import START, Agent, together
from tests.support.json_output import strict
from tests.support.odd_records import AGENT, EMPTY, ODD
from tests.support.proxies import analyzed
from tests.support.recorded import SAMPLES
from tests.support.records import unnumbered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run


def _nested(depth: int) -> bytes:
    """Lists in lists, as a flow file has them."""
    data = b"0:]"
    for _ in range(depth):
        data = b"%d:%s]" % (len(data), data)
    return data


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    path = tmp_path / "odd.sqlite"
    with Capture.create(path) as capture:
        keep(capture, *ODD)
        capture.note(Connection(AGENT, Closed(START + 5, "proxy")))
        for connection in EMPTY:
            capture.note(connection)
    return path


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    """A run, and failed handshakes with a gap between."""
    path = tmp_path / "refused.sqlite"
    with Capture.create(path) as capture:
        keep(capture, *together(Agent().ca().crl().csr().poll().issued().run(), Agent("c.example", "192.0.2.3")
                                .refused("revoked", own=True)), Gap(START + 99, "the disk is full", 2))  # fmt: skip
    return path


def held(path: Path) -> tuple[list[Record], list[Connection]]:
    with Capture.open(path) as capture:
        return list(capture.records()), capture.connections()


def again(capture: Path, kind: str, text: str = "", *, secrets: bool = True) -> Path:
    """A capture by way of a format."""
    file, target = capture.with_suffix(f".{kind}"), capture.with_suffix(f".{kind}.sqlite")
    exporting.Chosen.by(capture, text, None if secrets else frozenset()).write(kind, file)
    assert load([file], target).errors == []
    return target


def placed(sample: Path, tmp_path: Path) -> Path:
    path = tmp_path / sample.name
    path.write_bytes(sample.read_bytes())
    return path


# -- what comes back --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "har"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_comes_back(sample: Path, kind: str, tmp_path: Path) -> None:
    capture = placed(sample, tmp_path)
    assert held(again(capture, kind)) == held(capture)


@pytest.mark.parametrize("kind", ["jsonl", "har"])
def test_what_is_odd_comes_back(odd: Path, kind: str) -> None:
    records, connections = held(odd)
    assert len(records) == len(ODD)
    assert {connection.leg.id for connection in connections} == {"a", "m", "refused", "empty", "unused", ""}
    assert held(again(odd, kind)) == (records, connections)


@pytest.mark.parametrize("kind", ["jsonl", "har"])
def test_every_finding_comes_back(refused: Path, kind: str, run: Run) -> None:
    """Also those that failed handshakes prove."""
    before, after = (strict(run("check", path, "--json")[1]) for path in (refused, again(refused, kind)))
    for finding in (*before["findings"], *after["findings"]):
        del finding["capture"]
    assert {"T05", "B01"} <= {finding["rule"] for finding in before["findings"]}
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_flows_bring_back_the_findings_of_exchanges(sample: Path, tmp_path: Path, run: Run) -> None:
    capture = placed(sample, tmp_path)
    if not any(isinstance(record, Exchange) for record in held(capture)[0]):
        (note,) = exporting.Chosen.by(capture).notes("flows")
        assert note == "A flow file cannot contain failed handshakes (3): they are left out."
        return
    before, after = (strict(run("check", path, "--json")[1]) for path in (capture, again(capture, "flows")))
    assert [(finding["rule"], finding["seqs"]) for finding in after["findings"]] == [
        (finding["rule"], finding["seqs"]) for finding in before["findings"]
    ]


@pytest.mark.parametrize("kind", ["jsonl", "har"])
def test_a_part_comes_back_without_what_is_not_its(refused: Path, kind: str) -> None:
    records, connections = held(refused)
    chosen = [
        record for record in records if isinstance(record, Exchange) and record.request.path.endswith("certificate/ca")
    ]
    back, legs = held(again(refused, kind, "endpoint:ca"))
    assert [dataclasses.replace(exchange, seq=0) for exchange in back] == [
        dataclasses.replace(exchange, seq=0) for exchange in chosen
    ]
    used = {leg.id for exchange in chosen for leg in (exchange.agent, exchange.master) if leg}
    assert legs == [connection for connection in connections if connection.leg.id in used]


@pytest.mark.parametrize("kind", ["jsonl", "har"])
def test_what_was_masked_stays_masked(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "c.sqlite"
    secret = "aGVsbG8gd29ybGQhIQ"
    with Capture.create(path) as capture:
        keep(capture, Exchange(AGENT, Request((("Authorization", f"Basic {secret}"),)), Response(status=200)))
    target = again(path, kind, secrets=False)
    assert secret not in path.with_suffix(f".{kind}").read_text()
    (record,) = held(target)[0]
    assert isinstance(record, Exchange)
    assert record.request.header("authorization") not in (None, f"Basic {secret}")
    assert held(again(path, "jsonl" if kind == "har" else "har"))[0] == held(path)[0]


# -- several files ----------------------------------------------------------------------------------------


def test_files_are_mixed_by_time(refused: Path, odd: Path, tmp_path: Path) -> None:
    files = [path.with_suffix(f".{kind}") for path, kind in ((refused, "har"), (odd, "jsonl"))]
    for path, file in zip((refused, odd), files, strict=True):
        exporting.Chosen.by(path, opened=None).write(exporting.format_of(file), file)
    target = tmp_path / "both.sqlite"
    loaded = load(files, target)
    assert loaded.errors == []
    assert loaded.formats == {"HAR", "jsonl"}
    records, _ = held(target)
    one, other = held(refused)[0], held(odd)[0]
    assert (
        loaded.counts
        == {"exchanges": 15, "handshakes": 2, "gaps": 2}
        == {
            name: sum(isinstance(record, kind) for record in (*one, *other))
            for name, kind in (("exchanges", Exchange), ("handshakes", Handshake), ("gaps", Gap))
        }
    )
    for part in (unnumbered(one), unnumbered(other)):  # each in its own order
        assert [record for record in unnumbered(records) if record in part] == part
    places = [record.ended for record in records if record.ended > START + 4]
    assert places == sorted(places)


def test_each_file_has_its_own_trouble(refused: Path, tmp_path: Path, run: Run) -> None:
    whole, cut = refused.with_suffix(".jsonl"), tmp_path / "cut.jsonl"
    exporting.Chosen.by(refused).write("jsonl", whole)
    cut.write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "text").write_text("hello\x1b[2J")
    (tmp_path / "none").touch()
    target = tmp_path / "t.sqlite"
    names = ("cut.jsonl", "text", "none", "missing", "refused.sqlite")
    status, out, err = run("import", whole, *(tmp_path / name for name in names), "-o", target)
    records, _ = held(refused)
    assert (status, len(held(target)[0])) == (2, 2 * len(records) - 1)
    assert out.startswith(f"{2 * sum(isinstance(record, Exchange) for record in records)} exchanges, ")
    assert "\x1b" not in err
    problems = (
        ("", f" is cut off or damaged after {len(records) - 1} records (line "),
        ("Cannot import ", ": it is not a flow file of mitmproxy, not HAR and not jsonl."),
        ("Cannot import ", ": it is empty."),
        ("Cannot read ", ": No such file or directory."),
        ("Cannot import ", ": it already is a capture; "),
    )
    for name, (before, after) in zip(names, problems, strict=True):
        assert err.count(f"puppet-inspector: {before}{tmp_path / name}{after}") == 1


@pytest.mark.parametrize("kinds", [("jsonl",), ("har",), ("mitm",), ("jsonl", "har", "mitm")])
def test_how_far_it_is_is_reported_in_bytes(refused: Path, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    files = [tmp_path / f"x.{kind}" for kind in kinds]
    for file in files:
        exporting.Chosen.by(refused, opened=None).write(exporting.format_of(file), file)
    reported: list[tuple[int, int, str]] = []

    def watch(done: int, total: int, what: str = "", written: object = None) -> None:
        reported.append((done, total, what))

    load(files, tmp_path / "c.sqlite", watch)
    size = sum(file.stat().st_size for file in files)
    assert {(total, what) for _, total, what in reported} == {(size, "importing")}
    shares = [done for done, _, _ in reported]
    assert shares == sorted(shares)
    assert size / 2 < shares[-1] <= size
    assert len(set(shares)) > 5


def test_a_capture_that_is_there_is_left_alone(refused: Path, tmp_path: Path, run: Run) -> None:
    before = refused.read_bytes()
    status, out, err = run("import", tmp_path / "none.jsonl", "-o", refused)
    assert (status, out, refused.read_bytes()) == (2, "", before)
    assert err.startswith(f"puppet-inspector: {refused} already exists.")


def test_nothing_comes_of_nothing(tmp_path: Path, run: Run) -> None:
    (tmp_path / "x.har").write_text('{"log": 1}')
    status, out, err = run("import", tmp_path / "x.har", "-o", tmp_path / "c.sqlite")
    assert (status, out) == (2, "")
    assert "x.har: Expected `object`, got `int`" in err
    assert not (tmp_path / "c.sqlite").exists()


# -- hostile files ----------------------------------------------------------------------------------------


def _changed(change: Callable[[dict[str, Any]], object]) -> str:
    """A line of jsonl with something else in it."""
    (line,) = list(jsonl.lines([ODD[1]]))
    document = json.loads(line)
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    "line",
    [
        "[1]", "{}", '{"kind": "connection"}', '{"kind": "connection", "leg": {"id": "a", "side": "sideways"}}',
        "{" * 20, '{"a":' * 100_000, '{"exact": {"kind": "gap", "time": 1e999, "reason": ""}}',
        '{"exact": {"kind": "gap", "time": NaN, "reason": ""}}',
        '{"exact": {"kind": "gap", "time": 1, "reason": "\\ud800"}}',
        '{"exact": {"kind": "gap", "time": 1, "reason": "", "lost": 99999999999999999999}}',
        '{"exact": {"kind": "gap", "time": "x", "reason": ""}}', '{"exact": {"kind": "spy"}}',
        '{"exact": {"kind": ["gap"]}}', '{"kind": "connection", "leg": {"id": "\\udfff", "side": "agent"}}',
        _changed(lambda document: document["request"]["body"].update(base64="\x00")),
        _changed(lambda document: document["request"]["body"].update(base64=None, text="\ud800")),
        _changed(lambda document: document["response"].update(headers=[["a"]])),
        _changed(lambda document: document["exact"].update(agent=7)),
        _changed(lambda document: document.update(exact=[])),
    ],
    ids=range(19),
)  # fmt: skip
def test_a_bad_line_ends_a_file_and_nothing_else(line: str, tmp_path: Path) -> None:
    good = '{"exact": {"kind": "gap", "time": 1, "reason": "x"}}\n'
    (tmp_path / "x.jsonl").write_text(f"{good}\n{line}\n{good}", errors="surrogatepass")
    loaded = load([tmp_path / "x.jsonl"], tmp_path / "c.sqlite")
    assert held(tmp_path / "c.sqlite")[0] == [Gap(1.0, "x", seq=1)]
    (error,) = loaded.errors
    assert "x.jsonl is cut off or damaged after 1 records (line 3 is not a record" in error.message
    assert error.message.isprintable()


@given(st.binary(max_size=200))
def test_no_file_raises(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("x")
    for number, head in enumerate((b"", b"{", b'{"log":', b'{"log":{"entries":[{', b"9:")):
        (folder / "x").write_bytes(head + data)
        loaded = load([folder / "x"], folder / f"{number}.sqlite")
        assert loaded.errors or loaded.kinds


def test_a_format_is_named_by_the_ending(tmp_path: Path) -> None:
    assert [exporting.format_of(tmp_path / name) for name in ("a.mitm", "a.flow", "a.FLOWS", "b.har", "c.jsonl")] == [
        "flows", "flows", "flows", "har", "jsonl"
    ]  # fmt: skip
    with pytest.raises(InspectorError, match="does not indicate a format"):
        exporting.format_of(tmp_path / "x.txt")


# -- the command ------------------------------------------------------------------------------------------


def test_export_prints_what_is_text(refused: Path, run: Run) -> None:
    records, connections = held(refused)
    status, out, err = run("export", refused)
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, err.split()[:2]) == (0, ["puppet-inspector:", "withheld:"])
    assert sum(line["kind"] == "connection" for line in lines) == len(connections)
    assert [line["seq"] for line in lines if line["kind"] != "connection"] == [record.seq for record in records]
    status, out, err = run("export", refused, "--format", "har", "--filter", "phase:catalog")
    assert [entry["_puppet"]["phase"] for entry in json.loads(out)["log"]["entries"]] == ["catalog"]
    assert (status, err.count("\n")) == (0, 1)


def test_export_writes_a_new_file_and_says_what_it_does_not_hold(refused: Path, tmp_path: Path, run: Run) -> None:
    records, _ = held(refused)
    exchanges = sum(isinstance(record, Exchange) for record in records)
    note = "failed handshakes (1) and gaps (1): they are"
    cases = (
        (".mitm", exchanges, f"A flow file cannot contain {note} left out."),
        (".jsonl", len(records), ""),
        (".har", len(records), f"HAR cannot express {note} in _puppet.records."),
    )
    for ending, number, output in cases:
        path = tmp_path / f"x{ending}"
        status, out, err = run("export", refused, "-o", path)
        masked = "secrets masked (--with-secrets keeps them)"
        assert (status, out) == (0, f"{number} records written to {path}, {masked}\n")
        *notes, withheld = err.splitlines()
        assert notes == ([f"puppet-inspector: {output}"] if output else [])
        assert withheld.startswith("puppet-inspector: withheld: ")
        assert path.stat().st_mode & 0o777 == 0o600
        before = path.read_bytes()
        status, _, err = run("export", refused, "-o", path)
        assert (status, path.read_bytes()) == (2, before)
        assert f"{path} already exists." in err
    assert run("export", refused, "-o", tmp_path / "y.har", "--with-secrets")[1].endswith("y.har\n")
    assert run("export", refused, "-o", tmp_path / "y.txt", "--format", "jsonl")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        (("--format", "flows"), "The format flows is binary"),
        (("-o", "x.txt"), "x.txt does not indicate a format."),
        (("--filter", "phase:nonsense"), "phase"),
        (("-o", "no/such/folder.har"), "Cannot write no/such/folder.har"),
    ],
)
def test_a_mistake_is_explained(
    refused: Path, run: Run, arguments: tuple[str, ...], mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run("export", refused, *arguments)
    assert (status, out) == (2, "")
    assert mistake in err


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"999999999999:x", "Invalid data format"),
        (b"5000000000:x", "Invalid data format"),
        (_nested(5000), "it is nested too deeply"),
    ],
    ids=["huge", "large", "deep"],
)
def test_a_flow_file_with_hostile_lengths_is_one_sentence(data: bytes, reason: str, tmp_path: Path) -> None:
    source = tmp_path / "x.flows"
    source.write_bytes(data)
    loaded = load([source], tmp_path / "c.sqlite")
    (error,) = loaded.errors
    assert reason in error.message


@pytest.mark.parametrize("state", [[], {b"x": b"y" * 100_000}, {b"type": b"http", b"version": 21}])
def test_what_mitmproxy_does_not_expect_is_one_short_sentence(state: object, tmp_path: Path) -> None:
    source = tmp_path / "x.flows"
    source.write_bytes(tnetstring.dumps(state))  # type: ignore[arg-type]
    (error,) = load([source], tmp_path / "c.sqlite").errors
    assert "it is not a flow file of mitmproxy" in error.message
    assert len(error.message) < 700


@pytest.mark.parametrize("place", ["/dev/zero", "pipe"])
def test_what_has_no_end_is_not_read(place: str, tmp_path: Path) -> None:
    source = tmp_path / "x"
    if place == "pipe":
        os.mkfifo(source)
    else:
        source.symlink_to(place)
    (error,) = load([source], tmp_path / "c.sqlite").errors
    assert "it is not a regular file" in error.message


@pytest.mark.parametrize("certificate", [True, False], ids=["the agent's certificate", "none"])
@pytest.mark.parametrize(
    ("error", "result"),
    [
        ("OpenSSL Error([('SSL routines', '', 'tlsv1 alert certificate revoked')])", "T05"),
        ("OpenSSL Error([('SSL routines', '', 'ssl/tls alert certificate revoked')])", "T05"),
        ("OpenSSL Error([('SSL routines', '', 'tls alert certificate revoked')])", "T05"),
        ("OpenSSL Error([('SSL routines', '', 'tlsv1 alert unknown ca')])", "T06"),
        ("OpenSSL Error([('SSL routines', '', 'sslv3 alert certificate expired')])", "refused"),
        ("OpenSSL Error([('SSL routines', '', 'sslv3 alert of a new kind')])", "failed"),
    ],
)
@pytest.mark.parametrize("reached", [True, False], ids=["", "whose connection mitmproxy left empty"])
def test_the_alert_in_a_flows_error_is_a_failed_handshake(
    error: str, result: str, reached: bool, certificate: bool, tmp_path: Path
) -> None:
    """A flow file holds no failed handshake: mitmproxy's sentence is all there is of it."""
    records = talk(plugins(), catalog(), report(), certificate=certificate)
    lost = [
        dataclasses.replace(
            record,
            response=None,
            error=error,
            failed=record.time,
            master=Leg("m" + record.agent.id, "master", "192.0.2.2", 8140, connecting=record.time if reached else None),
        )
        for record in records
        if isinstance(record, Exchange)
    ]
    export_flows(lost, tmp_path / "a.mitm")
    load([tmp_path / "a.mitm"], tmp_path / "a.sqlite")
    (run,) = analyzed(tmp_path / "a.sqlite").runs
    assert run.certname == "node1.example"
    verdict = verdicts.verdict(run)
    assert verdict
    assert (verdict.cause.rule if verdict.cause else run.outcome) == result
    expected = 0 if result == "failed" else len(lost) - 1
    assert len(run.handshakes) == expected, "what comes after the report belongs to no run"


@pytest.mark.parametrize("name", ["timestamp_start", "timestamp_tls_setup"])
def test_a_flow_with_a_number_that_no_capture_can_hold(name: str, tmp_path: Path) -> None:
    flow = tflow.tflow(resp=True)
    setattr(flow.client_conn if "tls" in name else flow.request, name, 2**70)
    source = tmp_path / "x.flows"
    with source.open("wb") as file:
        FlowWriter(file).add(flow)  # type: ignore[no-untyped-call]
    (error,) = load([source], tmp_path / "c.sqlite").errors
    assert "a number in it is too large" in error.message
