"""What a verdict tells to do is done, word for word, with real Puppet; then the agent's next run succeeds."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.formats import json_output
from inspector.host import pki
from inspector.rules import rule_of
from tests.real.agent import RealAgent
from tests.real.machine import missing
from tests.real.through import Stage, run_summaries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.puppet import RealMaster
    from tests.real.through import Road

DAY = datetime.timedelta(days=1)
DONE, NOTHING_TO_REVOKE = 0, 24
"""How ``puppetserver ca`` ends well: 24 if ``clean`` found a request, but no certificate."""
NOT_FOUND = 127
"""How a shell ends that does not know the command."""


def _verdicts(capture: Path) -> list[dict[str, Any]]:
    analyzer = Analyzer()
    with Capture.open(capture) as records:
        for record in records.records():
            analyzer.feed(record)
    analyzer.finish()
    return [run["verdict"] for run in json_output.runs(analyzer.runs)]


def _commands(remedy: str, case: str = "") -> list[str]:
    """What stands in backticks, of the alternatives (``If ...: ...``) only the one for this case."""
    (chosen,) = [part for part in re.split(r"\. (?=If )", remedy) if part.startswith(case)] if case else [remedy]
    return re.findall(r"`([^`]+)`", chosen)


class Hosts:
    """A shell on the node and one on the CA: their ``puppet`` and ``puppetserver`` know where these live."""

    def __init__(self, agent: RealAgent, road: Road) -> None:
        self.agent, self.road = agent, road
        agent.configure(server=road.server, port=road.port)
        facts = f"RUBYLIB={agent.base}/ruby INVENTED_FACTS={agent.base}/facts.json"
        puppet, confdir = shutil.which("puppet"), road.master.confdir
        # By itself an agent asks again only after two minutes, whoever signs meanwhile.
        self._command("node", "puppet", f'[ "$1" = agent ] && set -- "$@" --waitforcert 0\n'
                      f'{facts} exec {puppet} "$@" --color=false --confdir {agent.confdir}')  # fmt: skip
        self._command("ca", "puppet", f'exec {puppet} "$@" --confdir {confdir}')
        self._command("ca", "puppetserver", f'exec {shutil.which("puppetserver")} "$@" --config {confdir}/puppet.conf')

    def _command(self, host: str, name: str, script: str) -> None:
        path = self.agent.base / host / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def shell(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run what somebody types on the ``node`` or on the ``ca``."""
        path = f"{self.agent.base / host}:/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(
            ["bash", "-c", command], env=os.environ | {"PATH": path, "HOME": str(self.agent.base)},
            cwd=self.agent.base, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
        )  # fmt: skip

    def execute(self, commands: list[str]) -> list[str]:
        """Each where it belongs, in order; their outputs. On the CA everything succeeds."""
        outputs = []
        for command in commands:
            host = "ca" if command.startswith("puppetserver ") or "--section master" in command else "node"
            done = self.shell(host, command)
            assert host == "node" or done.returncode in (DONE, NOTHING_TO_REVOKE), f"{command}\n{done.stdout}"
            assert done.returncode != NOT_FOUND, f"{command}\n{done.stdout}"
            outputs.append(done.stdout)
        return outputs

    def succeeds(self) -> None:
        """The agent's next run does."""
        done = self.shell("node", "puppet agent -t")
        assert done.returncode in (0, 2), done.stdout


def _fails(stage: Stage, agent: RealAgent, *extra: str, crl: Path | None = None) -> list[dict[str, Any]]:
    """Run the agent, which fails; the verdicts of all runs in the capture so far. ``crl`` is the proxy's."""
    with stage.proxy(f"keys:{agent.ssldir}", puppet_crl=crl or stage.master.cadir / "ca_crl.pem") as road:
        done = road.run(agent, *extra)
    assert done.status == 1, done.output
    return _verdicts(stage.capture)


def _succeeds_after(stage: Stage, agent: RealAgent, commands: list[str], *, crl: Path | None = None) -> list[str]:
    """Execute the commands, then run the agent; returns what they printed."""
    stage.capture = stage.directory / "after.sqlite"
    with stage.proxy(f"keys:{agent.ssldir}", puppet_crl=crl or stage.master.cadir / "ca_crl.pem") as road:
        hosts = Hosts(agent, road)
        outputs = hosts.execute(commands)
        hosts.succeeds()
    last = run_summaries(stage.capture)[-1]
    assert (last.certname, last.outcome) == (agent.certname, "complete")
    return outputs


@pytest.fixture
def late(stage: Stage) -> RealAgent:
    """An enrolled agent that has to download the CRL."""
    agent = stage.enrolled("late.example")
    (agent.ssldir / "crl.pem").unlink()
    return agent


@pytest.fixture
def expired_crl(master: RealMaster, late: RealAgent) -> Iterator[Path]:
    """The CA's CRL ended yesterday, for its own server as well; yields the sound one, for the proxy.

    ``late`` is enrolled before: now the CA would not do it.
    """
    place, sound = master.cadir / "ca_crl.pem", master.confdir / "sound.pem"
    shutil.copyfile(place, sound)
    authority = pki.read_authority(master.cadir)
    own, *others = re.findall(rb"-----BEGIN.*?END X509 CRL-----\n", place.read_bytes(), re.DOTALL)
    revoked = [entry.serial_number for entry in x509.load_pem_x509_crl(own)]
    now = datetime.datetime.now(datetime.UTC)
    ended = pki.make_crl(authority, revoked, number=99, last_update=now - 2 * DAY, next_update=now - DAY)
    place.write_bytes(b"".join([pki.pem(ended), *others]))
    yield sound
    place.write_bytes(sound.read_bytes())


