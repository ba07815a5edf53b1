"""A message means the same, and is healed the same way, wherever it stands: pasted, in an answer, in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.analysis import known_errors
from inspector.rules import fixes
from inspector.rules.puppet_commands import destroying
from inspector.runs.examples import ExamplePart, catalog, plugins, report, talk
from inspector.summaries import conclusions
from tests.support import messages
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from inspector.summaries.summary import RunBrief

LINES = [printed.line for found in messages.written() if not found.written.frame for printed in found.written.printed]
ONE_LINE = [line for line in LINES if "\n" not in line and "\x1b" not in line]
CATALOG = "Error: Could not retrieve catalog from remote server: Error 500 on SERVER: "
OF_MESSAGE = {"S01", "S27", "S28"}
OWN_FIX = {"S25", "S26", "S30", "F07"}
"""Rules that know more than their message: the classifier, the facts that were sent, the digests of both ends."""


def run_of(*parts: ExamplePart) -> RunBrief:
    (run,) = runs_of(talk(*parts))
    return conclusions.of_run(run)


def pasted(message: str) -> known_errors.ErrorMatch:
    found = known_errors.find(known_errors.book(), message)
    assert found
    return found


@pytest.mark.parametrize("line", [line for line in ONE_LINE if line.startswith(CATALOG)])
def test_in_the_answer_to_a_catalog_request(line: str) -> None:
    run = run_of(plugins(), catalog(status=500, text=line.removeprefix(CATALOG)), report(result="failed"))
    assert run.cause in OF_MESSAGE | OWN_FIX
    if run.cause in OF_MESSAGE:
        known = pasted(line).known
        assert run.meaning == known.meaning
        assert run.special_fixes[run.cause] == known_errors.filled(known.fix, line)


@pytest.mark.parametrize("line", ONE_LINE)
def test_in_a_report(line: str) -> None:
    message = line.removeprefix("Error: ").removeprefix("Warning: ").removeprefix("Notice: ")
    log = {"level": "err", "source": "/Stage[main]/Main/File[/a]", "message": message}
    failed = {"File[/a]": {"failed": True}}
    run = run_of(plugins(), catalog(), report(result="failed", logs=[log], resource_statuses=failed))
    known = pasted(message).known
    if destroying(known.fix) and "P01" not in known.rules:
        assert "P01" not in run.meanings  # a message of another service, perhaps: nothing is deleted for it
    else:
        assert run.meanings["P01"] == known.meaning
        assert run.special_fixes["P01"] == known_errors.filled(known.fix, message)


def test_the_file_that_a_message_names_is_in_its_fix() -> None:
    text = "Server Error: Permission denied - /etc/puppetlabs/code/environments/dev/modules/web/metadata.json on node a"
    run = run_of(plugins(), catalog(status=500, text=text), report(result="failed"))
    assert "chmod -R a+rX /etc/puppetlabs/code/environments/dev/modules/web`" in fixes.plain(run.steps)


@pytest.mark.parametrize("path", ["/etc/modules/../../shadow/x", "/a/modules/$(reboot)/x", "/a/modules/.x/y"])
def test_no_odd_path_gets_into_a_command(path: str) -> None:
    run = run_of(plugins(), catalog(status=500, text=f"Server Error: Permission denied - {path} on node a"))
    assert "<module directory>" in fixes.plain(run.steps)
