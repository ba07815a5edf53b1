"""What an agent knew at each moment of its run."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import retrace
from inspector.explain.agent_state import UNSEEN, known
from inspector.protocol import documents as d
from inspector.runs import examples as s
from inspector.runs.run import Run
from inspector.summaries import wording
from inspector.text import clean
from tests.support import places
from tests.support.conversations import SIGNED
from tests.support.recorded import records_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Record

SAMPLES = places.SAMPLES


def states(records: Iterable[Record]) -> list[dict[str, str]]:
    """What was known after each record."""
    return [dict(known(step.run)) for step in retrace(records) if step.run]


def recorded(name: str) -> list[dict[str, str]]:
    """What was known after each record of a sample."""
    return states(records_of(SAMPLES / f"{name}.sqlite"))


def test_before_the_first_record_nothing_was_observed() -> None:
    assert {words for _, words in known(Run(None))} == {UNSEEN}


def test_a_first_run_learns_one_thing_after_the_other() -> None:
    steps = recorded("first-run")
    grown = [[label for label, words in step.items() if words != UNSEEN] for step in steps]
    assert grown[0] == ["CA"]
    assert grown[1] == ["CA", "CRL"]
    assert grown[2] == ["CA", "CRL", "key", "CSR"]
    assert grown[3] == ["CA", "CRL", "key", "CSR", "certificate"]
    assert all({*before} <= {*after} for before, after in pairwise(grown))
    last = steps[-1]
    assert last["CA"] == "downloaded: 2 certificates; server not verified"
    assert last["CRL"].startswith("downloaded: CN=Puppet CA: puppet.example, until 20")
    assert last["CSR"] == "sent, accepted"
    assert last["certificate"].startswith("issued by CN=Puppet CA: puppet.example, serial ")
    assert last["certificate"].endswith(", and shows it")
    assert last["environment"] == "production"
    assert last["plugins"] == "listed pluginfacts, plugins; 2 files fetched"
    assert "(record 11)" in last["facts"]
    assert last["catalog"] == "got it, for production"
    assert last["files"] == "5 sources requested (1 not found); 5 files fetched"
    assert last["report"] == "sent (changed), accepted"


def test_an_agent_that_waits_has_no_certificate_yet() -> None:
    steps = recorded("bootstrap-waiting")
    assert steps[3]["certificate"] == "requested 1 time: not signed yet"
    assert steps[7]["certificate"] == "requested 3 times: not signed yet"
    assert steps[7]["CSR"].startswith("sent 3 times, accepted; the last time 400 ")
    assert steps[9]["certificate"].startswith("issued by ")
    assert "shows it" not in steps[9]["certificate"]


def test_a_certificate_for_another_key_is_reported_as_one() -> None:
    last = recorded("mismatched-key")[-1]
    assert last["certificate"].endswith("but for another key than the agent's")
    assert last["CSR"].startswith("sent, not accepted: 400 ")


def test_a_request_that_was_sent_again_after_it_was_signed_is_normal() -> None:
    again = s.csr(status=400, text=SIGNED)
    own = states(s.talk(s.ca(), s.crl(), s.csr(), s.not_issued(), again, s.issued()))
    assert all("normal" not in step["CSR"] for step in own[:4])
    assert all(step["CSR"].endswith(f"(normal: {wording.SENT_AGAIN})") for step in own[4:])
    later = states(s.talk(s.ca(), s.crl(), again, s.issued()))
    assert ["normal" in step["CSR"] for step in later] == [False, False, False, True]
    others = states(s.talk(s.ca(), s.crl(), s.csr(), s.not_issued(), again, s.issued(key="other")))
    assert "normal" not in others[-1]["CSR"]
    another = states(s.talk(s.ca(), s.crl(), s.csr(), s.csr(key="other", status=400, text=SIGNED)))
    assert "normal" not in another[-1]["CSR"]


def test_an_agent_that_needs_none_had_a_ca_and_a_certificate() -> None:
    last = recorded("out-of-sync")[0]
    assert last["CA"] == "already had one: did not request it"
    assert last["certificate"] == "already had one, and presents it"
    assert last["CRL"] == UNSEEN


def test_refused_handshakes_are_what_it_knows() -> None:
    steps = recorded("revoked")
    assert steps[0]["TLS"].startswith("refused: Certificate 'CN=node2.example'")
    assert steps[2]["TLS"].startswith("3 refused, most recently: ")
    assert steps[2]["TLS"].endswith("(alert certificate_revoked from the proxy)")


def test_no_catalog_is_reported_with_the_masters_words() -> None:
    last = recorded("compile-error")[-1]
    assert last["catalog"].startswith("requested, not received: 500 ")
    assert last["report"] == "sent (failed), accepted"


def test_the_format_of_facts_and_the_version_of_a_catalog_are_shown_if_they_are_given() -> None:
    run, asked, got = None, None, None
    for step in retrace(records_of(SAMPLES / "first-run.sqlite")):
        run = step.run
        if isinstance(step.request, d.CatalogRequest) and isinstance(step.response, d.Catalog):
            asked, got = step.request, step.response
    assert run is not None
    assert asked is not None
    assert got is not None
    words = dict(known(run, asked, got))
    assert f" as {asked.facts_format}: " in words["facts"]
    assert f"version {got.version}, for production" in words["catalog"]
    assert "version" not in dict(known(run))["catalog"]


def test_an_agent_before_6_keeps_one_certificate_of_a_bundle() -> None:
    assert "uses only the first" in states(s.talk(s.ca(), version="5.5.22"))[-1]["CA"]
    assert "uses only the first" not in states(s.talk(s.ca(), version="7.34.0"))[-1]["CA"]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (s.ca(refresh=True, status=304), "already had one; the master has none newer"),
        (s.ca(refresh=True), "already had one, then downloaded: "),
        (s.ca(status=404), "requested, not received: 404"),
        (s.bundle(body=b"nonsense"), "requested, not received: it cannot be read"),
        (s.unanswered(s.ca()), "requested, not received: no answer"),
    ],
)
def test_what_became_of_a_download(part: s.ExamplePart, words: str) -> None:
    assert states(s.talk(part, certificate=False))[-1]["CA"].startswith(words)


def test_an_environment_that_was_changed_is_shown_as_both() -> None:
    steps = states(s.talk(s.plugins(), s.plugins(environment="staging")))
    assert steps[0]["environment"] == "production"
    assert steps[-1]["environment"] == "requested production, uses staging"


def test_a_report_that_was_not_taken() -> None:
    assert states(s.talk(s.catalog(), s.report(status=500)))[-1]["report"] == "sent (unchanged), not accepted: 500"


def test_captured_words_are_cleaned() -> None:
    run = Run(None)
    run.environment = "[bold]x[/] \x1b[2J \u202e"
    words = dict(known(run))["environment"]
    assert clean(words) == words
    assert "[bold]x[/]" in words
