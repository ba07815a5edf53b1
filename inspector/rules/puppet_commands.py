"""Fill the exact commands for a run's agent and master into a fix (docs/protocol.md#commands-by-generation).

Placeholders for commands on the CA: ``{sign}``, ``{clean}``, ``{list}``, ``{crls}`` (show each CRL of its file),
``{new_crl}`` (sign its own one anew), ``{write_crls}`` (the same, and add missing ones) and ``{check_ca}``. On the
node: ``{reset}`` (delete key and certificate), ``{reset_ca}`` (the CA and its CRLs as well), ``{trust_anew}`` (only the
CA and its CRLs), ``{new_crl_of_agent}`` (only its CRLs), ``{verify}`` and ``{fingerprint}``. Within a text:
``{request}``, the fingerprint of the agent's request, from the traffic if it is there; ``{name}``, the certname;
``{host}``, the master.

Groups of steps: ``{enrol}``, ``{enrol_ca}`` if the node's certificate was issued by another CA, ``{revoked}`` (enrol a
node whose certificate was revoked, or not), ``{renew}``, ``{compare}`` (the request that waits with the agent's),
``{signing}`` (compare, then sign), ``{resubmit}`` (the node keeps its key, and the CA takes its request instead of the
one that it has), ``{alt_names}`` (sign with alternative names), ``{renew_crl}`` (the CA's own CRL, up to the agents),
``{missing_crl}`` (the same for a CA of the chain without one), ``{renew_master}`` (replace the certificate of a master
that is also the CA), ``{compare_clocks}`` (of node and master) and ``{clocks}`` (the same, and set the wrong one).

Each placeholder becomes the command, or the steps, of the versions of this run's master or agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from inspector import regex
from inspector.protocol.ca_service import OPENVOX_CA, CaService
from inspector.rules.fixes import advice, on_ca, on_master, on_node
from inspector.rules.trust import leaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.protocol import documents as d
    from inspector.rules.fixes import Fix, Step
    from inspector.runs.run import Run

_PLAIN = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ADDRESS = regex.compile(r"[0-9A-Fa-f.:]+")
_GROUP = regex.compile(r"\{([a-z_]+)\}")
NAMES = 50
"""Maximum number of alternative names of a master that are stored."""
FORBIDDEN = r"Forbidden request\|global deny all"
"""What is in the line of puppetserver's log about a refused request; the name of the rule is at its end."""


def in_server_log(pattern: str) -> str:
    """Return the command that shows the last lines of puppetserver's log with a pattern, quoted for a shell.

    The log is below /var/log/puppetlabs, and of Debian's package in /var/log/puppetserver.
    """
    return f"grep -rhs --include=puppetserver.log {pattern} /var/log/puppet* | tail"


_AGAIN = "puppet agent -t"
_CADIR = '"$(puppet config print cadir --section master)"'
_TRUSTED = 'rm -f "$(puppet config print localcacert)" "$(puppet config print hostcrl)"'
_SSLDIR = '"$(puppet config print ssldir)"'
# With an expired CRL the server refuses its own command too, so no certificate can be revoked, and no CRL made by that.
_WRITE_CRLS = f"puppet-inspector fix new-crl --cadir {_CADIR} --execute"

