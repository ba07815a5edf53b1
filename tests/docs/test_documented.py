"""Every command, option and key is documented, and nothing is documented that there is not."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from textual.app import App
from textual.binding import Binding

import inspector.tui
from inspector import __version__
from inspector.cli.commands import COMMANDS, name_of
from inspector.proxy import options
from inspector.rules import all_rules
from inspector.summaries import filters
from tests.docs import markdown
from tests.docs.markdown import section, table
from tests.support.places import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Run

PAGES = {page: page.read_text(encoding="utf-8") for page in markdown.pages()}
OURS = [
    DOCS / f"{name}.md"
    for name in ("run", "proxy", "bootstrap", "inspector", "findings", "compare", "captures", "privacy")
]
"""The pages of the manual."""


def helped(run: Run, *words: str) -> str:
    status, out, _ = run(*words, "--help")
    assert status == 0
    return out


def known_options(run: Run, command: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", helped(run, *command.split()).partition("\noptions:")[2]))


def documented(word: str) -> Iterator[list[str]]:
    """Yield the words after this one in each documented command line that begins with it."""
    for text in PAGES.values():
        for line in markdown.code(text):
            found = re.match(rf"(?:\$ |\.venv/bin/)?{re.escape(word)} (.+)", line)
            if found is not None:
                yield shlex.split(found[1].partition(" > ")[0].partition(" | ")[0], comments=True)


# -- commands -----------------------------------------------------------------------------------------


def test_every_command_is_in_the_index() -> None:
    rows = table(PAGES[DOCS / "index.md"], "command")
    assert sorted(row[0].strip("`") for row in rows) == sorted(COMMANDS)


@pytest.mark.slow
def test_every_documented_command_line_is_understood(run: Run) -> None:
    wrong, command_names = [], set()
    for words in documented("puppet-inspector"):
        if not words or words[0].startswith(("-", "CAPTURE", "COMMAND")):
            continue
        command, rest = name_of(words)
        command_names.add(command)
        given = {word.partition("=")[0] for word in rest[: rest.index("--") if "--" in rest else None]}
        unknown = {word for word in given if word.startswith("-")} - (known_options(run, command) if command else set())
        former = command not in ("", " ".join(words[: command.count(" ") + 1]))
        if not command or unknown or former:
            wrong.append(" ".join(words))
    assert wrong == []
    assert len(command_names) > 15


def test_every_option_of_a_command_is_documented(run: Run) -> None:
    documented_options = {re.split(r"[ =]", span)[0] for text in PAGES.values() for span in spans_and_words(text)}
    missing = [
        f"{command} {option}"
        for command in COMMANDS
        for option in known_options(run, command)
        if option.startswith("--") and option != "--help" and option not in documented_options
    ]
    assert missing == []


def spans_and_words(text: str) -> Iterator[str]:
    for line in markdown.code(text):
        yield line
        yield from line.split()


def test_json_is_where_the_page_says(run: Run) -> None:
    without = {command for command in COMMANDS if "--json" not in known_options(run, command)}
    sentence = section(PAGES[DOCS / "captures.md"], "## JSON").partition("(")[0]
    assert without == {word.strip("`") for word in re.findall(r"`[a-z]+`", sentence)}


def test_documented_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {words[0] for words in documented("make")}
    assert {"demo", "test"} <= used
    assert used <= targets


@pytest.mark.parametrize("path", ["docs/install.md", "addons/puppet_inspector/README.md"])
def test_files_to_install_are_of_this_version(path: str) -> None:
    names = re.findall(r"puppet[-_]inspector[-_](\d+\.\d+\.\d+)", (ROOT / path).read_text(encoding="utf-8"))
    assert set(names) == {__version__}


# -- the proxy's options --------------------------------------------------------------------------------


def test_every_option_of_the_proxy_has_a_row() -> None:
    names = [name for name, _ in (*options.OPTIONS, *options.FLAGS, *options.LISTS)]
    rows = table(section(PAGES[DOCS / "proxy.md"], "## Options"), "option")
    assert sorted(row[0].strip("`") for row in rows) == sorted(names)


def test_no_page_names_an_option_that_there_is_not() -> None:
    names = {name for name, _ in (*options.OPTIONS, *options.FLAGS, *options.LISTS)}
    for page in (markdown.README, *OURS, DOCS / "security.md", DOCS / "reliability.md"):
        option_names = {
            name for line in markdown.code(PAGES[page]) for name in re.findall(r"(?:--set |^)(puppet_[a-z_]+)", line)
        }
        assert option_names <= names, page


def test_every_identity_mode_is_explained() -> None:
    rows = table(section(PAGES[DOCS / "proxy.md"], "## Identity towards the master"), "`puppet_identity`")
    assert [row[0].strip("`").partition(":")[0] for row in rows] == ["keys", "headers", "mint", "none"]


# -- filters and rules ----------------------------------------------------------------------------------


def test_every_key_of_a_filter_is_documented_with_an_example_that_is_one() -> None:
    rows = table(section(PAGES[DOCS / "captures.md"], "## Filters"), "key")
    assert [key for row in rows for key in re.findall(r"`([a-z]+)`", row[0])] == list(filters.KEYS)
    for row in rows:
        for example in re.findall(r"`([^`]+)`", row[2]):
            filters.parse(example, 0.0)


def test_the_rules_are_listed_in_one_place() -> None:
    rules = PAGES[DOCS / "rules.md"]
    assert all(re.search(rf"^## {rule.id} ", rules, re.MULTILINE) for rule in all_rules())
    for page in (markdown.README, *OURS):
        assert len(set(re.findall(r"\b[BFPRST]\d\d\b", PAGES[page]))) < 20, page


# -- the terminal inspector's keys ------------------------------------------------------------------------

WHERE = {
    "Inspector": "## Everywhere",
    "View": "## Everywhere",
    "Help": "## Everywhere",
    "Waiting": "## Everywhere",
    "Chooser": "## Everywhere",
    "Rows": "## Everywhere",
    "Arranged": "## Everywhere",
    "ColumnChooser": "## Everywhere",
    "Leaves": "## Everywhere",
    "_PromptInput": "## Everywhere",
    "Prompt": "## Everywhere",
    "Causes": "## What is wrong",
    "Runs": "## Runs",
    "RunView": "## A run",
    "Paned": "## A run",
    "Played": "## A run",
    "Waterfall": "## A run",
    "ExchangePane": "## An exchange",
    "OnRecord": "## An exchange",
    "ExchangeView": "## An exchange",
    "PartView": "## Files, catalog, connections",
    "Catalog": "## Files, catalog, connections",
    "Relations": "## Files, catalog, connections",
    "Findings": "## Findings",
    "Folding": "## Findings",
    "Bootstrap": "## The bootstrap",
    "FleetView": "## A fleet",
    "FleetApp": "## A fleet",
    "SearchView": "## The search through bodies",
}
"""Of each class with keys of its own, the section of docs/inspector.md that has them."""
SPELT = {"⌫": "Backspace", "←": "Left", "→": "Right", "↑": "Up", "↓": "Down", "⏎": "Enter", "^": "Ctrl+"}


def bound() -> Iterator[tuple[str, list[str]]]:
    """Yield each class of the inspector that has keys of its own, with these as the page writes them."""
    app: App[Any] = App()
    for module in pkgutil.iter_modules(inspector.tui.__path__, "inspector.tui."):
        for name, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if found.__module__ == module.name and "BINDINGS" in vars(found):
                bindings = Binding.make_bindings(vars(found)["BINDINGS"])
                yield name, [spelt(app.get_key_display(binding)) for binding in bindings]


def spelt(key: str) -> str:
    for sign, word in SPELT.items():
        key = key.replace(sign, word) if len(key) > 1 or sign != "^" else key
    if len(key) == 1:
        return key
    return "+".join({"pgup": "PgUp", "pgdn": "PgDn"}.get(part, part[:1].upper() + part[1:]) for part in key.split("+"))


@pytest.mark.parametrize(("name", "keys"), [pytest.param(name, keys, id=name) for name, keys in bound()])
def test_every_key_is_documented(name: str, keys: list[str]) -> None:
    assert name in WHERE, f"name the section of docs/inspector.md that has the keys of {name}"
    text = section(PAGES[DOCS / "inspector.md"], WHERE[name])
    documented_keys = set(re.findall(r"`([^`]+)`", text))
    for first, last in re.findall(r"`(\d)` to `(\d)`", text):
        documented_keys |= set(map(str, range(int(first), int(last) + 1)))
    assert set(keys) - {spelt(key) for key in documented_keys} == set()


def test_no_class_is_named_that_has_no_keys() -> None:
    assert set(WHERE) == {name for name, _ in bound()}
