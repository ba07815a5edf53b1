from inspector.rules.kit import *
from inspector.rules.trust import without_identity


@rule(
    "B36",
    Severity.WARNING,
    at=(Kind.RENEWAL,),
    refused=True,
    otherwise="notice if the CA does not renew certificates (404, or 403 before version 8) and the old one is valid "
    "for longer",
    title="renewal refused",
    fix=(
        on_ca("turn renewal on: `allow-auto-renewal: true` in the CA's ca.conf, then restart the server",
              only_if="it answered 404"),
        advice("let the device between agent and CA that terminates TLS pass on the client certificate",
               only_if="it answered 400"),
        on_ca("read its log of that time: the certificate is of another CA, or auth.conf does not allow "
              "/puppet-ca/v1/certificate_renewal", only_if="it answered 403 and is of version 8 or later"),
        group("enrol", only_if="the CA cannot renew, and the certificate is about to expire"),
    ),
    source="docs/protocol.md#endpoint-renewal; docs/protocol.md#renewal",
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [
        talk(renewal(status=404), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(
            *(
                altered(part, leg={"peer_chain": carried(made(starts=-1000 * DAY, ends=20 * DAY))})
                for part in (renewal(status=404), catalog(), report())
            ),
            version="8.10.0",
            master_version="8.10.0",
        ),
        talk(renewal(status=403), catalog(), report(), version="8.10.0"),
        talk(renewal(status=403), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(renewal(status=400), catalog(), report(), version="8.10.0", master_version="8.10.0"),
    ],
    also=("S16", "B34"),
)  # fmt: skip
def renewal_refused(case: ExchangeCase, *, days: float = 30) -> Iterator[Statement]:
    """The agent requested a new certificate before its own expires, and did not get one. It continues with the old one
    until that expires. A CA older than version 8 cannot renew, and a CA where renewal is disabled answers 404: both are
    the site's choice."""
    if case.exchange.withheld or without_identity(case.exchange):
        return  # the proxy is the reason: B49, T23
    status = case.status
    version = case.exchange.response.header("x-puppet-version") if case.exchange.response else None
    ending, severity = _ending(case, days), Severity.NOTICE
    if ending:
        severity = Severity.WARNING
    if status == 404:
        yield Statement(f"the CA does not renew certificates (404): auto-renewal is off{ending}", severity=severity)
    elif status == 403 and 0 < major(version or case.run.master_version) < 8:
        yield Statement(f"the CA does not renew certificates (403): it is older than 8{ending}", severity=severity)
    elif status == 400:
        yield Statement("the CA refuses to renew (400): it did not receive the agent's certificate")
    else:
        yield Statement(brief(f"the CA refuses to renew ({status}): {case.answer or 'no reason given'}"))


def _ending(case: ExchangeCase, days: float) -> str:
    """Return when the agent's certificate ends, if it is soon; else nothing. The agent itself logs no error."""
    client = case.step.client
    if client is None or client.not_after - case.exchange.time >= days * DAY:
        return ""
    return f", and the node's certificate expires on {utc(client.not_after)}"
