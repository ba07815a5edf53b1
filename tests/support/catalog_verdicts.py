"""Small catalogs, and what Puppet 7.23 says of each: asked again with real Puppet in tests/real/test_catalogs.py."""

from __future__ import annotations

from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    catalog: dict[str, Any]
    message: str
    """The agent's; empty if it accepts the catalog. Of a type error only what Ruby says in all its versions."""
    exact: bool = True
    """Whether ours is the same."""


def res(kind: str = "Notify", title: Any = "a", known: str = "compilable_type", **parameters: Any) -> dict[str, Any]:
    """A resource, in line 7 of a manifest."""
    made = {"type": kind, "title": title, "kind": known, "file": "/m/a.pp", "line": 7, "parameters": parameters}
    return made if parameters else {name: value for name, value in made.items() if name != "parameters"}


def cat(*resources: Any, edges: Any = (), **fields: Any) -> dict[str, Any]:
    """A catalog; an edge is a pair of references."""
    pairs = [{"source": source, "target": target} for source, target in edges]
    made = {"name": "a.example", "environment": "production", "catalog_format": 2, "version": 1}
    return made | {"resources": [*resources], "edges": pairs} | fields


def _class(title: str, **parameters: Any) -> dict[str, Any]:
    return res("Class", title, "class", **parameters)


AT = "(file: /m/a.pp, line: 7)"

ACCEPTED = [
    Case(name, catalog, "")
    for name, catalog in {
        "exported as text": cat(res() | {"exported": "true"}),
        "no exported": cat(res()),
        "a line as text": cat(res() | {"line": "7"}),
        "a line that is none": cat(res() | {"line": [7]}),
        "a file that is a number": cat(res() | {"file": 7}),
        "a title that is a number": cat(res(title=7)),
        "tags as one text": cat(res() | {"tags": "one"}, tags="two"),
        "tags in tags": cat(res() | {"tags": ["one", ["two", 5], None]}),
        "no parameters": cat(res() | {"parameters": None}),
        "parameters as a list": cat(res("Web", "a", "defined_type") | {"parameters": ["x"]}),
        "classes as one text": cat(classes="settings"),
        "no resources": cat(resources=None) | {"edges": None},
        "resources as an empty mapping": cat(resources={}),
        "a version that is a list": cat(version=[1]),
        "no version": cat(version=None),
        "no environment": cat(environment=None),
        "no format": cat(res(), catalog_format=None),
        "code_id that is a number": cat(code_id=7, catalog_uuid=False),
        "sensitive parameters as an empty mapping": cat(res(message="x") | {"sensitive_parameters": {}}),
        "metadata with an owner that is a list": cat(metadata={"/a": {"path": "/a", "owner": [1]}}),
        "a container in itself that is none": cat(res(), edges=[("Notify[a]", "Notify[a]")]),
        "one command twice": cat(res("Exec", "a", command="/bin/x"), res("Exec", "b", command="/bin/x")),
        "titles that differ in case": cat(res(title="a"), res(title="A")),
        "an alias of its own": cat(res(alias=["a", "b", "b"])),
        "dependencies by alias and by name": cat(
            res(title="x", require=["Notify[b]", "File[/a]", "File[/a/]", "file[conf]"]), res(alias="b"),
            res("File", "conf", path="/a/"),
        ),
        "what the agent adds": cat(res(require=["Schedule[daily]", "Filebucket[puppet]"])),
        "the main class": cat(_class("main", name="main"), res(), edges=[("Class[Main]", "Notify[a]")]),
        "a type of a module that is a define": cat(res("Mine", "a", "defined_type", invented=1)),
    }.items()
]  # fmt: skip

