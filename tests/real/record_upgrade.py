"""Record the samples of a rehearsed upgrade: `python -m tests.real.record_upgrade` (as root, some minutes).

Four agents make a run at Puppet Server 7.9.5. Then their catalogs are asked of Puppet Server 8.7.0 (Debian 13 in a
directory), which has taken over its CA as ``new.example`` and has other code: a changed module. What 7 only warns of, 8
makes an error (strict). What the samples contain of a machine is made up, as in ``record_samples``.
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

from tests.real import releases
from tests.real.machine import host_names, missing
from tests.real.puppet import RealMaster
from tests.real.record_samples import AGENTS, MASTER, SAMPLES, publish
from tests.real.rehearsals import allow_v4
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage

if TYPE_CHECKING:
    from tests.real.agent import RealAgent

FOLDER = SAMPLES / "upgrade"
OLD, NEW, PORT = "puppet.example", "new.example", 8140
NEW_HOST = "127.0.8.2"
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
    "db/manifests/init.pp": """class db {
  $port = '5431' + 1
  file { '/srv/agent/db.conf': content => "port ${port}\\n" }
}
""",
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


def _rehearse(master: RealMaster, capture: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """Ask the other master, as ``docs/upgrade.md`` does."""
    ssl = master.ssldir
    words = ["rehearse", capture, "--master", f"{NEW}:{PORT}", "--twice", "--files",
             "--ca", ssl / "certs/ca.pem", "--crl", master.cadir / "ca_crl.pem",
             "--cert", ssl / f"certs/{PROXY_NAME}.pem", "--key", ssl / f"private_keys/{PROXY_NAME}.pem",
             "-o", output]  # fmt: skip
    return subprocess.run([sys.executable, "-m", "inspector.cli", *map(str, words)], capture_output=True, text=True)


def _recorded(capture: Path, old: Path) -> None:
    """The runs of the agents at the old master, and what its heir needs of it."""
    with RealMaster(OLD, [NEW], host="127.0.7.2", base=MASTER, port=PORT) as master:
        master.generate(PROXY_NAME)
        _modules(master, MODULES)
        stage = Stage(master, AGENTS)
        stage.capture = capture
        for agent in _agents(stage):
            with stage.proxy(f"keys:{agent.ssldir}") as road:
                done = road.run(agent)
            assert done.status in (0, 2), done.output  # the machine is the same for all
        stage.close()
        for part in ("ssl", "ca", "code"):
            shutil.copytree(MASTER / part, old / part)


def _rehearsed(capture: Path, output: Path, old: Path) -> str:
    """What is printed of the rehearsal at the new master, with a capture of it."""
    heir = RealMaster(OLD, host=NEW_HOST, base=MASTER, port=PORT, system=releases.stored("trixie"),
                      heir_of=old)  # fmt: skip
    with heir as master:
        shutil.copytree(old / "code", MASTER / "code", dirs_exist_ok=True)
        _modules(master, NEXT)
        refused = _rehearse(master, capture, output)
        assert refused.returncode == 2, refused.stdout
        allow_v4(master, refused.stderr)
        done = _rehearse(master, capture, output)
        assert done.returncode == 2, done.stderr
        return done.stdout


def _modules(master: RealMaster, files: dict[str, str]) -> None:
    for name, text in files.items():
        module, _, path = name.partition("/")
        master.module_file(module, path, text.encode())


def record(directory: Path) -> None:
    """Record both samples anew."""
    for base in (MASTER, AGENTS):
        if base.exists():
            raise SystemExit(f"{base} exists; it is needed for the recording, and removed afterwards.")
    with ExitStack() as stack:
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST, NEW: NEW_HOST}))
        AGENTS.mkdir()
        stack.callback(shutil.rmtree, AGENTS)
        old, capture = directory / "old", directory / "recorded.sqlite"
        _recorded(capture, old)
        print(_rehearsed(capture, directory / "rehearsed.sqlite", old))


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
