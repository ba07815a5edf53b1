from inspector.rules.kit import *


@rule(
    "F12",
    Severity.NOTICE,
    at=(Kind.BACKUP,),
    title="a large file is sent to the master's filebucket",
    fix=(
        advice("set `backup => false` for that file"),
        advice("or use the node's own filebucket: leave out filebucket resources that name a `server`"),
        on_node("see where that is", "puppet config print clientbucketdir"),
    ),
    source="docs/protocol.md#file-requests",
    good=lambda: [talk(plugins(), catalog(), bucket(b"x" * 1000), report())],
    bad=lambda: [talk(plugins(), catalog(), bucket(bytes(10_000_001)), report())],
)
def large_backup(case: ExchangeCase, *, megabytes: float = 10) -> Iterator[Statement]:
    """Before replacing the file, the agent sent the old content to the master, which stores it permanently. Large
    files, or files that change in every run, fill the master's disk."""
    size, request = case.exchange.request.size, case.step.request
    if size > megabytes * 1e6:
        path = request.path if isinstance(request, d.BucketFile) else None
        yield Statement(
            f"{brief(path or 'a file')} was backed up to the master's filebucket, {size / 1e6:.0f} MB",
            at=places.meaning(path or "path", "bucketfile"),
        )
