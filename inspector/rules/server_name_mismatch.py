"""T07 and T24: names for the master that its certificate does not have."""

from inspector.protocol import x509
from inspector.rules.kit import *
from inspector.rules.puppet_commands import safe_name
from inspector.rules.trust import leaf

_SAYS_SO = ("bad_certificate", "certificate_unknown", "handshake_failure", "close_notify", None)

_REASON = f"Server hostname '{MASTER}' did not match server certificate; expected one of DNS:other.example"


def _fix_of_node(name: str) -> Fix:
    """Return the fix for an agent, with a name that the master's certificate has."""
    return (
        on_node("see whether this name, which is in the certificate, leads to the master", f"getent hosts {name}"),
        on_node("let the agent use a name for the master that is in the certificate (an entry in [agent] counts more "
                "than one in [main])", f"puppet config set server {name} --section agent"),
        on_node("see whether other settings name the master; they count more",
                "puppet config print server_list ca_server report_server --section agent"),
        on_master("add the name that the agent uses to the certificate: set dns_alt_names, then make a new certificate",
                  only_if="the agent is to use its name"),
    )  # fmt: skip


def _fix_of_proxy(name: str) -> Fix:
    """Return the fix for a proxy, which takes the name from its host's puppet.conf, as the agent with `run` does."""
    return (
        on_proxy("see whether this name, which is in the certificate, leads to the master", f"getent hosts {name}"),
        on_proxy("let its host use that name for the master, with `run` the node",
                 f"puppet config set server {name} --section agent"),
        on_proxy("correct it there, and start the proxy anew",
                 only_if="it was started with `--master` or puppet_master"),
        on_master("add the name that the proxy uses to the certificate: set dns_alt_names, then make a new certificate",
                  only_if="the proxy is to use its name"),
    )  # fmt: skip


def _names(certificate: d.Certificate) -> list[str]:
    """Return each name that a certificate has, once; its subject if it has none."""
    return list(dict.fromkeys(name.partition(":")[2] for name in certificate.alt_names)) or [certificate.subject]


def _name_in(certificate: d.Certificate | None) -> str:
    """Return a name of a certificate that can be pasted into a command: the master's certname, which its own host has,
    rather than an alias."""
    names = [name.partition(":")[2] for name in certificate.alt_names] if certificate else []
    own = (certificate.common_name or "") if certificate else ""
    names = [own, *names] if own in names or not names else names
    return next((safe for name in names if (safe := safe_name(name, ""))), "<name>")


def _fix(run: Run) -> Fix | None:
    """Return the fix for a run whose last refused handshake shows a certificate."""
    for handshake in reversed(run.handshakes):
        leg = handshake.leg
        if chain := leg.peer_chain if leg.side == "master" else leg.own_chain:
            return (_fix_of_proxy if leg.side == "master" else _fix_of_node)(_name_in(leaf(chain)))
    return None


@rule(
    "T07",
    Severity.ERROR,
    visible=Visible.HANDSHAKE,
    title="the master's name is not in its certificate",
    fix=_fix_of_node("<name>"),
    instead=_fix,
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/error.rb",
    explains=("T08", "T09"),
    good=lambda: [talk(catalog(), report()), talk(refused("handshake_failure"))],
    bad=lambda: [
        talk(refused("bad_certificate", leg={"sni": "puppet.wrong.example"})),
        talk(refused(None, by="proxy", reason=_REASON,
                     leg={"side": "master", "peer_chain": carried(made("other.example")), "own_chain": ()})),
    ],
)  # fmt: skip
def server_name_mismatch(case: HandshakeCase) -> Iterator[Statement]:
    """The agent used a name for the master that is not among the names in the presented certificate, and closed the
    connection: it cannot verify which server it reached. Its `server` setting is wrong or too short, or the certificate
    lacks a name. The same applies to the name that this proxy uses for the master."""
    handshake = case.handshake
    leg = handshake.leg
    if leg.side == "master":
        if "did not match server certificate" in handshake.reason and handshake.alert_by != "master":
            yield Statement(brief(f"the proxy refuses the master: {handshake.reason}"), at=places.REFUSAL)
        return
    server = leaf(leg.own_chain)
    if server is None or not leg.sni or handshake.alert_by not in ("agent", None) or handshake.alert not in _SAYS_SO:
        return
    if not x509.names_match(server, leg.sni):
        names = some(_names(server))
        yield Statement(
            brief(f"the agent connected to '{leg.sni}'; the certificate presented to it is for {names}"),
            at=places.tls(f"SNI: {leg.sni}"),
        )


_WRONG = {"sni": "puppet.wrong.example"}
_HOST = {"Host": "puppet.wrong.example:8140"}


def _presented(run: Run) -> d.Certificate | None:
    """Return what the agent was presented; where a proxy of another kind recorded, the master's own certificate."""
    shown = run.presented or run.certificate_of_master
    return leaf([shown]) if shown else None


def _fix_of_presented(run: Run) -> Fix | None:
    certificate = _presented(run)
    return _fix_of_node(_name_in(certificate)) if certificate else None


@rule(
    "T24",
    Severity.ERROR,
    visible=Visible.CONSEQUENCE,
    title="the agent stopped, and the master's name is not in its certificate",
    fix=_fix_of_node("<name>"),
    instead=_fix_of_presented,
    source="docs/protocol.md#verification-by-agents; docs/protocol.md#bootstrap-up-to-5",
    explains=("B23",),
    good=lambda: [
        talk(altered(ca(), leg=_WRONG), crl(), csr(), issued(), catalog(), report()),
        talk(altered(ca(), leg=_WRONG), altered(not_issued(), leg=_WRONG), version="5.5.22"),
    ],
    bad=lambda: [
        talk(altered(ca(), leg=_WRONG)),
        talk(*(altered(part, headers=_HOST, leg={"sni": None}) for part in (ca(), csr(), issued())), version="5.5.22"),
    ],
    also=("B45",),
)
def stopped_at_another_name(case: RunCase) -> Iterator[Statement]:
    """The agent downloaded what it gets without verifying the master, and stopped when it had to verify it. It called
    the master by a name that is not among the names in the certificate presented to it. Agents that verify the name
    only after the handshake close the connection without an alert; imported files do not contain alerts at all."""
    run = case.run
    server = _presented(run)
    if run.outcome != "unfinished" or not run.bootstrapping or run.handshakes or not run.server or server is None:
        return
    # Up to 6.3 an agent verifies nothing before it has its certificate; later ones verify after the CA's download.
    verified = run.certificate is not None if run.old_engine else bool(run.cas and not run.csrs and not run.crls)
    if verified and not x509.names_match(server, run.server):
        names = some(_names(server))
        yield Statement(
            brief(f"the agent called the master '{run.server}' and stopped; its certificate is for {names}"),
            at=(places.tls(f"SNI: {run.server}"), places.tls("presented to the agent"), places.REQUEST_LINE),
        )
