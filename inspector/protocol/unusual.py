"""Certificates, signing requests and CRLs that the library refuses and OpenSSL reads, field by field.

For showing only. What verifies a signature or decides who a client is uses the library or OpenSSL's store, and refuses
what those refuse.
"""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtensionOID, NameOID, SignatureAlgorithmOID

from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList, Revoked
from inspector.protocol.der import each_place, places
from inspector.protocol.fields import extension_text, fingerprint, key_id, key_kind, name_of
from inspector.protocol.oids import REQUESTED_EXTENSIONS, oid_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

    from inspector.protocol.der import DerValue

LARGEST = 1 << 18
"""Bytes of the largest certificate, signing request or CRL that is read here."""
_BOOLEAN, _INTEGER, _OCTETS, _OID, _SEQUENCE = 0x01, 0x02, 0x04, 0x06, 0x30
_UTC, _GENERALIZED = 0x17, 0x18
_TEXTS = {0x0C: "utf-8", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
"""Tags of texts and their encodings; others are Latin-1, as OpenSSL shows them."""
_FIRST, _FOURTH = 0xA0, 0xA3
"""Tags of the optional parts: the version of a certificate, attributes, the extensions of a CRL; those of a
certificate."""
_NUMBER, _SERIAL = 320, 64
"""Bits of the longest CRL number, octets of the longest serial number that are read."""
_ALT_NAMES, _CONSTRAINTS = "2.5.29.17", "2.5.29.19"
_KEY_IDENTIFIER, _AUTHORITY, _CRL_NUMBER, _REASON = "2.5.29.14", "2.5.29.35", "2.5.29.20", "2.5.29.21"
_ALT_KINDS = {0xA0: "OtherName", 0x81: "RFC822Name", 0x82: "DNS", 0xA4: "DirectoryName",
              0x86: "UniformResourceIdentifier", 0x87: "IP", 0x88: "RegisteredID"}  # fmt: skip
_REASONS = {1: "keyCompromise", 2: "cACompromise", 3: "affiliationChanged", 4: "superseded", 5: "cessationOfOperation",
            6: "certificateHold", 8: "removeFromCRL", 9: "privilegeWithdrawn", 10: "aACompromise"}  # fmt: skip
_KNOWN = {value.dotted_string for value in vars(ExtensionOID).values() if isinstance(value, x509.ObjectIdentifier)}
_DIGESTS = {"1.2.840.113549.1.1.2": "md2", "1.2.840.113549.1.1.3": "md4"} | {
    value.dotted_string: name.partition("_WITH_")[2].lower().replace("_", "-")
    for name, value in vars(SignatureAlgorithmOID).items()
    if isinstance(value, x509.ObjectIdentifier)
}


class _Value(NamedTuple):
    """A value with the data that it is part of."""

    data: bytes
    place: DerValue

    @property
    def tag(self) -> int:
        return self.place[1]

    @property
    def whole(self) -> bytes:
        return self.data[self.place[0] : self.place[3]]

    @property
    def contents(self) -> bytes:
        return self.data[self.place[2] : self.place[3]]

    def parts(self) -> list[_Value]:
        return [_Value(self.data, place) for place in places(self.data, self.place[2], self.place[3])]


class _Extension(NamedTuple):
    oid: str
    contents: bytes


def first_value(data: bytes) -> bytes:
    """Return the first value in DER, without what follows it. Raises ValueError."""
    for begin, _, _, end in each_place(data, 0, len(data)):
        return data[begin:end]
    raise ValueError("not DER")


def of_version_1(request: bytes) -> bytes:
    """Return a signing request as if its version were 1, the only one that there is: its signature does not fit.

    Raises ValueError.
    """
    version = _signed_part(request).parts()[0]
    if version.tag != _INTEGER or version.place[3] - version.place[2] != 1:
        raise ValueError("not a signing request")
    at = version.place[2]
    return request[:at] + b"\0" + request[at + 1 :]


def signed_part(der: bytes) -> bytes:
    """Return what a certificate, a signing request or a CRL is a signature of. Raises ValueError."""
    return _signed_part(der).whole


def extensions_of_request(request: bytes) -> list[str]:
    """Return the OIDs of the extensions that a signing request (DER) asks for. Raises ValueError."""
    return [extension.oid for extension in _requested(_attributes(_signed_part(request).parts()))]


def certificate(der: bytes) -> Certificate:
    """Return a certificate. Raises ValueError."""
    parts = _signed_part(der).parts()
    if parts[0].tag == _FIRST:
        parts = parts[1:]
    serial, algorithm, issuer, validity, subject, key, *rest = parts
    extensions = [extension for part in rest if part.tag == _FOURTH for extension in _extensions(part.contents)]
    not_before, not_after = validity.parts()
    identity, kind, size = _key(key.whole)
    return Certificate(
        subject=_name(subject),
        common_name=_common_name(subject),
        issuer=_name(issuer),
        serial=_serial(serial),
        not_before=_time(not_before),
        not_after=_time(not_after),
        key=identity,
        key_type=kind,
        key_size=size,
        signature=_digest(algorithm),
        fingerprint=fingerprint(der),
        is_ca=any(_is_ca(extension) for extension in extensions),
        alt_names=_alt_names(extensions),
        der=der,
        extensions=_texts(extensions),
        key_identifier=_identifier(extensions),
        authority_key_identifier=_authority(extensions),
    )


def request(der: bytes) -> CertificateRequest:
    """Return a signing request; nothing is known about its signature. Raises ValueError."""
    parts = _signed_part(der).parts()
    _, subject, key, *_ = parts
    attributes = _attributes(parts)
    extensions = _requested(attributes)
    identity, kind, size = _key(key.whole)
    return CertificateRequest(
        subject=_name(subject),
        common_name=_common_name(subject),
        key=identity,
        key_type=kind,
        key_size=size,
        signature=_digest(_outer(der)[1]),
        fingerprint=fingerprint(der),
        alt_names=_alt_names(extensions),
        extensions=_texts(extensions),
        attributes={
            oid_name(oid): ", ".join(_text(value) for value in values)
            for oid, values in attributes
            if oid not in REQUESTED_EXTENSIONS
        },
        der=der,
    )


def crl(der: bytes) -> RevocationList:
    """Return a CRL. Raises ValueError."""
    parts = _signed_part(der).parts()
    if parts[0].tag == _INTEGER:
        parts = parts[1:]
    algorithm, issuer, last, *rest = parts
    until = [part for part in rest if part.tag in (_UTC, _GENERALIZED)]
    entries = [_revoked(entry) for part in rest if part.tag == _SEQUENCE for entry in part.parts()]
    extensions = [extension for part in rest if part.tag == _FIRST for extension in _extensions(part.contents)]
    number = next((_integer(each.contents) for each in extensions if each.oid == _CRL_NUMBER), None)
    return RevocationList(
        issuer=_name(issuer),
        number=number if number is None or number.bit_length() <= _NUMBER else None,
        last_update=_time(last),
        next_update=_time(until[0]) if until else None,
        revoked=[entry.serial for entry in entries],
        der=der,
        entries=entries,
        signature=_digest(algorithm),
        authority_key_identifier=_authority(extensions),
    )


def _outer(der: bytes) -> list[_Value]:
    found = places(der, 0, len(der))
    parts = _Value(der, found[0]).parts() if found else []
    if len(parts) < 3 or parts[0].tag != _SEQUENCE or not parts[0].parts():
        raise ValueError("not a certificate, signing request or CRL")
    return parts


def _signed_part(der: bytes) -> _Value:
    return _outer(der)[0]


def _inside(data: bytes) -> list[_Value]:
    """Return the parts of the value that some bytes consist of."""
    found = places(data, 0, len(data))
    return _Value(data, found[0]).parts() if found else []


# -- names, keys, times ----------------------------------------------------------------------------------------


def _dotted(oid: bytes) -> str:
    arcs, value = [], 0
    for octet in oid[:40]:
        value = (value << 7) + (octet & 0x7F)
        if not octet & 0x80:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2) if arcs else 0
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:]))) if arcs else ""


