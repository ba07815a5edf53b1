"""Check a running master as an agent would: connection, TLS, names, dates, CA, CRL and the agent's certificate.

Sends GET requests only, never a signing request. Answers are untrusted: their size and time are limited.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from OpenSSL import SSL

from inspector import inputs
from inspector.doctor import clock_check, findings, product
from inspector.doctor.findings import SOON, expiring, fingerprints, listed, serves, wrong_name
from inspector.doctor.tls_client import LIMIT, HttpResponse, Session, Target, Unreachable, open_session
from inspector.errors import IdentityError
from inspector.model import Severity
from inspector.protocol import x509
from inspector.proxy import identity
from inspector.rules.fixes import advice, group, on_ca, on_master, on_node
from inspector.text import address, size, utc_day

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.protocol.ca_service import CaService
    from inspector.protocol.certificates import Certificate, RevocationList
    from inspector.rules.fixes import Fix

TIMEOUT = 10.0
"""Seconds for one connection with its request."""
_OLD = {"TLSv1": SSL.TLS1_VERSION, "TLSv1.1": SSL.TLS1_1_VERSION}
_CLOCKS = (group("compare_clocks"),)
_DATES = (9, 10)
"""OpenSSL's codes for a certificate that is not valid at this time: its chain need not be known."""
_NEW_CRL = (
    on_ca("sign it anew", "{new_crl}"),
    on_node("fetch it, on each agent before 8", "{new_crl_of_agent}", destroys="the old CRL"),
)
_FINGERPRINT = 'openssl x509 -noout -fingerprint -sha256 -in "$(puppet config print localcacert)"'
_COMPARE_CAS = (
    advice("check that this is the right master"),
    on_node("print the fingerprint of its CA", _FINGERPRINT),
    on_master("compare it with that of its CA", _FINGERPRINT),
)


@dataclass(slots=True)
class _Check:
    """The state of one check of a master."""

    target: Target
    now: float
    authorities: tuple[Certificate, ...] = ()
    """The CAs that this host's agents trust; empty if not known."""
    crls: tuple[RevocationList, ...] = ()
    revocable: bool = False
    """The caller passed a CRL of this host."""
    diagnoses: list[Diagnosis] = field(default_factory=list)
    generation: Generation = "modern"
    ca_service: CaService | None = None
    """The CA's program; None: one of Puppet's own, or it is not known."""
    authority: Target | None = None
    """The agents' CA, if it is on another host."""
    master_time: float | None = None
    """By the master's clock; None if it is this host's time."""

    @property
    def ca(self) -> Target:
        """Where the CA is."""
        return self.authority or self.target

    def steps(self, fix: Fix, certname: str | None = None) -> Fix:
        """Return a fix with the commands for this master and its CA."""
        return findings.steps(fix, certname, self.generation, self.ca_service)


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
    authority: tuple[str, int] | None = None,
    primary: tuple[str, int] | None = None,
) -> list[Diagnosis]:
    """Return whether a Puppet master answers, and then what agents of this host would find wrong with it, worst first.

    ``ca`` and ``crl`` are the agents' files (without ``ca``: those that a new agent would download). ``certificate``
    and ``key`` are an agent's. ``name`` is the agents' name for the master, if it is not ``host``. ``timeout`` is in
    seconds, for each of about six connections. ``authority`` is the server and the port of the agents' CA, if it is not
    the master; ``primary`` are those of their own master, whose CA is asked if this one has none.
    Raises IdentityError if one of the files cannot be used.
    """
    check = _Check(Target(host, port, name or host, timeout), now)
    if ca:
        check.authorities = tuple(_read(ca, x509.usable_certificates, "CA bundle"))
    if crl:
        check.crls, check.revocable = tuple(_read(crl, x509.usable_crls, "CRL")), True
    credentials = identity.load(certificate, key or certificate) if certificate else None
    try:
        session = open_session(check.target, "/puppet-ca/v1/certificate/ca")
    except Unreachable as error:
        return [product.unreachable(check.target, error)]
    _protocols(check, session)
    answer = session.answer
    time = clock_check.time_of(answer, host, now) if answer else None
    if time is not None and findings.clocks_differ(now, time):
        check.master_time = time
    bundle: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    if answer is None:
        first = product.unreachable(check.target, session.problem or Unreachable("no answer", "it answers nothing"))
    elif other := product.another_server(check.target, answer):
        first = other
    else:
        if authority and authority != (host, port):
            check.authority = Target(*authority, authority[0], timeout)
        first, bundle, crls = _of_authority(check, answer, primary)
    _by_both_clocks(check, session, bundle, crls)
    if time is None:
        check.diagnoses = [findings.doubted(diagnosis) for diagnosis in check.diagnoses]
    if credentials and answer and first.severity is not Severity.ERROR:
        _with_certificate(check, credentials, bundle, crls)
    diagnoses = [first, *findings.worst_first(check.diagnoses)]
    if (check.authorities or bundle) and all(diagnosis.severity is not Severity.ERROR for diagnosis in diagnoses):
        agents = "this host's agents" if check.authorities else "new agents"
        diagnoses.append(findings.notice("accepted", f"{agents} would accept {host}:{port} as {check.target.name}"))
    return diagnoses


