"""Captures to give away: the same findings, and nothing that tells whose they are."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from cryptography import x509 as lib
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import exporting, pseudonyms, share
from inspector.formats.learning import Learner
from inspector.formats.outgoing import ALL, Content, Outgoing
from inspector.formats.pseudonyms import Pseudonyms
from inspector.formats.reissue import Reissuer
from inspector.host import pki
from inspector.model import Exchange, Gap, Handshake, Leg, Request, Response
from inspector.privacy import redact, rewrite
from inspector.protocol import bodies, x509
from inspector.rules import all_rules
from inspector.runs.examples import asking_for, bucket, catalog, content, csr, metadata, plugins, report, talk
from tests.support import places
from tests.support.captures import save
from tests.support.conversations import numbered, runs_of
from tests.support.recorded import RECORDINGS, SAMPLES, VERSIONS, name_of, records_of
from tests.support.secrets import KEY, WORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.model import Message, Record
    from inspector.rules import Rule
    from tests.conftest import Run

OWN = "web1.ams.corp-name.com"
ADDRESS = "10.47.3.9"


def findings(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    return [
        (run.number, run.outcome, finding.rule, finding.severity, finding.seqs)
        for run in runs_of(records)
        for finding in run.findings
    ]


def shared(path: Path) -> tuple[Record, ...]:
    target = path.with_name("shared.sqlite")
    share.share(path, target)
    with Capture.open(target) as capture:
        assert capture.meta()["shared"]
        return tuple(capture.records())


def text_of(records: Iterable[Record]) -> str:
    """All that records say, without any encoding."""
    return "\0".join(text for record in records for text in _texts(record))


def _texts(record: Record) -> Iterator[str]:
    yield str(dataclasses.replace(record, seq=0))
    for leg in record.legs:
        for der in (*leg.peer_chain, *leg.own_chain):
            yield der.decode("latin-1")
            yield x509.fingerprint(der)
    if isinstance(record, Exchange):
        for message in (record.request, record.response):
            yield from _spoken(message) if message else ()


def _spoken(message: Message) -> Iterator[str]:
    plain = bodies.plain(message)
    yield plain.decode("latin-1")
    for leaf in rewrite.leaves(rewrite.anything(plain, bodies.content_type(message)).top):
        yield str(leaf.value)


@pytest.mark.parametrize("opened", [frozenset(), ALL], ids=["closed", "opened"])
@pytest.mark.parametrize("pseudonyms", [True, False], ids=["share", "export"])
@pytest.mark.parametrize(
    "path", [*SAMPLES, *VERSIONS, *(pytest.param(path, marks=pytest.mark.slow) for path in RECORDINGS)], ids=name_of
)
def test_what_leaves_has_the_verdicts_of_the_original(path: Path, pseudonyms: bool, opened: frozenset[Content]) -> None:
    records = records_of(path)
    outgoing = Outgoing(pseudonyms=pseudonyms, opened=opened)
    outgoing.learn(lambda: records)
    assert findings(outgoing.record(record) for record in records) == findings(records)
    assert findings(map(redact.redacted, records)) == findings(records)


@pytest.mark.slow
@pytest.mark.parametrize("path", [*SAMPLES, *RECORDINGS[::6]], ids=name_of)
def test_recordings_come_to_the_same_findings(path: Path, tmp_path: Path) -> None:
    records = records_of(path)
    other = shared(save(tmp_path / "own.sqlite", *records))
    assert findings(other) == findings(records)
    assert len(other) == len(records)
    before, after = text_of(records), text_of(other)
    names = set(re.findall(r"[\w-]+(?:\.[\w-]+)*\.(?:example|test)(?![\w.])", before)) | {
        leg.address for record in records for leg in record.legs if leg.address and not leg.address.startswith("127.")
    }
    known = re.compile(r"(?:agent|master|host)\d+\.example|192\.0\.2\.\d+")
    assert {name for name in names if name in after and not known.fullmatch(name)} == set()


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_what_a_rule_finds_it_finds_again(rule: Rule) -> None:
    for examples in (rule.good, rule.bad):
        for talked in examples() if callable(examples) else examples:
            records = numbered(talked)
            assert findings(by_other_names(records)) == findings(records)


def by_other_names(records: Sequence[Record]) -> list[Record]:
    other = Outgoing(pseudonyms=True)
    other.learn(lambda: records)
    assert other.unmasked == {}
    return [other.record(record) for record in records]


OLD_REPORT = b"""--- !ruby/object:Puppet::Transaction::Report
  host: node1.example
  kind: apply
  configuration_version: 1765000000
  logs: []
  metrics:
    time: !ruby/object:Puppet::Util::Metric
      name: time
      label: Time
      values: [[total, Total, 0.012345678901], [file, File, 1.5e-05], [x, X, 123456789]]
  report_format: 3
  puppet_version: "2.7.26"
  resource_statuses:
    "File[/x]": !ruby/object:Puppet::Resource::Status
      failed: true
      change_count: 123456
      evaluation_time: 0.000244140625
      title: /x
      events: []
  status: failed
  time: 2026-11-21 08:25:37.123456789 +00:00
