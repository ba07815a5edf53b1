"""A running master as an agent meets it: connection, TLS, names and dates, CA and CRL, and the agent's certificate.

Only GETs are sent, never a signing request. All that comes back is hostile: it is bounded in size and time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from cryptography import x509 as cx509
from cryptography.x509.oid import ExtendedKeyUsageOID
from OpenSSL import SSL

from inspector.doctor import findings
from inspector.doctor.findings import SOON, ending, listed
from inspector.doctor.tls_client import LIMIT, Answer, Session, Target, Unreachable, talk
from inspector.errors import IdentityError
from inspector.model import Severity
from inspector.protocol import x509
from inspector.proxy import identity
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.protocol.certificates import Certificate, RevocationList

TIMEOUT = 10.0
"""Seconds for one connection with all that is asked on it."""
_OLD = {"TLSv1": SSL.TLS1_VERSION, "TLSv1.1": SSL.TLS1_1_VERSION}
_SKEW = 300.0
_PROTECTED = "/puppet/v3/environments"
"""Any agent with a certificate may read it, nobody without (docs/protocol.md#default-rules)."""
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})", re.IGNORECASE)


@dataclass(slots=True)
class _Probe:
    target: Target
    now: float
    authorities: tuple[Certificate, ...] = ()
    """What this host's agents trust; empty if that is not known."""
    crls: tuple[RevocationList, ...] = ()
    revocable: bool = False
    """A CRL of this host's was given."""
    found: list[Diagnosis] = field(default_factory=list)
    generation: Generation = "modern"


def probe(
    host: str,
    port: int,
    *,
    ca: Path | None = None,
    crl: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    name: str | None = None,
    now: float,
    timeout: float = TIMEOUT,
) -> list[Diagnosis]:
    """What agents of this host would say to a master, worst first.

    ``ca`` and ``crl`` are what they hold (without ``ca``: what a new agent would fetch), ``certificate`` and
    ``key`` an agent's; ``name`` is what they call the master, if not ``host``. ``timeout`` seconds are given
    to each of some six connections. Raises IdentityError if one of the files can't be used.
    """
    asked = _Probe(Target(host, port, name or host, timeout), now)
    if ca:
        asked.authorities = tuple(_read(ca, x509.read_certificates, "CA bundle"))
    if crl:
        asked.crls, asked.revocable = tuple(_read(crl, x509.read_crls, "CRL")), True
    lent = identity.load(certificate, key or certificate) if certificate else None
    try:
        session = talk(asked.target, "/puppet-ca/v1/certificate/ca")
    except Unreachable as error:
        return [_unreachable(error)]
    _protocols(asked, session)
    bundle: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    if session.answer:
        bundle, crls = _bundle(asked, session.answer), _revocation_lists(asked)
    elif session.trouble:
        asked.found.append(_unreachable(session.trouble))
    _chain(asked, session, bundle, crls)
    if lent and session.answer:
        _with_certificate(asked, lent, bundle, crls)
    found = findings.worst_first(asked.found)
    if not any(each.severity is Severity.ERROR for each in found):
        whom = "this host's agents" if asked.authorities else "new agents"
        found.append(findings.notice("accepted", f"{whom} would accept {host}:{port} as {asked.target.name}"))
    return found


# -- judging ------------------------------------------------------------------------------------------


def _protocols(asked: _Probe, session: Session) -> None:
    """What was negotiated, and whether something older than TLS 1.2 would be taken too."""
    version = session.answer.headers.get("x-puppet-version") if session.answer else None
    puppet = f"; Puppet {version}" if version else ""
    asked.found.append(findings.notice("TLS", f"{session.protocol}, {session.cipher}{puppet}"))
    remedy = "`ssl-protocols: [TLSv1.2, TLSv1.3]` in webserver.conf, then restart the master"
    if session.protocol in _OLD:
        detail = f"{session.protocol} is the newest it speaks; agents with OpenSSL 3 refuse that"
        asked.found.append(findings.error("no TLS 1.2", detail, remedy))
        return
    taken = []
    for protocol, number in _OLD.items():
        try:
            if talk(asked.target, None, only=number).protocol == protocol:
                taken.append(protocol)
        except Unreachable:
            continue
    if taken:
        asked.found.append(findings.warning("TLS below 1.2", f"it accepts {' and '.join(taken)}", remedy))


