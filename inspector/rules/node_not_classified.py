from inspector.rules.environment_of_classifier_missing import ABSENT
from inspector.rules.kit import *
from inspector.rules.puppetdb_failed import PUPPETDB

UNCLASSIFIED = regex.compile(
    r"Failed when searching for node |Could not find node '[^']{0,300}'; cannot compile|Node Manager service error|"
    r"Failed to find \S{1,255} via exec: "
)
"""What a master says if its classifier gives no answer for a node."""
BROKEN = (
    "Server Error: Failed when searching for node node1.example: Failed to find node1.example via exec: Execution of "
    "'/etc/puppetlabs/enc node1.example' returned 1: "
)


@rule(
    "S25",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    title="the master could not classify the node",
    fix=(
        on_master("run the ENC by hand, as the user of its service: it must print YAML and exit with 0, and only "
                  "here its "
                  "error output shows",
                  '"$(puppet config print external_nodes --section master)" {name}'),
        on_master("see which service classifies nodes, and check that one",
                  "puppet config print node_terminus --section master", only_if="there is no ENC"),
    ),
    source="docs/protocol.md#failed-catalogs",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find node 'node1.example'; cannot compile"),
             report(result="failed"), version="3.8.7"),
    ],
    also=("R20", "P01"),
)  # fmt: skip
def node_not_classified(case: ExchangeCase) -> Iterator[Statement]:
    """Before it compiles, the master asks its classifier for the node's classes and environment: an external node
    classifier (ENC), or another node terminus. It failed, could not be started, or its answer was empty or no YAML. The
    Puppet code is not the cause."""
    text = compile_error(case)
    if text and UNCLASSIFIED.search(text) and not ABSENT.search(text) and not PUPPETDB.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}")
