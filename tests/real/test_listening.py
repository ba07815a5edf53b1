"""The steps of docs/proxy.md, pasted, on hosts whose names resolve as usual: to 127.0.1.1 as on Debian, or to LANs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.machine import end
from tests.real.through import RunSummary, run_summaries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.through import Stage

NAME, LAN = "node1.example", "192.0.2.10"
STEPS = """
mount --bind {base}/hosts /etc/hosts
mount --bind {base}/conf /etc/puppet
ip link set lo up
ip addr add {lan}/32 dev lo
{python} -m tests.real.relay in {host} {port} {base}/socket & relay=$!
start() {{
    : > {base}/proxy.log  # not in the background, where what the process before wrote could still be read
    "$@" >> {base}/proxy.log 2>&1 & proxy=$!
    while [ -z "$(sed -n '/^  try /{{n;p}}' {base}/proxy.log)" ]; do kill -0 $proxy; sleep 0.1; done
}}
leave() {{ kill -INT $proxy; wait $proxy; }}
trap 'kill $relay $proxy; cat {base}/proxy.log' EXIT
cd {base}
start puppet-inspector proxy
if grep -q 'not yet' proxy.log; then
    command=$(sed -n '/not yet/{{n;p}}' proxy.log)
    leave
    start sh -c "exec $command"
fi
set +e
eval "$(sed -n 's/^  try  *//p' proxy.log)"
echo "status $?"
leave
"""
"""What somebody pastes: the command that starts the proxy, what that prints if it says so, and the agent's command."""


@contextmanager
def relayed(stage: Stage, base: Path) -> Iterator[None]:
    """Lets a network namespace of its own reach the master."""
    master = stage.master
    words = [sys.executable, "-m", "tests.real.relay", "out", master.host, str(master.port), f"{base}/socket"]
    process = subprocess.Popen(words)
    try:
        yield
    finally:
        end(process)


@pytest.mark.parametrize("address", ["127.0.1.1", LAN])
def test_the_readmes_steps_work_as_pasted(address: str, stage: Stage) -> None:
    agent = stage.enrolled(NAME)
    master, base = stage.master, agent.base
    agent.configure(server=master.name, port=master.port)
    (agent.ssldir / f"private_keys/{NAME}.pem").chmod(0o600)
    (base / "hosts").write_text(f"127.0.0.1 localhost\n{address} {NAME} node1\n{master.host} {master.name}\n")
    steps = STEPS.format(base=base, lan=LAN, python=sys.executable, host=master.host, port=master.port)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(Path.cwd()),
        "RUBYLIB": f"{base}/ruby", "INVENTED_FACTS": f"{base}/facts.json",
    }  # fmt: skip
    with relayed(stage, base):
        done = subprocess.run(
            ["unshare", "--mount", "--net", "bash", "-euc", steps], env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    assert "status 2\n" in done.stdout, done.stdout + done.stderr
    log = (base / "proxy.log").read_text()
    assert f"listens on  {address}:8140" in log
    warned = f"-- {address}:8140 can be reached from the network" in log
    assert warned == (address == LAN)
    (capture,) = [path for path in (base / "captures").iterdir() if run_summaries(path)]
    assert run_summaries(capture) == [RunSummary(NAME, "complete", "node plugins catalog files report")]
    assert shlex.split(log.partition("  try  ")[2].splitlines()[0])[:3] == ["puppet", "agent", "-t"]
