"""The exact commands for the generation at hand (protocol reference 5.1).

A remedy may say ``{sign}``, ``{clean}``, ``{revoke}``, ``{list}`` and ``{alt_names}`` (sign with alternative names)
for the CA; ``{reset}``, ``{reset_ca}`` (drop the CA and its CRLs as well), ``{verify}``, ``{renew}`` and
``{fingerprint}`` for the node; and ``{name}``. Here each becomes what this run's master or agent understands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.runs import Run

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_AGAIN = "puppet agent -t"


def fill(remedy: str, run: Run | None) -> str:
    """Put the commands of a run's generation into a remedy."""
    name = (run.certname if run else None) or ""
    # Whoever copies a command must not run what a stranger wrote into a certname.
    name = name if _PLAIN.fullmatch(name) else "<certname>"
    return remedy.format_map({"name": name} | _for_ca(name, run) | _for_node(name, run))


def _for_ca(name: str, run: Run | None) -> dict[str, str]:
    master = _major(run.master_version if run else None) or (3 if run and run.dialect == "legacy" else 0)
    if 0 < master < 6:
        return {
            "list": "`puppet cert list --all`",
            "sign": f"`puppet cert sign {name}`",
            "clean": f"`puppet cert clean {name}`",
            "revoke": f"`puppet cert revoke {name}`",
            "alt_names": f"`puppet cert --allow-dns-alt-names sign {name}`",
        }
    sign = f"`puppetserver ca sign --certname {name}`"
    return {
        "list": "`puppetserver ca list --all`",
        "sign": sign,
        "clean": f"`puppetserver ca clean --certname {name}`",
        "revoke": f"`puppetserver ca revoke --certname {name}`",
        "alt_names": f"`allow-subject-alt-names: true` in the CA's ca.conf, restart the server, {sign}",
    }


def _for_node(name: str, run: Run | None) -> dict[str, str]:
    commands = {"fingerprint": "`puppet agent --fingerprint`"}
    if run and (0, 0) < run.major < (6, 0):
        reset = f'find "$(puppet config print ssldir)" -name {name}.pem -delete'
        trusted = 'rm -f "$(puppet config print localcacert)" "$(puppet config print hostcrl)"'
        return commands | {
            "reset": f"`{reset}; {_AGAIN}`",
            "reset_ca": f"`{reset}; {trusted}; {_AGAIN}`",
            "verify": '`openssl verify -CAfile "$(puppet config print localcacert)" "$(puppet config print hostcert)"`',
            "renew": f"`{reset}; {_AGAIN}`",
        }
    reset = f"`puppet ssl clean; {_AGAIN}`"
    return commands | {
        "reset": reset,
        "reset_ca": f"`puppet ssl clean --localca; {_AGAIN}`",
        "verify": "`puppet ssl verify`",
        # Only OpenVox can ask for a renewal; elsewhere the node enrols anew.
        "renew": "`puppet ssl renew_cert`" if run and run.generation in ("OpenVox 8", "9") else reset,
    }


def _major(version: str | None) -> int:
    head = (version or "").partition(".")[0]
    return int(head) if head.isdigit() else 0
