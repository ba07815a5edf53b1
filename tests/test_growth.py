"""No captured text costs more than linear time: twice the input, at most 2.3 times the work.

The inputs are repeats of what the program looks for: every literal and every single character of every pattern.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import pkgutil
import re
from functools import partial
from itertools import count, repeat
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest

import inspector
from inspector import regex
from inspector.analysis.analyzer import Analyzer
from inspector.capture.spool import KEEP
from inspector.formats import har_reader
from inspector.formats.outgoing import Outgoing
from inspector.formats.pseudonyms import Pseudonyms
from inspector.model import Exchange, Leg, Request, Response
from inspector.privacy import patterns, redact
from inspector.privacy.harmless import Harmless
from inspector.privacy.known import KnownSecrets, QuotedSecrets
from inspector.privacy.names import harmless, named
from inspector.proxy.bodies import Copies
from inspector.proxy.connect.interception import Addition
from inspector.proxy.engine import framing
from inspector.proxy.engine.exchange import OpenExchange
from inspector.proxy.engine.framing import Reader
from inspector.runs.examples import catalog, plugins, report, talk
from inspector.text import as_json, clean
from tests.support.conversations import START, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.model import Record

MOST = 2.3
LEAST = 0.01
"""Seconds of CPU time that are long enough to be compared."""
SIZES = (20_000, 40_000, 80_000)


def cost(function: Callable[[Any], object], value: object) -> float:
    """CPU seconds, the best of three if that is long enough to matter."""
    best = float("inf")
    for _ in range(3):
        began = process_time()
        function(value)
        best = min(best, process_time() - began)
        if best < LEAST / 4:
            break
    return best


def growth(function: Callable[[Any], object], make: Callable[[int], object], sizes: Sequence[int] = SIZES) -> float:
    """How much more work twice the input is, at the first size that is long enough to be compared; 0 if none is."""
    before = 0.0
    for size in sizes:
        now = cost(function, make(size))
        if before >= LEAST:
            # A busy machine may be slower for one of the two: then they are measured again.
            ratios = [now / before]
            while ratios[-1] > MOST and len(ratios) < 8:
                ratios.append(cost(function, make(size)) / cost(function, make(size // 2)))
            return min(ratios)
        before = now
    return 0.0


def repeated(atom: str) -> Callable[[int], str]:
    """A text of a size."""
    return lambda size: (atom * (size // len(atom) + 1))[:size]


def all_patterns() -> list[regex.Pattern[Any]]:
    """Every pattern of the program."""
    for module in pkgutil.walk_packages(inspector.__path__, "inspector."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.unfreeze()  # a proxy's server that another test made in this process hides what exists from the collector
    return [found for found in gc.get_objects() if isinstance(found, regex.Pattern)]


def atoms() -> list[str]:
    """What patterns look for."""
    found = set(" \n\t\0aA0é-.:='\"<>%\\/{}[](),;_@&#$!~*+?|^")
    for pattern in all_patterns():
        written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        found.update(re.findall(r"[A-Za-z0-9][A-Za-z0-9_ :/-]{1,30}", written))
    return sorted(found)


def names() -> Pseudonyms:
    """Pseudonyms that were taught hostile names."""
    learned = Pseudonyms(b"salt")
    for name in ("web1.a.example", "a.a.a.a.a.a.lan", ".".join("a" * 120), "1.1.example"):
        learned.host(name)
    return learned


def prose(text: str) -> str:
    """Withhold what is not harmless in a message."""
    return Harmless(b"salt").text(text, prose=True)


SLOW = (prose, KnownSecrets(["a" * 200, "hunter2-horse", "A0A0A", "-.-.-.", "%41%41%41"]).masked)
"""Functions that take long, which fewer of the texts are enough for."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        patterns.text,
        named,
        harmless,
        patterns.signs,
        patterns.is_shape,
        clean,
        as_json,
        names().text,
        *SLOW,
    ],
    ids=["text", "named", "harmless", "signs", "is_shape", "clean", "as_json", "pseudonyms", "prose", "known"],
)
def test_texts_are_read_in_linear_time(function: Callable[[str], object]) -> None:
    assert len(atoms()) > 200
    chosen = atoms()[:: 5 if function in SLOW else 1]
    worst = {atom: ratio for atom in chosen if (ratio := growth(function, repeated(atom))) > MOST}
    assert worst == {}


