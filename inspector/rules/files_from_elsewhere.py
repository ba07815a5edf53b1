from inspector.rules.kit import *


def _file(source: str) -> dict[str, object]:
    return {"type": "File", "title": "/opt/tool.tgz", "parameters": {"source": source}}


@rule(
    "F15",
    Severity.NOTICE,
    at=(Kind.CATALOG,),
    visible=Visible.CONSEQUENCE,
    title="files come from another web server, not from the master",
    fix=(
        advice("pin the content: `checksum => 'sha256'` with `checksum_value => '<digest>'` (4.6 and later)"),
        advice("use https"),
    ),
    source="docs/protocol.md#sources-on-web-servers; puppet 7.23.0 lib/puppet/type/file/source.rb",
    good=lambda: [talk(plugins(), catalog(resources=[_file("puppet:///modules/demo/tool.tgz")]), report())],
    bad=lambda: [talk(plugins(), catalog(resources=[_file("https://files.example/tool.tgz")]), report())],
)
def files_from_elsewhere(case: ExchangeCase) -> Iterator[Statement]:
    """File resources name a web server as their source. The agent downloads them directly, not through the master and
    this proxy: neither Puppet's CA nor the master guarantees the content, unless the catalog pins its digest."""
    files = case.run.files
    if files.catalog != case.exchange.seq:
        return
    for server, references in files.elsewhere.items():
        unpinned = f", {references.unpinned} of them without checksum_value" if references.unpinned else ""
        resources = "1 file comes" if references.resources == 1 else f"{references.resources} files come"
        yield Statement(f"{resources} from {brief(server)}{unpinned}", at=places.meaning(server, "catalog"))
