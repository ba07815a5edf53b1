"""Files that differ though the catalog is the same."""

from __future__ import annotations

import hashlib
from typing import Any

from inspector.compare import files
from inspector.compare.differences import Difference, Differences
from inspector.compare.masks import Masks
from inspector.runs.examples import ExamplePart, asked, catalog, content, listing, metadata, report, talk, unanswered
from tests.support.compared import file, gathered

NAME = "modules/m/f"
CATALOG = catalog(resources=[file("/f", source=f"puppet:///{NAME}"), file("/z")])


def compared(before: list[ExamplePart], after: list[ExamplePart], stored: Any = None) -> list[Difference]:
    old, new = (gathered(talk(CATALOG, *parts, report())) for parts in (before, after))
    if stored:
        old.stored = stored
    found = Differences(Masks())
    files.compare(old, new, found)
    return found.found


def test_fetched_in_both_runs() -> None:
    old, new = b"one\ntwo\n", b"one\nthree\n"
    (difference,) = compared([metadata(NAME, old), content(NAME, old)], [metadata(NAME, new), content(NAME, new)])
    assert (difference.address, difference.change, difference.note) == (f"{NAME}/content", "changed", "File[/f]")
    assert difference.lines == ("@@ -1,2 +1,2 @@", " one", "-two", "+three")
    assert difference.before == f"sha256 {hashlib.sha256(old).hexdigest()}, 8 B"


def test_in_sync_before() -> None:
    """The agent had the file: only its digest is known, unless somebody fetched it earlier."""
    parts = [metadata(NAME, b"old\n")], [metadata(NAME, b"new\n"), content(NAME, b"new\n")]
    (difference,) = compared(*parts)
    assert difference.lines == ()
    assert difference.before == f"sha256 {hashlib.sha256(b'old\n').hexdigest()}"
    known = {hashlib.sha256(b"old\n").hexdigest(): b"old\n"}
    (difference,) = compared(*parts, stored=known.get)
    assert difference.lines == ("@@ -1 +1 @@", "-old", "+new")


def test_binary_files_are_compared_by_digest() -> None:
    (difference,) = compared(
        [metadata(NAME, b"\0\1"), content(NAME, b"\0\1")], [metadata(NAME, b"\0\2\3"), content(NAME, b"\0\2\3")]
    )
    assert difference.lines == ()
    assert difference.after.endswith(", 3 B")


def test_the_same_content_by_another_digest_is_no_difference() -> None:
    assert compared([metadata(NAME, algorithm="md5")], [metadata(NAME)]) == []
    assert compared([metadata(NAME, algorithm="md5"), content(NAME)], [metadata(NAME), content(NAME)]) == []


def test_permissions_of_the_masters_file_count_only_where_the_agent_takes_them() -> None:
    def described(owner: int, permissions: str) -> ExamplePart:
        digest = {"type": "sha256", "value": f"{{sha256}}{hashlib.sha256(b'').hexdigest()}"}
        answer = {"path": "/srv/f", "owner": owner, "group": owner, "mode": 420, "type": "file", "checksum": digest}
        return asked(f"file_metadata/{NAME}", answer, query=f"&source_permissions={permissions}")

    assert compared([described(103, "ignore")], [described(100, "ignore")]) == []
    found = compared([described(103, "use")], [described(100, "use")])
    assert [difference.address for difference in found] == [f"{NAME}/owner", f"{NAME}/group"]


def test_not_served_any_more() -> None:
    (difference,) = compared([metadata(NAME)], [metadata(NAME, status=404)])
    assert (difference.address, difference.before, difference.after) == (f"{NAME}/served", "file", "not served (404)")


def test_what_got_no_answer_is_not_served_without_a_status() -> None:
    (difference,) = compared([metadata(NAME)], [unanswered(metadata(NAME))])
    assert difference.after == "not served (no answer)"


def test_files_of_a_directory() -> None:
    found = compared([listing("modules/m/d", {"a": b"1", "b": b"2"})], [listing("modules/m/d", {"a": b"3", "c": b"2"})])
    assert [(each.change, each.address) for each in found] == [
        ("changed", "modules/m/d/a/content"), ("removed", "modules/m/d/b"), ("added", "modules/m/d/c"),
    ]  # fmt: skip


def test_files_in_static_catalogs() -> None:
    def side(digest: str) -> Any:
        described = {
            "path": "/srv/f", "type": "file", "mode": 420, "source": f"puppet:///{NAME}",
            "content_uri": "puppet:///modules/m/files/f",
            "checksum": {"type": "sha256", "value": f"{{sha256}}{digest}"},
        }  # fmt: skip
        resources = [file("/f", source=f"puppet:///{NAME}")]
        return gathered(talk(catalog(resources=resources, code_id=digest, metadata={"/f": described}), report()))

    found = Differences(Masks())
    files.compare(side("aa"), side("bb"), found)
    assert [(each.address, each.before, each.after) for each in found.found] == [
        (f"{NAME}/content", "sha256 aa", "sha256 bb")
    ]


def test_what_a_run_without_its_catalog_did_not_ask_for_is_no_difference() -> None:
    before = gathered(talk(CATALOG, metadata(NAME), report()))
    after = gathered(talk(catalog(status=500), report()))
    found = Differences(Masks())
    files.compare(before, after, found)
    assert found.found == []


def test_secrets_in_files_are_masked() -> None:
    old, new = b"api_key = abcdefgh12345678\nx\n", b"api_key = 12345678abcdefgh\ny\n"
    (difference,) = compared([metadata(NAME, old), content(NAME, old)], [metadata(NAME, new), content(NAME, new)])
    assert "-x" in difference.lines
    assert "abcdefgh" not in repr(difference.lines)
