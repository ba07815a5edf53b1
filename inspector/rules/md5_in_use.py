from inspector.rules.kit import *

KINDS = tuple(kind for kind in PARSED if kind not in (Kind.NODE, Kind.CATALOG))
BY_RESOURCE = (Kind.FILE_METADATA, Kind.FILE_LISTING)


@rule(
    "F06",
    Severity.WARNING,
    at=(*KINDS, Kind.BACKUP),
    otherwise="notice for agents up to version 6, and for file resources with checksum => md5",
    title="files are compared by MD5",
    fix=(
        on_node(
            "use SHA-256, the default from version 7 on", "puppet config set digest_algorithm sha256 --section main"
        ),
        on_master(
            "use it as well; existing filebucket content stays stored under the old digests",
            "puppet config set digest_algorithm sha256 --section main",
        ),
    ),
    source="docs/protocol.md#digest-algorithms",
    good=lambda: [
        talk(plugins(), catalog(), bucket(), report()),
        talk(
            asked("file_metadatas/plugins", [], query="&recurse=true&checksum_type=md5"),
            catalog(),
            report(),
            version="6.29.0",
        ),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), bucket(algorithm="md5"), report()),
        talk(asked("file_metadatas/plugins", [], query="&recurse=true&checksum_type=md5"), catalog(), report()),
    ],
)
def md5_in_use(case: ExchangeCase) -> Iterator[Statement]:
    """The agent compares or backs up files by their MD5 digest, the default of agents up to version 6. That is enough
    to detect changes, but not safe against forged files; hosts in FIPS mode, and filebuckets of newer masters, refuse
    it."""
    match = case.step.match
    if match is None:
        return
    backup = case.kind is Kind.BACKUP
    if not (match.key or "").startswith("md5/") if backup else ("checksum_type", "md5") not in match.parameters:
        return
    if case.run.major < (7, 0):
        yield Statement(
            "files are compared by MD5, as agents up to 6 do by default",
            severity=Severity.NOTICE,
            at=places.REQUEST_LINE,
        )
    elif case.kind in BY_RESOURCE:
        yield Statement("a file resource uses MD5 (checksum => md5)", severity=Severity.NOTICE, at=places.REQUEST_LINE)
    else:
        yield Statement(
            "the agent is configured to use MD5 (digest_algorithm); since 7 the default is SHA-256",
            at=places.REQUEST_LINE,
        )