def _unreachable(error: Unreachable) -> Diagnosis:
    return findings.error(error.what, str(error), error.remedy)


def _bundle(asked: _Probe, answer: Answer) -> tuple[Certificate, ...]:
    """The CA bundle that it hands out, by today's path or by Puppet 3's."""
    if answer.status != 200 and (old := _old_master(asked)):
        answer, asked.generation = old, "legacy"
        asked.found.append(findings.notice("a master of Puppet 3", "it answers the legacy URLs only"))
    certificates = tuple(_parsed(asked, answer, "CA certificate", x509.read_certificates))
    if not certificates:
        return ()
    _clock(asked, answer)
    strays = [each.subject for each in certificates if not each.is_ca]
    if strays:
        asked.found.append(
            findings.error("its CA bundle holds what is no CA", listed(strays), "Mend ca_crt.pem on the CA")
        )
    subjects = {each.subject for each in certificates}
    if lacking := [each.issuer for each in certificates if each.issuer not in subjects]:
        detail = f"it lacks {listed(lacking)}"
        asked.found.append(
            findings.error("its CA bundle is incomplete", detail, "Put every CA up to the root into ca_crt.pem")
        )
    if asked.authorities:
        _compare(asked, certificates)
    return certificates


def _compare(asked: _Probe, served: Sequence[Certificate]) -> None:
    """Its CA bundle against what agents hold."""
    here, there = ({each.key for each in each_bundle} for each_bundle in (asked.authorities, served))
    if here.isdisjoint(there):
        detail = f"agents hold {_named(asked.authorities)}, it serves {_named(served)}"
        asked.found.append(
            findings.error(
                "another CA",
                detail,
                "Is this the right master? If the CA was made anew, on each agent: "
                + findings.advise("{enrol_ca}", None, asked.generation),
            )
        )
    elif {each.fingerprint for each in asked.authorities} != {each.fingerprint for each in served}:
        detail = f"agents hold {_named(asked.authorities)}, it serves {_named(served)}"
        asked.found.append(
            findings.notice("the CA bundles differ", detail, "Agents of 8.1 and later fetch the new one")
        )


def _named(authorities: Sequence[Certificate]) -> str:
    return listed([f"{each.subject} ({each.fingerprint})" for each in authorities], 3)


def _revocation_lists(asked: _Probe) -> tuple[RevocationList, ...]:
    path = "/puppet-ca/v1/certificate_revocation_list/ca"
    if asked.generation == "legacy":
        path = "/production/certificate_revocation_list/ca"
    answer = _ask(asked, path)
    if answer is None:
        return ()
    if asked.generation == "legacy" and answer.status == 403:
        return ()  # it wants a certificate for that
    return tuple(_parsed(asked, answer, "CRL", x509.read_crls))


