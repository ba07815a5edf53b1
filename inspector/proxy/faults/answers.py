"""Answers that the proxy gives in the master's place."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.protocol.endpoints import Match


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whole."""

    status: int
    content_type: str
    body: bytes
    more: tuple[tuple[str, str], ...] = ()
    """Further headers."""

    @property
    def reason(self) -> str:
        """The words after the status."""
        return HTTPStatus(self.status).phrase

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        """All headers."""
        headers = [("Content-Type", self.content_type), *self.more, ("Content-Length", str(len(self.body)))]
        return tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)

    def assembled(self, method: str) -> bytes:
        """Return the answer to a request with this method as on the wire."""
        lines = [
            f"HTTP/1.1 {self.status} {self.reason}".encode(),
            *(name + b": " + value for name, value in self.fields),
        ]
        return b"\r\n".join([*lines, b"", b"" if method == "HEAD" else self.body])


def error(status: int, *more: tuple[str, str]) -> Answer:
    """Return an error as a master gives it."""
    text = {"message": "Server Error: a fault injected on purpose (puppet-inspector)", "issue_kind": "RUNTIME_ERROR"}
    return Answer(status, "application/json; charset=utf-8", json.dumps(text).encode(), more)


def no_renewal() -> Answer:
    """Return what a CA answers that does not renew certificates."""
    return Answer(404, "text/plain; charset=utf-8", b"Not Found: this proxy passes no renewal on (puppet-inspector)")


def revocation_lists(pem: bytes) -> Answer:
    """Return CRLs."""
    return Answer(200, "text/plain", pem)


def empty_catalog(match: Match) -> Answer:
    """Return a catalog without resources."""
    environment = match.environment or "production"
    catalog = {
        "tags": [], "name": match.certname or "", "version": 1, "code_id": None, "catalog_uuid": str(uuid.uuid4()),
        "catalog_format": 1, "environment": environment, "resources": [], "edges": [], "classes": [],
    }  # fmt: skip
    if match.dialect == "legacy":
        document = {"document_type": "Catalog", "data": catalog, "metadata": {"api_version": 1}}
        return Answer(200, "text/pson", json.dumps(document).encode())
    return Answer(200, "application/json; charset=utf-8", json.dumps(catalog).encode())
