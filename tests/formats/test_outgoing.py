"""What leaves a capture: nothing that is not known to be harmless, in any encoding."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis import limits
from inspector.capture.store import Capture
from inspector.formats import exporting, outgoing
from inspector.formats.outgoing import ALL, Content, Outgoing, summary
from inspector.formats.share import share
from inspector.model import Exchange, Handshake, Leg, Request
from inspector.privacy import redact
from inspector.runs.examples import catalog, content, report, talk
from tests.support.captures import save
from tests.support.conversations import runs_of
from tests.support.planted import ENCODINGS, PLACES, closed, core, everything, found, leaks, planted
from tests.support.recorded import SAMPLES, name_of, records_of
from tests.support.written import BROKEN, FORMS, RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.model import Record

QUICK = [
    encoding if encoding in ("raw", "base64") else pytest.param(encoding, marks=pytest.mark.slow)
    for encoding in ENCODINGS
]


@pytest.mark.parametrize("pseudonyms", [True, False], ids=["share", "export"])
def test_no_planted_secret_leaves(pseudonyms: bool) -> None:
    """A few hundred of some six thousand."""
    assert leaks(1, 0.02, pseudonyms=pseudonyms) == []


def test_no_planted_secret_is_in_the_files_that_leave(tmp_path: Path) -> None:
    """Their bytes, and what they have packed: a shared capture, and an export in each format."""
    secrets = [*planted(3, 0.005)]
    path = save(tmp_path / "own.sqlite", *(record for secret in secrets for record in secret.records))
    folder = tmp_path / "leaving"
    folder.mkdir()
    share(path, folder / "shared.sqlite")
    for kind in exporting.FORMATS:
        exporting.Chosen.by(path).write(kind, folder / kind)
    cores = [secret.core for secret in secrets]
    assert len(cores) > 15
    assert found(cores, path.read_bytes()), "else the search would prove nothing"
    for file in folder.iterdir():
        assert found(cores, file.read_bytes()) == [], file
    with Capture.open(folder / "shared.sqlite") as capture:
        assert found(cores, everything(capture.records())) == []


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_no_form_leaves_in_any_format_though_everything_is_opened(tmp_path: Path, every: int) -> None:
    """In paths and queries, and what findings quote of them, as in all else that ``--with all`` opens."""
    source, places, plants = random.Random(every), itertools.cycle(RECORDED), []  # noqa: S311 - nothing to protect
    for form, how in itertools.islice(FORMS.items(), 0, None, every):
        for place in ("path", "query", next(places)):
            if place == "path" and form in BROKEN:
                continue
            secret = core(source)
            plants.append((secret, {**RECORDED, "path": PLACES["path"]}[place](how(secret))))
    path = save(tmp_path / "own.sqlite", *(record for _, records in plants for record in records))
    folder = tmp_path / "leaving"
    folder.mkdir()
    share(path, folder / "shared.sqlite", opened=ALL)
    for kind in exporting.FORMATS:
        exporting.Chosen.by(path, opened=ALL).write(kind, folder / kind)
    secrets = [secret for secret, _ in plants]
    assert found(secrets, path.read_bytes()), "else the search would prove nothing"
    for file in folder.iterdir():
        assert found(secrets, file.read_bytes()) == [], file
    with Capture.open(folder / "shared.sqlite") as capture:
        assert found(secrets, everything(capture.records())) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("pseudonyms", [True, False], ids=["share", "export"])
def test_none_of_many_planted_secrets_leaves(pseudonyms: bool, seed: int) -> None:
    assert leaks(seed, 0.1, pseudonyms=pseudonyms) == []


def test_the_search_finds_what_is_planted() -> None:
    """Else the tests above would prove nothing."""
    for secret in planted(2, 0.02):
        if secret.place not in ("signing request", "certificate", "header's name", "method", "reason", "cookie"):
            assert found([secret.core], everything(secret.records)), secret[:3]


# -- what a record marks is secret in all of them ---------------------------------------------------------


def marked(secret: str) -> list[Record]:
    return talk(catalog(resources=[{
        "type": "User", "title": "app", "parameters": {"password": secret}, "sensitive_parameters": ["password"],
    }]))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("pseudonyms", [True, False], ids=["share", "export"])
@pytest.mark.parametrize("encoding", QUICK)
def test_what_is_marked_once_leaves_in_no_encoding_though_everything_else_does(encoding: str, pseudonyms: bool) -> None:
    """``--with all`` opens what is free, not what is secret."""
    secret = core(random.Random(encoding))  # noqa: S311 - nothing to protect
    for place, plant in PLACES.items():
        records = [*plant(ENCODINGS[encoding](f"the secret {secret}")), *marked(secret)]
        numbered = [dataclasses.replace(record, seq=number) for number, record in enumerate(records, 1)]
        outgoing = everything(closed(numbered, pseudonyms=pseudonyms, opened=ALL))
        assert not found([secret], outgoing), place


def test_a_challenge_password_and_a_cookie_are_secret_everywhere() -> None:
    challenge, cookie = "challenge-Xy77", "session-cookie-Zz88"
    records = [
        *PLACES["signing request"](challenge), *PLACES["cookie"](cookie),
        *PLACES["error"](f"{challenge} and a={cookie}"), *PLACES["log"](f"{challenge} {cookie}"),
    ]  # fmt: skip
    made = everything(closed(records, pseudonyms=False, opened=ALL))
    assert challenge.encode() not in made
    assert cookie.encode() not in made


def test_a_body_that_occurs_again_is_closed_and_counted_again() -> None:
    secret = "correct-Horse-77"
    parameters = {"message": "Xq7-parameter", "owner": secret}
    (record,) = talk(catalog(resources=[{"type": "Notify", "title": secret, "parameters": parameters}]))
    outgoing = Outgoing(pseudonyms=False, opened=ALL - {Content.PARAMETERS})
    outgoing.learn(lambda: [record])
    outgoing.leaving(record)
    first = outgoing.withheld[Content.PARAMETERS]
    outgoing.leaving(record)
    assert outgoing.withheld[Content.PARAMETERS] == 2 * first > 0
    outgoing = Outgoing(pseudonyms=False, opened=ALL)
    assert secret in str(outgoing.leaving(record))
    outgoing.learn(lambda: marked(secret))  # what left before this was not closed
    assert secret not in str(outgoing.leaving(record))


@pytest.mark.parametrize("pseudonyms", [True, False], ids=["share", "export"])
def test_a_target_that_occurs_again_leaves_the_same_and_is_counted_again(pseudonyms: bool) -> None:
    records = list(talk(content("modules/acme/zyxwvut"), content("modules/acme/zyxwvut")))
    leaving = Outgoing(pseudonyms=pseudonyms, salt=b"salt")
    leaving.learn(lambda: records)
    made, counts = [], []
    for each in records:
        before = leaving.withheld[Content.OTHER]
        new = leaving.leaving(each)
        assert isinstance(new, Exchange)
        made.append(new.request.target)
        counts.append(leaving.withheld[Content.OTHER] - before)
    assert made[0] == made[1]
    assert "zyxwvut" not in made[0]
    assert counts[0] == counts[1] > 0


def test_a_finding_at_a_runs_end_quotes_no_secret_of_another_record(tmp_path: Path) -> None:
    secret = "correct-Horse-77"
    failed = {"level": "err", "source": "Puppet", "message": f"Could not apply: wrong password {secret}"}
    status = {"resource": "Exec[x]", "failed": True, "events": [{"status": "failure", "message": f"wrong {secret}"}]}
    records = [*marked(secret), *talk(report(result="failed", logs=[failed], resource_statuses={"Exec[x]": status}))]
    path = tmp_path / "c.sqlite"
    with Capture.create(path) as capture:
        for record in records:
            capture.append(record)
    raw = "\n".join(exporting.Chosen.by(path, opened=None).lines("jsonl"))
    assert f"wrong {secret}" in raw
    for kind in ("jsonl", "har"):
        assert secret not in "\n".join(exporting.Chosen.by(path).lines(kind))


# -- what stays -------------------------------------------------------------------------------------------


def texts(opened: frozenset[Content], *, pseudonyms: bool = False) -> str:
    records = talk(
        catalog(facts={"rack": "Xq7-fact"}, resources=[
            {"type": "Notify", "title": "a", "parameters": {"message": "Xq7-parameter"}},
        ]),
        content("modules/a/b", b"Xq7-file"),
        report(logs=[{"level": "notice", "source": "Puppet", "message": "Xq7-log"}]),
    )  # fmt: skip
    return everything(closed(records, pseudonyms=pseudonyms, opened=opened)).decode("latin-1")


@pytest.mark.parametrize(("content_", "word"), [
    (Content.FACTS, "Xq7-fact"), (Content.PARAMETERS, "Xq7-parameter"), (Content.FILES, "Xq7-file"),
    (Content.LOGS, "Xq7-log"),
])  # fmt: skip
def test_what_is_opened_stays_and_nothing_else(content_: Content, word: str) -> None:
    for pseudonyms in (True, False):
        made = texts(frozenset({content_}), pseudonyms=pseudonyms)
        assert word in made
        assert made.count("Xq7") == made.count(word)
    assert "Xq7" not in texts(frozenset())
    assert set(re.findall(r"Xq7-\w+", texts(ALL))) == {"Xq7-fact", "Xq7-parameter", "Xq7-file", "Xq7-log"}


def test_an_export_keeps_the_texts_of_errors_and_names_and_a_shared_capture_does_not() -> None:
    message = "Could not find class ::wombat for node1.example"
    error = PLACES["error"]("x")[0]
    assert isinstance(error, Exchange)
    assert error.response
    response = dataclasses.replace(error.response, body=json.dumps({"message": message}).encode())
    records: list[Record] = [dataclasses.replace(error, response=response)]
    assert message.encode() in everything(closed(records, pseudonyms=False))
    shared = everything(closed(records, pseudonyms=True))
    assert b"wombat" not in shared
    assert b"Could not find class ::withheld-" in shared
    assert b"for agent1.example" in shared


def test_what_was_withheld_is_counted() -> None:
    outgoing = Outgoing(pseudonyms=False)
    records = talk(catalog(facts={"rack": "Xq7", "site": "Yq8"}), content("modules/a/b", b"Xq7"))
    outgoing.learn(lambda: records)
    for record in records:
        outgoing.record(record)
    assert outgoing.withheld[Content.FILES] == 1
    assert outgoing.withheld[Content.FACTS] == 2
    line = summary(outgoing.withheld)
    assert line.startswith("withheld: 2 values of facts, 1 content of a file,")
    assert "--with facts,files opens these kinds" in line
    assert summary(Outgoing(pseudonyms=True).withheld) == ""


def test_a_comment_and_a_tag_in_yaml_are_no_hiding_place() -> None:
    (record,) = PLACES["YAML"]("x")
    assert isinstance(record, Exchange)
    assert record.response
    body = b"--- !ruby/object:Puppet::Node # Xq7comment\nname: &Xq7anchor node1.example\nother: *Xq7anchor\n"
    records: list[Record] = [dataclasses.replace(record, response=dataclasses.replace(record.response, body=body))]
    made = everything(closed(records, pseudonyms=False))
    assert b"Xq7" not in made
    assert b"!ruby/object:Puppet::Node" in made
    assert b"name: &withheld-" in made


def test_what_no_agent_sends_does_not_stop_it() -> None:
    records: list[Record] = [
        Exchange(Leg("", "agent", peer_chain=(b"\x30\x03\x02", b"", b"\xff" * 50)), Request(target="\xff?%&=")),
        Handshake(Leg("", "master", own_chain=(b"0" * 70_000,)), 0.0, "\0"),
        Exchange(Leg("", "agent"), Request((("content-encoding", "gzip"),), b"\x1f\x8b broken", method="PUT")),
    ]
    for pseudonyms in (True, False):
        assert len(closed(records, pseudonyms=pseudonyms)) == 3


def test_a_large_number_in_a_format_that_is_not_known_is_withheld() -> None:
    body = json.dumps({"card": 4111111111111111, "port": 8140}).encode()
    request = Request((("Content-Type", "application/json"),), body, target="/other")
    (made,) = closed([Exchange(Leg("a", "agent"), request)], pseudonyms=False)
    assert isinstance(made, Exchange)
    assert json.loads(made.request.body)["port"] == 8140
    assert b"4111111111111111" not in made.request.body


@pytest.mark.slow
def test_secrets_that_take_too_long_to_learn_keep_their_record_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> set[str]:
        while True:
            time.time()

    monkeypatch.setattr(redact, "known", endless)
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    limits.arm()
    try:
        outgoing = Outgoing(pseudonyms=False)
        outgoing.learn(lambda: talk(catalog()))
    finally:
        limits._net.thread = None
    assert list(outgoing.unmasked.values()) == ["it took more than 0.3 s of CPU time"] * len(outgoing.unmasked)
    assert outgoing.unmasked


def test_names_of_tls_stay_and_what_stands_in_their_place_does_not() -> None:
    outgoing = Outgoing(pseudonyms=True)
    for version, alert in (("TLSv1.3", "certificate_revoked"), ("Xk29secret77", "qz81-hidden")):
        leg = Leg("a", "agent", tls_version=version)
        leaving = outgoing.leaving(Handshake(leg, 1.0, "refused", alert, "agent"))
        assert isinstance(leaving, Handshake)
        known = alert == "certificate_revoked"
        assert ((leaving.leg.tls_version, leaving.alert) == (version, alert)) is known
        assert known or not any(core in str(leaving) for core in ("Xk29", "qz81"))


def test_what_is_learned_counts_for_texts_that_left_before() -> None:
    outgoing = Outgoing(pseudonyms=True)
    text = "zeus refused hunter2-horse"
    leg = Leg("a", "agent")
    record = Exchange(leg, Request((("User-Agent", text),), b'{"zeus": "%s"}' % text.encode(), target=f"/{text}"))
    first = outgoing.leaving(record)
    outgoing.names.host("zeus.corp.com", "agent")
    outgoing.known.add("hunter2-horse")
    second = outgoing.leaving(record)
    assert isinstance(first, Exchange)
    assert isinstance(second, Exchange)
    for message in (second.request.header("user-agent"), second.request.target):
        assert "agent1" in (message or "")
        assert "MASKED" in (message or "")
    outgoing.harmless.identifier("refused")
    assert outgoing.sentence(text) == "agent1 refused MASKED"


def test_a_text_whose_name_was_learned_from_itself_is_not_remembered() -> None:
    outgoing = Outgoing(pseudonyms=True)
    outgoing.names.host("web1.corp.com", "agent")
    assert "host1.example" in outgoing.sentence("db7 db7.corp.com")
    assert outgoing.sentence("db7 db7.corp.com") == "host1 host1.example"


def test_what_is_remembered_is_short_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "_CACHED", 3)
    results = outgoing._Results()
    for number in range(10):
        results.add(("key", str(number)), (number, 0), 0)
        assert len(results._found) <= 3
    assert results.get(("key", "9")) == (9, 0)
    results.add(("key", "x" * 1000), (1, 0), 0)
    assert results.get(("key", "x" * 1000)) is None
    results.forget()
    results.add(("key", "late"), (1, 0), 0)  # found with what was known before
    assert results.get(("key", "9")) is results.get(("key", "late")) is None


def test_the_digests_of_equal_contents_are_learned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = []
    monkeypatch.setattr(Outgoing, "_digest", lambda _, *digests: learned.append(digests))
    for number in (1, 5):
        learned.clear()
        records = list(talk(*(content("modules/acme/a") for _ in range(number))))
        Outgoing(pseudonyms=True, salt=b"salt").learn(lambda records=records: records)  # type: ignore[misc]
        if number == 1:
            once = len(learned)
    assert len(learned) == once


# -- one record without the others --------------------------------------------------------------------------


@pytest.mark.parametrize("place", RECORDED)
def test_alone_a_record_reveals_no_secret_and_nothing_unknown(place: str) -> None:
    source = random.Random(place)  # noqa: S311 - nothing to protect
    forms = {"unknown": lambda core: f"nobody knows {core}", **dict(itertools.islice(FORMS.items(), 0, None, 9))}
    for form, how in forms.items():
        secret = core(source)
        left = [outgoing.alone(record, b"k" * 32) for record in RECORDED[place](how(secret))]
        assert not found([secret], everything(left)), form


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_alone_records_are_judged_as_together(sample: Path) -> None:
    records = list(records_of(sample))
    together = Outgoing(pseudonyms=False)
    together.learn(lambda: records)
    alone = [outgoing.alone(record, b"k" * 32) for record in records]
    assert judged(alone) == judged([together.record(record) for record in records])


def judged(records: Iterable[Any]) -> list[tuple[Any, ...]]:
    runs = runs_of(records)
    return [
        (run.outcome, tuple(run.spans), list(run.seqs), sorted((each.rule, each.seqs) for each in run.findings))
        for run in runs
    ]
