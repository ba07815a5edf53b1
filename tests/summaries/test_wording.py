"""Words for people: what a line says, and that captured bytes do nothing to a terminal."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.model import (
    Exchange,
    Finding,
    Gap,
    Identity,
    Record,
    Severity,
)
from inspector.rules.fixes import on_node
from inspector.runs.examples import altered, ca, carried, catalog, csr, issued, made, plugins, report, talk, unanswered
from inspector.runs.run import Run
from inspector.summaries import conclusions, summary, wording
from inspector.text import WIDTH, clean, counts, seconds, short, size, utc
from tests.support.briefs import why
from tests.support.conversations import START, Agent, analyzed, runs_of, steps, together
from tests.support.hostile import HOSTILE, harmless, hostile_records


def lines(*records: Record) -> list[str]:
    return [wording.line(summary.brief_of(step), step.run) for step in steps(Analyzer(), records)]


@given(st.text(st.characters(codec=None)))
@example(HOSTILE)
@example("\ud800\udfff")
def test_cleaned_text_is_harmless(text: str) -> None:
    assert harmless(clean(text))
    assert clean(text).encode().decode() == clean(text)


def test_ordinary_text_is_left_alone() -> None:
    assert clean("ä €漢 file.rb?x=1") == "ä €漢 file.rb?x=1"
    assert clean("\x1b[2J\u2028") == "\\x1b[2J\\x2028"


def test_nothing_captured_reaches_the_terminal_as_it_was() -> None:
    analyzer = Analyzer()
    taken = list(steps(analyzer, hostile_records()))
    runs = analyzer.finish()
    assert runs
    finding = Finding("B01", Severity.ERROR, HOSTILE, (1,))
    texts = [wording.line(summary.brief_of(step), step.run) for step in taken]
    texts += [cell for step in taken for cell in wording.row(summary.brief_of(step), step.run)]
    texts += [
        line
        for step in taken
        for width in (30, 90, 150)
        for line in wording.lines(summary.brief_of(step), step.run, width)
    ]
    for run in runs:
        run.findings.append(finding)
        facts = run.snapshot()
        texts += [wording.summary(facts), *wording.run_row(facts), why(run) or ""]
        texts += wording.finding(finding, conclusions.of_run(run))
        run.findings.clear()
        texts += [why(run) or ""]
    assert [text for text in texts if not harmless(text)] == []
    assert sum("\\x1b[2J" in text for text in texts) > 10


CLOCK = r"\d\d:\d\d:\d\d\.\d{3}"


def test_a_line_says_who_what_and_what_came_of_it() -> None:
    output = lines(*together(Agent(leg="1").ca().csr(status=400, text="already has a requested certificate").catalog()))
    assert re.fullmatch(
        CLOCK + r"  192\.0\.2\.1            certificates GET  certificate/ca {33} 200 +\d\.\d kB    50 ms  B01",
        output[0],
    )
    assert re.fullmatch(
        CLOCK + r"  a\.example +certificates PUT  certificate_request/~ +400 +\d+ B +50 ms  B17", output[1]
    )
    assert re.fullmatch(CLOCK + r"  a\.example +catalog +POST catalog/~ +200 +\d+ B +50 ms", output[2])


def test_a_line_says_why_something_is_missing() -> None:
    exchange = together(Agent(leg="1").catalog(status=None))[0]
    assert isinstance(exchange, Exchange)
    credentials = dataclasses.replace(exchange, identity=Identity("keys", None, "there is no key for a.example"),
                               stripped=("X-Client-DN",))  # fmt: skip
    (output,) = lines(credentials)
    assert output.endswith(
        " none         -    10 ms  T16  no answer: the master closed the connection  sent without the agent's "
        "identity: there is no key for a.example  removed before forwarding: X-Client-DN"
    )


def test_a_failed_handshake_and_a_gap_are_lines_too() -> None:
    output = lines(
        *together(Agent().refused("The CRL issued by 'CN=CA' has expired")), Gap(START, "the disk is full", 3)
    )
    assert output[0].endswith(
        "192.0.2.1            TLS refused: The CRL issued by 'CN=CA' has expired (alert unknown_ca from the agent)  T08"
    )
    assert output[1].endswith("  -- gap: the disk is full (3 lost)")


def test_a_runs_summary() -> None:
    (run,) = analyzed(Agent().bootstrap(1).run()).runs
    assert wording.summary(run.snapshot()) == (
        "== run 1 of a.example (7.23.0): complete in 1.1 s; certificates 6 plugins 3 catalog 1 files 1 report 1; "
        "2 notices: B01 B17"
    )
    assert wording.summary(Run(None).snapshot()) == "== run ? of an unnamed agent: unfinished in 0 ms; "
    assert wording.run_row(run.snapshot())[2:6] == ("a.example", "7.23.0", "production", "complete")


WHYS = [
    (Agent().refused("revoked", own=True), "T05 the certificate of a.example (serial 0x"),
    (
        Agent(leg="1").plugins().catalog(status=403),
        "S02 catalog was refused with 403, requested with the certificate of a.example",
    ),
    (Agent().csr().poll(), "the certificate request is waiting to be signed"),
    (Agent(leg="1").catalog(status=500), "S01 no catalog for a.example: nothing"),
    (Agent(leg="1").catalog(status=None), "T28 no answer to catalog: the master closed the connection"),
    (Agent(leg="1").catalog().report("failed"), "the report says failed"),
    (Agent(leg="1").catalog().report(status=415), "the master did not accept the report (415)"),
    (Agent(leg="1").catalog(), "the run ended without a report"),
    (Agent(leg="1").catalog().report(), None),
]


def test_a_quoted_sentence_has_no_stop_before_the_time() -> None:
    (run,) = runs_of(talk(unanswered(catalog(), "Client disconnected.")))
    verdict = conclusions.of_run(run).verdict
    assert verdict
    assert "Client disconnected, since 2" in verdict.message


@pytest.mark.parametrize(("agent", "words"), WHYS)
def test_why_a_run_did_not_end_well(agent: Agent, words: str | None) -> None:
    (run,) = analyzed(agent).runs
    reason = why(run)
    assert reason == words or (reason and words and reason.startswith(words))


def test_an_error_in_a_run_is_why() -> None:
    (run,) = analyzed(Agent().ca().crl(status=404)).runs
    assert why(run) == "B08 the master has no CRL: the agent stops with 'CRL is missing from the server'"


def test_a_path_is_shown_without_what_every_line_repeats() -> None:
    rows: list[tuple[str, str | None, str]] = [
        ("/puppet/v3/catalog/a.example?environment=x", "a.example", "catalog/~"),
        ("/puppet-ca/v1/certificate/a.example", None, "certificate/a.example"),
        ("/production/certificate/ca?", "a.example", "/production/certificate/ca"),
        ("/puppet/v3/file_content/modules/" + "x" * 60, None, "file_content/modules/x" + "…" + "x" * 23),
    ]
    for target, name, expected in rows:
        assert short(target, name) == expected, target
        assert len(short(target, name)) <= WIDTH, target


def test_numbers_for_people() -> None:
    assert [size(n) for n in (0, 999, 1000, 27_123, 1_400_000)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "27.1 kB",
        "1.4 MB",
    ]
    assert [seconds(n) for n in (0.0124, 2.06, 200)] == ["12 ms", "2.1 s", "3 min 20 s"]
    assert utc(0) == "1970-01-01T00:00:00.000Z"
    findings = [Finding("X", severity, "") for severity in (Severity.NOTICE, Severity.ERROR, Severity.ERROR)]
    assert counts(findings) == "2 errors, 1 notice"


def test_that_the_certificate_is_refused_is_guessed_only_where_connections_were_closed() -> None:
    rows: list[tuple[str, str]] = [
        ("server closed connection", "T28 the master closed every connection without an answer: most often because"),
        ("no buffer space available", "no request was answered: no buffer space available"),
    ]
    for error, words in rows:
        parts = [unanswered(part, error) for part in (plugins(), report())]
        (run,) = runs_of(talk(*(altered(part, leg={"peer_chain": carried(made())}) for part in parts)))
        assert (why(run) or "").startswith(words), error


def test_a_legacy_agent_that_stops_before_it_verifies_is_asked_what_it_trusts() -> None:
    """It sends no alert and no report: only its host can say why."""
    (run,) = runs_of(talk(ca(), csr(), issued(), version="3.8.7"))
    result = conclusions.of_run(run)
    assert result.verdict is not None
    assert result.steps[0].command == (
        "openssl s_client -connect puppet.example:8140 -verify_hostname puppet.example -CAfile "
        '"$(puppet config print localcacert)" </dev/null'
    )


# -- lines for a terminal ------------------------------------------------------------------------------

PATH = "file_content/modules/profile/a/directory/of/some/depth/file.conf"


def fitted(target: str, width: int) -> list[str]:
    agent = Agent().ask("GET", f"/puppet/v3/{target}", own=True)
    (step,) = steps(Analyzer(), together(agent))
    return wording.lines(summary.brief_of(step), step.run, width)


def test_an_exchange_takes_one_line_in_brief_where_there_is_no_room_and_two_where_that_is_not_enough() -> None:
    assert [len(fitted("catalog/x", width)) for width in (200, 120, 95, 73, 60)] == [1, 1, 1, 1, 2]
    (line,) = fitted("catalog/x", 73)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  a\.example           200    \d+ ms  GET  catalog/x +T04", line)
    assert len(line) == 73
    first, second = fitted("catalog/x", 60)
    assert re.fullmatch(rf"{CLOCK}  a\.example            catalog      GET", first)
    assert re.match(r"  catalog/x +200 +\d+ B +\d+ ms", second)


def test_a_line_in_brief_has_what_decides_before_the_path() -> None:
    agent = Agent("database-server-17.example").ask("GET", f"/puppet/v3/{PATH}", own=True, status=404)
    agent.catalog(status=None)
    printed = []
    for step in steps(Analyzer(), together(agent)):
        brief = summary.brief_of(step)
        brief.signs = tuple(summary.Sign(f"X{number:02}", Severity.ERROR) for number in range(9))
        (line,) = wording.lines(brief, step.run, 73)
        printed.append(line[10:])
    assert printed == [
        "database-server…    404    50 ms  GET  file_…le.conf  X00 X01 …",
        "database-server…   none    10 ms  POST catalog/~  X00 X01 …  n…",
    ]


@pytest.mark.parametrize("width", range(40, 180, 9))
def test_why_a_handshake_failed_is_not_cut(width: int) -> None:
    reason = "certificate revoked by the CA of the other site (serial 4711)"
    (step,) = steps(Analyzer(), together(Agent().refused(reason)))
    printed = wording.lines(summary.brief_of(step), step.run, width)
    assert max(map(len, printed)) <= width
    assert f" TLS refused: {reason} (alert unknown_ca from the agent)" in " ".join(map(str.strip, printed))


@pytest.mark.parametrize("width", [73, 90, 113, 140])
def test_columns_line_up_whatever_the_path(width: int) -> None:
    found = [fitted(path, width) for path in ("catalog/x", "certificate_revocation_list/ca", PATH)]
    assert {len(lines) for lines in found} == {1}
    for column in (r" 200 ", r" ms  ", r"T04$"):
        places = {match.start() for (line,) in found if (match := re.search(column, line))}
        assert len(places) == 1, column


@pytest.mark.parametrize("width", range(40, 180, 9))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    found = fitted(PATH, width)
    assert max(map(len, found)) <= max(width, len(PATH) + 2)
    assert PATH in "".join(found) or any("…" in line for line in found)


def test_a_path_is_only_cut_where_there_is_no_room() -> None:
    assert PATH in fitted(PATH, 170)[0]
    assert "…" in fitted(PATH, 110)[0]
    assert "content/modules/x/y.conf" in fitted("file_content/modules/x/y.conf", 66)[1], "on a line of its own"
    columns = {line.index(" 200 ") for path in ("catalog/x", "report/x") for line in fitted(path, 170)}
    assert len(columns) == 1, "they are aligned"


def test_a_long_command_begins_further_left_rather_than_being_broken() -> None:
    command = "puppet config print certname node_name_value node_name_fact --section agent"
    steps = (on_node("look at the settings", command), on_node("see that it worked", "puppet agent -t"))
    assert wording.Labelled("  fix: ", steps).lines(80) == [
        "  fix: 1. On the node, look at the settings:",
        f"  {command}",
        "       2. On the node, see that it worked:",
        "            puppet agent -t",
    ]


def test_what_flows_is_indented_below_its_beginning_and_keeps_commands_whole() -> None:
    text = f"  {'word ' * 8}`puppet agent -t --noop`"
    assert wording.flowing(text, None) == [text]
    assert wording.flowing(text, 200) == [text]
    assert wording.flowing(text, 30) == [
        "  word word word word word",
        "      word word word",
        "      `puppet agent -t --noop`",
    ]
