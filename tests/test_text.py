"""How values are written: moments, plurals, and how long ones are shortened."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from inspector import text

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("width", [10, 11])
def test_what_is_shortened_has_the_width_asked_for(width: int) -> None:
    long = "0123456789abcdef"
    assert text.beginning(long, width) == long[: width - 1] + "…"
    assert text.ends(long, width) == long[:4] + "…" + long[5 - width :]
    assert text.ends(long, width, 2) == "01…" + long[3 - width :]
    for shortened in (text.beginning(long, width), text.ends(long, width), text.ends(long, width, 2)):
        assert len(shortened) == width


def test_what_fits_is_not_shortened() -> None:
    assert text.beginning("0123", 4) == text.ends("0123", 4) == text.excerpt("0123", 4) == "0123"


def test_an_excerpt_says_how_long_the_text_is() -> None:
    assert text.excerpt("x" * 1234, 3) == "xxx… (1,234 characters)"


REASON = "Class[Profile::Web]: parameter 'port' expects an Integer value, got String"
PLACE = "(file: {}/profile/manifests/web/server.pp, line: 33, column: 5)"
NESTED = "Evaluation Error: Error while evaluating a Function Call, "


def test_brief_says_what_is_wrong_and_where() -> None:
    assert text.brief("a\n b\tc") == "a b c"
    assert text.brief(f"Server Error: {REASON}") == REASON
    place = PLACE.format("/etc/puppetlabs/code/environments/production/site")
    whole = f"Server Error: Evaluation Error: Error while evaluating a Resource Statement, {NESTED}{REASON} {place}"
    assert text.brief(f"{whole} on node web1.example.com") == f"{REASON} {place}"
    longer = REASON + ", expected an Integer from 1 to 65535"
    assert text.brief(f"{NESTED}{longer} {place} on node web1.example.com") == f"{longer} {PLACE.format('...')}"


def test_brief_cuts_the_middle_of_a_sentence() -> None:
    """Its end often names what is wrong; behind it stands the place."""
    long = text.brief("Evaluation Error: " + "x" * 5000 + " when the library is present (file: /site.pp, line: 3)")
    assert len(long) == text.ERROR
    assert long.startswith("xxx")
    assert "x…x" in long
    assert long.endswith(" when the library is present (file: /site.pp, line: 3)")
    assert len(text.brief("(file: " * 50_000)) == text.ERROR
    assert text.brief("Error: " * 5000)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (f"Error: Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: {REASON}", REASON),
        (f"Failed to compile catalog for node web1.example: {NESTED}{REASON}", REASON),
        ("500 Internal Server Error: java.io.IOException: No space left on device", "No space left on device"),
        (
            "Server Error: java.util.concurrent.ExecutionException: java.net.ConnectException: Connection refused",
            "Connection refused",
        ),
        (f"Server Error: org.jruby.exceptions.RuntimeError: (PreformattedError) Evaluation Error: {REASON}", REASON),
        ("java.net.UnknownHostException: puppetdb.example", "UnknownHostException: puppetdb.example"),
        ("java.lang.NullPointerException", "java.lang.NullPointerException"),
        ("Internal Server Error: java.lang.NullPointerException", "java.lang.NullPointerException"),
        ("Internal Server Error", "Internal Server Error"),
        ("500 Internal Server Error", "500 Internal Server Error"),
        ("404 Not Found: Could not find environment 'x'", "404 Not Found: Could not find environment 'x'"),
        ("www.example.com: Name or service not known", "www.example.com: Name or service not known"),
        ("", ""),
    ],
)
def test_an_error_begins_with_what_is_wrong(message: str, words: str) -> None:
    assert text.decisive(message) == text.brief(message) == words


def test_an_error_is_as_short_as_it_must_be() -> None:
    message = f"Server Error: {NESTED}{REASON} {PLACE.format('/etc/puppetlabs/code/environments/production/site')}"
    for width in range(20, 200, 7):
        short = text.brief(message, width)
        assert len(short) <= width
        assert short.startswith(REASON[: width // 8])


def test_moments_in_utc_are_cut_not_rounded() -> None:
    time = 1_795_788_359.9996
    assert text.utc(time) == "2026-11-27T14:05:59.999Z"
    assert text.utc_second(time) == "2026-11-27 14:05:59"
    assert text.utc_minute(time) == "2026-11-27 14:05"
    assert text.utc_day(time) == "2026-11-27"
    assert text.utc_in_name(time) == "20261127T140559Z"


def test_one_is_no_plural() -> None:
    assert [text.plural(number, "node") for number in (0, 1, 1000)] == ["0 nodes", "1 node", "1,000 nodes"]
    assert [text.plural(number, "file was", "files were") for number in (1, 2)] == ["1 file was", "2 files were"]


NEVER = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of which nothing is shown."""
BLANK = "\u034f\u115f\u1160\u17b4\u180b\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"
"""Some of what is not in them, and has no picture."""
VARIANTS = "".join(map(chr, (0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), 0x16FE4, 0x1D159,
                             *range(0xE0100, 0xE01F0))))  # fmt: skip
EVERYTHING = [chr(code) for code in (*range(0x20000), *range(0x20000, sys.maxunicode, 97), *range(0xE0000, 0xE1000))]


def test_what_cannot_be_seen_is_written_whatever_its_category() -> None:
    for character in EVERYTHING:
        category = unicodedata.category(character)
        cleaned = text.clean(character)
        if category in NEVER or character in BLANK or (category == "Zs" and character != " "):
            assert cleaned == f"\\x{ord(character):02x}", hex(ord(character))
        else:
            assert cleaned == character or character in VARIANTS, hex(ord(character))
    assert text.clean("".join(EVERYTHING)) == "".join(map(text.clean, EVERYTHING))


def test_names_that_look_alike_look_different() -> None:
    for hidden in "\u200b\u200d\u00ad\u2060\ufeff\u2028\u202e\u2066\ufe0f\U000e0041\u00a0":
        assert text.clean(f"web1{hidden}.example") == f"web1\\x{ord(hidden):02x}.example"


def test_letters_of_all_languages_stay() -> None:
    for words in ("Grüße", "日本語", "नमस्ते", "שלום", "e\u0301", "🦊", "한국어"):
        assert text.clean(words) == words


@pytest.mark.parametrize("written", [text.json_line, text.as_json])
def test_json_is_the_same_data(written: Callable[[Any], str]) -> None:
    # Two surrogates, one behind the other, are one character in JSON.
    everything = [character for character in EVERYTHING if not "\ud801" <= character <= "\udfff"]
    for start in range(0, len(everything), 0x1000):
        characters = "".join(everything[start : start + 0x1000])
        made = written({"a": characters})
        assert json.loads(made) == {"a": characters}
        assert all(text.is_shown(character) or character == "\n" for character in made)


def test_a_command_to_puppetdb_is_named() -> None:
    target = "/pdb/cmd/v1?checksum=5&command=store_report&certname=a.example&version=8"
    assert text.short(target, "m.example") == "/pdb/cmd/v1 store_report a.example"
    assert text.short("/pdb/cmd/v1?command=x%1b[31m") == "/pdb/cmd/v1 x\\x1b[31m"
    assert text.short(f"/pdb/cmd/v1?{'a=b&' * 5000}command=x") == "/pdb/cmd/v1"