def _chain(asked: _Probe, session: Session, bundle: Sequence[Certificate], served: Sequence[RevocationList]) -> None:
    """The master's certificate as agents judge it: with what they hold, and with what they would fetch."""
    try:
        presented = [x509.read_der(der) for der in session.chain]
    except x509.Malformed as error:
        asked.found.append(findings.error("unreadable certificate", str(error)))
        return
    if not presented:
        asked.found.append(findings.error("no certificate", "the master shows none in its TLS handshake"))
        return
    leaf, others = presented[0], presented[1:]
    if not x509.names_match(leaf, asked.target.name):
        names = ", ".join(each.partition(":")[2] for each in leaf.alt_names) or leaf.subject
        detail = f"Server hostname '{asked.target.name}' did not match server certificate; expected one of {names}"
        asked.found.append(
            findings.error(
                "wrong name",
                detail,
                "Use one of its names: `puppet config set server NAME --section main`, or reissue it with that name",
            )
        )
    if not _serves(leaf.der):
        asked.found.append(
            findings.error("not for servers", f"{leaf.subject} lacks the usage serverAuth", "Reissue it")
        )
    trusted = asked.authorities or bundle
    problems: list[x509.Problem] = []
    if asked.authorities:
        mode: x509.Revocation = "chain" if asked.revocable else "none"
        problems += findings.verified(leaf, others, trusted, asked.crls, asked.now, mode)
    if bundle:
        mode = "chain" if served else "none"
        problems += findings.verified(leaf, others, bundle, served, asked.now, mode)
        problems += findings.crl_problems(bundle, served, asked.now) if served else []
    if not trusted:
        problems += findings.verified(leaf, others, presented, (), asked.now, "none")
    asked.found += [_refused(each, asked.generation) for each in dict.fromkeys(problems)]
    ends = [(each.subject, each.not_after) for each in (leaf, *bundle)]
    ends += [(f"the CRL of {each.issuer}", each.next_update) for each in served if each.next_update]
    if soon := ending(ends, asked.now, SOON):
        asked.found.append(findings.warning("ends soon", "; ".join(dict.fromkeys(soon)), "Renew it on the CA"))


def _refused(problem: x509.Problem, generation: Generation) -> Diagnosis:
    what, remedy, rule = {
        3: ("the CRLs do not cover the chain", "Add that CA's CRL to ca_crl.pem on the CA", "B13"),
        8: ("bad signature of the CRL", "Restore ca_crl.pem on the CA", None),
        9: ("certificate not yet valid", "Compare the clocks of both hosts: `date -u`", None),
        10: (
            "certificate expired",
            "Reissue it on the CA: `puppetserver ca clean`, then `puppetserver ca generate`",
            None,
        ),
        11: ("CRL not yet valid", "Compare the clocks of both hosts: `date -u`", None),
        12: (
            "CRL expired",
            findings.advise("On the CA {new_crl}; agents before 8 must then drop their crl.pem", None, generation),
            "B10",
        ),
        23: ("the master's certificate is revoked", "Reissue it on the CA", None),
    }.get(
        problem.code,
        (
            "the master's certificate is of another CA",
            "Is this the right master? Compare `openssl x509 -noout -fingerprint -sha256 -in ca.pem` on both hosts",
            None,
        ),
    )
    return findings.error(what, str(problem), remedy, rule)


def _serves(der: bytes) -> bool:
    try:
        usage = cx509.load_der_x509_certificate(der).extensions.get_extension_for_class(cx509.ExtendedKeyUsage).value
    except (ValueError, cx509.ExtensionNotFound):
        return True
    return ExtendedKeyUsageOID.SERVER_AUTH in usage or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usage


def _clock(asked: _Probe, answer: Answer) -> None:
    try:
        told = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return
    if abs(told - asked.now) > _SKEW:
        ahead = "ahead of" if told > asked.now else "behind"
        detail = f"the master's clock is {wording.seconds(abs(told - asked.now))} {ahead} this host's"
        asked.found.append(findings.warning("the clocks differ", detail, "Synchronize both: `timedatectl`"))


