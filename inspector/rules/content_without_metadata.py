from inspector.rules.kit import *

FILE = "modules/demo/app.conf"


@rule(
    "F01",
    Severity.WARNING,
    at=(Kind.FILE_CONTENT,),
    title="file content requested without its metadata",
    fix=(
        advice(
            "find the client that sends the request: compare its address and User-Agent with those of the node's own"
        ),
    ),
    source="docs/protocol.md#file-requests; docs/protocol.md#static-catalogs",
    good=lambda: [
        talk(plugins(), catalog(), metadata(FILE), content(FILE), report()),
        talk(plugins(), catalog(), listing("modules/demo", {"app.conf": b"content"}), content(FILE), report()),
        talk(content(FILE), report()),
    ],
    bad=lambda: [talk(plugins(), catalog(), content(FILE), report())],
)
def content_without_metadata(case: ExchangeCase) -> Iterator[Statement]:
    """An agent compares a file with the master's metadata before it fetches the content. Content that is fetched
    without metadata was requested by another client, or the agent's metadata request did not pass through this
    proxy."""
    match, run = case.step.match, case.run
    if case.status != 200 or match is None or match.key is None:
        return
    if not run.catalogs or run.files.full or run.files.knows(match.key):  # no catalog: the run began before the capture
        return
    yield Statement(
        f"the content of {brief(match.key)} was fetched, but its metadata was not requested", at=places.REQUEST_LINE
    )
