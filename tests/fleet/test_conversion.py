"""Captures as tables: the same runs, exchanges and findings as the other commands show."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import random
import sqlite3
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.capture.identity import identity
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.fleet import analysis, conversion
from inspector.fleet.directory import TableDirectory
from inspector.fleet.overview import overview_of
from inspector.fleet.rows import Rows
from inspector.fleet.tables import TABLES
from inspector.fleet.trust import inventory, listing
from inspector.formats.master_logs import MasterLogs
from inspector.host import pki
from inspector.model import Exchange, Gap, Handshake, Leg
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support import conversations
from tests.support.captures import save
from tests.support.conversations import Agent
from tests.support.hostile import HOSTILE, hostile_records
from tests.support.master_logs import access_line, answered, write
from tests.support.places import SAMPLES
from tests.support.planted import core, everything, found
from tests.support.recorded import records_of
from tests.support.tables_of import SITE, asked, converted, of_records, shown
from tests.support.written import FORMS, RECORDED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from tests.conftest import Run

SAMPLED = sorted(SAMPLES.glob("*.sqlite"))


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLED, ids=lambda path: path.stem)
def test_tables_say_what_the_commands_say(tmp_path: Path, run: Run, sample: Path) -> None:
    tables = converted(tmp_path, sample)
    _, out, _ = run("runs", sample, "--json")
    runs = json.loads(out)
    columns = "run, certname, outcome, agent_version, master_version, transaction_uuid"
    rows = asked(tables, f"SELECT {columns} FROM runs ORDER BY run")
    keys = ("run", "certname", "outcome", "agent_version", "master_version", "transaction_uuid")
    assert rows == [tuple(each[key] for key in keys) for each in runs]
    findings = asked(tables, "SELECT run, rule, severity, seqs[1] FROM findings ORDER BY ALL")
    listed = [(each["run"], one["rule"], one["severity"], one["seq"]) for each in runs for one in each["findings"]]
    assert findings == sorted(listed)
    _, out, _ = run("list", sample, "--json")
    records = [each for each in json.loads(out) if each["kind"] == "exchange"]
    keys = ("seq", "run", "phase", "method", "path", "status")
    assert asked(tables, "SELECT seq, run, phase, method, path, status FROM exchanges ORDER BY seq") == [
        tuple(each[key] for key in keys) for each in records
    ]


@pytest.mark.slow
def test_what_did_not_change_is_left_and_what_grew_is_done_again(tmp_path: Path) -> None:
    records = talk(plugins(), catalog(), report())
    path = save(tmp_path / "a.sqlite", *records[:2])
    tables = converted(tmp_path, path)
    assert conversion.convert(path, tables, SITE).unchanged
    save(path, records[2])
    again = conversion.convert(path, tables, SITE)
    assert (again.unchanged, again.records) == (False, 3)
    assert asked(tables, "SELECT records, first_seq, last_seq, complete, closed, name FROM captures") == [
        (3, 1, 3, True, False, "a.sqlite")
    ]


def test_the_identity_of_a_capture_is_not_its_file(tmp_path: Path, run: Run) -> None:
    path = save(tmp_path / "a.sqlite", *talk(plugins(), catalog(), report()))
    with Capture.open(path) as capture:
        before = identity(capture)
    assert run("captures", "vacuum", path)[0] == 0
    with Capture.open(path.rename(tmp_path / "b.sqlite")) as capture:
        assert identity(capture) == before
    other = save(tmp_path / "c.sqlite", *talk(plugins(), catalog(), report(), after=1))
    with Capture.open(other) as capture:
        assert identity(capture) != before


def test_an_empty_capture_is_no_row(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "tables")
    assert conversion.convert(save(tmp_path / "a.sqlite"), tables, SITE) == conversion.Converted("", 0)


@pytest.mark.slow
def test_damaged_parts_are_left_out_and_said(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *talk(plugins(), catalog(), report()))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE record SET data = 'nonsense' WHERE seq = 2")
    tables = converted(tmp_path, path)
    assert asked(tables, "SELECT seq FROM exchanges ORDER BY 1") == [(1,), (3,)]
    ((records, trouble),) = asked(tables, "SELECT records, trouble FROM captures")
    assert records == 2
    assert "Record 2" in trouble


def test_a_damaged_first_record_is_left_out_too_and_how_many_are_is_said(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *talk(plugins(), catalog(), report()))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE record SET data = 'nonsense' WHERE seq IN (1, 2)")
    tables = converted(tmp_path, path)
    assert asked(tables, "SELECT seq FROM exchanges") == [(3,)]
    ((trouble,),) = asked(tables, "SELECT trouble FROM captures")
    assert trouble.startswith("Record 1 ")
    assert trouble.endswith("And 1 more.")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE record SET data = 'nonsense'")
    with pytest.raises(CaptureError, match="Record 1 "):
        conversion.convert(path, tables, SITE)


def test_one_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    good = save(tmp_path / "good.sqlite", *talk(plugins()))
    (tmp_path / "bad.sqlite").write_bytes(b"SQLite format 3\0")
    tables = TableDirectory.create(tmp_path / "tables")
    found = list(conversion.convert_all([tmp_path / "bad.sqlite", good], tables, SITE))
    assert isinstance(found[0].error, CaptureError)
    assert (found[1].error, found[1].converted.records) == (None, 1)


def negative_serial() -> bytes:
    """A certificate that no library makes, and every TLS client can present."""
    der = pki.sign(conversations.CA, pki.new_key().public_key(), "evil", serial=0x1234567).public_bytes(Encoding.DER)
    assert der.count(b"\x02\x04\x01\x23\x45\x67") == 1
    return der.replace(b"\x02\x04\x01\x23\x45\x67", b"\x02\x04\xf1\x23\x45\x67")


def long_number() -> list[Record]:
    """A CRL whose number has more digits than Python prints."""
    made = pki.make_crl(conversations.CA, [], 1 << 20_000)
    agent = Agent("b.example").bootstrap()
    agent.ask("GET", agent.url("certificate_revocation_list/ca", ca=True), body=pki.pem(made))
    return conversations.together(agent)


def changed_answer(**fields: object) -> list[Record]:
    *records, last = talk(plugins(), catalog(), report())
    assert isinstance(last, Exchange)
    assert last.response
    return [*records, dataclasses.replace(last, response=dataclasses.replace(last.response, **fields))]  # type: ignore[arg-type]


ABSURD: dict[str, Callable[[], list[Record]]] = {
    "negative serial": lambda: [
        Handshake(Leg("h", "agent", "203.0.113.9", 5, peer_chain=(negative_serial(),)), conversations.START, "unknown")
    ],
    "long CRL number": long_number,
    "status": lambda: changed_answer(status=70_000),
    "negative status": lambda: changed_answer(status=-1),
    "ended": lambda: changed_answer(ended=1e300),
    "long ago": lambda: changed_answer(ended=1e14),
    "lost": lambda: [Gap(conversations.START, "no room", 2**40)],
    "negative lost": lambda: [Gap(conversations.START, "no room", -5)],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize("name", ABSURD)
def test_absurd_numbers_stop_nothing(tmp_path: Path, name: str) -> None:
    bad = save(tmp_path / "bad.sqlite", *ABSURD[name]())
    good = save(tmp_path / "good.sqlite", *conversations.together(Agent().bootstrap().run()))
    tables = TableDirectory.create(tmp_path / "tables")
    results = list(conversion.convert_all([bad, good], tables, SITE))
    assert [result.error for result in results] == [None, None]
    assert asked(tables, "SELECT count(*) FROM captures") == [(2,)]
    tables.conclude()
    assert overview_of(tables).captures == 2
    with shown(tables) as connection:
        assert listing.entries(inventory.read(connection))


@pytest.mark.slow
def test_what_cannot_be_made_a_row_is_said_and_the_rest_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Rows.add

    def add(rows: Rows, step: Step) -> None:
        if step.record.seq == 2:
            raise KeyError("ours")
        made(rows, step)

    monkeypatch.setattr(Rows, "add", add)
    (found,) = conversion.convert_all(
        [save(tmp_path / "a.sqlite", *talk(plugins(), catalog(), report()))],
        TableDirectory.create(tmp_path / "tables"), SITE,
    )  # fmt: skip
    assert found.error is None
    assert "Record 2" in found.converted.trouble
    assert asked(TableDirectory.open(tmp_path / "tables"), "SELECT seq FROM exchanges ORDER BY 1") == [(1,), (3,)]


def test_hostile_records_are_rows(tmp_path: Path) -> None:
    tables = of_records(tmp_path, hostile_records())
    rows = asked(tables, "SELECT method, path, connection FROM exchanges")
    assert rows
    assert any(HOSTILE in str(value) for row in rows for value in row), "what shows them cleans them"


@pytest.mark.slow
def test_closed_tables_have_pseudonyms_and_no_values(tmp_path: Path) -> None:
    made = talk(plugins(), catalog(facts={"contract": "Lindenhof Nord"}), report(), certname="web1.corp.example")
    later = talk(plugins(), catalog(), report(), certname="web1.corp.example", after=5000)
    captures = [save(tmp_path / "corp.sqlite", *made), save(tmp_path / "corp2.sqlite", *later)]
    tables = TableDirectory.create(tmp_path / "tables")
    results = list(conversion.convert_all(captures, tables, "closed", closed=True))
    assert all(result.error is None for result in results)
    names = asked(tables, "SELECT DISTINCT certname FROM runs")
    assert len(names) == 1
    assert asked(tables, "SELECT DISTINCT closed, name FROM captures") == [(True, "shared capture")]
    everything = str([asked(tables, f"SELECT * FROM {name}") for name in TABLES])
    for secret in ("corp", "Lindenhof", "192.0.2.7"):
        assert secret not in everything
    again = conversion.convert_all(captures, tables, "closed", closed=True)
    assert [result.converted.unchanged for result in again] == [True, True]


@pytest.mark.slow
def test_closed_tables_are_made_of_all_their_captures_or_of_none(tmp_path: Path) -> None:
    """A pseudonym is another one if other captures are shared with it."""
    one, two = (save(tmp_path / f"{name}.sqlite", *talk(plugins(), catalog(), report(), certname=name, after=after))
                for name, after in (("one.example", 0), ("two.example", 900)))  # fmt: skip
    tables = TableDirectory.create(tmp_path / "tables")
    assert not next(conversion.convert_all([two], tables, "closed", closed=True)).converted.unchanged
    with pytest.raises(InspectorError, match="1 capture that is not named here"):
        list(conversion.convert_all([one], tables, "closed", closed=True))
    results = list(conversion.convert_all([one, two], tables, "closed", closed=True))
    assert [result.converted.unchanged for result in results] == [False, False]
    names = asked(tables, "SELECT DISTINCT capture, certname FROM runs ORDER BY 2")
    assert len({capture for capture, _ in names}) == len({name for _, name in names}) == 2
    bad = tmp_path / "bad.sqlite"
    bad.write_bytes(b"SQLite format 3\0")
    *done, failed = conversion.convert_all([one, two, bad], tables, "closed", closed=True)
    assert [result.converted.unchanged for result in done] == [True, True]
    assert isinstance(failed.error, CaptureError)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_real_names_and_pseudonyms_are_not_mixed(tmp_path: Path, closed: bool) -> None:
    path = save(tmp_path / "a.sqlite", *talk(plugins()))
    tables = TableDirectory.create(tmp_path / "tables")
    list(conversion.convert_all([path], tables, SITE, closed=closed))
    with pytest.raises(InspectorError, match="closed"):
        list(conversion.convert_all([path], tables, SITE, closed=not closed))
    if closed:
        with pytest.raises(InspectorError, match="closed"):
            list(analysis.analyse([path], tables, SITE))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_in_a_capture_it_is_converted_or_refused(tmp_path: Path, seed: int) -> None:
    from tests.support import mutants

    chance = random.Random(seed)  # noqa: S311 - it need not be secret
    path = save(tmp_path / "a.sqlite", *talk(plugins(), catalog(), report()))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        for seq, data in database.execute("SELECT seq, data FROM record").fetchall():
            text = data if isinstance(data, str) else None
            if text is not None and chance.randrange(2):
                changed = mutants.json_changed(chance, text.encode())
                database.execute("UPDATE record SET data = ? WHERE seq = ?", (changed.decode("utf-8", "replace"), seq))
    tables = TableDirectory.create(tmp_path / "tables")
    (found,) = conversion.convert_all([path], tables, SITE)
    if found.error is None:
        assert len(asked(tables, "SELECT seq FROM exchanges")) <= 3
    assert list(tables.root.glob(".work-*")) == []


@pytest.mark.slow
def test_a_masters_logs_divide_the_time_of_requests(tmp_path: Path) -> None:
    sample = next(path for path in SAMPLED if path.stem == "first-run")
    catalog_request = next(each for each in answered(records_of(sample)) if "/catalog/" in each.request.target)
    log = write(tmp_path / "access.log", [access_line(catalog_request)])
    tables = TableDirectory.create(tmp_path / "tables")
    done = conversion.convert(sample, tables, SITE, logs=MasterLogs([log]))
    assert done.notes[0].startswith("Access log: 1 of ")
    (row,) = asked(tables, "SELECT queue, compile, serve, waited FROM exchanges WHERE compile > 0")
    assert row[1] > 0
    assert sum(value or 0.0 for value in row[:3]) <= row[3] + 1e-6
    assert asked(tables, "SELECT count(*) FROM exchanges WHERE compile IS NULL") != [(0,)]
    before = asked(tables, "SELECT seq, queue, compile, serve FROM exchanges ORDER BY 1")
    later = MasterLogs([write(tmp_path / "later.log", [])])
    for site, more in (("rome", later), ("oslo", MasterLogs()), ("paris", MasterLogs())):
        assert not conversion.convert(sample, tables, site, logs=more).unchanged
        assert asked(tables, "SELECT seq, queue, compile, serve FROM exchanges ORDER BY 1") == before
        tables.compact("9999-01-01")
    with pytest.raises(InspectorError, match="Cannot read"):
        list(conversion.convert_all([sample], tables, SITE, logs=MasterLogs([tmp_path / "mistyped.log"])))
    other = next(path for path in SAMPLED if path.stem == "revoked")
    assert conversion.convert(other, tables, SITE, logs=MasterLogs([log])).records == 3, "it is about another capture"


def test_tables_have_no_secret_in_any_column(tmp_path: Path) -> None:
    source = random.Random(7)  # noqa: S311 - nothing to protect
    cores = {form: core(source) for form in FORMS}
    records: list[Record] = []
    for (form, how), place in zip(FORMS.items(), itertools.cycle(RECORDED), strict=False):
        records += RECORDED[place](how(cores[form]))
    for form in ("SetEnv", "Tomcat", "element", "old Vault's batch", "short name pass"):  # as names, cut, and quoted
        for place in ("form", "title", "event", "error", "plain error", "web page"):
            records += RECORDED[place](FORMS[form](cores[form]))
    secrets = list(cores.values())
    assert found(secrets, everything(records)) == secrets, "else the search would prove nothing"
    tables = of_records(tmp_path, records)
    rows = (str(row) for table in TABLES for row in asked(tables, f'SELECT * FROM "{table}"'))
    left = found(secrets, "\n".join(rows).encode())
    assert left == []
