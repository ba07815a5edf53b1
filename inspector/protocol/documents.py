"""Bodies as typed documents. A Struct lists the fields that a rule or a view reads; the rest stays raw.

A declared field is also checked: a body whose field has another type is ``Undecodable`` with msgspec's own message.
Field names are those on the wire.

This module is also the one namespace of all documents (``documents as d``; ``d.Catalog``): those with code of their own
are defined in ``catalogs``, ``certificates``, ``facts``, ``files`` and ``reports``.
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


class Undecodable(msgspec.Struct, frozen=True):
    """A malformed body. It is a document like the others, because traffic is data."""

    reason: str


class Nothing(msgspec.Struct, frozen=True):
    """An empty body, where none is necessary."""


class Opaque(msgspec.Struct, frozen=True):
    """Content of a file, which may be empty: bytes without meaning for the protocol."""

    size: int
    """Bytes after content-decoding."""
    sha256: str


class Text(msgspec.Struct, frozen=True):
    text: str


class Data(msgspec.Struct, frozen=True):
    """A tool's structured body, unchanged."""

    value: Any


NO_ENVIRONMENT = "Could not find environment"
"""What a master answers, to any request, if it does not have the environment in it (R09)."""


class ErrorDocument(msgspec.Struct, frozen=True):
    """The reason of a refusal, in any format that masters send (docs/protocol.md#error-documents)."""

    message: str
    issue_kind: str | None = None
    stacktrace: bool = False
    """Whether stack frames of the master's code are included; only up to 4.x."""

    @property
    def no_environment(self) -> bool:
        """Whether the master does not have the environment of the request, whatever was asked for."""
        return NO_ENVIRONMENT in self.message

    @property
    def html(self) -> bool:
        """True for a web page, which comes from a proxy or a load balancer (or from Jetty: an unknown path)."""
        return self.message.startswith(HTML)


class Facts(msgspec.Struct, frozen=True):
    """An agent's facts about its node (docs/protocol.md#facts)."""

    name: str
    values: dict[str, Any] = {}
    timestamp: str | None = None
    expiration: str | None = None

    @property
    def puppet_version(self) -> str | None:
        """The agent's version according to its facts: the only source before 4.0 (``clientversion`` up to 3)."""
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
        """The number of values as an agent counts them, including each value within structured facts."""
        return sum(1 for _ in leaves(self.values))

    @property
    def size(self) -> int:
        """The size as compact JSON, in bytes."""
        return len(msgspec.json.encode(self.values, enc_hook=str))

    def exceeded(self, limits: FactLimits | None = None) -> list[str]:
        """The limits that an agent would warn about; by default those of 8.x."""
        return list((limits or FactLimits()).exceeded_by(self.values))


class CatalogRequest(msgspec.Struct, frozen=True):
    """The form that requests a catalog (docs/protocol.md#catalog-request)."""

    environment: str | None = None
    configured_environment: str | None = None
    check_environment: bool = False
    transaction_uuid: str | None = None
    static_catalog: bool = False
    checksum_type: str | None = None
    """As sent: several, the preferred one first, separated by dots."""
    facts_format: str | None = None
    facts: Facts | Undecodable | None = None
    job_uuid: str | None = None


class Node(msgspec.Struct, frozen=True):
    """A node (docs/protocol.md#nodes). The agent reads only the environment."""

    name: str = ""
    environment: str | None = None
    parameters: dict[str, Any] | None = None
    classes: list[str] | dict[str, Any] | None = None


class Command(msgspec.Struct, frozen=True):
    """What a master stores in PuppetDB (docs/protocol.md#endpoint-puppetdb_command)."""

    command: str
    """Its name in words: ``replace facts``."""
    version: str | None
    certname: str | None
    """The node's, in the URL."""
    producer_timestamp: str | None
    transaction_uuid: str | None
    """That of the node's run; facts have none."""
    payload: Facts | Catalog | Report | Data | Undecodable
    """Data of a command that is not one of the three, or of another version."""


# -- responses for tools and monitoring (docs/protocol.md#endpoints-for-tools), as far as they are read ----------------


class Environment(msgspec.Struct, frozen=True):
    settings: dict[str, Any] = {}


class Environments(msgspec.Struct, frozen=True):
    environments: dict[str, Environment]
    search_paths: list[str] = []


class ClassParameter(msgspec.Struct, frozen=True):
    name: str
    type: str | None = None
    default_literal: Any = None
    default_source: str | None = None


class PuppetClass(msgspec.Struct, frozen=True):
    name: str
    params: list[ClassParameter] = []


class ClassFile(msgspec.Struct, frozen=True):
    path: str
    classes: list[PuppetClass] = []
    error: str | None = None
    """Why the file could not be parsed; replaces the classes."""


class EnvironmentClasses(msgspec.Struct, frozen=True):
    name: str
    files: list[ClassFile] = []


class MasterStatus(msgspec.Struct, frozen=True):
    """``status/any``: of a Ruby master."""

    is_alive: bool
    version: str | None = None


class CertificateStatus(msgspec.Struct, frozen=True):
    """A certificate or a signing request, as listed by the CA."""

    name: str
    state: str | None = None
    """``requested``, ``signed`` or ``revoked``."""
    fingerprint: str | None = None
    fingerprints: dict[str, str] = {}
    dns_alt_names: list[str] | None = None
    subject_alt_names: list[str] | None = None
    authorization_extensions: dict[str, Any] | None = None
    serial_number: int | str | None = None
    not_before: str | None = None
    not_after: str | None = None


class CertificateStatuses(msgspec.Struct, frozen=True):
    certificates: list[CertificateStatus]


class DesiredState(msgspec.Struct, frozen=True):
    """A tool's request to change the state of a certificate at the CA."""

    desired_state: str
    cert_ttl: int | str | None = None
    force: bool = False
    """Revoke by serial number although it is the certificate in use (openvox-ca)."""


type Document = (
    Undecodable
    | Nothing
    | Opaque
    | Text
    | Data
    | ErrorDocument
    | Facts
    | CatalogRequest
    | Command
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
    """A document as a JSON-able structure; ``kind`` names its type. DER is left out, other bytes are Base64."""
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
        return str(value)  # not in JSON, but in YAML and msgpack
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
