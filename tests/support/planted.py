"""Secrets that are planted in samples: what kind, in which place, in which encoding. And a search that finds them."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import html
import io
import itertools
import json
import random
import re
import string
import tarfile
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.formats.outgoing import Outgoing
from inspector.host import pki
from inspector.model import Exchange, Gap, Handshake, Leg, Request, Response
from inspector.protocol import bodies
from inspector.runs.examples import asking_for, bucket, catalog, content, csr, plugins, report, talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.formats.outgoing import Content
    from inspector.model import Record

_CHARACTERS = string.ascii_letters + string.digits


def core(source: random.Random, size: int = 18) -> str:
    """Return what is secret in a secret: letters and digits, mixed as tokens are."""
    return "".join(source.choices(_CHARACTERS, k=size - 3)) + "q7Z"


KINDS: dict[str, Callable[[str], str]] = {
    "token": str,
    "password with signs": lambda core: f"&{core}!",
    "stripe key": lambda core: f"sk_live_{core}",
    "google key": lambda core: f"AIza{core}",
    "npm token": lambda core: f"npm_{core}",
    "environment": lambda core: f"MYSQL_PWD={core}",
    "rails": lambda core: f"secret_key_base: {core}",
    "pgpass": lambda core: f"db.example:5432:app:app:{core}",
    "snmp": lambda core: f"rocommunity {core} default",
    "webhook": lambda core: f"https://hooks.example/services/T0/B0/{core}",
    "command line": lambda core: f"mysql -u root -p{core} -e 'select 1'",
    "interrupted PEM": lambda core: f"-----BEGIN PRIVATE KEY-----<br>{core}<br>-----END PRIVATE KEY-----",
    "connection string": lambda core: f"postgres://app:{core}@db.example/app",
    "netrc": lambda core: f"machine db.example login app password {core}",
    "xml": lambda core: f"<password>{core}</password>",
    "sentence": lambda core: f"the password of the database is {core}, keep it",
}  # fmt: skip


def _tar(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo("secret")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "quoted": lambda text: quote(text, safe=""),
    "utf-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "base64 of utf-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 of gzip": lambda text: base64.b64encode(gzip.compress(text.encode())).decode(),
    "base64 of tgz": lambda text: base64.b64encode(_tar(text.encode())).decode(),
    "JSON": lambda text: json.dumps({"value": text}),
    "HTML": lambda text: f"<p>{html.escape(text)}</p>",
    "escaped": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
}


def _with(record: Record, **changes: Any) -> Record:
    return dataclasses.replace(record, **changes)


def _request(
    target: str = "/puppet/v3/other/x", body: bytes = b"", media: str = "text/plain", **changes: Any
) -> Record:
    return Exchange(
        Leg("p", "agent"), Request((("Content-Type", media),), body, target=target, **changes), Response(status=200)
    )


def _response(body: bytes, status: int = 200, target: str = "/puppet/v3/catalog/node1.example?environment=production",
              media: str = "text/plain", **changes: Any) -> Record:  # fmt: skip
    return Exchange(
        Leg("p", "agent"), Request(target=target), Response((("Content-Type", media),), body, status=status, **changes)
    )


def _catalog(**resource: Any) -> list[Record]:
    return talk(catalog(resources=[{"type": "Exec", "title": "x", "parameters": {}} | resource]))


def _log(text: str) -> list[Record]:
    line = {"level": "notice", "source": "Puppet", "message": text}
    return talk(report(logs=[line, line | {"level": "err"}, line | {"source": text}]))


def _event(text: str) -> list[Record]:
    event = {"property": "content", "previous_value": text, "desired_value": text, "message": text, "status": "success"}
    status = {"resource": "File[/a]", "file": text, "events": [event]}
    return talk(report(resource_statuses={"File[/a]": status, f"File[{text}]": status}))


def _error(text: str) -> Record:
    message = f"Server Error: Evaluation Error: '{text}' is no valid value, got {text}"
    return _response(json.dumps({"message": message, "issue_kind": "RUNTIME_ERROR"}).encode(), 500,
                     media="application/json")  # fmt: skip


def _form(text: str) -> Record:
    facts = quote(json.dumps({"name": "node1.example", "values": {"note": text, text: 1}}))
    body = f"environment=production&facts_format=application%2Fjson&facts={quote(facts)}&other={quote(text)}"
    return _request(
        "/puppet/v3/catalog/node1.example", body.encode(), "application/x-www-form-urlencoded", method="POST"
    )


def _chain(text: str) -> Record:
    from cryptography import x509

    ca = pki.make_ca("Puppet CA: puppet.example")
    value = x509.UnrecognizedExtension(
        x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.2.1"), b"\x0c\x81" + bytes([len(text) & 127 | 128]) + text.encode()
    )
    leaf = pki.sign(
        ca, pki.new_key().public_key(), "node1.example", extensions=[x509.Extension(value.oid, False, value)]
    )
    leg = Leg("p", "agent", peer_chain=(leaf.public_bytes(Encoding.DER),))
    return Exchange(leg, Request(target="/puppet/v3/status"), Response(status=200))


def _latin(text: str) -> str:
    return text.encode("utf-8", "replace").decode("latin-1")


PLACES: dict[str, Callable[[str], list[Record]]] = {
    "fact": lambda text: talk(catalog(facts={"note": text, "deep": {"list": [text, {"key": text}]}})),
    "fact's name": lambda text: talk(catalog(facts={text: "x", "deep": {text: 1}})),
    "form": lambda text: [_form(text)],
    "parameter": lambda text: _catalog(parameters={"command": text, "list": [text], "deep": {"a": {"b": text}}}),
    "parameter's name": lambda text: _catalog(parameters={text: "x", "deep": {text: "x"}}),
    "title": lambda text: _catalog(title=text, tags=[text], file=text),
    "log": _log,
    "event": _event,
    "error": lambda text: [_error(text)],
    "web page": lambda text: [_response(f"<html><body><!-- {text} --><p>{text}</p>".encode(), 502, media="text/html")],
    "plain error": lambda text: [_response(f"Could not use '{text}'".encode(), 400)],
    "reason": lambda text: [_response(b"", 500, reason=_latin(text).replace("\n", " "))],
    "file": lambda text: talk(content("modules/a/b", f"a\n{text}\nb".encode())),
    "binary file": lambda text: talk(content("modules/a/b", b"\0\xff" + text.encode() + zlib.compress(text.encode()))),
    "bucket": lambda text: talk(bucket(text.encode())),
    "unknown request": lambda text: [_request(body=text.encode())],
    "unknown JSON": lambda text: [
        _request(body=json.dumps({text: [text, {"a": text}]}).encode(), media="application/json"),
    ],
    "unknown binary": lambda text: [_response(b"\0\x01\xff" + text.encode(), media="application/octet-stream")],
    "header": lambda text: [
        _with(_request(), request=Request((("X-Site", _latin(text)), ("User-Agent", _latin(text))))),
    ],
    "header's name": lambda text: [
        _with(_request(), request=Request(((_latin(text), "x"),)), stripped=(_latin(text),)),
    ],
    "cookie": lambda text: [_with(_request(), request=Request((("Cookie", f"a={_latin(text)}"),)))],
    "query": lambda text: [_request(f"/puppet/v3/other/x?note={quote(text)}&{quote(text)}=1")],
    "path": lambda text: [_request(f"/puppet/v3/file_content/modules/{quote(text)}/{quote(text, safe='')}")],
    "method": lambda text: [_with(_request(), request=Request(method=_latin(text), target="/"))],
    "handshake": lambda text: [Handshake(Leg("h", "agent"), 1.0, f"refused by {text}", culprits=(text,))],
    "gap": lambda text: [Gap(1.0, f"lost {text}")],
    "connection's error": lambda text: [_with(_request(), error=f"closed: {text}")],
    "certificate": lambda text: [_chain(text)],
    "signing request": lambda text: talk(
        csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.4": text[:200]}, "node1.example")),
    ),
    "YAML": lambda text: [_response(f"--- # {quote(text)}\nnote: {json.dumps(text)}\n".encode(), media="text/yaml")],
    "cut JSON": lambda text: [_response(b'{"resources": [{"parameters": {"a": ' + json.dumps(text).encode())],
    "plugins": lambda text: talk(plugins(), content("plugins/lib/x.rb", f"# {text}".encode())),
}  # fmt: skip


class Planted(NamedTuple):
    """A secret in a place."""

    kind: str
    place: str
    encoding: str
    core: str
    records: list[Record]


def planted(seed: int, share: float = 1.0) -> Iterator[Planted]:
    """Yield secrets of all kinds in all places and encodings, each with its records; ``share`` of them."""
    source = random.Random(seed)  # noqa: S311 - nothing to protect
    for kind, place, encoding in itertools.product(KINDS, PLACES, ENCODINGS):
        if source.random() < share:
            secret = core(source)
            yield Planted(kind, place, encoding, secret, PLACES[place](ENCODINGS[encoding](KINDS[kind](secret))))


# -- search -----------------------------------------------------------------------------------------------


def found(cores: list[str], output: bytes) -> list[str]:
    """Return the secrets whose core, or most of it, is in some output, in any encoding."""
    texts = [text.lower() for text in _views(output, 3)]
    return [secret for secret in cores if any(secret[:12].lower() in text for text in texts)]


def _views(output: bytes, depth: int) -> Iterator[str]:
    text = output.decode("latin-1")
    yield text
    if depth == 0 or not output:
        return
    plain = [
        unquote(unquote(text, "latin-1"), "latin-1") if "%" in text else text,
        re.sub(r"\\+u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text,
        text.replace("\0", ""),
        text.replace("\\x00", ""),
        html.unescape(text) if "&" in text else text,
    ]
    for view in {*plain} - {text}:
        yield from _views(view.encode("utf-8", "replace"), depth - 1)
    for run in set(re.findall(r"[0-9a-fA-F]{24,}", text)):
        yield from _views(bytes.fromhex(run[: len(run) // 2 * 2]), depth - 1)
    joined = text.replace("\\n", "").replace("\\/", "/").replace("\n", "")
    for run in {*re.findall(r"[A-Za-z0-9+/_-]{20,}", text), *re.findall(r"[A-Za-z0-9+/_-]{20,}", joined)}:
        for begin in range(4) if len(run) < 400 else (0,):
            piece = run[begin:].replace("-", "+").replace("_", "/")
            yield from _views(_unpacked(base64.b64decode(piece[: len(piece) // 4 * 4])), depth - 1)
    for mark in (b"\x1f\x8b\x08", b"x\x9c"):
        at = output.find(mark)
        while at >= 0:
            yield _unpacked(output[at:]).decode("latin-1")
            at = output.find(mark, at + 1)


def _unpacked(data: bytes) -> bytes:
    if data[:2] not in (b"\x1f\x8b", b"x\x9c"):
        return data
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(data, 2**20)
    except zlib.error:
        return data


def everything(records: Iterable[Record]) -> bytes:
    """All that is in some records, without Content-Encoding."""
    parts: list[bytes] = []
    for record in records:
        parts.append(str(dataclasses.replace(record, seq=0)).encode("utf-8", "replace"))
        parts += [der for leg in record.legs for der in (*leg.peer_chain, *leg.own_chain)]
        if isinstance(record, Exchange):
            for message in (record.request, record.response):
                if message is not None:
                    parts.append(bodies.plain(message))
    return b"\n".join(parts)


def closed(records: list[Record], *, pseudonyms: bool, opened: frozenset[Content] = frozenset()) -> list[Record]:
    """Return records as they may leave."""
    outgoing = Outgoing(pseudonyms=pseudonyms, opened=opened)
    outgoing.learn(lambda: records)
    assert outgoing.unmasked == {}
    return [outgoing.record(record) for record in records]


def leaks(seed: int, share: float, *, pseudonyms: bool) -> list[tuple[str, str, str]]:
    """Return kind, place and encoding of planted secrets that leave."""
    leaking = []
    for secret in planted(seed, share):
        records = [dataclasses.replace(record, seq=number) for number, record in enumerate(secret.records, 1)]
        if found([secret.core], everything(closed(records, pseudonyms=pseudonyms))):
            leaking.append((secret.kind, secret.place, secret.encoding))
    return leaking