_OURS = {
    "crls": f"puppet-inspector fix new-crl --cadir {_CADIR}",
    "write_crls": _WRITE_CRLS,
    "check_ca": f"puppet-inspector doctor --cadir {_CADIR}",
    "fingerprint": "puppet agent --fingerprint",
    "trust_anew": f"{_TRUSTED}; {_AGAIN}",
    "new_crl_of_agent": f'rm -f "$(puppet config print hostcrl)"; {_AGAIN}',
}
"""The commands that are the same for every version."""
_CA = {
    "list": "puppetserver ca list --all",
    "sign": "puppetserver ca sign --certname {name}",
    "clean": "puppetserver ca clean --certname {name}",
    "new_crl": _WRITE_CRLS,
    "make_master": "puppetserver ca generate --certname {master} --subject-alt-names {names} --ca-client",
}
_OLD_CA = {
    "list": "puppet cert list --all",
    "sign": "puppet cert sign {name}",
    "clean": "puppet cert clean {name}",
    # The Ruby CA works on its files directly, and a revocation recreates the CRL.
    "new_crl": "puppet cert generate crl-renewal; puppet cert clean crl-renewal",
    "make_master": "puppet cert generate {master} --dns_alt_names={names}",
}
OPENVOX_CADIR = "<its cadir>"
"""The blank for an openvox-ca's directory: it is not in puppet.conf."""
CADIRS = _CADIR, OPENVOX_CADIR
"""What stands for a CA's directory in commands; who knows its path can replace it."""
_OPENVOX_CA = {
    "list": "openvox-ca-ctl list --all",
    "sign": "openvox-ca-ctl sign --certname {name}",
    "clean": "openvox-ca-ctl clean --certname {name}",
    "new_crl": "openvox-ca-ctl reissue-crl",
    "crls": f"puppet-inspector doctor --cadir {OPENVOX_CADIR}",
    "write_crls": "openvox-ca-ctl reissue-crl",
    "check_ca": f"puppet-inspector doctor --cadir {OPENVOX_CADIR}",
    "make_master": "openvox-ca-ctl generate --certname {master} --dns {names}",
}
"""An openvox-ca has no `puppetserver ca`, and it keeps its CRL in memory: what others write into its files is
overwritten."""
_NODE = {
    "reset": f"puppet ssl clean; {_AGAIN}",
    "reset_ca": f"puppet ssl clean --localca; {_AGAIN}",
    "verify": "puppet ssl verify",
}
_OLD_NODE = {
    "reset": f"find {_SSLDIR} -name {{name}}.pem -delete; {_AGAIN}",
    "reset_ca": rf"find {_SSLDIR} -regex '.*/\({{name}}\|ca\|crl\).pem' -delete; {_AGAIN}",
    "verify": 'openssl verify -CAfile "$(puppet config print localcacert)" "$(puppet config print hostcert)"',
}

