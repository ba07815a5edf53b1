"""Runs come apart as an administrator would tell them apart: issue 2, section 3."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.model import TO_PUPPETDB, Exchange, Gap, Phase, Record
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.runs.examples import (
    NAME,
    altered,
    asked,
    catalog,
    plugins,
    querying,
    refused,
    report,
    stored,
    talk,
    wait,
)  # fmt: skip
from inspector.runs.examples import together as run_together
from tests.support.conversations import SIGNED, START, WAITS, Agent, analyzed, numbered, runs_of, steps, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.runs.examples import ExamplePart
    from inspector.runs.snapshot import Outcome


def shape(*agents: Agent) -> list[tuple[str | None, str, int]]:
    """Each run's agent, outcome and number of records."""
    return [(run.certname, run.outcome, len(run.seqs)) for run in analyzed(*agents).runs]


def test_one_object_after_a_list_of_plugins_is_of_the_same_round() -> None:
    """An agent whose list was answered with an error, or redirected, may look up the directory itself."""
    digest = {"type": "ctime", "value": "{ctime}2026-01-01 00:00:00 +0000"}
    one = {"path": "/srv/facts.d", "relative_path": None, "links": "manage", "type": "directory", "checksum": digest}
    listed = asked("file_metadatas/pluginfacts", [], query="&recurse=true")
    redirected = altered(listed, response={"status": 302}, answers={"Location": "https://other.example:8140/x"})
    looked_up = asked("file_metadata/pluginfacts", one)
    for parts in ((redirected, listed, looked_up), (altered(listed, response={"status": 500}), looked_up)):
        analyzer = Analyzer()
        taken = [analyzer.feed(record) for record in talk(*parts, plugins(), catalog(), report())]
        (run,) = analyzer.finish()
        assert (run.outcome, len(run.seqs), run.command) == ("complete", len(taken), None)
        (step,) = (each for each in taken if each.match and each.match.endpoint.kind is Kind.PLUGIN_METADATA)
        assert isinstance(step.response, d.FileMetadata)
        assert step.phase is Phase.PLUGINS


# -- one run or two ------------------------------------------------------------------------------------


def test_a_bootstrap_with_its_polls_and_the_run_after_it_are_one_run() -> None:
    agent = Agent().bootstrap(polls=3).run()
    (run,) = analyzed(agent).runs
    assert (run.certname, run.outcome, run.dialect, run.agent_version) == ("a.example", "complete", "v3", "7.23.0")
    assert list(run.seqs) == list(range(1, len(agent.records) + 1))
    assert list(run.spans) == [Phase.CERTIFICATES, Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.REPORT]
    assert run.spans[Phase.CERTIFICATES].exchanges == 10
    assert run.transaction_uuid == "u-1"
    assert run.master_version == "7.9.0"


def test_polls_hours_apart_belong_to_one_bootstrap() -> None:
    agent = Agent().ca().crl().csr().poll()
    for _ in range(3):
        agent.wait(7200).csr(status=400, text=WAITS).poll()
    agent.wait(7200).csr(status=400, text=SIGNED).issued().run()
    assert shape(agent) == [("a.example", "complete", len(agent.records))]


def test_an_agent_whose_files_went_but_whose_key_stayed_goes_on_with_its_bootstrap() -> None:
    agent = Agent().ca().crl().csr().poll().wait(60).ca().crl().csr(status=400, text=WAITS).poll()
    analyzer = Analyzer()
    taken = list(steps(analyzer, together(agent)))
    (run,) = analyzer.finish()
    assert list(run.seqs) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [step.run.number for step in taken if step.run] == [1] * 8
    assert {step.run.certname for step in taken if step.run} == {"a.example"}


def test_another_key_is_another_run() -> None:
    first = Agent(owner="first").ca().crl().csr().poll()
    second = Agent(owner="second", time=first.time + 60).ca().crl().csr(status=400, text=WAITS).poll()
    assert shape(first, second) == [("a.example", "waiting", 4), ("a.example", "waiting", 4)]


