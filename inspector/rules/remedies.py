"""Fill the exact commands for a run's agent and master into a fix (docs/protocol.md#commands-by-generation).

Placeholders for commands on the CA: ``{sign}``, ``{clean}``, ``{list}``, ``{alt_names}`` (sign with alternative
names), ``{crls}`` (show each CRL of its file), ``{new_crl}`` (sign its own one anew), ``{write_crls}`` (the same, and
add missing ones) and ``{check_ca}``. On a master that is also the CA: ``{renew_master}`` (replace its certificate). On
the node: ``{reset}`` (delete key and certificate), ``{reset_ca}`` (the CA and its CRLs as well), ``{trust_anew}`` (only
the CA and its CRLs), ``{verify}`` and ``{fingerprint}``; ``{request}``: the fingerprint of the agent's request, from
the traffic if it is there. ``{signing}``: how to sign it. On both, in the right order: ``{enrol}``, ``{enrol_ca}`` if
the node's certificate was issued by another CA, and ``{renew}``. ``{name}`` is the certname, ``{host}`` the master.
Each placeholder becomes the command of the versions of this run's master or agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.rules.trust import leaf

if TYPE_CHECKING:
    from inspector.runs.run import Run

_PLAIN = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ADDRESS = regex.compile(r"[0-9A-Fa-f.:]+")
_AGAIN = "puppet agent -t"
_TRUSTED = 'rm -f "$(puppet config print localcacert)" "$(puppet config print hostcrl)"'
_CADIR = '"$(puppet config print cadir --section master)"'
# With an expired CRL the server refuses its own command too, so no certificate can be revoked, and no CRL made by that.
_WRITE_CRLS = f"`puppet-inspector fix new-crl --cadir {_CADIR} --execute`"
_OURS = {
    "crls": f"`puppet-inspector fix new-crl --cadir {_CADIR}`",
    "write_crls": _WRITE_CRLS,
    "check_ca": f"`puppet-inspector doctor --cadir {_CADIR}`",
}
"""The commands that are the same for every version."""
_TOGETHER = {
    # As the server cannot be verified, no command that asks it works: its certificate is made with the CA's key.
    "renew_master": (
        'see on the master when its certificate ends: `openssl x509 -noout -text -in "$(puppet config print '
        'hostcert)"`. Where the CA is on the same host: `systemctl stop puppetserver`; delete the certificate, its '
        "keys and the CA's copy: {drop_master}; make new ones with the same names: {make_master}; `systemctl start "
        "puppetserver`. Agents need nothing. Where the CA is on another host, enrol the master there as a new node, "
        "with its dns_alt_names"
    ),
    "enrol": "{clean} on the CA, {reset} on the node, then {sign} on the CA unless it autosigns",
    "enrol_ca": "{clean} on the CA, {reset_ca} on the node, then {sign} on the CA unless it autosigns",
    "signing": "On the CA compare the request that waits ({list}) with this agent's: {request}. If they are the same, "
    "sign it: {sign}. If they differ, another key's request waits: {clean} on the CA, `puppet agent -t` on the node, "
    "then {sign} on the CA unless it autosigns",
}


def fill(
    remedy: str, run: Run | None, *, name: str | None = None, host: str | None = None, old: bool | None = None
) -> str:
    """Replace the placeholders of a fix by the commands for a run's agent and master.

    Without a run, ``old`` says whether the fix is for agents up to version 5. If that is unknown, the fix contains the
    commands of both generations.
    """
    name = _plain(name or (run.certname if run else None), "<certname>")
    host = _plain(host or (run.server if run else None), "<server>")
    nodes = _Nodes(name, *_master(run, host))
    commands = _of_run(nodes, run) if run else _of_agents(nodes, old=old)
    return remedy.format_map({"name": name, "host": host} | _OURS | commands)


def _plain(name: str | None, otherwise: str) -> str:
    """Return the name if it is safe in a shell command: names come from the traffic, and users paste the commands."""
    return name if name and _PLAIN.fullmatch(name) else otherwise


class _Nodes(NamedTuple):
    """The names in the commands."""

    name: str
    """The agent's certname."""
    master: str
    """The master's certname."""
    alt_names: str
    """The names in the master's certificate, separated by commas."""


def _master(run: Run | None, host: str) -> tuple[str, str]:
    """Return a master's certname and its names, as in the certificate that was refused last."""
    chains = [handshake.leg.peer_chain for handshake in run.handshakes if handshake.leg.side == "master"] if run else []
    certificate = leaf(chains[-1]) if chains else None
    if certificate is None:
        return host, "<names>"
    pairs = [name.partition(":") for name in certificate.alt_names]
    names = [name for kind, _, name in pairs if kind == "DNS" and _PLAIN.fullmatch(name)]
    names += [f"IP:{name}" for kind, _, name in pairs if kind == "IP" and _ADDRESS.fullmatch(name)]
    master = _plain(certificate.common_name, host)
    return master, ",".join(names) or master