"""


@pytest.mark.parametrize("pseudonyms", [True, False])
def test_a_report_in_yaml_keeps_its_types_and_so_its_verdict(pseudonyms: bool) -> None:
    *before, last = talk(plugins(), catalog(), report())
    assert isinstance(last, Exchange)
    headers = (("Content-Type", "text/yaml"),)
    sent = dataclasses.replace(last.request, headers=headers, body=OLD_REPORT)
    records = numbered([*before, dataclasses.replace(last, request=sent)])
    outgoing = Outgoing(pseudonyms=pseudonyms)
    outgoing.learn(lambda: records)
    other = [outgoing.record(record) for record in records]
    assert isinstance(other[-1], Exchange)
    (old, new) = (list(runs_of(made)) for made in (records, other))
    assert [run.outcome for run in new] == [run.outcome for run in old]
    assert findings(other) == findings(records) != []
    assert b"withheld" not in other[-1].request.body


def test_the_size_of_a_large_secret_stays() -> None:
    records = numbered(talk(plugins(), catalog(facts={"db_password": "a1" * 4000}), report()))
    assert "R11" in {rule for _, _, rule, *_ in findings(records)}
    assert findings(by_other_names(records)) == findings(records)


FACTS = {
    "fqdn": OWN, "hostname": "web1", "domain": "ams.corp-name.com", "serialnumber": "VMware-56 4d aa",
    "db_password": WORD,
    "networking": {"ip": ADDRESS, "ip6": "2a01:4f8:10::7", "mac": "52:54:00:ab:cd:ef", "netmask": "255.255.255.0",
                   "interfaces": {"lo": {"ip": "127.0.0.1", "ip6": "::1"}}},
    "dmi": {"product": {"uuid": "4C4C4544-0042-3510-8052-B4C04F4A4E32", "serial_number": "HW9917XY"}},
    "sshrsakey": "AAAAB3NzaC1yc2EAAAADAQABAAABgQ" + "Cq9" * 30, "sshfp_rsa": f"SSHFP 1 1 {'ab' * 20}",
    "note": f"ask ntp3.ams.corp-name.com or root@{OWN}",
}  # fmt: skip


def conversation() -> list[Record]:
    file = f"server = {OWN}\naddress = {ADDRESS}\n".encode()
    made = talk(
        csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.4": WORD}, OWN)),
        plugins(),
        catalog(facts=FACTS, resources=[
            {"type": "File", "title": f"/etc/{OWN}.conf", "sensitive_parameters": ["x"], "parameters": {"x": WORD}},
        ]),
        metadata("modules/a/b", file), content("modules/a/b", file), bucket(file + KEY.encode()),
        report(host=OWN, logs=[{"level": "notice", "message": f"from {ADDRESS}, https://{OWN}:8140", "source": "x"}]),
        certname=OWN, address=ADDRESS,
    )  # fmt: skip
    failed = Handshake(Leg("h", "agent", address=ADDRESS, sni="puppet.ams.corp-name.com"), 9e9, f"no trust in {OWN}",
                       culprits=(f"CN={OWN}",))  # fmt: skip
    return numbered([*made, failed, Gap(9e9, f"connection of {OWN} lost")])


def test_times_and_certificates_and_names_in_code_stay(tmp_path: Path) -> None:
    """So it has the same findings; docs/privacy.md lists what links it to its site."""
    made = places.SAMPLES / "versions" / "puppet-8.sqlite"
    with Capture.open(made) as capture:
        before = [record for record in capture.records() if isinstance(record, Exchange)]
    share.share(made, tmp_path / "copy.sqlite")
    with Capture.open(tmp_path / "copy.sqlite") as capture:
        after = [record for record in capture.records() if isinstance(record, Exchange)]

    def certificates(exchange: Exchange) -> list[tuple[object, ...]]:
        chains = [lib.load_der_x509_certificate(der) for leg in exchange.legs for der in leg.peer_chain]
        return [(each.serial_number, each.not_valid_before_utc, each.not_valid_after_utc) for each in chains]

    for one, other in zip(before, after, strict=True):
        assert (one.request.started, one.agent.port, one.agent.cipher) == (
            other.request.started, other.agent.port, other.agent.cipher)  # fmt: skip
        assert certificates(one) == certificates(other)
    everything = text_of(after)
    assert "/srv/puppet/code/environments/production/modules/demo/files/logo.bin" in everything
    assert "app.conf" in text_of(before)
    assert "app.conf" not in everything
    assert "node8.example" in text_of(before)
    assert "node8.example" not in everything


def test_the_sites_name_in_its_code_is_replaced(tmp_path: Path) -> None:
    named = catalog(
        resources=[{"type": "Class", "title": "Acme::Web", "parameters": {"acme_rack": "x"}}], classes=["acme::web"]
    )
    (own,) = shared(save(tmp_path / "acme.sqlite", *talk(named, certname="web1.acme.com")))
    everything = text_of([own])
    assert "acme" not in everything.lower()
    assert '"site1::web"' in everything
    assert '"Site1::Web"' in everything
    (tmp_path / "2").mkdir()
    (other,) = shared(save(tmp_path / "2/other.sqlite", *talk(named, certname="web1.elsewhere.com")))
    assert "acme::web" in text_of([other]), "nothing says that this is a site's name"


def test_nothing_tells_whose_it_is(tmp_path: Path) -> None:
    records = conversation()
    everything = text_of(shared(save(tmp_path / "own.sqlite", *records)))
    secret = ["corp-name", "web1", ADDRESS, "2a01:4f8", "52:54:00", "VMware", "HW9917XY", "4c4c4544", "Cq9Cq9",
              "abababab", WORD, "MIIEvQ", "puppet.example", "node1.example"]  # fmt: skip
    assert [word for word in secret if word.lower() in everything.lower()] == []
    assert "agent1.example" in everything
    assert "255.255.255.0" in everything
    assert "127.0.0.1" in everything
    for fingerprint in {x509.fingerprint(der) for record in records for leg in record.legs for der in leg.peer_chain}:
        assert fingerprint not in everything


def test_the_same_is_called_the_same_and_digests_follow() -> None:
    records = conversation()
    before, after = findings(records), findings(other := by_other_names(records))
    assert after == before
    exchanges = [record for record in other if isinstance(record, Exchange)]
    analyzer = Analyzer()
    steps = [analyzer.feed(exchange) for exchange in exchanges]
    assert {step.certname for step in steps if step.certname} == {"agent1.example"}
    facts = steps[2].request.facts.values  # type: ignore[union-attr]
    assert facts["hostname"] == "agent1"
    assert facts["domain"] == "example"
    assert facts["note"] == "ask host1.example or root@agent1.example"
    assert facts["networking"]["ip"] == exchanges[0].agent.address
    assert steps[5].request.verdict == "right"  # type: ignore[union-attr]
    metadata = json.loads(exchanges[3].response.body) if exchanges[3].response else {}
    assert exchanges[4].response
    assert metadata["checksum"]["value"] == "{sha256}" + steps[4].response.sha256  # type: ignore[union-attr]


def test_a_certificate_that_carries_a_secret_still_verifies() -> None:
    ca = pki.make_ca("Puppet CA: puppet.corp-name.com")
    value = lib.UnrecognizedExtension(lib.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.4"), b"\x0c\x0d" + WORD.encode())
    leaf = pki.sign(ca, pki.new_key().public_key(), OWN, extensions=[lib.Extension(value.oid, False, value)])
    served = Response((("Content-Type", "text/plain"),), pki.pem(leaf, ca.certificate), status=200)
    record = Exchange(
        Leg("a", "agent", peer_chain=(leaf.public_bytes(Encoding.DER),)),
        Request(target=f"/puppet-ca/v1/certificate/{OWN}"), served, seq=1,
    )  # fmt: skip
    (other,) = by_other_names([record])
    assert isinstance(other, Exchange)
    assert other.response
    made, issuer = lib.load_pem_x509_certificates(other.response.body)
    made.verify_directly_issued_by(issuer)
    assert made.public_bytes(Encoding.DER) == other.agent.peer_chain[0]
    assert pki.certname_of(made) == "agent1.example"
    assert pki.certname_of(issuer) == "Puppet CA: master1.example"
    assert WORD.encode() not in other.agent.peer_chain[0]
    assert made.public_key() != leaf.public_key()
    assert [extension.oid for extension in made.extensions] == [extension.oid for extension in leaf.extensions]
    assert (made.serial_number, made.not_valid_after_utc) == (leaf.serial_number, leaf.not_valid_after_utc)


# -- certificates made anew -----------------------------------------------------------------------------------


def anew(*things: Any) -> list[Any]:
    reissuer = Reissuer(lambda text: text.replace("corp", "else"), bytes, b"salt")
    ders = [thing.public_bytes(Encoding.DER) for thing in things]
    for der in ders:
        reissuer.learn(der)
    loads = {lib.Certificate: lib.load_der_x509_certificate, lib.CertificateSigningRequest: lib.load_der_x509_csr}
    made = []
    for der, thing in zip(ders, things, strict=True):
        load = next((load for kind, load in loads.items() if isinstance(thing, kind)), lib.load_der_x509_crl)
        made.append(load(reissuer.made(der)))
    return made


def test_chains_and_lists_verify_as_before() -> None:
    root = pki.make_ca("Root corp")
    middle = pki.make_ca("CA corp", root)
    key = pki.new_key(2048)
    asked, leaf = pki.make_csr("a.corp", key, ["b.corp"]), pki.sign(middle, key.public_key(), "a.corp")
    renewed, other = pki.sign(middle, key.public_key(), "a.corp"), pki.sign(middle, pki.new_key(2048).public_key(), "c")
    revoked = pki.make_crl(middle, [leaf.serial_number], 3)
    forged = pki.make_crl(pki.Authority(middle.certificate, pki.new_key()))
    made = anew(root.certificate, middle.certificate, leaf, asked, renewed, other, revoked, forged)
    new_root, new_middle, new_leaf, new_asked, new_renewed, new_other, new_revoked, new_forged = made
    new_root.verify_directly_issued_by(new_root)
    new_middle.verify_directly_issued_by(new_root)
    new_leaf.verify_directly_issued_by(new_middle)
    assert new_asked.is_signature_valid
    assert new_asked.public_key() == new_leaf.public_key() == new_renewed.public_key()
    assert new_leaf.public_key() != leaf.public_key()
    assert new_leaf.public_key() != new_other.public_key()
    assert isinstance(new_leaf.public_key(), rsa.RSAPublicKey)
    assert new_leaf.public_key().key_size == new_other.public_key().key_size == 2048
    assert new_revoked.is_signature_valid(new_middle.public_key())
    assert not new_forged.is_signature_valid(new_middle.public_key())
    assert new_revoked.get_revoked_certificate_by_serial_number(new_leaf.serial_number) is not None
    assert pki.certname_of(new_leaf) == "a.else"
    ders = [certificate.public_bytes(Encoding.DER) for certificate in (new_leaf, new_middle, new_root)]
    assert x509.verify(ders[:1], ders[1:], [], new_leaf.not_valid_before_utc.timestamp() + 1, "none") == []
    for item in (new_leaf, new_revoked):  # who signed it is told by the new key's identifier
        identifier = item.extensions.get_extension_for_class(lib.AuthorityKeyIdentifier).value
        assert identifier.key_identifier == lib.SubjectKeyIdentifier.from_public_key(new_middle.public_key()).digest


def test_without_its_issuer_it_is_signed_by_somebody() -> None:
    ca, key = pki.make_ca("CA"), pki.new_key()
    one, two = (pki.sign(ca, key.public_key(), name) for name in ("a", "b"))
    first, second = anew(one, two)
    ids = [
        certificate.extensions.get_extension_for_class(lib.AuthorityKeyIdentifier).value
        for certificate in (first, second, one)
    ]
    assert ids[0] == ids[1] != ids[2]
    assert isinstance(first.signature_hash_algorithm, hashes.SHA256)


def test_a_request_that_is_not_signed_with_its_key_stays_so() -> None:
    asked = pki.make_csr("a", pki.new_key())
    der = asked.public_bytes(Encoding.DER)
    (made,) = anew(lib.load_der_x509_csr(der[:-1] + bytes([der[-1] ^ 1])))
    assert not made.is_signature_valid


def test_what_is_no_certificate_is_a_text() -> None:
    assert Reissuer(str.upper, bytes, b"").made(b"0\x03\x0c\x01a") == b"0\x03\x0c\x01A"


# -- names ------------------------------------------------------------------------------------------------------


def test_names() -> None:
    names = Pseudonyms(b"salt")
    names.host("puppet.corp.com", "master")
    names.host("Zeus.corp.com", "agent")
    names.host("lone", "agent")
    names.host("puppet", "master")
    names.authority("Corp Root")
    for before, after in {
        "zeus.corp.com": "agent1.example", "ZEUS": "AGENT1", "Zeus.corp.com": "Agent1.example", "zeus": "agent1",
        "zeus.corp.com.pem": "agent1.example.pem", "/etc/puppetlabs/puppet": "/etc/puppetlabs/puppet",
        "puppet://puppet.corp.com/modules": "puppet://master1.example/modules", "x@corp.com": "x@example",
        "*.corp.com": "*.example", "db.corp.com": "host1.example", "corp.com": "example", "lonely": "lonely",
        "lone:": "agent2:", "CN=Corp Root": "CN=Authority 1", "10.1.2.3/24, 10.1.2.3": "192.0.2.1/24, 192.0.2.1",
        "version 1.2.3": "version 1.2.3", "255.255.0.0 127.0.0.1 0.0.0.0": "255.255.0.0 127.0.0.1 0.0.0.0",
        "fe80::1 2a01:4f8::2": "2001:db8::1 2001:db8::2", "Foo::Bar a::b 12:30:45": "Foo::Bar a::b 12:30:45",
        "00:00:00:00:00:00": "00:00:00:00:00:00",
    }.items():  # fmt: skip
        assert names.text(before) == after
    mac = names.text("aa:bb:cc:00:11:22 AA:BB:CC:00:11:22")
    assert mac.split()[0].upper() == mac.split()[1]
    assert mac.startswith("02:")
    assert "aa:bb" not in mac


def test_hosts_elsewhere_at_the_same_site() -> None:
    names = Pseudonyms(b"salt")
    names.host("web7.ams.corp-name.com", "agent")
    for before, after in {
        "ldap.corp-name.com": "host1.example", "db1.fra.corp-name.com": "host2.example",
        "admin@corp-name.com": "admin@example", "web7.ams.corp-name.com": "agent1.example",
        "forge.puppet.com": "forge.puppet.com", "com": "com",
    }.items():  # fmt: skip
        assert names.text(before) == after
    names.host("a." * 40_000 + "b", "agent")


def test_a_name_is_found_between_whatever_stands_around_it() -> None:
    names = Pseudonyms(b"salt")
    for name in ("zeus.corp.com", "my_host.corp.com", "lone", "a" * 63 + ".corp.com"):
        names.host(name, "agent")
    names.digest("d41d8cd98f00b204e9800998ecf8427e", "0" * 32)
    for word in ("zeus", "ZEUS.corp.com", "my_host", "lone", "x.corp.com", "d41d8cd98f00b204e9800998ecf8427e"):
        for text in (
            "{}",
            "..{}..",
            "a_{}_b",
            "{}.pem",
            "-{}-",
            "a.{}",
            "a..{}",
            "\u212a{}\u212a",
            "é {}",
            "{}\0",
            "/x/{}/y",
        ):
            value = text.format(word)
            names.text(value)  # hosts are learned by looking
            assert names.text(value) == pseudonyms._TOKEN.sub(lambda found: names._token(found[0]), value)
    assert names.text("zeus.corp.com.pem ..LONE..") == "agent1.example.pem ..AGENT3.."


# -- the command ------------------------------------------------------------------------------------------------


def test_the_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = save(tmp_path / "own.sqlite", *conversation())
    status, out, _ = run("share", own)
    made = tmp_path / "own-shared.sqlite"
    assert (status, out.split()[0]) == (0, str(len(conversation())))
    assert made.stat().st_mode & 0o777 == 0o600

    def checked(path: Path) -> list[Any]:
        found = json.loads(run("check", path, "--json")[1])["findings"]
        return [(finding["rule"], finding["severity"], finding["seqs"]) for finding in found]

    assert checked(made) == checked(own) != []
    status, _, error = run("share", own)
    assert status == 2
    assert "already" in error
    status, out, _ = run("share", own, "-o", tmp_path / "x.sqlite", "--json")
    schema = json.loads((places.SCHEMAS / "share.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(made := json.loads(out))
    assert (status, made["records"]) == (0, len(conversation()))
    assert made["withheld"]["facts"] > 0
    opened = json.loads(run("share", own, "-o", tmp_path / "y.sqlite", "--json", "--with", "all")[1])
    assert set(opened["withheld"].values()) == {0}
    with Capture.open(tmp_path / "y.sqlite") as capture:
        assert "corp-name" not in text_of(capture.records())
    assert run("share", own, "-o", tmp_path / "z.sqlite", "--with", "x")[0] == 2
    assert not (tmp_path / "z.sqlite").exists()


def test_half_a_capture_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = save(tmp_path / "own.sqlite", *conversation())

    def fail(*_: Any) -> Any:
        raise RuntimeError("stopped")

    monkeypatch.setattr(Outgoing, "leaving", fail)
    with pytest.raises(RuntimeError):
        share.share(own, tmp_path / "out.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["own.sqlite"]


@pytest.mark.parametrize(
    ("of", "step"), [(Learner, "names"), (Learner, "secrets"), (Outgoing, "_learn_digests"), (Outgoing, "record")]
)
def test_a_gap_takes_the_place_of_a_record_that_cannot_be_masked(
    of: type, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = getattr(of, step)

    def fail(outgoing: Outgoing | Learner, record: Record) -> Any:
        if record.seq == 2:
            raise RuntimeError("poison")
        return work(outgoing, record)

    monkeypatch.setattr(of, step, fail)
    records = conversation()
    path = save(tmp_path / "own.sqlite", *records)
    other = shared(path)
    assert [record.seq for record in other] == [record.seq for record in records]
    assert isinstance(other[1], Gap)
    assert other[1].reason == "this record was not shared: masking it failed (RuntimeError)"
    chosen = exporting.Chosen.by(path)
    assert '"seq":2,' not in "".join(chosen.lines("jsonl"))
    assert list(chosen.unexported) == [2]


def test_a_capture_that_goes_on_from_another_is_shared_with_its_numbers(tmp_path: Path) -> None:
    own = tmp_path / "own.sqlite"
    with Capture.create(own, after=41) as capture:
        for record in talk(catalog(), report()):
            capture.append(record)
    assert [record.seq for record in shared(own)] == [42, 43]


def test_numbers_never_change(tmp_path: Path) -> None:
    own = save(tmp_path / "own.sqlite", *conversation())
    with contextlib.closing(sqlite3.connect(own)) as db, db:
        db.execute("DELETE FROM record WHERE seq = 2")
    with pytest.raises(InspectorError, match="Records before record 3"):
        share.share(own, tmp_path / "out.sqlite")
    assert not (tmp_path / "out.sqlite").exists()