def test_two_hosts_with_one_name_poll_at_the_same_time_and_stay_apart() -> None:
    first = Agent(owner="first", address="192.0.2.1").ca().crl().csr().poll()
    second = Agent(owner="second", address="192.0.2.2", time=first.time + 3)
    second.ca().crl().csr(status=400, text=WAITS).poll()
    first.wait(6).csr(status=400, text=WAITS).poll().wait(4).csr(status=400, text=SIGNED).issued().run()
    runs = analyzed(first, second).runs
    assert [(run.address, run.outcome, len(run.seqs)) for run in runs] == [
        ("192.0.2.1", "complete", 14),
        ("192.0.2.2", "waiting", 4),
    ]


def _failing(uuid: str | None) -> list[ExamplePart]:
    return [plugins(), catalog(status=400, text="no class", uuid=uuid), wait(1800)]


def test_an_old_agent_that_fails_again_and_again_makes_several_runs() -> None:
    """Without a report, which 2.7 does not send by default, nothing but the next request shows the end of a run."""
    for version, uuids in (("2.7.26", (None, None)), ("3.8.7", ("a-1", "a-2"))):
        records = talk(*(part for uuid in uuids for part in _failing(uuid)), version=version)
        assert [(list(run.seqs), run.outcome) for run in runs_of(records)] == [([1, 2], "failed"), ([3, 4], "failed")]


def test_an_old_agent_without_pluginsync_makes_several_runs() -> None:
    records = talk(catalog(uuid=None), wait(1800), catalog(uuid=None), version="2.7.26")
    assert [list(run.seqs) for run in runs_of(records)] == [[1], [2]]


def test_a_busy_master_is_asked_again_in_the_same_run() -> None:
    records = talk(plugins(), catalog(uuid=None, status=503), wait(5), catalog(uuid=None), version="2.7.26")
    assert [list(run.seqs) for run in runs_of(records)] == [[1, 2, 3]]


@pytest.mark.parametrize("part", [plugins, catalog, report], ids=["plugins", "catalog", "report"])
@pytest.mark.parametrize("leg", ["same", "another"])
@pytest.mark.parametrize(("version", "uuid"), [("3.8.7", "a-1"), ("7.23.0", "a-1")])
def test_a_redirected_request_and_its_repetition_are_one_run(
    part: Callable[..., ExamplePart], leg: str, version: str, uuid: str
) -> None:
    parts = {"plugins": plugins(), "catalog": catalog(uuid=uuid), "report": report(uuid=uuid)}
    name = part.__name__
    elsewhere = {"Location": "https://puppet.example:8140/other"}
    first = altered(part(status=302), answers=elsewhere)
    again = altered(parts[name], leg={"id": "another"}) if leg == "another" else parts[name]
    order = list(parts)
    records = talk(*(parts[one] for one in order[: order.index(name)]), first, again,
                   *(parts[one] for one in order[order.index(name) + 1 :]), version=version)  # fmt: skip
    (run,) = runs_of(records)
    assert (run.outcome, list(run.seqs)) == ("complete", [1, 2, 3, 4])


@pytest.mark.parametrize("uuid", ["u-2", None])
def test_after_a_report_comes_another_run(uuid: str | None) -> None:
    agent = Agent().bootstrap().run("u-1" if uuid else None)
    agent.wait(1800).run(uuid)
    assert [name for name, _, _ in shape(agent)] == ["a.example"] * 2
    assert [run.outcome for run in analyzed(agent).runs] == ["complete"] * 2


