"""The list of differences: masks, identities, what is ignored."""

from __future__ import annotations

from inspector.compare.differences import Differences, Patterns, Section, patterns_in
from inspector.compare.masks import Masks


def test_kinds_of_change() -> None:
    found = Differences(Masks())
    found.add(Section.FACTS, "a", "", None, 1)
    found.add(Section.FACTS, "b", "", 1, None)
    found.add(Section.FACTS, "c", "x", 1, 2)
    assert [(each.change, each.address) for each in found.found] == [
        ("added", "a"), ("removed", "b"), ("changed", "c/x"),
    ]  # fmt: skip


def test_texts() -> None:
    found = Differences(Masks())
    found.add(Section.CATALOG, "a", "", "one line", "another")
    found.add(Section.CATALOG, "a", "", "two\nlines\n", "two\nmore\n")
    found.add(Section.CATALOG, "a", "", "sha256 1", "sha256 2", texts=("x\n", "y\n"))
    assert [each.lines for each in found.found] == [
        (), ("@@ -1,2 +1,2 @@", " two", "-lines", "+more"), ("@@ -1 +1 @@", "-x", "+y"),
    ]  # fmt: skip


def test_names_are_masked_too() -> None:
    found = Differences(Masks())
    found.add(Section.CATALOG, "Exec[mysql -u root password=hunter2hunter2]", "", None, {})
    assert "hunter2" not in found.found[0].name


def test_notes_are_masked() -> None:
    found = Differences(Masks())
    found.add(Section.REPORT, "a", "", "x", "y", note="password=hunter2hunter2")
    assert "hunter2" not in found.found[0].note


def test_identity_depends_on_the_values_and_not_on_the_agent() -> None:
    def identity(name: str, before: object, after: object, **more: bool) -> str:
        found = Differences(Masks(), names={name: "certname"})
        found.add(Section.CATALOG, f"File[/{name}]", "x", before, after, **more)  # type: ignore[arg-type]
        return found.found[0].identity

    assert identity("a.example", "for a.example", 1) == identity("b.example", "for b.example", 1)
    assert identity("a.example", 1, 2) != identity("a.example", 1, 3)
    assert identity("a.example", "s1", "s2", sensitive=True) != identity("a.example", "s1", "s3", sensitive=True)


def test_ignored() -> None:
    found = Differences(Masks(), Patterns(["a/x"], Section))
    assert found.ignores(Section.FACTS, "a", "x")
    found.add(Section.FACTS, "a", "x", 1, 2)
    found.add(Section.FACTS, "a", "y", 1, 2)
    assert (len(found.found), found.ignored) == (1, {Section.FACTS: 1})


SECTIONS = ("catalog", "facts")


def test_covers() -> None:
    rows: list[tuple[str, str, str, str, bool]] = [
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
    ]
    for pattern, section, name, part, expected in rows:
        assert Patterns([pattern], SECTIONS).cover(section, name, part) is expected, pattern


def test_none() -> None:
    assert not Patterns()
    assert not Patterns().cover("facts", "a")
    assert Patterns(["facts:a"], SECTIONS)


def test_a_file_of_patterns() -> None:
    assert patterns_in("# a comment\n\n  File[/a b] \r\nfacts:x\n") == ["File[/a b]", "facts:x"]
