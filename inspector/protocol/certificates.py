"""Certificates, signing requests and revocation lists as plain fields."""

from __future__ import annotations

import msgspec

from inspector.protocol.oids import authorizing

ALREADY = "already has a "
"""Part of the refusal of a signing request for a name of which the CA has a request or a certificate."""
REQUESTED, SIGNED, REVOKED = (f"{ALREADY}{state} certificate" for state in ("requested", "signed", "revoked"))
"""The part that says which one it has (docs/protocol.md#checks-of-a-signing-request)."""


def printed_serial(number: int) -> str:
    """A serial number as ``puppetserver ca list`` prints it: ``0x`` and at least four digits. ``int(text, 16)`` reads
    it, also a negative one, which no CA makes."""
    return f"{'-' if number < 0 else ''}0x{abs(number):04X}"


class CertificateRequest(msgspec.Struct, frozen=True):
    """A PKCS#10 certificate signing request."""

    subject: str
    common_name: str | None
    key: str
    """SHA-256 of the public key (SubjectPublicKeyInfo, DER), hexadecimal: equal keys, equal strings."""
    key_type: str
    key_size: int | None
    signature: str
    """Name of the signature's digest, e.g. ``sha256``; empty if the algorithm has none."""
    fingerprint: str
    """The fingerprint as ``puppet agent --fingerprint`` prints it: SHA-256 over the DER, upper case, colons."""
    alt_names: list[str] = []
    extensions: dict[str, str] = {}
    """The requested extensions, by Puppet's names, without alternative names."""
    attributes: dict[str, str] = {}
    """``challengePassword`` and other custom attributes, by name."""
    der: bytes = b""
    signature_valid: bool | None = None
    """Whether the request is signed with its own key; None if this machine cannot check it."""

    @property
    def authorizations(self) -> dict[str, str]:
        """The requested extensions that give rights: those below Puppet's authorization arc."""
        return {name: value for name, value in self.extensions.items() if authorizing(name)}


class Certificate(msgspec.Struct, frozen=True):
    """One X.509 certificate."""

    subject: str
    common_name: str | None
    issuer: str
    serial: int
    not_before: float
    not_after: float
    """Seconds since the epoch, like every time here."""
    key: str
    """As ``CertificateRequest.key``."""
    key_type: str
    key_size: int | None
    signature: str
    fingerprint: str
    is_ca: bool
    alt_names: list[str] = []
    der: bytes = b""
    extensions: dict[str, str] = {}
    """Puppet's extensions by name, and any other unusual ones."""
    key_identifier: str | None = None
    authority_key_identifier: str | None = None

    @property
    def authorizations(self) -> dict[str, str]:
        """Extensions below Puppet's authorization arc: ``pp_cli_auth`` and others."""
        return {name: value for name, value in self.extensions.items() if authorizing(name)}

    def is_for(self, request: CertificateRequest) -> bool:
        """True if the certificate contains the key of a signing request."""
        return self.key == request.key


class Certificates(msgspec.Struct, frozen=True):
    """A PEM bundle: the CA's, or the agent's certificate alone."""

    certificates: list[Certificate]


class Revoked(msgspec.Struct, frozen=True):
    """One entry of a revocation list."""

    serial: int
    date: float
    reason: str | None = None


class RevocationList(msgspec.Struct, frozen=True):
    issuer: str
    number: int | None
    last_update: float
    next_update: float | None
    revoked: list[int]
    """Serial numbers."""
    der: bytes = b""
    entries: list[Revoked] = []
    """The revoked serial numbers with their dates."""
    signature: str = ""
    authority_key_identifier: str | None = None


class RevocationLists(msgspec.Struct, frozen=True):
    """A PEM bundle of CRLs: Puppet wants one for each CA of the chain."""

    crls: list[RevocationList]
