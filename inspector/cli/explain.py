"""``puppet-inspector explain``: explain an endpoint, a rule, an error message or a section of docs/protocol.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import installation
from inspector.cli.arguments import add_rules
from inspector.cli.output import columns, print_json, print_markdown
from inspector.errors import InspectorError
from inspector.explain import protocol_page, reference
from inspector.rules import fixes
from inspector.summaries import wording

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector explain B23"
STEPS = {"remedy": "steps", "check": "check_steps"}
"""The keys of what is in steps, by the key of the same as text."""
LABELS = {
    "rule": {"remedy": "fix", "seen": "checked"},
    "message": {"remedy": "fix", "seen": "visible"},
    "endpoint": {"asked by": "sent by"},
}
"""Labels in the text output that differ from the JSON keys, by the kind of explanation (its first key)."""

LISTS = {"rules": reference.rules_list, "endpoints": reference.endpoints_list}
"""What is listed, by the word that asks for it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", help="a rule (B23), an endpoint (file_metadatas), a request path, a "
                         "message of an agent or a master as it was printed, or a section that a source names "
                         "(docs/protocol.md#crls, or '#crls'); `rules` or `endpoints` for a list of all")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/explain.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Explain an endpoint (purpose, callers, access), a rule (meaning, fix), a message of an agent or a master
    (who prints it, meaning, causes, check, fix), or print a section of docs/protocol.md, which the sources of rules
    and endpoints name.
    """
    if not arguments.what:
        raise InspectorError(
            "There is nothing to explain.",
            "Paste what the agent or the master printed, in quotes: puppet-inspector explain 'Error: Could not ...'",
        )
    topic = " ".join(arguments.what)
    if topic in LISTS:
        rows = LISTS[topic]()
        if arguments.json:
            print_json({topic: rows})
        else:
            from inspector.cli.rows import print_rows

            print_rows(list(rows[0]), [list(row.values()) for row in rows])
        return 0
    if (anchor := protocol_page.cited_anchor(topic)) is not None:
        section = protocol_page.section(installation.protocol_page().read_text(encoding="utf-8"), anchor)
        if arguments.json:
            print_json(section._asdict())
        else:
            print_markdown(f"{section.title}\n\n{section.text}")
        return 0
    explanation = reference.explain(topic)
    steps = {key: explanation.pop(name) for key, name in STEPS.items() if name in explanation}
    if arguments.json:
        print_json(explanation | {STEPS[key]: fixes.fields(fix) for key, fix in steps.items()})
        return 0
    labels = LABELS[next(iter(explanation))]
    width = columns()
    for key, text in explanation.items():
        label = f"{labels.get(key, key) + ':':<11} "
        if key in steps:
            print(*wording.Labelled(label, steps[key]).lines(width or wording.PLAIN), sep="\n")
        else:
            print(*(wording.wrapped(label, text, width) if width else [f"{label}{text}"]), sep="\n")
    return 0
