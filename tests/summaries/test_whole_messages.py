"""The whole message behind a finding: from the evidence, masked, cleaned, bounded."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Handshake
from inspector.privacy.names import MASK
from inspector.runs.examples import catalog, plugins, refused, report, talk
from inspector.summaries import whole_messages
from tests.support.captures import save
from tests.support.conversations import runs_of
from tests.support.json_output import strict, valid

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.runs.examples import ExamplePart
    from tests.conftest import Run

PLACE = "(file: /etc/puppetlabs/code/site.pp, line: 3)"
LONG = f"Evaluation Error: {' and '.join(f'class number {at}' for at in range(900))} {PLACE}"


def of_last(*parts: ExamplePart) -> str | None:
    return whole_messages.of_record(talk(*parts)[-1])


def log(*messages: str) -> ExamplePart:
    return report(result="failed", logs=[{"level": "err", "source": "Puppet", "message": text} for text in messages])


def failed(folder: Path) -> Path:
    return save(folder / "failed.sqlite", *talk(plugins(), catalog(status=500, text=LONG), report(result="failed")))


def test_a_refusal_is_whole_up_to_a_limit() -> None:
    text = of_last(catalog(status=500, text=LONG))
    assert text == LONG
    text = of_last(catalog(status=500, text="x" * 30_000))
    assert text is not None
    assert len(text) == whole_messages.LONGEST


def test_a_reports_errors_are_whole_with_their_traces() -> None:
    text = of_last(log("could not apply\n  at line 1\n  at line 2", "and another"))
    assert text == "Puppet: could not apply\n  at line 1\n  at line 2\nPuppet: and another"
    text = of_last(log(*("y" * 15_000 for _ in range(5))))
    assert text is not None
    assert len(text) == whole_messages.LONGEST


def test_of_a_failed_handshake_it_is_the_reason() -> None:
    (record,) = talk(refused())
    assert isinstance(record, Handshake)
    text = whole_messages.of_record(dataclasses.replace(record, reason="unknown ca \x1b[2J"))
    assert text == "unknown ca \\x1b[2J"


def test_without_a_message_there_is_none() -> None:
    assert of_last(catalog()) is None


def test_control_characters_are_cleaned_line_by_line() -> None:
    text = of_last(catalog(status=500, text="one\x1b]0;x\x07\ntwo\u202e"))
    assert text == "one\\x1b]0;x\\x07\ntwo\\x202e"


def test_secrets_are_masked_as_in_findings() -> None:
    rows: list[str] = ["hunter-2-hunter", "hunter-2-hunter\nand the next line"]
    for lines in rows:
        secret = {"__ptype": "Sensitive", "__pvalue": lines}
        status = {"File[/x]": {"failed": True, "events": [{"status": "failure", "desired_value": secret}]}}
        records = talk(report(result="failed", resource_statuses=status, logs=[
            {"level": "err", "source": "Puppet", "message": "could not set hunter-2-hunter on it"},
        ]))  # fmt: skip
        text = whole_messages.of_record(records[-1])
        assert text == f"Puppet: could not set {MASK} on it", lines


def test_the_evidence_of_a_cause_leads_to_it(tmp_path: Path) -> None:
    path = failed(tmp_path)
    with Capture.open(path) as capture:
        (run,) = runs_of(capture.records())
        cause = next(finding for finding in run.findings if finding.rule == "S01")
        assert LONG not in cause.message
        assert whole_messages.of_finding(cause, capture) == LONG
        assert whole_messages.of_finding(None, capture) is None


def test_if_the_last_record_of_the_evidence_has_no_message_an_earlier_one_may(tmp_path: Path) -> None:
    with Capture.open(failed(tmp_path)) as capture:
        records = list(capture.records())
        (run,) = runs_of(records)
        cause = next(finding for finding in run.findings if finding.rule == "S01")
        last = records[-1].seq
        assert whole_messages.of_record(records[-1]) is None
        both = dataclasses.replace(cause, seqs=(*cause.seqs, last))
        assert whole_messages.of_finding(both, capture) == LONG


@pytest.mark.parametrize("command", ["doctor", "check", "runs"])
def test_it_is_one_flag_away(run: Run, tmp_path: Path, command: str) -> None:
    path = failed(tmp_path)
    _, short, _ = run(command, path)
    _, full, _ = run(command, path, "--full")
    assert (LONG in short, full.count(LONG)) == (False, 1)
    _, out, _ = run(command, path, "--json")
    assert "message_whole" not in out
    _, out, _ = run(command, path, "--json", "--full")
    valid(command, out)
    assert LONG in str(strict(out))
