from inspector.rules.kit import *
from inspector.rules.puppet_commands import FORBIDDEN, SERVER_LOG
from inspector.rules.trust import without_identity

_AT = tuple(kind for kind in RUN if kind is not Kind.STATIC_CONTENT)  # that one has its own reasons: F09


@rule(
    "S02",
    Severity.ERROR,
    at=_AT,
    refused=True,
    otherwise="warning for the node request",
    title="refused although the agent presented its certificate",
    fix=(
        on_master(
            "read in its log which rule refused it",
            f"grep '{FORBIDDEN}' {SERVER_LOG} | tail",
            only_if="it is puppetserver",
        ),
        on_master(
            "see where that rule stands, and what to change", "puppet-inspector doctor <capture> --auth-conf <file>"
        ),
        on_master(
            "compare its auth.conf (`/etc/puppetlabs/puppetserver/conf.d/auth.conf`, up to version 3 "
            "`/etc/puppet/auth.conf`) with the defaults of its version"
        ),
        advice(
            "compare the name in the URL with the certificate's: catalog, node, facts and report may only be requested "
            "by the node of that name"
        ),
    ),
    source="docs/protocol.md#default-rules; docs/protocol.md#failures-in-a-run; "
    "puppetserver 7.9.5 ezbake/config/conf.d/auth.conf",
    without_catalog=("P01", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), metadata("modules/demo/a"), content("modules/demo/a"), report()),
        talk(plugins(), catalog(), metadata("modules/demo/a", status=404), report()),
    ],
    bad=lambda: [
        talk(plugins(), catalog(status=403), report(status=403, result="failed")),
        talk(node(status=403), plugins(), catalog(), report()),
    ],
)
def request_forbidden(case: ExchangeCase) -> Iterator[Statement]:
    """The master knows which node sends the request and does not allow it: auth.conf has a stricter rule, or the name
    in the request differs from the one in the certificate. Without catalog or plugins the run ends; if only the node
    request is refused, the run continues in the configured environment."""
    if case.status not in (401, 403) or not case.exchange.agent.peer_chain:
        return
    if without_identity(case.exchange):
        return  # the master saw no certificate: T23
    client = case.step.certname or "an unreadable certificate"
    severity = Severity.WARNING if case.kind is Kind.NODE else None
    yield Statement(
        f"{case.endpoint} was refused with {case.status}, requested with the certificate of {client}", severity=severity
    )
