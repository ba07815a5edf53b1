"""Records and runs in brief: which answers are failures, and the word for how a run ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from inspector.runs.examples import (
    asked,
    bucket,
    ca,
    catalog,
    content,
    crl,
    csr,
    issued,
    metadata,
    not_issued,
    plugins,
    refused,
    report,
    talk,
    unanswered,
)  # fmt: skip
from inspector.runs.snapshot import RunState
from inspector.summaries import listing, reading
from tests.support.captures import save
from tests.support.conversations import SIGNED
from tests.support.pages import sample

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.summaries.summary import RunBrief

ONE, OTHER = "modules/demo/a.conf", "modules/demo/b.conf"
WAITS = "already has a requested certificate"


def with_sources(*names: str) -> dict[str, object]:
    sources = [f"puppet:///{name}" for name in names]
    return {"type": "File", "title": "/etc/a.conf", "parameters": {"source": sources}}


def failures(folder: Path, *records: Record) -> list[tuple[str, int | None]]:
    """The failed ones of some records, each as its endpoint and status."""
    found = listing.listed(save(folder / "a.sqlite", *records))
    return [(brief.endpoint or brief.kind, brief.status) for brief, _ in found if brief.failed]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=WAITS), not_issued(), issued()), []),
        (talk(ca(), csr(status=400, text=SIGNED), issued()), []),
        (talk(ca(), csr(key="b", status=400, text=SIGNED), issued(key="a")), [("certificate_request", 400)]),
        (talk(ca(status=404)), [("ca", 404)]),
        (talk(ca(), crl(status=404)), [("crl", 404)]),
        (talk(ca(), crl(), csr(status=404)), [("certificate_request", 404)]),
        (talk(plugins(), catalog(), bucket(method="HEAD", status=404), bucket(), report()), []),
        (talk(plugins(), catalog(status=404, text="Not Found"), report()), [("catalog", 404)]),
        (talk(plugins(), catalog(resources=[with_sources(ONE, OTHER)]), metadata(ONE, status=404), metadata(OTHER),
              content(OTHER), report()), []),
        (talk(plugins(), catalog(resources=[with_sources(ONE)]), metadata(ONE, status=404), report(result="failed")),
         [("file_metadata", 404)]),
        (talk(asked("/puppet-ca/v1/certificate_status/a", status=404)), [("certificate_status", 404)]),
        (talk(unanswered(catalog())), [("catalog", None)]),
        (talk(refused("unknown_ca")), [("handshake", None)]),
    ],
)  # fmt: skip
def test_an_answer_that_healthy_runs_have_too_is_no_failure(
    tmp_path: Path, records: Sequence[Record], expected: list[tuple[str, int | None]]
) -> None:
    assert failures(tmp_path, *records) == expected


def of(name: str) -> RunBrief:
    (run,) = reading.read(sample(name)).briefs
    return run


@pytest.mark.parametrize(
    ("name", "outcome", "result"),
    [
        ("mismatched-key", "waiting", "failed"),
        ("revoked", "refused", "refused"),
        ("compile-error", "failed", "failed"),
        ("first-run", "complete", "complete"),
    ],
)
def test_a_run_has_one_word(name: str, outcome: str, result: str) -> None:
    run = of(name)
    assert (run.outcome, run.result, run.ending) == (outcome, result, result)


def test_who_only_waits_waits(tmp_path: Path) -> None:
    records = talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=WAITS), not_issued())
    (run,) = reading.read(save(tmp_path / "a.sqlite", *records)).briefs
    assert (run.outcome, run.result) == ("waiting", "waiting")


def test_a_run_of_which_nothing_can_be_said_yet_has_the_word_for_that() -> None:
    run = of("mismatched-key")
    assert msgspec.structs.replace(run, state=RunState.OPEN).ending == "failed"
    assert msgspec.structs.replace(run, state=RunState.OPEN, verdict=None).ending == "open"
    assert msgspec.structs.replace(run, state=RunState.CUT_OFF, verdict=None).ending == "cut off"


@pytest.mark.parametrize(("text", "found"), [("failed", 1), ("waiting", 1), ("refused", 0), ("complete,failed", 1)])
def test_a_filter_finds_a_run_by_its_word_and_by_its_outcome(text: str, found: int) -> None:
    assert len(reading.read(sample("mismatched-key"), f"outcome:{text}").runs) == found
