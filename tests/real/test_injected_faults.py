"""What a real agent does with each fault that the proxy injects: the table in docs/faults.md."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import pytest

from inspector.capture.store import Capture
from inspector.model import Exchange, Gap
from inspector.proxy.faults.actions import KINDS
from inspector.summaries import reading
from tests.real.agent import installed
from tests.real.through import PROXY_HOST
from tests.support import places

if TYPE_CHECKING:
    from tests.real.agent import RealAgent
    from tests.real.through import Stage

PAGE = places.ROOT / "docs" / "faults.md"


class Outcome(NamedTuple):
    """What becomes of a run with a fault."""

    fault: str
    """Without the agent; CADIR stands for the master's."""
    status: int
    """Of the agent."""
    prints: str
    """A part of what it prints."""
    does: str
    """The same in words."""
    hits: int = 1
    """How often the fault happens in the run."""
    asked_again: bool = False
    """Whether the agent asks for the same again."""

    @property
    def row(self) -> str:
        """The row of the table in the documentation."""
        return f"| `{self.fault}` | {self.status} | {self.does}: `{self.prints}` |"


FIRST_OF_8 = Outcome("503=2 phase:catalog nth:1", 0, "Applied catalog in", "waits 2 seconds and asks again", 1, True)
"""What agents of 8 do where the first of ``OUTCOMES`` is what 7.23 does; they ask again a hundred times."""
OUTCOMES = (
    Outcome(
        "503=2 phase:catalog", 1, "attempt to read body out of block",
        "waits 2 seconds and then fails instead of asking again (7.23 on Ruby 3.1 cannot)",
    ),
    Outcome("503 phase:catalog", 1, "Error 503 on SERVER", "fails at once; it reports the failed run"),
    Outcome("500 phase:catalog", 1, "Error 500 on SERVER", "fails at once; it reports the failed run"),
    Outcome("delay=3s phase:catalog", 0, "Applied catalog in", "waits (`http_read_timeout`: 10 minutes)"),
    Outcome("throttle=5k phase:catalog", 0, "Applied catalog in", "waits"),
    Outcome("cut=100 phase:catalog", 1, "end of file reached", "notices it and fails; a POST is not sent again"),
    Outcome("reset phase:catalog", 1, "Connection reset by peer", "fails; a POST is not sent again"),
    Outcome(
        "reset method:GET nth:1", 0, "Connection reset by peer",
        "prints an error for the plugins, does not ask for them again, and goes on to a successful run",
    ),
    Outcome(
        "corrupt phase:catalog", 1, "Failed to deserialize Puppet::Resource::Catalog", "fails, and prints what it got",
    ),
    Outcome(
        "empty-catalog", 0, "Applied catalog in", "caches it, applies it and reports success: nothing is managed",
    ),
    Outcome(
        "crl=mint:CADIR", 1, "certificate verify failed [CRL has expired for CN=proxy.example]",
        "refuses its master with the next connection; no certificate was requested",
    ),
    Outcome(
        "certificate=mint:CADIR nth:1", 0,
        "did not match server certificate; expected one of puppet-inspector-fault.invalid",
        "refuses that connection, which was to bring its plugins, and goes on over the next one to a successful run",
    ),
    Outcome(
        "refuse nth:1", 0, "No more routes to fileserver",
        "prints errors for its plugins, and goes on over the next connection to a successful run",
    ),
)  # fmt: skip


def test_the_page_says_what_is_played() -> None:
    table = PAGE.read_text().partition("## What Puppet 7.23 does")[2]
    assert [line for line in table.splitlines() if line.startswith("| `")] == [outcome.row for outcome in OUTCOMES]
    assert {outcome.fault.partition(" ")[0].partition("=")[0] for outcome in OUTCOMES} == set(KINDS)


# The proxies take turns: that both do the same on the wire is tested without Puppet (tests/e2e/test_injected_faults).
@pytest.mark.parametrize(("outcome", "own"), [*zip(OUTCOMES, itertools.cycle([False, True]))],
                         ids=lambda value: getattr(value, "fault", "proxy" if value else "mitmdump"))  # fmt: skip
def test_what_a_real_agent_does(stage: Stage, steady: RealAgent, outcome: Outcome, own: bool) -> None:
    if outcome is OUTCOMES[0] and installed() >= (8,):
        outcome = FIRST_OF_8
    agent = stage.agent("enrols.example") if outcome.fault.startswith("crl") else steady
    line = f"{outcome.fault.replace('CADIR', str(stage.master.cadir))} agent:{PROXY_HOST}"
    with stage.proxy(f"keys:{agent.ssldir}", own=own, puppet_fault=(line,)) as road:
        done = road.run(agent)
    assert done.status == outcome.status, done.output
    assert outcome.prints in done.output
    with Capture.create(stage.capture) as written:
        written.settle()  # the agent has ended
    with Capture.open(stage.capture) as capture:
        found = [record for record in capture.records() if not isinstance(record, Gap)]
    hit = [record for record in found if record.injected]
    assert len(hit) == outcome.hits
    if isinstance(hit[0], Exchange):
        path = hit[0].request.path
        asked = [record for record in found if isinstance(record, Exchange) and record.request.path == path]
        assert asked[: len(hit)] == hit
        assert len(asked) == len(hit) + outcome.asked_again
    runs = reading.read(stage.capture).briefs
    marked = [run for run in runs if run.verdict and "a fault was injected here on purpose" in run.verdict.message]
    assert len(marked) == 1
    late = [found for run in marked for found in run.findings if found.seqs and found.seqs[-1] >= hit[0].seq]
    assert [found for found in late if found.severity != "notice"] == []
    assert sum("-- fault: " in line and "as long as" not in line for line in stage.lines) == outcome.hits
