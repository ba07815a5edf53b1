"""The prompt of ``puppet-inspector sql``: statements of one or more lines, with history and completion."""

from __future__ import annotations

import contextlib
import shlex
import signal
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.cli.rows import print_rows
from inspector.errors import InspectorError
from inspector.fleet import sql
from inspector.fleet.queries.named import QUERIES, named
from inspector.fleet.tables import PARTITIONS, TABLES
from inspector.text import beginning, clean
from inspector.tui import user_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspector.fleet.sql import Database, Result

HISTORY = "sql_history"
"""The file of it, in the user's state folder."""
LINES = 1000
"""Lines of the history."""
MESSAGE = 1500
"""Characters of a line of an error's message: it may quote what was captured."""
_PROMPT, _MORE = "sql> ", "...> "
_WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT USING AS AND OR NOT IN IS NULL LIKE BETWEEN DISTINCT WITH CASE
WHEN THEN ELSE END UNION ALL DESC DESCRIBE SUMMARIZE FILTER QUALIFY count sum avg min max arg_max median quantile_cont
date_trunc date_diff
"""
_HELP = (
    ("SELECT … ;", "ask in SQL; a statement ends with a semicolon, and may have several lines"),
    (".tables", "list the tables"),
    (".columns TABLE", "list the columns of a table, with what they mean"),
    (".queries", "list the named queries"),
    (".query NAME", "ask a named query; parameters: .query expiring days=60"),
    (".quit", "leave, as Ctrl-D does; Ctrl-C interrupts a statement"),
)


class Prompt:
    """Reads statements from the terminal and prints their results."""

    def __init__(self, database: Database, show: Callable[[Result], None]) -> None:
        self._database = database
        self._show = show
        self._commands: dict[str, Callable[[list[str]], None]] = {
            ".tables": self._tables,
            ".columns": self._columns,
            ".queries": self._queries,
            ".query": self._query,
            ".help": self._help,
        }

    def run(self) -> None:
        """Read and answer until the user leaves."""
        print("Ask in SQL, end with a semicolon; .help lists commands, .quit leaves.")
        with _interruptible(), _editing(self._complete):
            pending: list[str] = []
            while True:
                try:
                    line = input(_MORE if pending else _PROMPT)
                except EOFError:
                    print()
                    return
                except KeyboardInterrupt:
                    print()
                    pending.clear()
                    continue
                if not pending and line.strip() in (".quit", ".exit"):
                    return
                pending.append(line)
                if line.rstrip().endswith(";") or (len(pending) == 1 and line.lstrip().startswith(".")):
                    self._answer("\n".join(pending).strip())
                    pending.clear()
                elif not "".join(pending).strip():
                    pending.clear()

    def _answer(self, text: str) -> None:
        try:
            if text.startswith("."):
                self._command(text)
                return
            for statement in self._database.statements(text):
                with self._database.result(statement) as result:
                    self._show(result)
        except InspectorError as error:
            for line in (error.message, *(f"  {line}" for line in error.hint.splitlines())):
                print(beginning(clean(line), MESSAGE))
        except KeyboardInterrupt:
            print("interrupted")

    # -- commands -------------------------------------------------------------------------------------------

    def _command(self, line: str) -> None:
        try:
            name, *words = shlex.split(line.rstrip(";"))
        except ValueError as error:
            raise InspectorError(f"{line} cannot be read: {error}.", "Close its quotes.") from error
        command = self._commands.get(name)
        if command is None:
            raise InspectorError(f"There is no command {name}.", f"There are {', '.join(self._commands)} and .quit.")
        command(words)

    def _tables(self, _words: list[str]) -> None:
        print_rows(("table", "a row is"), [(table.name, table.meaning) for table in TABLES.values()])

    def _columns(self, words: list[str]) -> None:
        if len(words) != 1 or words[0] not in TABLES:
            wrong = "Name one table." if len(words) != 1 else f"There is no table {words[0]}."
            raise InspectorError(wrong, f"There are {', '.join(TABLES)}.")
        found = (*TABLES[words[0]].columns, *PARTITIONS)
        rows = [
            (column.name, column.sql, f"{column.meaning} [{column.unit}]" if column.unit else column.meaning)
            for column in found
        ]
        print_rows(("column", "type", "meaning"), rows)

    def _queries(self, _words: list[str]) -> None:
        print_rows(("query", "question"), [(query.name, query.question) for query in QUERIES.values()])

    def _query(self, words: list[str]) -> None:
        if not words:
            raise InspectorError("Name a query.", ".queries lists them.")
        query = named(words[0])
        with self._database.answer(query, words[1:]) as result:
            self._show(result)

    def _help(self, _words: list[str]) -> None:
        print_rows(("type", "to"), _HELP)

    # -- completion -----------------------------------------------------------------------------------------

    def _complete(self, typed: str, line: str) -> list[str]:
        """Return what a word that is typed in a line may become."""
        before = line.split()[:1]
        if typed.startswith("."):
            names = [*self._commands, ".quit"]
        elif before == [".query"]:
            names = list(QUERIES)
        elif before == [".columns"]:
            names = list(TABLES)
        else:
            columns = {name for table in TABLES for name in sql.columns(table)}
            words = [word.lower() if typed.islower() else word for word in _WORDS.split()]
            names = [*TABLES, *sorted(columns), *words]
        return list(dict.fromkeys(name for name in names if name.startswith(typed)))


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt what is done, each time; elsewhere it ends the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _editing(complete: Callable[[str, str], list[str]]) -> Iterator[None]:
    """Let the user edit lines, and call back earlier ones; plain lines where Python has no readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    found: list[str] = []

    def completer(typed: str, number: int) -> str | None:
        nonlocal found
        if number == 0:
            found = complete(typed, readline.get_line_buffer()[: readline.get_begidx()])
        return found[number] if number < len(found) else None

    readline.set_completer(completer)
    readline.set_completer_delims(" \t\n,;()=<>*+-/'\"")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.clear_history()
    for line in _history():
        readline.add_history(line)
    try:
        yield
    finally:
        last = readline.get_current_history_length()
        lines = [readline.get_history_item(number) or "" for number in range(max(1, last - LINES + 1), last + 1)]
        user_state.write(HISTORY, "".join(f"{line}\n" for line in lines if line.strip()))
        readline.set_completer(None)


def _history() -> list[str]:
    """The lines of earlier prompts; none if they cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        written = inputs.read(user_state.folder() / HISTORY, inputs.SMALL, links=False).decode(errors="replace")
        return [clean(line) for line in written.splitlines()[-LINES:]]
    return []
