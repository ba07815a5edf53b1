"""HAR 1.2: what we write fits its schema and opens elsewhere; what browsers and mitmproxy write can be imported."""

from __future__ import annotations

import dataclasses
import gzip
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.exceptions import best_match

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.formats import exporting, har
from inspector.formats.importing import load
from inspector.model import Connection, Exchange, Request, Response
from inspector.summaries import conclusions
from inspector.text import utc
from tests.support import places
from tests.support.captures import save
from tests.support.conversations import START, Agent, runs_of, together
from tests.support.odd_records import AGENT, EMPTY, MASTER, ODD
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.formats.lossless import CaptureItem

SCHEMA = json.loads((places.SCHEMAS / "har.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def archive(*items: CaptureItem) -> Any:
    """An archive that fits the schema."""
    return fitting("".join(har.lines(items)))


def fitting(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    wrong = best_match(VALIDATOR.iter_errors(document))
    assert wrong is None, f"{wrong.json_path}: {wrong.message[:200]}"
    return document["log"]


def entry(exchange: Exchange) -> Any:
    (output,) = archive(exchange)["entries"]
    return output


# -- written ----------------------------------------------------------------------------------------------


def test_the_schema_is_one_and_refuses_what_har_has_not() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    output = {"log": archive(ODD[1])}
    for path, name in ((output["log"], "creator"), (output["log"]["entries"][0], "cache"),
                       (output["log"]["entries"][0]["response"], "bodySize")):  # fmt: skip
        retained = path.pop(name)
        assert not VALIDATOR.is_valid(output)
        path[name] = retained
        path["foreign"] = 1
        assert not VALIDATOR.is_valid(output)
        del path["foreign"]
    assert VALIDATOR.is_valid(output)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_valid(sample: Path) -> None:
    log = fitting("\n".join(exporting.Chosen.by(sample).lines("har")))
    every = runs_of(records_of(sample))
    runs = [run for run in every if any(isinstance(record, Exchange) for record in _of(run.seqs, sample))]
    assert [page["id"] for page in log["pages"]] == [f"run-{run.number}" for run in runs]
    assert log["comment"].startswith("Secrets are masked, and other values withheld.")
    for run, page in zip(runs, log["pages"], strict=True):
        assert page["title"] == f"run {run.number} of {run.certname}: {conclusions.of_run(run).ending}"
        mine = [entry["_puppet"]["seq"] for entry in log["entries"] if entry["pageref"] == page["id"]]
        assert set(mine) <= set(run.seqs)
    for entry in (*log["entries"], *({"_puppet": rest} for rest in log["_puppet"]["records"])):
        findings = {(found["rule"], found["message"]) for found in entry["_puppet"]["findings"]}
        seq = entry["_puppet"]["seq"]
        assert findings == {(f.rule, f.message) for run in every for f in run.findings if seq in f.seqs}


def _of(seqs: Any, sample: Path) -> list[Any]:
    return [record for record in records_of(sample) if record.seq in seqs]


def test_what_is_odd_is_valid_too_and_nothing_of_it_is_raw() -> None:
    text = "\n".join(har.lines([*ODD, *EMPTY]))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    log = fitting(text)
    assert len(log["entries"]) == 4
    assert [record["exact"]["kind"] for record in log["_puppet"]["records"]] == ["handshake", "gap"]
    assert log["comment"] == "Failed TLS handshakes and gaps (2) are in _puppet.records: HAR cannot express them."


def test_bodies_are_as_easy_to_read_as_they_can_be() -> None:
    output = entry(dataclasses.replace(ODD[1], error=None))  # type: ignore[arg-type]
    content = output["response"]["content"]
    assert (content["text"], content["size"]) == ("text" * 99, 4 * 99)
    assert content["compression"] == 4 * 99 + 3 - output["response"]["bodySize"]
    assert "3 more bytes" in content["comment"]
    assert output["request"]["postData"] == {"mimeType": "x-unknown", "params": [], "text": "\ufffd\0", "_raw": "/wA="}
    plain = entry(Exchange(AGENT, Request(body=b"a=1"), Response(body=b"\xff", status=200)))
    assert plain["request"]["postData"] == {"mimeType": "x-unknown", "params": [], "text": "a=1"}
    assert plain["response"]["content"] == {"size": 1, "mimeType": "x-unknown", "text": "/w==", "encoding": "base64"}


def test_the_time_is_given_in_its_parts() -> None:
    request = Request((("Host", "puppet:8140"), ("Cookie", "a=1; b=2=3")), started=START + 1, ended=START + 1.010,
                      target="/x?environment=a%20b&empty=")  # fmt: skip
    response = Response(started=START + 1.400, ended=START + 1.500, status=200,
                        headers=(("Set-Cookie", "s=1; Path=/; Secure"),))  # fmt: skip
    output = entry(Exchange(AGENT, request, response, MASTER))
    assert output["startedDateTime"] == utc(START + 1)
    assert output["timings"] == {
        "blocked": -1, "dns": -1, "connect": 200, "ssl": 100, "send": 10, "wait": 190, "receive": 100
    }  # fmt: skip
    assert output["time"] == 500
    assert output["request"]["url"] == "https://puppet:8140/x?environment=a%20b&empty="
    assert output["request"]["queryString"] == [
        {"name": "environment", "value": "a b"}, {"name": "empty", "value": ""}
    ]  # fmt: skip
    assert output["request"]["cookies"] == [{"name": "a", "value": "1"}, {"name": "b", "value": "2=3"}]
    assert output["response"]["cookies"] == [{"name": "s", "value": "1"}]
    assert (output["serverIPAddress"], output["connection"]) == ("192.0.2.9", "a")
    # The next request on the same connection does not pay for it again.
    later = dataclasses.replace(request, started=START + 2, ended=START + 2)
    again = entry(Exchange(AGENT, later, dataclasses.replace(response, started=START + 3, ended=START + 3), MASTER))
    assert (again["timings"]["connect"], again["timings"]["ssl"], again["time"]) == (-1, -1, 1000)


def test_no_answer_is_status_0_and_why() -> None:
    output = entry(Exchange(AGENT, Request(started=START, ended=START), error="the master left", failed=START + 2))
    assert (output["response"]["status"], output["response"]["_error"], output["time"]) == (0, "the master left", 2000)


def test_mitmproxy_opens_it(tmp_path: Path) -> None:
    from mitmproxy.http import HTTPFlow
    from mitmproxy.io import FlowReader

    sample = places.SAMPLES / "first-run.sqlite"
    exporting.Chosen.by(sample, opened=None).write("har", tmp_path / "x.har")
    with (tmp_path / "x.har").open("rb") as file:
        flows = list(FlowReader(file).stream())
    records = [record for record in records_of(sample) if isinstance(record, Exchange)]
    for flow, record in zip(flows, records, strict=True):
        assert isinstance(flow, HTTPFlow)
        assert flow.response
        assert record.response
        assert (flow.request.method, flow.request.path) == (record.request.method, record.request.target)
        assert flow.response.status_code == record.response.status
        assert flow.request.content == record.request.body
        encoded = record.response.header("content-encoding") == "gzip"
        assert flow.response.content == (gzip.decompress(record.response.body) if encoded else record.response.body)


# -- read -------------------------------------------------------------------------------------------------


BROWSER: dict[str, Any] = {
    "startedDateTime": "2026-11-21T12:00:00.250+01:00",
    "time": 170,
    "request": {
        "method": "POST", "url": "https://puppet.example:8140/puppet/v3/catalog/a.example?environment=p%20q#x",
        "httpVersion": "http/1.1", "headers": [{"name": ":authority", "value": "x"}, {"name": "Accept", "value": "ü€"}],
        "cookies": [], "queryString": [], "headersSize": -1, "bodySize": 3,
        "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a b", "value": "1&"}]},
    },
    "response": {
        "status": 200, "statusText": "OK", "httpVersion": "h2", "cookies": [], "redirectURL": "", "headersSize": -1,
        "headers": [{"name": "content-encoding", "value": "gzip"}, {"name": "Content-Length", "value": "5"}],
        "bodySize": 5, "content": {"size": 4, "mimeType": "application/json", "text": "{\"é\""},
    },
    "cache": {},
    "timings": {"blocked": -1, "dns": 10, "connect": 40, "ssl": 20, "send": 50, "wait": 60, "receive": 10},
    "serverIPAddress": "[2001:db8::1]",
    "connection": "443",
}  # fmt: skip


