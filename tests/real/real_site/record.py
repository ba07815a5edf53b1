"""Recording the site: a fleet of 7.23 agents at Puppet Server 7.9.5, then its upgrade to 8.7.0 and OpenVox 9."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tests.real import releases
from tests.real.machine import host_names
from tests.real.puppet import RealMaster
from tests.real.real_site import modules, site
from tests.real.real_site.roots import Throwaway
from tests.real.rehearsals import allow_v4
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.real.agent import RealAgent

OLD, NEW = f"puppet.{site.DOMAIN}", f"new.{site.DOMAIN}"
"""The master, and its name where the new one is tried."""
HOSTS = {"7.9.5": "127.0.7.4", "8.7.0": "127.0.8.4"}
BOOKWORM = ("puppet-agent",)
STATUSES = (0, 1, 2, 4, 6)
"""Those of an agent that has run, whatever became of it."""
UPGRADED = ("db", "compute", "mon")
"""The roles whose agents are upgraded: Deferred values, and two that need the facts that agents since 8 do not send."""


class Recorded:
    """The directory of a recording: captures, the agents, what is left of the old master, what was printed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def capture(self, name: str) -> Path:
        """A capture by name."""
        return self.directory / f"{name}.sqlite"

    def agents(self, version: str) -> Path:
        """Where the agents of a version live."""
        return self.directory / "agents" / version

    @property
    def ca(self) -> Path:
        """CA and certificate of the old master, for its heir."""
        return self.directory / "old-master"


def bookworm() -> releases.System:
    """Debian 12 in a directory, whose agent is 7.23. Raises RuntimeError when it cannot be had."""
    root = releases.cache() / "-".join(("bookworm", *BOOKWORM))
    if not root.exists():
        unfinished = root.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        releases.make("bookworm", unfinished, BOOKWORM)
        unfinished.rename(root)
    return releases.System(root)


@contextmanager
def old_master(recorded: Recorded) -> Iterator[RealMaster]:
    """Puppet Server 7.9.5 with the site; its CA is kept for its heir."""
    with (
        host_names({PROXY_NAME: PROXY_HOST}),
        RealMaster(OLD, [NEW], host=HOSTS["7.9.5"], autosign=f"*.{site.DOMAIN}") as master,
    ):
        master.generate(PROXY_NAME)
        site.furnish(master, _modules())
        yield master
        shutil.rmtree(recorded.ca, ignore_errors=True)
        for path in (master.ssldir, master.cadir):
            shutil.copytree(path, recorded.ca / path.name)


@contextmanager
def new_master(recorded: Recorded) -> Iterator[RealMaster]:
    """Puppet Server 8.7.0 with the same site and CA, under another name too."""
    heir = RealMaster(OLD, host=HOSTS["8.7.0"], autosign=f"*.{site.DOMAIN}", system=releases.stored("trixie"),
                      heir_of=recorded.ca)  # fmt: skip
    with host_names({PROXY_NAME: PROXY_HOST, NEW: HOSTS["8.7.0"]}), heir as master:
        site.furnish(master, _modules())
        yield master


def _modules() -> Path:
    return modules.unpacked(releases.stored("trixie"), releases.cache() / "modules-trixie")


def play(recorded: Recorded, master: RealMaster, capture: str, agent: RealAgent, *options: str) -> None:
    """One run through the proxy, added to a capture."""
    with ExitStack() as stack:
        stage = Stage(master, recorded.directory, own=True)
        stack.callback(stage.close)
        stack.enter_context(host_names({agent.certname: PROXY_HOST}))
        stage.capture = recorded.capture(capture)
        with stage.proxy(f"keys:{agent.ssldir}") as road:
            done = road.run(agent, *options, timeout=3600)
    lines = done.output.splitlines()
    print(f"{capture}: {agent.certname} {' '.join(options)}: status {done.status}, {done.seconds:.0f} s, "
          f"{len(lines)} lines", flush=True)  # fmt: skip
    (agent.base / f"{capture}.log").write_text(done.output)
    assert done.status in STATUSES, done.output


def fleet(
    recorded: Recorded,
    master: RealMaster,
    version: str,
    release: releases.System,
    roles: Sequence[str] = site.ROLES,
    before: str = "",
) -> dict[str, RealAgent]:
    """A noop run of each role by agents of a version, which have the certificates of another one's."""
    agents = {}
    for role in roles:
        predecessor = site.node(recorded.agents(before) / role, role, release) if before else None
        throwaway = Throwaway(release, recorded.directory / "roots" / version / role)
        agents[role] = site.node(recorded.agents(version) / role, role, throwaway, predecessor)
        play(recorded, master, version, agents[role], "--noop")
    return agents


def applied(recorded: Recorded, master: RealMaster, version: str, agent: RealAgent, *options: str) -> None:
    """A run of the monitoring node that changes the throw-away root, and one more."""
    site.assign(master, "mon", site.APPLIED)
    for _ in range(2):
        play(recorded, master, f"{version}-applied", agent, *options)
    site.assign(master, "mon")


def rehearse(recorded: Recorded, master: RealMaster, road: str, *options: str, capture: str = "7.23") -> str:
    """Ask the new master for the catalogs of a capture; return what is printed, which is kept as well."""
    ssl, way = master.ssldir, []
    if road == "v4":
        way = ["--cert", ssl / f"certs/{PROXY_NAME}.pem", "--key", ssl / f"private_keys/{PROXY_NAME}.pem"]
    else:
        way = ["--road", f"keys:{_keys(recorded)}", "--stores-data-of-nodes"]
    words = ["rehearse", recorded.capture(capture), "--master", f"{NEW}:{master.port}", "--twice", "--files",
             "--ca", ssl / "certs/ca.pem", "--crl", master.cadir / "ca_crl.pem", *way, *options,
             "-o", recorded.capture(f"rehearsed-{road}")]  # fmt: skip
    recorded.capture(f"rehearsed-{road}").unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-m", "inspector.cli", *map(str, words)], capture_output=True, text=True)
    text = f"{done.stdout}{done.stderr}exit status {done.returncode}\n"
    (recorded.directory / f"rehearsed-{road}.txt").write_text(text)
    return text


def _keys(recorded: Recorded) -> Path:
    """The keys and certificates of all nodes in one ssldir."""
    directory = recorded.directory / "keys"
    for role in site.ROLES:
        for kind in ("private_keys", "certs"):
            (directory / kind).mkdir(parents=True, exist_ok=True)
            name = f"{kind}/{site.certname(role)}.pem"
            shutil.copy(recorded.agents("7.23") / role / "ssl" / name, directory / name)  # with its mode
    shutil.copyfile(recorded.ca / "ssl/certs/ca.pem", directory / "certs/ca.pem")
    return directory


def everything(recorded: Recorded) -> None:
    """Record all of it: half an hour."""
    with old_master(recorded) as master:
        agents = fleet(recorded, master, "7.23", bookworm())
        applied(recorded, master, "7.23", agents["mon"])
    with new_master(recorded) as master:
        allow_v4(master)
        for road in ("v4", "keys"):
            print(rehearse(recorded, master, road))
        agents = fleet(recorded, master, "8.10", releases.stored("trixie"), UPGRADED, before="7.23")
        applied(recorded, master, "8.10", agents["mon"], "--include_legacy_facts")
        fleet(recorded, master, "9rc1", releases.stored("sid"), UPGRADED, before="7.23")