def _with_certificate(
    asked: _Probe, lent: identity.Credentials, bundle: Sequence[Certificate], served: Sequence[RevocationList]
) -> None:
    """Whether the master lets an agent in; TLS 1.3 tells only with the first answer, and Java hardly why."""
    path = _PROTECTED if asked.generation == "modern" else "/production/certificate_revocation_list/ca"
    leaf = x509.certificate(lent.chain[0])
    who = f"{leaf.subject}, serial {leaf.serial:04X}, until {wording.utc(leaf.not_after)[:10]}"
    if bundle and (bad := findings.verified(leaf, (), bundle, served, asked.now, "leaf" if served else "none")):
        who += f" ({'; '.join(map(str, bad))})"
    remedy = findings.advise(
        "On the CA {list}; if it is revoked: {enrol}; if it is of another CA: {enrol_ca}",
        leaf.common_name,
        asked.generation,
    )
    try:
        session = talk(asked.target, path, lent)
        trouble, answer = session.trouble, session.answer
    except Unreachable as error:
        trouble, answer = error, None
    if answer is None:
        detail = f"{who}: {trouble}"
        asked.found.append(findings.error("the master refuses the agent's certificate", detail, remedy))
    elif answer.status in (401, 403):
        detail = f"{who}: {path} was answered {answer.status}, as to an agent without a certificate"
        asked.found.append(findings.error("the master does not take the agent's certificate", detail, remedy, "T03"))
    else:
        asked.found.append(findings.notice("the agent's certificate is taken", who))


# -- answers ------------------------------------------------------------------------------------------


def _read[T](path: Path, parse: Callable[[bytes], list[T]], what: str) -> list[T]:
    try:
        with path.open("rb") as file:
            return parse(file.read(LIMIT))
    except OSError as error:
        raise IdentityError(f"The {what} {path} can't be read: {error.strerror}.", "Run this as root.") from error
    except x509.Malformed as error:
        raise IdentityError(
            f"The {what} {path} can't be used: {error}.", "Without --live, `doctor --ssldir DIR` says more."
        ) from error


def _ask(asked: _Probe, path: str) -> Answer | None:
    """One GET; what prevents it is noted."""
    try:
        session = talk(asked.target, path)
    except Unreachable as error:
        asked.found.append(_unreachable(error))
        return None
    if session.trouble:
        asked.found.append(_unreachable(session.trouble))
    return session.answer


def _parsed[T](asked: _Probe, answer: Answer, what: str, parse: Callable[[bytes], list[T]]) -> list[T]:
    """The PEM of an answer; empty, with a diagnosis, if it is none."""
    if answer.status == 200:
        try:
            return parse(answer.body)
        except x509.Malformed:
            detail = (
                f"{answer.headers.get('content-type', 'no type')}, {wording.size(len(answer.body))}{_glimpse(answer)}"
            )
            asked.found.append(
                findings.error(
                    f"its {what} is no PEM",
                    detail,
                    "Something else than the master answers (a load balancer?): look at what listens there",
                )
            )
            return []
    said = f"{answer.status}{_glimpse(answer)}"
    if what == "CRL":
        detail, rule = f"{said}; agents of 6.4 and later stop here, older ones go on without revocation", "B08"
        remedy = "Look for ca_crl.pem on the CA; `puppet config set certificate_revocation false` only knowingly"
        asked.found.append(findings.error(f"no {what}", detail, remedy, rule))
    elif answer.status == 404:
        asked.found.append(
            findings.error(
                f"no {what}",
                f"{said}: it is no CA, or its CA service is off",
                "Name the CA: `puppet config set ca_server HOST --section main`",
            )
        )
    else:
        asked.found.append(findings.error(f"no {what}", said, "Look into the master's log and its auth.conf"))
    return []


def _glimpse(answer: Answer) -> str:
    """The beginning of a text that nobody asked for."""
    title = _TITLE.search(answer.body[:65536])
    text = (title[1] if title else answer.body[:100]).decode("utf-8", "replace").strip()
    return f" ({wording.clean(' '.join(text.split()))})" if text else ""


def _old_master(asked: _Probe) -> Answer | None:
    try:
        answer = talk(asked.target, "/production/certificate/ca").answer
    except Unreachable:
        return None
    return answer if answer and answer.status == 200 and b"-----BEGIN" in answer.body else None
