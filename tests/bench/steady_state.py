"""What the proxy costs a real run: `python -m tests.bench.steady_state [RUNS]` (as root, some six minutes).

A real agent with nothing to do, and then agents that have no certificate yet, straight to the real master and through
the proxy, in turns, so that whatever else the machine does meets all of them. Prints tables of docs/performance.md.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.host import pki
from inspector.host.pki import SslDirPaths
from tests.bench import aims
from tests.real.machine import end, free_port, host_names, missing
from tests.real.puppet import RealMaster
from tests.real.through import PROXY_HOST, PROXY_NAME, Road, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.agent import RealAgent

KEYLENGTH = 4096
"""Puppet's default; signing with it is most of what a connection costs."""
DIRECT, STOCK = "direct", "stock mitmdump"
ADDON, OWN = "`mitmdump -s addons/puppet.py`", "`puppet-inspector proxy`"
AIMS = {ADDON: 1.05, OWN: 1.02}
"""What a run through the proxy may take, to a direct one."""
IDLE = 1.0
"""Seconds after which the master closes a silent connection. A direct first run waits for that, once."""


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


def measure(roads: dict[str, Road], agent: RealAgent, runs: int) -> dict[str, list[float]]:
    """Seconds of each run with nothing to do, the roads in turns; one run each beforehand does not count."""
    taken: dict[str, list[float]] = {name: [] for name in roads}
    for turn in range(-1, runs):
        for name, road in roads.items():
            done = road.run(agent)
            assert done.status == 0, done.output
            if turn >= 0:
                taken[name].append(done.seconds)
    return taken


def bootstraps(roads: dict[str, Road], stage: Stage, keys: Path, runs: int) -> dict[str, list[float]]:
    """The same of first runs, each of another agent, less what a direct one only waits. The agent's key is there: how
    long making one takes is chance."""
    taken: dict[str, list[float]] = {name: [] for name in roads}
    for turn in range(-1, runs):
        for number, (name, road) in enumerate(roads.items()):
            agent = stage.agent(f"auto-{turn + 1}-{number}.example", keylength=KEYLENGTH)
            place = SslDirPaths(agent.ssldir, agent.certname)
            place.create()
            pki.write_private(place.key, pki.key_pem(pki.new_key(KEYLENGTH)))
            for kind in ("private_keys", "certs"):
                (keys / kind / f"{agent.certname}.pem").symlink_to(agent.ssldir / kind / f"{agent.certname}.pem")
            done = road.run(agent)
            assert done.status == 2, done.output
            if turn >= 0:
                taken[name].append(done.seconds - (IDLE if name == DIRECT else 0.0))
    return taken


def bench(runs: int) -> Iterator[str]:
    """The tables."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST}))
        master = stack.enter_context(RealMaster("puppet.example", host="127.0.7.2", idle_timeout=IDLE))
        master.generate(PROXY_NAME)
        stages = [Stage(master, directory / name) for name in ("addon", "own")]
        for stage in stages:
            stage.directory.mkdir()
            stack.callback(stage.close)
        stage, keys = stages[0], directory / "keys"
        for kind in ("private_keys", "certs"):
            (keys / kind).mkdir(parents=True)
        agent = stage.agent("auto.example", keylength=KEYLENGTH)
        assert stage.direct.run(agent).status == 2
        for kind in ("private_keys", "certs"):
            (keys / kind / f"{agent.certname}.pem").symlink_to(agent.ssldir / kind / f"{agent.certname}.pem")
        roads = {DIRECT: stage.direct, STOCK: stock(stage, agent, stack)}
        roads[ADDON] = stack.enter_context(stage.proxy(f"keys:{keys}"))
        roads[OWN] = stack.enter_context(stages[1].proxy(f"keys:{keys}", own=True))
        yield from table("a run with nothing to do", measure(roads, agent, runs))
        del roads[STOCK]  # it speaks to the master as one agent
        yield from table(
            "an agent's first run, less what a direct one only waits", bootstraps(roads, stage, keys, runs)
        )


def table(title: str, taken: dict[str, list[float]]) -> Iterator[str]:
    """The figures as Markdown."""
    yield f"| {title} | to a direct one, median of {len(taken[DIRECT])} pairs | aim | median | min | max |"
    yield "|---|---|---|---|---|---|"
    for name, seconds in taken.items():
        ratio = statistics.median(through / direct for through, direct in zip(seconds, taken[DIRECT], strict=True))
        aim = "" if name in (DIRECT, STOCK) else aims.at_most(round(ratio, 3), AIMS[name])
        figures = (statistics.median(seconds), min(seconds), max(seconds))
        yield f"| {name} | {ratio:.3f} | {aim} | {' | '.join(f'{figure:.2f} s' for figure in figures)} |"
    yield ""


def main() -> None:
    """Measure and print."""
    if reason := missing():
        raise SystemExit(reason)
    for line in bench(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        print(line, flush=True)


if __name__ == "__main__":
    main()
