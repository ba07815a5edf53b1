"""`puppet_redact`: whatever happens to the process that masks, no secret is in a file and nobody waits."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from inspector.model import Exchange, Gap
from inspector.proxy.launcher import Proxy
from tests.e2e.wire import Peer
from tests.support import proxies, side_processes
from tests.support.proxies import records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab

SECRET = "hunter2-horse"
MODULE = "inspector.proxy.masking_worker"
LARGE = b'{"password": "%s", "x": "%s"}' % (SECRET.encode(), b"y" * 300_000)


def tell(proxy: Proxy, lab: Lab, number: int = 1) -> None:
    """Send secrets: in a header, in a URL, in a small body and in a large one."""
    peer = Peer(proxy.address, lab.proxy_name)
    for body in (b'{"password": "%s"}' % SECRET.encode(), LARGE):
        for _ in range(number):
            peer.ask(
                "PUT", f"/puppet/v3/report/x?token={SECRET}", body,
                {"Authorization": f"Basic {SECRET}", "Content-Type": "application/json"},
            )  # fmt: skip


def assert_nowhere(capture: Path) -> list[Exchange | Gap]:
    """No file of the directory holds the secret, nor do the bodies that are packed in the capture."""
    files = [path for path in capture.parent.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert SECRET.encode() not in path.read_bytes()
    found = records(capture)
    assert SECRET not in repr(found)
    return [record for record in found if isinstance(record, (Exchange, Gap))]


@pytest.mark.parametrize(("workers", "redact"), [(1, "write"), (2, "write"), (2, "closed")])
def test_a_process_that_is_killed_loses_no_record(workers: int, redact: str, lab: Lab, capture: Path) -> None:
    options = {**proxies.options(lab, capture), "puppet_redact": redact}
    with Proxy(options, arguments=("--workers", str(workers)), own=True) as proxy:
        assert eventually(lambda: len(side_processes.running(MODULE, str(capture.parent))) == workers)
        first = side_processes.running(MODULE, str(capture.parent))
        tell(proxy, lab)
        assert eventually(lambda: len(records(capture)) == 2)
        for process in first:
            os.kill(process, signal.SIGKILL)
        tell(proxy, lab, 2)
        assert eventually(lambda: len(records(capture)) == 6)
    found = assert_nowhere(capture)
    assert [record.seq for record in found] == list(range(1, 7))
    assert all(isinstance(record, Exchange) and b"MASKED" in record.request.body for record in found)
    assert any(line.startswith("-- masking has stopped") for line in proxy.lines)
    # Equal values are equal, whichever process has masked them.
    assert len({record.request.body for record in found if isinstance(record, Exchange)}) == 2


def test_a_process_that_is_stuck_keeps_the_proxy_neither_from_its_work_nor_from_its_end(
    lab: Lab, capture: Path
) -> None:
    options = {**proxies.options(lab, capture), "puppet_redact": "write"}
    with Proxy(options, own=True) as proxy:
        assert eventually(lambda: len(side_processes.running(MODULE, str(capture.parent))) == 1)
        (process,) = side_processes.running(MODULE, str(capture.parent))
        tell(proxy, lab)
        assert eventually(lambda: len(records(capture)) == 2)
        os.kill(process, signal.SIGSTOP)
        tell(proxy, lab, 3)
        began = time.monotonic()
        proxy.process.terminate()
        proxy.process.wait(300)
        assert time.monotonic() - began < 40
    assert proxy.status == 0
    assert side_processes.state(process) == "Z"
    _, _, *gaps = assert_nowhere(capture)
    assert all(isinstance(gap, Gap) and "the proxy ended before they were masked" in gap.reason for gap in gaps)
    assert sum(gap.lost for gap in gaps if isinstance(gap, Gap)) == 6
