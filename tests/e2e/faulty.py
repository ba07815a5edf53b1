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

from inspector.proxy import addon as addon_module
from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3600.0
BACK, STATE = signal.SIGUSR1, signal.SIGUSR2
"""What turns its clock back an hour, and what makes it say what it remembers."""
STATE_LINE = "-- state "

OPEN = {
    **{hook: hook for hook in (
        "client_disconnected", "server_connect", "server_disconnected", "tls_failed_client", "tls_failed_server",
        "responseheaders", "response", "error",
    )},
    "recording an exchange": "_record",
    "the verification probe": "_inform_probe",
}  # fmt: skip
"""What it is called, and the function: hooks, and parts of them, whose failure must not concern the agent."""
CLOSED = {
    "client_connected": "_admit",
    "tls_start_client": "_meet_agent",
    "tls_start_server": "_meet_master",
    "requestheaders": "_replace_claims",
}
"""The hooks whose failure must let nothing through that was not checked, and what fails in them."""
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
    """Break it, and be what would have been started: `-P -c CODE ROOT proxy ...` or `-c CODE ...` of mitmdump."""
    _break_hooks(Path(broken))
    _turn_the_clock(speed)
    _remember()
    if arguments[0] == "-P":
        from inspector.proxy.fast import server

        # As `inspector.proxy.fast.workers` does, without the process in between.
        given = dict(argument.split("=", 1) for argument in arguments[6::2])
        sys.exit(server.main([json.dumps(given), "1"]))
    from mitmproxy.tools.main import mitmdump

    sys.argv[1:] = arguments[2:]
    sys.exit(mitmdump())


def _break_hooks(switch: Path) -> None:
    addon: Any = addon_module.PuppetInspector
    for name in (*OPEN.values(), *CLOSED.values()):
        hook = getattr(addon, name)
        # Inside of what guards it: it is the guard that is tried.
        guarded = hasattr(hook, "__wrapped__")
        broken = _breaking(name, hook.__wrapped__ if guarded else hook, switch)
        setattr(addon, name, addon_module._guarded(broken) if guarded else broken)


def _breaking(name: str, act: Callable[..., None], switch: Path) -> Callable[..., None]:
    @functools.wraps(act)
    def broken(*given: Any) -> None:
        wanted = switch.read_text()
        if wanted == f"before {name}":
            raise RuntimeError(wanted)
        act(*given)
        if wanted == f"after {name}":
            raise RuntimeError(wanted)

    return broken


def _turn_the_clock(speed: float) -> None:
    real, began = time.time, time.time()
    back = 0.0

    def turn(*_: object) -> None:
        nonlocal back
        back += HOUR

    signal.signal(BACK, turn)
    time.time = lambda: began + (real() - began) * speed - back


def _remember() -> None:
    addon: Any = addon_module.PuppetInspector
    begin = addon.begin

    def begun(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        signal.signal(STATE, lambda *_: self._write_line(STATE_LINE + json.dumps(_state(self))))

    addon.begin = begun


def _state(addon: Any) -> dict[str, int]:
    """How much of what is under way the addon remembers."""
    return {
        "exchanges": len(addon._sent),
        "bodies": len(addon._tees),
        "bytes": addon.copied,
        "agents": len(addon._agents),
        "masters": len(addon._masters),
        "awaited": len(addon._recorder._awaiting_result),
        "asked": len(addon._recorder._callbacks),
        "files": sum(Path(f"/proc/self/fd/{descriptor}").exists() for descriptor in os.listdir("/proc/self/fd")),  # noqa: PTH208
    }
