from inspector.rules.kit import *


@rule(
    "F13",
    Severity.WARNING,
    at=(Kind.BACKUP,),
    otherwise="notice for agents up to version 3",
    title="a node reads the master's filebucket",
    fix=(
        on_master("allow only its own certificate (pp_cli_auth) to read it, as OpenVox Server 9 does: restrict "
                  "`get` and "
                  "`post` of `/puppet/v3/file_bucket_file` in auth.conf"),
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
