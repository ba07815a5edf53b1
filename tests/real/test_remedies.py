"""What a verdict tells to do is done, word for word, with real Puppet; then the agent's next run succeeds."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import sys
import time
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
    from collections.abc import Callable, Iterator
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
        self._command("ca", "puppet-inspector", f'exec {sys.executable} -m inspector.cli "$@"')

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

    def execute(self, commands: list[str], *, at: str = "") -> list[str]:
        """Each where it belongs (or ``at`` one host), in order; their outputs. On the CA everything succeeds."""
        services = {"systemctl stop puppetserver": self.road.master.stop,
                    "systemctl start puppetserver": self.road.master.start}  # fmt: skip
        outputs = []
        for command in commands:
            if service := services.get(command):
                service()
                continue
            on_ca = command.startswith("puppetserver ") or "--section master" in command
            host = at or ("ca" if on_ca else "node")
            done = self.shell(host, command)
            assert host == "node" or done.returncode in (DONE, NOTHING_TO_REVOKE), f"{command}\n{done.stdout}"
            assert done.returncode != NOT_FOUND, f"{command}\n{done.stdout}"
            outputs.append(done.stdout)
        return outputs

    def fails(self) -> None:
        """The agent's next run does, in spite of what was executed so far."""
        done = self.shell("node", "puppet agent -t")
        assert done.returncode == 1, done.stdout

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


@pytest.fixture(params=[False, True], ids=["mitmdump", "proxy"])
def stage(request: pytest.FixtureRequest, master: RealMaster, tmp_path: Path) -> Iterator[Stage]:
    """Each test is played on both roads."""
    stage = Stage(master, tmp_path, own=request.param)
    yield stage
    stage.close()


def _named(stage: Stage, name: str) -> str:
    """A certname that the CA does not know from the other road."""
    return f"{name}-{'proxy' if stage.own else 'mitmdump'}.example"


@pytest.fixture
def late(request: pytest.FixtureRequest, stage: Stage) -> RealAgent:
    """An enrolled agent that has to download the CRL."""
    test = request.function.__name__.removeprefix("test_").replace("_", "-")
    agent = stage.enrolled(_named(stage, f"late-{test}"))
    (agent.ssldir / "crl.pem").unlink()
    return agent


@pytest.fixture
def crls(master: RealMaster, late: RealAgent) -> Iterator[Path]:
    """The CA's CRLs, for a test to spoil; yields a sound copy, for the proxy.

    ``late`` is enrolled before: with spoiled ones the CA would not do it.
    """
    place, sound = master.cadir / "ca_crl.pem", master.confdir / "sound.pem"
    shutil.copyfile(place, sound)
    yield sound
    place.write_bytes(sound.read_bytes())


def _split(crls: Path) -> list[bytes]:
    return re.findall(rb"-----BEGIN.*?END X509 CRL-----\n", crls.read_bytes(), re.DOTALL)


@pytest.fixture
def expired_crl(master: RealMaster, crls: Path) -> Path:
    """The CA's CRL ended yesterday, for its own server as well."""
    authority = pki.read_authority(master.cadir)
    own, *others = _split(crls)
    revoked = [entry.serial_number for entry in x509.load_pem_x509_crl(own)]
    now = datetime.datetime.now(datetime.UTC)
    ended = pki.make_crl(authority, revoked, number=99, last_update=now - 2 * DAY, next_update=now - DAY)
    (master.cadir / "ca_crl.pem").write_bytes(b"".join([pki.pem(ended), *others]))
    return crls


def _taken_over(master: RealMaster, timeout: float = 60) -> bool:
    """Whether the server, without a restart, uses the CA's CRLs for its own connections."""
    deadline = time.monotonic() + timeout
    while (same := _split(master.ssldir / "crl.pem") == _split(master.cadir / "ca_crl.pem")) is False:
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return same


