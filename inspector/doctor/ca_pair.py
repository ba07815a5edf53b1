"""Two CAs, of which NEW is to take the place of OLD: what several comparisons need of both, and commands for them."""

from __future__ import annotations

import datetime
import functools
import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from inspector.doctor import findings
from inspector.doctor.ca_judge import REVOKED, Judge
from inspector.doctor.ca_programs import OPENVOX, PUPPET
from inspector.rules.fixes import on_ca

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inspector.doctor.ca_view import CaView
    from inspector.rules.fixes import Fix, Step

EACH = 3
"""Files, or numbers, that a command names one by one."""


class Ident(NamedTuple):
    """Whose certificate has a serial number."""

    name: str
    fingerprint: str
    """That of the certificate; empty if it is in the inventory only."""
    issued: str
    """The beginning of its validity as the inventory has it, without the zone; empty if it is not in it."""

    def is_not(self, other: Ident) -> bool:
        """Whether the two are certainly not one certificate."""
        pairs = (self.fingerprint, other.fingerprint), (self.issued, other.issued)
        return self.name != other.name or any(ours and theirs and ours != theirs for ours, theirs in pairs)


class Pair:
    """The two CAs, and what several comparisons need of them."""

    def __init__(self, old: CaView, new: CaView, now: float) -> None:
        self.old, self.new, self.now = old, new, now
        self.program = new.directory.program if new.directory else PUPPET
        by_key: dict[str, set[str]] = defaultdict(set)
        for authority in (*old.authorities, *new.authorities):
            by_key[authority.key].add(authority.fingerprint)
        each = any(len(several) > 1 for several in by_key.values())
        self.by_old, self.by_new = Judge(old, now, each=each), Judge(new, now, each=each)

    @functools.cached_property
    def same_key(self) -> bool:
        """Whether both sign with one key."""
        old, new = self.old.signing, self.new.signing
        return old is not None and new is not None and old.key == new.key

    @property
    def openvox(self) -> bool:
        """Whether NEW is an openvox-ca: its numbers are random, and it takes no changes to its files."""
        return self.program is OPENVOX

    @property
    def stop(self) -> Step:
        return on_ca("stop NEW", f"systemctl stop {self.program.unit}")

    @property
    def start(self) -> Step:
        return on_ca("start NEW", f"systemctl start {self.program.unit}")

    @functools.cached_property
    def names(self) -> Mapping[int, str]:
        """The holders of serial numbers, by the records of both."""
        return {serial: ident.name for serial, ident in (self.given(self.new) | self.given(self.old)).items()}

    def given(self, view: CaView) -> dict[int, Ident]:
        """Return the serial numbers that a CA has given, with their holders."""
        signing = view.signing
        found = {entry.serial: Ident(entry.name, "", entry.not_before[:19]) for entry in view.inventory}
        for name, one in view.certificates.items():
            if signing and one.issuer == signing.subject:
                listed_as = found.get(one.serial)
                holder = one.common_name or name
                issued = listed_as.issued if listed_as and listed_as.name == holder else ""
                found[one.serial] = Ident(holder, one.fingerprint, issued)
        return found

    def replaced(self, name: str) -> bool:
        """Whether NEW has revoked a node's certificate of OLD, and has another one that it accepts."""
        old, new = self.old.certificates.get(name), self.new.certificates.get(name)
        if old is None or new is None or new.fingerprint == old.fingerprint:
            return False
        return self.by_new.refusal(old) == REVOKED and not self.by_new.refusal(new)

    def steps(self, *fix: Step, certname: str | None = None) -> Fix:
        """Return a fix with the commands for NEW."""
        if self.new.directory is not None:
            return self.new.directory.steps(*fix, certname=certname)
        return findings.steps(fix, certname, "modern")

    def of_old(self, *names: str) -> str:
        """Return paths below OLD's directory, for a command."""
        return _paths(self.old, "<directory of OLD>", names)

    def of_new(self, *names: str) -> str:
        """Return paths below NEW's directory, for a command."""
        return _paths(self.new, "<directory of NEW>", names)

    def joined(self, serials: Sequence[int]) -> Fix:
        """Return how NEW revokes what OLD has revoked, too."""
        if self.openvox:
            each = [f"{serial:X}" for serial in serials] if len(serials) <= EACH else ["<serial number>"]
            return tuple(on_ca("revoke it", f"openvox-ca-ctl revoke --serial {number} --force") for number in each)
        command = f"puppet-inspector fix new-crl --cadir {self.of_new('.')} --add {self.of_old('ca_crl.pem')}"
        return (
            on_ca("see what NEW's CRL would be with OLD's entries", command),
            on_ca("write it", f"{command} --execute"),
        )

    def copied(self, names: Sequence[str]) -> Fix:
        """Return how NEW gets to know nodes of OLD."""
        few = len(names) <= EACH
        which = self.of_old(*(f"signed/{name}.pem" for name in names)) if few else f"{self.of_old('signed')}/*.pem"
        command = f"cp -np {which} {self.of_new('signed')}/"
        if self.openvox:
            command = (
                f'for file in {which}; do openvox-ca-ctl import-cert --certname "$(basename "$file" .pem)" '
                f'--cert-file "$file"; done'
            )
        return (on_ca("copy what NEW does not have", command, only_if="nobody removed them from NEW on purpose"),)


def _paths(view: CaView, blank: str, names: Sequence[str]) -> str:
    if view.directory is None:
        return " ".join(blank if name == "." else f"{blank}/{shlex.quote(name)}" for name in names)
    return " ".join(view.directory.path(name) for name in names)


def second(time: float) -> str:
    """Return a time as an inventory has it."""
    try:
        return f"{datetime.datetime.fromtimestamp(time, datetime.UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""
