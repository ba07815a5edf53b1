from inspector.protocol.files import is_plugin
from inspector.rules.kit import *

FILE = "modules/demo/app.conf"


@rule(
    "F04",
    Severity.NOTICE,
    title="the same file fetched twice in one run",
    fix=(
        advice("let one of them copy the file, and make the others links to it or let them depend on it",
               only_if="several resources copy the same file"),
    ),
    source="docs/protocol.md#file-requests",
    good=lambda: [
        talk(plugins(), catalog(), metadata(FILE), content(FILE), report()),
        talk(plugins(), catalog(), metadata(FILE), content(FILE), metadata("modules/demo/b"), content("modules/demo/b"),
             report()),
    ],
    bad=lambda: [talk(plugins(), catalog(), metadata(FILE), content(FILE), content(FILE), report())],
)  # fmt: skip
def file_fetched_twice(case: RunCase) -> Iterator[Statement]:
    """The agent fetched the same content more than once in one run: several resources have the same source, or the
    agent displays differences (`-t`, show_diff), for which it fetches a changed file a second time."""
    twice = {
        name: fetches for name, fetches in case.run.files.fetched.items() if fetches.times > 1 and not is_plugin(name)
    }
    if twice:
        seqs = [seq for fetches in list(twice.values())[:20] for seq in (fetches.first, fetches.last)]
        yield Statement(f"fetched more than once: {some(list(twice))}", tuple(sorted(seqs)), at=places.REQUEST_LINE)
