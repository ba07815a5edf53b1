"""Which run is replayed, and what of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.model import Exchange, Leg, Request, Response
from inspector.protocol.kinds import Kind
from inspector.replay import recording
from inspector.runs.examples import altered, asked, catalog, content, listing, plugins, report, talk, together
from tests.support.conversations import Agent
from tests.support.conversations import together as numbered
from tests.support.replays import of_records, of_sample

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from inspector.replay.recording import Recording
    from inspector.runs.examples import ExamplePart


def test_a_run_with_its_bootstrap(tmp_path: Path) -> None:
    recorded = of_sample(tmp_path, "bootstrap-waiting")
    assert (recorded.run, recorded.certname, recorded.environment) == (1, "node2.example", "production")
    assert recorded.count == 18
    assert [(signing.kind, signing.status) for signing in recorded.signings] == [
        (Kind.CSR, 200), (Kind.CERTIFICATE, 404), (Kind.CSR, 400), (Kind.CERTIFICATE, 404),
        (Kind.CSR, 400), (Kind.CERTIFICATE, 404), (Kind.CSR, 400), (Kind.CERTIFICATE, 200),
    ]  # fmt: skip
    assert recorded.signings[-2].body == b"node2.example already has a signed certificate; ignoring certificate request"
    assert not any(signing.foreign for signing in recorded.signings)
    assert (recorded.revoked, recorded.refusals, recorded.shared) == (False, 0, False)
    assert recorded.asked(Kind.NODE)
    assert len(recorded.plugins()) == 2


def test_the_certificate_of_another_key_is_known(tmp_path: Path) -> None:
    assert [signing.foreign for signing in of_sample(tmp_path, "mismatched-key").signings] == [False, True]


def test_a_revoked_certificate_is_known(tmp_path: Path) -> None:
    recorded = of_sample(tmp_path, "revoked")
    assert (recorded.revoked, recorded.refusals, recorded.count) == (True, 0, 0)


def test_other_refusals_are_counted(tmp_path: Path) -> None:
    agent = Agent().ca().refused("unable to get certificate CRL")
    recorded = of_records(tmp_path, *numbered(agent))
    assert (recorded.revoked, recorded.refusals) == (False, 1)


def test_the_latest_run_with_a_catalog_is_chosen(tmp_path: Path) -> None:
    assert of_sample(tmp_path, "out-of-sync").run == 2
    assert of_sample(tmp_path, "out-of-sync", 1).run == 1
    first = talk(plugins(), catalog(), report())
    second = talk(asked("file_metadatas/plugins", [], query="&recurse=true"), report(uuid="a-2"), after=4000)
    assert of_records(tmp_path, *together(first, second)).run == 1


def test_an_agent_is_chosen(tmp_path: Path) -> None:
    records = together(talk(plugins(), catalog(), report()), talk(catalog(), report(), certname="b.example", after=60))
    for name in ("B.example", "b*"):
        recorded = of_records(tmp_path, *records, agent=name)
        assert recorded.certname == "b.example"
        assert {question.subject for question in recorded.answers} == {"b.example"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has runs of 2 agents."),
        ({"agent": "*"}, "has runs of 2 agents that '*' means."),
        ({"run": 9}, "There is no run 9 of an agent in"),
        ({"agent": "c.example"}, "There is no run of 'c.example' in"),
        ({"agent": "c\x1b[2J"}, "There is no run of 'c\\\\x1b[2J' in"),
    ],
)
def test_a_run_that_is_not_there(tmp_path: Path, options: dict[str, str | int], message: str) -> None:
    records = together(talk(catalog(), report()), talk(catalog(), report(), certname="b.example", after=60))
    with pytest.raises(InspectorError) as raised:
        of_records(tmp_path, *records, **options)  # type: ignore[arg-type]
    assert message in raised.value.message
    assert "puppet-inspector runs" in raised.value.hint


def test_an_empty_capture(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="There is no run of an agent in"):
        of_records(tmp_path)


def test_a_name_that_no_agent_has(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="which is no certname"):
        of_records(tmp_path, *talk(catalog(), report(), certname="$(reboot)"))


def test_an_environment_that_there_cannot_be_is_left_out(tmp_path: Path) -> None:
    assert of_records(tmp_path, *talk(catalog(asks="a b;c"), report())).environment is None


# -- answers ---------------------------------------------------------------------------------------------------

LEG = Leg("1", "agent")


def exchange(response: Response | None, ended: float = 1.0) -> Exchange:
    return Exchange(LEG, Request(ended=ended), response, seq=7)


def test_an_answer_with_its_delay() -> None:
    found = recording.answer_of(exchange(Response(status=200, body=b"x", started=1.5)))
    assert (found.seq, found.delay, found.trouble) == (7, 0.5, "")
    assert found.response is not None


@pytest.mark.parametrize("started", [0.5, None, -math.inf, math.nan])
def test_a_delay_is_never_negative(started: float | None) -> None:
    assert recording.answer_of(exchange(Response(status=200, started=started))).delay == 0


def test_a_delay_is_never_longer_than_an_agent_waits() -> None:
    assert recording.answer_of(exchange(Response(status=200, started=1e12))).delay == recording.LONGEST


def test_no_answer_is_an_answer_too() -> None:
    found = recording.answer_of(exchange(None))
    assert (found.response, found.trouble) == (None, "")


def test_a_body_that_was_not_recorded() -> None:
    found = recording.answer_of(exchange(Response(status=200, body=b"xy", lost=5)))
    assert found.response is None
    assert found.trouble == "only 2 of its 7 bytes were recorded (puppet_keep_body)"


@pytest.mark.parametrize("status", recording.REDIRECTS)
def test_nobody_is_sent_elsewhere(status: int) -> None:
    found = recording.answer_of(exchange(Response((("Location", "https://other.example/"),), status=status)))
    assert (found.response, found.trouble) == (None, "it leads to another server")


# -- contents of files -----------------------------------------------------------------------------------------

FILE = b"content\n"


def run(tmp_path: Path, fetched: ExamplePart) -> Recording:
    """The second run lists a directory; a file in it was fetched in the first."""
    tree = listing("modules/m/tree", {"a.txt": FILE})
    first: list[Record] = talk(plugins(), catalog(), tree, fetched, report())
    second = talk(plugins(), catalog(uuid="a-2"), tree, report(uuid="a-2"), after=1000)
    return of_records(tmp_path, *together(first, second), run=2)


def test_a_content_with_the_listed_digest_is_taken(tmp_path: Path) -> None:
    recorded = run(tmp_path, content("modules/m/tree/a.txt", FILE))
    ((question, answer),) = recorded.borrowed.items()
    assert question.subject == "modules/m/tree/a.txt"
    assert question not in recorded.answers
    assert answer.response is not None
    assert answer.response.body == FILE


@pytest.mark.parametrize(
    "fetched",
    [
        content("modules/m/tree/a.txt", b"another version"),
        content("modules/m/tree/b.txt", FILE),
        altered(content("modules/m/tree/a.txt", FILE), response={"status": 404}),
        altered(content("modules/m/tree/a.txt", FILE), response={"lost": 3}),
        altered(content("modules/m/tree/a.txt", FILE), answers={"Content-Encoding": "gzip"}),
        asked("file_metadata/modules/m/tree/a.txt", []),
    ],
)  # fmt: skip
def test_nothing_else_is(tmp_path: Path, fetched: ExamplePart) -> None:
    assert run(tmp_path, fetched).borrowed == {}


def test_what_the_run_fetched_itself_is_its_own(tmp_path: Path) -> None:
    tree = listing("modules/m/tree", {"a.txt": FILE})
    records = talk(plugins(), catalog(), tree, content("modules/m/tree/a.txt", FILE), report())
    recorded = of_records(tmp_path, *records)
    assert recorded.borrowed == {}
    assert any(question.subject == "modules/m/tree/a.txt" for question in recorded.answers)
    assert all(isinstance(step.record, Exchange) for step in recorded.steps.values())
