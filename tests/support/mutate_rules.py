"""Is every condition of every rule tested? ``python -m tests.support.mutate_rules [ID...]`` inverts them one at a time.

Each ``if`` (statement, expression, in a comprehension) of a rule's function is inverted in turn. First the rule's
own examples are asked in this process; a mutant that they let live is given to the rules' tests, in a process of
its own. Prints a line for each rule, and each mutant that nobody noticed. Exit status 1 if the inversion of any
rule's conditions goes unnoticed altogether, or one mutant does with ``--strict``.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import rules
from inspector.analysis.analyzer import Analyzer
from inspector.rules import Rule, all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

MUTANT = "PUPPET_INSPECTOR_MUTANT"
"""Environment variable for the process that tests one: rule id and number of the condition."""


def conditions(rule: Rule) -> list[ast.expr]:
    """The conditions of a rule's function, in order."""
    return list(_tests(ast.parse(inspect.getsource(rule.function))))


def _tests(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def mutant(rule: Rule, number: int) -> Callable[..., Any]:
    """A rule's function with one condition inverted."""
    module = importlib.import_module(rule.function.__module__)
    tree = ast.parse(inspect.getsource(module))
    wanted = next(
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == rule.function.__name__
    )
    wanted.decorator_list = []
    target = list(_tests(wanted))[number]
    old = copy.copy(target)
    for node in ast.walk(wanted):
        for name, value in ast.iter_fields(node):
            if value is target:
                setattr(node, name, ast.UnaryOp(ast.Not(), old))
            elif isinstance(value, list) and any(item is target for item in value):
                value[[item is target for item in value].index(True)] = ast.UnaryOp(ast.Not(), old)
    tree.body = [wanted]
    names: dict[str, Any] = dict(vars(module))
    exec(compile(ast.fix_missing_locations(tree), f"<mutant {number} of {rule.id}>", "exec"), names)  # noqa: S102
    look: Callable[..., Any] = names[rule.function.__name__]
    return look


def noticed(rule: Rule, look: Callable[..., Any]) -> bool:
    """Whether the rule's own examples tell the mutant from the rule."""
    changed = dataclasses.replace(rule, function=look)
    return any(_results(rule, talk) != _results(changed, talk) for talk in (*rule.good(), *rule.bad()))


def _results(rule: Rule, talk: Any) -> list[str]:
    analyzer = Analyzer([rule])
    trouble = [text for record in talk for text in analyzer.feed(record).trouble]
    findings = [finding for run in analyzer.finish() for finding in run.findings]
    # What an example's test asserts: whether the rule speaks, how bad it says it is, and that nothing fails.
    return sorted({f"{finding.rule} {finding.severity}" for finding in findings}) + trouble


def noticed_by_tests(rule: Rule, number: int) -> bool:
    """Whether the rules' tests fail with the mutant in place of the rule."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.support.mutate_rules", "-p", "no:cacheprovider"]
    tests = [str(path) for path in sorted(Path("tests").glob("test_rules_*.py")) if f'"{rule.id}"' in path.read_text()]
    environment = os.environ | {MUTANT: f"{rule.id} {number}"}
    return subprocess.run([*command, *tests], env=environment, capture_output=True, check=False).returncode != 0


def pytest_configure(config: pytest.Config) -> None:
    """As pytest's plugin: put the mutant in the rule's place."""
    ident, number = os.environ[MUTANT].split()
    all_rules()
    rules._RULES[ident] = dataclasses.replace(rules._RULES[ident], function=mutant(rules._RULES[ident], int(number)))
    all_rules.cache_clear()


def main() -> int:
    """Try all, or the rules that are named."""
    strict = "--strict" in sys.argv
    wanted = [argument.upper() for argument in sys.argv[1:] if not argument.startswith("-")]
    dead = alive = unproved = 0
    for rule in all_rules():
        if wanted and rule.id not in wanted:
            continue
        tests = conditions(rule)
        survivors = [number for number in range(len(tests)) if not noticed(rule, mutant(rule, number))]
        survivors = [number for number in survivors if not noticed_by_tests(rule, number)]
        dead, alive = dead + len(tests) - len(survivors), alive + len(survivors)
        unproved += not tests or len(survivors) == len(tests)
        print(f"{rule.id}  {len(tests)} conditions, {len(tests) - len(survivors)} inversions noticed", flush=True)
        for number in survivors:
            print(f"     not noticed: not ({ast.unparse(tests[number])})", flush=True)
    print(f"{dead} inversions noticed, {alive} not; {unproved} rules whose inversion nobody notices")
    return int(unproved > 0 or (strict and alive > 0))


if __name__ == "__main__":
    sys.exit(main())
