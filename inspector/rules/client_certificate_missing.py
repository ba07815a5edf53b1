"""T03."""

from collections.abc import Iterator

from inspector.model import Phase, Severity, Visible
from inspector.rules import Case, On, rule
from inspector.runs.examples import catalog, report, talk

RUN = (Phase.NODE, Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.REPORT)


@rule(
    "T03",
    Severity.ERROR,
    On.EXCHANGE,
    refused=True,
    visible=Visible.WIRE,
    title="no client certificate where one is needed",
    remedy="Finish the bootstrap on the agent: `puppet ssl bootstrap` (up to 5: `puppet agent -t`). If something "
    "between agent and master ends TLS, it must hand the agent's identity on.",
    source="docs/protocol.md#default-rules; puppetserver 7.9.5 ezbake/config/conf.d/auth.conf",
    good=lambda: [talk(catalog(), report())],
    bad=lambda: [talk(catalog(status=403), report(status=403), certificate=False)],
)
def client_certificate_missing(case: Case) -> Iterator[str]:
    """Run requests are authorised by the certname of the client certificate. Without one the master answers
    403: the bootstrap was not finished, the tool that asks has no certificate, or something in between took it."""
    match = case.step.match
    if match and match.endpoint.phase in RUN and case.status in (401, 403) and not case.exchange.agent.peer_chain:
        yield f"{match.endpoint.name} was asked for without a client certificate and refused with {case.status}"
