"""Hostile bytes never raise, never take for ever, and never grow without bounds."""

from __future__ import annotations

import gzip
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.host import pki
from inspector.model import Message, Request, Response
from inspector.protocol import decode, documents, ruby_yaml
from inspector.protocol import documents as d
from inspector.protocol.bodies import MAX_PACKED
from inspector.protocol.endpoints import ENDPOINTS
from tests.support.bodies import FORM, JSON, PACK, PSON, TABLE, YAML, answered, asked, b64, form
from tests.support.work import work_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.protocol.decode import Decoder

DECODERS = tuple({id(decoder): decoder for row in ENDPOINTS for decoder in (row.request, row.response)}.values())


@pytest.mark.parametrize(("decoder", "message"), [row[1:3] for row in TABLE], ids=[row[0] for row in TABLE])
def test_every_beginning_of_a_body_is_a_document(decoder: Decoder, message: Message) -> None:
    kind = documents.Document.__value__
    for end in range(len(message.body) + 1)[-600:]:
        assert isinstance(decoder(_with(message, message.body[:end])), kind)


def _with(message: Message, body: bytes) -> Message:
    if isinstance(message, Request):
        return Request(message.headers, body, method=message.method, target=message.target)
    assert isinstance(message, Response)
    return Response(message.headers, body, status=message.status)


MEDIA = st.sampled_from([JSON, PSON, YAML, PACK, FORM, "text/plain", "text/html", "", "application/octet-stream"])
CA = pki.make_ca("Hostile CA")
SEEDS = [row[2].body for row in TABLE] + [pki.pem(CA.certificate), pki.pem(pki.make_crl(CA, [1]))]


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Arbitrary bytes, or a good body with a piece replaced."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=300))
    body = draw(st.sampled_from(SEEDS))
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + draw(st.integers(0, 4)) :]


@given(bodies(), MEDIA, st.sampled_from(["", "gzip", "deflate", "identity"]), st.sampled_from([200, 304, 404, 500]))
def test_no_bytes_make_a_decoder_raise(body: bytes, media: str, encoding: str, status: int) -> None:
    for decoder in DECODERS:
        if decoder is not decode.catalog_request:
            assert decoder(answered(media, body, encoding, status)) is not None
        found = decoder(asked(media, body, encoding, target=f"/?{body.decode('latin-1')}"))
        assert isinstance(documents.plain(found), dict)


def alias_bomb(head: bytes = b"") -> bytes:
    """Ten to the power of nine elements in 600 bytes."""
    lines = [head, b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 9)]
    return b"\n  ".join(lines)


def merge_bomb() -> bytes:
    lines = [b"--- ", b"a0: &a0 {x: 1}"]
    lines += [b"a%d: &a%d {<<: [%s]}" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 9)]
    return b"\n".join(lines)


