"""Bodies as typed documents. A Struct lists the fields that a rule or a view reads; the rest stays raw.

Declaring a field is checking it: a body whose field has another type is ``Undecodable`` with msgspec's
own message. Field names are the wire's.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import msgspec

from inspector.protocol.bodies import HTML as HTML
from inspector.protocol.catalogs import Catalog as Catalog
from inspector.protocol.catalogs import Edge as Edge
from inspector.protocol.catalogs import FileResource as FileResource
from inspector.protocol.catalogs import Resource as Resource
from inspector.protocol.certificates import Certificate as Certificate
from inspector.protocol.certificates import CertificateRequest as CertificateRequest
from inspector.protocol.certificates import Certificates as Certificates
from inspector.protocol.certificates import RevocationList as RevocationList
from inspector.protocol.certificates import RevocationLists as RevocationLists
from inspector.protocol.certificates import Revoked as Revoked
from inspector.protocol.facts import LEGACY, LEGACY_STARTS, FactLimits, leaves
from inspector.protocol.files import BucketFile as BucketFile
from inspector.protocol.files import Checksum as Checksum
from inspector.protocol.files import FileMetadata as FileMetadata
from inspector.protocol.files import FileMetadatas as FileMetadatas
from inspector.protocol.reports import Event as Event
from inspector.protocol.reports import LogLine as LogLine
from inspector.protocol.reports import Metric as Metric
from inspector.protocol.reports import Report as Report
from inspector.protocol.reports import ResourceStatus as ResourceStatus
from inspector.protocol.tools import CertificateStatus as CertificateStatus
from inspector.protocol.tools import CertificateStatuses as CertificateStatuses
from inspector.protocol.tools import DesiredState as DesiredState
from inspector.protocol.tools import EnvironmentClasses as EnvironmentClasses
from inspector.protocol.tools import Environments as Environments
from inspector.protocol.tools import MasterStatus as MasterStatus


class Undecodable(msgspec.Struct, frozen=True):
    """A body that is not what it should be. A document like the others: traffic is data."""

    reason: str


class Nothing(msgspec.Struct, frozen=True):
    """An empty body where none is needed."""


class Opaque(msgspec.Struct, frozen=True):
    """Content of a file, which may be empty: bytes that mean nothing to the protocol."""

    size: int
    """Bytes after content-decoding."""
    sha256: str


class Text(msgspec.Struct, frozen=True):
    text: str


class Data(msgspec.Struct, frozen=True):
    """A tool's structured body, as it is."""

    value: Any


class ErrorDocument(msgspec.Struct, frozen=True):
    """Why the master refused, whatever shape it came in (docs/protocol.md#error-documents)."""

    message: str
    issue_kind: str | None = None
    stacktrace: bool = False
    """Whether frames of the master's code came along; only up to 4.x."""

    @property
    def html(self) -> bool:
        """True if a web page came, so from a proxy or a load balancer (or Jetty: a path it does not know)."""
        return self.message.startswith(HTML)


class Facts(msgspec.Struct, frozen=True):
    """What an agent says of its node (docs/protocol.md#facts)."""

    name: str
    values: dict[str, Any] = {}
    timestamp: str | None = None
    expiration: str | None = None

    @property
    def puppet_version(self) -> str | None:
        """The agent's version as its facts tell it: the only place before 4.0 (``clientversion`` up to 3)."""
        for fact in ("puppetversion", "clientversion"):
            value = self.values.get(fact)
            if isinstance(value, str):
                return value
        return None

    @property
    def legacy(self) -> list[str]:
        """Flat facts that have a structured successor; 8.x leaves them out."""
        return [name for name in self.values if name in LEGACY or name.startswith(LEGACY_STARTS)]

    @property
    def count(self) -> int:
        """Values, those within structured facts each, as an agent counts them."""
        return sum(1 for _ in leaves(self.values))

    @property
    def size(self) -> int:
        """Bytes as compact JSON."""
        return len(msgspec.json.encode(self.values, enc_hook=str))

    def exceeded(self, limits: FactLimits | None = None) -> list[str]:
        """The limits that an agent would warn of; by default those of 8.x."""
        return list((limits or FactLimits()).exceeded_by(self.values))


class CatalogRequest(msgspec.Struct, frozen=True):
    """The form that asks for a catalog (docs/protocol.md#catalog-request)."""

    environment: str | None = None
    configured_environment: str | None = None
    check_environment: bool = False
    transaction_uuid: str | None = None
    static_catalog: bool = False
    checksum_type: str | None = None
    """As sent: several, the preferred one first, with dots between them."""
    facts_format: str | None = None
    facts: Facts | Undecodable | None = None
    job_uuid: str | None = None


class Node(msgspec.Struct, frozen=True):
    """A node (docs/protocol.md#nodes). The agent uses the environment only."""

    name: str = ""
    environment: str | None = None
    parameters: dict[str, Any] | None = None
    classes: list[str] | dict[str, Any] | None = None


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
    | BucketFile
    | Environments
    | EnvironmentClasses
    | MasterStatus
    | CertificateStatus
    | CertificateStatuses
    | DesiredState
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
