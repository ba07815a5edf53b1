"""What the proxy costs a run: `python -m tests.bench.steady_state [RUNS]` (as root, some two minutes).

A real agent with nothing to do, straight to the real master and through the proxy, in turns, so that whatever
else the machine does meets all of them. Prints the table of docs/performance.md.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.machine import end, free_port, host_names, missing
from tests.real.puppet import RealMaster
from tests.real.through import PROXY_HOST, PROXY_NAME, Road, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.agent import RealAgent

KEYLENGTH = 4096
"""Puppet's default; signing with it is most of what a connection costs."""
DIRECT, STOCK, INSPECTED = "direct", "stock mitmdump", "puppet-inspector"


def stock(stage: Stage, agent: RealAgent, stack: ExitStack) -> Road:
    """mitmproxy as it comes, with this one agent's key for the master: no checks, no recording."""
    port, directory = free_port(PROXY_HOST), stage.directory / "stock"
    directory.mkdir()
    own = [agent.ssldir / kind / f"{agent.certname}.pem" for kind in ("private_keys", "certs")]
    (directory / "agent.pem").write_bytes(b"".join(part.read_bytes() for part in own))
    shown = [stage.master.ssldir / kind / f"{PROXY_NAME}.pem" for kind in ("private_keys", "certs")]
    (directory / "shown.pem").write_bytes(b"".join(part.read_bytes() for part in shown))
    options = {
        "confdir": directory,
        "client_certs": directory / "agent.pem",
        "certs": f"*={directory}/shown.pem",
        "ssl_verify_upstream_trusted_ca": stage.master.ssldir / "certs/ca.pem",
        "flow_detail": 0,
    }
    command = [str(Path(sys.executable).with_name("mitmdump")), "--quiet", "--listen-host", PROXY_HOST, "-p", f"{port}"]
    command += ["--mode", f"reverse:https://{stage.master.name}:{stage.master.port}"]
    for name, value in options.items():
        command += ["--set", f"{name}={value}"]
    stack.callback(end, subprocess.Popen(command, stdout=subprocess.DEVNULL))
    return Road(stage.master, PROXY_NAME, port)


def measure(roads: dict[str, Road], agent: RealAgent, runs: int) -> Iterator[tuple[str, float]]:
    """Seconds of each run, the roads in turns; one run each beforehand does not count."""
    for turn in range(-1, runs):
        for name, road in roads.items():
            done = road.run(agent)
            assert done.status == 0, done.output
            if turn >= 0:
                yield name, done.seconds


def bench(runs: int) -> dict[str, list[float]]:
    """The seconds of every run, by road."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST}))
        master = stack.enter_context(RealMaster("puppet.example", host="127.0.7.2"))
        master.generate(PROXY_NAME)
        stage = Stage(master, directory)
        stack.callback(stage.close)
        agent = stage.agent("auto.example", keylength=KEYLENGTH)
        assert stage.direct.run(agent).status == 2
        roads = {DIRECT: stage.direct}
        roads[STOCK] = stock(stage, agent, stack)
        roads[INSPECTED] = stack.enter_context(stage.proxy(f"keys:{agent.ssldir}"))
        taken: dict[str, list[float]] = {name: [] for name in roads}
        for name, seconds in measure(roads, agent, runs):
            taken[name].append(seconds)
            print(f"{name:18}{seconds:.2f} s", file=sys.stderr)
        return taken


def table(taken: dict[str, list[float]]) -> Iterator[str]:
    """The figures as Markdown."""
    usual = statistics.median(taken[DIRECT])
    yield "| road | median | min | max | median against direct |"
    yield "|---|---|---|---|---|"
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        more = "" if name == DIRECT else f"{median - usual:+.2f} s ({median / usual - 1:+.1%})"
        yield f"| {name} | {median:.2f} s | {min(seconds):.2f} s | {max(seconds):.2f} s | {more} |"


def main() -> None:
    """Measure and print."""
    if reason := missing():
        raise SystemExit(reason)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("\n".join(table(bench(runs))))


if __name__ == "__main__":
    main()