def _of_run(nodes: _Nodes, run: Run) -> dict[str, str]:
    master = _major(run.master_version) or (3 if run.dialect == "legacy" else 0)
    # Only OpenVox has a command for renewal; any other node enrols again.
    renews = run.generation in ("OpenVox 8", "9")
    commands = _ca(nodes, old=0 < master < 6) | _node(nodes.name, old=(0, 0) < run.major < (6, 0))
    if run.csrs and (fingerprint := run.csrs[-1].fingerprint):
        # After a refusal (400) the agent has saved no request whose fingerprint it could print.
        commands["request"] = f"fingerprint {fingerprint}"
    commands = _together(commands)
    return commands | {"renew": "`puppet ssl renew_cert`" if renews else commands["enrol"]}


def _of_agents(nodes: _Nodes, *, old: bool | None) -> dict[str, str]:
    """Commands without a run, by the agent's generation. A CA may be newer than its agents, but not older."""
    new = _together(_ca(nodes, old=False) | _node(nodes.name, old=False))
    if old is False:
        commands = new
    elif old:
        node = _node(nodes.name, old=True)
        commands = _either(
            _together(_ca(nodes, old=True) | node), _together(_ca(nodes, old=False) | node), "CA of version 6 and later"
        )
    else:
        commands = _either(new, _together(_ca(nodes, old=True) | _node(nodes.name, old=True)), "up to version 5")
    renew = (
        commands["enrol"] if old else f"with OpenVox `puppet ssl renew_cert` on the node, otherwise {commands['enrol']}"
    )
    return commands | {"renew": renew}


def _either(commands: dict[str, str], alternatives: dict[str, str], condition: str) -> dict[str, str]:
    def other(word: str) -> str:
        different = [
            command for command in regex.findall("`[^`]+`", alternatives[word]) if command not in commands[word]
        ]
        return ", ".join(different) if word in _TOGETHER else alternatives[word]

    return {
        word: command if alternatives[word] == command else f"{command} ({condition}: {other(word)})"
        for word, command in commands.items()
    }


def _together(commands: dict[str, str]) -> dict[str, str]:
    """Add the steps for CA and node in the order that works: before the CA is cleaned, it refuses the node."""
    return commands | {word: steps.format_map(commands) for word, steps in _TOGETHER.items()}


def _ca(nodes: _Nodes, *, old: bool) -> dict[str, str]:
    name, master, names = nodes
    if old:
        return {
            "list": "`puppet cert list --all`",
            "sign": f"`puppet cert sign {name}`",
            "clean": f"`puppet cert clean {name}`",
            # The Ruby CA works on its files directly, and a revocation recreates the CRL.
            "new_crl": "`puppet cert generate crl-renewal; puppet cert clean crl-renewal`",
            "drop_master": f"`puppet cert clean {master}`",
            "make_master": f"`puppet cert generate {master} --dns_alt_names={names}`",
            "alt_names": f"`puppet cert --allow-dns-alt-names sign {name}`",
        }
    sign = f"`puppetserver ca sign --certname {name}`"
    return {
        "list": "`puppetserver ca list --all`",
        "sign": sign,
        "clean": f"`puppetserver ca clean --certname {name}`",
        "new_crl": _WRITE_CRLS,
        "drop_master": f'`find "$(puppet config print ssldir)" -name {master}.pem -delete`, '
        f'`rm -f "$(puppet config print signeddir --section master)/{master}.pem"`',
        "make_master": f"`puppetserver ca generate --certname {master} --subject-alt-names {names} --ca-client`",
        "alt_names": f"`allow-subject-alt-names: true` in the CA's ca.conf, restart the server, {sign}",
    }


def _node(name: str, *, old: bool) -> dict[str, str]:
    own = "`puppet agent --fingerprint`"
    commands = {"fingerprint": own, "request": f"{own} on the node", "trust_anew": f"`{_TRUSTED}; {_AGAIN}`"}
    if old:
        reset = f'find "$(puppet config print ssldir)" -name {name}.pem -delete'
        return commands | {
            "reset": f"`{reset}; {_AGAIN}`",
            "reset_ca": f"`{reset}; {_TRUSTED}; {_AGAIN}`",
            "verify": '`openssl verify -CAfile "$(puppet config print localcacert)" "$(puppet config print hostcert)"`',
        }
    return commands | {
        "reset": f"`puppet ssl clean; {_AGAIN}`",
        "reset_ca": f"`puppet ssl clean --localca; {_AGAIN}`",
        "verify": "`puppet ssl verify`",
    }


def _major(version: str | None) -> int:
    number = (version or "").partition(".")[0]
    return int(number[:9]) if number.isdecimal() else 0
