from inspector.rules.kit import *
from inspector.rules.puppetdb_failed import PUPPETDB

DATA = regex.compile(
    r"lookup\(\) did not find a value|'(?:lookup_key|data_hash|data_dig|hiera3_backend)' function|/hiera\.yaml\)|"
    r"Unable to parse \(|eyaml|in any Hiera data file"
)
"""What a master says if Hiera has no value, or cannot read its data."""
BROKEN = "Server Error: Function lookup() did not find a value for the name 'web::port' on node node1.example"


@rule(
    "S27",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    title="Hiera has no value, or cannot read its data",
    fix=(
        on_master("see where Hiera looks (without PuppetDB, add `--facts <file>` of the node)",
                  "puppet lookup <key> --node {name} --explain"),
        advice("correct the data file, key or backend that the message names, and deploy it"),
        on_master("let the server's own user read the data and the keys: the command above ran as you",
                  only_if="the lookup finds the value"),
    ),
    source="docs/protocol.md#failed-catalogs",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find data item port in any Hiera data file and no default "
                                                 "supplied"), report(result="failed"), version="3.8.7"),
    ],
    also=("R20", "P01"),
)  # fmt: skip
def data_lookup_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master looks up a value in Hiera while it compiles: there is none for this node, a data file is no YAML,
    hiera.yaml is wrong, or a backend (eyaml, a lookup function) is not installed on the server."""
    text = compile_error(case)
    if text and DATA.search(text) and not PUPPETDB.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}")
