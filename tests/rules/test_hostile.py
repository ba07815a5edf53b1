"""Whatever comes over the wire: no rule raises, and what is told of it is short, clean and JSON.

Real conversations and the rules' own examples are damaged at random. Cases that were found so, and would come back
seldom, are written out below.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.doctor import report as doctor_report
from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import Bootstraps
from inspector.formats import json_output, junit, sarif
from inspector.host import pki
from inspector.model import Exchange, Gap, Handshake, Identity, Leg
from inspector.pages import plain
from inspector.protocol import x509 as chains
from inspector.rules import all_rules
from inspector.rules.kit import *
from inspector.runs.examples import authorities, foreign_ca, private_key
from inspector.summaries import conclusions, summary, wording
from inspector.summaries.judgement import Recorded, judge
from inspector.text import as_json, clock, utc
from tests.support.briefs import documents
from tests.support.hostile import harmless
from tests.support.recorded import RECORDINGS, SAMPLES, records_of
from tests.support.work import work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from inspector.analysis.analyzer import Step
    from inspector.model import Headers, Message

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # the library's, about odd certificates

LONGEST = 1000
"""Characters of a finding's message."""
PIECE = 40
"""Records of a conversation that are used."""

HOSTILE = settings(max_examples=60)
CONTROL = "\u200b\ufe0f\U000e0041\x1b[2J\x07\r\n\x9b31m\u202egnp\u2066\u200f\u061c\u2028\x7f\x00"
CAPTURE = Path("a capture.sqlite")


# -- what must hold --------------------------------------------------------------------------------------


def understood(records: Sequence[Record]) -> Analyzer:
    """Analyzes records and says everything that can be said of them, insisting that all of it is fit to be shown."""
    analyzer, bootstraps = Analyzer(), Bootstraps()
    for record in records:
        step = analyzer.feed(record)
        assert step.trouble == [], step.trouble
        bootstraps.add(step)
        _shown(step)
        for over in step.over:
            _run_shown(over)
        if step.run:
            analyzer.judge(step.run)
    runs = analyzer.finish()
    for run in runs:
        _run_shown(run)
    briefs = list(map(conclusions.of_run, runs))
    found = [(CAPTURE, run, finding) for run in briefs for finding in run.findings]
    strictly_json(documents(runs))
    strictly_json(json_output.check(found))
    output = sarif.document(found)
    strictly_json(output)
    for result in output["runs"][0]["results"]:
        clean([result["message"]["text"], result["locations"][0]["logicalLocations"][0]["name"]])
        clean(result["partialFingerprints"].values())
    clean(junit.document(found, [(CAPTURE, run) for run in briefs], Severity.WARNING).splitlines())
    judgement = judge([Recorded(briefs, CAPTURE)])
    clean([judgement.headline])
    strictly_json(json_output.states(judgement))
    capture = doctor_report.CaptureReport([CAPTURE, CAPTURE], judgement)
    clean(line for block in doctor_report.verdict_blocks(capture) for line in block.lines)
    for at in (0.0, max((record.ended for record in records), default=0.0), 4e9):
        for name in bootstraps.names():
            bootstrap = bootstraps.of(name, at)
            clean(bootstrap_text.lines(bootstrap))
            strictly_json(bootstrap_text.plain(bootstrap))
    return analyzer


def _shown(step: Step) -> None:
    for finding in step.findings:
        assert isinstance(finding.message, str)
        assert 0 < len(finding.message) <= LONGEST, finding
    clean(
        [
            wording.line(summary.brief_of(step), step.run),
            *wording.row(summary.brief_of(step), step.run),
            *plain.lines(step, step.run),
        ]
    )
    strictly_json(json_output.show(step, step.run))


