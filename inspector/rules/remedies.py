"""The exact commands for the generation at hand (protocol reference 5.1).

A remedy may say ``{sign}``, ``{clean}``, ``{reset}``, ``{list}``, ``{revoke}``, ``{fingerprint}`` and
``{name}``; here each becomes the command that this run's agent or master understands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.runs import Run


def fill(remedy: str, run: Run | None) -> str:
    """Put the commands of a run's generation into a remedy."""
    name = (run.certname if run else None) or "<certname>"
    major = _major(run.master_version if run else None) or (3 if run and run.dialect == "legacy" else 0)
    if 0 < major < 6:
        ca = "puppet cert {} " + name
        commands = {"list": "puppet cert list --all", "sign": ca.format("sign"), "clean": ca.format("clean"),
                    "revoke": ca.format("revoke")}  # fmt: skip
    else:
        ca = "puppetserver ca {} --certname " + name
        commands = {"list": "puppetserver ca list --all", "sign": ca.format("sign"),
                    "clean": ca.format("clean"), "revoke": ca.format("revoke")}  # fmt: skip
    if run and run.old_engine:
        commands["reset"] = f'find "$(puppet config print ssldir)" -name {name}.pem -delete; puppet agent -t'
    else:
        commands["reset"] = "puppet ssl clean; puppet agent -t"
    commands["fingerprint"] = "puppet agent --fingerprint"
    commands["name"] = name
    return remedy.format_map({key: f"`{value}`" if key != "name" else value for key, value in commands.items()})


def _major(version: str | None) -> int:
    head = (version or "").partition(".")[0]
    return int(head) if head.isdigit() else 0
