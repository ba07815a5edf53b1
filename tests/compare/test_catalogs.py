"""Two catalogs differ in what an agent would do, and in nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inspector.compare.differences import Patterns, Section
from tests.support.compared import brief, decoded, file, found, resource


def changes(before: list[dict[str, Any]], after: list[dict[str, Any]], **options: Any) -> Any:
    return brief(found(decoded(before), decoded(after), **options).found)


def test_added_removed_and_changed() -> None:
    before = [file("/a", mode="0644", owner="root"), file("/gone", ensure="file")]
    after = [file("/a", mode="0600", group="adm"), file("/new", ensure="file")]
    assert changes(before, after) == [
        ("changed", "File[/a]/mode", "0644", "0600"),
        ("removed", "File[/a]/owner", "root", None),
        ("added", "File[/a]/group", None, "adm"),
        ("removed", "File[/gone]", {"ensure": "file"}, None),
        ("added", "File[/new]", None, {"ensure": "file"}),
    ]


def test_files_and_lines_are_shown_and_are_no_change() -> None:
    assert changes([file("/a", line=1)], [file("/a", line=9)]) == []
    (difference,) = found(decoded([file("/a", line=1, mode="1")]), decoded([file("/a", line=9, mode="2")])).found
    assert difference.places == ("/m/site.pp:1", "/m/site.pp:9")


def test_the_same_in_other_words() -> None:
    rows: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
        ([resource("File", "/a/")], [resource("file", "/a")]),
        ([resource("Class", "Main")], [resource("Class", "main")]),
        ([file("/a"), file("/b")], [file("/b"), file("/a")]),
        ([file("/a", x={"__ptype": "Binary", "__pvalue": "AAEC"})], [file("/a", x="AAEC")]),
        ([file("/a", x=None)], [file("/a")]),
        ([file("/a", tags=["x"])], [file("/a", tags=["x"])]),
        ([file("/a", require="File[/b]"), file("/b")], [file("/a", require=["File[/b/]"]), file("/b")]),
        ([file("/a", require=["File[b]", "File[c]"]), file("b", path="/b"), file("c", alias="d")],
         [file("/a", require=["File[d]", "File[/b]"]), file("b", path="/b"), file("c", alias="d")]),
    ]  # fmt: skip
    for before, after in rows:
        assert changes(before, after) == [], before
        assert changes(after, before) == [], before


def test_true_is_not_one() -> None:
    assert changes([file("/a", x=1)], [file("/a", x=True)]) == [("changed", "File[/a]/x", 1, True)]
    assert changes([file("/a", x={"y": [0]})], [file("/a", x={"y": [False]})]) == [
        ("changed", "File[/a]/x", {"y": [0]}, {"y": [False]})
    ]


def test_another_title_of_the_same_file_is_one_change() -> None:
    before, after = [file("conf", path="/etc/c", mode="1")], [file("/etc/c", mode="2")]
    assert changes(before, after) == [
        ("changed", "File[/etc/c]/title", "conf", "/etc/c"),
        ("removed", "File[/etc/c]/path", "/etc/c", None),
        ("changed", "File[/etc/c]/mode", "1", "2"),
    ]


def test_titles_that_are_numbers() -> None:
    number = [resource("Notify", "1")]
    sent = [{**number[0], "title": 1}]
    assert changes(number, sent) == []
    assert changes(sent, [resource("Notify", "2")]) == [
        ("removed", "Notify[1]", {}, None), ("added", "Notify[2]", None, {}),
    ]  # fmt: skip


def test_relationships() -> None:
    nodes = [file("/b"), file("/c")]
    assert changes(
        [file("/a", require="File[/b]"), *nodes], [file("/a", require=["File[/b]", "File[/c]"]), *nodes]
    ) == [("changed", "File[/a]/require", "File[/b]", ["File[/b]", "File[/c]"])]
    assert changes([file("/a", before="File[/b]"), *nodes], [file("/a", notify="File[/b]"), *nodes]) == [
        ("removed", "File[/a]/before", "File[/b]", None), ("added", "File[/a]/notify", None, "File[/b]"),
    ]  # fmt: skip


def test_a_new_cycle() -> None:
    before = [file("/a", require="File[/b]"), file("/b")]
    after = [file("/a", require="File[/b]"), file("/b", require="File[/a]")]
    cycle = ("added", "File[/a]/cycle", None, ["File[/a]", "File[/b]"])
    assert changes(before, after) == [("added", "File[/b]/require", None, "File[/a]"), cycle]
    assert changes(after, before) == [("removed", "File[/b]/require", "File[/a]", None)]
    assert cycle not in changes(after, [*after, file("/c")])


def test_containers() -> None:
    resources = [resource("Class", "A"), resource("Class", "B"), file("/x"), file("/y")]
    before = decoded(resources, [("Class[A]", "File[/x]"), ("Class[A]", "File[/y]")])
    after = decoded(resources, [("Class[A]", "File[/y]"), ("Class[B]", "File[/x]")])
    assert brief(found(before, after).found) == [("changed", "File[/x]/container", "Class[A]", "Class[B]")]
    assert found(before, decoded(resources, [("Class[A]", "File[/y]"), ("Class[A]", "File[/x]")])).found == []


def test_containers_of_what_is_new_are_part_of_it() -> None:
    before = decoded([resource("Class", "A")])
    after = decoded([resource("Class", "A"), file("/x")], [("Class[A]", "File[/x]")])
    assert brief(found(before, after).found) == [("added", "File[/x]", None, {})]


def test_exported_and_tags() -> None:
    before, after = [file("/a") | {"tags": ["x", "y"]}], [file("/a") | {"tags": ["y", "z"], "exported": True}]
    assert changes(before, after) == [("changed", "File[/a]/exported", False, True)]
    assert ("changed", "File[/a]/tags", ["x", "y"], ["y", "z"]) in changes(before, after, tags=True)
    assert changes(before, [file("/a") | {"tags": ["y", "x"]}], tags=True) == []


def test_texts_of_several_lines_are_compared_line_by_line() -> None:
    before, after = [file("/a", content="one\ntwo\n")], [file("/a", content="one\nthree\n")]
    (difference,) = found(decoded(before), decoded(after)).found
    assert difference.lines == ("@@ -1,2 +1,2 @@", " one", "-two", "+three")


def test_secrets_are_compared_and_not_shown() -> None:
    def made(secret: str) -> Any:
        marked = {"__ptype": "Sensitive", "__pvalue": secret}
        return [
            file("/listed", sensitive=["content"], content=f"{secret}\n"), file("/rich", content=marked),
            file("/within", x=[{"y": marked}]), file("/elsewhere", content=f"a\npassword={secret}\n"),
            resource("App", "x", db_password=f"{secret}!"),
        ]  # fmt: skip

    differences = found(decoded(made("hunter2-old")), decoded(made("hunter2-new"))).found
    assert [each.address for each in differences] == [
        "File[/listed]/content", "File[/rich]/content", "File[/within]/x", "File[/elsewhere]/content",
        "App[x]/db_password",
    ]  # fmt: skip
    assert "hunter2" not in repr(differences)
    assert differences[0].before == differences[0].after == "MASKED"
    assert differences[0].note == "differs in what is masked"
    assert found(decoded(made("hunter2-old")), decoded(made("hunter2-old"))).found == []


def test_a_secret_is_not_shown_of_what_is_only_on_one_side() -> None:
    (difference,) = found(decoded([]), decoded([file("/a", sensitive=["content"], content="hunter2-new")])).found
    assert difference.after == {"content": "MASKED"}


def test_a_value_that_is_marked_now() -> None:
    before, after = [file("/a", content="abc")], [file("/a", sensitive=["content"], content="abc")]
    (difference,) = found(decoded(before), decoded(after)).found
    assert difference.note == "the same value, now marked as sensitive"
    assert "abc" not in repr(difference)


def test_several_with_one_reference_are_compared_one_by_one() -> None:
    one, other = ({"type": "Notify", "title": "x", "parameters": {"message": text}} for text in ("a", "b"))
    assert changes([one], [one, one]) == [("added", "Notify[x]", None, {"message": "a"})]
    assert changes([one, one], [one, other]) == [("changed", "Notify[x]/message", "a", "b")]


def test_relationships_that_are_no_plain_text_are_compared_too() -> None:
    rows: list[tuple[object, object]] = [
        ({"__ptype": "Deferred", "name": "a", "arguments": []}, {"__ptype": "Deferred", "name": "b", "arguments": []}),
        (None, {"__ptype": "Deferred", "name": "b", "arguments": []}),
        ({"__ptype": "Sensitive", "__pvalue": "File[/a]"}, {"__ptype": "Sensitive", "__pvalue": "File[/b]"}),
        ([1], [2]),
    ]
    for before, after in rows:
        sides = [[file("/x", **({} if value is None else {"require": value}))] for value in (before, after)]
        assert [address for _, address, *_ in changes(*sides)] == ["File[/x]/require"], before


PARAMETERS = st.dictionaries(
    st.sampled_from(["mode", "owner", "content", "require", "x"]),
    st.one_of(
        st.integers(0, 2),
        st.booleans(),
        st.sampled_from(["", "a", "1", "File[/1]"]),
        st.lists(st.integers(0, 2), max_size=2),
    ),
    max_size=3,
)
CATALOGS = st.dictionaries(st.integers(0, 5).map(lambda number: f"/{number}"), PARAMETERS, max_size=5)


def strictly(value: Any) -> str:
    """A value in a form in which 1 is not true."""
    return json.dumps(value, sort_keys=True)


@given(CATALOGS, CATALOGS)
def test_exactly_what_differs_is_found(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Beside a comparison of plain mappings."""
    sides = [[file(title, **parameters) for title, parameters in side.items()] for side in (before, after)]
    found_changes = {(change, address) for change, address, *_ in changes(*sides) if not address.endswith("/cycle")}
    expected = {("removed", f"File[{title}]") for title in before.keys() - after.keys()}
    expected |= {("added", f"File[{title}]") for title in after.keys() - before.keys()}
    for title in before.keys() & after.keys():
        for name in before[title].keys() | after[title].keys():
            old, new = before[title].get(name), after[title].get(name)
            differs = strictly(old) != strictly(new)
            if name == "require" and all(side is None or side == [] or isinstance(side, str) for side in (old, new)):
                differs = (None if old == [] else old) != (None if new == [] else new)  # an empty list is none
            if differs:
                kinds = {(False, True): "added", (True, False): "removed", (True, True): "changed"}
                expected.add((kinds[name in before[title], name in after[title]], f"File[{title}]/{name}"))
    assert found_changes == expected


def test_what_is_ignored() -> None:
    before, after = [file("/scratch/a", mode="1"), file("/b", mode="1", owner="x")], [file("/b", mode="2", owner="y")]
    differences = found(decoded(before), decoded(after), Patterns(["file[/scratch/*]", "*[*]/mode"], Section))
    assert brief(differences.found) == [("changed", "File[/b]/owner", "x", "y")]
    assert differences.ignored == {Section.CATALOG: 2}