BOMBS: dict[str, Callable[[], tuple[Decoder, Message]]] = {
    "zip": lambda: (decode.anything, answered(JSON, gzip.compress(b" " * (decode.MAX_PLAIN + 1), 9), "gzip")),
    "zip in facts": lambda: (decode.catalog_request, asked(FORM, form(quote_plus(b64(b" " * (ruby_yaml.MAX_BYTES + 1))),
                                                              "b64_zlib_yaml"))),
    "deep json": lambda: (decode.anything, answered(JSON, b"[" * 10_000 + b"]" * 10_000)),
    "deep pson": lambda: (decode.anything,
        answered(PSON, b'{"document_type":"x","data":' * 10_000 + b"1" + b"}" * 10_000)),
    "deep msgpack": lambda: (decode.anything, answered(PACK, b"\x91" * 10_000 + b"\x01")),
    "deep by one level": lambda: (decode.anything, answered(JSON, b"[" * 501 + b"]" * 501)),
    "deep in a field that is not read": lambda: (decode.catalog,
        answered(JSON, b'{"x":' + b"[" * 600 + b"]" * 600 + b"}")),
    "deep msgpack by one level": lambda: (decode.anything, answered(PACK, b"\x91" * 501 + b"\x01")),
    "deep after brackets in strings": lambda: (decode.anything,
        answered(JSON, b'["' + b"]" * 600 + b'\\"",' + b"[" * 600)),
    "100 MB of json": lambda: (decode.anything, answered(JSON, b'["' + b"x" * 100_000_000 + b'"]')),
    "many values": lambda: (decode.anything, answered(JSON, b"[" + b"0," * 4_000_000 + b"0]")),
    "many strings": lambda: (decode.anything, answered(JSON, b'["' + b'["' * 4_000_000)),
    "many lists in msgpack": lambda: (decode.anything, answered(PACK, b"\xdd\x00\x20\x00\x00" + b"\x80" * 0x200000)),
    "much msgpack": lambda: (decode.anything, answered(PACK, b"\xc0" * (MAX_PACKED + 1))),
    "many fields": lambda: (decode.catalog_request, asked(FORM, b"a&" * 10_002)),
    "many encodings": lambda: (decode.anything, answered(JSON, gzip.compress(b"[]"), "gzip," * 50 + "gzip")),
    "yaml aliases": lambda: (decode.anything, answered(YAML, alias_bomb(b"--- \n  a: b"))),
    "yaml aliases in facts": lambda: (decode.facts, asked(YAML, alias_bomb(b"--- \nname: a.b\nvalues:"))),
    "many values in yaml": lambda: (decode.anything, answered(YAML, b"--- [" + b"a," * 700_000 + b"]")),
    "many empty values in yaml": lambda: (decode.anything, answered(YAML, b"--- [" + b"[]," * 350_000 + b"]")),
    "percent signs that escape nothing": lambda: (decode.catalog_request, asked(FORM, b"facts=" + b"%" * 60_000_000)),
    "a field that is no text": lambda: (decode.catalog_request, asked(FORM, b"environment=" + b"%FF" * 20_000_000)),
    "yaml merges": lambda: (decode.anything, answered(YAML, merge_bomb())),
    "yaml that holds itself": lambda: (decode.anything, answered(YAML, b"--- &a [*a]")),
    "pem": lambda: (decode.certificates, answered("text/plain", pki.pem(CA.certificate) * 10_001)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_body_cannot_become_a_large_document(name: str) -> None:
    decoder, message = BOMBS[name]()
    found = decoder(message)
    output = found.facts if isinstance(found, d.CatalogRequest) else found
    assert type(output).__name__ == "Undecodable"  # by name: a report of the failure must not print the bomb


def test_a_number_to_the_base_of_sixty_stays_text() -> None:
    body = b"--- {a: 12:30, b: 1" + b":1" * 500_000 + b"}"
    found = decode.anything(answered(YAML, body))
    assert isinstance(found, d.Data)
    assert isinstance(found.value["b"], str)


def test_deep_yaml_does_not_overflow_the_stack_of_the_process() -> None:
    code = (
        "from inspector.model import Response; from inspector.protocol import decode;"
        "r = Response(headers=(('Content-Type', 'text/yaml'),), body=b'--- ' + b'[' * 200_000, status=200);"
        "print(type(decode.anything(r)).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Undecodable\n")


def test_what_is_kept_of_an_error_is_short() -> None:
    found = decode.node(answered("text/plain", b"x" * 100_000, status=500))
    assert isinstance(found, d.ErrorDocument)
    assert len(found.message) == decode.MAX_TEXT


BOUNDED = """
import gzip, sys
from inspector.model import Request, Response
from inspector.protocol import decode
def decoded(decoder, media, body, encoding=""):
    headers = (("Content-Type", media), ("Content-Encoding", encoding))
    request = Request(headers, body, method="POST")
    found = decoder(request if "form" in media else Response(headers, body, status=200))
    print(type(found).__name__)
J, Y, M, F = "application/json", "text/yaml", "application/x-msgpack", "application/x-www-form-urlencoded"
decoded(decode.anything, J, b"[" + b'{"a":0},' * 6_000_000 + b"0]")
decoded(decode.anything, J, b'["' + b'["' * 20_000_000)
decoded(decode.anything, J, b"[" * 30_000_000 + b"]" * 30_000_000)
decoded(decode.anything, J, gzip.compress(b"[" + b"[]," * 20_000_000 + b"0]", 1), "gzip")
decoded(decode.anything, M, b"\\xdd\\x00\\xf0\\x00\\x00" + b"\\x80" * 0xF00000)
decoded(decode.anything, Y, b"--- [" + b"a," * 5_000_000 + b"]")
decoded(decode.catalog_request, F, b"a&" * 30_000_000)
decoded(decode.catalog_request, F, b"facts=" + b"%41" * 20_000_000)
decoded(decode.certificates, "text/plain", b"-----BEGIN CERTIFICATE-----\\n" * 2_000_000)
# Not ru_maxrss, which begins with that of the process that started this one.
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak) // 1024)
"""


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    done = subprocess.run([sys.executable, "-c", BOUNDED], capture_output=True, text=True, check=False)
    *kinds, peak = done.stdout.split()
    assert kinds == ["Undecodable"] * 7 + ["CatalogRequest", "Undecodable"], done.stderr
    assert int(peak) < 700  # MB, of which some 200 are the bodies themselves


@pytest.mark.slow
def test_large_bodies_are_read_by_libraries() -> None:
    resource = {"type": "File", "title": "/srv/x/file.txt", "tags": ["file", "class", "demo"], "line": 3,
                "file": "/etc/puppetlabs/code/environments/production/modules/demo/manifests/init.pp",
                "parameters": {"ensure": "file", "mode": "0644", "content": 'line "quoted" [x] {y}\n' * 8}}  # fmt: skip
    _assert_linear(decode.catalog, lambda n: answered(JSON, msgspec.json.encode({"resources": [resource] * n})), 6_000)
    line = b'    - !ruby/object:Puppet::Util::Log\n      level: !ruby/sym debug\n      message: "a message, as long"\n'
    head = b"--- !ruby/object:Puppet::Transaction::Report\n  host: a\n  logs: \n"
    _assert_linear(decode.report, lambda n: asked(YAML, head + line * n), 10_000)
    escaped = asked(FORM, b"facts=" + b"%41" * 2_000_000)
    assert work_of(lambda: decode.catalog_request(escaped)) < 1000, "not a step for each character"


def _assert_linear(decoder: Decoder, body: Callable[[int], Message], number: int) -> None:
    half, whole = body(number), body(2 * number)
    assert not isinstance(decoder(whole), d.Undecodable)
    assert work_of(lambda: decoder(whole)) < 2.2 * work_of(lambda: decoder(half))
