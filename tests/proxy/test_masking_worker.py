"""The masking process itself."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from tests.support import side_processes
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

PROXY = """
import pathlib, sys, time
sys.path.insert(0, {root!r})
from inspector import installation
from inspector.model import Gap
from inspector.proxy.backlog import Item
from inspector.proxy.masking_client import MaskingClient
installation.command = lambda _module, *given: [sys.executable, "-P", "-c", {code!r}, *given]
client = MaskingClient(pathlib.Path(sys.argv[1]), lambda _: None, lambda _: None)
client.start()
client.put(Item(Gap(1.0, "")))
while client._process is None:
    time.sleep(0.01)
print(client._process.pid, flush=True)
sys.stdin.read()
"""
ENDLESS = """
import sys
sys.path.insert(0, {root!r})
from inspector.privacy import redact
from inspector.proxy import masking_worker
def redacted(_record):
    while True:
        pass
redact.redacted = redacted
sys.exit(masking_worker.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_it_ends_with_its_proxy_whatever_it_is_doing(tmp_path: Path) -> None:
    root = str(installation.PACKAGE.parent)
    code = PROXY.format(root=root, code=ENDLESS.format(root=root))
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as proxy:
        assert proxy.stdout
        worker = int(proxy.stdout.readline())
        assert eventually(lambda: side_processes.state(worker) == "R"), "it is busy with the record"
        proxy.kill()
    assert eventually(lambda: side_processes.state(worker) == "Z")
