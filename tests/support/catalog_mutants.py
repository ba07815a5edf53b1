"""A catalog changed in one place at a time, in ways that a faulty master, module or proxy could."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

OTHERS: list[Any] = [None, True, False, "", "text", "true", 0, 7, 1.5, [], ["x"], [None], {}, {"x": "y"}]
"""Values of every type, for a field of any other."""
FIELDS = (
    "name", "version", "environment", "code_id", "catalog_uuid", "catalog_format", "resources", "classes", "edges",
    "tags", "metadata", "recursive_metadata", "invented",
)  # fmt: skip
RESOURCE_FIELDS = (
    "type", "title", "parameters", "file", "line", "exported", "sensitive_parameters", "tags", "kind", "invented",
)  # fmt: skip
EDGE_FIELDS = ("source", "target", "event", "callback", "invented")
RELATIONS = ("require", "before", "subscribe", "notify")
TAGS = ["a b", "a-b", "A::b", "-a", "_a", ".a", "ä", "a\nb", "a,b", "a=b", "5", "a:", "::a", "a\n"]


class Mutant(NamedTuple):
    kind: str
    """What was changed, in a word or two."""
    catalog: Any


def base() -> dict[str, Any]:
    """A catalog as a master sends it, with containers, relationships of all kinds and aliases."""

    def made(kind: str, title: str, line: int, known: str = "compilable_type", **parameters: Any) -> dict[str, Any]:
        return {
            "type": kind, "title": title, "tags": [kind.lower().replace("::", "_"), "class"], "file": "/m/site.pp",
            "line": line, "exported": False, "kind": known, "parameters": parameters,
        }  # fmt: skip

    resources = [
        made("Stage", "main", 1, name="main"),
        made("Class", "main", 2, "class", name="main"),
        made("Class", "Repo", 3, "class"),
        made("Class", "Web", 4, "class", require="Class[Repo]"),
        made("Web::Vhost", "x", 5, "defined_type", port=80),
        made("File", "conf", 6, path="/etc/web", ensure="directory", before="Notify[one]"),
        made("File", "/etc/web/x.conf", 7, content="x", subscribe=["File[conf]", "Exec[reload]"]),
        made("Exec", "reload", 8, command="/bin/true", refreshonly=True, alias="again"),
        made("Notify", "one", 9, message="1"),
        made("Notify", "two", 10, message="2", require="Notify[one]"),
        made("Group", "web", 11, ensure="present", notify="Notify[two]"),
        made("File", "/etc/repo/", 12, ensure="absent"),
        made("Package", "web", 13, ensure="present", provider="gem"),
        made("Schedule", "night", 14, period="daily"),
    ]
    inside = {
        "Stage[main]": ["Class[Main]", "Class[Repo]", "Class[Web]"],
        "Class[Web]": ["Web::Vhost[x]", "File[conf]", "Exec[reload]", "Notify[one]", "Notify[two]", "Group[web]",
                       "Package[web]", "Schedule[night]"],
        "Web::Vhost[x]": ["File[/etc/web/x.conf]"], "Class[Repo]": ["File[/etc/repo/]"],
    }  # fmt: skip
    return {
        "tags": ["settings"], "name": "a.example", "version": 1, "code_id": None, "catalog_uuid": "u",
        "catalog_format": 2, "environment": "production", "resources": resources,
        "edges": [{"source": outer, "target": inner} for outer, inners in inside.items() for inner in inners],
        "classes": ["settings", "web"],
    }  # fmt: skip


def mutants(catalog: dict[str, Any], chance: random.Random) -> Iterator[Mutant]:
    """Yield the catalog itself and its mutants: each field without and with every other type, and each way of saying
    something twice, or of something that is not there."""
    yield Mutant("unchanged", catalog)
    yield from _fields("catalog", catalog, FIELDS, lambda changed: changed)
    for part, fields, count in (("resources", RESOURCE_FIELDS, 3), ("edges", EDGE_FIELDS, 2)):
        for at in chance.sample(range(len(catalog[part])), count):
            yield from _fields(part.removesuffix("s"), catalog, fields, _entry(part, at))
    for field in ("resources", "edges"):
        for value in OTHERS:
            changed = copy.deepcopy(catalog)
            changed[field].insert(chance.randrange(len(changed[field])), value)
            yield Mutant(f"{field}: an entry of another type", changed)
    for kind, change in _CHANGES:
        for _ in range(40 if change is _metadata else 12):
            changed = copy.deepcopy(catalog)
            change(changed, chance)
            yield Mutant(kind, changed)


def _entry(part: str, at: int) -> Callable[[Any], dict[str, Any]]:
    return lambda catalog: catalog[part][at]


def _fields(
    where: str, catalog: dict[str, Any], fields: tuple[str, ...], part: Callable[[Any], dict[str, Any]]
) -> Iterator[Mutant]:
    for field in fields:
        changed = copy.deepcopy(catalog)
        part(changed).pop(field, None)
        yield Mutant(f"{where}: no {field}", changed)
        for value in OTHERS:
            changed = copy.deepcopy(catalog)
            part(changed)[field] = copy.deepcopy(value)
            yield Mutant(f"{where}: {field} of another type", changed)


def ref(resource: dict[str, Any]) -> str:
    return f"{resource['type']}[{resource['title']}]"


def _one(catalog: dict[str, Any], chance: random.Random, *types: str) -> dict[str, Any]:
    resources = catalog["resources"]
    named = [resource for resource in resources if not types or resource["type"] in types] or resources
    found: dict[str, Any] = chance.choice(named)
    return found


def _parameters(resource: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = resource.setdefault("parameters", {})
    return found


def _add(catalog: dict[str, Any], chance: random.Random, resource: dict[str, Any]) -> None:
    catalog["resources"].insert(chance.randrange(len(catalog["resources"]) + 1), resource)


def _new(kind: str, title: str, **parameters: Any) -> dict[str, Any]:
    return {"type": kind, "title": title, "kind": "compilable_type", "line": 99, "parameters": parameters}


def _twice(catalog: dict[str, Any], chance: random.Random) -> None:
    _add(catalog, chance, copy.deepcopy(_one(catalog, chance)))


def _twice_in_other_case(catalog: dict[str, Any], chance: random.Random) -> None:
    found = copy.deepcopy(_one(catalog, chance))
    found["type"] = chance.choice([found["type"].lower(), f"::{found['type']}", found["type"].upper()])
    _add(catalog, chance, found)


def _class_in_other_case(catalog: dict[str, Any], chance: random.Random) -> None:
    found = copy.deepcopy(_one(catalog, chance, "Class"))
    found["title"] = chance.choice([found["title"].lower(), found["title"].upper(), f"::{found['title']}"])
    _add(catalog, chance, found)


def _title_in_other_case(catalog: dict[str, Any], chance: random.Random) -> None:
    found = copy.deepcopy(_one(catalog, chance, "Notify", "Exec", "Group"))
    found["title"] = found["title"].upper()
    _add(catalog, chance, found)


def _same_name(catalog: dict[str, Any], chance: random.Random) -> None:
    kind, name = chance.choice(
        [("Group", "web"), ("Exec", "/bin/true"), ("Schedule", "night"), ("Package", "web"), ("User", "u"),
         ("Service", "s"), ("Filebucket", "b"), ("Notify", "one"), ("Tidy", "/t")]
    )  # fmt: skip
    attribute = {"Exec": "command", "Tidy": "path"}.get(kind, "name")
    for title in ("first", "second"):
        more = {"provider": "gem"} if kind == "Package" and chance.random() < 0.5 else {}
        more |= {"age": "1d"} if kind == "Tidy" else {}
        _add(catalog, chance, _new(kind, title, **{attribute: name}, **more))


def _same_path(catalog: dict[str, Any], chance: random.Random) -> None:
    path = chance.choice(
        ["/etc/web", "/etc/web/", "/etc/./web", "/etc//web", "/etc/repo", "//etc/web", "/etc/x/../web"]
    )
    if chance.random() < 0.5:
        _add(catalog, chance, _new("File", path))
    else:
        _add(catalog, chance, _new("File", "other", path=path))


def _root_path(catalog: dict[str, Any], chance: random.Random) -> None:
    for title, path in (("first", chance.choice(["/", "//", "/."])), ("second", chance.choice(["/", "//", "/.."]))):
        _add(catalog, chance, _new("File", title, path=path))


def _alias_of_another(catalog: dict[str, Any], chance: random.Random) -> None:
    kind = chance.choice(["File", "Notify", "Exec"])
    taken = chance.choice([resource["title"] for resource in catalog["resources"] if resource["type"] == kind])
    _add(catalog, chance, _new(kind, "/aliased", alias=chance.choice([taken, [taken], ["new", taken]])))


def _alias_twice(catalog: dict[str, Any], chance: random.Random) -> None:
    kind = chance.choice(["File", "Notify", "Exec", "Web::Vhost"])
    for title in ("/1", "/2"):
        _add(catalog, chance, _new(kind, title, alias=chance.choice(["same", ["same"], ["x", "same"]])))


def _alias_of_its_own(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _one(catalog, chance, "File", "Notify", "Exec")
    _parameters(found)["alias"] = chance.choice([found["title"], "new", ["new", "newer"], 5, [], None, ["a", "a"]])


def _edge_to_nothing(catalog: dict[str, Any], chance: random.Random) -> None:
    side = chance.choice(["source", "target"])
    chance.choice(catalog["edges"])[side] = chance.choice(["File[/nowhere]", "Class[Absent]", "Mine::Thing[x]"])


def _edge_to_no_reference(catalog: dict[str, Any], chance: random.Random) -> None:
    side = chance.choice(["source", "target"])
    chance.choice(catalog["edges"])[side] = chance.choice(["File", "File[]", "[x]", "File[/a", "File[x] ", "A[b][c]"])


def _edge_in_other_case(catalog: dict[str, Any], chance: random.Random) -> None:
    edge, side = chance.choice(catalog["edges"]), chance.choice(["source", "target"])
    kind, _, title = edge[side].partition("[")
    edge[side] = f"{chance.choice([kind.lower(), '::' + kind])}[{title}"


def _edge_by_other_name(catalog: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice(["File[/etc/web]", "Exec[again]", "File[/etc/repo]", "File[/etc/web/x.conf/]", "Package[web]",
                          "Class[main]", "Class[::Web]", "class[web]", "Notify[ONE]"])  # fmt: skip
    chance.choice(catalog["edges"])[chance.choice(["source", "target"])] = name


def _edge_twice(catalog: dict[str, Any], chance: random.Random) -> None:
    catalog["edges"].append(dict(chance.choice(catalog["edges"])))


def _relation_to_nothing(catalog: dict[str, Any], chance: random.Random) -> None:
    absent = chance.choice(["File[/nowhere]", "Class[Absent]", "Mine::Thing[x]", "Exec[nothing]"])
    _parameters(_one(catalog, chance))[chance.choice(RELATIONS)] = chance.choice([absent, ["Class[Repo]", absent]])


def _relation_that_is_none(catalog: dict[str, Any], chance: random.Random) -> None:
    value: Any = chance.choice(["File", "", 5, True, {}, {"x": 1}, [[]], [["Notify[one]"]], None, [], [None], "File[]"])
    _parameters(_one(catalog, chance))[chance.choice(RELATIONS)] = value


def _relation_by_other_name(catalog: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice(["File[/etc/web]", "Exec[again]", "File[/etc/repo]", "File[/etc/web/x.conf/]", "file[conf]",
                          "Class[main]", "Class[::Web]", "class[web]", "Package[web]", "::File[conf]",
                          "Schedule[daily]", "Filebucket[puppet]", "Schedule[never]", "Schedule[monthly]"])  # fmt: skip
    _parameters(_new_notify(catalog, chance))["require"] = name


def _new_notify(catalog: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    found = _new("Notify", "new")
    _add(catalog, chance, found)
    return found


def _cycle(catalog: dict[str, Any], chance: random.Random) -> None:
    named = [ref(resource) for resource in catalog["resources"] if resource["type"] in ("Notify", "File", "Exec")]
    way = chance.sample(named, chance.randint(2, 4))
    by_ref = {ref(resource): resource for resource in catalog["resources"]}
    for first, second in zip(way, [*way[1:], way[0]], strict=True):
        _parameters(by_ref[first])[chance.choice(["require", "subscribe"])] = second


def _needs_itself(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _one(catalog, chance, "Notify", "File", "Exec", "Class")
    _parameters(found)[chance.choice(RELATIONS)] = ref(found)


def _needs_container(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _one(catalog, chance, "Notify", "Exec", "Group", "Web::Vhost")
    _parameters(found)[chance.choice(RELATIONS)] = "Class[Web]"


def _cycle_of_classes(catalog: dict[str, Any], chance: random.Random) -> None:
    _parameters(_one(catalog, chance, "File"))["before"] = "Class[Repo]"
    _parameters(_one(catalog, chance, "Notify"))[chance.choice(RELATIONS)] = "File[/etc/repo/]"


def _container_in_content(catalog: dict[str, Any], chance: random.Random) -> None:
    edge = chance.choice(catalog["edges"])
    catalog["edges"].append({"source": edge["target"], "target": edge["source"]})


def _contains_itself(catalog: dict[str, Any], chance: random.Random) -> None:
    named = ref(_one(catalog, chance))
    catalog["edges"].append({"source": named, "target": named})


def _in_two_containers(catalog: dict[str, Any], chance: random.Random) -> None:
    catalog["edges"].append({"source": "Class[Repo]", "target": ref(_one(catalog, chance, "Notify", "File", "Exec"))})


def _content_of_a_leaf(catalog: dict[str, Any], chance: random.Random) -> None:
    catalog["edges"].append({"source": "Notify[one]", "target": ref(_one(catalog, chance, "File", "Exec"))})


def _auto_cycle(catalog: dict[str, Any], chance: random.Random) -> None:
    _parameters(_one(catalog, chance, "File"))[chance.choice(RELATIONS)] = "Notify[two]"
    _parameters(_one(catalog, chance, "Notify"))[chance.choice(RELATIONS)] = "File[/etc/web/x.conf]"


def _tag(catalog: dict[str, Any], chance: random.Random) -> None:
    part = catalog if chance.random() < 0.3 else _one(catalog, chance)
    part["tags"] = [*part.get("tags", ()), chance.choice(TAGS)]


def _class_name(catalog: dict[str, Any], chance: random.Random) -> None:
    catalog["classes"].append(chance.choice([*TAGS, 5, None, ["x"], {}]))


def _tag_parameter(catalog: dict[str, Any], chance: random.Random) -> None:
    _parameters(_one(catalog, chance))["tag"] = chance.choice([*TAGS, 5, None, ["x", "y z"], {}, True])


def _unknown_type(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _new("Mine::Thing", "x")
    found["kind"] = chance.choice(["compilable_type", "unknown", "defined_type", None])
    _add(catalog, chance, found)


def _other_kind(catalog: dict[str, Any], chance: random.Random) -> None:
    _one(catalog, chance)["kind"] = chance.choice(["compilable_type", "unknown", "class", "nonsense", None, 5])


def _unknown_parameter(catalog: dict[str, Any], chance: random.Random) -> None:
    _parameters(_one(catalog, chance))[chance.choice(["invented", "", "Ensure", "a b"])] = "x"


def _bad_value(catalog: dict[str, Any], chance: random.Random) -> None:
    name, value = chance.choice([("ensure", "sideways"), ("noop", "perhaps"), ("loglevel", "loud"), ("mode", "abc")])
    _parameters(_one(catalog, chance))[name] = value


def _null_parameter(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _one(catalog, chance)
    name = chance.choice([*_parameters(found), "alias", "tag", "noop", "name", "ensure"])
    found["parameters"][name] = None


def _relative_path(catalog: dict[str, Any], chance: random.Random) -> None:
    value: Any = chance.choice(["relative", "./x", "~/x", "", "C:/x", "c:\\x", 5])
    if chance.random() < 0.5:
        _add(catalog, chance, _new("File", "other", path=value))
    else:
        _add(catalog, chance, _new("File", value))


def _odd_title(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _one(catalog, chance)
    title = chance.choice(["a[b]", "a]", "[", "a\nb", " ", "a b", "[x]", "\u00e9"])
    catalog["edges"] = [edge for edge in catalog["edges"] if ref(found) not in edge.values()]
    found["title"] = title


def _odd_type(catalog: dict[str, Any], chance: random.Random) -> None:
    found = _one(catalog, chance)
    catalog["edges"] = [edge for edge in catalog["edges"] if ref(found) not in edge.values()]
    found["type"] = chance.choice(["a b", "File[x]", "[", "file", "component", "Component", "Whit", "Class", "\u00e9"])


def _rich(catalog: dict[str, Any], chance: random.Random) -> None:
    _parameters(_one(catalog, chance, "Notify", "Web::Vhost"))["message"] = chance.choice([
        {"__ptype": "Sensitive", "__pvalue": "x"}, {"__ptype": "Sensitive"}, {"__ptype": "Binary", "__pvalue": "eA=="},
        {"__ptype": "Mine::Object", "a": 1}, {"__ptype": 5}, {"__ptype": "Timestamp", "__pvalue": "no time"},
        {"__ptype": "Hash", "__pvalue": ["a", 1]}, {"__ptype": "Hash"}, {"__ptype": "Integer[", "__pvalue": "x"},
        {"__ptype": "SemVer", "__pvalue": "x"}, {"__ptype": "Regexp", "__pvalue": "("}, {"__ptype": "Default"},
        {"__ptype": "Deferred", "name": "sprintf", "arguments": []},
    ])  # fmt: skip


def _metadata(catalog: dict[str, Any], chance: random.Random) -> None:
    good = {"path": "/m/x", "relative_path": None, "links": "manage", "owner": 0, "group": 0, "mode": 420, "type":
            "file", "destination": None, "source": "puppet:///modules/m/x", "content_uri": "puppet:///modules/m/x",
            "checksum": {"type": "md5", "value": "{md5}d41d8cd98f00b204e9800998ecf8427e"}}  # fmt: skip
    name = chance.choice([*good, "invented"])
    good[name] = chance.choice(OTHERS)
    if chance.random() < 0.5:
        catalog["metadata"] = {"/etc/web/x.conf": good}
    else:
        catalog["recursive_metadata"] = {"conf": {"puppet:///modules/m": [good]}}


_CHANGES: list[tuple[str, Callable[[dict[str, Any], random.Random], None]]] = [
    (change.__name__.removeprefix("_").replace("_", " "), change)
    for change in (
        _twice, _twice_in_other_case, _class_in_other_case, _title_in_other_case, _same_name, _same_path, _root_path,
        _alias_of_another, _alias_twice, _alias_of_its_own, _edge_to_nothing, _edge_to_no_reference,
        _edge_in_other_case, _edge_by_other_name, _edge_twice, _relation_to_nothing, _relation_that_is_none,
        _relation_by_other_name, _cycle, _needs_itself, _needs_container, _cycle_of_classes, _container_in_content,
        _contains_itself, _in_two_containers, _content_of_a_leaf, _auto_cycle, _tag, _class_name, _tag_parameter,
        _unknown_type, _other_kind, _unknown_parameter, _bad_value, _null_parameter, _relative_path, _odd_title,
        _odd_type, _rich, _metadata,
    )
]  # fmt: skip