# -- judging ------------------------------------------------------------------------------------------


def _of_authority(
    check: _Check, answer: HttpResponse, primary: tuple[str, int] | None
) -> tuple[Diagnosis, tuple[Certificate, ...], tuple[RevocationList, ...]]:
    """Return what answers, and what its CA serves, which may be on another host.

    ``answer`` is the master's to the request for the CA's certificate.
    """
    first = product.master(check.target, answer)
    if check.authority is not None:
        return first, *_of_ca_server(check, check.authority)
    if not product.without_ca(check.target, answer):
        check.ca_service = product.ca_service(check.target, answer)
        if check.ca_service:
            first = findings.notice("CA", f"{check.ca_service}, {address(check.target.host, check.target.port)}")
        return first, _bundle(check, answer), _revocation_lists(check)
    if primary and primary != (check.target.host, check.target.port):
        there = Target(*primary, primary[0], check.target.timeout)
        if product.has_ca(there):
            check.authority = there
            return first, *_of_ca_server(check, there)
    check.diagnoses.append(_no_ca_service(check))
    return first, (), ()


def _of_ca_server(check: _Check, server: Target) -> tuple[tuple[Certificate, ...], tuple[RevocationList, ...]]:
    """Return what a CA on another host serves."""
    where = address(server.host, server.port)
    try:
        session = open_session(server, "/puppet-ca/v1/certificate/ca")
        if session.answer is None:
            raise session.problem or Unreachable("no answer", "it answers nothing")
    except Unreachable as error:
        detail = f"no CA answers at {where}, the agents' ca_server: {error}"
        check.diagnoses.append(findings.error(error.title, detail, error.fix))
        return (), ()
    check.ca_service = product.ca_service(server, session.answer)
    check.diagnoses.append(findings.notice("CA", f"{check.ca_service or 'a Puppet master'}, {where}"))
    bundle, crls = _bundle(check, session.answer), _revocation_lists(check)
    # The agent verifies the CA's server as it does the master.
    there = replace(check, target=server, diagnoses=[])
    _by_both_clocks(there, session, bundle, crls)
    of_server = f"the CA's server {where}: "
    check.diagnoses += [replace(found, detail=of_server + found.detail) for found in there.diagnoses]
    return bundle, crls


def _no_ca_service(check: _Check) -> Diagnosis:
    """Return the diagnosis for a compiler: agents that have the CA and its CRL work with it, also when they cannot
    refresh them; others stop (observed with agents of 7.23 and 8.10)."""
    where = address(check.target.host, check.target.port)
    detail = f"{where} answers 404 to requests for the CA's certificate and CRL, as compilers do; agents that have both"
    if check.authorities:
        return findings.notice("no CA service", f"{detail} work with it")
    fix = on_node("set the CA's name", "puppet config set ca_server <name> --section agent",
                  only_if="it has no certificate yet")  # fmt: skip
    detail += " work with it, new ones stop. Its certificate cannot be verified: no CA is known here"
    return findings.warning("no CA service", detail, (fix,))


