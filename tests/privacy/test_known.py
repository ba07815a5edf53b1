"""Secrets that are known are found in any encoding."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from urllib.parse import quote, quote_plus

import pytest

from inspector.privacy import known
from inspector.privacy.known import KnownSecrets
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
    masked = KnownSecrets([long]).masked(f"a {long} b")
    assert long[:64] not in masked
    assert masked.startswith("a MASKED")
    assert masked.endswith(" b")
    lines = "line one of it\nline two of it\n"
    assert KnownSecrets([lines]).masked("log: line two of it!") == f"log: {MASK}!"


def test_a_bomb_is_masked_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_UNPACKED", 1000)
    secrets = KnownSecrets([SECRET])
    assert secrets.masked(base64.b64encode(gzip.compress(b"a" * 900)).decode()) != MASK
    assert secrets.masked(base64.b64encode(gzip.compress(b"a" * 9000)).decode()) == MASK
