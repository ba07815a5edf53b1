"""What may leave a capture."""

from __future__ import annotations

import itertools

import pytest

from inspector.privacy import harmless as harmless_module
from inspector.privacy.harmless import Harmless
from inspector.rules import all_rules

NAMES = {"web1.corp.example", "puppet.corp.example", "192.0.2.7"}


@pytest.fixture
def harmless() -> Harmless:
    return Harmless(b"salt", lambda word: word.lower() in NAMES)


HARMLESS = [
    "", "true", "7.23.0", "8140", "0644", "12.5 MiB", "2026-11-22T10:00:00.5+00:00", "x86_64-linux-gnu", "-----",
    "Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error", "Class[Main]",
    "/etc/puppetlabs/code/environments/production/manifests/site.pp:12", "web1.corp.example", "CN=web1.corp.example",
    "puppet:///modules/nginx/nginx.conf", "Puppet/7.23.0 Ruby/2.7.8", "puppet.corp.example:8140", "root@localhost",
    "NoMethodError", "TLSv1.3", "a, b; (c) [d] {e} <f>", "text/plain; charset=utf-8", "openssl-3.0.2", "MASKED",
    "password=MASKED", "-----BEGIN PRIVATE KEY-----", "web1.corp.example.pem", "192.0.2.7",
    "error:0A000086:SSL routines::certificate verify failed", "tlsv13 alert certificate required",
    "error:14094412:SSL routines:ssl3_read_bytes:sslv3 alert bad certificate", "Errno::ECONNREFUSED",
    "error:0308010C:digital envelope routines::unsupported", "key values mismatch", "nested asn1 error",
    "error:0B080074:x509 certificate routines:X509_check_private_key:key values mismatch",
]  # fmt: skip
SECRETS = [
    "hunter2", "hunter2-horse", "Tr0ub4dor&3", "correcthorsebatterystaple", "sk_live_51H8xYz", "AIzaSyD3x",
    "npm_Ab12Cd",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "41111111", "c2VjcmV0", "päßword",
    "00112233445566778899aabbccddeeff", "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "Acme", "puppet2024", "admin-1234",
    "aa:bb:cc:dd:ee:ff", "db7.corp.example", "password123", "123456",
]  # fmt: skip
FRAMES = ["{}", "password is {}", "--pass={}", "'{}'", "/etc/{}/x", "https://a:{}@host/", "<b>{}</b>", "{}."]


def test_what_reveals_nothing_stays(harmless: Harmless) -> None:
    assert [text for text in HARMLESS if harmless.text(text) != text] == []


def test_what_is_not_known_is_withheld(harmless: Harmless) -> None:
    for secret, frame in itertools.product(SECRETS, FRAMES):
        for prose in (False, True) if frame == "'{}'" else (False,):
            assert secret not in harmless.text(frame.format(secret), prose=prose)


def test_in_prose_plain_words_stay_but_nothing_in_quotes(harmless: Harmless) -> None:
    text = "Unicorns refused by Wombat with 'Rainbow over' and token hunter2x"
    assert harmless.text(text, prose=True).startswith("Unicorns refused by Wombat with 'withheld-")
    assert "Rainbow" not in harmless.text(text, prose=True)
    assert "hunter2x" not in harmless.text(text, prose=True)
    assert "Unicorns" not in harmless.text(text)


def test_equal_values_have_equal_stand_ins_in_their_form_and_length(harmless: Harmless) -> None:
    one, other = "x" * 10 + "9" * 300, "y" * 10 + "9" * 300
    assert harmless.text(one) == harmless.text(one) != harmless.text(other)
    assert len(harmless.text(one)) == len(one)
    assert harmless.text(f"a {one}, b") == f"a {harmless.text(one)}, b"
    assert harmless.text(harmless.text(one)) == harmless.text(one)
    digest = "0f" * 32
    assert len(harmless.text(digest)) == 64
    assert harmless.text(f"{{sha256}}{digest}") == f"{{sha256}}{harmless.text(digest)}"
    harmless.digest(digest, "1a" * 32)
    assert harmless.text(f"{{sha256}}{digest}") == "{sha256}" + "1a" * 32
    assert harmless.text(f"{digest[:16]}...") == f"{'1a' * 8}..."
    assert Harmless(b"other").text(one) != harmless.text(one)


