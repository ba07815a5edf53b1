"""What README.md and docs/ quote of the program's output: every ``console`` block is made by running its commands.

A block begins with ``$ puppet-inspector ...``; below stands what the command prints on a terminal.
Of `make demo` the lines of ``DEMO`` are quoted, and `rehearse` is given a master (``rehearsed``);
their times may differ. ``python -m tests.docs`` writes the blocks anew, a test compares them.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.docs import rehearsed
from tests.docs.pictures import COMMAND
from tests.support.places import ROOT

WIDTH = 120
WRITING = "puppet-inspector reduce "
"""Begins a command that writes a file: not into the checkout."""
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DEMO = (
    (r"\S+ +web1\.lab\.example +certificates PUT .* 400 .*", 1),
    (r"== run 2 .*", 1),
    (r"The capture is .*", 1),  # below it are the runs, and the fix that was taken
    (r"run 1, over since run 2: .*", 1),
    (r"  healed by: .*", 1),
    (r" {9,}.*", 5),
    (r"next:", 1),
    (r"  \S.*", 3),
)
"""Which lines of `make demo` are quoted, in their order, and at most how many of each; dots stand for the others."""


def renewed(page: str) -> str:
    """Return a page with what its commands print now."""
    return BLOCK.sub(lambda found: f"```console\n{_renewed(found[1])}```", page)


def _renewed(block: str) -> str:
    parts = []
    assert block.startswith("$ "), f"what no command prints here is text, not console: {block[:60]!r}"
    for command in re.findall(r"^\$ (.+)$", block, re.MULTILINE):
        printed = output(command)
        before = block.partition(f"$ {command}\n")[2].partition("\n$ ")[0]
        if is_played(command) and alike(printed) == alike(before):
            printed = before  # only its times differ
        parts.append(f"$ {command}\n{printed}")
    return "\n".join(parts)


def commands(page: str) -> list[str]:
    """Return the commands in a page's console blocks."""
    return [line for block in BLOCK.findall(page) for line in re.findall(r"^\$ (.+)$", block, re.MULTILINE)]


def is_played(command: str) -> bool:
    """Whether a command never prints the same times, or sizes, twice."""
    return command == "make demo" or command.startswith(("puppet-inspector rehearse ", WRITING))


@cache
def output(command: str) -> str:
    """Return what a command prints on a terminal, run in the checkout."""
    if command == "make demo":
        return demo()
    program, *words = shlex.split(command)
    assert program == "puppet-inspector", command
    if command.startswith(WRITING):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "captures").symlink_to(ROOT / "captures")
            return _on_a_terminal([str(COMMAND), *words], Path(folder))
    if is_played(command):
        return rehearsed.output(command, _on_a_terminal, COMMAND)
    return _on_a_terminal([str(COMMAND), *words], ROOT)


@cache
def demo() -> str:
    """Return the quoted lines of what `make demo` prints."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".venv").symlink_to(COMMAND.parent.parent)  # started as `make demo` does
        lines = _on_a_terminal([".venv/bin/puppet-inspector", "demo"], Path(folder)).splitlines()
    quoted: list[str] = []
    wanted = [pattern for pattern, times in DEMO for _ in range(times)]
    for line in lines:
        if wanted and re.fullmatch(wanted[0], line):
            quoted.append(line)
            del wanted[0]
        elif quoted and quoted[-1] != "...":
            quoted.append("...")
    assert not wanted, f"no line is {wanted[0]!r}: {lines}"
    return "\n".join([*quoted, ""])


def alike(text: str) -> str:
    """Return a text without what differs from run to run: numbers (not those of rules), and blanks between columns.

    Also without the dots of `make demo`: the last record comes before or after the line of its run.
    """
    text = re.sub(r"^\.\.\.$", "", text, flags=re.MULTILINE)
    return re.sub(r"\s+", " ", re.sub(r"(?<![A-Z0-9])[0-9][0-9:.TZ]*(?: (?:ms|s|k?B)\b)?", "0", text)).strip()


def _on_a_terminal(command: list[str], folder: Path) -> str:
    """Run a command with a terminal of ``WIDTH`` columns as its output; its exit status does not matter."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "LINES": "50", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.STDOUT
    ):
        os.close(theirs)
        printed = b""
        while data := _read(ours):
            printed += data
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed.decode().replace("\r\n", "\n"))
    return text.lstrip("\n")  # a slow machine shows a bar, which leaves a line


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 2**16)
    except OSError:  # nobody has the other end any more
        return b""
