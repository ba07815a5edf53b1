"""Hostile bytes never raise, never take for ever, and never grow without bounds."""

from __future__ import annotations

import gzip
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import pki
from inspector.model import Message, Request, Response
from inspector.protocol import decode, documents, ruby_yaml
from inspector.protocol import documents as d
from inspector.protocol.endpoints import ENDPOINTS
from tests.protocol.test_decode import CA, FORM, JSON, PACK, PSON, TABLE, YAML, answered, asked, b64, form

if TYPE_CHECKING:
    from inspector.protocol.decode import Decoder

DECODERS = tuple({id(each): each for row in ENDPOINTS for each in (row.request, row.response)}.values())


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


BOMBS: dict[str, tuple[Decoder, Message]] = {
    "zip": (decode.anything, answered(JSON, gzip.compress(b" " * (decode.MAX_PLAIN + 1), 9), "gzip")),
    "zip in facts": (decode.catalog_request, asked(FORM, form(quote_plus(b64(b" " * (ruby_yaml.MAX_BYTES + 1))),
                                                              "b64_zlib_yaml"))),
    "deep json": (decode.anything, answered(JSON, b"[" * 10_000 + b"]" * 10_000)),
    "deep pson": (decode.anything, answered(PSON, b'{"document_type":"x","data":' * 10_000 + b"1" + b"}" * 10_000)),
    "deep msgpack": (decode.anything, answered(PACK, b"\x91" * 10_000 + b"\x01")),
    "yaml aliases": (decode.anything, answered(YAML, alias_bomb(b"--- \n  a: b"))),
    "yaml aliases in facts": (decode.facts, asked(YAML, alias_bomb(b"--- \nname: a.b\nvalues:"))),
    "yaml merges": (decode.anything, answered(YAML, merge_bomb())),
    "yaml that holds itself": (decode.anything, answered(YAML, b"--- &a [*a]")),
    "pem": (decode.certificates, answered("text/plain", pki.pem(CA.certificate) * 10_001)),
}  # fmt: skip


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_body_cannot_become_a_large_document(name: str) -> None:
    decoder, message = BOMBS[name]
    found = decoder(message)
    told = found.facts if isinstance(found, d.CatalogRequest) else found
    assert type(told).__name__ == "Undecodable"  # by name: a report of the failure must not print the bomb


@pytest.mark.timeout(10)
def test_a_number_to_the_base_of_sixty_stays_text() -> None:
    body = b"--- {a: 12:30, b: 1" + b":1" * 500_000 + b"}"
    found = decode.anything(answered(YAML, body))
    assert isinstance(found, d.Data)
    assert isinstance(found.value["b"], str)


@pytest.mark.timeout(60)
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
