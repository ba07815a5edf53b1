"""Patterns of what is not compared."""

from __future__ import annotations

import pytest

from inspector.compare import patterns
from inspector.compare.patterns import Patterns

SECTIONS = ("catalog", "facts")


@pytest.mark.parametrize(
    ("pattern", "section", "name", "part", "expected"),
    [
        ("File[/etc/motd]", "catalog", "File[/etc/motd]", "mode", True),
        ("File[/etc/motd]", "catalog", "File[/etc/motd]", "", True),
        ("File[/etc/motd]", "catalog", "File[/etc/motd2]", "", False),
        ("file[/ETC/*]", "catalog", "File[/etc/motd]", "", True),
        ("*[*]/mode", "catalog", "File[/etc/motd]", "mode", True),
        ("*[*]/mode", "catalog", "File[/etc/motd]", "owner", False),
        ("Exec", "catalog", "Exec[a]", "", False),
        ("facts:os.*", "facts", "os.name", "", True),
        ("facts:os.*", "catalog", "os.name", "", False),
        ("Facts:os.*", "facts", "os.name", "", True),
        ("os.?ame", "facts", "os.name", "", True),
        ("os.name", "facts", "os_name", "", False),
        ("facts:*", "facts", "anything\nelse", "", True),
        ("a:b", "facts", "a:b", "", True),
        ("File[[ab]]", "catalog", "File[a]", "", False),
    ],
)
def test_covers(pattern: str, section: str, name: str, part: str, expected: bool) -> None:
    assert Patterns([pattern], SECTIONS).cover(section, name, part) is expected


def test_none() -> None:
    assert not Patterns()
    assert not Patterns().cover("facts", "a")
    assert Patterns(["facts:a"], SECTIONS)


def test_a_file_of_patterns() -> None:
    assert patterns.of_lines("# a comment\n\n  File[/a b] \r\nfacts:x\n") == ["File[/a b]", "facts:x"]
