from functools import lru_cache

from inspector.model import Handshake
from inspector.protocol import x509
from inspector.rules.clock_skew import clocks_first
from inspector.rules.kit import *
from inspector.rules.trust import bundle_of, crl_trouble, leaf
from inspector.runs.history import ObservedCrl

_EXPIRED = "The certificate 'CN=puppet.example' has expired, verify time is synchronized"
_OLD_CRL = "The CRL issued by 'CN=Puppet CA: puppet.example' has expired, verify time is synchronized"
_ALERTS = (
    "unknown_ca",
    "certificate_expired",
    "bad_certificate",
    "certificate_unknown",
    "unsupported_certificate",
    "decrypt_error",
)


_CLOCKS = on_proxy("compare its clock with those of the node, the master and the CA", "date -u")
_RIGHT = "the clocks are right"
_FIXES = {
    "the master's certificate": (_CLOCKS, group("renew_master", only_if=_RIGHT)),
    "the proxy's certificate": (
        _CLOCKS,
        on_proxy("give the proxy another certificate; this says how", "puppet-inspector provision", only_if=_RIGHT),
        group("renew_master", only_if=f"{_RIGHT}, and the proxy uses the master's own certificate"),
    ),
    "the CA's certificate": (
        _CLOCKS,
        on_ca("renew the CA's certificate", only_if=_RIGHT),
        on_node(
            "fetch the new one, on every node",
            "{trust_anew}",
            destroys="the CA and the CRL that it has",
            only_if=_RIGHT,
        ),
    ),
}
_WHICH_SERVER = advice(
    "see which server answers at the master's address; if it is another one, correct puppet_master, or with `run` "
    "`server` in puppet.conf"
)
_ON_THE_NODE = (
    on_node("check its clock", "date -u"),
    on_node("check its CA and its certificate", "{verify}"),
    on_node("fetch them anew", "{trust_anew}", destroys="the CA and the CRL that it has",
            only_if="only its CA or its CRL is old"),
    on_node("let it ask only for the CRL of the CA that signs: it reads no more than the first of its file",
            "puppet config set certificate_revocation leaf --section main",
            only_if="it runs Puppet 5 or older, and the CA has a root and an intermediate certificate"),
    group("enrol_ca", only_if="the node's own certificate was issued by the other CA, too"),
    group("renew_master", only_if="the clocks are right, and the master's own certificate has expired"),
)  # fmt: skip
_OF_THE_PROXY = (
    _WHICH_SERVER,
    on_proxy(
        "give the proxy the CA and the CRLs that the master has now (puppet_ca, puppet_crl); this says how",
        "puppet-inspector provision",
        only_if="it is the right one",
    ),
)  # fmt: skip


def _expired(handshake: Handshake) -> tuple[str, d.Certificate] | None:
    """Return which certificate of the refused chain has expired, and whose it is; None if none has."""
    leg = handshake.leg
    master = leg.side == "master"
    if handshake.alert_by == ("master" if master else "proxy") or (master and not handshake.culprits):
        return None
    for place, der in enumerate(leg.peer_chain if master else leg.own_chain):
        certificate = leaf([der])
        if certificate and certificate.not_after < handshake.time:
            owner = "the CA's" if place else "the master's" if master or leg.tunnelled else "the proxy's"
            return f"{owner} certificate", certificate
    return None


def _fix_of_refusal(run: Run) -> Fix | None:
    """Return the fix for a run whose last refused handshake was refused by the proxy, or because a certificate had
    expired; None for another one."""
    if first := clocks_first(run):
        return first
    for handshake in reversed(run.handshakes):
        if found := _expired(handshake):
            return _FIXES[found[0]]
        if handshake.leg.tunnelled:
            return (_WHICH_SERVER, *_ON_THE_NODE)
        if handshake.leg.side == "master" and handshake.culprits and handshake.alert_by != "master":
            return _OF_THE_PROXY
    return None


