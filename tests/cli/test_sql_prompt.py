"""The prompt of `sql`: statements of several lines, its own commands, completion, history, Ctrl-C."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from inspector.cli import results
from inspector.cli.sql_prompt import HISTORY, Prompt
from inspector.fleet import sql
from tests.support.hostile import HOSTILE, harmless
from tests.support.made_tables import exchange, run, tables
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    type Say = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tables(tmp_path, run("a.example", 2), run("b.example", 1), exchange("a.example", path=f"/{HOSTILE}"))


@pytest.fixture
def say(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Types lines and returns what is printed after the greeting."""

    def typed(*lines: str | type[BaseException]) -> str:
        waiting = iter([*lines, EOFError])

        def read(prompt: str) -> str:
            line = next(waiting)
            if not isinstance(line, str):
                raise line
            prompts.append(prompt)
            return line

        prompts: list[str] = []
        monkeypatch.setattr("builtins.input", read)
        with sql.opened(root) as database:
            Prompt(database, results.print_table).run()
        greeting, _, rest = capsys.readouterr().out.partition("\n")
        assert ".quit" in greeting
        return "".join(f"[{prompt.strip()}]" for prompt in prompts) + "\n" + rest

    return typed


def test_a_statement_may_have_several_lines_and_a_line_several_statements(say: Say) -> None:
    assert (
        say("SELECT certname", "", "FROM runs ORDER BY 1;") == "[sql>][...>][...>]\ncertname\na.example\nb.example\n\n"
    )
    assert say("SELECT 1 AS a; SELECT 2 AS b;") == "[sql>]\na\n1\nb\n2\n\n"
    assert say("", "  ", "SELECT 1 AS a ; ") == "[sql>][sql>][sql>]\na\n1\n\n"


def test_a_mistake_does_not_end_it(say: Say) -> None:
    out = say("SELECT outcom FROM runs;", "COPY runs TO 'x';", "SELECT 7 AS seven;")
    assert 'Referenced column "outcom" not found in FROM clause.\n  Candidate bindings: "outcome"' in out
    assert "COPY is not possible here.\n  `sql` only reads" in out
    assert out.endswith("seven\n7\n\n")


def test_a_mistake_that_quotes_what_was_captured_does_nothing_to_the_terminal(say: Say) -> None:
    out = say("SELECT path::INT FROM exchanges;")
    assert "gnp" in out
    assert harmless(out.replace("\n", ""))


def test_ctrl_c_forgets_what_is_typed_and_ctrl_d_leaves(say: Say) -> None:
    assert say("SELECT nonsense", KeyboardInterrupt, "SELECT 1 AS a;") == "[sql>][sql>]\n\na\n1\n\n"


def test_its_commands(say: Say) -> None:
    out = say(".tables", ".columns captures", ".queries", ".query silent hours=0.5", ".help")
    assert "exchanges" in out
    assert "TIMESTAMP  When its first record began. [UTC]" in out
    assert "silent " in out
    assert "'0.5' is no value of hours" in out
    assert ".columns TABLE" in out
    assert say(".query silent hours=0").count(".example") == 2
    assert "no rows" in say(".query silent hours=5;")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (".nothing", "There is no command .nothing.\n  There are .tables, "),
        (".columns", "Name one table.\n  There are runs, "),
        (".columns nothing", "There is no table nothing.\n  There are runs, "),
        (".query", "Name a query.\n  .queries lists them."),
        (".query silnt", "There is no query 'silnt'.\n  Did you mean `silent`?"),
        (".query 'a", "cannot be read: No closing quotation."),
    ],
)
def test_mistakes_of_commands(say: Say, line: str, expected: str) -> None:
    assert expected in say(line)


def test_quit_leaves(say: Say) -> None:
    assert say(".quit", "SELECT 1;") == "[sql>]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "before", "expected"),
    [
        ("exch", "SELECT * FROM ", ["exchanges"]),
        ("environment_a", "SELECT ", ["environment_asked"]),
        ("SELE", "", ["SELECT"]),
        ("sele", "", ["select"]),
        (".co", "", [".columns"]),
        ("resource_", ".columns ", ["resource_events"]),
        ("exp", ".query ", ["expiring"]),
        ("zzz", "", []),
    ],
)
def test_completion(root: Path, typed: str, before: str, expected: list[str]) -> None:
    with sql.opened(root) as database:
        assert Prompt(database, results.print_table)._complete(typed, before) == expected


@pytest.mark.slow
def test_on_a_terminal(root: Path, tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    words = ("-m", "inspector.cli", "sql", str(root))
    with Terminal(*words, size=(100, 30), environment=environment) as terminal:
        terminal.wait_for("sql> ")

        def type_in(keys: str, *expected: str) -> None:
            terminal.press("", 0.2)  # readline misses a Ctrl-C that comes while it still draws
            at = len(terminal.drawn)
            os.write(terminal._fd, keys.encode())
            for text in expected:
                terminal.wait_for(text, at)

        type_in("select certname from runs order by time desc limit 1;\n", "b.example", "sql> ")
        type_in("select count(*) + 40 as n from findi", "from findi")
        type_in("\t", "ngs")
        type_in(";\n", "40", "sql> ")
        type_in("select nonsense", "nonsense")
        type_in("\x03", "sql> ")
        type_in("select count(*) from range(100000000) a, range(100000000) b;\n", "\n")
        at = len(terminal.drawn)
        terminal.press("", 1.0)  # it takes days
        assert "sql> " not in terminal.text(at)
        type_in("\x03", "interrupted", "sql> ")
        type_in(".query versions\n", "8.10.0", "sql> ")
        os.write(terminal._fd, b"\x04")
        assert terminal.exit_status() == 0
    history = tmp_path / "state" / "puppet-inspector" / HISTORY
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "select count(*) + 40 as n from findings;" in history.read_text()
    with Terminal(*words, size=(100, 30), environment=environment) as terminal:
        terminal.wait_for("sql> ")
        os.write(terminal._fd, b"\x1b[A")
        terminal.wait_for(".query versions")
        terminal.press("", 0.2)
        os.write(terminal._fd, b"\x15\x04")
        assert terminal.exit_status() == 0
