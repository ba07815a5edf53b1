"""Agents that run again and again, with a fault that can be chosen and taken back meanwhile: a lab to try things in."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Self

from inspector.errors import InspectorError
from inspector.lab.faults import HEALTHY, NODE

if TYPE_CHECKING:
    from inspector.lab.agent import LabAgent
    from inspector.lab.faults import Fault
    from inspector.lab.scene import Lab

OTHERS = ("web2.lab.example", "db1.lab.example")
"""The nodes that are never broken themselves; a fault of the CA or of the master reaches them too."""
INTERVAL = 3.0
"""Seconds between two rounds of runs."""
WAIT = 0.2
"""``waitforcert`` of these agents (seconds)."""


class LabLoop:
    """Runs a lab's agents while its context is entered: first the others, then those of the chosen fault."""

    def __init__(self, lab: Lab, fault: Fault = HEALTHY, *, interval: float = INTERVAL) -> None:
        self._lab = lab
        self._interval = interval
        self._others = [lab.agent(name, waitforcert=WAIT) for name in OTHERS]
        self._broken: list[LabAgent] = []
        """The agents of the fault that is played; empty before its first round."""
        self.fault = fault
        """The fault that is played from the next round on."""
        self._played = fault
        self.trouble = ""
        """Why the last round failed; empty if it did not."""
        self.rounds = 0
        """How many rounds were played."""
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="lab loop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def choose(self, fault: Fault) -> None:
        """Play another fault, from a repaired lab on; ``HEALTHY`` only repairs it."""
        self.fault = fault
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            self._wake.clear()
            try:
                self._round()
                self.trouble = ""
            except Exception as error:  # noqa: BLE001 - a mistake in the lab must not end what shows it
                self.trouble = f"the lab failed: {error!r}"
            self.rounds += 1
            self._wake.wait(self._interval)

    def _round(self) -> None:
        if self.fault is not self._played:
            self._played, self._broken = self.fault, []
            self._lab.restore(NODE)
        for agent in self._others:
            self._go(agent)
        if self._stopped:
            return
        if self._broken:
            for agent in self._broken:
                agent.run()
        else:
            self._lab.agents.clear()
            self._played.play(self._lab)
            self._broken = list(self._lab.agents.values())
        self._lab.master.received.clear()

    def _go(self, agent: LabAgent) -> None:
        """Run an agent; its certificate is signed as soon as it waits for it."""

        def sign(_waits: int) -> None:
            with contextlib.suppress(InspectorError):  # it was signed already
                self._lab.ca.sign(agent.certname)

        agent.run(sign)
