"""What a command prints arrives unchanged, on a terminal as on a terminal, and its two ends are kept."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from inspector.cli import relay


def relayed(*command: str) -> tuple[int, str]:
    """Run a command; its exit status, and what is kept of its output."""
    with relay.Relay() as relaying:
        process = subprocess.Popen(command, stdout=relaying.stdout, stderr=relaying.stderr)
        relaying.start()
        status = process.wait()
    return status, relaying.text


def test_both_streams_arrive(capfd: pytest.CaptureFixture[str]) -> None:
    assert relayed("sh", "-c", "printf 'out\\n'; printf '\\033[31merr' >&2; exit 3") == (3, "out\n\n\x1b[31merr")
    assert capfd.readouterr() == ("out\n", "\x1b[31merr")


def test_of_much_output_both_ends_are_kept(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    status, kept = relayed(sys.executable, "-c", "print('first'); print('x' * 3_000_000); print('last')")
    assert status == 0
    assert len(capfdbinary.readouterr().out) == len("first\nlast\n") + 3_000_001
    assert (kept[:6], kept[-6:-1]) == ("first\n", "last\n")
    assert len(kept) <= relay.FIRST + relay.LAST + 1


@pytest.mark.slow
def test_nobody_waits_for_a_process_that_was_left_behind(capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    status, kept = relayed("sh", "-c", "sleep 20 & echo $!; exit 0")
    assert status == 0
    assert time.monotonic() - began < 15
    os.kill(int(kept), signal.SIGTERM)
    assert capfd.readouterr().out.strip() == kept.strip()


def test_a_terminal_stays_a_terminal() -> None:
    """Colours, width, and one order of both streams; the lines end as they did."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 123, 0, 0))
    shown = "import os, sys; print(os.isatty(1), os.isatty(2), os.get_terminal_size(1).columns, flush=True)"
    shown += "; print('then', file=sys.stderr, flush=True); print('last', flush=True)"
    code = f"from tests.cli.test_relay import relayed; import sys; relayed(sys.executable, '-c', {shown!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        printed = b""
        try:
            while data := os.read(ours, 1000):
                printed += data
        except OSError:  # nobody has it open any more
            pass
        os.close(ours)
        assert process.wait() == 0
    assert printed == b"True True 123\r\nthen\r\nlast\r\n"