def browsed(tmp_path: Path, *entries: dict[str, Any]) -> tuple[list[Any], list[Connection]]:
    (tmp_path / "x.har").write_text("\ufeff" + json.dumps({"log": {"entries": entries}}, indent=4))
    loaded = load([tmp_path / "x.har"], tmp_path / "x.sqlite")
    assert [error.message for error in loaded.errors] == []
    with Capture.open(tmp_path / "x.sqlite") as capture:
        return list(capture.records()), capture.connections()


def changed(entry: dict[str, Any], **changes: dict[str, Any]) -> dict[str, Any]:
    """An entry of a browser's with other fields in its parts."""
    return {
        name: entry[name] | changes.get(name, {}) if isinstance(entry[name], dict) else entry[name] for name in entry
    }


def rounded(message: Any) -> Any:
    return dataclasses.replace(message, started=round(message.started, 3), ended=round(message.ended, 3))


def test_a_browsers_archive_is_read(tmp_path: Path) -> None:
    other = changed(BROWSER, request={"url": "data:text/plain,x"})
    (record,), legs = browsed(tmp_path, BROWSER, other)
    began = 1795258800.25
    assert rounded(record.request) == Request(
        (("Accept", "\xc3\xbc\xe2\x82\xac"),),  # UTF-8, each byte a character
        b"a+b=1%26", "HTTP/1.1", began, began + 0.1, method="POST",
        target="/puppet/v3/catalog/a.example?environment=p%20q")  # fmt: skip
    assert rounded(record.response) == Response((("Content-Length", "5"),), "{\"é\"".encode(), "HTTP/1.1", began + 0.16,
                                       began + 0.17, status=200, reason="OK")  # fmt: skip
    assert (record.master.address, record.master.port, record.master.sni) == ("2001:db8::1", 8140, "puppet.example")
    assert (record.agent.address, record.agent.connected) == (None, None)
    assert {leg.leg for leg in legs} == {record.agent, record.master}


