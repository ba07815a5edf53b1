"""S19."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import Case, On, rule
from inspector.runs.examples import asked, catalog, plugins, report, talk

GONE = {"environment": "7", "status": "7", "resource_type": "6", "run": "4"}
"""The master version that removed each endpoint."""


@rule(
    "S19",
    Severity.NOTICE,
    On.EXCHANGE,
    at=(*GONE, "certificate_status", "certificate_statuses"),
    visible=Visible.WIRE,
    title="a tool uses an endpoint that newer masters have removed",
    remedy="Update the tool before the master: /status/v1/simple reports whether a server is up, "
    "/puppet-ca/v1/certificate_statuses lists certificates (`puppetserver ca list --all`).",
    source="docs/protocol.md#removed-endpoints",
    good=lambda: [
        talk(plugins(), catalog(), asked("/status/v1/simple", b"running", run=False), report()),
        talk(plugins(), catalog(), asked("/puppet-ca/v1/certificate_statuses/any", []), report()),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), asked("status/node1.example", {"is_alive": True}), report()),
        talk(plugins(), catalog(), asked("/production/certificate_statuses/any", []), report()),
    ],
)
def deprecated_endpoint(case: Case) -> Iterator[str]:
    """A monitoring system, an orchestration tool or an old script requests something that newer masters have removed.
    It may still work now; after the master's next upgrade it will not."""
    match = case.step.match
    if match is None:
        return
    if case.endpoint in GONE:
        yield f"{case.endpoint} was asked for, which masters since {GONE[case.endpoint]} do not have"
    elif match.dialect == "legacy":
        yield f"{case.endpoint} was asked for by its URL of 2.7 and 3, which masters since 4 do not have"
