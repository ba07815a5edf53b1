"""F06 and F07: MD5, and digests that one side does not have."""

from inspector.rules.kit import *

_KINDS = tuple(kind for kind in PARSED if kind not in (Kind.NODE, Kind.CATALOG))


@rule(
    "F06",
    Severity.WARNING,
    at=(*_KINDS, Kind.BACKUP),
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
    severity: Severity | None = Severity.NOTICE
    if case.run.major < (7, 0):
        words = "files are compared by MD5, as agents up to 6 do by default"
    elif case.kind in (Kind.FILE_METADATA, Kind.FILE_LISTING):
        words = "a file resource uses MD5 (checksum => md5)"
    else:
        words, severity = "the agent is configured to use MD5 (digest_algorithm); since 7 the default is SHA-256", None
    yield Statement(words, severity=severity, at=places.REQUEST_LINE)


_NONE_IN_COMMON = "Server Error: Unable to find a common checksum type between agent 'sha512' and master 'sha256'."


@rule(
    "F07",
    Severity.ERROR,
    at=(Kind.CATALOG, Kind.BACKUP),
    refused=True,
    title="agent and master have no digest in common",
    fix=(
        on_node("see its digests", "puppet config print digest_algorithm supported_checksum_types --section agent"),
        on_master(
            "compare them with its own",
            "puppet config print digest_algorithm supported_checksum_types --section master",
        ),
        on_node(
            "use the one that works with all versions from 4 on",
            "puppet config set digest_algorithm sha256 --section main",
        ),
    ),
    source="docs/protocol.md#digest-algorithms; puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
    without_catalog=(*NOT_COMPILED, "P01", *NO_CATALOG),
    good=lambda: [talk(plugins(), catalog(), bucket(method="HEAD", status=404), bucket(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=_NONE_IN_COMMON), report(result="failed")),
        talk(plugins(), catalog(), bucket(method="HEAD", status=500, algorithm="md5"), report(result="failed")),
    ],
    also=("F06",),
)
def no_common_digest(case: ExchangeCase) -> Iterator[Statement]:
    """The master compiles a static catalog with a digest that the agent supports, and accepts backups by digests that
    it supports itself. Here there is no such digest: the catalog fails, or files cannot be backed up and stay as they
    are."""
    answer, match = case.step.response, case.step.match
    if isinstance(answer, d.ErrorDocument) and "common checksum type" in answer.message:
        digests = case.step.request.checksum_type if isinstance(case.step.request, d.CatalogRequest) else None
        yield Statement(f"{brief(answer.message)} (the agent sent checksum_type={brief(digests or '')})")
    elif case.status == 500 and match and (match.key or "").startswith("md5/"):
        yield Statement(
            "the master's filebucket answers 500 to MD5: files cannot be backed up, so they are not changed"
        )