def test_a_daemons_runs_on_one_connection_are_distinguished() -> None:
    agent = Agent(leg="kept")
    for uuid in ("u-1", "u-2", "u-3"):
        agent.uuid = uuid
        agent.wait(3).plugins().catalog().file().report()
    assert [run.transaction_uuid for run in analyzed(agent).runs] == ["u-1", "u-2", "u-3"]
    assert [run.outcome for run in analyzed(agent).runs] == ["complete"] * 3


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("uuid", ["u-2", None])
def test_a_killed_agents_run_ends_where_the_next_begins(cut: int, uuid: str | None) -> None:
    killed = Agent().run("u-1" if uuid else None)
    del killed.records[cut:]
    runs = analyzed(killed, Agent(time=killed.time + 60).run(uuid)).runs
    assert [(run.outcome, len(run.seqs)) for run in runs] == [("unfinished", cut), ("complete", 6)]


def test_two_agents_behind_one_address_stay_apart() -> None:
    first, second = Agent("a.example").run("u-1"), Agent("b.example", time=START + 0.05).run("u-2")
    records = together(first, second)
    assert len(records) == 12
    assert shape(first, second) == [("a.example", "complete", 6), ("b.example", "complete", 6)]
    assert analyzed(first, second).runs[0].seqs.tolist() == [1, 3, 5, 7, 9, 11]


def test_a_report_without_a_name_ends_no_other_agents_bootstrap() -> None:
    """Of curl without a certificate, for example: nobody knows who it is, nor who began a bootstrap elsewhere."""
    fresh = Agent("a.example").ca().crl().wait(1).csr().look()
    tool = Agent("b.example", address="192.0.2.9", version="", time=START + 0.5).ask(
        "PUT", "/puppet/v3/report/b.example", status=403, headers=(("User-Agent", "curl/7.88.1"),)
    )
    found = shape(fresh, tool)
    assert ("a.example", "waiting", 4) in found


def test_an_agent_that_begins_while_another_sends_its_csr_is_another_one() -> None:
    """Its download of the CA ends first, so it is recorded first, as it was with two real agents on a busy host."""
    first = Agent("a.example").bootstrap().run("u-1")
    sent, csr = next(
        (place, record) for place, record in enumerate(first.records)
        if isinstance(record, Exchange) and "certificate_request" in record.request.target
    )  # fmt: skip
    assert csr.response
    first.records[sent] = dataclasses.replace(csr, response=dataclasses.replace(csr.response, ended=csr.time + 0.09))
    second = Agent("b.example", time=csr.time - 0.1 + 0.03).bootstrap().run("u-2")
    records = numbered(sorted([*first.records, *second.records], key=lambda record: record.ended))
    analyzer = Analyzer()
    for _ in steps(analyzer, records):
        pass
    analyzer.finish()
    found = [(run.certname, run.outcome, len(run.seqs)) for run in analyzer.runs]
    assert found == [("a.example", "complete", len(first.records)), ("b.example", "complete", len(second.records))]


def test_the_old_engines_double_download_of_the_ca_is_part_of_its_bootstrap() -> None:
    agent = Agent(version="3.8.7").old_bootstrap(polls=4).ca(own=True).run()
    (run,) = analyzed(agent).runs
    assert list(run.seqs) == list(range(1, len(agent.records) + 1))
    assert (run.dialect, run.outcome, run.agent_version, len(run.cas)) == ("legacy", "complete", "3.8.7", 3)


@pytest.mark.parametrize("version", ["2.7.26", "3.8.7", "5.5.22"])
def test_an_old_agent_that_gets_the_ca_again_was_started_again(version: str) -> None:
    first = Agent(version=version).ca().poll().look().csr().poll().ca().poll()
    first.wait(60).ca().poll().look(200).poll().ca().poll().wait(60).ca().poll().look(200).issued().run()
    runs = analyzed(first).runs
    assert [(run.outcome, len(run.seqs)) for run in runs[:2]] == [("waiting", 7), ("waiting", 6)]
    assert [run.number for run in runs] == [1, 2, 3]
    assert (runs[2].outcome, runs[2].seqs[0]) == ("complete", 14)