def test_expired_crl(stage: Stage, late: RealAgent, expired_crl: Path) -> None:
    """A server whose CRL has expired refuses ``puppetserver ca`` as well: the remedy must do without it."""
    (verdict,) = _fails(stage, late, crl=expired_crl)
    assert verdict["cause"] == "B10"
    _succeeds_after(stage, late, _commands(verdict["remedy"]), crl=expired_crl)


def test_mismatched_key(stage: Stage) -> None:
    agent = stage.agent("reinstalled.example")
    stage.master.generate(agent.certname)
    (verdict,) = _fails(stage, agent)
    assert verdict["cause"] == "B18"
    _succeeds_after(stage, agent, _commands(verdict["remedy"], "If the node was reinstalled"))


def test_revoked(stage: Stage) -> None:
    agent = stage.enrolled("dismissed.example")
    stage.master.revoke(agent.certname)
    (verdict,) = _fails(stage, agent)
    assert verdict["cause"] == "T05"
    _succeeds_after(stage, agent, _commands(verdict["remedy"], "If the node should continue to work"))


def test_unsigned(stage: Stage) -> None:
    agent = stage.agent("unsigned-yet.example")
    first, again = _fails(stage, agent), _fails(stage, agent)  # the second try goes on where the first one was
    assert [verdict["cause"] for verdict in (*first, *again)] == [None, "B17"]
    assert first[0]["remedy"] == again[0]["remedy"]
    ours, theirs, _ = _succeeds_after(stage, agent, _commands(again[0]["remedy"]))
    assert ours.split()[-1] in theirs  # the fingerprints can be compared


@pytest.fixture
def strict(master: RealMaster) -> Iterator[None]:
    """The CA takes no alternative names, until it is told to."""
    master.allow_alt_names(False)
    yield
    if "true" not in (master.confdir / "conf.d/ca.conf").read_text():
        master.allow_alt_names(True)


@pytest.mark.usefixtures("strict")
def test_alternative_names_refused(stage: Stage) -> None:
    """Both ways out, one after the other: without the names, and with them."""
    without, with_them = stage.agent("no-master.example"), stage.agent("compiler.example")
    names = ("--dns_alt_names", "puppet.example")
    (verdict,) = _fails(stage, without, *names)
    assert verdict["cause"] == "B27"
    # They stood on the command line, and now do no more: that is "take them out".
    _succeeds_after(stage, without, _commands(verdict["remedy"], "If the node is not a master"))

    stage.capture = stage.directory / "with.sqlite"
    (verdict,) = _fails(stage, with_them, *names)
    assert verdict["cause"] == "B27"
    setting, *commands = _commands(verdict["remedy"], "If it should have the names")
    assert setting == "allow-subject-alt-names: true"
    stage.master.allow_alt_names(True)
    _succeeds_after(stage, with_them, commands)
    certificate = x509.load_pem_x509_certificate((with_them.ssldir / f"certs/{with_them.certname}.pem").read_bytes())
    given = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "puppet.example" in given.get_values_for_type(x509.DNSName)


def test_cloned(stage: Stage) -> None:
    """Two hosts with one name and a key each; while nobody signs, they ask in turn."""
    original = stage.agent("twin.example")
    clone = RealAgent(stage.directory / "clone", original.certname)
    for agent in (original, clone):
        _fails(stage, agent)
    verdict = _fails(stage, original)[-1]
    assert verdict["cause"] == "B46"
    rename, clean, reset = _commands(verdict["remedy"])
    stage.capture = stage.directory / "after.sqlite"
    with stage.proxy(f"mint:{stage.master.cadir}") as road:
        hosts = {"one.example": Hosts(original, road), "two.example": Hosts(clone, road)}
        for name, host in hosts.items():
            host.execute([rename.replace("<name>", name)])
        hosts["one.example"].execute([clean])
        for name, host in hosts.items():
            host.execute([reset])
            stage.master.sign(name)
            host.succeeds()
    assert {(run.certname, run.outcome) for run in run_summaries(stage.capture)} == {(n, "complete") for n in hosts}


def test_the_server_is_set_where_the_agent_reads_it(tmp_path: Path) -> None:
    """A value in the section of the agent hides that of main, which no advice may rely on."""
    if reason := missing():
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    (tmp_path / "puppet.conf").write_text("[main]\nserver = one.example\n[agent]\nserver = other.example\n")
    (command,) = [text for text in _commands(rule_of("T07").remedy) if text.startswith("puppet config set server")]
    words = [*command.replace("<name>", "right.example").split(), "--confdir", str(tmp_path)]
    subprocess.run(words, check=True, capture_output=True)
    asked = ["puppet", "config", "print", "server", "--section", "agent", "--confdir", str(tmp_path)]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "right.example\n"
