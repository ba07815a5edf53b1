from inspector.rules.kit import *

ABSENT = regex.compile(r"Failed when searching for node .{0,300}?Could not find (?:a directory )?environment")
"""What a master says if the classifier names an environment that it does not have."""
BROKEN = (
    "Server Error: Failed when searching for node node1.example: Could not find a directory environment named 'gone' "
    "anywhere in the path: /etc/puppetlabs/code/environments. Does the directory exist?"
)


@rule(
    "S26",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    title="the classifier names an environment that does not exist",
    fix=(
        on_master("see what the ENC answers", '"$(puppet config print external_nodes --section master)" {name}'),
        on_master("see where its environments are", "puppet config print environmentpath --section master"),
        on_master("deploy that environment there, or correct the answer of the ENC; the node's own setting has no "
                  "effect"),
    ),
    source="docs/protocol.md#failed-catalogs; docs/protocol.md#unknown-environments",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed"))],
    also=("R20", "P01"),
)  # fmt: skip
def environment_of_classifier_missing(case: ExchangeCase) -> Iterator[Statement]:
    """The master asks its classifier (an ENC, or another node terminus) for the node's environment, and the one that it
    names was never deployed on this master, was deleted, or is misspelled. The Puppet code is not the cause."""
    text = compile_error(case)
    if text and ABSENT.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}")
