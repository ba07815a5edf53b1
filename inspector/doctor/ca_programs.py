"""What is particular to a CA's program, as its directory shows it: the checks ask this, and know no program by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.doctor import findings
from inspector.protocol.ca_service import KEY_FILE, OPENVOX_CA
from inspector.rules.fixes import advice, on_ca
from inspector.rules.puppet_commands import OPENVOX_GROUPS

if TYPE_CHECKING:
    from inspector.doctor.findings import Diagnosis
    from inspector.protocol.ca_service import CaService
    from inspector.rules.fixes import Fix


@dataclass(frozen=True, slots=True, kw_only=True)
class CaProgram:
    """A CA's program. The values are those of puppetserver and of the CA in Ruby."""

    service: CaService | None = None
    unit: str = "puppetserver"
    """The service of the system."""
    user: str = "puppet"
    needed: tuple[str, ...] = findings.CA_FILES
    """The files without which it does not work."""
    key_file: str = KEY_FILE[None]
    password: str | None = "private/ca.pass"  # noqa: S105 - a file
    """The file with the password of an encrypted key; None: it is encrypted in a way of its own, and all that lies in
    private/ is secret."""
    mac: tuple[str, str] | None = None
    """The files with the HMAC of the inventory, and with its key."""
    incomplete: str = "; found: {found}. The CA service needs all or none of these files, and does not start"
    """What it does without some of the needed files."""
    restore: str = "restore the missing files from a backup"
    key_elsewhere: Fix = ()
    """How to find its key, if that may be in another place."""
    locked: Diagnosis = findings.error(  # noqa: RUF009 - it is frozen
        "the CA's key cannot be decrypted",
        "ca_key.pem is encrypted, and private/ca.pass is missing or holds a wrong password",
        (advice("restore private/ca.pass from a backup"),),
    )
    """About a key that cannot be decrypted here."""
    new_crl: Fix = (
        on_ca("see what would be written", "{crls}"),
        on_ca("write it", "{write_crls}"),
        advice("let that CA issue the CRL", only_if="the CRL is of an external CA"),
    )
    reply: str = "answers requests with: {name} already has a {state} certificate; ignoring certificate request"
    """What it does with the request of a node that has a certificate for another key."""
    replaces_revoked: bool = False
    """Whether it takes one if that certificate is revoked."""
    least_bits: int = 0
    """Of an RSA key that it signs."""
    signs_extensions: bool = False
    """Whether it signs requests for alternative names and authorizations, the latter without them."""


PUPPET = CaProgram()
OPENVOX = CaProgram(
    service=OPENVOX_CA,
    unit=OPENVOX_CA,
    user="puppet-ca",
    needed=("ca_crt.pem", "ca_crl.pem", "inventory.txt"),
    key_file=KEY_FILE[OPENVOX_CA],
    password=None,
    mac=(".inventory.hmac", "private/.inventory_hmac_key"),
    incomplete="; the CA does not start, or starts without what was in it",
    restore="stop the CA, and restore the missing files from a backup",
    key_elsewhere=(
        on_ca("see where its configuration has it", "grep -E 'ca_key_(file|provider)' /etc/puppet-ca/config.yaml"),
        advice("restore it from a backup", only_if="it is nowhere else"),
    ),
    locked=findings.notice("the CA's key is encrypted", f"{KEY_FILE[OPENVOX_CA]} was not compared with ca_crt.pem"),
    new_crl=(
        on_ca("see why it does not do that by itself", "journalctl -u openvox-ca | grep -i crl | tail"),
        *OPENVOX_GROUPS["renew_crl"][1:],
    ),
    reply="takes requests for this name, and gives this certificate",
    replaces_revoked=True,
    least_bits=2048,
    signs_extensions=True,
)