def _protocols(check: _Check, session: Session) -> None:
    """Report the negotiated TLS version, and whether the master accepts versions before 1.2."""
    version = session.answer.headers.get("x-puppet-version") if session.answer else None
    puppet = f"; Puppet {version}" if version else ""
    check.diagnoses.append(findings.notice("TLS", f"{session.protocol}, {session.cipher}{puppet}"))
    fix = (
        advice("set `ssl-protocols: [TLSv1.2, TLSv1.3]` in the master's webserver.conf"),
        on_master("restart it", "systemctl restart puppetserver"),
    )
    if session.protocol in _OLD:
        detail = f"{session.protocol} is the newest version of the master; agents with OpenSSL 3 refuse it"
        check.diagnoses.append(findings.error("no TLS 1.2", detail, fix))
        return
    accepted = []
    for protocol, number in _OLD.items():
        try:
            if open_session(check.target, None, only=number).protocol == protocol:
                accepted.append(protocol)
        except Unreachable:
            continue
    if accepted:
        check.diagnoses.append(findings.warning("TLS below 1.2", f"the master accepts {' and '.join(accepted)}", fix))


def _unreachable(error: Unreachable) -> Diagnosis:
    return findings.error(error.title, str(error), error.fix)


def _bundle(check: _Check, answer: HttpResponse) -> tuple[Certificate, ...]:
    """Download the master's CA bundle, from the current path or from that of Puppet 3."""
    if answer.status != 200 and (old := _old_master(check)):
        answer, check.generation = old, "legacy"
        check.diagnoses.append(findings.notice("a Puppet 3 master", "the master answers only the legacy URLs"))
    certificates = tuple(_parsed(check, answer, "CA certificate", x509.usable_certificates))
    if not certificates:
        return ()
    strays = [certificate.subject for certificate in certificates if not certificate.is_ca]
    if strays:
        fix = (advice("correct ca_crt.pem on the CA"),)
        check.diagnoses.append(
            findings.error("the CA bundle contains certificates that are not CAs", listed(strays), fix)
        )
    subjects = {certificate.subject for certificate in certificates}
    if missing := [certificate.issuer for certificate in certificates if certificate.issuer not in subjects]:
        detail = f"missing: {listed(missing)}"
        fix = (advice("put every CA up to the root into ca_crt.pem on the CA"),)
        check.diagnoses.append(findings.error("the CA bundle is incomplete", detail, fix))
    if check.authorities:
        _compare(check, certificates)
    return certificates


def _compare(check: _Check, served: Sequence[Certificate]) -> None:
    """Compare the master's CA bundle with the one that agents have."""
    if {authority.key for authority in check.authorities}.isdisjoint(authority.key for authority in served):
        detail = f"agents have {fingerprints(check.authorities)}, the master serves {fingerprints(served)}"
        fix: Fix = (
            advice("check that this is the right master"),
            group("enrol_ca", only_if="the CA was recreated; this is for each agent"),
        )
        check.diagnoses.append(findings.error("another CA", detail, check.steps(fix)))
    elif {certificate.fingerprint for certificate in check.authorities} != {
        certificate.fingerprint for certificate in served
    }:
        detail = f"agents have {fingerprints(check.authorities)}, the master serves {fingerprints(served)}"
        fix = (
            on_node(
                "fetch the new bundle, on each of them",
                "{trust_anew}",
                only_if="agents are older than 8.1, which downloads it by itself",
                destroys="the CA and the CRL that it has",
            ),
        )
        check.diagnoses.append(findings.notice("the CA bundles differ", detail, check.steps(fix)))


def _revocation_lists(check: _Check) -> tuple[RevocationList, ...]:
    path = "/puppet-ca/v1/certificate_revocation_list/ca"
    if check.generation == "legacy":
        path = "/production/certificate_revocation_list/ca"
    answer = _ask(check, path)
    if answer is None:
        return ()
    if check.generation == "legacy" and answer.status == 403:
        return ()  # Puppet 3 gives its CRL only to clients with a certificate
    return tuple(_parsed(check, answer, "CRL", x509.usable_crls))


