"""The proxy (``mitmdump -s addons/puppet.py``) as a child process, for ``demo`` and ``run`` (and the tests).

Starts it, waits until it listens, passes its lines on, and ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from typing import TYPE_CHECKING, Self

import msgspec

from inspector import installation
from inspector.errors import InspectorError
from inspector.host.puppetconf import split_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from inspector.proxy.connect.plan import Plan
    from inspector.proxy.tap.plan import TapPlan

START = 60.0
"""Seconds that mitmdump may take to listen (1.5 on an idle machine)."""
STOP = 45.0
"""Seconds that it may take to end: exchanges in progress, and records that are still to be written."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that a terminal or a service manager sends."""
_LISTENS = "  listens on  "


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay signals that have a handler until the end of the block."""
    arrived: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    for number in handlers if is_main else ():
        signal.signal(number, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items() if is_main else ():
            signal.signal(number, handler)
    for early in arrived:
        signal.raise_signal(early)


class Proxy:
    """A running proxy: ``with Proxy({"puppet_master": ...}) as proxy: ... proxy.address``."""

    def __init__(
        self,
        options: Mapping[str, str | Path | tuple[str, ...]],
        *,
        on_line: Callable[[str], None] = lambda _line: None,
        arguments: tuple[str, ...] = (),
        own: bool = False,
        plan: Plan | TapPlan | None = None,
        patience: float = STOP,
    ) -> None:
        """``options`` are the addon's options. ``on_line`` gets each line that the proxy prints, on a separate thread.
        ``own``: `puppet-inspector proxy` instead of mitmdump. ``plan``: the same, for a run of this host's agent that
        uses it as its HTTP proxy, or in the place of this host's master. ``patience``: seconds that it has to end."""
        self._options = options
        self._arguments = arguments
        self._own = own
        self._plan = plan
        self._patience = patience
        self._on_line = on_line
        self._listening = threading.Event()
        self.lines: list[str] = []
        self.address: tuple[str, int] = ("", 0)
        self.status: int | None = None
        """The exit status, once it has ended."""

    def __enter__(self) -> Self:
        # A temporary directory: neither the user's mitmproxy settings nor its CA are used.
        self._confdir = tempfile.TemporaryDirectory(prefix="puppet-inspector-")
        command = installation.command("inspector.proxy.launched", str(os.getpid()), *self._words())
        self._reader = threading.Thread(target=self._read, name="proxy output", daemon=True)
        with contextlib.ExitStack() as stack:
            with _uninterrupted():  # else a signal could leave a process behind of which nobody knows
                self.process = subprocess.Popen(
                    [*command, *self._arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL, text=True, errors="replace",
                    pass_fds=tuple(self._plan.descriptors) if self._plan else (),
                    start_new_session=True,  # Ctrl-C is for the agent; the proxy is ended in order
                )  # fmt: skip
                self._reader.start()
                stack.callback(self.__exit__)
            if not (self._listening.wait(START) and self.address[1]):
                stack.close()
                raise InspectorError("The proxy did not start.", "\n  ".join(self.lines[-5:]))
            stack.pop_all()
        return self

    def _words(self) -> list[str]:
        """Return the function that the process calls, and its arguments."""
        if self._plan:
            values = {name: value if isinstance(value, tuple) else str(value) for name, value in self._options.items()}
            plan = msgspec.to_builtins(self._plan)
            return ["inspector.proxy.engine.server:main", json.dumps({**values, "plan": plan})]
        if self._own:
            words = ["inspector.cli.main:main", "proxy"]
        else:
            words = ["mitmproxy.tools.main:mitmdump", "-s", str(installation.addon())]
            words += ["--set", f"confdir={self._confdir.name}"]
        for name, value in self._options.items():
            for each in value if isinstance(value, tuple) else (value,):
                words += ["--set", f"{name}={each}"]
        return words

    def _read(self) -> None:
        assert self.process.stdout  # noqa: S101 - a pipe was requested
        for line in self.process.stdout:
            line = line.rstrip("\n")
            self.lines.append(line)
            if line.startswith(_LISTENS) and not line.endswith(" nothing"):
                self.address = split_address(line.removeprefix(_LISTENS).split(",")[0])
                self._listening.set()
            self._on_line(line)
        self._listening.set()

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.status = self.process.wait(self._patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.status = self.process.wait()
        self._reader.join(STOP)
        if self.process.stdout:
            self.process.stdout.close()
        self._confdir.cleanup()