def _run_shown(run: Any) -> None:
    for finding in run.findings:
        assert 0 < len(finding.message) <= LONGEST, finding
        clean(wording.finding(finding, conclusions.of_run(run)))
    brief = conclusions.of_run(run)
    printed = [wording.summary(brief), *wording.run_row(brief), brief.why or ""]
    clean([*printed, *((brief.verdict.message, brief.fix) if brief.verdict else ())])
    if brief.verdict:
        strictly_json(json_output.verdict(brief.verdict, brief))


def clean(lines: Any) -> None:
    for line in lines:
        assert harmless(line), ascii(line)


def strictly_json(value: Any) -> None:
    """JSON as a strict reader takes it, without NaN; printed it does nothing to a terminal."""
    text = as_json(value)
    clean(text.splitlines())
    assert json.loads(text, parse_constant=pytest.fail) == json.loads(json.dumps(msgspec.to_builtins(value)))


# -- conversations ---------------------------------------------------------------------------------------


@cache
def conversations() -> tuple[tuple[Record, ...], ...]:
    """Real ones, and what the rules call good and bad."""
    examples = [tuple(conversation) for rule in all_rules() for conversation in (*rule.good(), *rule.bad())]
    return (*(records_of(path) for path in (*SAMPLES, *RECORDINGS)), *examples)