def _text(value: _Value) -> str:
    return value.contents.decode(_TEXTS.get(value.tag, "latin-1"), "replace")


def _attributes_of_name(name: _Value) -> Iterator[tuple[str, str]]:
    for group in name.parts():
        for attribute in group.parts():
            oid, value = attribute.parts()[:2]
            yield _dotted(oid.contents), _text(value)


def _name(name: _Value) -> str:
    return ",".join(reversed([_attribute(oid, text) for oid, text in _attributes_of_name(name)]))


def _attribute(oid: str, text: str) -> str:
    try:
        return name_of(x509.Name([x509.NameAttribute(x509.ObjectIdentifier(oid), text, _validate=False)]))
    except (ValueError, TypeError):
        return f"{oid}={text}"


def _common_name(name: _Value) -> str | None:
    names = (text for oid, text in _attributes_of_name(name) if oid == NameOID.COMMON_NAME.dotted_string)
    return next(names, None)


def _key(spki: bytes) -> tuple[str, str, int | None]:
    """Return a key's digest, kind and size."""
    try:
        key = cast("CertificatePublicKeyTypes", serialization.load_der_public_key(spki))
        return key_id(key), *key_kind(key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        algorithm = _inside(spki)[0].parts()[0]
        return hashlib.sha256(spki).hexdigest(), _dotted(algorithm.contents), None


def _digest(algorithm: _Value) -> str:
    return _DIGESTS.get(_dotted(algorithm.parts()[0].contents), "")


def _time(value: _Value) -> float:
    text = value.contents.decode("ascii")
    if value.tag == _UTC:  # of 1950 to 2049
        text = ("19" if text >= "5" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _serial(value: _Value) -> int:
    if value.tag != _INTEGER or len(value.contents) > _SERIAL:
        raise ValueError("not a serial number")
    return int.from_bytes(value.contents, signed=True)


def _integer(contents: bytes) -> int | None:
    found = places(contents, 0, len(contents))
    return int.from_bytes(_Value(contents, found[0]).contents, signed=True) if found else None


# -- extensions and attributes ---------------------------------------------------------------------------------


def _extensions(contents: bytes) -> list[_Extension]:
    found = []
    for part in _inside(contents):
        values = part.parts()
        if len(values) > 1 and values[0].tag == _OID and values[-1].tag == _OCTETS:
            found.append(_Extension(_dotted(values[0].contents), values[-1].contents))
    return found


def _attributes(parts: Iterable[_Value]) -> list[tuple[str, list[_Value]]]:
    """Return the attributes of a signing request, each with its values."""
    found = []
    for attribute in (each for part in parts if part.tag == _FIRST for each in part.parts()):
        oid, *sets = attribute.parts()
        found.append((_dotted(oid.contents), [value for each in sets for value in each.parts()]))
    return found


def _requested(attributes: Iterable[tuple[str, list[_Value]]]) -> list[_Extension]:
    return [
        extension
        for oid, values in attributes
        if oid in REQUESTED_EXTENSIONS
        for value in values
        for extension in _extensions(value.whole)
    ]


def _texts(extensions: Iterable[_Extension]) -> dict[str, str]:
    return {oid_name(each.oid): extension_text(each.contents) for each in extensions if each.oid not in _KNOWN}


def _is_ca(extension: _Extension) -> bool:
    values = _inside(extension.contents) if extension.oid == _CONSTRAINTS else []
    return bool(values) and values[0].tag == _BOOLEAN and values[0].contents != b"\0"


def _alt_names(extensions: Iterable[_Extension]) -> list[str]:
    names = (name for each in extensions if each.oid == _ALT_NAMES for name in _inside(each.contents))
    return [_alt_name(name) for name in names]


def _alt_name(name: _Value) -> str:
    kind = _ALT_KINDS.get(name.tag, "other")
    if kind == "IP" and len(name.contents) in (4, 16):
        return f"IP:{ipaddress.ip_address(name.contents)}"
    return f"{kind}:{_text(name)}" if name.tag in (0x81, 0x82, 0x86) else f"{kind}:{name.contents.hex()}"


def _identifier(extensions: Iterable[_Extension]) -> str | None:
    for extension in extensions:
        if extension.oid == _KEY_IDENTIFIER:
            for found in places(extension.contents, 0, len(extension.contents)):
                return _Value(extension.contents, found).contents.hex(":").upper() or None
    return None


def _authority(extensions: Iterable[_Extension]) -> str | None:
    values = (value for each in extensions if each.oid == _AUTHORITY for value in _inside(each.contents))
    return next((value.contents.hex(":").upper() or None for value in values if value.tag == 0x80), None)


def _revoked(entry: _Value) -> Revoked:
    serial, date, *rest = entry.parts()
    extensions = [extension for part in rest for extension in _extensions(part.whole)]
    code = next((_integer(each.contents) for each in extensions if each.oid == _REASON), None)
    reason = None if code is None else _REASONS.get(code, "unspecified" if code == 0 else str(code))
    return Revoked(_serial(serial), _time(date), reason)
