"""Bodies become documents, or say why not; hostile bytes never raise and never take for ever."""

from __future__ import annotations

import gzip
import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.host import pki
from inspector.model import Message, Request, Response
from inspector.protocol import bodies, decode
from inspector.protocol import documents as d
from inspector.protocol.bodies import unescape
from inspector.protocol.endpoints import match
from inspector.protocol.files import ChecksumResult
from tests.support.bodies import BODY, FORM, JSON, TABLE, YAML, answered, asked, form

if TYPE_CHECKING:
    from inspector.protocol.decode import Decoder

CA = pki.make_ca("Decode CA")


WRONG: list[tuple[str, Decoder, Message, str]] = [
    ("second part", decode.node, answered(JSON, gzip.compress(BODY) + gzip.compress(BODY), "gzip"), "after its end"),
    ("cut off gzip", decode.node, answered(JSON, gzip.compress(BODY)[:-4], "gzip"), "cut off"),
    ("gzip that is none", decode.node, answered(JSON, BODY, "gzip"), "says it is gzip"),
    ("unknown encoding", decode.node, answered(JSON, BODY, "br"), "unknown content encoding 'br'"),
    ("an HTML page", decode.node, answered("text/html", b"<h1>hello</h1>"), "HTML page"),
    ("empty", decode.node, answered(JSON, b""), "empty"),
    ("another type", decode.node, answered(JSON, b'{"name":7}'), r"\$.name"),
    ("json cut off", decode.catalog, answered(JSON, b'{"name":'), "truncated"),
    ("no PEM", decode.certificates, answered("text/plain", b"<html>"), "no CERTIFICATE in PEM form"),
    ("another PEM", decode.crls, answered("text/plain", pki.pem(CA.certificate)), "no X509 CRL"),
    ("a long field", decode.catalog_request, asked(FORM, b"environment=" + b"x" * 66_000), "'environment' is longer"),
    ("stray percent signs", decode.catalog_request, asked(FORM, b"facts=" + b"%4g" * 10_001), "escape nothing"),
    ("no form", decode.catalog_request, asked(JSON, b"{}"), "with a form"),
    ("yaml that is none", decode.report, asked(YAML, b"--- {"), "no YAML"),
    ("bad json in an error", decode.catalog, answered(JSON, b"<h1>", status=500), "malformed"),
]


@pytest.mark.parametrize(("decoder", "message", "document"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE])
def test_a_body_is_read(decoder: Decoder, message: Message, document: d.Document) -> None:
    assert decoder(message) == document


@pytest.mark.parametrize(("decoder", "message", "reason"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG])
def test_a_wrong_body_says_why(decoder: Decoder, message: Message, reason: str) -> None:
    found = decoder(message)
    assert isinstance(found, d.Undecodable)
    assert re.search(reason, found.reason)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<html><title>502 Bad\n Gateway</title><h1>no</h1>", "502 Bad Gateway"),
        (b"<H1 class='x'>Not &amp; found</H1>", "Not & found"),
        (b"<html><body><p>It &lt;works&gt;<br>not</p>", "It <works> not"),
    ],
)
def test_the_message_of_a_page_is_its_title_or_its_first_words(page: bytes, text: str) -> None:
    found = decode.catalog(answered("text/html", page, status=502))
    assert isinstance(found, d.ErrorDocument)
    assert found.html
    assert found.message.rpartition(": ")[2] == text


def test_facts_that_cannot_be_read_do_not_hide_the_rest_of_the_form() -> None:
    found = decode.catalog_request(asked(FORM, form("%257B", "application/json")))
    assert isinstance(found, d.CatalogRequest)
    assert found.transaction_uuid == "u-1"
    assert isinstance(found.facts, d.Undecodable)
    assert isinstance(decode.catalog_request(asked(FORM, form("e!", "b64_zlib_yaml"))), d.CatalogRequest)


def test_pem_bundles_are_read() -> None:
    bundle = b"CN=text between\n" + pki.pem(CA.certificate) + b"\nmore\n" + pki.pem(CA.certificate)
    found = decode.certificates(answered("text/plain", bundle))
    assert isinstance(found, d.Certificates)
    assert [certificate.common_name for certificate in found.certificates] == ["Decode CA"] * 2
    crls = decode.crls(answered("text/plain", pki.pem(pki.make_crl(CA, [5], 9))))
    assert isinstance(crls, d.RevocationLists)
    assert [(crl.number, crl.revoked) for crl in crls.crls] == [(9, [5])]
    csr = decode.csr(asked("text/plain", pki.pem(pki.make_csr("a.b", pki.new_key()))))
    assert isinstance(csr, d.CertificateRequest)
    assert csr.common_name == "a.b"


@pytest.mark.parametrize("before", range(-3, 4))
def test_an_escape_is_not_cut_in_two_in_a_large_form(before: int) -> None:
    value = b"x" * (2**20 + before) + b"%2B%C3%a9+" * 9
    assert unescape(value) == b"x" * (2**20 + before) + b"+\xc3\xa9 " * 9


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (b"%41%42", b"AB"),
        (b"=41_%3D=%0A=\n", b"=41_==\n=\n"),
        (b"%", b"%"),
        (b"%%41%4g%4", b"%A%4g%4"),
        (b"%2541+%2B", b"%41 +"),
        (b"a b\r\n \xff", b"a b\r\n \xff"),
        (b"%41 \r\n\t", b"A \r\n\t"),
    ],
)
def test_one_layer_of_escapes_is_taken_off(sent: bytes, meant: bytes) -> None:
    assert unescape(sent) == meant == unquote_to_bytes(sent.replace(b"+", b" "))


