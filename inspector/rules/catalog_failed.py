"""S01 and S25 to S28: why the master compiled no catalog, by its message."""

from inspector.rules.kit import *

_PUPPETDB = regex.compile(
    r"terminus puppetdb|'server_urls'|to PuppetDB|from PuppetDB|PuppetDB at |/pdb/(?:query|cmd)/", regex.IGNORECASE
)
"""What a master says if it cannot use PuppetDB."""
_ABSENT = regex.compile(r"Failed when searching for node .{0,300}?Could not find (?:a directory )?environment")
"""What a master says if the classifier names an environment that it does not have."""
_UNCLASSIFIED = regex.compile(
    r"Failed when searching for node |Could not find node '[^']{0,300}'; cannot compile|Node Manager service error|"
    r"Failed to find \S{1,255} via exec: "
)
"""What a master says if its classifier gives no answer for a node."""
_DATA = regex.compile(
    r"lookup\(\) did not find a value|'(?:lookup_key|data_hash|data_dig|hiera3_backend)' function|/hiera\.yaml\)|"
    r"Unable to parse \(|eyaml|in any Hiera data file"
)
"""What a master says if Hiera has no value, or cannot read its data."""
_ELSEWHERE = (_UNCLASSIFIED, _ABSENT, _DATA, _PUPPETDB)
"""Error messages of other causes than the code: S25 to S28."""

_NO_PUPPETDB = (
    "Server Error: Failed to execute '/pdb/cmd/v1?version=5&certname=node1.example&command=replace_facts' on "
    "at least 1 of the following 'server_urls': https://puppetdb.example:8081"
)
_NO_ENVIRONMENT = (
    "Server Error: Failed when searching for node node1.example: Could not find a directory environment named 'gone' "
    "anywhere in the path: /etc/puppetlabs/code/environments. Does the directory exist?"
)
_NO_CLASSES = (
    "Server Error: Failed when searching for node node1.example: Failed to find node1.example via exec: Execution of "
    "'/etc/puppetlabs/enc node1.example' returned 1: "
)
_NO_VALUE = "Server Error: Function lookup() did not find a value for the name 'web::port' on node node1.example"
_NO_VARIABLE = "Server Error: Evaluation Error: Unknown variable: 'x'. (file: /etc/puppetlabs/code/site.pp, line: 3)"


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
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=_NO_PUPPETDB), report(result="failed")),
        talk(plugins(), catalog(status=500, text="Could not find terminus puppetdb for indirection facts"),
             report(result="failed")),
    ],
    also=("P01",),
)  # fmt: skip
def puppetdb_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master stores facts and catalogs in PuppetDB and reads exported resources from it, and could not. Until that
    works again, no node that needs it gets a catalog. The Puppet code is not the cause."""
    text = compile_error(case)
    if not text or not _PUPPETDB.search(text):
        return
    message, asked = f"no catalog for {case.name}: {brief(text)}", case.ledger.known(case.name).unserved
    if asked and asked.time >= case.exchange.time:  # recorded before PuppetDB, too
        how = f"answered {asked.status}" if asked.status else "without an answer"
        message += f"; the master's request to PuppetDB is record {asked.seq}, {how}"
    yield Statement(message, printed=as_printed(case, text))


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
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [talk(plugins(), catalog(status=500, text=_NO_ENVIRONMENT), report(result="failed"))],
    also=("P01",),
)  # fmt: skip
def environment_of_classifier_missing(case: ExchangeCase) -> Iterator[Statement]:
    """The master asks its classifier (an ENC, or another node terminus) for the node's environment, and the one that it
    names was never deployed on this master, was deleted, or is misspelled. The Puppet code is not the cause."""
    text = compile_error(case)
    if text and _ABSENT.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}")


@rule(
    "S25",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    title="the master could not classify the node",
    fix=(
        on_master("run the ENC by hand, as the user of its service: it must print YAML and exit with 0, and only here "
                  "its error output shows",
                  '"$(puppet config print external_nodes --section master)" {name}'),
        on_master("see which service classifies nodes, and check that one",
                  "puppet config print node_terminus --section master", only_if="there is no ENC"),
    ),
    source="docs/protocol.md#failed-catalogs",
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=_NO_CLASSES), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find node 'node1.example'; cannot compile"),
             report(result="failed"), version="3.8.7"),
    ],
    also=("P01",),
)  # fmt: skip
def node_not_classified(case: ExchangeCase) -> Iterator[Statement]:
    """Before it compiles, the master asks its classifier for the node's classes and environment: an external node
    classifier (ENC), or another node terminus. It failed, could not be started, or its answer was empty or no YAML. The
    Puppet code is not the cause."""
    text = compile_error(case)
    if text and _UNCLASSIFIED.search(text) and not _ABSENT.search(text) and not _PUPPETDB.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}")


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
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=_NO_VALUE), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find data item port in any Hiera data file and no default "
                                                 "supplied"), report(result="failed"), version="3.8.7"),
    ],
    also=("P01",),
)  # fmt: skip
def data_lookup_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master looks up a value in Hiera while it compiles: there is none for this node, a data file is no YAML,
    hiera.yaml is wrong, or a backend (eyaml, a lookup function) is not installed on the server."""
    text = compile_error(case)
    if text and _DATA.search(text) and not _PUPPETDB.search(text):
        yield Statement(f"no catalog for {case.name}: {brief(text)}", printed=as_printed(case, text))


_NO_FACTS: Fix = (
    advice("correct nothing on the node or in its code: this version of the command sends no facts, which is its own "
           "mistake"),
    on_node("compile with its facts instead", "puppet agent -t --noop"),
)  # fmt: skip


def _fix(run: Run) -> Fix | None:
    return _NO_FACTS if _sent_no_facts(run) else None


def _sent_no_facts(run: Run) -> bool:
    """Whether the run is a command that asked for a catalog without facts; masters up to 3 use the last ones."""
    command = run.command
    return bool(command and command.certain and run.dialect == "v3" and run.catalogs and run.catalogs[-1].without_facts)


@rule(
    "S01",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    otherwise="warning for a command such as `puppet catalog download`",
    title="the master could not compile the catalog",
    fix=(
        advice("correct the code that the message names (file and line), and deploy it"),
        on_master("read its log (puppetserver.log) of that time", only_if="the message names no file"),
        on_node("test it", "puppet agent -t --noop"),
    ),
    instead=_fix,
    source="docs/protocol.md#failed-catalogs; docs/protocol.md#endpoint-catalog",
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=_NO_VARIABLE), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find class web"), report(result="failed"), version="3.8.7"),
    ],
    also=("P01",),
)
def catalog_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master answered the catalog request with an error: the Puppet code or a function that it calls failed for
    this node. The agent skips the run, or applies its cached catalog if that is allowed, and reports the
    failure."""
    text = compile_error(case)
    if text is None or any(cause.search(text) for cause in _ELSEWHERE):
        return
    command = case.run.command
    without = f"`{command.name}` sent no facts: " if command and _sent_no_facts(case.run) else ""
    yield Statement(
        f"no catalog for {case.name}: {without}{brief(text) or f'status {case.status} without a reason'}",
        severity=Severity.WARNING if command and command.certain else None,
        printed=as_printed(case, text),
    )
