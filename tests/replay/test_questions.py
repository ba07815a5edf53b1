"""What decides an answer, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.model import Request
from inspector.replay import questions

if TYPE_CHECKING:
    from inspector.replay.questions import Question

V3 = "/puppet/v3"


def asked(method: str, target: str, body: bytes = b"", media: str = "") -> Question | None:
    return questions.question_of(
        Request((("Content-Type", media),) if media else (), body, method=method, target=target)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/node/a.example?environment=e&transaction_uuid=1", "/node/a.example?transaction_uuid=2&environment=e"),
        ("/node/a.example?environment=e&configured_environment=x", "/node/a.example?environment=e&fail_on_404=true"),
        ("/file_metadatas/plugins?recurse=true&max_files=-1", "/file_metadatas/plugins?recurse=true"),
        ("/file_content/modules/a%20b?environment=e", "/file_content/modules/a b?environment=e&"),
        ("/file_metadatas/m?recurse=true&ignore=a&ignore=b", "/file_metadatas/m?ignore=b&ignore=a&recurse=true"),
    ],
)  # fmt: skip
def test_questions_that_mean_the_same(one: str, other: str) -> None:
    assert asked("GET", V3 + one) == asked("GET", V3 + other) is not None


def test_both_dialects_ask_the_same() -> None:
    assert asked("GET", "/e/file_metadata/modules/m/a?links=manage") == asked(
        "GET", f"{V3}/file_metadata/modules/m/a?links=manage&environment=e"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{V3}/file_metadata/m/a?environment=e", f"{V3}/file_metadata/m/a?environment=f"),
        (f"{V3}/file_metadata/m/a?links=manage", f"{V3}/file_metadata/m/a?links=follow"),
        (f"{V3}/file_metadatas/plugins?recurse=true", f"{V3}/file_metadatas/plugins?recurse=false"),
        (f"{V3}/file_metadata/m/a?checksum_type=md5", f"{V3}/file_metadata/m/a?checksum_type=sha256"),
        (f"{V3}/node/a.example?environment=e", f"{V3}/node/b.example?environment=e"),
        (f"{V3}/static_file_content/m/a?code_id=1", f"{V3}/static_file_content/m/a?code_id=2"),
    ],
)
def test_questions_that_differ(one: str, other: str) -> None:
    assert asked("GET", one) != asked("GET", other)


def test_facts_do_not_decide_a_catalog_but_the_environment_does() -> None:
    form = "application/x-www-form-urlencoded"
    one = asked("POST", f"{V3}/catalog/a?environment=e", b"facts=1&transaction_uuid=1", form)
    assert one == asked("POST", f"{V3}/catalog/a?environment=e", b"facts=2&checksum_type=md5", form)
    assert one != asked("POST", f"{V3}/catalog/a?environment=f", b"facts=1", form)


def test_a_long_find_is_sent_as_post_with_its_parameters_in_a_form() -> None:
    form = "application/x-www-form-urlencoded"
    sent = asked("POST", f"{V3}/file_metadata/m/a?environment=e", b"links=manage&environment=e", form)
    assert sent == asked("GET", f"{V3}/file_metadata/m/a?links=manage&environment=e")
    assert asked("POST", f"{V3}/file_metadata/m/a", b"links=manage" * 10_000, form) != sent


def test_a_report_means_the_same_in_every_environment_and_a_backup_too() -> None:
    assert asked("PUT", f"{V3}/report/a?environment=e") == asked("PUT", f"{V3}/report/a?environment=f")
    bucket = f"{V3}/file_bucket_file/sha256/{'0' * 64}//etc/a?environment="
    assert asked("HEAD", bucket + "e") == asked("HEAD", bucket + "f") != asked("PUT", bucket + "e")


def test_what_is_no_request_of_puppet_is_no_question() -> None:
    assert asked("GET", "/favicon.ico") is None


def question(target: str, method: str = "GET") -> Question:
    found = asked(method, target)
    assert found is not None
    return found


RECORDED = [
    question(f"{V3}/file_metadata/modules/web/a.conf?links=manage&environment=production"),
    question(f"{V3}/file_metadata/modules/db/b.conf?links=manage&environment=production"),
    question(f"{V3}/file_content/modules/web/a.conf?environment=production"),
    question(f"{V3}/node/a.example?environment=production"),
]


@pytest.mark.parametrize(
    ("target", "at", "difference"),
    [
        ("file_metadata/modules/web/a.conf?links=manage&environment=staging", 0,
         "environment staging instead of production"),
        ("file_metadata/modules/web/a.conf?links=follow&environment=production", 0,
         "parameters links=follow instead of links=manage"),
        ("file_metadata/modules/db/c.conf?links=manage&environment=production", 1,
         "modules/db/c.conf instead of modules/db/b.conf"),
        ("file_content/modules/web/a.conf", 2, "environment none instead of production"),
        ("node/b.example?environment=production", 3, "b.example instead of a.example"),
        ("file_metadatas/modules/web?environment=production", 2, "the run has no request of the kind file_metadatas"),
    ],
)  # fmt: skip
def test_the_closest_and_what_differs(target: str, at: int, difference: str) -> None:
    one = question(f"{V3}/{target}")
    found = questions.closest(one, RECORDED)
    assert found == RECORDED[at]
    assert questions.differences(one, found) == [difference]


def test_nothing_is_close_to_nothing() -> None:
    assert questions.closest(RECORDED[0], []) is None


def test_a_question_in_words() -> None:
    assert str(RECORDED[3]) == "GET node a.example in production"
    assert str(question(f"{V3}/report/a", "PUT")) == "PUT report a"
    assert len(str(question(f"{V3}/file_content/{'x' * 5000}"))) < 300