def test_what_an_archive_does_not_have_is_lost_and_not_empty(tmp_path: Path) -> None:
    bare = changed(BROWSER, response={"content": {"size": 900, "mimeType": "x", "text": None}})
    encoded = changed(BROWSER, response={"content": {"size": 2, "mimeType": "x", "text": "/wA=", "encoding": "base64"}})
    failed = changed(BROWSER, response={"status": 0, "_error": "net::ERR_FAILED", "content": {}})
    (one, two, three), _ = browsed(tmp_path, bare, encoded, failed)
    assert (one.response.body, one.response.lost) == (b"", 900)
    assert (two.response.body, two.response.lost) == (b"\xff\0", 0)
    assert (three.response, three.error) == (None, "net::ERR_FAILED")
    assert three.ended == pytest.approx(three.time + 0.17)


def test_connections_of_two_archives_are_not_one(tmp_path: Path) -> None:
    files = [tmp_path / "a.har", tmp_path / "b.har"]
    for file, entries in zip(files, ([BROWSER, BROWSER], [BROWSER]), strict=True):
        file.write_text(json.dumps({"log": {"entries": entries}}))
    load(files, tmp_path / "x.sqlite")
    with Capture.open(tmp_path / "x.sqlite") as capture:
        agents = [record.agent.id for record in capture.records() if isinstance(record, Exchange)]
    assert len(set(agents)) == 2
    assert sorted(map(agents.count, agents)) == [1, 2, 2]


def test_clear_text_is_known_by_the_url(tmp_path: Path) -> None:
    other = {**changed(BROWSER, request={"url": "http://puppet:8140/x"}), "connection": "80"}
    (clear, tls), _ = browsed(tmp_path, other, BROWSER)
    analyzer = Analyzer()
    found = [finding for record in (clear, tls) for finding in analyzer.feed(record).findings]
    assert [finding.seqs for finding in found if finding.rule == "T15"] == [(clear.seq,)]