@cache
def _bodies() -> tuple[bytes, ...]:
    """Each kind of body once or twice."""
    found: dict[tuple[int, bytes], bytes] = {}
    for records in conversations():
        for record in records:
            if isinstance(record, Exchange):
                for message in (record.request, record.response):
                    if message and len(message.body) < 50_000:
                        found.setdefault((len(message.body) // 500, message.body[:20]), message.body)
    return tuple(found.values())


def piece(random: Random) -> list[Record]:
    """Some records of a conversation, or of two that are mixed."""
    records: list[Record] = []
    for _ in range(random.choice((1, 1, 1, 2))):
        whole = random.choice(conversations())
        first = random.randrange(max(1, len(whole) - PIECE + 1))
        records += whole[first : first + PIECE]
    return records


# -- values ----------------------------------------------------------------------------------------------

RAW = ("1e400", "-1e400", "1" + "0" * 400, "NaN", "Infinity", ".nan", ".inf", "-.inf", "0x" + "f" * 5000, "1e308",
       '"\\ud800"', "-0", "9" * 5000)  # fmt: skip
"""What stands in a body as it is."""
_MARK = re.compile(r'"@(\d+)@"')


def _value(random: Random, depth: int = 0) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        lambda: random.choice((True, False)),
        lambda: random.choice((0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**18)),
        lambda: random.choice((0.0, -1.5, 1e308, 1e-300)),
        lambda: text(random),
        lambda: text(random),
        lambda: f"@{random.randrange(len(RAW))}@",
    ]
    if depth < 3:
        kinds += [
            lambda: [_value(random, depth + 1) for _ in range(random.randrange(4))],
            lambda: {text(random): _value(random, depth + 1) for _ in range(random.randrange(4))},
        ]
    return random.choice(kinds)()


TEXTS = (
    "", " ", CONTROL, "\ud800", "x" * 5000, "²", "99999999999999.1", "0", "-1", "a\nb", "{name}", "{", "%s", "\\",
    "File[/etc/a]", "File[", "puppet:///modules/a/b", "puppet:///", "{md5}", "{sha256lite}ff", "{sha256}" + "0" * 64,
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31 23:59:59.999999999 -23:59", "٣.٤", "3.", ".4",
    "err", "failed", "production", "password = hunter2hunter2", "../../etc", "\u2028", "error: " * 300, "🦊" * 200,
)  # fmt: skip


def text(random: Random) -> str:
    return random.choice(TEXTS)


def _damaged(random: Random, value: Any) -> Any:
    """A structure with one value of it, at whatever level, replaced, dropped or doubled."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        what = random.random()
        if what < 0.1:
            return {name: item for name, item in value.items() if name != key}
        if what < 0.15:
            return {text(random): value[key], **value}
        return value | {key: _damaged(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        what = random.random()
        if what < 0.1:
            return value[:at] + value[at + 1 :]
        if what < 0.2:
            return value + value[: at + 1]
        return [*value[:at], _damaged(random, value[at]), *value[at + 1 :]]
    return _value(random)


def _json(value: Any) -> bytes:
    written = json.dumps(value)
    return _MARK.sub(lambda found: RAW[int(found[1])], written).encode()


def _packed(value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (ValueError, OverflowError, UnicodeEncodeError):
        return b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"  # NaN


def notation(random: Random, value: Any) -> tuple[bytes, str | None]:
    """A structure as a body, and its Content-Type (None: as it was)."""
    what = random.random()
    if what < 0.2:
        return _packed(value), random.choice(("application/x-msgpack", "application/vnd.puppet.rich+msgpack"))
    if what < 0.4:
        return b"--- " + _json(value), "text/yaml"
    if what < 0.5:
        return _json({"document_type": "x", "data": value}), "text/pson"
    return _json(value), None


def structured(random: Random, body: bytes) -> tuple[bytes, str | None]:
    """A body with something in its structure changed."""
    if b"facts=" in body:
        fields = dict(parse_qsl(body.decode("latin-1")))
        facts, _ = structured(random, fields.get("facts", "").replace("+", " ").encode("latin-1", "replace"))
        changed = fields | {"facts": quote(facts.decode("latin-1"))}
        changed[random.choice(list(changed))] = random.choice((changed["facts"], text(random)))
        return urlencode(changed, errors="replace").encode(), None
    try:
        value = json.loads(body)
    except ValueError:
        return _json(_value(random)), "application/json"
    for _ in range(random.choice((1, 1, 2, 5))):
        value = _damaged(random, value)
    return notation(random, value)


# -- damage ----------------------------------------------------------------------------------------------


def _message[M: Message](random: Random, message: M) -> M:
    what, body = random.randrange(6), message.body
    if what == 0:
        return dataclasses.replace(message, body=body[: random.randrange(len(body) + 1)])
    if what == 1:
        return dataclasses.replace(message, body=random.choice(_bodies()))
    if what == 2:
        return dataclasses.replace(message, body=pem(random))
    if what == 3 and body:
        at = random.randrange(len(body))
        return dataclasses.replace(message, body=body[:at] + random.randbytes(3) + body[at + 1 :])
    changed, media = structured(random, body)
    headers = message.headers
    if media is not None:
        headers = (("Content-Type", media), *(header for header in headers if header[0].lower() != "content-type"))
    return dataclasses.replace(message, body=changed, headers=headers)


NAMES = (
    "Retry-After", "Content-Length", "Date", "X-Puppet-Version", "Content-Type", "Content-Encoding", "Accept", "Host",
    "Connection", "Keep-Alive", "User-Agent", "Server", "Via", "X-Puppet-Compiler-Name", "X-Client-Verify", "Location",
    "X-Client-DN", "Accept-Encoding", "If-Modified-Since", "Last-Modified", "Transfer-Encoding", "X-Authentication",
    "X-SSL-Subject", "Authorization",
)  # fmt: skip
VALUES = (
    "", " ", "²", "99999999999999.1", "1" * 5000, "-1", "1e400", "nan", "0", "30", "\x9b31m\x1b[2J", "x" * 9000, "1.",
    ".", "7.23.0", "3.8.7", "2.7.26", "8.26.0", "4.10", "²³.¹", "9" * 400 + ".1", "timeout=²", "timeout=-1, max=nan",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2359", "Sat, 01 Jan 0001 00:00:00 +2359", "Thu, ",
    "Thu, 99 Foo 20", "Sat, 1 Jan 2026 ²:00:00 GMT", "1 Jan 99999 00:00:00", "application/json", "text/yaml", "gzip",
    "application/x-msgpack; charset=²", "text/html", "deflate", ",,,", ";", "close", "CN=x", "SUCCESS", "*/*",
    "http://[", "https://x.example:²/y", "Puppet/9999999999999999999999.1 Ruby", "Puppet/7.1", "curl/8", "[::1",
)  # fmt: skip


def _headers(random: Random, headers: Headers) -> Headers:
    retained = list(headers)
    for _ in range(random.choice((1, 1, 3))):
        what = random.randrange(4)
        if what == 0 and retained:
            retained.pop(random.randrange(len(retained)))
        elif what == 1 and retained:
            retained.append(random.choice(retained))
        elif what == 2 and retained:
            at = random.randrange(len(retained))
            retained[at] = (retained[at][0], random.choice(VALUES))
        else:
            retained.insert(0, (random.choice(NAMES), random.choice(VALUES)))
    return tuple(retained)


STATUSES = (0, -1, 1, 100, 101, 199, 204, 206, 299, 301, 302, 304, 307, 400, 401, 403, 404, 405, 406, 409, 410, 413,
            415, 429, 500, 502, 503, 504, 599, 600, 999, 99999, 200, 200, 200)  # fmt: skip
MOMENTS = (None, 0.0, -1.0, -1e9, 1e-9, 1.7e9, 4e9, 2.5e11, 253_402_300_799.9, 1e12, 1e18, 1e300, -1e18)


def _moment(random: Random, near: float | None) -> float | None:
    return random.choice((*MOMENTS, (near or 0.0) + random.choice((-1e5, -1.0, 1.0, 1e5, 1e9))))


def _leg(random: Random, leg: Leg) -> Leg:
    changes: list[Callable[[], dict[str, Any]]] = [
        lambda: {"peer_chain": chain(random)},
        lambda: {"own_chain": chain(random)},
        lambda: {"id": random.choice(("run", leg.id, ""))},
        lambda: {"address": random.choice((None, "", "192.0.2.7", "fe80::1%eth0", CONTROL))},
        lambda: {"sni": random.choice((None, "", CONTROL, "x" * 3000, "puppet.example", "²"))},
        lambda: {"tls_version": random.choice((None, "", "TLSv1", "SSLv3", "TLSv1.²", CONTROL, "TLSv1.3"))},
        lambda: {"cipher": random.choice((None, "", "NULL", CONTROL, "x" * 3000, "DES-CBC3-SHA"))},
        lambda: {"connected": _moment(random, leg.connected), "secured": _moment(random, leg.secured)},
        lambda: {"side": random.choice(("agent", "master"))},
        lambda: {"port": random.choice((None, 0, -1, 10**9))},
    ]
    return dataclasses.replace(leg, **random.choice(changes)())


TARGETS = ("%ff%fe", "%00", "%0a%1b[2J", "%", "%%%", "%zz", "?", "??&&==", "/", "//" * 50, "\x9b", "%e2%80%ae", "%2f..",
           "?environment=%ff", "&environment=", "?environment=" + "x" * 3000, "&transaction_uuid=%00", "a/" * 400,
           "?recurse=false", "&code_id=%1b", "x" * 3000, "{name}", "%7b", "?facts=%7b%22name%22%3a1")  # fmt: skip


def _target(random: Random, target: str) -> str:
    at = random.randrange(len(target) + 1)
    if random.random() < 0.2:
        return target[:at]
    return target[:at] + random.choice(TARGETS) + random.choice((target[at:], ""))


def _exchange(random: Random, exchange: Exchange) -> Exchange:
    request, response = exchange.request, exchange.response
    what = random.randrange(14)
    if what <= 2:
        return dataclasses.replace(exchange, request=_message(random, request))
    if what <= 5 and response:
        return dataclasses.replace(exchange, response=_message(random, response))
    if what == 6:
        return dataclasses.replace(
            exchange, request=dataclasses.replace(request, headers=_headers(random, request.headers))
        )
    if what == 7 and response:
        return dataclasses.replace(
            exchange, response=dataclasses.replace(response, headers=_headers(random, response.headers))
        )
    if what == 8 and response:
        status = random.choice(STATUSES)
        return dataclasses.replace(exchange, response=dataclasses.replace(response, status=status, reason=CONTROL))
    if what == 9:
        started, ended = _moment(random, request.started), _moment(random, request.ended)
        exchange = dataclasses.replace(exchange, request=dataclasses.replace(request, started=started, ended=ended))
        if response and random.random() < 0.5:
            began = _moment(random, response.started)
            answered = dataclasses.replace(response, started=began, ended=_moment(random, response.ended))
            exchange = dataclasses.replace(exchange, response=answered, failed=_moment(random, None))
        return exchange
    if what == 10:
        return dataclasses.replace(exchange, agent=_leg(random, exchange.agent))
    if what == 11:
        master = _leg(random, exchange.master or Leg("m", "master", "192.0.2.1"))
        credentials = Identity(
            random.choice(("keys", CONTROL)), random.choice((None, CONTROL)), random.choice((None, CONTROL))
        )
        return dataclasses.replace(exchange, master=master, identity=credentials, stripped=(CONTROL, ""))
    if what == 12:
        method = random.choice(("GET", "PUT", "POST", "HEAD", "DELETE", "", "get", CONTROL))
        return dataclasses.replace(
            exchange, request=dataclasses.replace(request, method=method, target=_target(random, request.target))
        )
    if random.random() < 0.5:
        return dataclasses.replace(
            exchange, request=dataclasses.replace(request, target=_target(random, request.target))
        )
    error = random.choice((None, CONTROL, "", "x" * 9000))
    return dataclasses.replace(exchange, response=None, error=error, failed=_moment(random, exchange.time))


ALERTS = (None, "", "unknown_ca", "certificate_expired", "certificate_revoked", "bad_certificate", "decrypt_error",
          "protocol_version", "handshake_failure", "certificate_unknown", "certificate_required", "close_notify",
          "unsupported_certificate", "access_denied", "internal_error", "x" * 3000, CONTROL)  # fmt: skip


def _handshake(random: Random, near: Record) -> Handshake:
    leg = near.agent if isinstance(near, Exchange) else near.leg if isinstance(near, Handshake) else Leg("h", "agent")
    leg = dataclasses.replace(leg, secured=None, peer_chain=random.choice((leg.peer_chain, (), chain(random))))
    reasons = ("", CONTROL, "x" * 9000, "certificate verify failed (certificate has expired): [x for CN=a]", "timeout")
    return Handshake(
        _leg(random, leg) if random.random() < 0.5 else leg,
        _moment(random, near.time) or 0.0,
        random.choice(reasons),
        random.choice(ALERTS),
        random.choice((None, "agent", "proxy", "master")),
        tuple(random.choice(reasons) for _ in range(random.choice((0, 0, 1, 60)))),
    )


def damaged(random: Random) -> list[Record]:
    """A conversation to which much was done."""
    records = piece(random)
    for _ in range(random.choice((1, 2, 4, 8))):
        at = random.randrange(len(records))
        record, what = records[at], random.randrange(12)
        if what == 0:
            records.insert(at, _handshake(random, record))
        elif what == 1:
            records[at : at + 3] = reversed(records[at : at + 3])
        elif what == 2:
            records[at:at] = [record] * random.choice((1, 2, 5))
        elif what == 3:
            random.shuffle(records)
        elif what == 4 and isinstance(record, Exchange):
            leg = record.agent
            changed = [dataclasses.replace(other, agent=leg) if isinstance(other, Exchange) and random.random() < 0.3
                       else other for other in records]  # fmt: skip
            records = changed
        elif what == 5:
            records.insert(at, Gap(_moment(random, record.time) or 0.0, text(random), random.choice((0, 10**18))))
        elif isinstance(record, Exchange):
            records[at] = _exchange(random, record)
        elif isinstance(record, Handshake):
            records[at] = _handshake(random, record)
    return [dataclasses.replace(record, seq=seq) for seq, record in enumerate(records, 1)]


# -- certificates ----------------------------------------------------------------------------------------

SUBJECTS = ("", CONTROL, "x" * 2000, "node1.example", "NODE1", "puppet.example", "²", "a,CN=b", "*", "a b", "{name}")


@cache
def _forged() -> tuple[bytes, ...]:
    """Certificates (DER) that say what they should not."""
    made = [_certificate(name) for name in SUBJECTS]
    made += [_certificate("node1.example", serial=serial) for serial in (1, 2**158)]
    made += [_certificate("node1.example", begins=begins, ends=ends)
             for begins, ends in ((1950, 1951), (2020, 9999), (1950, 9999), (9998, 9999))]  # fmt: skip
    root, own = authorities()
    made += [
        certificate.public_bytes(Encoding.DER) for certificate in (root.certificate, own.certificate, foreign_ca())
    ]
    return tuple(made)


def _certificate(name: str, *, serial: int = 7, begins: int = 2020, ends: int = 2040) -> bytes:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name, _validate=False)] if name else [])
    issuer = subject if name == CONTROL else authorities()[1].certificate.subject
    key = private_key("forged")
    builder = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(serial).not_valid_before(datetime.datetime(begins, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(ends, 12, 31, 23, 59, 59, tzinfo=datetime.UTC))
    )  # fmt: skip
    if name == CONTROL:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    signer = key if name == CONTROL else authorities()[1].key
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.DER)


def der(random: Random) -> bytes:
    made = random.choice(_forged())
    what = random.random()
    if what < 0.15:
        return random.choice((b"", b"\x30\x82", b"x" * 2000, random.randbytes(40)))
    if what < 0.5:
        at = random.randrange(len(made))
        return made[:at] + random.randbytes(1) + made[at + 1 :]
    return made


def chain(random: Random) -> tuple[bytes, ...]:
    return tuple(der(random) for _ in range(random.choice((0, 1, 1, 2, 5))))


def pem(random: Random) -> bytes:
    """A body of PEM: certificates or lists, some of them forged."""
    blocks = []
    for _ in range(random.choice((1, 1, 2, 4))):
        label, data = "CERTIFICATE", der(random)
        if random.random() < 0.4:
            label, data = "X509 CRL", random.choice(_lists())
            if random.random() < 0.5:
                at = random.randrange(len(data))
                data = data[:at] + random.randbytes(1) + data[at + 1 :]
        encoded = base64.encodebytes(data).decode()
        blocks.append(f"-----BEGIN {label}-----\n{encoded}-----END {label}-----\n")
    return "".join(blocks).encode()


@cache
def _lists() -> tuple[bytes, ...]:
    """CRLs (DER): of the own CA, of a name with control characters, of dates at the ends of time."""
    root, own = authorities()
    odd = pki.Authority(x509.load_der_x509_certificate(_certificate(CONTROL)), private_key("forged"))
    made = [pki.make_crl(own, (7, 8, 9), 3), pki.make_crl(root), pki.make_crl(odd)]
    for begins, ends in ((1950, 1951), (2020, 9999), (9998, 9999)):
        first, last = (datetime.datetime(year, 12, 31, tzinfo=datetime.UTC) for year in (begins, ends))
        made.append(pki.make_crl(own, last_update=first, next_update=last))
    return tuple(crl.public_bytes(Encoding.DER) for crl in made)


# -- tests -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@HOSTILE
@given(st.randoms(use_true_random=False))
def test_nothing_on_the_wire_brings_the_inspector_down(random: Random) -> None:
    understood(damaged(random))


def test_a_name_of_any_length_makes_no_long_message() -> None:
    for forged in _forged()[: len(SUBJECTS)]:
        records = talk(node(), plugins(), catalog(), report(), asked("node/node2.example", {"name": "node2.example"}))
        understood([
            dataclasses.replace(record, agent=dataclasses.replace(record.agent, peer_chain=(forged,)))
            for record in records if isinstance(record, Exchange)
        ])  # fmt: skip


NOT_A_NUMBER = "²"
"""``"²".isdigit()`` is true, and ``int("²")`` raises."""
FILE = "modules/demo/app.conf"


@pytest.mark.parametrize(
    "parts",
    [
        (plugins(), catalog(), metadata(FILE), altered(content(FILE), answers={"Content-Length": NOT_A_NUMBER})),
        (ca(), crl(), altered(csr(status=500, body=b"no"), request={"body": b"x"},
                              headers={"Content-Length": NOT_A_NUMBER})),
        (plugins(), altered(catalog(status=500), answers={"X-Puppet-Version": NOT_A_NUMBER})),
        (plugins(), altered(catalog(status=500), answers={"X-Puppet-Version": "9" * 5000})),
        (ca(), altered(crl(), leg={"own_chain": carried(made()), "sni": "x" * 5000}), csr()),
        (refused(CONTROL, reason=CONTROL, culprits=(CONTROL, "x" * 9000)),) * 3,
        (altered(ca(), request={"started": 1e18, "ended": -1e300}), crl(), csr(), issued(), catalog(), report()),
        (ca(), crl(), csr(), not_issued(), wait(1e15), csr(), not_issued(), wait(1e15), csr(), not_issued()),
    ],
    ids=["length-of-content", "length-of-csr", "version", "long-version", "long-sni", "control-characters",
         "times", "polls-for-ever"],
)  # fmt: skip
def test_what_once_brought_it_down(parts: tuple[ExamplePart, ...]) -> None:
    understood(talk(*parts))


def test_what_is_printed_as_json_does_nothing_to_a_terminal() -> None:
    text = as_json({"said": [CONTROL, "\ud800", "ä"]})
    clean(text.splitlines())
    assert json.loads(text) == {"said": [CONTROL, "\ud800", "ä"]}
    assert "ä" in text


@pytest.mark.parametrize("time", [-1e300, -1e18, 1e18, 1e300, float("inf"), float("nan")])
def test_every_time_can_be_shown(time: float) -> None:
    assert utc(time).endswith("Z")
    assert len(clock(time)) == len("00:00:00.000")


def test_a_chain_is_judged_at_any_time() -> None:
    root, own = (authority.certificate.public_bytes(Encoding.DER) for authority in authorities())
    chain = carried(made())
    assert {problem.code for problem in chains.verify(chain, [own, root], [], 1e18, "none")} == {10}
    assert {problem.code for problem in chains.verify(chain, [own, root], [], -1e18, "none")} == {9}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "number"),
    [
        (lambda most: (plugins(), catalog(), *(part for n in range(most) for part in (
            metadata(f"modules/m/{n}"), content(f"modules/m/{n}"))), report()), 1500),
        (lambda most: (ca(), crl(), *[csr(status=400, text="already has a requested certificate"),
                                      not_issued()] * most), 250),
        (lambda most: (plugins(), catalog(), report(result="failed", resource_statuses={
            f"File[/{n}]": {"failed": True, "changed": True} for n in range(most)})), 25_000),
        (lambda most: (plugins(), catalog(resources=[{"type": "File", "title": f"/{n}", "parameters": {
            "source": f"puppet:///modules/m/{n}"}} for n in range(most)]), report()), 10_000),
        (lambda most: (ca(), crl(revoked=range(1, most)), csr(), issued(), catalog(), report()), 15_000),
    ],
    ids=["files", "polls", "report", "catalog", "crl"],
)  # fmt: skip
def test_much_traffic_costs_no_more_than_its_share(
    parts: Callable[[int], tuple[ExamplePart, ...]], number: int
) -> None:
    half, whole = (work_of(partial(_analyzed, talk(*parts(most)))) for most in (number, 2 * number))
    assert whole < 2.2 * half


def _analyzed(records: list[Record]) -> None:
    analyzer = Analyzer()
    for record in records:
        assert analyzer.feed(record).trouble == []
    analyzer.finish()
