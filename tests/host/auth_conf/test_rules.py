"""How masters take a name in ``allow`` or ``deny``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.host.auth_conf.rules import AuthConf, Entry, Refused, Sort, sort_of

if TYPE_CHECKING:
    import pytest


def test_sorts(subtests: pytest.Subtests) -> None:
    for text, sort in [
        ("*", Sort.ANY),
        ("a.example", Sort.NAME),
        ("10.0.0.1", Sort.NAME),
        ("*.example.org", Sort.DOMAIN),
        ("$1", Sort.GROUP),
        ("*.$1", Sort.GROUP),
        ("/$1/", Sort.GROUP),
        ("host", Sort.WORD),
        ("a.example.", Sort.WORD),
        ("me@host", Sort.WORD),
        ("/^a/", Sort.PATTERN),
        ("//", Sort.PATTERN),
        ("/", None),
        ("", None),
        ("a b", None),
        ("**", None),
        ("*.*", None),
        ("é", None),
        ("/a\n/", None),
    ]:
        with subtests.test(text=text):
            assert sort_of(text) is sort


def test_an_entry_in_words() -> None:
    assert str(Entry(allows=False, sort=Sort.ANY, text="*", line=3)) == "deny *"


def test_places() -> None:
    conf = AuthConf(Path("/etc/auth.conf"), "ruby", ())
    assert (conf.place(12), conf.place(None)) == ("auth.conf:12", "built into the master")
    assert str(Refused(3, "why")) == "line 3: why"