def test_what_mitmproxy_saves_is_read(tmp_path: Path) -> None:
    from mitmproxy.addons.savehar import SaveHar
    from mitmproxy.test import taddons

    from inspector.formats.mitm_flows import flow_of

    records = [record for record in records_of(SAMPLES[2]) if isinstance(record, Exchange)]
    with taddons.context(saver := SaveHar()):  # type: ignore[no-untyped-call]
        saver.export_har([flow_of(record) for record in records], str(tmp_path / "x.har"))
    assert load([tmp_path / "x.har"], tmp_path / "x.sqlite").errors == []
    with Capture.open(tmp_path / "x.sqlite") as capture:
        again = [record for record in capture.records() if isinstance(record, Exchange)]
    assert [(exchange.request.method, exchange.request.target) for exchange in again] == [
        (record.request.method, record.request.target) for record in records
    ]
    for one, other in zip(again, records, strict=True):
        assert one.request.body == other.request.body
        assert one.ended == pytest.approx(other.ended, abs=0.002)
    analyzer = Analyzer()
    for exchange in again:
        analyzer.feed(exchange)
    assert [(run.certname, run.outcome) for run in analyzer.finish()] == [("node1.example", "complete")]


def test_of_an_archive_that_is_cut_off_the_whole_entries_are_kept(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *together(Agent().ca().crl().csr().poll().issued().run()))
    exporting.Chosen.by(capture, opened=None).write("har", tmp_path / "x.har")
    text = (tmp_path / "x.har").read_text()
    with Capture.open(capture) as opened:
        records = list(opened.records())
        connections = {connection.leg.id: connection for connection in opened.connections()}
    lines = text.splitlines()
    for number in (1, 3, len(records)):
        (tmp_path / "x.har").write_text("\n".join(lines[: number + 1]) + lines[number + 1][:-9])
        (tmp_path / "x.sqlite").unlink(missing_ok=True)
        loaded = load([tmp_path / "x.har"], tmp_path / "x.sqlite")
        assert [error.message for error in loaded.errors]
        assert f"is cut off or damaged after {number} records (" in loaded.errors[0].message
        with Capture.open(tmp_path / "x.sqlite") as opened:
            assert list(opened.records()) == records[:number]
            assert all(connections[connection.leg.id] == connection for connection in opened.connections())


def test_a_bad_entry_ends_an_archive(tmp_path: Path) -> None:
    bad = [changed(BROWSER, request={"url": "https://[x/"}), changed(BROWSER, request={"url": "https://x:99999/"}),
           changed(BROWSER, response={"status": 10**30}),
           changed(BROWSER, response={"status": "200"}), {**BROWSER, "startedDateTime": "yesterday"},
           {**BROWSER, "_puppet": {"exact": {"kind": "spy"}}}, changed(BROWSER, response={"content": {"text": "x",
           "encoding": "base64"}}), changed(BROWSER, request={"method": "\ud800"})]  # fmt: skip
    for number, entry in enumerate(bad):
        (tmp_path / "x.har").write_text(json.dumps({"log": {"entries": [BROWSER, entry, BROWSER]}}))
        loaded = load([tmp_path / "x.har"], tmp_path / f"{number}.sqlite")
        assert "is cut off or damaged after 1 records (cannot read entry 2" in loaded.errors[0].message, entry


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@given(JSON, st.sampled_from(["", "log", *BROWSER, *BROWSER["request"], *BROWSER["response"]]))
def test_no_archive_raises(tmp_path_factory: pytest.TempPathFactory, value: Any, place: str) -> None:
    document = json.loads(json.dumps({"log": {"entries": [BROWSER], "_puppet": {}}}))
    entry = document["log"]["entries"][0]
    for holder in (document, document["log"], entry, entry["request"], entry["response"]):
        if place in holder:
            holder[place] = value
    folder = tmp_path_factory.mktemp("x")
    (folder / "x.har").write_text(json.dumps(document))
    loaded = load([folder / "x.har"], folder / "x.sqlite")
    if loaded.kinds:
        with Capture.open(folder / "x.sqlite") as capture:
            assert len(list(capture.records())) == loaded.kinds.total()
