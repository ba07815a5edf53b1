"""Secrets in free text: whatever the form, they are masked everywhere, and other words stay."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING, Literal

import pytest

from inspector.capture.store import Capture
from inspector.model import Exchange, Gap
from inspector.privacy import patterns, redact, written
from inspector.privacy.names import MASK
from inspector.proxy import recorder
from inspector.proxy.recorder import Recorder
from inspector.runs.examples import bucket, catalog, content, talk
from tests.support.conversations import runs_of
from tests.support.planted import PLACES, core, everything, found
from tests.support.written import BINARY, BROKEN, FORMS, RECORDED

if TYPE_CHECKING:
    from pathlib import Path


def seeded(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - nothing to protect


@pytest.mark.parametrize("form", FORMS)
def test_in_a_text(form: str) -> None:
    secret = core(seeded(form))
    text = FORMS[form](secret)
    masked = patterns.text(text)
    assert patterns.signs(text)
    assert not found([secret], masked.encode())
    assert patterns.text(masked) == masked


def left(source: random.Random, form: str, place: str) -> bool:
    """Whether a secret in this form is left in this place of a record."""
    secret = core(source)
    records = RECORDED[place](FORMS[form](secret))
    assert found([secret], everything(records))
    return bool(found([secret], everything(map(redact.redacted, records))))


def test_each_form_in_some_place_of_a_record() -> None:
    source, places = seeded("1"), itertools.cycle(RECORDED)
    assert [(form, place) for form, place in zip(FORMS, places, strict=False) if left(source, form, place)] == []


def test_each_form_in_a_path_and_in_what_findings_quote_of_it() -> None:
    for form in [form for form in FORMS if form not in BROKEN]:
        secret = core(seeded(f"path {form}"))
        (record,) = PLACES["path"](FORMS[form](secret))
        assert isinstance(record, Exchange)
        messages = [finding.message for run in runs_of([record]) for finding in run.findings]
        assert secret not in redact.target(record.request), form
        assert secret not in "".join(messages), form


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("place", RECORDED)
def test_each_form_in_each_place_of_a_record(place: str, seed: int) -> None:
    assert [form for form in FORMS if left(seeded(f"{seed} {form}"), form, place)] == []


@pytest.mark.slow
@pytest.mark.parametrize("redact", ["write", "closed"])
def test_no_form_is_in_the_bytes_of_a_capture(
    redact: Literal["write", "closed"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a proxy writes it, with `puppet_redact`."""
    # All is put at once and then ended: on a slow machine more would wait than the end has time for.
    monkeypatch.setattr(recorder, "MASKING", 300.0)
    source, places, cores = seeded("file"), itertools.cycle(RECORDED), []
    recording = Recorder(tmp_path / "c.sqlite", lambda _: None, analyzes=False, redact=redact)
    recording.start()
    for form, place in zip(FORMS, places, strict=False):
        cores.append(core(source))
        for record in RECORDED[place](FORMS[form](cores[-1])):
            recording.put(record)
    recording.finish(300)
    with Capture.open(tmp_path / "c.sqlite") as capture:
        records = [*capture.records()]
    assert len(records) >= len(FORMS)
    assert not any(isinstance(record, Gap) and record.lost for record in records)
    written_ = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert [secret for secret in cores if secret.encode() in written_] == []
    assert found(cores, everything(records)) == []


@pytest.mark.parametrize("kind", BINARY)
def test_key_stores_are_secrets(kind: str) -> None:
    secret = core(seeded(kind))
    for records in (talk(content("modules/a/b", BINARY[kind](secret))), talk(bucket(BINARY[kind](secret)))):
        assert not found([secret], everything(map(redact.redacted, records)))


def test_what_stands_in_a_longer_secret_is_one_by_itself() -> None:
    marked = {"__ptype": "Sensitive", "__pvalue": "user=app password=hunter2-horse timeout=3"}
    (record,) = talk(catalog(resources=[{"type": "Exec", "title": "run hunter2-horse", "parameters": {"x": marked}}]))
    assert b"hunter2-horse" not in everything([redact.redacted(record)])


HARMLESS = [
    "password: authentication failed for root", "the password is wrong", "password required pam_unix.so nullok",
    "password = lookup('x')", "password => $password", "password = ${db_password}", "token: '%{x}'", "secret=${SECRET}",
    "password: <%= @password %>", "password={{ db_password }}", "password: ********", "password = profile::secret",
    "private_key => '/etc/ssl/private/host.pem'", "password_file=/run/secrets/db", "password = /etc/shadow",
    "Syntax error at token: near", "unexpected token in line 3", "mkdir -p /var/lib/app", "ssh -p 2222 db",
    "sudo -u app mkdir -p cache", "docker run -u 1000:1000 -p 8080:80 nginx", "chown -u www:www", "ServerTokens Prod",
    "proxy_pass http://backend:8080/", "pass: 12, fail: 3", "users:\n  password:\n    length: 12\n",
    "52:54:00:ab:cd:ef", "AA:11:BB:CC:DD:EE:FF", "root:x:0:0:root:/root:/bin/sh", "auth: sasl_plain", "key=value",
    "password = [redacted]", "error: token expired", "<label for=\"password\">password</label>", "password:\nuser: x\n",
]  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert patterns.text(text) == text
    assert written.values(text) == []


def test_only_the_value_is_replaced() -> None:
    for text, masked in {
        "Server=x;Password=hunter2;User=y": "Server=x;Password=MASKED;User=y",
        "  SetEnv API_PASSWORD hunter2 # why": "  SetEnv API_PASSWORD MASKED # why",
        "stats auth admin:hunter2": "stats auth admin:MASKED",
        "tool -u app -p hunter2 -h db": "tool -u app -p MASKED -h db",
        "<password>hunter2</password><user>x</user>": "<password>MASKED</password><user>x</user>",
        "define('DB_PASSWORD', 'hunter2');": "define('DB_PASSWORD', 'MASKED');",
        "password:\n  hunter2\nuser: x\n": "password:\n  MASKED\nuser: x\n",
        'password = "a\nb"\nuser = x': f'password = "{MASK}"\nuser = x',
    }.items():
        assert patterns.text(text) == masked


def test_a_long_secret_is_masked_to_its_end() -> None:
    assert patterns.text(f"password={'a1' * 5000} b") == "password=MASKED b"


def test_each_line_of_passwords_has_its_sign_however_it_is_written_and_times_have_none() -> None:
    chance = seeded("lines")
    signs = 4 * "abcZé²7%" + "\\\"'`]>:/!_"
    masked = 0
    for _ in range(2000):
        line = f"db1:5432:shop:web:{''.join(chance.choices(signs, k=chance.randrange(5, 10)))}"
        if written.masked(line) != line:
            masked += 1
            for form in (line, json.dumps(line), json.dumps(line, ensure_ascii=False), line.encode().decode("latin-1")):
                assert written.listed(form.lower()), form
    assert masked > 100
    report = '"time":"2026-11-28t12:13:44.123+00:00","evaluation_time":0.00123,"failed":false,"file":"/a","line":12'
    assert not written.listed(report)


def test_docker_in_a_document() -> None:
    packed = "YXBwOmh1bnRlcjI="
    body = json.dumps({"auths": {"a.example": {"auth": packed}}}).encode()
    (record,) = talk(content("modules/a/b", body))
    assert packed.encode() not in everything([redact.redacted(record)])
