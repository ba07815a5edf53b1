"""``inspector.host.crls``: what becomes of each CRL of a cadir."""

from __future__ import annotations

import datetime
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from inspector.errors import InspectorError
from inspector.host import crls, pki
from inspector.protocol import x509 as ours

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
ROOT = pki.make_ca("Puppet Root CA", serial=1)
CA = pki.make_ca("Puppet CA", ROOT, serial=2)
STRANGER = pki.make_ca("Other CA")


def crl(
    authority: pki.Authority, *revoked: int, number: int = 9, starts: float = -2, ends: float = 100
) -> x509.CertificateRevocationList:
    """A CRL; its dates in days from now."""
    return pki.make_crl(authority, revoked, number, NOW + starts * DAY, NOW + ends * DAY)


EXPIRED, SOUND = crl(CA, 7, ends=-1), crl(CA, 7)
OF_ROOT = crl(ROOT, 3, number=4)


@dataclass
class Cadir:
    path: Path

    @property
    def file(self) -> Path:
        return self.path / "ca_crl.pem"

    def write(self, *entries: x509.CertificateRevocationList) -> None:
        self.file.write_bytes(pki.pem(*entries))

    def plan(self, *added: x509.CertificateRevocationList) -> crls.Plan:
        more = self.path / "more.pem" if added else None
        if more:
            more.write_bytes(pki.pem(*added))
        return crls.plan(self.path, NOW.timestamp(), more)

    def renew(self, *added: x509.CertificateRevocationList) -> crls.Plan:
        planned = self.plan(*added)
        copies = len(list(self.path.glob("*Z")))
        crls.write(planned, NOW.timestamp() + copies)  # a copy is never overwritten
        return planned

    def content(self) -> list[x509.CertificateRevocationList]:
        found = re.findall(rb"-----BEGIN.*?END X509 CRL-----\n", self.file.read_bytes(), re.DOTALL)
        return [x509.load_pem_x509_crl(pem) for pem in found]


@pytest.fixture
def cadir(tmp_path: Path) -> Cadir:
    """That of an intermediate CA whose CRL has expired; the root's key is elsewhere."""
    (tmp_path / "ca_key.pem").write_bytes(pki.key_pem(CA.key))
    (tmp_path / "ca_crt.pem").write_bytes(pki.pem(CA.certificate, ROOT.certificate))
    made = Cadir(tmp_path)
    made.write(EXPIRED, OF_ROOT)
    return made


def actions(planned: crls.Plan) -> list[tuple[str, str]]:
    return [(change.issuer, change.action) for change in planned.changes]


def number(entry: x509.CertificateRevocationList) -> int:
    return entry.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


def revoked(entry: x509.CertificateRevocationList) -> list[int]:
    return sorted(item.serial_number for item in entry)


def accepted(cadir: Cadir) -> bool:
    """Whether an agent that checks the whole chain accepts a certificate of this CA."""
    leaf = pki.sign(CA, pki.new_key().public_key(), "web1.example")
    chain = [item.public_bytes(serialization.Encoding.DER) for item in (leaf, CA.certificate)]
    authorities = [ours.der for ours in ours.read_certificates((cadir.path / "ca_crt.pem").read_bytes())]
    lists = [item.public_bytes(serialization.Encoding.DER) for item in cadir.content()]
    return ours.verify(chain, authorities, lists, NOW.timestamp()) == []


# -- signed anew ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mine", [EXPIRED, SOUND, crl(CA, 7, starts=400, ends=800)], ids=["expired", "valid", "future"])
def test_the_own_crl_is_signed_anew_with_its_entries(cadir: Cadir, mine: x509.CertificateRevocationList) -> None:
    cadir.write(mine, OF_ROOT)
    planned = cadir.renew()
    new, root = cadir.content()
    assert actions(planned) == [("CN=Puppet CA", "signed anew"), ("CN=Puppet Root CA", "unchanged")]
    assert (root, planned.lacking, planned.forgotten) == (OF_ROOT, (), ())
    assert (number(new), revoked(new)) == (10, [7])
    assert [list(entry.extensions) for entry in new] == [list(entry.extensions) for entry in mine]
    assert [entry.revocation_date_utc for entry in new] == [entry.revocation_date_utc for entry in mine]
    assert new.last_update_utc == NOW - datetime.timedelta(minutes=1)
    assert new.next_update_utc == new.last_update_utc + pki.LEAF_LIFETIME
    assert {extension.oid for extension in new.extensions} == {extension.oid for extension in mine.extensions}
    assert accepted(cadir)


