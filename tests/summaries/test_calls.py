"""What belongs to no run of an agent, in numbers."""

from __future__ import annotations

from inspector.model import REHEARSAL, Finding, Severity
from inspector.summaries.calls import CLIENTS, FOUND, Apart, Calls
from inspector.summaries.summary import RunBrief


def call(tool: str | None, outcome: str = "complete", command: str | None = None, **statuses: int) -> RunBrief:
    numbers = {int(status[1:]): number for status, number in statuses.items()}
    return RunBrief(number=0, tool=tool, command=command, outcome=outcome, statuses=numbers)  # type: ignore[arg-type]


def words(*runs: RunBrief) -> str:
    calls = Calls(runs[0].command or runs[0].tool or "", runs[0].command is not None)
    for run in runs:
        calls.add(run)
    return str(calls)


def test_a_tools_requests_are_counted_by_what_was_answered() -> None:
    assert words(call("curl/8", s200=30, s403=18), call("curl/8", s404=5, s0=1)) == (
        "54 requests of curl/8, 18 answered 403, 5 answered 404, 1 without an answer"
    )
    assert words(call(None, s200=1)) == "1 other request"
    assert words(call(REHEARSAL, s200=2)) == "2 requests of a rehearsal"
    assert words(call("\x1b]0;x", s200=1)) == "1 request of \\x1b]0;x"


def test_a_command_completed_or_failed() -> None:
    name = "puppet facts upload"
    assert words(call(name, command=name), call(name, command=name)) == f"2 calls of `{name}`, completed"
    assert words(call(name, "unfinished", name), call(name, command=name)) == f"2 calls of `{name}`, 1 failed"
    assert words(call(name, "refused", name)) == f"1 call of `{name}`, failed"
    asked = "puppet ssl submit_request"
    assert words(call(asked, "waiting", asked)) == f"1 call of `{asked}`, completed"
    assert words(call(None, "unfinished", "puppet ssl bootstrap")) == "1 call of `puppet ssl bootstrap`, completed"


def test_anybody_may_send_any_name_and_is_counted_all_the_same() -> None:
    apart = Apart()
    found = (Finding("R22", Severity.NOTICE, "x"),)
    for number in range(2 * FOUND):
        run = call(f"tool{number}", s200=1)
        apart.add(RunBrief(number=0, tool=run.tool, statuses=run.statuses, findings=found, ended=float(number)))
    assert len(apart.calls) == CLIENTS + 1
    assert sum(calls.statuses.total() for calls in apart.calls.values()) == 2 * FOUND
    assert (len(apart.found), apart.ended) == (FOUND, 2 * FOUND - 1.0)
