"""Certificates, CRLs and clocks for which an agent or a master refuses the other."""

from __future__ import annotations

import datetime
import re
import shutil
from typing import TYPE_CHECKING

from cryptography import x509

from inspector.host import pki
from tests.real.faults.engine import Fault
from tests.real.machine import host_names

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.faults.engine import Scene

DAY = datetime.timedelta(days=1)
CERTIFICATE, CRL, CLOCK, MASTER = "agent's certificate", "CRL", "clock", "master's certificate"


def _own(scene: Scene) -> tuple[x509.Certificate, Path]:
    path = scene.agent.ssldir / f"certs/{scene.certname}.pem"
    return x509.load_pem_x509_certificate(path.read_bytes()), path


def _revoked(scene: Scene) -> None:
    scene.master.revoke(scene.certname)


def _expired(scene: Scene) -> None:
    old, path = _own(scene)
    ended = pki.sign(
        pki.read_authority(scene.master.cadir), old.public_key(), scene.certname,
        serial=old.serial_number, not_before=datetime.datetime.now(datetime.UTC) - 9 * DAY, lifetime=8 * DAY,
    )  # fmt: skip
    path.write_bytes(pki.pem(ended))


def _ca_recreated(scene: Scene) -> None:
    """The agent has a certificate of the CA before, and trusts only that."""
    foreign = pki.make_ca("Puppet CA: puppet.old.example")
    old, path = _own(scene)
    path.write_bytes(pki.pem(pki.sign(foreign, old.public_key(), scene.certname)))
    (scene.agent.ssldir / "certs/ca.pem").write_bytes(pki.pem(foreign.certificate))
    (scene.agent.ssldir / "crl.pem").write_bytes(pki.pem(pki.make_crl(foreign)))


def _other_ca_trusted(scene: Scene) -> None:
    """Only the agent's ca.pem and CRL are another CA's; it has no certificate yet."""
    foreign = pki.make_ca("Puppet CA: puppet.old.example")
    (scene.agent.ssldir / "certs").mkdir(exist_ok=True)
    (scene.agent.ssldir / "certs/ca.pem").write_bytes(pki.pem(foreign.certificate))
    (scene.agent.ssldir / "crl.pem").write_bytes(pki.pem(pki.make_crl(foreign)))


def _foreign_certificate(scene: Scene) -> None:
    """The agent trusts both CAs, and its certificate is of the other one."""
    foreign = pki.make_ca("Puppet CA: puppet.elsewhere.example")
    old, path = _own(scene)
    path.write_bytes(pki.pem(pki.sign(foreign, old.public_key(), scene.certname)))
    for name, more in (("certs/ca.pem", foreign.certificate), ("crl.pem", pki.make_crl(foreign))):
        with (scene.agent.ssldir / name).open("ab") as file:
            file.write(pki.pem(more))
    scene.identity = f"mint:{scene.master.cadir}"


def _wrong_name(scene: Scene) -> None:
    names = host_names({"puppet.example": scene.address})
    names.__enter__()
    scene.later(names.__exit__, None, None, None)
    scene.configure(server="puppet.example")


def _wrong_name_in_main(scene: Scene) -> None:
    names = host_names({"puppet.example": scene.address})
    names.__enter__()
    scene.later(names.__exit__, None, None, None)
    conf = scene.agent.confdir / "puppet.conf"
    scene.edit(conf, re.sub(r"\[agent\]\nserver = \S+", "server = puppet.example\n[agent]", conf.read_text()))


# -- CRLs of the CA ---------------------------------------------------------------------------------------


def split(content: bytes) -> list[bytes]:
    """The CRLs of a file."""
    return re.findall(rb"-----BEGIN.*?END X509 CRL-----\n", content, re.DOTALL)


def _spoil(scene: Scene, **times: datetime.datetime) -> None:
    """Sign the CA's own CRL anew with these times; the agent has to download it, and the proxy has a sound one."""
    place, sound = scene.master.cadir / "ca_crl.pem", scene.directory / "sound.pem"
    shutil.copyfile(place, sound)
    scene.options["puppet_crl"] = sound
    authority = pki.read_authority(scene.master.cadir)
    own, *others = split(place.read_bytes())
    revoked = [entry.serial_number for entry in x509.load_pem_x509_crl(own)]
    spoilt = pki.make_crl(authority, revoked, number=99, **times)
    scene.edit(place, b"".join([pki.pem(spoilt), *others]))
    (scene.agent.ssldir / "crl.pem").unlink()


def _crl_expired(scene: Scene) -> None:
    now = datetime.datetime.now(datetime.UTC)
    _spoil(scene, last_update=now - 2 * DAY, next_update=now - DAY)


def _crl_of_the_future(scene: Scene) -> None:
    now = datetime.datetime.now(datetime.UTC)
    _spoil(scene, last_update=now + DAY, next_update=now + 99 * DAY)


def _crl_missing(scene: Scene) -> None:
    """The root's CRL is missing at the CA; the agent downloads CAs and CRLs."""
    place, sound = scene.master.cadir / "ca_crl.pem", scene.directory / "sound.pem"
    shutil.copyfile(place, sound)
    scene.options["puppet_crl"] = sound
    scene.edit(place, split(place.read_bytes())[0])
    (scene.agent.ssldir / "crl.pem").unlink()
    (scene.agent.ssldir / "certs/ca.pem").unlink()


def _agents_crl_expired(scene: Scene) -> None:
    """Only the agent's copy is too old: an agent before 8 never downloads it again by itself."""
    now = datetime.datetime.now(datetime.UTC)
    authority = pki.read_authority(scene.master.cadir)
    path = scene.agent.ssldir / "crl.pem"
    _, *others = split(path.read_bytes())
    old = pki.make_crl(authority, [], number=1, last_update=now - 9 * DAY, next_update=now - DAY)
    path.write_bytes(b"".join([pki.pem(old), *others]))