def test_a_valid_crl_never_ends_earlier_than_before(cadir: Cadir) -> None:
    """A CA whose lists are valid for ten years, as puppetserver's can be."""
    cadir.write(long := crl(CA, 7, number=9, ends=3650), OF_ROOT)
    assert actions(cadir.renew()) == [("CN=Puppet CA", "unchanged"), ("CN=Puppet Root CA", "unchanged")]
    assert cadir.content()[0] == long
    cadir.write(long)
    assert cadir.renew(OF_ROOT).changes[1].action == "added", "the root's is added, and the CA's own stays"
    assert cadir.content()[0] == long
    cadir.write(long, crl(CA, 8, number=8), OF_ROOT)
    cadir.renew()
    assert revoked(cadir.content()[0]) == [7, 8]
    assert cadir.content()[0].next_update_utc == long.next_update_utc


def test_the_rest_of_the_file_its_place_and_its_mode_stay(cadir: Cadir) -> None:
    old = b"# first\n" + pki.pem(OF_ROOT, crl(STRANGER)) + b"# mine\n" + pki.pem(EXPIRED) + b"# last"
    cadir.file.write_bytes(old)
    cadir.file.chmod(0o604)
    planned = cadir.plan()
    assert cadir.file.read_bytes() == old
    copy = crls.write(planned, NOW.timestamp())
    assert cadir.file.read_bytes() == old.replace(pki.pem(EXPIRED), pki.pem(cadir.content()[2]))
    assert stat.S_IMODE(cadir.file.stat().st_mode) == 0o604
    assert copy
    assert re.fullmatch(r"ca_crl\.pem\.\d{8}T\d{6}Z", copy.name)
    assert copy.read_bytes() == old
    assert ("CN=Other CA", "unchanged") in actions(planned)


def test_the_planned_file_is_the_one_that_is_written(cadir: Cadir) -> None:
    assert cadir.renew().new == cadir.file.read_bytes()


def test_several_own_crls_become_one_with_all_their_entries(cadir: Cadir) -> None:
    cadir.write(crl(CA, 7, 8, number=3), OF_ROOT, crl(CA, 9, number=12))
    planned = cadir.renew()
    root, new = cadir.content()
    assert (root, number(new), revoked(new)) == (OF_ROOT, 13, [7, 8, 9])
    assert sorted(action for _, action in actions(planned)) == ["removed", "signed anew", "unchanged"]


def test_a_link_stays_one(cadir: Cadir, tmp_path: Path) -> None:
    target = cadir.file.rename(tmp_path / "shared.pem")
    cadir.file.symlink_to(target)
    assert cadir.renew().path == target
    assert cadir.file.is_symlink()
    assert number(cadir.content()[0]) == 10
    assert list(tmp_path.glob("shared.pem.*Z"))


def test_the_encrypted_key_of_a_ruby_ca(cadir: Cadir) -> None:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    encrypted = CA.key.private_bytes(serialization.Encoding.PEM, form, serialization.BestAvailableEncryption(b"secret"))
    (cadir.path / "ca_key.pem").write_bytes(encrypted)
    with pytest.raises(InspectorError, match=r"is encrypted, and private/ca\.pass has no password"):
        cadir.plan()
    (cadir.path / "private").mkdir()
    (cadir.path / "private/ca.pass").write_bytes(b"secret")
    cadir.renew()
    assert accepted(cadir)


def test_a_renewed_ca_is_one_ca(cadir: Cadir) -> None:
    again = pki.Authority(
        x509.CertificateBuilder(CA.certificate.issuer, CA.certificate.subject, CA.key.public_key(), 99,
                                NOW - DAY, NOW + DAY, list(CA.certificate.extensions))
        .sign(ROOT.key, hashes.SHA256()), CA.key)  # fmt: skip
    (cadir.path / "ca_crt.pem").write_bytes(pki.pem(again.certificate, CA.certificate, ROOT.certificate))
    assert actions(cadir.renew()) == [("CN=Puppet CA", "signed anew"), ("CN=Puppet Root CA", "unchanged")]


# -- missing ones ---------------------------------------------------------------------------------------


def test_of_a_ca_without_its_key_it_says_what_is_missing(cadir: Cadir) -> None:
    cadir.write(EXPIRED)
    planned = cadir.renew()
    assert actions(planned) == [("CN=Puppet CA", "signed anew"), ("CN=Puppet Root CA", "missing")]
    assert planned.lacking == ("CN=Puppet Root CA",)
    assert not accepted(cadir)