@given(
    st.lists(st.sampled_from([b"%", b"%41", b"%0a", b"=", b"=\n", b"==", b"%3d", b"_", b" ", b"\r\n", b"4", b"\xff"]))
)
def test_escapes_are_taken_off_as_the_library_does(pieces: list[bytes]) -> None:
    assert unescape(b"".join(pieces)) == unquote_to_bytes(b"".join(pieces))


def test_an_empty_file_is_a_file() -> None:
    empty = d.Opaque(0, hashlib.sha256(b"").hexdigest())
    head = answered("application/octet-stream", b"")
    for target in ("/p/file_content/modules/m/f", "/p/file_content/plugins/f", f"/p/file_bucket_file/md5/{'0' * 32}",
                   "/puppet/v3/static_file_content/modules/m/files/f?code_id=1"):  # fmt: skip
        found = match("GET", target)
        assert found is not None
        assert decode.answer(found.endpoint.response, Request(target=target), head) == empty
    for method in ("HEAD", "PUT"):
        bucket = match(method, target := f"/p/file_bucket_file/md5/{'0' * 32}")
        assert bucket is not None
        assert decode.answer(bucket.endpoint.response, Request(method=method, target=target), head) == d.Nothing()
    assert decode.opaque(answered("", b"", "gzip")) == empty
    assert decode.opaque(answered("", b"", status=304)) == d.Nothing()
    assert decode.opaque(Response((("Content-Length", "0"),), status=200)) == empty
    assert decode.opaque(Response((("Content-Length", "700"),), status=200)) == d.Nothing()


def test_single_escaped_facts_may_hold_a_percent_sign() -> None:
    found = decode.catalog_request(asked(FORM, form(quote_plus('{"name":"a%20b"}'), "application/json")))
    assert isinstance(found, d.CatalogRequest)
    assert found.facts == d.Facts("a%20b")


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"", "Nothing"), (pki.pem(pki.make_ca("CA").certificate), "Certificates"), (b"--- \n...\n", "Text")],
    ids=["nothing", "a certificate", "YAML"],
)
def test_what_a_ca_says_to_a_signing_request(body: bytes, kind: str) -> None:
    """4 and later say nothing; a 3.8 master that signs at once answers with the certificate."""
    response = Response(headers=(("Content-Type", "text/plain"),), body=body, status=200)
    assert type(decode.submitted(response)).__name__ == kind


def test_a_body_that_was_not_recorded_whole_is_not_read() -> None:
    ca, body = pki.pem(pki.make_ca("CA").certificate), b'{"name":"web1"}'
    cut = d.Undecodable(f"only {len(ca)} of its {len(ca) + 9} bytes were recorded")
    assert decode.certificates(Response(body=ca, lost=9, status=200)) == cut
    assert type(decode.node(Response(body=body, status=200, headers=(("Content-Type", JSON),)))) is d.Node
    assert (
        type(decode.node(Response(body=body, lost=9, status=200, headers=(("Content-Type", JSON),)))) is d.Undecodable
    )
    # What unpacks to nothing whole says the same.
    head = Response((("Content-Encoding", "gzip"),), gzip.compress(b"file")[:9], lost=9, status=200, digest="aa")
    assert decode.opaque(head) == d.Undecodable("only 9 of its 18 bytes were recorded")


def test_a_file_that_was_not_recorded_whole_has_its_size_and_digest() -> None:
    assert decode.opaque(Response(body=b"begin", lost=5, status=200, digest="aa")) == d.Opaque(10, "aa")
    assert decode.opaque(Response(body=b"begin", lost=5, status=200)) == d.Undecodable(
        "only 5 of its 10 bytes were recorded"
    )
    put = Request(method="PUT", target=f"/p/file_bucket_file/md5/{'0' * 32}/f", body=b"begin", lost=5, digest="aa")
    assert decode.bucket(put) == d.BucketFile(10, "aa", "md5", "0" * 32, "f", ChecksumResult.UNCHECKABLE)


def test_a_body_is_unpacked_once_for_all_who_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[bytes] = []
    inflate = bodies.inflate

    def counted(data: bytes, wbits: int, name: str) -> bytes:
        unpacked.append(data)
        return inflate(data, wbits, name)

    monkeypatch.setattr(bodies, "inflate", counted)
    packed = gzip.compress(b"text")
    message = Response((("Content-Encoding", "gzip"),), packed, status=200)
    assert [bodies.plain(message) for _ in range(3)] == [b"text"] * 3
    assert unpacked == [packed]
    twice = Response((("Content-Encoding", "gzip, identity"),), packed, status=200)
    assert bodies.plain(twice) == b"text"
    assert bodies.plain(Response((), packed, status=200)) == packed
    with pytest.raises(bodies.Unreadable):
        bodies.plain(Response((("Content-Encoding", "deflate"),), packed, status=200))
