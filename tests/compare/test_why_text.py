"""An explanation of a resource as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.compare import why, why_text
from inspector.compare.why import Resources, Why
from inspector.runs.examples import catalog, content, metadata, report, talk
from inspector.text import as_json
from tests.support import json_output
from tests.support.compared import file, gathered

if TYPE_CHECKING:
    from inspector.compare.documents import RunDocuments

NAME = "modules/m/f"
HOSTILE = "\x1b[2J\u202e"


def explained(body: bytes = b"new\n", old: bytes | None = b"old\n", **parameters: object) -> Why:
    resources = [file("/f", source=f"puppet:///{NAME}", **parameters)]
    events = [{"status": "success", "property": "content", "message": f"changed{HOSTILE}\n  more"}]
    statuses = {"File[/f]": {"changed": True, "evaluation_time": 0.5, "events": events}}
    parts = catalog(resources=resources), metadata(NAME, body), content(NAME, body)
    after = gathered(talk(*parts, report(result="changed", resource_statuses=statuses)), "c.sqlite run 2")
    before = None
    if old is not None:
        before = gathered(talk(catalog(resources=resources), metadata(NAME, old), content(NAME, old), report()))
    found = Resources(after)
    applied = found.find("File[/f]")
    assert applied is not None
    return why.explain(found, applied, before)


def printed(found: Why, **options: bool) -> list[str]:
    return [line.text for line in why_text.lines(found, **options)]


def test_lines() -> None:
    lines = printed(explained(mode="0644"))
    assert lines[0] == "File[/f]: changed"
    assert lines[1].endswith("(catalog in record 1, report in record 4)")
    assert lines[2:4] == ["  evaluated in 500 ms", "  event success, content: changed\\x1b[2J\\x202e"]
    assert "  declared in /m/site.pp:1" in lines
    assert '  mode => "0644"' in lines
    at = lines.index(f"  {NAME}: fetched")
    assert lines[at + 2 : at + 4] == ["    fetched in record 3: 200, 4 B, digest right", "    | new"]
    assert lines[-3:] == ["      @@ -1 +1 @@", "      -old", "      +new"]
    assert all(line.isprintable() for line in lines)


def test_what_was_not_fetched_and_a_catalog_that_was_not_given() -> None:
    resources = [file("/f", source=f"puppet:///{NAME}")]
    statuses = {"File[/f]": {"failed": True}, "File[/g]": {"changed": True}}
    parts = metadata(NAME), content(NAME, status=404), report(resource_statuses=statuses)

    def of(ref: str, documents: RunDocuments) -> list[str]:
        found = Resources(documents)
        applied = found.find(ref)
        assert applied is not None
        return printed(why.explain(found, applied))

    got = gathered(talk(catalog(resources=resources), *parts))
    assert "    requested in record 3: 404" in of("File[/f]", got)
    assert "  It is in the report only: the agent generated it." in of("File[/g]", got)
    failed = of("File[/g]", gathered(talk(catalog(status=500, text="no class x"), *parts)))
    assert "(report in record 4)" in failed[1]
    assert (
        "  It is in the report only: the run got no catalog (500 no class x), and the agent took a cached one."
        in failed
    )


def test_binary_content_and_long_texts() -> None:
    lines = printed(explained(b"\0\1"))
    assert any(line.startswith("    2 B, sha256 ") for line in lines)
    long = explained("".join(f"{number}\n" for number in range(100)).encode())
    assert "    | 99" not in printed(long)
    assert "    | 99" in printed(long, full=True)


def test_without_an_earlier_run() -> None:
    assert printed(explained(old=None))[-1] == "No earlier run of this node in the capture to compare with."
    same = printed(explained(b"old\n", old=b"old\n"))
    assert same[-1].startswith("the run before (c.sqlite run 1, ")
    assert same[-1].endswith(") had the same")


def test_json_fits_the_schema() -> None:
    fields = json_output.valid("why", as_json(why_text.fields(explained(mode="0644"))))
    assert (fields["resource"], fields["outcome"], fields["line"]) == ("File[/f]", "changed", 1)
    assert fields["files"][0]["content"] == "new\n"
    assert [difference["section"] for difference in fields["differences"]] == ["files"]
    json_output.valid("why", as_json(why_text.fields(explained(old=None))))
