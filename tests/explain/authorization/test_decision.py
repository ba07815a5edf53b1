"""Clients and their certificates."""

from __future__ import annotations

import datetime

import msgspec
from cryptography import x509 as cx509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.explain.authorization.decision import (
    ANONYMOUS,
    Client,
    Question,
    is_for,
    name_parts,
    of_certificate,
    of_der,
)
from inspector.host import pki
from inspector.host.auth_conf.rules import Sort
from inspector.protocol import x509
from tests.support.auth_confs import PP_CLI_AUTH
from tests.support.conversations import CA


def test_a_client_has_the_names_of_its_certificate() -> None:
    made = pki.sign(CA, pki.new_key().public_key(), "a.example", ("a.example", "alias.example"))
    client = of_der(made.public_bytes(Encoding.DER))
    assert client.name == "a.example"
    assert client.names == ("a.example", "alias.example", "a.example")
    assert of_der(b"no certificate") == ANONYMOUS
    assert ANONYMOUS.names == ()


def test_extensions_are_known_by_their_numbers() -> None:
    made = pki.sign(CA, pki.new_key().public_key(), "a.example").public_bytes(Encoding.DER)
    certificate = msgspec.structs.replace(
        x509.read_der(made), common_name="a", alt_names=["DNS:a", "IP:::1", "IP:10.0.0.0/8", "RFC822Name:q"],
        extensions={"pp_role": "web", "pp_cli_auth": "true", "1.2": "x"}, der=b"",
    )  # fmt: skip
    assert of_certificate(certificate) == Client(
        "a",
        {"1.3.6.1.4.1.34380.1.1.13": "web", "1.3.6.1.4.1.34380.1.3.39": "true", "1.2": "x"},
        {"dns-name": ("a",), "ip": ("0:0:0:0:0:0:0:1", "10.0.0.0/8"), "rfc822-name": ("q",)},
    )


def test_headers_are_found_in_any_case() -> None:
    question = Question("GET", "/", ANONYMOUS, (("X-Client-DN", "CN=a"),))
    assert question.header("x-client-dn") == "CN=a"
    assert question.header("x-client-cert") is None


def test_a_text_of_another_type_is_another_text() -> None:
    """With PRINTABLESTRING, openssl makes a certificate without the right that it seems to give."""
    extension = cx509.UnrecognizedExtension(cx509.ObjectIdentifier(PP_CLI_AUTH), b"\x13\x04true")
    key = pki.new_key()
    now = CA.certificate.not_valid_before_utc
    name = cx509.Name([cx509.NameAttribute(cx509.NameOID.COMMON_NAME, "a")])
    made = (
        cx509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
        .add_extension(extension, critical=False)
        .sign(CA.key, hashes.SHA256())
    )
    assert of_der(made.public_bytes(Encoding.DER)).extensions == {PP_CLI_AUTH: "\x13\x04true"}


def test_parts() -> None:
    rows: list[tuple[str, list[str]]] = [
        ("A.b.Example", ["example", "b", "a"]),
        ("a.", ["a"]),
        (".a", ["a", ""]),
        ("...", []),
        ("", [""]),
        ("a", ["a"]),
    ]
    for name, parts in rows:
        assert name_parts(name) == parts, name


def test_equal() -> None:
    rows: list[tuple[Sort, str, str, bool]] = [
        (Sort.ANY, "*", "x", True),
        (Sort.NAME, "A.Example", "a.example", True),
        (Sort.NAME, "a.example", "a.example.", True),
        (Sort.DOMAIN, "*.Example", "x.y.example", True),
        (Sort.DOMAIN, "*.example", "example", True),
        (Sort.DOMAIN, "*.b.example", "a.example", False),
        (Sort.WORD, "host", "HOST", True),
        (Sort.WORD, "HOST", "host", False),
        (Sort.WORD, "a.example.", "a.example", False),
        (Sort.GROUP, "$1", "$1", True),
    ]
    for sort, text, name, equal in rows:
        assert is_for(sort, text, name) is equal, sort