def test_an_old_agent_that_looks_for_an_accepted_request_was_started_again() -> None:
    """As 2.7.26 did when its copy of the request was deleted."""
    agent = Agent(version="2.7.26").ca().poll().look().csr().poll().poll()
    agent.wait(60).poll().look(200).poll().poll().wait(60).poll().look(200).issued()
    assert [list(run.seqs) for run in analyzed(agent).runs] == [list(range(1, 8)), [8, 9, 10, 11], [12, 13]]


@pytest.mark.parametrize("version", ["3.8.7", "5.5.22"])
def test_an_old_daemon_that_waits_or_starts_over_is_one_run(version: str) -> None:
    """It polls every ``waitforcert`` seconds; after a refused request it looks for it again, and sends it again."""
    waiting = Agent(version=version).ca().poll().look().csr().poll().ca().poll()
    for _ in range(5):
        waiting.wait(120).poll()
    refused = Agent("b.example", "192.0.2.2", version).ca().poll()
    for _ in range(3):
        refused.look().csr(status=400, text=WAITS).wait(120).poll()
    assert shape(waiting, refused) == [("a.example", "waiting", 12), ("b.example", "waiting", 11)]


def test_an_old_agents_neighbour_that_starts_does_not_split_its_waiting() -> None:
    waiting = Agent(version="3.8.7").ca().poll().look().csr().poll().ca().poll()
    neighbour = Agent("b.example", version="3.8.7", time=waiting.time + 60).ca().poll().look().csr().poll().ca().poll()
    waiting.wait(120).poll().wait(120).poll()
    assert shape(waiting, neighbour) == [("a.example", "waiting", 9), ("b.example", "waiting", 7)]


def test_following_another_environment_stays_in_the_run() -> None:
    agent = Agent(leg="1").plugins().catalog(environment="staging")
    agent.environment = "staging"
    agent.plugins().catalog().report()
    (run,) = analyzed(agent).runs
    assert (run.outcome, run.environment, len(run.catalogs)) == ("complete", "staging", 2)
    again = Agent(leg="1").plugins().catalog().wait(60).plugins().catalog().report()
    assert len(analyzed(again).runs) == 2


def test_an_environment_that_is_missing_is_checked_and_then_listed_again() -> None:
    agent = Agent(leg="1").listing("file_metadatas/plugins", "recurse=false", 404).catalog(environment="other")
    agent.environment = "other"
    assert len(analyzed(agent.plugins().catalog().report()).runs) == 1


def test_a_refresh_without_certificate_joins_the_run() -> None:
    agent = Agent().ca(refresh=True).crl(status=304, refresh=True).run()
    assert shape(agent) == [("a.example", "complete", 8)]


def test_what_a_tool_asks_is_no_run_and_is_not_lost() -> None:
    agent = Agent().probe().ask("GET", "/puppet-ca/v1/certificate_statuses/all", own=True).ask("GET", "/favicon.ico")
    analyzer = Analyzer()
    taken = list(steps(analyzer, together(agent)))
    assert analyzer.finish() == []
    assert [(step.phase, step.run.number if step.run else 0) for step in taken] == [(Phase.OTHER, None)] * 3
    assert all(step.run is not None for step in taken)


def test_a_probe_on_the_runs_connection_is_part_of_it() -> None:
    (run,) = analyzed(Agent(leg="1").probe().plugins().catalog().report()).runs
    assert (run.spans[Phase.OTHER].exchanges, run.outcome) == (1, "complete")


def test_a_connection_that_was_passed_on_unread_is_of_its_nodes_run() -> None:
    """It shows no certificate, and with `run` the host is known."""
    unread = refused(None, by=None, reason="closed", leg={"node": NAME, "tunnelled": True})
    first, *others = [step.run for step in steps(Analyzer(), talk(plugins(), catalog(), wait(30), unread))]
    assert first
    assert all(other is first for other in others)


def test_a_gap_belongs_to_no_agent() -> None:
    analyzer = Analyzer()
    step = analyzer.feed(Gap(START, "the disk is full", 3, seq=1))
    assert (step.run, step.phase, analyzer.finish()) == (None, Phase.OTHER, [])


