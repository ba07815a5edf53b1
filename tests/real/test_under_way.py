"""What is said while real agents gather facts, wait for their catalogs and apply them: true at each moment, and never
taken back."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

from inspector import regex
from tests.real.through import Stage
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.real.agent import RealAgent
    from tests.real.puppet import RealMaster

LONG = 7
"""Seconds that something lasts; it is said after five."""
TIME = r"[0-9]+ s( so far)?( \([^)]+ last time\))?"
BUSY = regex.compile(r"asks for its node|waits for an answer \(.*|sends its report|is silent")
"""What else lasts on a machine that is busy with other work."""


def takes_long(
    stage: Stage, agent: RealAgent, *, facts: bool = False, compilation: bool = False, run: bool = False
) -> None:
    """Let an agent's facts, its compilation or its catalog take long."""
    if facts:
        (terminus,) = agent.base.rglob("invented.rb")
        terminus.write_text(
            terminus.read_text().replace("def find(request)", f"def find(request)\n    sleep {LONG}", 1)
        )
    code = [f"$late = generate('/bin/sleep', '{LONG}')"] if compilation else []
    code += [f"exec {{ '/bin/sleep {LONG}': }}"] if run else []
    stage.master.manifest(agent.certname, "\n".join(code))


def notes_on(stage: Stage, agent: RealAgent) -> list[str]:
    """What was said of an agent beside its records: what it did, and how its runs ended."""
    mine = [line for line in stage.lines if agent.certname in line]
    return [
        line.partition(" ... ")[2] if " ... " in line else regex.sub(r" in .*", "", line.partition(": ")[2])
        for line in mine
        if " ... " in line or line.startswith("== ")
    ]


def kinds(lines: Iterable[str]) -> Iterator[str]:
    """These without their times; what is said again and again once."""
    last = None
    for line in lines:
        kind = regex.sub(f", {TIME}$", "", line)
        if kind != last and not BUSY.fullmatch(kind):
            last = kind
            yield kind


def test_a_long_run_and_one_that_is_killed_through_the_own_proxy(master: RealMaster, tmp_path: Path) -> None:
    stage = Stage(master, tmp_path, own=True)
    long, killed = stage.enrolled("long.example"), stage.enrolled("killed.example")
    takes_long(stage, long, facts=True, compilation=True, run=True)
    takes_long(stage, killed, compilation=True)
    for kind in ("certs", "private_keys"):
        shutil.copy(killed.ssldir / kind / f"{killed.certname}.pem", long.ssldir / kind)
    with stage.proxy(f"keys:{long.ssldir}", puppet_unsafe_keys="true") as road:
        assert road.run(long).status == 2
        assert eventually(lambda: any("== run 1" in line for line in stage.lines))
        # This master closes connections that are idle for five seconds.
        notes = (line.replace(", or has ended", "") for line in notes_on(stage, long))
        assert list(kinds(notes)) == [
            "gathers facts", "waits for its catalog", "applies its catalog", "complete",
        ]  # fmt: skip
        with road.start(killed) as running:
            assert eventually(lambda: "waits for its catalog" in "".join(notes_on(stage, killed)))
            master.signal(signal.SIGSTOP)  # a master that hangs looks the same
            try:
                running.process.kill()
                assert eventually(lambda: "is silent" in "".join(notes_on(stage, killed)))
            finally:
                master.signal(signal.SIGCONT)
    assert list(kinds(notes_on(stage, killed)))[:2] == ["waits for its catalog", "is silent since it got no catalog"]
    assert not any("did not finish" in line for line in stage.lines)
    stage.close()


def test_an_agent_that_is_killed_and_runs_again_through_mitmdump(master: RealMaster, tmp_path: Path) -> None:
    stage = Stage(master, tmp_path)
    agent = stage.enrolled("again.example")
    takes_long(stage, agent, run=True)
    with stage.proxy(f"keys:{agent.ssldir}") as road:
        with road.start(agent) as running:
            assert eventually(lambda: "applies its catalog" in "".join(notes_on(stage, agent)))
            running.process.kill()
        assert eventually(lambda: "or has ended" in "".join(notes_on(stage, agent)))
        assert "did not finish" not in "".join(stage.lines)
        takes_long(stage, agent)
        assert road.run(agent).status == 0
        assert eventually(lambda: any("== run 2" in line for line in stage.lines))
    first = ["applies its catalog", "applies its catalog, or has ended", "unfinished"]
    *notes, end = kinds(notes_on(stage, agent))
    assert (notes[:3], end) == (first, "complete")
    assert not any("or has ended" in note for note in notes[3:])  # of a run that a busy machine makes long
    assert sum("did not finish" in line for line in stage.lines) == 1
    stage.close()