_TWICE = f"Duplicate declaration: Notify[a] is already declared at {AT}; cannot redeclare {AT}"
REFUSED = [
    Case("two of one title", cat(res(), res()), _TWICE),
    Case("two of one title in other case", cat(res(), res("notify")), _TWICE),
    Case("an alias that is a title", cat(res(), res(title="b", alias="a")),
         f'Cannot alias Notify[b] to "a" at {AT}; resource ["Notify", "a"] already declared {AT}'),
    Case("a title that is an alias", cat(res(title="b", alias="a"), res()), _TWICE),
    Case("two of one name", cat(res("Group", "a", name="x"), res("Group", "b", name="x")),
         f'Cannot alias Group[b] to ["x"] at {AT}; resource ["Group", "x"] already declared {AT}'),
    Case("two of one path", cat(res("File", "a", path="/x/./y/"), res("File", "/x/y")),
         f"Duplicate declaration: File[/x/y] is already declared at {AT}; cannot redeclare {AT}"),
    Case("two packages of one name", cat(res("Package", "a", name="x", provider="gem"),
                                         res("Package", "x", provider="gem")),
         f'Cannot alias Package[x] to [:default, "x", :gem] at {AT}; '
         f'resource ["Package", :default, "x", :gem] already declared {AT}'),
    Case("no type", cat({"title": "a"}), "No resource type provided in serialized data", exact=False),
    Case("no title", cat({"type": "Notify", "file": "/m/a.pp"}), "No resource title provided in serialized data",
         exact=False),
    Case("a file without a path", cat(res("File", "")), 'No set of title patterns matched the title "".'),
    Case("a resource that is text", cat("Notify[a]"), "No resource type provided in serialized data", exact=False),
    Case("resources that are text", cat(resources="x"), "undefined method `collect' for", exact=False),
    Case("an edge that is null", cat() | {"edges": [None]}, "undefined method `[]' for nil", exact=False),
    Case("an edge to nothing", cat(_class("A"), edges=[("Class[A]", "Notify[b]")]),
         'Could not intern from data: Could not find relationship target "Notify[b]" for Class[A]'),
    Case("an edge from nothing", cat(res(), edges=[("Class[A]", "Notify[a]")]),
         'Could not intern from data: Could not find relationship source "Class[A]" for Notify[a]'),
    Case("an edge to what is found by name only after reading", cat(_class("A"), res("File", "conf", path="/a"),
                                                                   edges=[("Class[A]", "File[/a]")]),
         'Could not intern from data: Could not find relationship target "File[/a]" for Class[A]'),
    Case("an edge without a source", cat(res()) | {"edges": [{"target": "Notify[a]"}]},
         "No title provided and nil is not a valid resource reference"),
    Case("an edge to no reference", cat(res(), edges=[("Notify[a]", "Notify")]),
         'No title provided and "Notify" is not a valid resource reference'),
    Case("an event without a callback", cat(_class("A"), res()) | {
        "edges": [{"source": "Class[A]", "target": "Notify[a]", "event": "ALL_EVENTS"}]},
         "You must pass a callback for non-NONE events"),
    Case("an invalid tag", cat(res() | {"tags": ["a b"]}), "Invalid tag 'a b'"),
    Case("an empty tag", cat(tags=[""]), "Invalid tag ''"),
    Case("an invalid class", cat(classes=["-x"]), "Invalid tag '-x'"),
    Case("an invalid tag parameter", cat(res(tag="A=B")),
         f"Parameter tag failed on Notify[a]: Invalid tag 'a=b' {AT} {AT}"),
    Case("parameters that are text", cat(res() | {"parameters": "x"}), "undefined method `each' for", exact=False),
    Case("sensitive parameters that are text", cat(res() | {"sensitive_parameters": "x"}),
         "undefined method `map' for", exact=False),
    Case("an environment that is a number", cat(environment=7), "undefined method `to_sym' for", exact=False),
    Case("a format that is text", cat(_class("A"), catalog_format="2"), "comparison of String with 2 failed",
         exact=False),
    Case("metadata that are text", cat(metadata={"/a": "x"}), "undefined method `", exact=False),
    Case("metadata of a relative path", cat(metadata={"/a": {"path": "a"}}), "Paths must be fully qualified"),
    Case("metadata of odd links", cat(recursive_metadata={"/a": {"puppet:///m": [{"path": "/a", "links": "x"}]}}),
         ":links can only be set to :manage or :follow"),
    Case("a dependency on nothing", cat(res(require="Exec[b]")),
         f"Could not find dependency Exec[b] for Notify[a] {AT}"),
    Case("a dependent that is nothing", cat(_class("A", notify=["Class[a]", "Class[B]"])),
         f"Could not find dependent Class[B] for Class[A] {AT}"),
    Case("a dependency on a package by its name", cat(res(require="Package[x]"), res("Package", "y", name="x")),
         f"Could not find dependency Package[x] for Notify[a] {AT}"),
    Case("a dependency on text", cat(res(require="x")),
         f'Parameter require failed on Notify[a]: No title provided and "x" is not a valid resource reference {AT}'),
    Case("a dependency that is null", cat(res(before=None)), "Got nil value for before"),
    Case("a path that is null", cat(res("File", "/a", path=None)), "Got nil value for path"),
    Case("a relative path", cat(res("File", "a")),
         f"Parameter path failed on File[a]: File paths must be fully qualified, not 'a' {AT}"),
    Case("a file that is no type", cat(res("File", "/a", "unknown")), "Got nil value for name"),
    Case("a class that is a type", cat(res("Class", "A")), "Resource type 'Class' was not found"),
    Case("a cycle", cat(res(require="Notify[b]"), res(title="b", require="Notify[a]")),
         "Found 1 dependency cycle: (Notify[a] => Notify[b] => Notify[a])"),
    Case("a resource that needs itself", cat(res(require="Notify[a]")),
         "Found 1 dependency cycle: (Notify[a] => Notify[a])"),
    Case("a resource that needs its container", cat(_class("A"), res(require="Class[A]"),
                                                   edges=[("Class[A]", "Notify[a]")]),
         "Found 1 dependency cycle: (", exact=False),
    Case("containers in each other", cat(_class("A"), _class("B"),
                                             edges=[("Class[A]", "Class[B]"), ("Class[B]", "Class[A]")]),
         "Found 2 dependency cycles: (Class[A] => Class[B] => Class[A])", exact=False),
    Case("a cycle through classes", cat(_class("A"), _class("B", require="Class[A]"), res(title="y"),
                                        res(title="x", require="Notify[y]"),
                                        edges=[("Class[A]", "Notify[x]"), ("Class[B]", "Notify[y]")]),
         "Found 1 dependency cycle: (", exact=False),
]  # fmt: skip