# -- outcomes: the first that fits ---------------------------------------------------------------------

OUTCOMES: list[tuple[str, Outcome, Callable[[Agent], Agent]]] = [
    ("a handshake that the agent ended", "refused", lambda a: a.refused()),
    ("a certificate that the proxy refused", "refused", lambda a: a.refused("revoked", own=True)),
    ("a handshake in a bootstrap", "refused", lambda a: a.ca().crl().refused()),
    ("refused goes before waiting", "refused", lambda a: a.ca().crl().csr().poll().refused()),
    ("catalog denied", "refused", lambda a: a.plugins().catalog(status=403).report("failed")),
    ("report of the cached catalog, catalog denied", "complete",
     lambda a: a.plugins().catalog(status=403).report(cached="on_failure")),
    ("plugins denied, run went on", "complete", lambda a: a.plugins(403).catalog().report()),
    ("node denied, which a run does without", "complete", lambda a: a.node(403).plugins().catalog().report()),
    ("a handshake before the run went on", "complete", lambda a: a.refused(own=True).plugins().catalog().report()),
    ("a handshake after the catalog", "refused", lambda a: a.plugins().catalog().refused(own=True)),
    ("the request is not signed", "waiting", lambda a: a.ca().crl().csr().poll()),
    ("nobody answered the poll", "waiting", lambda a: a.ca().crl().csr()),
    ("the request was refused", "waiting", lambda a: a.ca().crl().csr(status=400, text=SIGNED).issued("other")),
    ("signed at last, and nothing more: `puppet ssl bootstrap`", "complete", lambda a: a.bootstrap(1)),
    ("no catalog", "failed", lambda a: a.plugins().catalog(status=500).report("failed")),
    ("no catalog and no report", "failed", lambda a: a.plugins().catalog(status=500)),
    ("no answer to the catalog request", "failed", lambda a: a.plugins().catalog(status=None)),
    ("catalog cut off", "failed", lambda a: a.plugins().catalog(body=b'{"name": "a').report()),
    ("an older catalog was used", "complete", lambda a: a.catalog(status=500).report(cached="on_failure")),
    ("no catalog was asked for", "complete", lambda a: a.file().report(cached="explicitly_requested")),
    ("resources failed", "failed", lambda a: a.plugins().catalog().report("failed")),
    ("a failed report that was refused", "failed", lambda a: a.plugins().catalog().report("failed", status=500)),
    ("second try", "complete", lambda a: a.plugins().catalog(status=503).catalog().report()),
    ("no report", "unfinished", lambda a: a.plugins().catalog().file()),
    ("report not taken", "unfinished", lambda a: a.plugins().catalog().report(status=415)),
    ("report not answered", "unfinished", lambda a: a.plugins().catalog().report(status=None)),
    ("changes", "complete", lambda a: a.plugins().catalog().report("changed")),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "script"), [row[1:] for row in OUTCOMES], ids=[row[0] for row in OUTCOMES])
def test_a_run_ends_as(outcome: Outcome, script: Callable[[Agent], Agent]) -> None:
    (run,) = analyzed(script(Agent(leg="1"))).runs
    assert run.outcome == outcome


# -- many at once --------------------------------------------------------------------------------------

SCRIPTS: list[Callable[[Agent], Agent]] = [
    lambda a: a.run(f"{a.certname}-1"),
    lambda a: a.bootstrap(polls=2).run(f"{a.certname}-1"),
    lambda a: a.ca(refresh=True).crl(status=304, refresh=True).run(f"{a.certname}-1"),
    lambda a: a.run(f"{a.certname}-1").run(f"{a.certname}-2"),
    lambda a: a.bootstrap().run(f"{a.certname}-1").run(f"{a.certname}-2"),
    lambda a: a.run(None),
    lambda a: a.csr(status=400, text=WAITS).poll(),
]


