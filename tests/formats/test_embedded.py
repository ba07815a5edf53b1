"""Certificates that bodies contain."""

from __future__ import annotations

import gzip
import json

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.formats import embedded
from inspector.host import pki
from inspector.model import Response


def test_they_are_found_in_text_in_json_and_compressed() -> None:
    ca = pki.make_ca("Puppet CA: puppet.example")
    pem, der = pki.pem(ca.certificate), ca.certificate.public_bytes(Encoding.DER)
    as_json = json.dumps({"a": [pem.decode()]}).encode()
    packed = (("Content-Encoding", "gzip"),)
    for message in (
        Response(body=b"text\n" + pem + pem),
        Response((("Content-Type", "application/json"),), as_json),
        Response(packed, gzip.compress(pem)),
    ):
        assert set(embedded.ders(message)) == {der}
    assert list(embedded.ders(Response(body=b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----"))) == []


def test_a_body_whose_encoding_is_wrong_stays_as_it_is() -> None:
    broken = Response((("Content-Encoding", "gzip"),), b"no gzip")
    assert embedded.unpacked(broken) == (b"no gzip", False)
    assert embedded.plain(broken) == b"no gzip"
