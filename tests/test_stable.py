"""What other programs may build on stays as it was in the first version with this major number (docs/stability.md).

``stable.txt`` has the names, a line for each thing: a command with its options, a rule with its severity, a metric with
its labels, a table with its columns, a type in a JSON document with its keys. It only grows.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import __version__
from inspector.cli import commands
from inspector.fleet.queries import named
from inspector.fleet.tables import TABLES
from inspector.proxy import options
from inspector.proxy.faults.actions import KINDS
from inspector.proxy.telemetry.metrics import Metrics
from inspector.rules import all_rules
from inspector.summaries import filters, site_rules
from tests.docs import commands_page
from tests.support.places import ROOT, SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

PLACE = Path(__file__).with_name("stable.txt")
MODULE = ROOT / "addons" / "puppet_inspector"
BROKEN = """

docs/stability.md promises what is gone or another one now:
  {}
Leave the old beside the new, and say in CHANGELOG.md what to use instead (commands and options: FORMER in
inspector/cli/commands.py). Only a new major version may take it away: then delete tests/stable.txt first."""
OTHER = """

tests/stable.txt is of version {}. To release {}: pytest tests/test_stable.py --update-golden
adds what is new since, and takes nothing away."""


# -- what there is now ----------------------------------------------------------------------------------------


def things() -> Iterator[tuple[str, Iterator[str]]]:
    """Yield everything that is promised: its kind and name, and the names in it."""
    for name in commands.COMMANDS:
        yield f"command {name}", of_command(commands.parser_of(name), finds=name in commands_page.found())
    yield "filter", iter(filters.KEYS)
    yield "rules.yaml rule", iter(site_rules.KEYS)
    for rule in all_rules():
        yield f"rule {rule.id}", iter((rule.severity, *rule.thresholds))
    yield "proxy", iter(dict(options.OPTIONS))
    yield "proxy, true or false", iter(dict(options.FLAGS))
    yield "proxy, several times", iter(dict(options.LISTS))
    yield "package", iter((ROOT / ".ci/package/deb/control/conffiles").read_text().split())
    yield "class puppet_inspector", iter(of_class((MODULE / "manifests/init.pp").read_text()))
    for path in sorted(MODULE.glob("tasks/*.json")):
        yield f"task {path.stem}", iter(json.loads(path.read_text())["parameters"])
    yield "fault", (kind + "=" * bool(KINDS[kind].value) for kind in KINDS)
    for query in named.QUERIES.values():
        yield f"query {query.name}", (parameter.name for parameter in query.parameters)
    yield from of_metrics()
    for table in TABLES.values():
        yield f"table {table.name}", (f"{column.name}={column.sql}" for column in table.columns)
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        document = path.name.partition(".")[0]
        schema = json.loads(path.read_text(encoding="utf-8"))
        yield f"json {document}", of_schema(schema)
        for name, part in schema.get("$defs", {}).items():
            yield f"json {document} {name}", of_schema(part)


def of_command(parser: argparse.ArgumentParser, *, finds: bool) -> Iterator[str]:
    """Yield a command's options, with = if they take a value, and the values where these are few; what must be given;
    and its exit statuses."""
    needed = []
    for action in parser._actions:
        names = action.option_strings or ([action.dest.upper()] if action.choices else [])
        for name in names if action.dest != "help" else ():
            choices = [f"={choice}" for choice in action.choices or ()]
            yield from [f"{name}{end}" for end in choices or ["=" * (action.nargs != 0)]]
        # Whether what is left of the command line is required depends on Python's release.
        if (action.required and action.nargs not in ("*", "?")) or action.nargs == argparse.REMAINDER:
            needed.append(action.option_strings[-1] if action.option_strings else "ARGUMENT")
    yield f"needs:{','.join(needed)}"
    yield f"status:{'0,1,2' if finds else '0,2'}"


def of_class(text: str) -> list[str]:
    """Return the parameters of a class of Puppet."""
    return re.findall(r"^  [A-Z].*\$(\w+)", text.partition("(")[2].partition(") {")[0], re.MULTILINE)


def of_metrics() -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each metric with its type and labels."""
    made = Metrics(("127.0.0.1", 0), certnames=True)
    try:
        made.watch(lambda: PLACE, lambda: 0.0)
        for collector in made.registry._collector_to_names:
            for family in collector.collect():
                if family.name.startswith("puppet_inspector_"):
                    yield f"metric {family.name}", iter((family.type, *getattr(collector, "_labelnames", ())))
    finally:
        made.close()


def of_schema(schema: dict[str, Any], begins: str = "") -> Iterator[str]:
    """Yield the keys of an object, with their types and ? if they may be missing; of anything else, its type."""
    if "properties" not in schema:
        yield of_type(schema)
    for key, part in schema.get("properties", {}).items():
        end = "" if key in schema.get("required", ()) else "?"
        name = f"{begins}{key.replace(' ', '_')}"
        yield f"{name}{end}={of_type(part)}"
        for each, brackets in ((part, ""), (part.get("items", {}), "[]")):
            yield from of_schema(each, f"{name}{brackets}.") if "properties" in each else ()


def of_type(schema: dict[str, Any]) -> str:
    """Return the type of a value: its choices and limits are not promised."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema or "oneOf" in schema:
        return "|".join(map(of_type, schema.get("anyOf") or schema["oneOf"]))
    if "enum" in schema or "const" in schema:
        kinds = {type(each) for each in schema.get("enum") or [schema["const"]]}
        return "|".join(
            name for kind, name in ((str, "string"), (int, "integer"), (type(None), "null")) if kind in kinds
        )
    if "items" in schema:
        return f"[{of_type(schema['items'])}]" + "|null" * ("null" in schema["type"])
    kind = schema.get("type", "any")
    within = schema.get("additionalProperties")
    if isinstance(within, dict):
        return f"{{{of_type(within)}}}"
    return kind if isinstance(kind, str) else "|".join(kind)


def now() -> dict[str, list[str]]:
    return {thing: list(dict.fromkeys(names)) for thing, names in things()}


def promised() -> tuple[str, dict[str, list[str]]]:
    """Return the version whose names are in the list, and the list."""
    head, *lines = PLACE.read_text(encoding="utf-8").splitlines()
    return head.rpartition(" ")[2], {
        thing: names.split() for thing, _, names in (line.partition(": ") for line in lines)
    }  # fmt: skip


def write() -> None:
    """Add to the list what is new."""
    old = promised()[1] if PLACE.is_file() else {}
    new = now()
    lines = [f"{thing}: {' '.join(dict.fromkeys([*old.get(thing, ()), *new.get(thing, ())]))}" for thing in old | new]
    PLACE.write_text("\n".join([f"What is stable (docs/stability.md), as of version {__version__}", *lines, ""]))


def fulfilled(name: str, names: list[str]) -> bool:
    """Whether a promise is kept: a key may also be always there now, and never null."""
    always = name.replace("?=", "=")
    return any(each in names for each in (name, always, name.removesuffix("|null"), always.removesuffix("|null")))


# -- tests ----------------------------------------------------------------------------------------------------


def test_nothing_is_gone_that_is_promised(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        write()
    version, list_ = promised()
    assert version == __version__, OTHER.format(version, __version__)
    there = now()
    gone = [
        f"{thing}: {name}"
        for thing, names in list_.items()
        for name in names
        if not fulfilled(name, there.get(thing, []))
    ]
    gone += [thing for thing in list_ if thing not in there]
    assert gone == [], BROKEN.format("\n  ".join(gone))
