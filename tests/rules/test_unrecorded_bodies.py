"""Rules on bodies of which only the size, or the size and the beginning, was recorded."""

from __future__ import annotations

import pytest

from inspector.rules import rule_of
from inspector.rules.answer_cut_off import CLOSED
from inspector.rules.kit import *
from inspector.runs.examples import bundle
from tests.support.conversations import runs_of

FILE = "modules/demo/a"
LARGE = {"body": b"x" * 10, "lost": 19_999_990}
CUT = {"Content-Length": "20000000"}


def messages(rule: str, *parts: ExamplePart) -> list[str]:
    return [finding.message for run in runs_of(talk(*parts), [rule_of(rule)]) for finding in run.findings]


@pytest.mark.parametrize(
    ("rule", "part", "size"),
    [
        ("B16", altered(crl(), response=LARGE), "more than 5 MB"),
        ("F10", altered(listing("modules/demo/tree", {}), response=LARGE), "is 20.0 MB large"),
        ("F12", altered(bucket(b""), request=LARGE), "filebucket, 20 MB"),
        ("P04", altered(report(), request=LARGE), "is 20.0 MB large"),
    ],
)
def test_the_size_is_that_of_the_whole_body(rule: str, part: ExamplePart, size: str) -> None:
    (message,) = messages(rule, part)
    assert size in message


def test_a_backup_that_was_not_recorded_names_its_file() -> None:
    assert "a file" not in messages("F12", altered(bucket(b""), request=LARGE))[0]


def test_a_body_that_was_not_recorded_is_not_one_that_was_cut_off() -> None:
    answer = altered(content(FILE), response=LARGE, answers=CUT, error=CLOSED)
    assert messages("S14", plugins(), catalog(), answer) == []
    short = altered(content(FILE), response=LARGE | {"lost": 5}, answers=CUT, error=CLOSED)
    assert "before all 20000000 bytes arrived" in messages("S14", plugins(), catalog(), short)[0]


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("B05", altered(bundle(), response={"body": b"-----BEGIN CERT", "lost": 9})),
        ("B44", altered(csr(status=500, body=b"no"), request={"body": b"-----BEGIN CERT", "lost": 9})),
    ],
)
def test_what_was_not_recorded_is_not_called_damaged(rule: str, part: ExamplePart) -> None:
    assert messages(rule, ca(), part) == []
