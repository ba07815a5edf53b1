"""Diagnoses of ``doctor``, and the checks that several of its modules share.

Nothing here reads a file or a clock: ``now`` is an argument, in seconds since the epoch.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import msgspec
from cryptography import x509 as cx509
from cryptography.x509.oid import ExtendedKeyUsageOID

from inspector.clocks import DAY, SKEW
from inspector.model import Severity
from inspector.protocol import x509
from inspector.protocol.pem import UNREADABLE
from inspector.protocol.signatures import signed_by
from inspector.rules import fixes
from inspector.rules.fixes import group, plain
from inspector.rules.puppet_commands import FixContext, fill
from inspector.rules.words import lasting, utc
from inspector.text import clean, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.protocol.ca_service import CaService
    from inspector.protocol.certificates import Certificate, RevocationList
    from inspector.rules.fixes import Fix

type Generation = Literal["legacy", "modern"]
"""Which commands apply: up to 6.3 and the Ruby CA (``puppet cert``), or 6.4 and later (``puppetserver ca``)."""

SOON = 30 * DAY
OF_TIME = frozenset({"B10", "B11", "B12", "B33", "B34", "B35"})
"""The rules about dates of certificates and CRLs: what they find depends on the clock."""
CLOCKS_RIGHT = "the clocks are right"
"""The condition of what is deleted because of a date."""

CA_FILES = ("ca_crt.pem", "ca_key.pem", "ca_crl.pem", "inventory.txt", "serial")
"""Files of which a CA service needs all or none (docs/protocol.md#the-directory-of-a-ca)."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A problem, or a fact worth knowing."""

    severity: Severity
    title: str
    """A few words."""
    detail: str
    """The facts: fingerprints, dates, paths relative to the directory that was examined."""
    steps: Fix = ()
    """What to do next."""
    rule: str | None = None
    """The rule that finds the same problem in traffic."""

    @property
    def fix(self) -> str:
        """What to do next, as one line of text."""
        return plain(self.steps)


def error(title: str, detail: str, fix: Fix = (), rule: str | None = None) -> Diagnosis:
    return Diagnosis(Severity.ERROR, clean(title), clean(detail), _cleaned(fix), rule)


def warning(title: str, detail: str, fix: Fix = (), rule: str | None = None) -> Diagnosis:
    return Diagnosis(Severity.WARNING, clean(title), clean(detail), _cleaned(fix), rule)


def notice(title: str, detail: str, fix: Fix = (), rule: str | None = None) -> Diagnosis:
    return Diagnosis(Severity.NOTICE, clean(title), clean(detail), _cleaned(fix), rule)


def _cleaned(fix: Fix) -> Fix:
    """Return a fix without control characters: names of files get into texts and commands."""
    return tuple(msgspec.structs.replace(step, text=clean(step.text), command=clean(step.command)) for step in fix)


def proved(diagnosis: Diagnosis) -> Diagnosis:
    """Return an agent's diagnosis whose fix ends with how to see that it worked."""
    return replace(diagnosis, steps=fixes.proved(diagnosis.steps)) if diagnosis.severity.rank > 1 else diagnosis


def worst_first(diagnoses: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Return the diagnoses without duplicates: errors, then warnings, then notices."""
    return sorted(dict.fromkeys(diagnoses), key=lambda diagnosis: -diagnosis.severity.rank)


def only_now(diagnoses: Sequence[Diagnosis], then: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the errors, and what is about dates, that another clock does not show."""
    # What is behind a comma may be how many days are left.
    stay = {(diagnosis.title, diagnosis.detail.partition(", ")[0]) for diagnosis in then}
    return [
        diagnosis
        for diagnosis in diagnoses
        if (diagnosis.severity is Severity.ERROR or diagnosis.rule in OF_TIME)
        and (diagnosis.title, diagnosis.detail.partition(", ")[0]) not in stay
    ]


def clocks_differ(now: float, time: float) -> bool:
    """Whether two clocks differ by more than agents tolerate."""
    return abs(time - now) > SKEW


def clocks_difference(now: float, time: float, follows: Sequence[Diagnosis], whose: str = "this host's") -> Diagnosis:
    """Return the diagnosis of clocks that differ: ``now`` is this host's, or whose clock it is, ``time`` the master's,
    and ``follows`` is wrong only by the first."""
    ahead = "ahead of" if time > now else "behind"
    detail = f"the master's clock is {lasting(abs(time - now))} {ahead} {whose}"
    fix = steps((group("clocks"),), None, "modern")
    if not follows:
        return warning("the clocks differ", detail, fix, "T10")
    only_here = ", ".join(dict.fromkeys(diagnosis.title for diagnosis in follows))
    times = f"{utc(now)} here, {utc(time)} there"
    return error("the clocks differ", f"{detail}; only by this host's clock: {only_here} ({times})", fix, "T10")


def doubted(diagnosis: Diagnosis) -> Diagnosis:
    """Return what one clock alone shows: before its fix deletes anything, the clocks are compared."""
    if diagnosis.rule not in OF_TIME or not any(step.destroys for step in diagnosis.steps):
        return diagnosis
    conditional = (
        msgspec.structs.replace(step, only_if=", and ".join(filter(None, (CLOCKS_RIGHT, step.only_if))))
        for step in diagnosis.steps
    )
    return replace(diagnosis, steps=(*steps((group("compare_clocks"),), None, "modern"), *conditional))


def steps(fix: Fix, certname: str | None, generation: Generation, ca_service: CaService | None = None) -> Fix:
    """Return a fix with its placeholders replaced by the commands of a generation, and of the CA's program.

    A command with a path is added afterwards: braces in the path are no placeholder.
    """
    name = shlex.quote(certname) if certname else None
    early = generation == "legacy"
    return fill(fix, FixContext(name, early_ca=early, early_node=early, renews=False, ca_service=ca_service))


def key_text(key: str | None) -> str:
    """Return a public key's digest, short enough to be compared by eye."""
    return f"key {key[:16]}…" if key else "no key"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Join names, at most ``most`` of them: ``a, b, c and 4 more``."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def fingerprints(authorities: Iterable[Certificate]) -> str:
    """Return the names of CAs with their fingerprints."""
    return listed([f"{authority.subject} ({authority.fingerprint})" for authority in authorities], 3)


def serves(certificate: bytes) -> bool:
    """Whether a certificate (DER) may be a server's: agents accept one without extended key usages, too."""
    try:
        usage = cx509.load_der_x509_certificate(certificate).extensions.get_extension_for_class(cx509.ExtendedKeyUsage)
    except UNREADABLE:
        return True
    return not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}.isdisjoint(usage.value)


def wrong_name(name: str, leaf: Certificate) -> str:
    """Return what an agent prints about a certificate that is not for the name of its master."""
    names = ", ".join(alt_name.partition(":")[2] for alt_name in leaf.alt_names) or leaf.subject
    return f"Server hostname '{name}' did not match server certificate; expected one of {names}"


def crl_problems(authorities: Iterable[Certificate], crls: Sequence[RevocationList], now: float) -> list[x509.Problem]:
    """Return what an agent that checks the whole chain refuses in its CRLs, CA by CA."""
    problems = []
    for authority in authorities:
        own = [crl for crl in crls if crl.issuer == authority.subject]
        # A renewed CA has the CRLs of its predecessor of the same name beside its own.
        keyed = [crl for crl in own if crl.authority_key_identifier in (None, authority.key_identifier)] or own
        crl = max(keyed, key=lambda crl: crl.last_update, default=None)
        code = 0
        if crl is None:
            code = 3
        elif signed_by(crl, authority) is False:
            code = 8
        elif crl.last_update > now + SKEW:
            code = 11
        elif crl.next_update is not None and crl.next_update < now:
            code = 12
        if code:
            problems.append(x509.Problem(code, 0, authority.subject, authority.subject))
    return problems


def verified(
    certificate: Certificate,
    others: Iterable[Certificate],
    authorities: Iterable[Certificate],
    crls: Sequence[RevocationList],
    now: float,
    revocation: x509.Revocation,
) -> list[x509.Problem]:
    """Return why an agent refuses a certificate.

    Like the agent it tolerates a CRL that begins up to SKEW seconds in the future.
    """
    chain = [certificate.der, *(other.der for other in others)]
    problems = x509.verify(
        chain, [authority.der for authority in authorities], [crl.der for crl in crls], now, revocation
    )
    future = {crl.issuer for crl in crls if crl.last_update > now + SKEW}
    return [problem for problem in problems if problem.code != 11 or problem.issuer in future]


def expiring(expiries: Iterable[tuple[str, float | None]], now: float, within: float = SOON) -> list[str]:
    """Return in words those of the names whose dates are less than ``within`` seconds ahead."""
    return [
        f"{name} expires on {utc_day(end)}, {_in_days(end - now)}"
        for name, end in expiries
        if end is not None and now <= end < now + within
    ]


def expiring_crls(lead: str, crls: Iterable[RevocationList], now: float) -> list[str]:
    """Return in words those CRLs that end soon: one with a short lifetime when a tenth of it is left.

    ``lead`` is written before the name of each one's CA.
    """
    words = []
    for crl in crls:
        lifetime = (crl.next_update or now) - crl.last_update
        words += expiring([(f"{lead} {crl.issuer}", crl.next_update)], now, min(SOON, lifetime / 10))
    return words


def _in_days(seconds: float) -> str:
    days = int(seconds // DAY)
    return "within a day" if days < 1 else "in a day" if days == 1 else f"in {days} days"
