"""What a start costs, in modules: they can be counted, where a clock on a busy machine only varies (tests.bench.start).

A module takes a third of a millisecond, and one of somebody else's brings dozens.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inspector.cli import commands
from tests.support import places

SAMPLE = places.SAMPLES / "first-run.sqlite"
RUN = """\
import contextlib, io, json, sys
from inspector.cli.__main__ import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    assert main() in (0, 1) and out.getvalue()
print(json.dumps(sorted(sys.modules)))
"""
PARSERS = """\
import json, sys
from inspector.cli import commands
found = {}
for name in commands.COMMANDS:
    commands.parser_of(name)
    found[name] = sorted(sys.modules)
print(json.dumps(found))
"""
NEVER = ("mitmproxy", "textual", "asyncio", "rich", "yaml", "jinja2", "duckdb", "inspector.proxy", "inspector.fleet")
"""What none of these commands needs on a pipe."""


def printed(code: str, *words: object) -> str:
    """What a program of ours prints."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, cwd=places.ROOT, check=True, capture_output=True, text=True).stdout


def within(modules: set[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(
        name for name in modules if name.startswith(tuple(f"{each}." for each in packages)) or name in packages
    )


@pytest.mark.parametrize(
    ("words", "most", "unneeded"),
    [
        # The command line alone: 10 of ours, and nobody else's.
        (["--version"], 12, ("re2", "msgspec", "dataclasses", "sqlite3", "cryptography")),
        # The rule, and what rules are made of: 66 of ours; msgspec and RE2 are 15.
        (["explain", "B01"], 95, ("sqlite3", "cryptography", "OpenSSL", "inspector.capture")),
        # All rules (112) and the analysis: 207 of ours; of the others, certificates are 60.
        (["list", SAMPLE], 320, ("email.parser", "statistics", "inspector.compare", "inspector.formats")),
        (["check", SAMPLE], 320, ("email.parser", "statistics", "inspector.compare", "inspector.pages")),
    ],
    ids=["version", "explain", "list", "check"],
)  # fmt: skip
def test_a_command_imports_what_it_needs(words: list[object], most: int, unneeded: tuple[str, ...]) -> None:
    modules = set(json.loads(printed(RUN, *words)))
    assert within(modules, (*NEVER, *unneeded)) == []
    # The standard library's own are another number in each version.
    others = [name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names]
    assert len(others) <= most, others


def test_one_rule_is_explained_without_the_others() -> None:
    modules = json.loads(printed(RUN, "explain", "B01"))
    assert "inspector.rules.ca_fetched" in modules
    assert "inspector.rules.renewal" not in modules


def test_no_parser_waits_for_mitmproxy_or_textual() -> None:
    found = json.loads(printed(PARSERS))
    assert found.keys() == commands.COMMANDS.keys()
    assert within({*found.popitem()[1]}, ("mitmproxy", "textual", "duckdb")) == []
