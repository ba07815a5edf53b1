"""The words that reveal nothing."""

from __future__ import annotations

from inspector.privacy.vocabulary import WORDS
from inspector.protocol import endpoints
from tests.support.secrets import WORD


def test_words_are_plain_and_of_the_field() -> None:
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS)
    assert {"puppet", "catalog", "certificate", "revoked", "debian", "etc"} <= WORDS
    assert not {"hunter", "acme", *WORD.split("-")} & WORDS


def test_the_names_of_endpoints_are_words() -> None:
    for endpoint in endpoints.ENDPOINTS:
        assert set(endpoint.name.split("_")) - {"v4"} <= WORDS, endpoint.name
