"""The lines of a proxy on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from inspector.proxy.console import fitted

RECORD = (
    "22:26:47.005  127.0.0.1            certificates GET  certificate_revocation_list/ca                  200"
    "     509 B    18 ms  B01"
)
COMMAND = f"              puppetserver ca clean --certname {'x' * 40}.example"


def test_a_record_is_broken_between_its_columns() -> None:
    first, second = fitted(RECORD, 80).split("\n")
    assert first == "22:26:47.005  127.0.0.1            certificates GET"
    assert second.split() == ["certificate_revocation_list/ca", "200", "509", "B", "18", "ms", "B01"]
    assert second.startswith("  c")
    assert len(second) <= 80
    assert fitted(RECORD, len(RECORD)) == RECORD
    shorter = fitted(RECORD.replace("certificate_revocation_list/ca", "certificate/ca".ljust(30)), 80).split("\n")[1]
    assert shorter.index(" 200 ") == second.index(" 200 "), "in line, whatever the path"
    assert max(map(len, fitted(RECORD, 40).split("\n"))) <= 40


def test_where_only_some_columns_are_missing_the_path_has_less() -> None:
    for path in ("certificate/ca", "file_content/modules/demo/tree/conf.d/log.conf"):
        whole = f"{RECORD[:53]}{path:<46}{RECORD[99:]}"
        first, second = fitted(whole, 120).split("\n")
        assert len(first) == 120
        assert first.endswith(" 200     509 B    18 ms"), "in line, whatever the path"
        assert second == "  B01"
    assert "…" in first


def test_what_may_be_copied_is_left_as_it_is() -> None:
    assert fitted(COMMAND, 60) == COMMAND
    assert fitted(f"{RECORD}\n{COMMAND}", 60).split("\n")[-1] == COMMAND
    assert "\n" not in fitted(RECORD, None), "a pipe has no width"


def test_on_a_terminal_no_column_is_broken() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    program = f"from inspector.proxy.console import Console; c = Console(); c.write_line({RECORD!r}); c.close(9)"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run([sys.executable, "-c", program], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    printed = os.read(ours, 10_000).decode().splitlines()
    os.close(ours)
    assert printed == fitted(RECORD, 80).split("\n")
