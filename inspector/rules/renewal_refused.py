"""B36."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol.kinds import Kind
from inspector.rules import On, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.rules.words import brief, major
from inspector.runs.examples import catalog, renewal, report, talk


@rule(
    "B36",
    Severity.WARNING,
    On.EXCHANGE,
    at=(Kind.RENEWAL,),
    refused=True,
    otherwise="notice if the CA does not renew certificates (404, or 403 before version 8)",
    visible=Visible.WIRE,
    title="renewal refused",
    remedy="A CA older than version 8 cannot renew: there is nothing to do before it is upgraded. 404: renewal is "
    "disabled on the CA, `allow-auto-renewal: true` in its ca.conf. 400: a device between agent and CA terminates TLS "
    "and must pass on the client certificate. 403: the certificate was issued by another CA, or auth.conf does not "
    "allow /puppet-ca/v1/certificate_renewal. Otherwise read the CA's log of that time.",
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
def renewal_refused(case: ExchangeCase) -> Iterator[Statement]:
    """The agent requested a new certificate before its own expires, and did not get one. It continues with the old one
    until that expires. A CA older than version 8 cannot renew, and a CA where renewal is disabled answers 404: both are
    the site's choice."""
    status = case.status
    version = case.exchange.response.header("x-puppet-version") if case.exchange.response else None
    if status == 404:
        yield Statement("the CA does not renew certificates (404): auto-renewal is off", severity=Severity.NOTICE)
    elif status == 403 and 0 < major(version or case.run.master_version) < 8:
        yield Statement("the CA does not renew certificates (403): it is older than 8", severity=Severity.NOTICE)
    elif status == 400:
        yield Statement("the CA refuses to renew (400): it did not receive the agent's certificate")
    else:
        yield Statement(brief(f"the CA refuses to renew ({status}): {case.answer or 'no reason given'}"))