@pytest.mark.parametrize("text", ["password" + "1" * 180 + "x", "pass_" * 39 + "x"])
def test_a_name_takes_no_exponential_time(text: str) -> None:
    assert not named(text)


@pytest.mark.slow
def test_many_assignments_in_one_line_are_read_in_linear_time() -> None:
    """Each of them was looked for at both ends of its line."""
    assert growth(patterns.text, repeated("password:aaaaab "), (400_000, 800_000)) <= MOST


def _archive(size: int) -> str:
    return '{"log":{"entries":[' + '{"a":1},\n' * (size // 9)


@pytest.mark.slow
def test_an_archive_that_is_cut_off_is_read_in_linear_time() -> None:
    """A pattern that is matched at an offset reads the whole text each time."""
    assert len(list(har_reader._whole_entries(_archive(9000)))) == 1000
    assert growth(lambda text: list(har_reader._whole_entries(text)), _archive, (300_000, 600_000)) <= MOST


HOSTILE = (
    "password1", "-----BEGIN CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----", " ", "\n", "a.", "eyJ", "eyJaaaaaaaa.",
    "token=", "%", "=", "&a=b", "\\", "\\n", "'", '"', "<", "{", "[", "- ", "&a ", "*a ", "1.", "::", "LS0tLS1CRUdJTi",
    "://a:", "Sensitive", "-", "A", "0", "é", "\\u0041", " password: ",
)  # fmt: skip


def exchange(
    target: str, response: bytes, media: str, *, sent: bytes = b"", sent_media: str = "", name: str = "X"
) -> Any:
    """An exchange with these bodies; a request with one is a PUT, or a POST of a form."""
    method = "GET" if not sent else "POST" if "form" in sent_media else "PUT"
    return Exchange(
        Leg("c", "agent", "192.0.2.1", 1),
        Request((("Content-Type", sent_media), (name, "x")), sent, "HTTP/1.1", START, START, method, target),
        Response((("Content-Type", media),), response, "HTTP/1.1", START, START, 200, "OK"),
        seq=1,
    )


def _short(text: str) -> str:
    return text[:60_000].replace(" ", "+").replace("\n", "")


def _catalog(text: str) -> bytes:
    resource = {"type": "File", "title": "/a", "parameters": {"content": text, text: text}}
    return json.dumps({"resources": [resource]}).encode()


def _report(text: str) -> bytes:
    log = {"message": text, "source": "Puppet", "level": "err", "tags": [], "time": "2026-01-01T00:00:00Z"}
    return json.dumps({"host": "x", "logs": [log], "resource_statuses": {}}).encode()


CATALOG, CA = "/puppet/v3/catalog/x", "/puppet-ca/v1"
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
PLACES: dict[str, Callable[[str], Exchange]] = {
    "target": lambda text: exchange(f"/puppet/v3/node/{_short(text)}", b"", ""),
    "query": lambda text: exchange(f"/puppet/v3/node/x?{_short(text)}", b"", ""),
    "legacy query": lambda text: exchange(f"/production/catalog/x?facts={_short(text)}", b"", ""),
    "header": lambda text: exchange("/puppet/v3/node/x?environment=p", b"", "", name=_short(text)),
    "JSON": lambda text: exchange(CATALOG, text.encode(), JSON),
    "rich JSON": lambda text: exchange(CATALOG, text.encode(), "application/vnd.puppet.rich+json"),
    "YAML": lambda text: exchange(CATALOG, text.encode(), "text/yaml"),
    "msgpack": lambda text: exchange(CATALOG, text.encode(), "application/x-msgpack"),
    "parameter": lambda text: exchange(CATALOG, _catalog(text), JSON),
    "report": lambda text: exchange("/puppet/v3/report/x", b"", "", sent=_report(text), sent_media=JSON),
    "form": lambda text: exchange(CATALOG, b"", "", sent=b"facts_format=pson&facts=" + text.encode(), sent_media=FORM),
    "CA": lambda text: exchange(f"{CA}/certificate/ca", text.encode(), "text/plain"),
    "CRL": lambda text: exchange(f"{CA}/certificate_revocation_list/ca", text.encode(), "text/plain"),
    "CSR": lambda text: exchange(f"{CA}/certificate_request/x", b"", "", sent=text.encode(), sent_media="text/plain"),
    "file": lambda text: exchange("/puppet/v3/file_content/plugins/x.rb", text.encode(), "application/octet-stream"),
}
"""Where an agent or a master can put a text."""


def analyze(record: Exchange) -> None:
    """Analyze one record, and its run."""
    analyzer = Analyzer()
    analyzer.feed(record)
    analyzer.finish()


def share(record: Exchange) -> None:
    """Make one record ready to be shared."""
    outgoing = Outgoing(pseudonyms=True)
    outgoing.learn(lambda: [record])
    outgoing.record(record)
    assert outgoing.unmasked == {}


def _sized(made: Callable[[str], Exchange], text: Callable[[int], str], size: int) -> Exchange:
    return made(text(size))


@pytest.mark.slow
@pytest.mark.parametrize("function", [analyze, redact.redacted, share], ids=["analyze", "redact", "share"])
def test_records_are_read_in_linear_time(function: Callable[[Any], object]) -> None:
    worst = {}
    for atom in HOSTILE[
        :: 3 if function is share else 1
    ]:  # it makes keys for each record, which takes most of the time
        text = repeated(atom)
        for place, made in PLACES.items():
            ratio = growth(function, partial(_sized, made, text))
            if ratio > MOST:
                worst[atom, place] = ratio
    assert worst == {}


def _secret_lines(number: int, start: int) -> list[Record]:
    """A report with as many lines, each with a secret of its own, and each a finding."""
    source = "/Stage[main]/Main/Exec[x{}]/returns"
    lines = [{"level": "err", "source": source.format(at), "message": f"password=pQ7{at:09}zW… {at}"}
             for at in range(start, start + number)]  # fmt: skip
    return list(talk(plugins(), catalog(), report(result="failed", logs=lines)))


@pytest.mark.slow
def test_many_findings_about_many_secrets_are_judged_in_linear_time() -> None:
    starts = count(1_000_000, 1_000_000)  # new secrets each time: what is remembered would help the smaller number
    assert growth(lambda size: runs_of(_secret_lines(size, next(starts))), lambda size: size, (1000, 2000)) <= MOST


def test_secrets_that_begin_alike_are_looked_for_in_linear_time() -> None:
    """Of any lengths: a report of a size has as many as its square root."""

    def masked(size: int) -> None:
        text = "a" * size
        assert QuotedSecrets("a" * length + "b" for length in range(16, math.isqrt(size))).masked(text) != text

    assert growth(masked, lambda size: size) <= MOST


@pytest.mark.slow
def test_an_answer_that_is_passed_on_whole_may_come_a_byte_at_a_time(tmp_path: Path) -> None:
    """A CA bundle to which something is added, from a master that nobody has verified yet."""
    reader = Reader()
    reader.feed(b"GET /puppet-ca/v1/certificate/ca HTTP/1.1\r\nHost: m\r\n\r\n")
    asked = reader.head(framing.request)
    assert asked

    def take(pieces: int) -> None:
        exchange, answers = OpenExchange(asked, START, Copies(tmp_path, KEEP)), Reader()
        exchange.addition = Addition(b"-----BEGIN CERTIFICATE-----")
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (pieces + 1)
        for data in (head, *repeat(b"a", pieces)):
            answers.feed(data)
            exchange.take_answer(answers)

    assert growth(take, lambda size: size // 4) <= MOST
