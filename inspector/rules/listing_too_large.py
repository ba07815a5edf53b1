from inspector.model import Response
from inspector.rules.kit import *


def _many(count: int) -> dict[str, bytes]:
    return {f"{number}.txt": b"x" for number in range(count)}


@rule(
    "F10",
    Severity.WARNING,
    at=(Kind.FILE_LISTING,),
    title="a directory with very many files is copied",
    fix=(
        advice("distribute it as a package or an archive instead of `recurse => true`"),
        advice("or reduce it with `ignore` and `recurselimit`; `max_files` makes newer agents warn"),
    ),
    source="docs/protocol.md#large-directories; puppet 7.23.0 lib/puppet/file_serving/fileset.rb",
    good=lambda: [talk(plugins(), catalog(), listing("modules/demo/tree", _many(900)), report())],
    bad=lambda: [talk(plugins(), catalog(), listing("modules/demo/tree", _many(1001)), report())],
)
def listing_too_large(case: ExchangeCase, *, files: float = 1000, megabytes: float = 1) -> Iterator[Statement]:
    """The agent creates a resource for each file in the directory and stores the state of each in every run: that takes
    time and memory on both sides, and makes reports large."""
    answer, match, response = case.step.response, case.step.match, case.exchange.response
    if match is None or response is None or not (isinstance(answer, d.FileMetadatas) or _cut(response)):
        return
    if isinstance(answer, d.FileMetadatas) and len(answer.files) > files:
        yield Statement(
            f"{brief(match.key or '')} contains {len(answer.files)} files and directories",
            at=places.meaning(match.key or "", "files"),
        )
    elif response.size > megabytes * 1e6:
        yield Statement(
            f"the listing of {brief(match.key or '')} is {response.size / 1e6:.1f} MB large",
            at=places.meaning(match.key or "", "files"),
        )


def _cut(response: Response) -> bool:
    """Return whether a listing was too large to be recorded whole: it cannot be read, its size is known."""
    return response.status == 200 and response.lost > 0
