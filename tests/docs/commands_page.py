"""docs/commands.md: what the options mean that several commands have, and which have them."""

from __future__ import annotations

from inspector.cli import commands
from tests.support.places import DOCS

PLACE = DOCS / "commands.md"
MEANINGS = {
    "--access-log": "a puppetserver's access log, compressed or not",
    "--agent": "the agent: its certname; a shell pattern (`web*`), but for `replay`; for `tap` and `report` an address",
    "--auth-conf": "the master's auth.conf",
    "--ca": "the CA bundle with which a certificate is verified",
    "--cadir": "the directory of a CA",
    "--cert": "a certificate, in PEM; its key may be in the same file",
    "--certname": "the name in a certificate",
    "--crl": "the CRLs with which a certificate is verified",
    "--execute": "it is done, not only shown",
    "--fault": "what is broken on purpose; `--fault list` lists what can be",
    "--filter": "only what matches [these terms](captures.md#filters)",
    "--format": "the format of the output",
    "--full": "whole messages and values instead of their beginnings; secrets stay masked",
    "--ignore": "a pattern of what is not compared",
    "--ignore-file": "a file with such patterns",
    "--jobs": "how many at a time",
    "--json": "JSON on standard output, of most with a [schema](captures.md#json)",
    "--key": "the key of `--cert`, where it is in a file of its own",
    "--listen": "the address on which is listened",
    "--master": "the master that is asked",
    "--output": "what is written: a file or a directory, which must be new",
    "--rules": "a site's [rules file](findings.md#a-rules-file)",
    "--rules-dir": "a directory with a site's rules in Python, which are executed",
    "--run": "one run of a capture, by the number that `runs` prints",
    "--server-log": "a master's puppetserver.log, compressed or not",
    "--set": "`NAME=VALUE`: sets an option of the proxy, or a parameter of a query",
    "--shared": "made for strangers, as `share` does: without values, names are pseudonyms",
    "--ssldir": "an agent's ssldir",
    "--tags": "the tags of resources are compared, too",
    "--with": "[kinds of values](privacy.md#what-is-withheld) that are not withheld; secrets in them are masked",
    "--with-secrets": "nothing is masked",
}
"""By the long name of an option."""


def page() -> str:
    """The page's text."""
    lines = [
        "# Options of several commands",
        "",
        "An option means the same wherever it is. `puppet-inspector COMMAND --help` lists all of a command; what",
        "each is for: [index.md](index.md#commands). Generated from the parsers with `make docs`.",
        "",
        "| option | meaning | commands |",
        "|---|---|---|",
    ]
    for option, names in sorted(shared().items()):
        letter = "`-o`, " if option == "--output" else ""
        lines.append(f"| {letter}`{option}` | {MEANINGS[option]} | {', '.join(names)} |")
    return "\n".join([*lines, ""])


def shared() -> dict[str, list[str]]:
    """Return the commands of each option that several have, by its long name."""
    found: dict[str, list[str]] = {}
    for name in commands.COMMANDS:
        for option in commands.options(commands.parser_of(name)):
            if option.startswith("--") and option != "--help":
                found.setdefault(option, []).append(name)
    return {option: names for option, names in found.items() if len(names) > 1}
