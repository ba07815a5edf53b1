"""B36."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import Case, On, Said, rule
from inspector.rules.words import brief, major
from inspector.runs.examples import catalog, renewal, report, talk


@rule(
    "B36",
    Severity.WARNING,
    On.EXCHANGE,
    at=("renewal",),
    refused=True,
    otherwise="notice if the CA renews nothing (404, or 403 before 8)",
    visible=Visible.WIRE,
    title="renewal refused",
    remedy="A CA older than 8 can't renew: nothing to do before it is upgraded. 404: the CA's feature is off, "
    "`allow-auto-renewal: true` in its ca.conf. 400: something between agent and CA ends TLS and must hand the client "
    "certificate on. 403: the certificate is of another CA, or auth.conf does not allow "
    "/puppet-ca/v1/certificate_renewal. Else read the CA's log of that moment.",
    source="docs/protocol.md#endpoint-renewal; docs/protocol.md#renewal",
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [
        talk(renewal(status=404), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(renewal(status=403), catalog(), report(), version="8.10.0"),
        talk(renewal(status=403), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(renewal(status=400), catalog(), report(), version="8.10.0", master_version="8.10.0"),
    ],
    also=("S16",),
)
def renewal_refused(case: Case) -> Iterator[Said]:
    """The agent asked for a new certificate before its own ends, and did not get one. It goes on with the old one
    until that expires. A CA before 8 can't renew, and one that may not says 404: both are a site's choice."""
    status = case.status
    told = case.exchange.response.header("x-puppet-version") if case.exchange.response else None
    if status == 404:
        yield Said("the CA does not renew certificates (404): auto-renewal is off", severity=Severity.NOTICE)
    elif status == 403 and 0 < major(told or case.run.master_version) < 8:
        yield Said("the CA does not renew certificates (403): it is older than 8", severity=Severity.NOTICE)
    elif status == 400:
        yield Said("the CA refuses to renew (400): it did not see the agent's certificate")
    else:
        yield Said(brief(f"the CA refuses to renew ({status}): {case.answer or 'it gives no reason'}"))