def test_expired_crl(stage: Stage, late: RealAgent, expired_crl: Path) -> None:
    """A server whose CRL has expired refuses ``puppetserver ca`` as well: the remedy must do without it."""
    (verdict,) = _fails(stage, late, crl=expired_crl)
    assert verdict["cause"] == "B10"
    place = stage.master.cadir / "ca_crl.pem"
    mode, owner = place.stat().st_mode, place.owner()
    shown, written, _ = _succeeds_after(stage, late, _commands(verdict["remedy"]), crl=expired_crl)
    assert "; expired\n" in shown
    assert "Nothing was written." in shown
    assert "number 100, " in written
    assert (place.stat().st_mode, place.owner()) == (mode, owner)
    assert _taken_over(stage.master)


@pytest.fixture
def incomplete_crl(master: RealMaster, crls: Path) -> Path:
    """The root's CRL is missing."""
    (master.cadir / "ca_crl.pem").write_bytes(_split(crls)[0])
    return crls


def test_incomplete_crl(stage: Stage, late: RealAgent, incomplete_crl: Path) -> None:
    """Repairing the CA is not enough: the agent has the incomplete file."""
    (late.ssldir / "certs/ca.pem").unlink()  # only who downloads the CAs, too, shows which CRL is missing
    (verdict,) = _fails(stage, late, crl=incomplete_crl)
    assert verdict["cause"] == "B13"
    show, write, drop, workaround = _commands(verdict["remedy"])
    assert workaround.startswith("puppet config set certificate_revocation leaf")
    stage.capture = stage.directory / "after.sqlite"
    with stage.proxy(f"keys:{late.ssldir}", puppet_crl=incomplete_crl) as road:
        hosts = Hosts(late, road)
        if stage.own:
            # The root's key may be elsewhere; then its CRL is taken from a file.
            (stage.master.cadir / "root_key.pem").rename(stage.directory / "root_key.pem")
            done = hosts.shell("ca", show)
            assert done.returncode == 1
            assert "infra_crl.pem" in done.stdout
            write = f"{write} --add {stage.master.cadir}/infra_crl.pem"
            hosts.execute([write])
            shutil.move(stage.directory / "root_key.pem", stage.master.cadir)
        else:
            hosts.execute([show, write])
        hosts.fails()
        hosts.execute([drop])
        hosts.succeeds()
    assert _taken_over(stage.master)
    assert run_summaries(stage.capture)[-1].outcome == "complete"


@pytest.fixture
def expired_master(master: RealMaster) -> Iterator[Callable[[], None]]:
    """Yields what lets the running master's certificate end yesterday."""
    certificate = master.ssldir / f"certs/{master.name}.pem"
    sound = certificate.read_bytes()
    places = (certificate, master.cadir / f"signed/{master.name}.pem")

    def install(content: bytes) -> None:
        master.stop()
        for place in places:
            place.write_bytes(content)
        master.start()

    def expire() -> None:
        old = x509.load_pem_x509_certificate(sound)
        ended = pki.sign(
            pki.read_authority(master.cadir), old.public_key(), master.name, master.alt_names,
            serial=old.serial_number, not_before=datetime.datetime.now(datetime.UTC) - 9 * DAY, lifetime=8 * DAY,
            extensions=pki.puppet_extensions(old),
        )  # fmt: skip
        install(pki.pem(ended))

    yield expire
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.exists() or x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc < now:
        install(sound)  # the remedy failed; its key may be gone, too


