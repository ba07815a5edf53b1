"""What anybody could once send to stop the proxy, and the status of the answer it gets."""

from __future__ import annotations

import re
from pathlib import Path

START = b"GET /puppet/v3/node/x?environment=production HTTP/1.1\r\nHost: n\r\n"
POISONED = f"/puppet/v3/node/x?password{'1' * 40}x=hunter2zz"
FLOODS = {
    "distinct claims": (START + b"".join(b"X-SSL-%d: 1\r\n" % number for number in range(6000)) + b"\r\n", 431),
    "a folded header": (START + b"X: a\r\n" + b" a\r\n" * 250_000 + b"\r\n", 400),
    "a header without end": (START + b"X: " + b"a" * 2**23, 431),
    "a first line without end": (b"GET /" + b"a" * 2**23, 431),
    "a chunk size without end": (START + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 2**20, 400),
}


def resident(pid: int) -> int:
    """The resident memory of a process in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