def test_the_roots_crl_is_signed_with_its_key_only_if_it_is_unusable(cadir: Cadir) -> None:
    (cadir.path / "root_key.pem").write_bytes(pki.key_pem(ROOT.key))
    assert actions(cadir.plan())[1] == ("CN=Puppet Root CA", "unchanged")
    cadir.write(EXPIRED, crl(ROOT, 3, number=4, ends=-1))
    cadir.renew()
    assert (number(cadir.content()[1]), revoked(cadir.content()[1])) == (5, [3])
    cadir.write(EXPIRED)
    planned = cadir.renew()
    assert actions(planned)[1] == ("CN=Puppet Root CA", "added")
    assert planned.forgotten == ("CN=Puppet Root CA",)
    assert accepted(cadir)


def test_an_added_crl_is_taken_from_a_file(cadir: Cadir) -> None:
    cadir.write(EXPIRED)
    planned = cadir.renew(crl(STRANGER), OF_ROOT)
    assert (planned.lacking, planned.forgotten) == ((), ())
    assert cadir.content()[1:] == [OF_ROOT]
    assert accepted(cadir)


@pytest.mark.parametrize(("theirs", "taken"), [(3, False), (5, True)])
def test_an_added_crl_counts_if_it_is_newer(cadir: Cadir, theirs: int, taken: bool) -> None:
    planned = cadir.renew(other := crl(ROOT, number=theirs))
    assert cadir.content()[1] == (other if taken else OF_ROOT)
    assert planned.changes[1].action == ("replaced" if taken else "unchanged")


def test_a_missing_own_crl_has_no_entries_unless_an_old_one_is_added(cadir: Cadir) -> None:
    cadir.write(OF_ROOT)
    assert cadir.plan().forgotten == ("CN=Puppet CA",)
    planned = cadir.renew(crl(CA, 7, 8, number=20, ends=-1))
    new, root = cadir.content()  # the CA takes the first one for its own
    assert (number(new), revoked(new), root, planned.forgotten) == (21, [7, 8], OF_ROOT, ())


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_a_missing_or_empty_file_is_written(cadir: Cadir, content: bytes | None) -> None:
    cadir.file.unlink()
    if content is not None:
        cadir.file.write_bytes(content)
    (cadir.path / "ca_crt.pem").chmod(0o640)
    planned = cadir.renew(EXPIRED, OF_ROOT)
    assert actions(planned) == [("CN=Puppet CA", "added"), ("CN=Puppet Root CA", "added")]
    assert accepted(cadir)
    assert content is not None or stat.S_IMODE(cadir.file.stat().st_mode) == 0o640


def test_a_crl_of_a_recreated_ca_of_the_same_name_is_removed(cadir: Cadir) -> None:
    cadir.write(crl(pki.make_ca("Puppet CA"), 7), OF_ROOT)
    planned = cadir.renew()
    assert sorted(actions(planned)) == [
        ("CN=Puppet CA", "added"), ("CN=Puppet CA", "removed"), ("CN=Puppet Root CA", "unchanged")
    ]  # fmt: skip
    assert [revoked(entry) for entry in cadir.content()] == [[], [3]]
    assert accepted(cadir)


def test_a_crl_with_an_invalid_signature_stays_where_nothing_replaces_it(cadir: Cadir) -> None:
    cadir.write(EXPIRED, crl(pki.make_ca("Puppet Root CA"), number=50))
    assert cadir.plan().lacking == ("CN=Puppet Root CA",)
    assert [c.state for c in cadir.plan().changes] == ["expired", None, "invalid signature"]
    assert len(cadir.plan().changes[2:]) == 1
    cadir.renew(OF_ROOT)
    assert accepted(cadir)


def test_without_a_key_crls_can_still_be_added(cadir: Cadir) -> None:
    (cadir.path / "ca_key.pem").unlink()
    with pytest.raises(InspectorError, match=r"has no ca_key\.pem"):
        cadir.plan()
    (cadir.path / "root_key.pem").write_bytes(pki.key_pem(ROOT.key))
    with pytest.raises(InspectorError, match=r"has no ca_key\.pem"):
        cadir.plan()
    cadir.renew(newer := crl(CA, 7, number=10))
    assert cadir.content() == [newer, OF_ROOT]


def test_what_is_no_ca_needs_no_crl(cadir: Cadir) -> None:
    leaf = pki.sign(CA, pki.new_key().public_key(), "web1.example")
    (cadir.path / "ca_crt.pem").write_bytes(pki.pem(CA.certificate, ROOT.certificate, leaf))
    assert cadir.renew().lacking == ()


# -- mistakes -------------------------------------------------------------------------------------------