def _chain(check: _Check, session: Session, bundle: Sequence[Certificate], served: Sequence[RevocationList]) -> None:
    """Verify the master's certificate with the files that agents have and with those that they would download."""
    try:
        presented = [x509.read_der(der) for der in session.chain]
        x509.check_usable(session.chain)
    except x509.Malformed as error:
        check.diagnoses.append(findings.error("unreadable certificate", str(error)))
        return
    if not presented:
        check.diagnoses.append(findings.error("no certificate", "the master presents none in the TLS handshake"))
        return
    leaf, others = presented[0], presented[1:]
    if not x509.names_match(leaf, check.target.name):
        setting = "ca_server" if check.target == check.authority else "server"
        fix = (
            on_node("use one of its names", f"puppet config set {setting} <name> --section agent"),
            advice("reissue the master's certificate with that name", only_if="agents must use the other name"),
        )
        check.diagnoses.append(findings.error("wrong name", wrong_name(check.target.name, leaf), fix))
    if not serves(leaf.der):
        detail = f"{leaf.subject} lacks the usage serverAuth"
        check.diagnoses.append(findings.error("not a server certificate", detail, (advice("reissue it"),)))
    trusted = check.authorities or bundle
    problems: list[x509.Problem] = []
    if check.authorities:
        mode: x509.Revocation = "chain" if check.revocable else "none"
        problems += findings.verified(leaf, others, trusted, check.crls, check.now, mode)
    if bundle:
        mode = "chain" if served else "none"
        problems += findings.verified(leaf, others, bundle, served, check.now, mode)
        problems += findings.crl_problems(bundle, served, check.now) if served else []
    if not trusted:
        alone = findings.verified(leaf, others, presented, (), check.now, "none")
        problems += [problem for problem in alone if problem.code in _DATES]
    check.diagnoses += [_refused(problem, check) for problem in dict.fromkeys(problems)]
    expiries = [(certificate.subject, certificate.not_after) for certificate in (leaf, *bundle)]
    soon = [*expiring(expiries, check.now, SOON), *findings.expiring_crls("the CRL of", served, check.now)]
    if soon:
        detail = "; ".join(dict.fromkeys(soon))
        check.diagnoses.append(findings.warning("expires soon", detail, (advice("renew it on the CA"),)))


def _refused(problem: x509.Problem, check: _Check) -> Diagnosis:
    renew = advice("renew the CA's certificate on the CA") if problem.depth else group("renew_master")
    by_code: dict[int, tuple[str, Fix, str | None]] = {
        3: ("the CRLs do not cover the chain", (group("missing_crl"),), "B13"),
        8: ("invalid signature on the CRL", (advice("restore ca_crl.pem on the CA"),), None),
        9: ("certificate not yet valid", _CLOCKS, "B35"),
        10: ("certificate expired", (renew,), "B33"),
        11: ("CRL not yet valid", _CLOCKS, "B12"),
        12: ("CRL expired", _NEW_CRL, "B10"),
        23: ("the master's certificate is revoked", (advice("reissue it on the CA"),), None),
    }
    title, fix, rule = by_code.get(problem.code, ("the master's certificate is from another CA", _COMPARE_CAS, None))
    return findings.error(title, str(problem), check.steps(fix), rule)


def _by_both_clocks(
    check: _Check, session: Session, bundle: Sequence[Certificate], served: Sequence[RevocationList]
) -> None:
    """Verify the master's certificate; errors only by this host's clock are reported as one of the clocks."""
    before, check.diagnoses = check.diagnoses, []
    _chain(check, session, bundle, served)
    by_host, check.diagnoses = check.diagnoses, before
    if check.master_time is None:
        check.diagnoses += by_host
        return
    then = replace(check, now=check.master_time, diagnoses=[])
    _chain(then, session, bundle, served)
    follows = findings.only_now(by_host, then.diagnoses)
    check.diagnoses.append(findings.clocks_difference(check.now, check.master_time, follows))
    check.diagnoses += [diagnosis for diagnosis in by_host if diagnosis not in follows]


