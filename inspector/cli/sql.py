"""``puppet-inspector sql``: ask tables, or captures, in SQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli import results, sql_prompt, tables
from inspector.cli.arguments import add_rules
from inspector.cli.output import print_json
from inspector.cli.rows import print_rows
from inspector.errors import InspectorError
from inspector.fleet import sql
from inspector.fleet.queries.named import QUERIES, named

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

EXAMPLE = "puppet-inspector sql tables/ --query expiring --set days=60"
SCRIPT = 2**20
"""Characters of statements on standard input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "given",
        nargs="*",
        metavar="capture",
        help="a directory of tables, or captures and directories with captures (default: the newest in captures/), and "
        "at last a statement: 'SELECT ...'",
    )
    parser.add_argument("--query", type=named, choices=QUERIES.values(), metavar="NAME", help="a named query (--list)")
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", metavar="NAME=VALUE",
        help="a parameter of the query; may be repeated",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", dest="listed", help="list the named queries")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON (docs/json/sql.schema.json, of --list "
                      "docs/json/queries.schema.json)")  # fmt: skip
    form.add_argument("--csv", action="store_true", help="print CSV; texts that a spreadsheet would calculate get an '")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Ask a directory of tables, or captures, in SQL (docs/sql.md): `runs`, `exchanges`, `findings`, `certificates` and
    others are tables. Without a statement: at a prompt, or what standard input contains. Statements only read, and
    nothing but the tables. Times are in UTC."""
    if arguments.listed:
        return _list_queries(as_json=arguments.json)
    given, statement = _split(arguments.given)
    if statement and arguments.query:
        raise InspectorError(
            "Here are a statement and a named query.", "Give one of them. Parameters of a query: --set days=60"
        )
    if arguments.settings and not arguments.query:
        raise InspectorError("--set sets parameters of a named query.", "Name it with --query.")
    rules = bool(arguments.rules or arguments.rules_dir)
    with tables.opened(given, rules=rules) as (directory, status), sql.opened(directory.root) as database:
        show = results.print_json if arguments.json else results.print_csv if arguments.csv else results.print_table
        if arguments.query:
            with database.answer(arguments.query, arguments.settings) as result:
                show(result)
            return status
        if not statement and sys.stdin.isatty() and sys.stdout.isatty():
            sql_prompt.Prompt(database, show).run()
            return status
        statements = database.statements(statement or _script())
        if not statements:
            raise InspectorError(
                "There is no statement.", "Write one after the captures, or name a query: --query NAME (--list)."
            )
        if len(statements) > 1 and show is not results.print_table:
            raise InspectorError("--json and --csv print the result of one statement.", "Ask one at a time.")
        for number, one in enumerate(statements):
            if number:
                print()
            with database.result(one) as result:
                show(result)
    return status


def _split(given: Sequence[str]) -> tuple[list[Path], str]:
    """Split the arguments into paths and the statement at their end: it is no file, and has blanks or brackets, or is
    a word behind others that looks like no path."""
    last = given[-1] if given else ""
    word = len(given) > 1 and not {*"./"} & {*last}
    if (any(letter.isspace() for letter in last) or "(" in last or word) and not _exists(last):
        return [Path(word) for word in given[:-1]], last
    return [Path(word) for word in given], ""


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a name
        return False


def _script() -> str:
    script = sys.stdin.read(SCRIPT + 1)
    if len(script) > SCRIPT:
        raise InspectorError(f"Standard input has more than {SCRIPT:,} characters.", "It contains statements only.")
    return script


def _list_queries(*, as_json: bool) -> int:
    known = QUERIES.values()
    if as_json:
        print_json([query.described() for query in known])
    else:
        print_rows(("query", "question"), [(query.name, query.question) for query in known])
    return 0