def _remove(name: str) -> Callable[[Cadir], object]:
    return lambda cadir: (cadir.path / name).unlink()


def _fill(name: str, content: bytes) -> Callable[[Cadir], object]:
    return lambda cadir: (cadir.path / name).write_bytes(content)


def _link(name: str, target: str) -> Callable[[Cadir], object]:
    def link(cadir: Cadir) -> None:
        (cadir.path / name).unlink()
        (cadir.path / name).symlink_to(target)

    return link


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (_remove("ca_crt.pem"), "is not a cadir"),
        (_fill("ca_crt.pem", b"text"), "is not a CA bundle"),
        (_fill("ca_key.pem", b"text"), "cannot be read as a private key"),
        (_fill("ca_key.pem", pki.key_pem(STRANGER.key)), "is not the key of any CA in"),
        (_fill("ca_crl.pem", pki.pem(EXPIRED)[:-40]), "something that is not a complete CRL"),
        (_fill("ca_crl.pem", pki.pem(EXPIRED).replace(b"-----\nM", b"-----\nA")), "something that is not"),
        (_fill("ca_crl.pem", pki.pem(EXPIRED, CA.certificate)), "something that is not a complete CRL"),
        (_link("ca_crl.pem", "nowhere.pem"), "which does not exist"),
        (_link("ca_crl.pem", "ca_crl.pem"), "is a link to"),
        (_link("ca_crl.pem", "/dev/zero"), "is not a regular file"),
        (_link("ca_key.pem", "/dev/zero"), "is not a regular file"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_changes_nothing(
    cadir: Cadir, mistake: Callable[[Cadir], object], message: str
) -> None:
    mistake(cadir)
    with pytest.raises(InspectorError) as error:
        cadir.plan()
    assert message in error.value.message
    assert not list(cadir.path.glob("*Z"))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"text", "contains no usable CRL"), (pki.pem(crl(STRANGER)), "No CA in ca_crt.pem signed a CRL of"),
     (pki.pem(crl(pki.make_ca("Puppet Root CA"))), "No CA in ca_crt.pem signed a CRL of")],
    ids=["no CRL", "of a stranger", "of another CA of this name"],
)  # fmt: skip
def test_what_no_ca_of_the_bundle_signed_is_not_added(cadir: Cadir, content: bytes, message: str) -> None:
    (cadir.path / "more.pem").write_bytes(content)
    with pytest.raises(InspectorError, match=message):
        crls.plan(cadir.path, NOW.timestamp(), cadir.path / "more.pem")


def test_there_is_no_such_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "none/below"):
        with pytest.raises(InspectorError, match="There is no directory"):
            crls.plan(path, NOW.timestamp())


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user")
@pytest.mark.parametrize("name", ["ca_key.pem", "ca_crt.pem", "ca_crl.pem", "."])
def test_a_user_who_may_not_read_it_gets_a_hint(cadir: Cadir, name: str) -> None:
    for path in (cadir.path, *cadir.path.parents):
        path.chmod(path.stat().st_mode | 0o055)
    (cadir.path / name).chmod(0)
    os.seteuid(65534)
    try:
        with pytest.raises(InspectorError, match="cannot be read: Permission denied") as error:
            cadir.plan()
    finally:
        os.seteuid(0)
    assert error.value.hint == "Run this as root."


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user")
def test_a_user_who_may_not_see_an_openvox_cas_key_gets_a_hint(cadir: Cadir) -> None:
    for path in (cadir.path, *cadir.path.parents):
        path.chmod(path.stat().st_mode | 0o055)
    (cadir.path / "private").mkdir(mode=0o700)
    (cadir.path / "ca_key.pem").rename(cadir.path / "private/ca_key.pem")
    os.seteuid(65534)
    try:
        with pytest.raises(InspectorError, match=r"ca_key\.pem cannot be read: Permission denied"):
            cadir.plan()
    finally:
        os.seteuid(0)
    with pytest.raises(InspectorError, match="is that of an openvox-ca"):
        cadir.plan()


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user")
def test_a_user_who_cannot_keep_the_owner_changes_nothing(cadir: Cadir) -> None:
    for path in (cadir.path, *cadir.path.parents[:2]):
        path.chmod(0o777)
    planned, before = cadir.plan(), cadir.file.read_bytes()
    os.seteuid(65534)
    try:
        with pytest.raises(InspectorError, match=r"Operation not permitted\. It is unchanged"):
            crls.write(planned, NOW.timestamp())
    finally:
        os.seteuid(0)
    assert cadir.file.read_bytes() == before
    assert len(list(cadir.path.iterdir())) == 3
