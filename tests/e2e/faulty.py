"""The real proxy with faults of our own making in its process, for `test_faults` and `make soak`.

Nothing of it is in the product: an executable takes Python's place where ``inspector.proxy.launcher`` starts the proxy,
breaks what is to be broken, and goes on as it was told. A file says which hook raises now; signals turn the
clock back and ask what the proxy remembers.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import processes
from inspector.proxy import runtime
from inspector.proxy.engine.link import Link
from inspector.proxy.engine.server import Server
from inspector.proxy.mitm import addon as addon_module
from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3600.0
BACK, STATE = signal.SIGUSR1, signal.SIGUSR2
"""What turns its clock back an hour, and what makes it say what it remembers."""
STATE_LINE = "-- state "

OPEN = {
    "the end of an agent's connection": ("client_disconnected", "_record_agent_end"),
    "the end of a connection to the master": ("server_disconnected", "master_lost"),
    "the choice of the master": ("server_connect", None),
    "a failed handshake of an agent": ("tls_failed_client", "agent_refused"),
    "a failed handshake with the master": ("tls_failed_server", "_record_refused_master"),
    "the beginning of an answer": ("responseheaders", "_note_answer"),
    "the end of an exchange": ("response", "_write"),
    "an exchange without an answer": ("error", None),
    "recording an exchange": ("_record", None),
    "the verification probe": ("_report_arrived", "_report_arrived"),
}
"""What is done, and the function that does it in mitmdump's addon and in our engine (None: there is none); its failure
must not concern the agent."""
CLOSED = {
    "admitting an agent": ("_admit", "agent_connected"),
    "preparing TLS with an agent": ("_meet_agent", "_meet_agent"),
    "preparing TLS with the master": ("_meet_master", "_meet_master"),
    "replacing claims": ("_replace_claims", "_replace_claims"),
}
"""The same of what must let nothing through that was not checked, if it fails."""
_ROOT = places.ROOT


def stand_in(folder: Path, *, speed: float = 1.0) -> Path:
    """An executable that stands for Python; ``switch(folder)`` is the file that says what is broken. ``speed``: how
    fast its clock runs."""
    switch(folder).touch()
    path = folder / "python"
    path.write_text(
        f"#!{sys.executable}\n"
        f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
        f"from tests.e2e import faulty\n"
        f"faulty.start({str(switch(folder))!r}, {speed}, sys.argv[1:])\n"
    )
    path.chmod(0o700)
    return path


def switch(folder: Path) -> Path:
    """Holds ``before NAME`` or ``after NAME``, or nothing."""
    return folder / "broken"


# -- in the proxy's process -------------------------------------------------------------------------------


def start(broken: str, speed: float, arguments: list[str]) -> None:
    """Break it, and be what would have been started (``inspector.proxy.launched``): `-P -c CODE ROOT PARENT FUNCTION
    proxy ...` or the same with mitmdump's arguments."""
    parent, function, *words = arguments[4:]
    processes.end_with(int(parent), signal.SIGTERM)
    own = function.startswith("inspector.")
    _break_functions(Path(broken), own=own)
    _turn_the_clock(speed)
    _remember(own=own)
    if own:
        from inspector.proxy.engine import server

        # As `inspector.proxy.workers` does, without the process in between.
        given = dict(word.split("=", 1) for word in words[2::2])
        sys.exit(server.main([json.dumps(given), "1"]))
    from mitmproxy.tools.main import mitmdump

    sys.exit(mitmdump(words))


def _break_functions(switch: Path, *, own: bool) -> None:
    where: Any = Link if own else addon_module.PuppetInspector
    for name in filter(None, {pair[own] for pair in (*OPEN.values(), *CLOSED.values())}):
        function = getattr(where, name)
        # Inside of what guards it: it is the guard that is tried.
        guarded = hasattr(function, "__wrapped__")
        broken = _breaking(name, function.__wrapped__ if guarded else function, switch)
        setattr(where, name, runtime.guarded(broken) if guarded else broken)


def _breaking(name: str, act: Callable[..., Any], switch: Path) -> Callable[..., Any]:
    @functools.wraps(act)
    def broken(*given: Any, **named: Any) -> Any:
        wanted = switch.read_text()
        if wanted == f"before {name}":
            raise RuntimeError(wanted)
        result = act(*given, **named)
        if wanted == f"after {name}":
            raise RuntimeError(wanted)
        return result

    return broken


def _turn_the_clock(speed: float) -> None:
    real, began = time.time, time.time()
    back = 0.0

    def turn(*_: object) -> None:
        nonlocal back
        back += HOUR

    signal.signal(BACK, turn)
    time.time = lambda: began + (real() - began) * speed - back


def _remember(*, own: bool) -> None:
    where: Any = Server if own else addon_module.PuppetInspector
    name = "_listen" if own else "begin"
    begin = getattr(where, name)

    def begun(self: Any, *given: Any, **named: Any) -> Any:
        def write(*_: object) -> None:
            self._runtime.write_line(STATE_LINE + json.dumps(_state(self, own=own)))

        signal.signal(STATE, write)
        return begin(self, *given, **named)

    setattr(where, name, begun)


def _state(proxy: Any, *, own: bool) -> dict[str, int]:
    """How much of what is under way the proxy remembers."""
    if own:
        links = proxy._links
        under_way = {
            "exchanges": sum(link.busy for link in links),
            "agents": len(links),
            "masters": sum(link._master is not None for link in links),
        }
    else:
        under_way = {
            "exchanges": len(proxy._sent),
            "bodies": len(proxy._bodies),
            "agents": len(proxy._agents),
            "masters": len(proxy._masters),
        }
    recorder = proxy._runtime.recorder
    return under_way | {
        "bytes": proxy._runtime.copies.size,
        "awaited": len(recorder._awaiting_result),
        "asked": len(recorder._callbacks),
        "files": sum(Path(f"/proc/self/fd/{descriptor}").exists() for descriptor in os.listdir("/proc/self/fd")),  # noqa: PTH208
    }
