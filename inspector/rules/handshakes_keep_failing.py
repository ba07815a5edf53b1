from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate
from inspector.runs.history import agent_of

_AGENT = {
    "unknown_ca": "it trusts another CA, or has no CRL of one in the chain",
    "certificate_expired": "by its clock the certificate, its CA or its CRL has expired",
    "certificate_revoked": "its CRL names the certificate it is shown",
    "bad_certificate": "it calls the master by a name that the certificate lacks, or finds it not yet valid",
    "decrypt_error": "a signature does not fit, of the certificate or of its CRL",
    "protocol_version": "it has no TLS version in common with the proxy",
    "handshake_failure": "it has no cipher in common with the proxy",
}
_OTHERS = {
    "unknown_ca": "its certificate is of another CA",
    "certificate_expired": "its certificate has expired",
    "certificate_revoked": "its certificate is revoked",
    "certificate_unknown": "its certificate is revoked, the CRL of who refuses it has expired, or that one's clock is "
    "wrong",
    "protocol_version": "there is no TLS version in common",
    "handshake_failure": "there is no cipher in common",
    "certificate_required": "it shows no certificate",
}


@rule(
    "T09",
    Severity.ERROR,
    otherwise="notice if an agent's handshakes end without an alert",
    visible=Visible.HANDSHAKE,
    title="handshakes keep failing",
    fix=(
        on_node("check its certificates", "{verify}"),
        advice("give its sender the other side's CA, and a CRL of each CA of the chain",
               only_if="the alert is unknown_ca"),
        advice("renew the certificate or the CRL that has expired, or set the clock that is wrong",
               only_if="it is certificate_expired"),
        on_ca("look for the certificate among the revoked ones", "{list}", only_if="it is certificate_revoked"),
        advice("use a name for the master that is in its certificate", only_if="it is bad_certificate"),
        on_ca("look for each of these causes, as real masters (Java) send this alert for all of them", "{list}",
              only_if="it is certificate_unknown"),
        advice("see what is between them (a load balancer, a firewall), and read the master's log of that time",
               only_if="there is no alert"),
        on_master("see when its own CRL expires",
                  'openssl crl -noout -nextupdate -in "$(puppet config print hostcrl)"',
                  only_if="it is certificate_unknown"),
        on_master("compare its clock", "date -u", only_if="it is certificate_unknown"),
    ),
    source="docs/protocol.md#failed-handshakes; RFC 8446 section 6.2",
    good=lambda: [
        talk(refused("handshake_failure"), refused("handshake_failure")),
        talk(refused("protocol_version"), refused("protocol_version"), catalog(), report(), wait(1800),
             refused("protocol_version")),
    ],
    bad=lambda: [
        talk(*(refused("handshake_failure") for _ in range(3))),
        talk(*(part for _ in range(3) for part in (refused("protocol_version"), wait(1800)))),
        talk(*(refused("certificate_unknown", by="master", leg={"side": "master", "own_chain": carried(made())})
               for _ in range(3))),
        talk(*(refused("certificate_expired", by="master", leg={"side": "master", "own_chain": carried(made())})
               for _ in range(3))),
    ],
)  # fmt: skip
def handshakes_keep_failing(case: HandshakeCase, *, times: float = 3) -> Iterator[Statement]:
    """One agent's handshakes fail one after another, in one run or in several, and none succeeds in between: this is
    not a random network error. Failures without an alert are often a load balancer's health check or a port scanner,
    which only test whether the port is open."""
    handshake = case.handshake
    agent = agent_of(handshake, case.certname)
    series = case.ledger.refused(agent, handshake)
    if series.times < times:
        return
    name, by = brief(agent) or "an agent", handshake.alert_by or handshake.leg.side
    if handshake.alert is None:
        yield Statement(
            f"handshakes with {name} repeatedly end without an alert",
            series.seqs,
            severity=Severity.ERROR if handshake.leg.side == "master" else Severity.NOTICE,
            at=places.REFUSAL,
        )
        return
    cause = (_AGENT if by == "agent" else _OTHERS).get(handshake.alert)
    client = agent_certificate(handshake) if by != "agent" and handshake.alert == "certificate_expired" else None
    if client and client.not_before <= handshake.time <= client.not_after:
        cause = "but its certificate is valid: the CRL of who refuses it has expired, or that one's clock is wrong"
    yield Statement(
        f"the {by} keeps ending handshakes{f' with {name}' if by != 'agent' else f' ({name})'}: "
        f"{cut(handshake.alert)}{f', {cause}' if cause else ''}",
        series.seqs,
        at=places.REFUSAL,
    )
