"""Bodies as typed documents. A Struct lists the fields that a rule or a view reads; the rest stays raw.

Declaring a field is checking it: a body whose field has another type is ``Undecodable`` with msgspec's
own message. Field names are the wire's.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import msgspec


class Undecodable(msgspec.Struct, frozen=True):
    """A body that is not what it should be. A document like the others: traffic is data."""

    reason: str


class Nothing(msgspec.Struct, frozen=True):
    """An empty body where none is needed."""


class Opaque(msgspec.Struct, frozen=True):
    """Content of a file: bytes that mean nothing to the protocol."""

    size: int
    """Bytes after content-decoding."""
    sha256: str


class Text(msgspec.Struct, frozen=True):
    text: str


class Data(msgspec.Struct, frozen=True):
    """A tool's structured body, as it is."""

    value: Any


class ErrorDocument(msgspec.Struct, frozen=True):
    """Why the master refused, whatever shape it came in (protocol 1.2.1)."""

    message: str
    issue_kind: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """Protocol 3.1."""

    name: str
    values: dict[str, Any] = {}
    timestamp: str | None = None

    @property
    def puppet_version(self) -> str | None:
        """The agent's version as its facts tell it: the only place before 4.0 (``clientversion`` up to 3)."""
        for fact in ("puppetversion", "clientversion"):
            value = self.values.get(fact)
            if isinstance(value, str):
                return value
        return None


class CatalogRequest(msgspec.Struct, frozen=True):
    """The form that asks for a catalog (protocol 2.7)."""

    environment: str | None = None
    configured_environment: str | None = None
    check_environment: bool = False
    transaction_uuid: str | None = None
    static_catalog: bool = False
    checksum_type: str | None = None
    facts_format: str | None = None
    facts: Facts | Undecodable | None = None


class Resource(msgspec.Struct, frozen=True):
    type: str
    title: str
    parameters: dict[str, Any] = {}
    file: str | None = None
    line: int | None = None
    exported: bool = False
    sensitive_parameters: list[str] = []

    @property
    def ref(self) -> str:
        return f"{self.type}[{self.title}]"


class Catalog(msgspec.Struct, frozen=True):
    """Protocol 3.2. An empty one with another environment is the environment check's answer (2.7)."""

    name: str = ""
    environment: str | None = None
    version: int | str | float | None = None
    catalog_uuid: str | None = None
    code_id: str | None = None
    catalog_format: int | None = None
    resources: list[Resource] = []
    classes: list[str] = []


class Node(msgspec.Struct, frozen=True):
    """Protocol 3.4. The agent uses the environment only."""

    name: str = ""
    environment: str | None = None


class Checksum(msgspec.Struct, frozen=True):
    type: str
    value: str


class FileMetadata(msgspec.Struct, frozen=True):
    """Protocol 3.3."""

    path: str = ""
    relative_path: str | None = None
    type: str = ""
    checksum: Checksum | None = None
    links: str | None = None
    destination: str | None = None
    mode: int | str | None = None


class FileMetadatas(msgspec.Struct, frozen=True):
    files: list[FileMetadata]


class LogLine(msgspec.Struct, frozen=True):
    level: str = ""
    message: str = ""
    source: str | None = None


class ResourceStatus(msgspec.Struct, frozen=True):
    failed: bool | None = None
    changed: bool | None = None
    skipped: bool | None = None
    out_of_sync: bool | None = None


class Report(msgspec.Struct, frozen=True):
    """Protocol 3.5, formats 2 to 12."""

    host: str = ""
    status: str | None = None
    time: str | None = None
    environment: str | None = None
    transaction_uuid: str | None = None
    catalog_uuid: str | None = None
    configuration_version: int | str | float | None = None
    report_format: int | None = None
    puppet_version: str | None = None
    noop: bool | None = None
    corrective_change: bool | None = None
    cached_catalog_status: str | None = None
    logs: list[LogLine] = []
    resource_statuses: dict[str, ResourceStatus] = {}


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
    """As ``puppet agent --fingerprint`` prints it: SHA-256 over the DER, upper case, colons."""
    alt_names: list[str] = []
    extensions: dict[str, str] = {}
    attributes: dict[str, str] = {}


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


class Certificates(msgspec.Struct, frozen=True):
    """A PEM bundle: the CA's, or the agent's certificate alone."""

    certificates: list[Certificate]


class RevocationList(msgspec.Struct, frozen=True):
    issuer: str
    number: int | None
    last_update: float
    next_update: float | None
    revoked: list[int]
    """Serial numbers."""
    der: bytes = b""


class RevocationLists(msgspec.Struct, frozen=True):
    """A PEM bundle of CRLs: Puppet wants one for each CA of the chain."""

    crls: list[RevocationList]


type Document = (
    Undecodable
    | Nothing
    | Opaque
    | Text
    | Data
    | ErrorDocument
    | Facts
    | CatalogRequest
    | Catalog
    | Node
    | FileMetadata
    | FileMetadatas
    | Report
    | CertificateRequest
    | Certificates
    | RevocationLists
)


def plain(document: Document | None) -> dict[str, Any] | None:
    """A document as JSON-able structure, which one under ``kind``; DER left out, other bytes in Base64."""
    if document is None:
        return None
    fields = msgspec.to_builtins(document, enc_hook=str, builtin_types=(bytes,))
    cleaned: dict[str, Any] = _plain(fields)
    return {"kind": type(document).__name__} | cleaned


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items() if key != "der" or not isinstance(item, bytes)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has none, YAML and msgpack have
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
