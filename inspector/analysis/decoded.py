"""Answers that were decoded before: a thousand agents fetch the same lists of plugins, metadata and CRLs.

Documents are frozen, so runs may share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.protocol import decode
from inspector.protocol.kinds import METADATA, Kind

if TYPE_CHECKING:
    from inspector.model import Request, Response
    from inspector.protocol.decode import Decoder
    from inspector.protocol.documents import Document
    from inspector.protocol.endpoints import Endpoint

SHARED = frozenset({*METADATA, Kind.ENVIRONMENT_CHECK, Kind.CA_BUNDLE, Kind.CRL})
"""The kinds of requests with the same answer for many agents."""
LARGEST = 2**20
"""The largest body that is kept (bytes)."""
KEPT = 2**23
"""Bytes of bodies that are kept, at most."""


class _Given(NamedTuple):
    """Everything that decides what an answer means."""

    decoder: Decoder
    method: str
    status: int
    media: str | None
    encoding: str | None
    body: bytes


class DecodedAnswers:
    """Decodes answers, each body of many agents once."""

    def __init__(self) -> None:
        self._known: dict[_Given, Document] = {}
        self._size = 0

    def of(self, endpoint: Endpoint, request: Request, response: Response) -> Document:
        """Decode an answer, or return what it was before."""
        body = response.body
        if endpoint.kind not in SHARED or not 0 < len(body) <= LARGEST or response.lost:
            return decode.answer(endpoint.response, request, response)
        key = _Given(
            endpoint.response, request.method, response.status, response.header("content-type"),
            response.header("content-encoding"), body,
        )  # fmt: skip
        found = self._known.pop(key, None)
        if found is not None:
            self._known[key] = found
            return found
        found = self._known[key] = decode.answer(endpoint.response, request, response)
        self._size += len(body)
        while self._size > KEPT:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._size -= len(oldest.body)
        return found
