"""The command line: exit status, text output, and JSON that matches its schema."""

from __future__ import annotations

import errno
import json
import re
import shlex
import shutil
import signal
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.cli import commands
from inspector.cli import main as cli
from inspector.model import Exchange, Gap, Handshake, Identity, Leg, OpenRequest, Request, Response
from inspector.summaries import wording
from tests.support import places
from tests.support.captures import recording, save
from tests.support.conversations import SIGNED, START, WAITS, Agent, certificate, together
from tests.support.json_output import strict, valid
from tests.support.text_tables import cells

if TYPE_CHECKING:
    from tests.conftest import Run

SCHEMAS = places.SCHEMAS


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return save(tmp_path / "healthy.sqlite", *together(Agent().run(), Agent("b.example", "192.0.2.2").run("u-b")))


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Everything a record can be: 1-8 a bootstrap with a wrong key, then handshakes, oddities and a gap."""
    first = Agent().ca().crl().csr().poll().csr(status=400, text=WAITS).issued().run()
    second = Agent(owner="other", time=first.time + 9).ca().crl().csr(status=400, text=SIGNED).issued("a.example")
    third = Agent("c.example", "192.0.2.3", time=second.time + 9).refused("revoked", own=True)
    third.ask("GET", "/favicon.ico\xe4", status=404, body=b"\xff\x00").catalog(status=None)
    leg = Leg("m", "master", "192.0.2.9", 8140, 1.0, 2.0, START, "TLSv1.3", "X", "puppet", "h2", True,
              (certificate("m", "m"), b"no DER"), (certificate("c.example", "c.example"),))  # fmt: skip
    last = Exchange(Leg("x", "agent"), Request(), Response(status=204), leg, Identity("keys", "c.example"),
                    stripped=("X-Client-DN",))  # fmt: skip
    refused = Handshake(leg, third.time + 1, "handshake failure")
    return save(tmp_path / "mixed.sqlite", *together(first, second, third), refused, last,
                Gap(third.time + 2, "the disk is full", 2))  # fmt: skip


# -- runs ----------------------------------------------------------------------------------------------


def test_runs_is_a_plain_table_in_a_pipe(run: Run, healthy: Path) -> None:
    status, out, err = run("runs", healthy)
    titles, *rows, last = out.splitlines()
    assert (status, err) == (0, "")
    assert titles.split() == [*wording.RUN_COLUMNS]
    assert last == f"no findings: {healthy}"
    assert [(row[0], row[2], row[3], row[4], row[5], row[8]) for row in cells(titles, rows)] == [
        ("1", "a.example", "7.23.0", "production", "complete", ""),
        ("2", "b.example", "7.23.0", "production", "complete", ""),
    ]
    assert "\x1b" not in out


def test_what_only_reads_takes_directories_and_names_the_captures(run: Run, healthy: Path, mixed: Path) -> None:
    folder = healthy.parent
    assert folder == mixed.parent
    names = {path.name for path in folder.glob("*.sqlite")}
    for command in ("runs", "list"):
        status, out, _ = run(command, folder)
        assert status == 0
        assert {line.split()[0] for line in out.splitlines() if line.split()[0].endswith(".sqlite")} == names
        rows = json.loads(run(command, folder, "--json")[1])
        assert {Path(row["capture"]).name for row in rows} == names
    assert run("runs", folder)[1].splitlines()[-1].endswith(f": puppet-inspector check {folder}"), "as it was given"
    assert run("check", folder)[1:] == run("check", *sorted(folder.glob("*.sqlite"), key=paths.written))[1:]


def test_without_a_capture_it_is_the_newest(run: Run, mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mixed.parent / "captures").mkdir()
    shutil.copy(mixed, mixed.parent / "captures")
    monkeypatch.chdir(mixed.parent)
    for words in (("runs",), ("list",), ("check",), ("bootstrap",), ("show", "1")):
        named = [words[0], f"captures/{mixed.name}", *words[1:]]
        assert run(*words)[:2] == run(*named)[:2]


@pytest.mark.parametrize("command", ["runs", "list"])
def test_an_empty_filter_says_of_how_many(run: Run, mixed: Path, command: str) -> None:
    every = len(json.loads(run(command, mixed, "--json")[1]))
    what = {"runs": "runs", "list": "records"}[command]
    assert run(command, mixed, "--filter", "agent:nobody") == (
        0, f"Nothing matches the filter, of {every} {what} in {mixed}.\n", ""
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("rnus",), "There is no command 'rnus'.", "Did you mean `runs`?"),
        (("qqqq",), "There is no command 'qqqq'.", "`puppet-inspector --help` lists the commands."),
        (("runs", "--fitler", "x"), "`puppet-inspector runs` has no option --fitler.", "Did you mean `--filter`?"),
        (("runs", "--qq=1"), "`puppet-inspector runs` has no option --qq.", "lists them."),
        (("--bogus",), "`puppet-inspector` has no option --bogus.", "`puppet-inspector --help` lists them."),
        (("{folder}", "--run", "1"), "`puppet-inspector CAPTURE` has no option --run.", "`report`, `reduce`."),
        (("check", "--agent", "web1"), "`puppet-inspector check` has no option --agent.", "`replay`, `report`."),
        (("check", "--filter", "x"), "`puppet-inspector check` has no option --filter.", "`export`."),
        (("show", "x", "1", "2"), "`puppet-inspector show` does not take '2'.", "See `puppet-inspector show --help`."),
        (("show", "x.sqlite"), "The number of the record in x.sqlite is missing.", "puppet-inspector show x.sqlite 4"),
        (("show", "{folder}"), "The number of the record in", "4"),
        (("show", "4x"), "'4x' is not a record number.", "`puppet-inspector list` prints the numbers."),
        (("show", "4", "x.sqlite"), "'x.sqlite' is not a record number.", "puppet-inspector show x.sqlite 4"),
        (("show", "{folder}", "9" * 30), "is not a record number.", "`puppet-inspector list` prints the numbers."),
        (("captures", "vacuum", "{folder}"), "is a directory.", "`puppet-inspector captures` lists them."),
        (("runs", "{folder}"), "There is no capture in", "Captures are the files that end in .sqlite."),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_what_is_near(
    run: Run, tmp_path: Path, words: tuple[str, ...], message: str, hint: str
) -> None:
    status, out, err = run(*(word.replace("{folder}", str(tmp_path)) for word in words))
    assert (status, out) == (2, "")
    assert message in err.splitlines()[0]
    assert err.splitlines()[1].endswith(hint)


def test_runs_says_why_and_points_to_check(run: Run, mixed: Path) -> None:
    _, out, _ = run("runs", mixed)
    assert (
        "run 2: a.example has no certificate yet: B18 the CA has a certificate for this name, made for another" in out
    )
    assert "  fix: If the node was reinstalled or lost its ssldir:\n         1. On the CA, remove its" in out
    assert out.splitlines()[-1].endswith(f": puppet-inspector check {mixed}")


def test_what_is_under_way_stands_below_the_runs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite"
    agent = Agent(leg="1", time=time.time() - 20).node().plugins()
    other = Agent("b.example", "192.0.2.2", leg="1", time=agent.time, uuid="u-b").node().catalog(status=500)
    asked = OpenRequest("a.example-1", agent.time + 5, "POST", agent.url("catalog/a.example"))
    with recording(path, *together(agent, other), requests=(asked,), legs=("b.example-1",)):
        status, out, _ = run("runs", path)
        assert status == 0
        assert [line.split()[5] for line in out.splitlines()[1:3]] == ["open", "open"]
        assert re.search(r"^under way:\n  b\..*\n  a\.example waits for its catalog, \d+ s so far$", out, re.MULTILINE)
        assert re.search(r"^  b\.example is silent since it got no catalog, \d+ s$", out, re.MULTILINE)
        assert "did not finish" not in out
        assert "failed" not in out
        out = run("runs", path, "--filter", "agent:b*")[1]
        assert "b.example is silent" in out
        assert "a.example" not in out
        status, out, _ = run("doctor", path)
        assert status == 0
        assert out.startswith("2 nodes under way")
        assert "\nunder way:\n  b.example is silent" in out
    out = run("runs", path)[1]  # its proxy was killed
    assert "cut off" in out
    assert "\n  a.example waits for its catalog, " in out.partition("under way when the recording ended:")[2]


def test_runs_names_the_calls_where_there_is_no_run(run: Run, tmp_path: Path) -> None:
    agent = Agent(version="3.0")  # of which no header says that it is an agent
    agent.ask("GET", "/status/v1/simple/server", status=403, headers=(("User-Agent", "curl/7.88.1"),))
    path = save(tmp_path / "c.sqlite", *agent.records)
    assert run("runs", path)[1] == f"There are no runs in {path}: 1 request of curl/7.88.1, 1 answered 403.\n"


def test_runs_as_json_fits_the_schema(run: Run, mixed: Path) -> None:
    status, out, _ = run("runs", mixed, "--json")
    first, second, third = valid("runs", out)
    assert status == 0
    assert first["certname"] == "a.example"
    assert (first["outcome"], first["transaction_uuid"], first["dialect"]) == ("complete", "u-1", "v3")
    assert [phase["phase"] for phase in first["phases"]] == ["certificates", "plugins", "catalog", "files", "report"]
    assert first["seqs"] == list(range(1, 13))
    assert {"rule": "B17", "severity": "notice", "seq": 5} in first["findings"]
    assert (second["outcome"], third["outcome"], third["certname"]) == ("waiting", "refused", "c.example")


def test_a_capture_without_runs_says_so(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "c.sqlite", Gap(START, "x"))
    assert run("runs", path) == (0, f"There are no runs in {path}.\n", "")
    assert run("runs", path, "--json") == (0, "[]\n", "")


# -- show ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_record_can_be_shown_and_fits_the_schema(run: Run, mixed: Path) -> None:
    with Capture.open(mixed) as capture:
        last = capture.last
    shown = []
    for seq in range(1, last + 1):
        status, out, _ = run("show", mixed, seq, "--json")
        assert status == 0
        shown.append(valid("show", out))
        status, out, _ = run("show", mixed, seq)
        assert (status, out.split()[0]) == (0, str(seq))
    assert [record["seq"] for record in shown] == list(range(1, last + 1))
    assert {record["kind"] for record in shown} == {"exchange", "handshake", "gap"}
    assert [record["run"] for record in shown[:16]] == [1] * 12 + [2] * 4


def test_show_gives_headers_lengths_documents_and_findings(run: Run, mixed: Path) -> None:
    _, out, _ = run("show", mixed, 5, "--json")
    shown = strict(out)
    assert (shown["endpoint"], shown["phase"]) == ("certificate_request", "certificates")
    assert shown["certname"] == "a.example"
    assert ["X-Puppet-Version", "7.23.0"] in shown["request"]["headers"]
    assert shown["request"]["document"]["common_name"] == "a.example"
    assert shown["response"]["document"] == {
        "kind": "ErrorDocument",
        "message": f"a.example {WAITS}; ignoring certificate request",
        "issue_kind": None,
        "stacktrace": False,
    }
    assert [finding["rule"] for finding in shown["findings"]] == ["B17"]


@pytest.mark.parametrize(
    ("media", "body", "kind"),
    [
        ("application/x-msgpack", b"\x81\xa7message\xcb\x7f\xf8\0\0\0\0\0\0", "Data"),
        ("text/yaml", b"--- {a: .nan, b: .inf, 1: !binary AAEC, der: kept}", "Data"),
        ("application/json", b'{"path":"/x","type":"file"}', "FileMetadata"),
    ],
)
def test_any_document_is_shown_as_json(run: Run, tmp_path: Path, media: str, body: bytes, kind: str) -> None:
    target = "file_metadata/modules/m/f" if kind == "FileMetadata" else "tasks"
    agent = Agent().ask("GET", f"/puppet/v3/{target}", body=body, media=media, own=True)
    status, out, _ = run("show", save(tmp_path / "c.sqlite", *together(agent)), 1, "--json")
    assert status == 0
    document = valid("show", out)["response"]["document"]
    assert document["kind"] == kind
    assert kind != "FileMetadata" or document["type"] == "file"
    assert kind != "Data" or media != "text/yaml" or document["value"]["der"] == "kept"


def test_hostile_text_breaks_no_output(run: Run, tmp_path: Path) -> None:
    form = b"transaction_uuid=%FF%1B[2J&environment=%FE&facts=%7B%22name%22%3A%22%FF%22%7D&facts_format=pson"
    agent = Agent("\x1b[2J")
    agent.ask("POST", "/puppet/v3/catalog/%FF%1B", sent=form, sends="application/x-www-form-urlencoded", status=500)
    path = save(tmp_path / "c.sqlite", *together(agent))
    for argv in (["runs", path], ["check", path], ["show", path, 1]):
        status, out, _ = run(*argv)
        assert (status, "\x1b" in out) == (int(argv[0] == "check"), False)
        assert valid(str(argv[0]), run(*argv, "--json")[1]) is not None


# -- check ---------------------------------------------------------------------------------------------


def test_check_says_what_where_why_and_what_to_do(run: Run, mixed: Path) -> None:
    status, out, _ = run("check", mixed)
    assert status == 1
    lead, every, _, verdict, fix = out.splitlines()[:5]
    assert lead.startswith("2 nodes failing, 7 errors, 1 warning, 1 notice; 2 other requests, 1 answered 404")
    assert every.startswith("7 errors, ")
    assert verdict.startswith("run 2: a.example has no certificate yet: B18 ")
    assert fix.startswith("  fix: If the node was reinstalled")
    severities = [line.split()[0] for line in out.splitlines() if line.split()[:1] and line[0].isupper()]
    assert severities == sorted(severities, key=["ERROR", "WARNING", "NOTICE"].index)
    assert "  fix:    " in out
    # A command stands on one line, however long: it is there to be copied.
    assert sum(line.strip() == "puppetserver ca clean --certname a.example" for line in out.splitlines()) == 1
    assert "  fix:    above, for run 2" in out


@pytest.mark.parametrize(
    ("limit", "status"), [("error", 0), ("warning", 1), ("notice", 1), ("never", 0)], ids=lambda value: str(value)
)
def test_check_fails_on_what_it_was_told_to(run: Run, tmp_path: Path, limit: str, status: int) -> None:
    path = save(tmp_path / "c.sqlite", *together(Agent(version="5.5.22").old_bootstrap(1).run()))
    assert run("check", path, "--fail-on", limit)[0] == status


def test_check_of_healthy_captures_is_quiet(run: Run, healthy: Path) -> None:
    status, out, err = run("check", healthy, healthy, "--fail-on", "notice")
    assert (status, out.splitlines()[-1], err) == (0, "no deviations from the protocol", "")


def test_check_as_json_fits_the_schema_and_counts(run: Run, mixed: Path, healthy: Path) -> None:
    status, out, _ = run("check", mixed, healthy, "--json")
    document = valid("check", out)
    assert status == 1
    for severity, number in document["counts"].items():
        assert number == sum(finding["severity"] == severity for finding in document["findings"])
    assert {"B01", "B02", "B17", "B18", "B20", "B22", "B23", "T05", "T16", "T28"} == {
        finding["rule"] for finding in document["findings"]
    }
    (apart,) = [finding for finding in document["findings"] if finding["rule"] == "T16"]
    assert apart["run"] is None, "the request is part of no run"
    twice = strict(run("check", mixed, mixed, "--json")[1])
    assert twice["counts"]["error"] == 2 * document["counts"]["error"]


# -- the rest ------------------------------------------------------------------------------------------


def test_import_makes_a_capture_and_says_how_much(run: Run, tmp_path: Path) -> None:
    from mitmproxy.io import FlowWriter
    from mitmproxy.test import tflow

    flows, target = tmp_path / "x.mitm", tmp_path / "x.sqlite"
    with flows.open("wb") as file:
        for _ in range(3):
            FlowWriter(file).add(tflow.tflow(resp=True))  # type: ignore[no-untyped-call]
    assert run("import", flows, "-o", target) == (0, f"3 exchanges imported into {target}\n", "")
    status, out, _ = run("import", flows, "-o", tmp_path / "y.sqlite", "--json")
    assert (status, strict(out)) == (
        0, {"capture": str(tmp_path / "y.sqlite"), "exchanges": 3, "handshakes": 0, "gaps": 0}
    )  # fmt: skip
    with flows.open("rb+") as file:
        file.truncate(flows.stat().st_size - 10)
    status, out, err = run("import", flows, "-o", tmp_path / "z.sqlite")
    assert (status, out) == (2, f"2 exchanges imported into {tmp_path / 'z.sqlite'}\n")
    assert "is cut off or damaged after 2 records" in err
    with Capture.open(tmp_path / "z.sqlite") as capture:
        assert capture.last == 2


def test_the_help_of_every_command_ends_with_an_example_that_parses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in commands.COMMANDS:
        status, out, _ = run(*name.split(), "--help")
        program, *words = shlex.split(out.splitlines()[-1].removeprefix("example: "))
        assert (name, status) == (name, 0)
        if name == "addon":
            assert program == "mitmdump"
        else:
            named, rest = commands.name_of(words)
            assert (program, named) == ("puppet-inspector", name)
            assert commands.parser_of(name).parse_args(rest).function


def test_addon_and_help(run: Run) -> None:
    status, out, _ = run("addon")
    assert (status, Path(out.strip()).name, Path(out.strip()).is_file()) == (0, "puppet.py", True)
    assert strict(run("addon", "--json")[1]) == {"addon": out.strip()}
    status, out, _ = run("--help")
    for command in ("demo", "run", "runs", "show", "check", "export", "import", "provision", "addon"):
        assert re.search(rf"^  {command}\b", out, re.MULTILINE)


def test_what_ignores_a_signal_goes_on_ignoring_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """``nohup`` ignores SIGHUP, and a script's shell Ctrl-C of what is in the background."""
    during: list[object] = []

    def look(*_: object) -> int:
        during.extend(map(signal.getsignal, cli.SIGNALS))
        return 0

    monkeypatch.setattr("inspector.cli.addon.execute", look)
    signals = (signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in signals]
    try:
        assert run("addon") == (0, "", "")
        assert [during[0], during[2]] == [signal.SIG_IGN, signal.SIG_IGN]
        assert callable(during[1])
        assert [signal.getsignal(number) for number in signals] == [signal.SIG_IGN] * 2
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "/x\x1b[2J"), "Cannot use /x\\x1b[2J: Permission denied."),
        (OSError(errno.EIO, "Input/output error"), "Cannot write the output: Input/output error."),
        (sqlite3.OperationalError("disk I/O error"), "A capture cannot be read or written: disk I/O error."),
    ],
)
def test_what_nobody_expected_is_one_sentence_too(
    error: Exception, sentence: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("inspector.cli.addon.execute", fail)
    status, out, err = run("addon")
    assert (status, out) == (2, "")
    first, second = err.splitlines()
    assert first == f"puppet-inspector: {sentence}"
    assert second.startswith("  ")


def test_a_word_that_is_not_utf_8_is_a_mistake_only_where_it_is_needed_as_text(run: Run, healthy: Path) -> None:
    for words in (("--ignore", "\udcff"), ("--volatile", "\udcff*")):
        status, _, err = run("diff", f"{healthy}:1", f"{healthy}:1", *words)
        assert (status, "is not UTF-8." in err) == (2, True), err
    assert "not UTF-8" not in run("explain", "Connection refused \udcff")[2]