def _with_certificate(
    check: _Check, credentials: identity.Credentials, bundle: Sequence[Certificate], served: Sequence[RevocationList]
) -> None:
    """Check whether the master accepts an agent's certificate.

    With TLS 1.3 a refusal shows only in the first answer, and Java gives hardly a reason.
    """
    path = product.PROTECTED if check.generation == "modern" else "/production/certificate_revocation_list/ca"
    leaf = x509.certificate(credentials.chain[0])
    if check.ca_service and check.authority is None:  # what only the node itself may ask for
        path = f"/puppet-ca/v1/certificate_request/{quote(leaf.common_name or '', safe='')}"
    identified = f"{leaf.subject}, serial number {leaf.serial:04X}, valid until {utc_day(leaf.not_after)}"
    mode: x509.Revocation = "leaf" if served else "none"
    there = check.now if check.master_time is None else check.master_time
    here, problems = (
        findings.verified(leaf, (), bundle, served, now, mode) if bundle else [] for now in (check.now, there)
    )
    if problems:
        identified += f" ({'; '.join(map(str, problems))})"
    judged = (
        on_ca("look for the certificate", "{list}"),
        group("enrol", only_if="it is revoked"),
        group("enrol_ca", only_if="it is from another CA"),
    )
    # What is wrong only by the master's clock is that clock's fault.
    fix = check.steps((group("clocks"),) if set(problems) - set(here) else judged, leaf.common_name)
    try:
        session = open_session(check.target, path, credentials)
        problem, answer = session.problem, session.answer
    except Unreachable as error:
        problem, answer = error, None
    if answer is None:
        detail = f"{identified}: {problem}"
        check.diagnoses.append(findings.error("the master refuses the agent's certificate", detail, fix))
    elif answer.status in (401, 403):
        detail = f"{identified}: the master answered {path} with {answer.status}, as without a certificate"
        check.diagnoses.append(findings.error("the master ignores the agent's certificate", detail, fix, "T03"))
    else:
        check.diagnoses.append(findings.notice("the agent's certificate is accepted", identified))


# -- answers ------------------------------------------------------------------------------------------


def _read[T](path: Path, parse: Callable[[bytes], list[T]], document: str) -> list[T]:
    try:
        with inputs.opened(path) as file:
            return parse(file.read(LIMIT))
    except OSError as error:
        raise IdentityError(f"The {document} {path} cannot be read: {error.strerror}.", "Run this as root.") from error
    except x509.Malformed as error:
        raise IdentityError(
            f"The {document} {path} cannot be used: {error}.", "`doctor --ssldir DIR` without --live shows the details."
        ) from error


def _ask(check: _Check, path: str) -> HttpResponse | None:
    """Send one GET request; add a diagnosis if it fails."""
    try:
        session = open_session(check.ca, path)
    except Unreachable as error:
        check.diagnoses.append(_unreachable(error))
        return None
    if session.problem:
        check.diagnoses.append(_unreachable(session.problem))
    return session.answer


def _parsed[T](check: _Check, answer: HttpResponse, document: str, parse: Callable[[bytes], list[T]]) -> list[T]:
    """Parse the PEM of an answer; return nothing and add a diagnosis if it is not PEM."""
    if answer.status == 200:
        try:
            return parse(answer.body)
        except x509.Malformed:
            detail = (
                f"{answer.headers.get('content-type', 'no type')}, {size(len(answer.body))}{product.excerpt(answer)}"
            )
            check.diagnoses.append(
                findings.error(
                    f"the {document} is not PEM",
                    detail,
                    (advice("check which server answers at this address: it is not a master (a load balancer?)"),),
                )
            )
            return []
    received = f"{answer.status}{product.excerpt(answer)}"
    if document == "CRL":
        detail, rule = (
            f"{received}; agents of 6.4 and later stop here, older ones continue without revocation checks",
            "B08",
        )
        fix: Fix = (
            advice("check ca_crl.pem on the CA"),
            on_node(
                "turn revocation checks off until then",
                "puppet config set certificate_revocation false",
                only_if="it cannot be corrected now",
            ),
        )
        check.diagnoses.append(findings.error(f"no {document}", detail, fix, rule))
    elif answer.status == 404:
        check.diagnoses.append(
            findings.error(
                f"no {document}",
                f"{received}: this host is not a CA, or its CA service is off",
                (on_node("set the CA's name", "puppet config set ca_server <name> --section agent"),),
            )
        )
    else:
        fix = (advice("check the master's log and its auth.conf"),)
        check.diagnoses.append(findings.error(f"no {document}", received, fix))
    return []


def _old_master(check: _Check) -> HttpResponse | None:
    try:
        answer = open_session(check.ca, product.OLD_CA).answer
    except Unreachable:
        return None
    return answer if answer and answer.status == 200 and b"-----BEGIN" in answer.body else None
