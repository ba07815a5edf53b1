"""Hosts of a test's own: network namespaces, of which one is the master's and each other an agent's."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

USABLE = os.geteuid() == 0 and all(map(shutil.which, ("ip", "nft", "nsenter")))
"""Whether they can be made here."""
_NET = "/run/netns"


class Network:
    """The hosts. The master's has an address in the network of each agent, as a router has."""

    def __init__(self, agents: int = 1) -> None:
        prefix = f"pi{os.getpid() % 100_000}"
        self.master = f"{prefix}m"
        self.agents = [f"{prefix}a{number}" for number in range(agents)]
        self._stack = ExitStack()
        self._threads: dict[str, ThreadPoolExecutor] = {}
        """One of each host: what a thread has started may end with it (PR_SET_PDEATHSIG)."""

    @staticmethod
    def address(number: int = 0, *, version: int = 4) -> str:
        """The master's, for this agent."""
        return f"10.77.{number}.1" if version == 4 else f"fd77:{number}::1"

    @staticmethod
    def of_agent(number: int = 0, *, version: int = 4) -> str:
        return f"10.77.{number}.2" if version == 4 else f"fd77:{number}::2"

    def __enter__(self) -> Self:
        with self._stack as stack:
            for name in (self.master, *self.agents):
                run("ip", "netns", "add", name)
                stack.callback(run, "ip", "netns", "delete", name)
                thread = ThreadPoolExecutor(1, initializer=_enter, initargs=(name,))
                self._threads[name] = stack.enter_context(thread)
                run("ip", "-n", name, "link", "set", "lo", "up")
            for number, name in enumerate(self.agents):
                here, there = f"m{number}", "eth"
                run("ip", "-n", self.master, "link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
                for host, device, of in ((self.master, here, self.address), (name, there, self.of_agent)):
                    run("ip", "-n", host, "address", "add", f"{of(number)}/24", "dev", device)
                    run("ip", "-n", host, "address", "add", f"{of(number, version=6)}/64", "dev", device, "nodad")
                    run("ip", "-n", host, "link", "set", device, "up")
                run("ip", "-n", name, "route", "add", "default", "via", self.address(number))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @staticmethod
    def words(host: str, *command: str) -> list[str]:
        """A command on one of the hosts."""
        return ["nsenter", f"--net={_NET}/{host}", *command]

    def run(self, host: str, *command: str) -> str:
        return run(*self.words(host, *command))

    def call[T](self, host: str, function: Callable[[], T]) -> T:
        """Call a function on one of the hosts: what it opens and starts stays there, as long as the hosts are."""
        return self._threads[host].submit(function).result()

    def ruleset(self) -> str:
        """The rules of the master's host."""
        return self.run(self.master, "nft", "list", "ruleset")


def _enter(host: str) -> None:
    """Let this thread be on one of the hosts."""
    descriptor = os.open(f"{_NET}/{host}", os.O_RDONLY)
    os.setns(descriptor, os.CLONE_NEWNET)
    os.close(descriptor)


def run(*command: str, given: str | None = None) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run(list(command), input=given, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout
