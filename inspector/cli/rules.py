"""``puppet-inspector rules test``: try a site's own rules before a proxy applies them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector.analysis import examples
from inspector.cli.output import print_json, print_line
from inspector.errors import InspectorError
from inspector.rules import is_own
from inspector.summaries import rule_files, ruleset
from inspector.text import beginning, clean, plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from inspector.rules import Rule

EXAMPLE = "puppet-inspector rules test rules.yaml"
PROBLEM = 400
"""Characters of a problem that are printed."""


class Tried(NamedTuple):
    """A rule that was tried."""

    rule: Rule
    problems: list[str]


class TriedRule(msgspec.Struct):
    """A rule that was tried."""

    rule: str
    title: str
    source: str
    """The file with the rule, and its line if it is a rules file."""
    problems: list[str]
    """What it does to its own examples that it should not, each as a clause; empty if it is right."""


class TriedRules(msgspec.Struct):
    """A site's own rules."""

    rules: list[TriedRule]
    """The rules that were tried."""
    mistakes: list[str]
    """What is wrong with files, or has no effect in them, each with the file and the line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("test",), help="test: read the rules, and try those in Python on their "
                        "examples")  # fmt: skip
    parser.add_argument("path", type=Path, help="a rules file (YAML), a file with rules (*.py), or a directory of them")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/rules.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """Try a site's own rules: each must be valid, and those in Python must find something in each of their bad examples
    and nothing in the good ones. The exit status is 1 if there is a problem."""
    path: Path = arguments.path
    if path.is_dir() or path.suffix == ".py":
        tried, mistakes = _python(rule_files.paths(path) if path.is_dir() else [path])
    else:
        tried, mistakes = _written(path)
    if not (tried or mistakes):
        raise InspectorError(f"There is no rule of your own in {path}.", "docs/own-rules.md has examples.")
    problems = len(mistakes) + sum(len(each.problems) for each in tried)
    if arguments.json:
        rows = [TriedRule(each.rule.id, each.rule.title, each.rule.source, each.problems) for each in tried]
        print_json(TriedRules(rows, mistakes))
        return int(problems > 0)
    print_line(f"{plural(len(tried), 'rule')}, {plural(problems, 'problem') if problems else 'no problems'}")
    for mistake in mistakes:
        print_line(beginning(clean(mistake), PROBLEM))
    for each in tried:
        print_line(f"{each.rule.id} {clean(each.rule.title)} ({clean(each.rule.source)}): {_result(each)}")
    return int(problems > 0)


def _result(each: Tried) -> str:
    return "; ".join(beginning(clean(problem), PROBLEM) for problem in each.problems) or "ok"


def _python(files: Iterable[Path]) -> tuple[list[Tried], list[str]]:
    """Execute files with rules and try each rule; also return what is wrong with the files."""
    tried: dict[str, Tried] = {}
    mistakes = []
    for file in files:
        try:
            found = rule_files.rules_in(file, rule_files.text(file))
        except InspectorError as error:
            mistakes.append(error.message)
            continue
        for rule in found:
            if rule.id in tried:
                mistakes.append(f"{file}: there is another rule {rule.id}")
            else:
                tried[rule.id] = Tried(rule, list(examples.problems(rule)))
    return list(tried.values()), mistakes


def _written(path: Path) -> tuple[list[Tried], list[str]]:
    """Read the rules that are written in a rules file; also return the warnings about the file."""
    found = ruleset.load(path)
    return list(_once(found.rules)), list(found.warnings)


def _once(rules: Iterable[Rule]) -> Iterator[Tried]:
    yield from {rule.id: Tried(rule, []) for rule in rules if is_own(rule.id)}.values()
