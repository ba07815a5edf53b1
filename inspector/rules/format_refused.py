from inspector.rules.kit import *

_SENT = {415: "Content-Type", 406: "Accept", 400: "Accept"}


@rule(
    "S04",
    Severity.WARNING,
    at=(*RUN, *BOOTSTRAP),
    refused=True,
    title="format not supported by the master",
    fix=(
        on_node(
            "see its format: json, from version 8 on nothing else",
            "puppet config print preferred_serialization_format --section agent",
        ),
        advice("find out what changes the headers Accept and Content-Type between agent and master"),
    ),
    source="docs/protocol.md#refused-formats",
    explains=("P03",),
    without_catalog=NO_CATALOG,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(), report(status=415)),
        talk(plugins(status=406), catalog(status=406), report(status=406, result="failed")),
    ],
)
def format_refused(case: ExchangeCase) -> Iterator[Statement]:
    """The agent sent a body in a format that the master does not read (415), or requested a format that it does not
    write (406). Something in between changed the headers, or the agent is configured for msgpack or YAML. A refused
    report is lost, and the agent's exit code does not show it."""
    answer, status = case.step.response, case.status
    kind = answer.issue_kind if isinstance(answer, d.ErrorDocument) else None
    if status not in (406, 415) and not (status == 400 and kind == "MISSING_HEADER_FIELD"):
        return
    name = _SENT[status]
    value = case.exchange.request.header(name)
    # Of every request the same: what agent and master do not share is one cause, in whichever requests it shows.
    yield Statement(
        f"refused with {status}: the agent sent {name}: {brief(value) if value else '(none)'}",
        at=places.request_header(case, name.lower()),
    )