_CLEAN = on_ca(
    "remove its certificate and what waits to be signed", "{clean}", destroys="both, and revokes the certificate"
)
_SIGN = on_ca("sign its new request, unless the CA autosigns", "{sign}")
_PRINT = on_node("print the fingerprint of its request", "{fingerprint}")
_COMPARE = on_ca("compare the request that waits with this agent's, {request}", "{list}")
_COMPARE_CLOCKS = (on_node("compare its clock", "date -u"), on_master("compare its clock", "date -u"))
_SET_CLOCK = "let NTP set it, with chrony by `chronyc makestep`", "timedatectl set-ntp true"
_ENROL = (_CLEAN, on_node("enrol again", "{reset}", destroys="its key and its certificate"), _SIGN)
_RESUBMIT = (_CLEAN, on_node("send this node's request", _AGAIN), _SIGN)
# Before the CA is cleaned, it refuses the node: the order counts.
_GROUPS: dict[str, Fix] = {
    "enrol": _ENROL,
    "enrol_ca": (
        _CLEAN,
        on_node("enrol again", "{reset_ca}", destroys="its key, its certificate, the CA and its CRL"),
        _SIGN,
    ),
    "compare": (_COMPARE,),
    "compare_clocks": _COMPARE_CLOCKS,
    "clocks": (
        *_COMPARE_CLOCKS,
        on_node(*_SET_CLOCK, only_if="its clock is the wrong one"),
        on_master(*_SET_CLOCK, only_if="the master's clock is the wrong one"),
    ),
    "signing": (
        _COMPARE,
        on_ca("sign it", "{sign}", only_if="they are the same"),
        *(msgspec.structs.replace(step, only_if="they differ") for step in _RESUBMIT),
        on_ca("see in its log why it did not: a program that it cannot execute is read as a list of names",
              in_server_log("'autosign\\|Invalid pattern'"), only_if="the CA is to autosign"),
    ),
    "resubmit": _RESUBMIT,
    "alt_names": (
        advice("allow the names on the CA: `allow-subject-alt-names: true` in its ca.conf"),
        on_ca("restart it", "systemctl restart puppetserver"),
        on_ca("sign the request", "{sign}"),
    ),
    "renew_crl": (
        on_ca("look at each CRL", "{crls}"),
        on_ca("sign its own one anew", "{new_crl}"),
        on_ca("let that CA issue its list, and pass the file to the same command with `--add`",
              only_if="the message names an external CA"),
        on_master("restart it, if it is older than 5.1"),
        on_node("fetch it, on each that still has the old one", "{new_crl_of_agent}",
                destroys="the CRL that it has"),
    ),
    "missing_crl": (
        on_ca("see which CRL is missing", "{crls}"),
        on_ca("add the missing one", "{write_crls}"),
        on_ca("take that CA's CRL from the file that the command names: pass it with `--add`",
              only_if="the key of its CA is not there"),
        on_master("restart it, if it is older than 5.1"),
        on_node("fetch it, on each agent", "{new_crl_of_agent}", destroys="the old CRL"),
        on_node("check only the server's own certificate until then",
                "puppet config set certificate_revocation leaf --section agent",
                only_if="it cannot be issued now, and the agent is of version 5.3 or later"),
    ),
    "revoked": (
        advice("find out who revoked it, and why, before it gets another one"),
        *(msgspec.structs.replace(step, only_if="the node should continue to work") for step in _ENROL),
        on_node("stop its agent", only_if="the node was retired"),
    ),
    # As the server cannot be verified, no command that asks it works: its certificate is made with the CA's key.
    "renew_master": (
        on_master("see when its certificate ends", 'openssl x509 -noout -text -in "$(puppet config print hostcert)"'),
        on_master("stop it (where the CA is on the same host; otherwise enrol the master there as a new node, with its "
                  "dns_alt_names)", "systemctl stop puppetserver"),
        on_master("remove its certificate and keys", 'find "$(puppet config print ssldir)" -name {master}.pem -delete',
                  destroys="them for good"),
        on_master("remove the CA's copy of the certificate",
                  'rm -f "$(puppet config print signeddir --section master)/{master}.pem"',
                  destroys="it for good"),
        on_master("make new ones, with the same names", "{make_master}"),
        on_master("start it; agents need nothing", "systemctl start puppetserver"),
    ),
}  # fmt: skip
_OLD_GROUPS: dict[str, Fix] = {
    "alt_names": (on_ca("sign it with its names", "puppet cert --allow-dns-alt-names sign {name}"),),
    "renew_master": (
        _GROUPS["renew_master"][0],
        on_master("stop it", "systemctl stop puppetserver"),
        on_master("remove its certificate and keys", "puppet cert clean {master}",
                  destroys="them for good"),
        *_GROUPS["renew_master"][-2:],
    ),
}  # fmt: skip
"""Those that differ where the CA is of version 5 or earlier."""
_OPENVOX_COMPARE = on_ca(
    "compare the request that waits with this agent's, {request}",
    f"openssl req -in {OPENVOX_CADIR}/requests/{{name}}.pem -outform DER | openssl dgst -sha256 -c",
)
OPENVOX_GROUPS: dict[str, Fix] = {
    "compare": (_OPENVOX_COMPARE,),
    "signing": (
        _OPENVOX_COMPARE,
        *_GROUPS["signing"][1:-1],
        on_ca("see in its log why it did not", "journalctl -u openvox-ca | grep -i autosign | tail",
              only_if="the CA is to autosign"),
    ),
    "alt_names": (on_ca("sign the request: it signs alternative names as they are", "{sign}"),),
    "renew_crl": (
        on_ca("look at each CRL", "{crls}"),
        on_ca("sign its own one anew", "{new_crl}"),
        on_ca("import that CA's list, with `--crl-chain` of `openvox-ca-ctl import` and while the CA is stopped",
              only_if="the message names an external CA"),
        _GROUPS["renew_crl"][-1],
    ),
    "missing_crl": (
        on_ca("see which CRL is missing", "{crls}"),
        on_ca("import the lists of all CAs of its chain, with `--crl-chain` of `openvox-ca-ctl import` and while the "
              "CA is stopped"),
        *_GROUPS["missing_crl"][-2:],
    ),
    "renew_master": (
        _GROUPS["renew_master"][0],
        on_ca("start it for these commands without TLS, on a loopback address",
              only_if="the certificate is that of the CA's own server"),
        on_ca("remove the old certificate", "openvox-ca-ctl clean --certname {master}", destroys="it, and revokes it"),
        on_ca("make a key and a certificate, with the same names", "{make_master}"),
        on_master("put both in the old ones' place, and restart it"),
    ),
}  # fmt: skip
"""Those that differ where the CA is an openvox-ca."""