@st.composite
def crowds(draw: st.DrawFn, *, one_address: bool) -> list[tuple[int, Record]]:
    """Several agents' records in a random order that keeps each agent's own: (agent, record)."""
    queues: list[list[Record]] = []
    for number in range(draw(st.integers(2, 4))):
        address = "192.0.2.1" if one_address else f"192.0.2.{number}"
        agent = Agent(f"n{number}.example", address, draw(st.sampled_from(["7.23.0", "6.29.0", "8.10.0"])))
        queues.append(list(draw(st.sampled_from(SCRIPTS))(agent).records))
    order = draw(st.permutations([index for index, queue in enumerate(queues) for _ in queue]))
    result = [(index, queues[index].pop(0)) for index in order]
    records = numbered(_moved(record, START + 0.05 * place) for place, (_, record) in enumerate(result))
    return [(index, record) for (index, _), record in zip(result, records, strict=True)]


def _moved(record: Record, time: float) -> Record:
    assert isinstance(record, Exchange)
    response = record.response
    return dataclasses.replace(
        record,
        request=dataclasses.replace(record.request, started=time, ended=time + 0.001),
        response=dataclasses.replace(response, started=time + 0.01, ended=time + 0.02) if response else None,
    )


def expected(crowd: list[tuple[int, Record]]) -> list[list[int]]:
    """The runs as they were scripted: each agent's records, cut after each report."""
    runs: list[list[int]] = []
    for agent in {index for index, _ in crowd}:
        current: list[int] = []
        for index, record in crowd:
            if index != agent:
                continue
            current.append(record.seq)
            if isinstance(record, Exchange) and "/report/" in record.request.target:
                runs.append(current)
                current = []
        runs += [current] if current else []
    return sorted(runs)


def found(crowd: list[tuple[int, Record]]) -> list[list[int]]:
    return sorted(list(run.seqs) for run in runs_of([record for _, record in crowd]))


def test_a_neighbours_download_is_not_the_run_of_an_agent_that_is_applying() -> None:
    first = Agent("a.example", leg="1").plugins().catalog().wait(1)
    second = Agent("b.example", owner="b", time=first.time).ca().crl().wait(1)
    first.leg, first.time = "2", second.time
    first.report()
    second.time = first.time
    second.csr().issued()
    runs = analyzed(first, second).runs
    assert [(run.certname, run.cas.total, len(run.seqs)) for run in runs] == [("a.example", 0, 5), ("b.example", 1, 4)]


def test_a_neighbours_download_is_not_the_bootstrap_of_an_agent_that_was_just_signed() -> None:
    first = Agent("a.example").ca().crl().csr().issued()
    second = Agent("b.example", owner="b", time=first.time).ca().crl()
    first.time = second.time
    first.run()
    second.csr().issued()
    runs = analyzed(first, second).runs
    assert [(run.certname, run.cas.total) for run in runs] == [("a.example", 1), ("b.example", 1)]


def test_up_to_6_3_a_download_after_the_certificate_came_is_another_run() -> None:
    agent = Agent(version="3.8.7").ca().issued("other").wait(3)
    agent.ca().issued("other")
    assert shape(agent) == [("a.example", "unfinished", 2)] * 2


def test_a_run_silent_for_a_day_is_over() -> None:
    killed = Agent("a.example", leg="1").plugins().catalog()
    other = Agent("b.example", "192.0.2.2", time=killed.time + 86_500, leg="1").plugins()
    analyzer = Analyzer()
    over = [run.certname for step in steps(analyzer, together(killed, other)) for run in step.over]
    assert over == ["a.example"]


def test_a_proxy_that_forgets_what_it_reported_keeps_nothing_of_it() -> None:
    analyzer = Analyzer()
    numbers = []
    agent = Agent()
    for number in range(50):
        agent.wait(1800).run(f"u-{number}")
    for step in steps(analyzer, together(agent)):
        for run in step.over:
            numbers.append(run.number)
            analyzer.forget(run)
    assert numbers == list(range(1, 51))
    assert analyzer.finish() == []


