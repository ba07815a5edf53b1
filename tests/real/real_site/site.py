"""A site of real modules on a real master: its environment, its nodes, and the secrets that are planted in it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.agent import RealAgent

if TYPE_CHECKING:
    from tests.real.puppet import RealMaster
    from tests.real.releases import System

DOMAIN = "site.example"
ROLES = ("web", "db", "cloud", "compute", "lb", "mon")
MANIFESTS = Path(__file__).parent / "manifests"
HIERA = "version: 5\nhierarchy: [{name: all, path: all.yaml}]\n"
FACT = "site_deploy_token"
APPLIED = "Service <| |> { noop => true }\n"
"""The throw-away root has the network of this machine: no service may start in it."""


def certname(role: str) -> str:
    """The node of a role."""
    return f"{role}.{DOMAIN}"


def secrets() -> dict[str, str]:
    """What is planted, by name: values that are found nowhere else, and look like nothing in particular."""
    texts = "".join(path.read_text() for path in sorted(MANIFESTS.glob("*.pp")))
    names = sorted({*re.findall(r"secrets\['(\w+)'\]", texts), FACT, "file"})
    return {name: f"Zq{number:02d}wVx{number * 7919 % 10007:05d}Kp" for number, name in enumerate(names)}


def furnish(master: RealMaster, modules: Path) -> None:
    """Give a master the modules, the data and what each node is."""
    planted, environment = secrets(), master.environment
    shutil.copytree(modules, environment / "modules", dirs_exist_ok=True)
    (environment / "hiera.yaml").write_text(HIERA)
    (environment / "data").mkdir(exist_ok=True)
    (environment / "data/all.yaml").write_text(json.dumps({"secrets": planted}))
    master.module_file("site", "files/etc/motd", b"The site.\n")
    master.module_file("site", "files/etc/app/credentials.ini", f"[db]\npassword = {planted['file']}\n".encode())
    # Debian's package puts it into /etc/facter, where a pluginsync of the modules does not reach.
    master.module_file("site", "facts.d/os_service_default.txt", b"os_service_default=<SERVICE DEFAULT>\n")
    master.module_file("site", "facts.d/site.txt", f"{FACT}={planted[FACT]}\n".encode())
    for role in ROLES:
        assign(master, role)


def assign(master: RealMaster, role: str, more: str = "") -> None:
    """What the node of a role is; ``more``: other code for it."""
    texts = [(MANIFESTS / f"{name}.pp").read_text() for name in ("common", role)]
    master.manifest(certname(role), "\n".join([*texts, more]))


def node(directory: Path, role: str, system: System, identity_of: RealAgent | None = None) -> RealAgent:
    """An agent of a role with the facts of the release it is in; with another's certificate, if it is its successor."""
    agent = RealAgent(directory, certname(role), invented_facts=False, system=system)
    if identity_of:
        shutil.copytree(identity_of.ssldir, agent.ssldir, dirs_exist_ok=True)
    return agent
