"""Recorded real agents are rehearsed against a real puppetserver, and what is different is what was changed."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from inspector.capture.store import Capture
from inspector.host import pki
from inspector.model import Exchange
from tests.real.agent import installed
from tests.real.rehearsals import allow_v4, by_v4, target, without_changes
from tests.real.through import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.real.puppet import RealMaster

NAMES = ("first.example", "second.example")
ROLE = "1.3.6.1.4.1.34380.1.1.13"
"""The extension pp_role."""
CODE = """
file { 'BASE': ensure => directory }
file { 'BASE/trusted': content => String($trusted.keys.sort.map |$key| { [$key, $trusted[$key]] }) }
file { 'BASE/secret': content => Sensitive('hunter2') }
file { 'BASE/binary': content => Binary('AAECAwQ=') }
file { 'BASE/deferred': content => Deferred('sprintf', ['hello %s', 'you']) }
notify { 'nested': message => ['hello', Deferred('sprintf', ['%s', 'you'])] }
file { 'BASE/copied': source => 'puppet:///modules/rehearsed/copied.txt' }
file { 'BASE/tree': source => 'puppet:///modules/rehearsed/tree', recurse => true }
file { 'BASE/looked-up': content => lookup('rehearsed::text', String, 'first', 'no data') }
file { 'BASE/legacy': content => "${facts['osfamily']} ${facts['os']['family']}" }
file { 'BASE/flat': content => "${facts['osfamily']}" }
$sum = '1' + 1
file { 'BASE/tier': content => $tier }
include rehearsed
"""
ENC = "#!/bin/sh\necho '{parameters: {tier: %s}, classes: [%s]}'\n"
DEFERRED = 4
"""Deferred values of both nodes, which v4 before 8.10 makes text of."""


@dataclass
class Site:
    """The site of two recorded agents, and what it answers them."""

    stage: Stage
    master: RealMaster
    allows_v4: bool = False
    _count: Iterator[int] = field(default_factory=lambda: iter(range(1000)))

    def rehearse(self, run: Run, *words: object, road: list[object] | None = None) -> tuple[int, dict[str, Any]]:
        """The exit status and what is printed as JSON."""
        arguments = [self.stage.capture, *(road or by_v4(self.stage)), "-o", self.output(), "--json", *words]
        status, out, err = run("rehearse", *arguments)
        assert out, err
        assert "hunter2" not in out
        return status, json.loads(out)

    def output(self) -> Path:
        """A name for a capture."""
        return self.stage.directory / f"rehearsed{next(self._count)}.sqlite"

    def file(self, name: str, of: str = NAMES[0]) -> str:
        """A resource of a node."""
        return f"File[{self.stage.directory / of}/managed/{name}]"


@pytest.fixture(scope="module")
def site(master: RealMaster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two agents, with extensions and alternative names in their certificates, made a run each."""
    stage = Stage(master, tmp_path_factory.mktemp("rehearsed"))
    master.module_file("rehearsed", "files/copied.txt", b"one\n")
    master.module_file("rehearsed", "files/tree/in/it.txt", b"one\n")
    master.module_file("rehearsed", "manifests/init.pp", b"class rehearsed { notify { 'as ever': } }\n")
    enc = master.confdir / "enc"
    enc.write_text(ENC % ("one", ""))
    enc.chmod(0o755)
    # strict: what version 8 refuses otherwise.
    settings = {"node_terminus": "exec", "external_nodes": enc, "strict": "warning"}
    with without_changes(master), master.configured(**settings):
        for name in NAMES:
            _issue(master, name)
            agent = stage.enrolled(name)
            facts = stage.directory / name / "facts.json"
            facts.write_text(json.dumps(json.loads(facts.read_text()) | {"osfamily": "Debian"}))
            master.manifest(name, CODE.replace("BASE", str(agent.target)))
            with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
                done = road.run(agent)
            assert done.status == 2, done.output
        yield Site(stage, master)
        for name in NAMES:
            (master.environment / f"manifests/{name}.pp").unlink()
        enc.unlink()
    stage.close()
    shutil.rmtree(master.environment.parent / "staging", ignore_errors=True)


