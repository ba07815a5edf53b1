"""The Puppet module, applied for real with agents 7, 8 and OpenVox 9: twice, then taken away again."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.machine import free_port, host_names
from tests.real.overlay import overlay
from tests.support import packages
from tests.support.places import ROOT
from tests.support.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.overlay import Overlay
    from tests.real.through import Stage

MODULE = ROOT / "addons/puppet_inspector"
NAME, ADDRESS = "module.example", "127.0.45.1"
APPLY = "puppet apply --color=false --detailed-exitcodes --modulepath /srv/modules --certname module.example"
PRESENT = r"""
class { 'puppet_inspector':
  package_source => '/srv/puppet-inspector.deb',
  proxy          => 'node',
  master         => 'MASTER',
  listen         => 'LISTEN',
  copy_keys      => true,
  ssldir         => '/srv/ssl',
  options        => { 'puppet_only' => 'it\'s, module.example', 'puppet_wire' => false },
}
# Nothing is systemd in a directory: what the service runs is the unit's command, as the unit's user.
Service <| title == 'puppet-inspector' |> {
  provider  => 'base',
  hasstatus => false,
  start     => '/srv/start',
  stop      => 'kill $(cat /srv/pid)',
  status    => 'kill -0 $(cat /srv/pid) 2>/dev/null',
}
"""
START = """#!/bin/sh
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/puppet-inspector.service)
setsid setpriv --reuid puppet-inspector --regid puppet-inspector --init-groups $command >/srv/output 2>&1 </dev/null &
echo $! >/srv/pid
"""
ABSENT = "class { 'puppet_inspector': ensure => absent }\n"


@pytest.fixture(params=["", "trixie", "sid"], ids=["7", "8", "openvox9"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overlay]:
    """A machine with an agent of each version, and the module."""
    lower = request.getfixturevalue(request.param).root if request.param else Path("/")
    with overlay(lower, tmp_path_factory.mktemp("node")) as machine:
        shutil.copytree(MODULE, machine.changes / "srv/modules/puppet_inspector")
        yield machine


def _apply(node: Overlay, manifest: str) -> subprocess.CompletedProcess[str]:
    (node.changes / "srv/site.pp").write_text(manifest)
    return node.run(f"{APPLY} /srv/site.pp")


def test_it_is_applied_twice_and_taken_away(node: Overlay, stage: Stage) -> None:
    port = free_port(ADDRESS)
    agent = stage.enrolled(NAME)
    srv = node.changes / "srv"
    shutil.copytree(agent.ssldir, srv / "ssl")
    shutil.copy(packages.deb(), srv / "puppet-inspector.deb")
    (srv / "start").write_text(START)
    (srv / "start").chmod(0o755)
    present = PRESENT.replace("MASTER", f"{stage.master.name}:{stage.master.port}")
    present = present.replace("LISTEN", f"{ADDRESS}:{port}")

    first = _apply(node, present)
    assert first.returncode == 2, first.stdout + first.stderr
    try:
        unchanged = _apply(node, present)
        assert unchanged.returncode == 0, unchanged.stdout + unchanged.stderr
        state = node.done("stat -c '%a %U %n' /var/lib/puppet-inspector/ssl/private_keys/*.pem; cat /srv/output")
        assert state.startswith(f"400 puppet-inspector /var/lib/puppet-inspector/ssl/private_keys/{NAME}.pem\n")
        conf = (node.changes / "etc/puppet-inspector.conf").read_text()
        assert "puppet_only: 'it''s, module.example'\npuppet_wire: false\n" in conf
        unit = node.run(
            "! command -v systemd-analyze >/dev/null || systemd-analyze verify --man=no puppet-inspector.service"
        )
        assert (unit.returncode, unit.stderr) == (0, "")
        # An agent's run through the service, which presents the node's own certificate.
        _wait_for(node, f"{ADDRESS}:{port}")
        with host_names({NAME: ADDRESS}):
            done = agent.run(server=NAME, port=port)
        assert done.status == 2, done.output
    finally:
        stopped = _apply(node, present.replace("proxy          => 'node',", ""))
    assert stopped.returncode == 2, stopped.stdout + stopped.stderr
    runs = json.loads(node.done("puppet-inspector runs --json /var/lib/puppet-inspector"))
    assert [(run["certname"], run["outcome"]) for run in runs] == [(NAME, "complete")]

    removed = _apply(node, ABSENT)
    assert removed.returncode == 2, removed.stdout + removed.stderr
    assert node.run("getent passwd puppet-inspector; getent group puppet-inspector").stdout == ""
    # (This machine may have unpacked a one-file build, which is taken away, too. Where man-db is installed, it lists
    # all pages anew.)
    left = node.left("etc/puppet/", "var/lib/puppet/", "var/cache/puppet/", "var/cache/man/")
    assert [name for name in left if name != "var/cache/puppet-inspector is gone"] == []
    again = _apply(node, ABSENT)
    assert again.returncode == 0, again.stdout + again.stderr


def _wait_for(node: Overlay, address: str) -> None:
    """Wait until the service listens."""
    for _ in range(600):
        printed = (node.changes / "srv/output").read_text()
        if address in printed:
            return
        assert node.run("kill -0 $(cat /srv/pid)").returncode == 0, printed
        time.sleep(0.1)
    raise AssertionError(printed)


def test_the_syntax_is_that_of_each_version(node: Overlay) -> None:
    done = node.run("cd /srv/modules/puppet_inspector && puppet parser validate manifests/*.pp types/*.pp"
                    " && puppet parser validate --tasks plans/*.pp && puppet epp validate templates/*.epp")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_puppet_lint_finds_nothing() -> None:
    done = subprocess.run([program("puppet-lint", "puppet-lint"), "--fail-on-warnings", MODULE],
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
