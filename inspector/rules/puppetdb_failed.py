from inspector.rules.kit import *

PUPPETDB = regex.compile(
    r"terminus puppetdb|'server_urls'|to PuppetDB|from PuppetDB|PuppetDB at |/pdb/(?:query|cmd)/", regex.IGNORECASE
)
"""What a master says if it cannot use PuppetDB."""
BROKEN = (
    "Server Error: Failed to execute '/pdb/cmd/v1?version=5&certname=node1.example&command=replace_facts' on "
    "at least 1 of the following 'server_urls': https://puppetdb.example:8081"
)


@rule(
    "S28",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    title="the master cannot use PuppetDB",
    fix=(
        on_master("see the address of PuppetDB, `server_urls`",
                  'cat "$(puppet config print confdir --section master)/puppetdb.conf"'),
        advice("see whether the service runs there, and whether the master reaches it"),
        on_master("install the package puppetdb-termini", only_if='the message says that the terminus was not found'),
        on_master("restart it", "systemctl restart puppetserver",
                  only_if='the message says that the terminus was not found'),
    ),
    source="docs/protocol.md#failed-catalogs",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed")),
        talk(plugins(), catalog(status=500, text="Could not find terminus puppetdb for indirection facts"),
             report(result="failed")),
    ],
    also=("R20", "P01"),
)  # fmt: skip
def puppetdb_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master stores facts and catalogs in PuppetDB and reads exported resources from it, and could not. Until that
    works again, no node that needs it gets a catalog. The Puppet code is not the cause."""
    text = compile_error(case)
    if text and PUPPETDB.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}")