def _issue(master: RealMaster, name: str) -> None:
    """A certificate as if a request for it had attributes."""
    key, value = pki.new_key(2048), b"\x0c\x03web"
    extension = x509.UnrecognizedExtension(x509.ObjectIdentifier(ROLE), value)
    made = pki.sign(
        pki.read_authority(master.cadir), key.public_key(), name, [f"www.{name}"],
        extensions=[x509.Extension(extension.oid, critical=False, value=extension)],
    )  # fmt: skip
    (master.ssldir / f"certs/{name}.pem").write_bytes(pki.pem(made))
    pki.write_private(master.ssldir / f"private_keys/{name}.pem", pki.key_pem(key))


@pytest.fixture
def allowed(site: Site, run: Run) -> Site:
    """The default auth.conf denies v4; the rule heals it as it is printed."""
    if not site.allows_v4:
        status, out, err = run("rehearse", site.stage.capture, *by_v4(site.stage), "-o", site.output())
        assert (status, out) == (2, "")
        assert "does not allow proxy.example to compile catalogs of nodes (403)." in err
        allow_v4(site.master, err)
        site.allows_v4 = True
    return site


def changes(found: dict[str, Any]) -> set[tuple[str, str]]:
    """What is different: the end of its name, and its part or how it changed."""
    return {(each["name"].rpartition("/")[2], each["part"] or each["change"])
            for group in found["groups"] for each in group["differences"]}  # fmt: skip


def reasons(found: dict[str, Any]) -> list[str]:
    """Why nodes could not be compared."""
    return [each["reason"] for each in found["not_compared"]]


def test_what_another_environment_changes(allowed: Site, run: Run) -> None:
    site = allowed
    status, found = site.rehearse(run, "--twice", "--files")
    assert (status, found["groups"], found["not_compared"]) == (0, [], [])
    assert (sorted(found["without_change"]), found["noise"]["differences"]) == (sorted(NAMES), 0)
    assert found["deferred_not_compared"] == (0 if installed() >= (8, 10) else DEFERRED)

    # Other code, other data, other bytes.
    staging = _staging(site.master)
    (staging / "modules/rehearsed/manifests/init.pp").write_text("class rehearsed { notify { 'new': } }\n")
    (staging / "modules/rehearsed/files/copied.txt").write_text("two\n")
    (staging / "modules/rehearsed/files/tree/in/it.txt").write_text("two\n")
    (staging / "modules/rehearsed/files/tree/new.txt").write_text("new\n")
    (staging / "hiera.yaml").write_text("version: 5\nhierarchy: [{name: all, path: all.yaml}]\n")
    (staging / "data").mkdir(exist_ok=True)
    (staging / "data/all.yaml").write_text("rehearsed::text: from Hiera\n")
    status, found = site.rehearse(run, "--environment", "staging", "--files")
    assert status == 1
    assert changes(found) == {
        ("Notify[as ever]", "removed"), ("Notify[new]", "added"), ("looked-up]", "content"), ("copied.txt", "content"),
        ("it.txt", "content"), ("new.txt", "added"),
    }  # fmt: skip

    # A module is gone.
    shutil.rmtree(staging / "modules/rehearsed")
    status, found = site.rehearse(run, "--environment", "staging")
    assert status == 2
    assert reasons(found)
    for reason in reasons(found):
        assert "Could not find class ::rehearsed" in reason
        assert reason.endswith("(S01)")


def _staging(master: RealMaster) -> Path:
    """An environment like production."""
    staging = master.environment.parent / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    shutil.copytree(master.environment, staging)
    for path in (staging, *staging.rglob("*")):
        shutil.chown(path, "puppet", "puppet")
    return staging


