"""Record the samples of a rehearsed upgrade: `python -m tests.real.record_upgrade` (as root, a minute).

Four agents make a run at a master. Then their catalogs are asked of another one, ``new.example``, which has other
code: a changed module, a removed one, a template that depends on a legacy fact. It is the same puppetserver under
another name and with another environment: two versions of puppetserver are not to be had for the tests. What the
samples contain of a machine is made up, as in ``record_samples``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.machine import host_names, missing
from tests.real.puppet import RealMaster
from tests.real.record_samples import AGENTS, MASTER, SAMPLES, publish
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage

if TYPE_CHECKING:
    from tests.real.agent import RealAgent

FOLDER = SAMPLES / "upgrade"
OLD, NEW, PORT = "puppet.example", "new.example", 8140
LEGACY = {"osfamily": "Debian", "operatingsystem": "Debian", "operatingsystemrelease": "12.5", "architecture": "amd64"}
"""Flat facts, which Puppet 8 does not send."""
MODULES = {
    "web/manifests/init.pp": """class web {
  file { '/srv/agent/etc': ensure => directory }
  file { '/srv/agent/etc/app.conf': content => "family ${facts['osfamily']}\\nworkers 4\\n", mode => '0644' }
  file { '/srv/agent/etc/motd': source => 'puppet:///modules/web/motd' }
}
""",
    "web/files/motd": "Managed by Puppet.\n",
    "db/manifests/init.pp": "class db {\n  file { '/srv/agent/db.conf': content => \"port 5432\\n\" }\n}\n",
    "monitoring/manifests/init.pp": "class monitoring {\n  notify { 'checks are up to date': }\n}\n",
}
NEXT = {
    "web/manifests/init.pp": """class web {
  file { '/srv/agent/etc': ensure => directory }
  file { '/srv/agent/etc/app.conf': content => "family ${facts['osfamily']}\\nworkers 8\\n", mode => '0640' }
  file { '/srv/agent/etc/motd': source => 'puppet:///modules/web/motd' }
  notify { 'the new module': }
}
""",
    "web/files/motd": "Managed by OpenVox.\n",
}
ROLES = {"web1.example": "web", "web2.example": "web", "db1.example": "db", "mon1.example": "monitoring"}


def _agents(stage: Stage) -> list[RealAgent]:
    """The agents, with their certificates."""
    found = []
    for name, role in ROLES.items():
        agent = stage.enrolled(name)
        facts = agent.base / "facts.json"
        facts.write_text(json.dumps(json.loads(facts.read_text()) | LEGACY))
        stage.master.manifest(name, f"include {role}\n")
        found.append(agent)
    return found


def _next_environment(master: RealMaster) -> None:
    """The environment of the other master: without the module db, and with another module web."""
    target = master.environment.parent / "next"
    shutil.copytree(master.environment, target)
    shutil.rmtree(target / "modules/db")
    for name, text in NEXT.items():
        (target / "modules" / name).write_text(text)
    for path in (target, *target.rglob("*")):
        shutil.chown(path, "puppet", "puppet")


def _rehearse(master: RealMaster, capture: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """Ask the other master, as ``docs/upgrade.md`` does."""
    ssl = master.ssldir
    words = ["rehearse", capture, "--master", f"{NEW}:{PORT}", "--environment", "next", "--twice", "--files",
             "--ca", ssl / "certs/ca.pem", "--crl", master.cadir / "ca_crl.pem",
             "--certificate", ssl / f"certs/{PROXY_NAME}.pem", "--key", ssl / f"private_keys/{PROXY_NAME}.pem",
             "-o", output]  # fmt: skip
    return subprocess.run([sys.executable, "-m", "inspector.cli", *map(str, words)], capture_output=True, text=True)


def record(directory: Path) -> None:
    """Record both samples anew."""
    with ExitStack() as stack:
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST, NEW: "127.0.7.2"}))
        for base in (MASTER, AGENTS):
            if base.exists():
                raise SystemExit(f"{base} exists; it is needed for the recording, and removed afterwards.")
        master = RealMaster(OLD, [NEW], host="127.0.7.2", base=MASTER)
        master.port = PORT
        stack.enter_context(master)
        master.generate(PROXY_NAME)
        AGENTS.mkdir()
        stack.callback(shutil.rmtree, AGENTS)
        for name, text in MODULES.items():
            module, _, path = name.partition("/")
            master.module_file(module, path, text.encode())
        stage = Stage(master, AGENTS)
        stack.callback(stage.close)
        stage.capture = directory / "recorded.sqlite"
        for agent in _agents(stage):
            with stage.proxy(f"keys:{agent.ssldir}") as road:
                done = road.run(agent)
            assert done.status in (0, 2), done.output  # the machine is the same for all
        _next_environment(master)
        output = directory / "rehearsed.sqlite"
        refused = _rehearse(master, stage.capture, output)
        assert refused.returncode == 2, refused.stdout
        rule = "{" + refused.stderr.partition("\n  {")[2].replace("\n  ", "\n")
        conf = master.confdir / "conf.d/auth.conf"
        conf.write_text(conf.read_text().replace("rules: [", f"rules: [\n{rule}", 1))
        master.reload()
        rehearsed = _rehearse(master, stage.capture, output)
        assert rehearsed.returncode == 2, rehearsed.stderr
        print(rehearsed.stdout)


def main() -> None:
    """Record, and publish only when everything was recorded."""
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory))
        for capture in sorted(Path(directory).glob("*.sqlite")):
            publish(capture, FOLDER)
            print(f"{capture.name}  {capture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
