from inspector.protocol.files import ChecksumResult
from inspector.rules.kit import *


@rule(
    "F14",
    Severity.ERROR,
    at=(Kind.BACKUP,),
    title="backup does not match its digest",
    fix=(
        on_node("see whether the file changes while the agent runs: a log, a database"),
        advice("set `backup => false` for it", only_if="it does"),
        advice("look for what alters request bodies between agent and master", only_if="it does not"),
    ),
    source="docs/protocol.md#filebucket; puppet 8.10.0 api/docs/http_file_bucket_file.md",
    good=lambda: [talk(plugins(), catalog(), bucket(b"old"), bucket(b"old", algorithm="sha512"), report())],
    bad=lambda: [talk(plugins(), catalog(), bucket(b"old", digest_of=b"other"), report())],
)
def backup_differs(case: ExchangeCase) -> Iterator[Statement]:
    """The content that was sent to the filebucket has a different digest from the one in the URL. The master stores it
    under its real digest, so it cannot be found by the digest that the report names."""
    backup = case.step.request
    if isinstance(backup, d.BucketFile) and backup.verdict is ChecksumResult.WRONG and not case.exchange.error:
        yield Statement(
            f"{brief(backup.path or 'a file')}: the body sent does not have the digest {backup.algorithm}/{backup.sum}",
            at=places.meaning(backup.sum or "verdict"),
        )
