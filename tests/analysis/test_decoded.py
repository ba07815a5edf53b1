"""An answer is decoded as it would be alone, however many were decoded before."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.analysis import decoded
from inspector.analysis.decoded import DecodedAnswers
from inspector.model import Exchange, Response
from inspector.protocol import decode, endpoints
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Request
    from inspector.protocol.endpoints import Endpoint


def answers() -> Iterator[tuple[Endpoint, Request, Response]]:
    """The answers of all samples, and what becomes of them with another head, or cut off."""
    other = (("Content-Type", "text/yaml"),)
    for record in (record for path in SAMPLES for record in records_of(path) if isinstance(record, Exchange)):
        request, response = record.request, record.response
        match = endpoints.match(request.method, request.target)
        if match is None or response is None:
            continue
        yield match.endpoint, request, response
        yield match.endpoint, request, dataclasses.replace(response, status=404)
        yield match.endpoint, request, dataclasses.replace(response, headers=other)
        yield match.endpoint, request, dataclasses.replace(response, body=response.body[:40])
        yield match.endpoint, request, dataclasses.replace(response, lost=9)
        yield match.endpoint, dataclasses.replace(request, method="HEAD"), response


@pytest.mark.parametrize("kept", [decoded.KEPT, 3000, 0])
def test_answers_are_decoded_as_alone(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded, "KEPT", kept)
    memory = DecodedAnswers()
    for _ in range(2):
        for endpoint, request, response in answers():
            assert memory.of(endpoint, request, response) == decode.answer(endpoint.response, request, response)
            assert memory._size == sum(len(key.body) for key in memory._known)
            assert memory._size <= kept


def test_the_same_answer_to_many_agents_is_decoded_once() -> None:
    memory = DecodedAnswers()
    shared = [each for each in answers() if each[0].kind in decoded.SHARED and each[2].body and not each[2].lost]
    first = [memory.of(*each) for each in shared]
    again = [memory.of(endpoint, request, dataclasses.replace(response)) for endpoint, request, response in shared]
    assert len(shared) > 20
    assert all(one is other for one, other in zip(first, again, strict=True))