class FixContext(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The facts of a run that decide about the commands of a fix."""

    name: str | None = None
    """The certname."""
    host: str | None = None
    """The agent's name for the master."""
    master: str | None = None
    """The certname in the master's certificate that was refused last; None: none was."""
    names: tuple[str, ...] = ()
    """The alternative names in it."""
    fingerprint: str | None = None
    """Of the agent's latest signing request."""
    early_ca: bool | None = None
    early_node: bool | None = None
    """Whether the CA and the node are of version 5 or earlier; None: it is not known."""
    renews: bool | None = None
    """Whether the node has a command for renewal: only OpenVox has."""
    ca_service: CaService | None = None
    """The CA's program; None: one of Puppet's own, or it is not known."""

    @classmethod
    def of(cls, run: Run) -> FixContext:
        """Return the facts of a run."""
        refused = _refused_certificate(run)
        version = _major(run.master_version) or (3 if run.dialect == "legacy" else 0)
        return cls(
            run.certname, run.server, (refused.common_name or "") if refused else None,
            tuple(refused.alt_names[:NAMES]) if refused else (), run.csrs[-1].fingerprint if run.csrs else None,
            0 < version < 6, (0, 0) < run.major < (6, 0), run.generation in ("OpenVox 8", "9"), run.ca_service,
        )  # fmt: skip

    @classmethod
    def of_versions(
        cls, name: str, host: str | None, agent: str | None, master: str | None, ca_service: CaService | None
    ) -> FixContext:
        """Return what is known without a run of a node, its name for the master, and the versions of both."""
        node = _major(agent)
        renews = node > 8 or (node == 8 and _major((agent or "").partition(".")[2]) > 10)
        return cls(name, host, early_ca=0 < _major(master) < 6, early_node=0 < node < 6, renews=renews,
                   ca_service=ca_service)  # fmt: skip

    @classmethod
    def of_generation(cls, name: str | None = None, host: str | None = None, *, old: bool | None = None) -> FixContext:
        """Return what is known without a run: ``old`` says whether the fix is for agents up to version 5."""
        return cls(name, host, early_ca=None if old else old, early_node=old, renews=False if old else None)


UNKNOWN = FixContext()
"""Of no run: a fix contains the commands of all versions."""


def fill(steps: Iterable[Step], context: FixContext = UNKNOWN) -> Fix:
    """Replace the placeholders of a fix by the commands for an agent and its master.

    If a version is unknown, the steps contain the commands of both generations.
    """
    host = safe_name(context.host, "<server>")
    master = safe_name(context.master, host)
    names = ",".join(_safe_names(context.names)) or (master if context.master is not None else "<names>")
    request = f"fingerprint {context.fingerprint}" if context.fingerprint else "the fingerprint printed on the node"
    values = {"name": safe_name(context.name, "<certname>"), "host": host, "master": master, "names": names,
              "request": request}  # fmt: skip
    expanded = _expanded(steps, context, printed=not context.fingerprint)
    return tuple(_filled(step, context, values) for step in expanded)


def expanded(steps: Iterable[Step]) -> Fix:
    """Return the steps of a fix with those of its groups, unfilled."""
    return tuple(_expanded(steps, UNKNOWN, printed=True))


def destroying(steps: Iterable[Step]) -> bool:
    """Whether a fix, with the steps of its groups, deletes or revokes something."""
    return any(step.destroys for step in expanded(steps))


def safe_name(name: str | None, otherwise: str) -> str:
    """Return the name if it is safe in a shell command: names come from the traffic, and users paste the commands."""
    return name if name and _PLAIN.fullmatch(name) else otherwise


def _refused_certificate(run: Run) -> d.Certificate | None:
    """Return the master's certificate that was refused last."""
    chains = [handshake.leg.peer_chain for handshake in run.handshakes if handshake.leg.side == "master"]
    return leaf(chains[-1]) if chains else None


def _safe_names(names: Iterable[str]) -> Iterator[str]:
    """Yield alternative names as the CA's commands take them."""
    for kind, _, name in (name.partition(":") for name in names):
        if kind == "DNS" and _PLAIN.fullmatch(name):
            yield name
        elif kind == "IP" and _ADDRESS.fullmatch(name):
            yield f"IP:{name}"


def _major(version: str | None) -> int:
    number = (version or "").partition(".")[0]
    return int(number[:9]) if number.isdecimal() else 0


def _expanded(steps: Iterable[Step], context: FixContext, *, printed: bool) -> Iterator[Step]:
    """Yield the steps with those of groups in the groups' place, under the same condition.

    ``printed``: the fingerprint of the agent's request is not known from the traffic, so the node has to print it.
    """
    for step in steps:
        found = _GROUP.fullmatch(step.command)
        members = _group(found[1], context, printed=printed) if found else None
        if members is None:
            yield step
        for member in members or ():
            condition = ", and ".join(filter(None, (step.only_if, member.only_if)))
            yield msgspec.structs.replace(member, only_if=condition)


def _group(name: str, context: FixContext, *, printed: bool) -> Fix | None:
    # After a refusal (400) the agent has saved no request whose fingerprint it could print.
    if printed and name in ("compare", "signing"):
        return _PRINT, *(OPENVOX_GROUPS if context.ca_service == OPENVOX_CA else _GROUPS)[name]
    if name == "renew":
        renews = on_node("renew its certificate", "puppet ssl renew_cert")
        if context.renews is not None:
            return (renews,) if context.renews else _GROUPS["enrol"]
        other = (msgspec.structs.replace(step, only_if="the agent is not OpenVox") for step in _GROUPS["enrol"])
        return msgspec.structs.replace(renews, only_if="the agent is OpenVox"), *other
    if context.ca_service == OPENVOX_CA and name in OPENVOX_GROUPS:
        return OPENVOX_GROUPS[name]
    if name in _OLD_GROUPS and context.early_ca is not False:
        if context.early_ca:
            return _OLD_GROUPS[name]
        early = (
            msgspec.structs.replace(step, only_if="the CA is of version 5 or earlier") for step in _OLD_GROUPS[name]
        )
        return *_GROUPS[name], *early
    return _GROUPS.get(name)


def _filled(step: Step, context: FixContext, values: dict[str, str]) -> Step:
    command, variant, variant_for = _command(step.command, context)
    return msgspec.structs.replace(
        step,
        text=step.text.format_map(values),
        only_if=step.only_if.format_map(values),
        command=command.format_map(values),
        variant=variant.format_map(values),
        variant_for=variant_for,
    )


def _command(template: str, context: FixContext) -> tuple[str, str, str]:
    """Return a command with its placeholders for names only; the same for other versions, and which these are."""
    found = _GROUP.fullmatch(template)
    word = found[1] if found else ""
    if context.ca_service == OPENVOX_CA and word in _OPENVOX_CA:
        return _OPENVOX_CA[word], "", ""
    if word in _OURS:
        return _OURS[word], "", ""
    for new, early, old in ((_CA, _OLD_CA, context.early_ca), (_NODE, _OLD_NODE, context.early_node)):
        if word not in new:
            continue
        if old is not None or new[word] == early[word]:
            return (early if old else new)[word], "", ""
        # A CA may be newer than its agents, but not older.
        if context.early_node:
            return early[word], new[word], "with a CA of version 6 and later"
        return new[word], early[word], "up to version 5"
    return template, "", ""