def test_what_depends_on_facts(allowed: Site, run: Run) -> None:
    site = allowed
    status, found = site.rehearse(run, "--without-legacy-facts")
    assert status == 1
    assert changes(found) == {("legacy]", "content"), ("flat]", "content")}
    status, found = site.rehearse(run, "--fact", "os.family=Suse", "--ignore", "*[*]/mode")
    assert (status, changes(found)) == (1, {("legacy]", "content")})
    words = ["--agent", NAMES[0], "--fact", "os.family=Suse", "--without-legacy-facts"]
    status, found = site.rehearse(run, *words, "--bisect-facts", site.file("flat"))
    assert (status, [fact["name"] for fact in found["facts"]]) == (1, ["osfamily"])


@pytest.mark.parametrize("road", ["keys", "mint"])
def test_trusted_facts_are_the_recorded_ones(site: Site, run: Run, road: str) -> None:
    """Also with certificates that a throw-away CA makes: the master here trusts that one."""
    master, output = site.master, site.output()
    directory = {"keys": master.ssldir, "mint": master.cadir}[road]
    words = [*target(site.stage), "--road", f"{road}:{directory}", "--stores-data-of-nodes", "-o", output]
    status, out, err = run("rehearse", site.stage.capture, *words, "--json")
    found = json.loads(out)
    assert (status, err, sorted(found["without_change"])) == (0, "", sorted(NAMES))
    assert found["deferred_not_compared"] == 0
    with Capture.open(output) as made, Capture.open(site.stage.capture) as recorded:
        sent, before = (
            {certificate.serial_number: certificate for certificate in _presented(one)} for one in (made, recorded)
        )
    assert {pki.certname_of(certificate) for certificate in sent.values()} == {*NAMES}
    for certificate in sent.values():
        name = pki.certname_of(certificate)
        assert pki.alt_names(certificate) == [name, f"www.{name}"]
        assert [extension.oid.dotted_string for extension in pki.puppet_extensions(certificate)] == [ROLE]
    assert (sent.keys() == before.keys()) is (road == "keys")


def _presented(capture: Capture) -> list[x509.Certificate]:
    exchanges = [record for record in capture.records() if isinstance(record, Exchange)]
    ders = {exchange.agent.peer_chain[0] for exchange in exchanges if exchange.agent.peer_chain}
    return [x509.load_der_x509_certificate(der) for der in ders]


def test_what_the_enc_changes(allowed: Site, run: Run) -> None:
    site, enc = allowed, allowed.master.confdir / "enc"
    site.master.module_file("rehearsed", "manifests/more.pp", b"class rehearsed::more { notify { 'more': } }\n")
    before = enc.read_text()
    try:
        enc.write_text(ENC % ("two", "rehearsed::more"))
        for road in (None, _as_agents(site)):
            status, found = site.rehearse(run, road=road)
            assert status == 1
            assert changes(found) == {
                ("tier]", "content"), ("Notify[more]", "added"), ("Class[Rehearsed::More]", "added"),
            }  # fmt: skip
        enc.write_text("#!/bin/sh\nexit 1\n")
        status, found = site.rehearse(run)
        assert status == 2
        for reason in reasons(found):
            assert "Failed to find" in reason
            assert reason.endswith("(S25)")
    finally:
        enc.write_text(before)


def _as_agents(site: Site) -> list[object]:
    return [*target(site.stage), "--road", f"keys:{site.master.ssldir}", "--stores-data-of-nodes"]


def test_what_is_an_error_with_strict(allowed: Site, run: Run) -> None:
    """What the master warns of without it, is said."""
    site, coercion = allowed, "The string '1' was automatically coerced to the numerical value 1"
    status, found = site.rehearse(run)
    assert status == 0
    (logged,) = found["logs"]
    assert coercion in logged["message"]
    assert (logged["level"], sorted(logged["nodes"])) == ("warning", sorted(NAMES))
    with site.master.configured(strict="error"):
        status, found = site.rehearse(run)
    assert status == 2
    assert reasons(found)
    for reason in reasons(found):
        assert coercion in reason
        assert reason.endswith("(S01)")
    assert site.rehearse(run)[0] == 0
