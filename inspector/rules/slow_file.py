from inspector.rules.kit import *

FILE = "modules/demo/app.conf"


@rule(
    "F11",
    Severity.NOTICE,
    at=CONTENT,
    title="slow file serving",
    fix=(
        on_master(
            "give it more JRubies (`max-active-instances`), or spread the runs: serving a file needs a JRuby, too",
            only_if="catalogs are slow as well",
        ),
        on_master("check its disk", only_if="only files are slow"),
    ),
    source="docs/protocol.md#response-times-of-files",
    good=lambda: [talk(plugins(), catalog(), metadata(FILE), slow(content(FILE), 1), report())],
    bad=lambda: [talk(plugins(), catalog(), metadata(FILE), slow(content(FILE), 4), report())],
)
def slow_file(case: ExchangeCase, *, slow_s: float = 2) -> Iterator[Statement]:
    """The master took seconds to start sending a file's content. It had no free JRuby, or its disk is slow."""
    if case.status == 200 and waited(case.exchange) > slow_s:
        yield Statement(f"content began to arrive more than {slow_s:g} s after the request", at=places.WAITING)