def test_an_agent_that_nobody_signs_does_not_fill_the_memory() -> None:
    agent = Agent().ca().crl().csr()
    for _ in range(400):
        agent.wait(119).csr(status=400, text=WAITS).poll()
    (run,) = analyzed(agent).runs
    assert (run.csrs.total, run.certificates.total, run.anonymous.total) == (401, 400, 803)
    assert len(run.csrs) == len(run.certificates) == len(run.anonymous) == 200
    assert run.csrs[0].seq == 3
    assert run.csrs[-1].seq == run.certificates[-1].seq - 1
    (found,) = [finding for finding in run.findings if finding.rule == "B17"]
    assert len(found.seqs) == 100
    assert (found.seqs[0], found.seqs[-1]) == (4, run.csrs[-1].seq)


LONG = settings(max_examples=60)


@LONG
@given(crowds(one_address=False))
def test_interleaved_agents_come_apart_again(crowd: list[tuple[int, Record]]) -> None:
    assert found(crowd) == expected(crowd)


@pytest.mark.slow
@LONG
@given(crowds(one_address=True))
def test_behind_one_address_what_names_itself_comes_apart_again(crowd: list[tuple[int, Record]]) -> None:
    unnamed = {rec.seq for _, rec in crowd if isinstance(rec, Exchange) and rec.request.target.endswith("/ca")}
    named = [[seq for seq in run if seq not in unnamed] for run in found(crowd)]
    assert sorted(run for run in named if run) == sorted(
        run for run in ([seq for seq in run if seq not in unnamed] for run in expected(crowd)) if run
    )
    assert sorted(seq for run in found(crowd) for seq in run) == [record.seq for _, record in crowd]


@pytest.mark.parametrize(
    ("version", "retry_after", "times", "runs"),
    [
        ("9.0.0", "1", 2, 1),
        ("9.0.0", None, 2, 3),  # it is not sent again
        ("7.23.0", "1", 2, 3),  # it fails instead
        ("9.0.0", "0", 101, 2),  # it has given up
    ],
)
def test_a_report_that_is_to_be_sent_again_later_ends_no_run(
    version: str, retry_after: str | None, times: int, runs: int
) -> None:
    """As with OpenVox 9.0.0-rc1, which sent its report to a busy master a hundred times."""
    busy = altered(report(status=503), answers={"Retry-After": retry_after})
    talked = talk(plugins(), catalog(), *(busy for _ in range(times)), report(), version=version)
    assert len(runs_of(talked)) == runs


def test_a_request_that_was_given_up_before_its_body_came_is_no_call_of_its_own() -> None:
    error = "cannot connect to the master 192.0.2.9:8140: Connection refused"
    whole = [
        dataclasses.replace(
            record,
            error=error,
            agent=dataclasses.replace(record.agent, id=f"connection {record.seq}"),
            request=dataclasses.replace(record.request, body=b"", ended=record.time),
        )
        for record in talk(plugins(), catalog(uuid=None), report())
        if isinstance(record, Exchange)
    ]
    assert len(runs_of(whole)) == 2, "`puppet catalog download` sends no transaction_uuid"
    cut = [dataclasses.replace(record, request=dataclasses.replace(record.request, ended=None)) for record in whole]
    (run,) = runs_of(cut)
    assert list(run.seqs) == [record.seq for record in cut]


def test_a_masters_requests_to_puppetdb_are_no_part_of_its_own_run_and_are_over_at_once() -> None:
    own = talk(plugins(), catalog(), wait(3), report(), certname="puppet.example")
    calls = talk(stored(), querying(), stored("store_report"), certname="puppet.example", after=1.5)
    analyzer = Analyzer()
    taken = list(analyzer.steps(run_together(own, calls)))
    over = [run for step in taken for run in step.over]
    assert [(run.number, run.tool, run.records) for run in over] == [(None, TO_PUPPETDB, 1)] * 3 + [(1, None, 3)]
    assert analyzer.end() == []
