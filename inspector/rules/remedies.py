"""Fill the exact commands for a run's agent and master into a fix (docs/protocol.md#commands-by-generation).

Placeholders for commands on the CA: ``{sign}``, ``{clean}``, ``{list}``, ``{alt_names}`` (sign with alternative
names), ``{new_crl}`` and ``{crls}`` (show each CRL). On the node: ``{reset}`` (delete key and certificate),
``{reset_ca}`` (the CA and its CRLs as well), ``{trust_anew}`` (only the CA and its CRLs), ``{verify}`` and
``{fingerprint}``; ``{request}``: the fingerprint of the agent's request, from the traffic if it is there.
``{signing}``: how to sign it. On both, in the right order: ``{enrol}``, ``{enrol_ca}`` if the node's certificate was
issued by another CA, and ``{renew}``. ``{name}`` is the certname, ``{host}`` the master. Each placeholder becomes the
command of the versions of this run's master or agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex

if TYPE_CHECKING:
    from inspector.runs.run import Run

_PLAIN = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_AGAIN = "puppet agent -t"
_TRUSTED = 'rm -f "$(puppet config print localcacert)" "$(puppet config print hostcrl)"'
_CADIR = 'cd "$(puppet config print cadir --section master)"'
# With an expired CRL the server refuses its own command too, so no certificate can be revoked. Therefore sign the CRL
# again with the CA's key, in Puppet's own Ruby. The rest of the file, its owner and its mode do not change.
_NEW_CRL = (
    f"{_CADIR} && cp -p ca_crl.pem ca_crl.pem.old && "
    'PATH="$PATH:/opt/puppetlabs/puppet/bin" ruby -ropenssl -e \''
    'key = OpenSSL::PKey.read(File.read("ca_key.pem")); file = File.read("ca_crl.pem"); '
    "pem = file.scan(/-----BEGIN X509 CRL.*?END X509 CRL-----/m).find "
    "{ |each| OpenSSL::X509::CRL.new(each).verify(key) rescue false } "
    'or abort "No CRL in ca_crl.pem is of this CA."; '
    "crl = OpenSSL::X509::CRL.new(pem); "
    "crl.last_update, crl.next_update = Time.now - 60, Time.now + 5 * 365 * 86400; "
    'crl.extensions = crl.extensions.map { |each| each.oid != "crlNumber" ? each : '
    "OpenSSL::X509::Extension.new(each.oid, OpenSSL::ASN1::Integer(Integer(each.value) + 1)) }; "
    'crl.sign(key, OpenSSL::Digest.new("SHA256")); '
    'file[pem] = crl.to_pem.chomp; File.write("ca_crl.pem", file)\''
)
# openssl reads only the first CRL of a file.
_CRLS = (
    f'{_CADIR} && awk -v look="openssl crl -noout -issuer -crlnumber -lastupdate -nextupdate -CAfile ca_crt.pem" '
    "'/BEGIN X509 CRL/, /END X509 CRL/ { print | look } /END X509 CRL/ { close(look) }' ca_crl.pem"
)
_TOGETHER = {
    "enrol": "{clean} on the CA, {reset} on the node, then {sign} on the CA unless it autosigns",
    "enrol_ca": "{clean} on the CA, {reset_ca} on the node, then {sign} on the CA unless it autosigns",
    "signing": "On the CA compare the request that waits ({list}) with this agent's: {request}. If they are the same, "
    "sign it: {sign}. If they differ, another key's request waits: {clean} on the CA, then `puppet agent -t` on the "
    "node",
}


def fill(
    remedy: str, run: Run | None, *, name: str | None = None, host: str | None = None, old: bool | None = None
) -> str:
    """Replace the placeholders of a fix by the commands for a run's agent and master.

    Without a run, ``old`` says whether the fix is for agents up to version 5. If that is unknown, the fix contains the
    commands of both generations.
    """
    name, host = _plain(name or (run.certname if run else None), "<certname>"), _plain(host, "<server>")
    commands = _of_run(name, run) if run else _of_agents(name, old=old)
    return remedy.format_map({"name": name, "host": host} | commands)


def _plain(name: str | None, otherwise: str) -> str:
    """Return the name if it is safe in a shell command: names come from the traffic, and users paste the commands."""
    return name if name and _PLAIN.fullmatch(name) else otherwise


def _of_run(name: str, run: Run) -> dict[str, str]:
    master = _major(run.master_version) or (3 if run.dialect == "legacy" else 0)
    # Only OpenVox has a command for renewal; any other node enrols again.
    renews = run.generation in ("OpenVox 8", "9")
    commands = _ca(name, old=0 < master < 6) | _node(name, old=(0, 0) < run.major < (6, 0))
    if run.csrs and (fingerprint := run.csrs[-1].fingerprint):
        # After a refusal (400) the agent has saved no request whose fingerprint it could print.
        commands["request"] = f"fingerprint {fingerprint}"
    commands = _together(commands)
    return commands | {"renew": "`puppet ssl renew_cert`" if renews else commands["enrol"]}


def _of_agents(name: str, *, old: bool | None) -> dict[str, str]:
    """Commands without a run, by the agent's generation. A CA may be newer than its agents, but not older."""
    new = _together(_ca(name, old=False) | _node(name, old=False))
    if old is False:
        commands = new
    elif old:
        node = _node(name, old=True)
        commands = _either(
            _together(_ca(name, old=True) | node), _together(_ca(name, old=False) | node), "CA of version 6 and later"
        )
    else:
        commands = _either(new, _together(_ca(name, old=True) | _node(name, old=True)), "up to version 5")
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


def _ca(name: str, *, old: bool) -> dict[str, str]:
    if old:
        return {
            "list": "`puppet cert list --all`",
            "sign": f"`puppet cert sign {name}`",
            "clean": f"`puppet cert clean {name}`",
            # The Ruby CA works on its files directly, and a revocation recreates the CRL.
            "new_crl": "`puppet cert generate crl-renewal; puppet cert clean crl-renewal`",
            "crls": f"`{_CRLS}`",
            "alt_names": f"`puppet cert --allow-dns-alt-names sign {name}`",
        }
    sign = f"`puppetserver ca sign --certname {name}`"
    return {
        "list": "`puppetserver ca list --all`",
        "sign": sign,
        "clean": f"`puppetserver ca clean --certname {name}`",
        "new_crl": f"`{_NEW_CRL}`",
        "crls": f"`{_CRLS}`",
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
