"""``puppet-inspector sql``: ask tables, or captures, in SQL."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli import results, sql_prompt
from inspector.cli.arguments import add_rules
from inspector.cli.output import print_json
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable
from inspector.cli.rows import print_rows
from inspector.errors import InspectorError
from inspector.fleet import conversion, sql
from inspector.fleet.directory import TableDirectory, default_site
from inspector.fleet.queries.named import QUERIES, named
from inspector.fleet.tables import TABLES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from inspector.fleet.queries.query import Query

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
    with _opened(given, rules=bool(arguments.rules or arguments.rules_dir)) as (database, status):
        show = results.print_json if arguments.json else results.print_csv if arguments.csv else results.print_table
        if arguments.query:
            with database.result(arguments.query.sql, _values(database, arguments.query, arguments.settings)) as result:
                show(result)
            return status
        if not statement and sys.stdin.isatty() and sys.stdout.isatty():
            sql_prompt.Prompt(database, show).run()
            return status
        statements = database.statements(statement or _script())
        if len(statements) > 1 and show is not results.print_table:
            raise InspectorError("--json and --csv print the result of one statement.", "Ask one at a time.")
        for number, one in enumerate(statements):
            if number:
                print()
            with database.result(one) as result:
                show(result)
    return status


def _values(database: sql.Database, query: Query, settings: Sequence[str]) -> dict[str, object]:
    return dict(query.values(settings, database.end))


def _split(given: Sequence[str]) -> tuple[list[Path], str]:
    """Split the arguments into paths and the statement at their end: it has blanks or brackets, and is no file."""
    last = given[-1] if given else ""
    if (any(letter.isspace() for letter in last) or "(" in last) and not _exists(last):
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


@contextlib.contextmanager
def _opened(given: Sequence[Path], *, rules: bool) -> Iterator[tuple[sql.Database, int]]:
    """Open tables, or make them of captures in a temporary directory; also the exit status if nothing else is wrong.
    Raises InspectorError."""
    tables = [path for path in given if path.is_dir() and not any(path.glob("*.sqlite"))]
    if not tables:
        with tempfile.TemporaryDirectory(prefix="puppet-inspector-") as folder:
            status = _convert(given, Path(folder))
            with sql.opened(Path(folder)) as database:
                yield database, status
        return
    if len(given) > 1:
        raise InspectorError(
            f"{tables[0]} is a directory without captures, and not the only argument.",
            "Give one directory of tables, or captures.",
        )
    if rules:
        raise InspectorError(
            "Rules are applied when captures are read, not to tables.",
            "Convert the captures with them: puppet-inspector tables CAPTURE -o DIR --rules YAML",
        )
    with sql.opened(tables[0]) as database:
        yield database, 0


def _convert(given: Sequence[Path], folder: Path) -> int:
    captures = paths.chosen(given)
    unreadable = Unreadable(captures)
    with shown() as watch:
        directory = TableDirectory.create(folder)
        for name in TABLES:  # they are there, if without rows, also of captures without records
            (folder / name).mkdir()
        for result in conversion.convert_all(captures, directory, default_site(), watch):
            if result.error is not None:
                unreadable.report(result.error)
    return unreadable.status


def _list_queries(*, as_json: bool) -> int:
    known = QUERIES.values()
    if as_json:
        print_json([query.described() for query in known])
    else:
        print_rows(("query", "question"), [(query.name, query.question) for query in known])
    return 0