# -- clocks -----------------------------------------------------------------------------------------------


def _clock(scene: Scene, offset: str) -> None:
    path = scene.agent.base / "clock"
    path.write_text(offset)
    scene.later(path.unlink)


def _years_behind(scene: Scene) -> None:
    _clock(scene, "-3 years")


def _years_ahead(scene: Scene) -> None:
    _clock(scene, "+20 years")


def _masters_clock(scene: Scene, offset: str) -> None:
    master = scene.master

    def restart(clock: str) -> None:
        master.stop()
        master.clock = clock
        master.start()

    scene.later(restart, "")
    restart(offset)


def _master_ahead(scene: Scene) -> None:
    """A CA from version 8.4 on then signs its CRL anew, which has to be undone whatever comes of the fix."""
    place = scene.master.cadir / "ca_crl.pem"
    scene.at_the_end(scene.put, place, place.read_bytes())
    _masters_clock(scene, "+20y")


def _master_behind(scene: Scene) -> None:
    _masters_clock(scene, "-3y")


# -- the master's certificate ------------------------------------------------------------------------------


def _master_expired(scene: Scene) -> None:
    master = scene.master
    certificate = master.ssldir / f"certs/{master.name}.pem"
    sound = certificate.read_bytes()
    old = x509.load_pem_x509_certificate(sound)
    ended = pki.sign(
        pki.read_authority(master.cadir), old.public_key(), master.name, master.alt_names,
        serial=old.serial_number, not_before=datetime.datetime.now(datetime.UTC) - 9 * DAY, lifetime=8 * DAY,
        extensions=pki.puppet_extensions(old),
    )  # fmt: skip
    master.stop()
    for place in (certificate, master.cadir / f"signed/{master.name}.pem"):
        place.write_bytes(pki.pem(ended))
    master.start()

    def restore() -> None:
        now = datetime.datetime.now(datetime.UTC)
        if certificate.exists():
            current = x509.load_pem_x509_certificate(certificate.read_bytes())
            if current.not_valid_after_utc > now:
                return
        master.stop()  # the fix failed
        for place in (certificate, master.cadir / f"signed/{master.name}.pem"):
            place.write_bytes(sound)
        master.start()

    scene.later(restore)


FAULTS = (
    Fault(
        name="the agent's certificate is revoked", kind=CERTIFICATE, make=_revoked, agent="enrolled", cause="T05",
        true=("should continue to work",),
    ),
    Fault(
        name="the agent's certificate has expired", kind=CERTIFICATE, make=_expired, agent="enrolled",
        cause="certificate expired", looks=("ssldir",), true=("the clocks are right",),
    ),
    Fault(
        name="the agent's certificate is of another CA", kind=CERTIFICATE, make=_foreign_certificate,
        agent="enrolled", cause="T06", true=("the node moved here",),
    ),
    Fault(
        name="the CA was recreated", kind="CA", make=_ca_recreated, agent="enrolled",
        cause="T08", looks=("ssldir", "cadir"), true=("issued by the other CA",),
        fill=(("<certname>", "{name}"),),
        also=("the agent trusts another CA", "the CA has a certificate for another key"),
    ),
    Fault(
        name="autosigned, and its ca.pem is another CA's", kind="CA", make=_other_ca_trusted,
        cause="T08", agent="fresh", true=("only its CA", "the same"), looks=(),
    ),
    Fault(
        name="a name that the master's certificate lacks, in [agent]", kind="TLS", make=_wrong_name, cause="T07",
        fill=(("<name>", "{server}"),),
    ),
    Fault(
        name="a name that the master's certificate lacks, in [main]", kind="TLS", make=_wrong_name_in_main,
        cause="T07", fill=(("<name>", "{server}"),),
    ),
    Fault(name="the CA's CRL has expired", kind=CRL, make=_crl_expired, cause="B10"),
    Fault(name="only the agent's CRL has expired", kind=CRL, make=_agents_crl_expired, cause="B10",
          looks=("ssldir",), true=("the CA has issued a new one",)),
    Fault(name="the CA's CRL is of the future", kind=CRL, make=_crl_of_the_future, cause="B12",
          true=("that of the CA was ahead",)),
    Fault(name="the root's CRL is missing", kind=CRL, make=_crl_missing, cause="B13"),
    Fault(
        name="the agent's clock is three years behind", kind=CLOCK, make=_years_behind, cause="T10",
        looks=("ssldir", "live"), corrects="date -u", needs="faketime",
    ),
    Fault(
        name="the agent's clock is twenty years ahead", kind=CLOCK, make=_years_ahead, cause="T10",
        looks=("ssldir", "live"), corrects="date -u", needs="faketime",
    ),
    Fault(
        name="the master's clock is twenty years ahead", kind=CLOCK, make=_master_ahead, cause="T09", from_8="T10",
        looks=("live",), corrects="NTP", true=("CRL is not valid yet",), needs="faketime", restarts=True,
    ),
    Fault(
        name="the master's clock is three years behind", kind=CLOCK, make=_master_behind, cause="T09",
        or_else=("T28",),  # with TLS 1.3 the alert may come before or after the connection ended for mitmproxy
        looks=("live",), corrects="compare its clock: `date -u`", needs="faketime", restarts=True,
    ),
    Fault(name="the master's certificate has expired", kind=MASTER, make=_master_expired, restarts=True, cause="T08",
          true=("the clocks are right",)),
)  # fmt: skip
