from inspector.rules.kit import *


@rule(
    "S19",
    Severity.NOTICE,
    at=(Kind.REMOVED, Kind.CERTIFICATE_STATUS),
    title="a tool uses an endpoint that newer masters no longer have",
    fix=(
        advice(
            "update the tool before the master: /status/v1/simple reports whether a server is up, "
            "/puppet-ca/v1/certificate_statuses lists certificates"
        ),
        on_ca("list certificates with its own command", "{list}", only_if="that is what the tool is for"),
    ),
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
def deprecated_endpoint(case: ExchangeCase) -> Iterator[Statement]:
    """A monitoring system, an orchestration tool or an old script requests something that newer masters have removed.
    It may still work now; after the master's next upgrade it will not."""
    match = case.step.match
    if match is None:
        return
    if match.endpoint.removed:
        what = f"was requested, which masters since {match.endpoint.removed} do not have"
    elif match.dialect == "legacy":
        what = "was requested by its URL of 2.7 and 3, which masters since 4 do not have"
    else:
        return
    yield Statement(f"{case.endpoint} {what}", at=places.REQUEST_LINE)