@rule(
    "T08",
    Severity.ERROR,
    visible=Visible.HANDSHAKE,
    title="the agent refuses the certificate presented to it",
    fix=_ON_THE_NODE,
    instead=_fix_of_refusal,
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb; "
    "RFC 8446 section 6.2",
    explains=("T09",),
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
        talk(refused(None, by=None, reason="the agent left")),
    ],
    bad=lambda: [
        talk(refused("unknown_ca")),
        talk(refused("certificate_expired")),
        talk(refused("certificate_expired", leg={"own_chain": carried(made(MASTER, ends=-60))})),
        talk(ca(), crl(), refused("unknown_ca", leg={"own_chain": carried(made(MASTER, foreign=True))})),
        talk(refused("bad_certificate")),
        talk(refused("certificate_expired", reason=_OLD_CRL, culprits=(_OLD_CRL,),
                     leg={"own_chain": carried(made(MASTER)), "tunnelled": True})),
        talk(refused(None, by="proxy", reason=_EXPIRED, culprits=(_EXPIRED,),
                     leg={"side": "master", "peer_chain": carried(made(MASTER, ends=-60)), "own_chain": ()})),
    ],
)  # fmt: skip
def server_certificate_refused(case: HandshakeCase) -> Iterator[Statement]:
    """The agent ended the handshake because it does not trust the certificate presented as the master's: its chain ends
    at a CA that the agent does not have, or it has expired. With an expired or missing CRL the agent sends the same
    alerts. Agents up to version 5 keep only the first certificate of a CA bundle. Through this proxy, the agent sees
    the proxy's certificate."""
    handshake = case.handshake
    if handshake.leg.side == "master":
        culprit = next((problem for problem in handshake.culprits if "is revoked" not in problem), None)
        if culprit and handshake.alert_by != "master":
            if expired := _expired(handshake):
                yield _has_expired(*expired, "the proxy refuses the master")
                return
            yield Statement(brief(f"the proxy refuses the master: {culprit}"))
        return
    if handshake.alert_by != "agent" or handshake.alert not in _ALERTS:
        return
    server, sni = leaf(handshake.leg.own_chain), handshake.leg.sni
    if server is None:
        yield Statement(f"the agent refuses the certificate presented to it ({handshake.alert})", at=places.REFUSAL)
        return
    certificate = f"the certificate presented to it, {server.subject},"
    if expired := _expired(handshake):
        yield _has_expired(*expired, "the agent refuses it")
        return
    if server.not_before > handshake.time:
        yield Statement(
            brief(f"{certificate} is not valid before {utc(server.not_before)}"), at=places.tls(utc(server.not_before))
        )
        return
    if handshake.leg.tunnelled and (culprit := next((each for each in handshake.culprits if "CRL" in each), None)):
        yield Statement(brief(f"the agent refuses the master: {culprit}"), at=places.REFUSAL)
        return
    bundle = bundle_of(case.run)
    problem = (
        _problem(handshake.leg.own_chain, tuple(certificate.der for certificate in bundle), handshake.time)
        if bundle
        else None
    )
    if problem:
        seq = max(ca_answer.seq for ca_answer in case.run.cas if ca_answer.items)
        yield Statement(
            brief(f"{certificate} does not match the CA it downloaded: {problem}"),
            (seq, handshake.seq),
            at=(places.REFUSAL, places.certificate("signed by")),
        )
        return
    if crl_trouble(case.run, handshake.time) or (
        sni and handshake.alert in ("bad_certificate", "certificate_unknown") and not x509.names_match(server, sni)
    ):
        return  # B10 to B14, or T07
    yield _by_alert(case, handshake, server, certificate)


def _has_expired(whose: str, certificate: d.Certificate, refusal: str) -> Statement:
    date = utc(certificate.not_after)
    return Statement(brief(f"{whose}, {certificate.subject}, expired on {date}: {refusal}"), at=places.tls(date))


def _by_alert(case: HandshakeCase, handshake: Handshake, server: d.Certificate, certificate: str) -> Statement:
    old = _expired_list(case, server.issuer, handshake.time)
    if old and handshake.alert == "certificate_expired":
        expiry = f"the last CRL issued by '{old.issuer}' expired on {utc(old.next_update or 0)}"
        return Statement(
            brief(f"the agent refuses every certificate: {expiry}"),
            (old.seq, handshake.seq),
            at=(places.REFUSAL, places.crl(utc(old.next_update or 0))),
        )
    match handshake.alert:
        case "unknown_ca":
            words = f"the agent does not know the CA '{server.issuer}' of {certificate} or has no CRL of it"
        case "certificate_expired":
            words = (
                f"the agent regards {certificate} as expired, but it is valid until {utc(server.not_after)}: "
                "its clock is wrong, or its CRL has expired"
            )
        case "bad_certificate":
            words = (
                f"the agent refuses {certificate} (bad_certificate): the agent used another name, or by its clock "
                "the certificate is not yet valid"
            )
        case _:
            words = f"the agent refuses {certificate} ({handshake.alert})"
    return Statement(brief(words), at=places.tls("presented to the agent"))


def _expired_list(case: HandshakeCase, issuer: str, at: float) -> ObservedCrl | None:
    """The expired CRL of a CA, or of another CA in the same bundle: the agent has no newer one."""
    bundles = [{certificate.subject for certificate in bundle.certificates} for bundle in case.ledger.bundles.values()]
    names = {issuer}.union(*(names for names in bundles if issuer in names))
    crls = (crl for crl in case.ledger.crls.values() if crl.issuer in names)
    return next((crl for crl in crls if crl.next_update and crl.next_update < at), None)


@lru_cache(maxsize=256)
def _problem(chain: tuple[bytes, ...], trusted: tuple[bytes, ...], time: float) -> str | None:
    try:
        problems = x509.verify(chain, trusted, [], time, "none")
    except x509.Malformed:
        return None
    return str(problems[0]) if problems else None
