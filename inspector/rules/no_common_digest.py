from inspector.rules.kit import *

NONE = "Server Error: Unable to find a common checksum type between agent 'sha512' and master 'sha256'."


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
    good=lambda: [
        talk(plugins(), catalog(), bucket(method="HEAD", status=404), bucket(), report()),
    ],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=NONE), report(result="failed")),
        talk(plugins(), catalog(), bucket(method="HEAD", status=500, algorithm="md5"), report(result="failed")),
    ],
    also=("S01", "R20", "P01", "F06"),
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