def test_expired_master(master: RealMaster, tmp_path: Path, expired_master: Callable[[], None]) -> None:
    """``puppetserver ca clean`` has to verify the master itself: the remedy must do without it.

    The master is started twice; so both roads are played in one test.
    """
    stages = [Stage(master, tmp_path / str(own), own=own) for own in (False, True)]
    for stage in stages:
        stage.directory.mkdir()
    agents = [stage.enrolled(_named(stage, "loyal")) for stage in stages]
    expired_master()
    verdicts = [_fails(stage, agent)[-1] for stage, agent in zip(stages, agents, strict=True)]
    for verdict in verdicts:
        assert verdict["cause"] == "T08"
        assert f"the master's certificate, CN={master.name}, expired on " in verdict["message"]
        assert "puppet ssl" not in verdict["remedy"]
    assert verdicts[0]["remedy"] == verdicts[1]["remedy"]
    commands = _commands(verdicts[0]["remedy"])
    with stages[0].proxy(f"keys:{agents[0].ssldir}") as road:
        outputs = Hosts(agents[0], road).execute(commands, at="ca")
    assert "Not After" in outputs[1]
    for stage, agent in zip(stages, agents, strict=True):
        _succeeds_after(stage, agent, [])
        stage.close()
    new = x509.load_pem_x509_certificate((master.ssldir / f"certs/{master.name}.pem").read_bytes())
    names = new.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == set(master.alt_names)


def test_mismatched_key(stage: Stage) -> None:
    agent = stage.agent(_named(stage, "reinstalled"))
    stage.master.generate(agent.certname)
    (verdict,) = _fails(stage, agent)
    assert verdict["cause"] == "B18"
    _succeeds_after(stage, agent, _commands(verdict["remedy"], "If the node was reinstalled"))


def test_revoked(stage: Stage) -> None:
    agent = stage.enrolled(_named(stage, "dismissed"))
    stage.master.revoke(agent.certname)
    (verdict,) = _fails(stage, agent)
    assert verdict["cause"] == "T05"
    _succeeds_after(stage, agent, _commands(verdict["remedy"], "If the node should continue to work"))


def test_unsigned(stage: Stage) -> None:
    agent = stage.agent(_named(stage, "unsigned-yet"))
    first, again = _fails(stage, agent), _fails(stage, agent)  # the second try goes on where the first one was
    assert [verdict["cause"] for verdict in (*first, *again)] == [None, "B17"]
    assert first[0]["remedy"] == again[0]["remedy"]
    remedy = again[0]["remedy"]
    commands = _commands(remedy, "On the CA compare") + _commands(remedy, "If they are the same")
    theirs, _ = _succeeds_after(stage, agent, commands)
    own = re.search(r"this agent's: fingerprint ([0-9A-F:]{95})\b", remedy)
    assert own
    assert own[1] in theirs  # the fingerprints can be compared


def test_another_keys_request_waits(stage: Stage) -> None:
    """The node was reinstalled while its first request waited; only the second one was recorded."""
    agent = stage.agent(_named(stage, "reinstalled-waiting"))
    _fails(stage, agent)
    for path in agent.ssldir.rglob("*.pem"):
        path.unlink()
    stage.capture = stage.directory / "second.sqlite"
    (verdict,) = _fails(stage, agent)
    own = re.search(r"this agent's: fingerprint ([0-9A-F:]{95})\b", verdict["remedy"])
    assert own
    commands = _commands(verdict["remedy"], "On the CA compare") + _commands(verdict["remedy"], "If they differ")
    theirs, *_ = _succeeds_after(stage, agent, commands)
    assert own[1] not in theirs


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
    without, with_them = stage.agent(_named(stage, "no-master")), stage.agent(_named(stage, "compiler"))
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
    original = stage.agent(_named(stage, "twin"))
    clone = RealAgent(stage.directory / "clone", original.certname)
    for agent in (original, clone):
        _fails(stage, agent)
    verdict = _fails(stage, original)[-1]
    assert verdict["cause"] == "B46"
    rename, clean, reset = _commands(verdict["remedy"])
    stage.capture = stage.directory / "after.sqlite"
    with stage.proxy(f"mint:{stage.master.cadir}") as road:
        one, two = _named(stage, "one"), _named(stage, "two")
        hosts = {one: Hosts(original, road), two: Hosts(clone, road)}
        for name, host in hosts.items():
            host.execute([rename.replace("<name>", name)])
        hosts[one].execute([clean])
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
