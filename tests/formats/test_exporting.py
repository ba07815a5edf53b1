"""Exports: jsonl says what ``show --json`` says and has the bodies; mitmproxy opens the flow files, and we again."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import exporting, files, jsonl
from inspector.formats.importing import load
from inspector.formats.mitm_flows import export_flows
from inspector.model import Exchange, Gap, Leg, Request, Response
from inspector.summaries import conclusions
from tests.support import places
from tests.support.captures import save
from tests.support.conversations import Agent, runs_of
from tests.support.json_output import strict
from tests.support.planted import found, planted
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.model import Record
    from inspector.summaries.summary import RunBrief
    from tests.conftest import Run
    from tests.conftest import Run as Command

SCHEMAS = places.SCHEMAS
HOSTILE = Exchange(
    Leg("a", "agent"),
    Request((("X", "\x1b[2J"),), b"\x1b[2J \xe2\x80\xae [bold]", target="/\x1b"),
    Response((), b"\xff\x00", status=200, lost=7),
    seq=1,
)


def owners(records: tuple[Record, ...]) -> dict[int, RunBrief]:
    return {seq: conclusions.of_run(run) for run in runs_of(records) for seq in run.seqs}


def schema() -> Any:
    return json.loads((SCHEMAS / "export.schema.json").read_text())


@pytest.mark.parametrize("name", ["har", "trace", "otlp"])
def test_bodies_of_what_leaves_are_not_decoded_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    records = records_of(SAMPLES[0])
    runs = owners(records)
    decoded: list[object] = []
    monkeypatch.setattr(Analyzer, "_decode", lambda *given: decoded.append(given))
    assert list(exporting.text_of(name)(records, runs.get))
    assert decoded == []


# -- jsonl ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_line_says_what_show_says(sample: Path, run: Command) -> None:
    records = records_of(sample)
    document = [strict(line) for line in jsonl.lines(records, owners(records).get)]
    validator = jsonschema.Draft202012Validator(schema())
    assert [line["seq"] for line in document] == [record.seq for record in records]
    for line, record in zip(document, records, strict=True):
        validator.validate(line)
        bare = copy.deepcopy(line)
        assert bare.pop("exact")["seq"] == record.seq
        if isinstance(record, Exchange):
            sent = bare["request"].pop("body")
            assert unpacked(sent) == record.request.body
            if record.response:
                assert unpacked(bare["response"].pop("body")) == record.response.body
        if record.seq in (records[0].seq, records[-1].seq, records[len(records) // 2].seq):
            _, out, _ = run("show", sample, record.seq, "--json")
            assert bare == strict(out)


def unpacked(body: dict[str, Any]) -> bytes:
    assert ("text" in body) is not ("base64" in body)
    text: str = body.get("text", "")
    return base64.b64decode(body["base64"]) if "base64" in body else text.encode()


def test_hostile_bytes_are_kept_and_never_raw() -> None:
    (line,) = jsonl.lines([HOSTILE])
    assert line.isascii()
    assert line.isprintable()
    document = json.loads(line)
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert document["request"]["body"] == {"text": "\x1b[2J \u202e [bold]", "lost": 0}
    assert document["response"]["body"] == {"base64": "/wA=", "lost": 7}
    assert document["run"] is None


# -- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "flows"])
def test_only_new_files_are_written(kind: str, tmp_path: Path) -> None:
    def write(path: Path) -> int:
        return files.write(jsonl.lines([HOSTILE]), path) if kind == "jsonl" else export_flows([HOSTILE], path)

    path, link = tmp_path / "out", tmp_path / "link"
    assert write(path) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    with pytest.raises(InspectorError, match="already"):
        write(path)
    assert path.read_bytes() == before
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InspectorError):
        write(link)
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(InspectorError, match="No such file or directory"):
        write(tmp_path / "no" / "out")


def test_what_cannot_be_written_is_known_before_a_capture_is_read(tmp_path: Path, run: Run) -> None:
    (tmp_path / "x.har").touch()
    none = tmp_path / "none.sqlite"
    assert "x.har already exists." in run("export", none, "-o", tmp_path / "x.har")[2]
    assert "The format flows is binary" in run("export", none, "--format", "flows")[2]
    assert "There is no capture at" in run("export", none)[2]


def test_half_a_file_is_none(tmp_path: Path) -> None:
    def lines() -> Any:
        yield "{}"
        raise InspectorError("the capture is gone")

    with pytest.raises(InspectorError, match="gone"):
        files.write(lines(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# -- flows ------------------------------------------------------------------------------------------------


def passed_on(record: Record) -> Exchange:
    """What of an exchange a flow file holds."""
    assert isinstance(record, Exchange)

    def known(leg: Leg | None) -> Leg | None:
        retained = dataclasses.replace(leg, resumed=None) if leg else None
        # A flow has the certificate that was shown to the agent, and not what the proxy showed the master.
        return (
            dataclasses.replace(retained, own_chain=retained.own_chain[:1] if retained.side == "agent" else ())
            if retained
            else None
        )

    agent = known(record.agent)
    assert agent
    return dataclasses.replace(record, agent=agent, master=known(record.master), identity=None, stripped=(), seq=0)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_flow_file_comes_back(sample: Path, tmp_path: Path) -> None:
    records = [record for record in records_of(sample) if isinstance(record, Exchange)]
    assert export_flows([*records, Gap(1.0, "not an exchange")], tmp_path / "flows.mitm") == len(records)
    capture = tmp_path / "again.sqlite"
    if not load([tmp_path / "flows.mitm"], capture).kinds:
        assert not records
        return
    with Capture.open(capture) as retained:
        again = [passed_on(record) for record in retained.records()]
    assert again == [passed_on(record) for record in sorted(records, key=lambda exchange: exchange.ended)]


@pytest.mark.slow
def test_stock_mitmproxy_opens_it(tmp_path: Path) -> None:
    records = records_of(places.SAMPLES / "compile-error.sqlite")
    number = export_flows([*records, HOSTILE], tmp_path / "flows.mitm")
    mitmdump = Path(sys.executable).with_name("mitmdump")
    command = [str(mitmdump), "--set", f"confdir={tmp_path}", "-nr", str(tmp_path / "flows.mitm")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    asked = [line for line in done.stdout.splitlines() if "HTTP/" not in line and " https://" in line]
    assert len(asked) >= number - 1 > 3, done.stdout + done.stderr
    assert "rror" not in done.stderr


# -- secrets ----------------------------------------------------------------------------------------------

SECRET = Exchange(
    Leg("a", "agent"),
    Request((("Authorization", "Basic hunter2-horse"),), target="/puppet/v3/catalog/a?environment=production"),
    Response(
        (("Content-Type", "application/json"),),
        b'{"name":"a","resources":[{"type":"X","title":"x","parameters":{"p":{"__ptype":"Sensitive","__pvalue":'
        b'"hunter2-horse"}}}]}',
        status=200,
    ),
    seq=1,
)


def test_secrets_are_masked_unless_they_are_wanted(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", SECRET)
    masked = "".join(exporting.Chosen.by(capture).lines("jsonl"))
    raw = "".join(exporting.Chosen.by(capture, opened=None).lines("jsonl"))
    assert "hunter2" not in masked
    assert raw.count("hunter2-horse") == 3
    line = next(line for line in exporting.Chosen.by(capture).lines("jsonl") if '"exchange"' in line)
    assert json.loads(line)["response"]["document"]["resources"][0]["parameters"]["p"]["__pvalue"] == "MASKED"
    jsonschema.Draft202012Validator(schema()).validate(json.loads(line))
    for kind in exporting.FORMATS:
        exporting.Chosen.by(capture).write(kind, tmp_path / f"masked.{kind}")
        assert b"hunter2" not in (tmp_path / f"masked.{kind}").read_bytes()
    for kind in ("har", "flows", "pcapng"):  # the others have no bodies
        exporting.Chosen.by(capture, opened=None).write(kind, tmp_path / f"raw.{kind}")
        assert b"hunter2-horse" in (tmp_path / f"raw.{kind}").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["trace", "otlp", "pcapng"])
def test_no_planted_secret_is_in_what_viewers_get(tmp_path: Path, kind: str) -> None:
    """Whatever a run is called, or a rule quotes: all of it passes through the gate."""
    for at, secret in enumerate(planted(3, 0.002)):
        records = [dataclasses.replace(record, seq=0) for record in secret.records]
        path = tmp_path / f"{at}.{kind}"
        exporting.Chosen.by(save(tmp_path / f"{at}.sqlite", *records)).write(kind, path)
        assert found([secret.core], path.read_bytes()) == [], secret[:3]


def test_show_masks_too(tmp_path: Path, run: Command) -> None:
    with Capture.create(tmp_path / "c.sqlite") as capture:
        capture.append(SECRET)
    for options in ((), ("--json",)):
        assert "hunter2" not in run("show", tmp_path / "c.sqlite", 1, *options)[1]
    raw = strict(run("show", tmp_path / "c.sqlite", 1, "--json", "--with-secrets")[1])
    assert raw["request"]["headers"] == [["Authorization", "Basic hunter2-horse"]]


def test_a_format_is_one_row(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers(items: Iterable[object], *_: object) -> Iterator[str]:
        yield from (str(item.seq) for item in items if isinstance(item, Exchange))

    row = exporting.Format((".csv",), lines=numbers, note="CSV cannot express {others}.")
    monkeypatch.setitem(exporting.FORMATS, "csv", row)
    capture = save(tmp_path / "c.sqlite", *Agent(leg="1").catalog().records)
    status, out, _ = run("export", capture, "-o", tmp_path / "x.csv")
    assert (status, (tmp_path / "x.csv").read_text()) == (0, "1\n")
    assert "x.csv" in out
    assert run("export", capture, "--format", "csv")[:2] == (0, "1\n")
    for form in exporting.FORMATS.values():
        assert (form.lines is None) is (form.write is not None)
