"""F12, F13 and F14: the master's filebucket."""

from inspector.protocol.files import ChecksumResult
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


@rule(
    "F13",
    Severity.WARNING,
    at=(Kind.BACKUP,),
    otherwise="notice for agents up to version 3",
    title="a node reads the master's filebucket",
    fix=(
        on_master("allow only its own certificate (pp_cli_auth) to read it, as OpenVox Server 9 does: restrict `get` "
                  "and `post` of `/puppet/v3/file_bucket_file` in auth.conf"),
        advice("restore files on the master itself"),
    ),
    source="docs/protocol.md#default-rules; docs/protocol.md#endpoint-file_bucket_file",
    good=lambda: [
        talk(plugins(), catalog(), bucket(method="HEAD", status=404), bucket(), report()),
        talk(plugins(), catalog(), bucket(method="GET", algorithm="md5"), report(), version="3.8.7",
             master_version="3.8.7"),
    ],
    bad=lambda: [talk(plugins(), catalog(), bucket(method="GET"), report())],
)  # fmt: skip
def bucket_read(case: ExchangeCase) -> Iterator[Statement]:
    """Any node's certificate is enough to read what other nodes have backed up, secrets included, if the digest is
    known or guessed. `puppet filebucket restore`, `get` and `diff` read the bucket; agent runs of version 4 and later
    do not."""
    match, client = case.step.match, case.step.client
    if match is None or client is None or case.status != 200 or case.exchange.request.method not in ("GET", "POST"):
        return
    if "pp_cli_auth" in client.extensions or "1.3.6.1.4.1.34380.1.3.39" in client.extensions:
        return
    if match.dialect == "legacy":
        yield Statement(
            "content is read from the master's filebucket (static_compiler)",
            severity=Severity.NOTICE,
            at=places.REQUEST_LINE,
        )
    else:
        yield Statement(f"{client.common_name} reads from the master's filebucket", at=places.REQUEST_LINE)


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