def test_numbers_keep_their_type_and_length(harmless: Harmless) -> None:
    assert [harmless.number(value) for value in (0, 8140, -1, 1.5)] == [0, 8140, -1, 1.5]
    made = harmless.number(4111111111111111)
    assert (len(str(made)), type(made)) == (16, int)
    assert made != 4111111111111111
    assert harmless.number(-70000) < 0
    assert harmless.number(3.14159265) == 3.14


def test_numbers_in_a_row_are_no_small_numbers(harmless: Harmless) -> None:
    for text in ("4111 1111 1111 1111", "4111-1111-1111-1111", "12345 67890 12345"):
        assert text not in harmless.text(f"card {text} end")
    assert harmless.text("exit 1 after 12 of 30 tries") == "exit 1 after 12 of 30 tries"


def test_identifiers_of_the_sites_code_stay(harmless: Harmless) -> None:
    harmless.identifier("acme::web_tier")
    harmless.identifier("no identifier: hunter2")
    harmless.identifier("aBcDeFgHiJkLmNoPqRsTuVwX")
    harmless.identifier(7)
    assert harmless.text("Acme::Web_tier in modules/acme/init.pp") == "Acme::Web_tier in modules/acme/init.pp"
    assert "hunter2" not in harmless.text("hunter2")
    assert "aBcDeFgH" not in harmless.text("aBcDeFgHiJkLmNoPqRsTuVwX")


def test_the_longest_form_that_is_harmless_is_no_longer_than_what_is_looked_at(harmless: Harmless) -> None:
    time = "2026-11-28T12:13:44.123456789+00:00"
    assert harmless.text(time) == time
    assert len(time) == harmless_module._LONGEST


def test_an_identifier_that_is_known_is_not_learned_again() -> None:
    learned: list[None] = []
    harmless = Harmless(b"salt", learned=lambda: learned.append(None))
    for _ in range(3):
        harmless.identifier("Acme::Web")
    assert len(learned) == 1


def test_keys_are_names(harmless: Harmless) -> None:
    assert harmless.key("acme_rack_eth0") == "acme_rack_eth0"
    for key in ("sk_live_51H8xYz", "a" * 65, "d41d8cd98f00b204e9800998ecf8427e"):
        assert harmless.key(key) != key


def test_content_keeps_size_and_masks(harmless: Harmless) -> None:
    assert harmless.content(b"") == b""
    for size in (1, 7, 16, 17, 5000):
        assert len(harmless.content(b"\xff" * size)) == size
        assert harmless.content(b"a" * size) != harmless.content(b"b" * size)
    text = b"Acme\n-----BEGIN RSA PRIVATE KEY-----\nMASKEDMASKEDMASKED\n-----END RSA PRIVATE KEY-----\nrest of Acme"
    made = harmless.content(text)
    assert (len(made), b"Acme" in made) == (len(text), False)
    assert b"-----BEGIN RSA PRIVATE KEY-----\nMASKEDMASKEDMASKED" in made


def test_the_titles_of_all_rules_consist_of_harmless_words(harmless: Harmless) -> None:
    """Else a finding in an export could not be read."""
    for rule in all_rules():
        assert harmless.text(rule.title, prose=True) == rule.title


def test_of_a_text_with_nul_only_that_is_left() -> None:
    harmless = Harmless(b"salt")
    for text in ("the\0file", "h\0u\0n\0t\0e\0r\0", "file\0"):
        left = harmless.text(text)
        assert left == harmless.stand_in(text.removesuffix("\0")) + "\0"
        assert harmless.text(left) == left, "it may leave again"
    assert harmless.text("\0") == "\0"
