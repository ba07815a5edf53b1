"""docs/commands.md: what is the same for all commands: options, what they read, exit status."""

from __future__ import annotations

import re

from inspector.cli import commands
from tests.support.places import DOCS

PLACE = DOCS / "commands.md"
MEANINGS = {
    "--access-log": "a puppetserver's access log, compressed or not",
    "--agent": "the agent: its certname, or a shell pattern (`web*`); its address where it has no name yet",
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


READ = {
    "several": "nothing (the newest in captures/), a capture, several, a directory: all in it",
    "as one": "the same; several are read as if they were one, as `captures merge` makes it",
    "one": "nothing (the newest in captures/), a capture, a directory: the newest in it",
}
"""What commands read, by the kind of ``readers``."""
_FOUND = re.compile(r"The exit status is 1 if (.*?)(?:, 2 if|\.(?: |$)|$)", re.DOTALL)


def page() -> str:
    """The page's text."""
    lines = [
        "# What is the same for all commands",
        "",
        "`puppet-inspector COMMAND --help` lists all of a command; what each is for: [index.md](index.md#commands).",
        "Generated from the parsers with `make docs`.",
        "",
        "## Options",
        "",
        "An option means the same wherever it is.",
        "",
        "| option | meaning | commands |",
        "|---|---|---|",
    ]
    for option, names in sorted(shared().items()):
        letter = "`-o`, " if option == "--output" else ""
        lines.append(f"| {letter}`{option}` | {MEANINGS[option]} | {', '.join(names)} |")
    lines += ["", "## What they read", "", "| what is named | commands |", "|---|---|"]
    lines += [f"| {READ[kind]} | {', '.join(names)} |" for kind, names in readers().items()]
    lines += [
        "",
        "A directory of tables stands for the captures that they were made of: for `sql`, `certificates` and `open`.",
        "Without `-o`, what is written is in the working directory, never beside a capture.",
        "",
        "## Exit status",
        "",
        "- 0: all is well.",
        "- 1: the command worked, and found what is not in order.",
        "- 2: wrong usage, or input that cannot be used: standard error has a sentence, below it what helps.",
        "- 130: it was ended with Ctrl-C. With another signal: 128 and its number.",
        "",
        "`run` ends with the status of the agent's command. All others that are not in this list never end with 1.",
        "",
        "| command | 1 if |",
        "|---|---|",
        *(f"| {name} | {reason} |" for name, reason in found().items()),
    ]
    return "\n".join([*lines, ""])


def readers() -> dict[str, list[str]]:
    """Return the commands that read captures, by what they take."""
    read: dict[str, list[str]] = {kind: [] for kind in READ}
    for name in commands.COMMANDS:
        for action in commands.parser_of(name)._actions:
            if action.option_strings or str(action.metavar or action.dest).partition("[")[0] != "capture":
                continue
            if name == "captures vacuum":  # it changes the one that is named
                continue
            several = action.nargs == "*" and name != "diff"
            kind = "as one" if hasattr(commands._module(name), "as_one") else "several" if several else "one"
            read[kind].append(name)
    return read


def found() -> dict[str, str]:
    """Return when commands end with 1, of those that may."""
    reasons = {}
    for name in commands.COMMANDS:
        if match := _FOUND.search(" ".join((commands._module(name).execute.__doc__ or "").split())):
            reasons[name] = match[1]
    return reasons


def shared() -> dict[str, list[str]]:
    """Return the commands of each option that several have, by its long name."""
    found: dict[str, list[str]] = {}
    for name in commands.COMMANDS:
        for option in commands.options(commands.parser_of(name)):
            if option.startswith("--") and option != "--help":
                found.setdefault(option, []).append(name)
    return {option: names for option, names in found.items() if len(names) > 1}
