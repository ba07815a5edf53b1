"""A comparison as JSON fits its schema."""

from __future__ import annotations

from inspector.compare import plain
from inspector.text import as_json
from tests.support import json_output
from tests.support.compared import compared, file, run_of


def test_it_fits_the_schema() -> None:
    before = run_of(file("/a", content="one\ntwo\n"), facts={"uptime": 1, "os": "a"})
    after = run_of(file("/a", content="one\n", line=3), file("/b"), facts={"uptime": 2, "os": "b"}, result="changed")
    fields = json_output.valid("diff", as_json(plain.plain(compared(before, after))))
    assert fields["status"] == 1
    assert [each["name"] for each in fields["volatile_facts"]] == ["uptime"]
    assert [(each["section"], each["change"], each["name"], each["part"]) for each in fields["differences"]] == [
        ("catalog", "changed", "File[/a]", "content"),
        ("catalog", "added", "File[/b]", None),
        ("facts", "changed", "os", None),
        ("report", "changed", "status", None),
    ]
    assert fields["differences"][0]["places"] == ["/m/site.pp:1", "/m/site.pp:3"]
    assert {each["kind"] for each in fields["times"]} == {"run", "phase", "pause"}
