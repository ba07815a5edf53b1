"""A tap on the master's host of a test's own network."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.model import Exchange
from inspector.proxy.tap import table
from tests.support import places, proxies
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.support.namespaces import Network


@dataclass
class Tapping:
    """A tap, and what it has printed."""

    network: Network
    config: Path
    """The server's conf.d."""
    capture: Path
    lines: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    reader: threading.Thread = field(default_factory=threading.Thread)

    def start(self, *options: str) -> None:
        """Start a tap; it hands connections over when this returns."""
        words = [sys.executable, "-m", "inspector.cli", "tap", "--yes", "--config", str(self.config),
                 "-o", str(self.capture), *options]  # fmt: skip
        self.process = subprocess.Popen(
            self.network.words(self.network.master, *words), cwd=places.ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()
        process = self.process
        assert eventually(lambda: self.hands_over() or process.poll() is not None), self.lines
        assert process.poll() is None, self.lines

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr
        self.lines.extend(line.rstrip() for line in process.stderr)

    def close(self) -> None:
        """End what is left."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe
                pipe.close()

    def stop(self) -> str:
        """End it in order; return what it prints."""
        assert self.process
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> str:
        """What it prints, when it has ended by itself."""
        assert self.process
        assert self.process.stdout
        printed = self.process.stdout.read()
        self.process.wait(60)
        return printed

    def hands_over(self) -> bool:
        """Whether new connections go to the proxy."""
        return "elements" in self._set("ports")

    def exempt(self) -> bool:
        """Whether an agent is direct."""
        return "elements" in self._set("exempt4")

    def _set(self, name: str) -> str:
        words = self.network.words(self.network.master, "nft", "list", "set", "inet", table.NAME, name)
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def recorded(self) -> list[Exchange]:
        return [record for record in proxies.records(self.capture) if isinstance(record, Exchange)]

    def proxy(self) -> int:
        """The process of its proxy."""
        assert self.process
        process = self.process.pid
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        (found,) = [int(child) for child in children if "launched" in Path(f"/proc/{child}/cmdline").read_text()]
        return found
