"""Secrets that are known are found in any encoding."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from urllib.parse import quote, quote_plus

import pytest

from inspector.privacy import known
from inspector.privacy.known import KnownSecrets, QuotedSecrets
from inspector.privacy.names import MASK

SECRET = 'cörrect "horse"/7 & more'
BYTES = SECRET.encode()


@pytest.mark.parametrize("written", [
    SECRET, json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False), quote(SECRET), quote_plus(SECRET),
    quote(quote(SECRET)),
    BYTES.hex(), BYTES.hex().upper(), SECRET.encode("utf-16-le").decode("latin-1"), SECRET.encode("utf-16-le").hex(),
    *(base64.b64encode(b"x" * before + BYTES + b"yz").decode() for before in range(4)),
    base64.urlsafe_b64encode(b"??>" + BYTES).decode(), base64.b64encode(SECRET.encode("utf-16-be")).decode(),
    base64.b64encode(gzip.compress(BYTES, mtime=0)).decode(), base64.encodebytes(zlib.compress(BYTES * 9)).decode(),
    gzip.compress(b"a" + BYTES, mtime=0).decode("latin-1"), "\x00\xff" + zlib.compress(BYTES).decode("latin-1"),
    "".join(f"%{byte:02x}" for byte in BYTES), "".join(f"\\u{ord(character):04X}" for character in SECRET),
    quote(base64.b64encode(b"ab" + BYTES).decode()),
])  # fmt: skip
def test_in_any_encoding(written: str) -> None:
    secrets = KnownSecrets([SECRET])
    for text in (written, f"before {written} after", f"a={written}"):
        masked = secrets.masked(text)
        assert MASK in masked
        assert written not in masked


def test_what_is_not_a_secret_stays() -> None:
    secrets = KnownSecrets([SECRET, "abcd", ""])
    for text in ("", "abcd", "nothing", "100%", "a\\b", "YWJjZA==" * 20, "\x1f\x8b\x08broken", "horse" * 1000):
        assert secrets.masked(text) == text
    assert KnownSecrets().masked(SECRET) == SECRET


def test_each_of_several_is_masked_and_the_rest_stays() -> None:
    secrets = KnownSecrets(["first-1", "first-1-longer", "second-2"])
    assert secrets.masked("a first-1-longer, first-1 and second-2.") == f"a {MASK}, {MASK} and {MASK}."


def test_a_long_secret_is_found_in_parts() -> None:
    long = "".join(f"{number:04d}x" for number in range(100))
    assert KnownSecrets([long]).masked(f"a {long} b") == f"a {MASK} b"
    lines = "line one of it\nline two of it\n"
    assert KnownSecrets([lines]).masked("log: line two of it!") == f"log: {MASK}!"


@pytest.mark.parametrize("kind", [KnownSecrets, QuotedSecrets])
def test_of_a_secret_of_any_length_nothing_is_left(kind: type[KnownSecrets | QuotedSecrets]) -> None:
    letters = "".join(chr(0x100 + at) for at in range(300))
    for size in range(known.SHORTEST, len(letters)):
        assert kind([letters[:size]]).masked(f"a {letters[:size]} b") == f"a {MASK} b", size


def test_what_is_left_of_a_quoted_secret_that_was_cut_is_masked() -> None:
    letters = "".join(chr(0x100 + at) for at in range(300))
    for size in (20, 64, 65, 150, 300):
        secrets = QuotedSecrets([letters[:size], "other-secret"])
        assert secrets.masked(f"a {letters[: size - 1]}… b") == f"a {MASK}… b"
        assert secrets.masked(f"a …{letters[1:size]} b") == f"a …{MASK} b"


def test_a_bomb_is_masked_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_UNPACKED", 1000)
    secrets = KnownSecrets([SECRET])
    assert secrets.masked(base64.b64encode(gzip.compress(b"a" * 900)).decode()) != MASK
    assert secrets.masked(base64.b64encode(gzip.compress(b"a" * 9000)).decode()) == MASK
