"""Messages about compiling a catalog: Hiera's data, facts, the node classifier and PuppetDB."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, on_master, on_node

_W = Visible.WIRE
_LOOKUP = on_master(
    "see where it looks for the key",
    "puppet lookup <key> --node {name} --environment <environment> --explain",
)

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            "Function lookup() did not find a value for the name X",
            "did not find a value for the name",
            "Could not find data item X in any Hiera data file and no default supplied",
            "Error looking up X in any Hiera data file",
        ),
        "Hiera has no value for this key, and the call has no default.",
        (
            "The key is missing in the data of this environment.",
            "The hierarchy has no level for this node, because a fact is missing or different.",
            "The key or the data file's name is misspelt.",
            "hiera.yaml is of version 3 where version 5 is expected.",
        ),
        (_LOOKUP,),
        (advice("add the key to the data, or give the call a default: `lookup('key', String, 'first', 'value')`"),),
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Lookup of key X failed: X",
            "hiera.yaml has wrong type",
            "Data Provider type mismatch",
            "Unable to parse hiera.yaml",
            "could not find expected ':'",
            "did not find expected key while parsing a block mapping",
        ),
        "The data of the environment cannot be read.",
        (
            "A YAML file has a wrong indentation or a tab.",
            "hiera.yaml names a path or backend that does not exist.",
            "An encrypted value has no key (eyaml).",
        ),
        (_LOOKUP,),
        (
            on_master("find the line in the file that it names", "ruby -ryaml -e 'YAML.load_file(ARGV[0])' <file>"),
            advice("correct that line"),
        ),
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Failed to find NAME via exec",
            "Failed to find NAME via exec: Execution of 'X' returned X",
            "Failed when searching for node NAME",
            "Could not load external node results for NAME",
            "Could not find terminus X for indirection node",
            "You must set the 'external_nodes' parameter",
        ),
        "The node classifier (`external_nodes`, a script on the master) failed for this node.",
        (
            "The script exits with an error: the node is unknown to it (for example to Foreman).",
            "The service that it asks does not answer, or its certificate has expired.",
            "The script is missing, not executable, or prints no YAML.",
        ),
        (
            on_master(
                "run the script as the master does",
                'sudo -u puppet "$(puppet config print external_nodes --section master)" {name}; echo $?',
            ),
        ),
        (
            advice("repair what the script reports"),
            on_master(
                "do without a classifier",
                "puppet config set node_terminus plain --section master",
                only_if="the site has none",
            ),
            on_master("restart the server", "systemctl restart puppetserver", only_if="the site has none"),
        ),
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Could not find node 'NAME'; cannot compile",
            "Could not find node",
        ),
        "The master has no facts or no node object for this name.",
        (
            "A tool asks for the catalog of a node that never reported.",
            "The node classifier does not know it.",
        ),
        (on_master("see what it knows of the node", "puppet node find {name}"),),
        (on_node("run the agent first", "puppet agent -t"),),
        ("S01",),
        _W,
    ),
    KnownError(
        (
            "Could not intern from X: X",
            "Could not intern from",
            "Could not intern_multiple from",
            "Could not render to X: X",
            "Could not render X",
            "unexpected token at",
        ),
        "One end cannot make an object from what it received: the text is no valid JSON, PSON or YAML, "
        "or its content is not what it expects.",
        (
            "`puppet catalog download` without facts: it is no agent's run.",
            "Facts or reports contain characters that are not UTF-8, often from a locale or a file.",
            "Agent and master are many versions apart.",
            "A proxy cut the answer off.",
        ),
        (
            on_node(
                "see whether its facts are UTF-8",
                "puppet facts show | iconv -f utf-8 -t utf-8 >/dev/null && echo valid",
            ),
            on_node(
                "see whether they are",
                "facter -p -j | iconv -f utf-8 -t utf-8 >/dev/null && echo valid",
                only_if="it is of version 5 or earlier",
            ),
        ),
        (
            advice("correct the fact, or run the agent with `LANG=C.UTF-8`"),
            advice("upgrade the master first", only_if="the versions differ"),
        ),
        ("S01", "S10", "S14"),
        _W,
    ),
    KnownError(
        (
            "Failed to serialize X for 'X': source sequence is illegal/malformed utf-8",
            "source sequence is illegal/malformed utf-8",
            "invalid byte sequence in UTF-8",
            "incompatible character encodings",
            "not valid UTF-8",
            "invalid byte sequence in US-ASCII",
        ),
        "The catalog or the facts contain bytes that are not UTF-8.",
        (
            "`file()` or a template reads a binary file.",
            "A file name or a fact is in another encoding.",
            "The agent or master runs with LANG=C.",
        ),
        (on_master("look for such files", "grep -rlP '[^\\x00-\\x7F]' <module>/files <module>/templates"),),
        (advice("use `binary_file()` instead of `file()`, or rename or convert the file"),),
        ("S01", "S10"),
        _W,
    ),
    KnownError(
        (
            "Catalog for X was requested with fact definition for the wrong node",
            "Unsupported facts format",
            "Facts but no fact format provided",
        ),
        "The facts of the request are of another node than the catalog, or in a form that the master does not know.",
        (
            "`node_name_value` or `node_name_fact` is set on the agent.",
            "A tool builds the request.",
        ),
        (on_node("see its settings", "puppet config print certname node_name_value node_name_fact --section agent"),),
        (on_node("use the certname", "puppet config delete node_name_value --section agent", destroys="the setting"),),
        ("R13", "S01"),
        _W,
    ),
    KnownError(
        ("Unable to find a common checksum type between agent",),
        "Agent and master have no digest in common for the files of a static catalog.",
        (
            "`digest_algorithm` or `supported_checksum_types` is set on one end.",
            "FIPS mode forbids md5.",
        ),
        (
            on_node("see its digests", "puppet config print digest_algorithm supported_checksum_types"),
            on_master("see its digests", "puppet config print digest_algorithm supported_checksum_types"),
        ),
        (
            on_node("use the same digest on both", "puppet config set digest_algorithm sha256 --section main"),
            on_master("use the same digest on both", "puppet config set digest_algorithm sha256 --section main"),
        ),
        ("F07", "S01"),
        _W,
    ),
    KnownError(
        (
            "Failed to submit 'replace facts' command",
            "Failed to find facts from PuppetDB",
            "Failed to find resources from PuppetDB",
            "Could not retrieve facts for X: Failed",
            "Failed to execute '/pdb",
            "PuppetDB-specific error",
            "Failed to submit X command for X to PuppetDB",
        ),
        "The master cannot reach PuppetDB, or PuppetDB refuses what it gets.",
        (
            "PuppetDB is stopped or starting.",
            "Its certificate is not of this CA, or its name does not fit.",
            "A fact or resource cannot be stored (a NUL character, too large).",
        ),
        (
            on_master(
                "see which PuppetDB it uses", 'cat "$(puppet config print confdir --section master)/puppetdb.conf"'
            ),
            on_master("see whether PuppetDB runs", "systemctl status puppetdb"),
        ),
        (
            on_master(
                "give PuppetDB the server's new certificate",
                "puppetdb ssl-setup -f",
                only_if="there is a new CA",
                destroys="its copies of the old files",
            ),
            on_master("restart PuppetDB", "systemctl restart puppetdb"),
        ),
        ("S01",),
        _W,
    ),
)
