"""T07."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import x509
from inspector.rules import On, places, rule
from inspector.rules.cases import HandshakeCase, Statement
from inspector.rules.trust import leaf
from inspector.rules.words import brief, some
from inspector.runs.examples import MASTER, carried, catalog, made, refused, report, talk

_SAYS_SO = ("bad_certificate", "certificate_unknown", "handshake_failure", "close_notify", None)

_REASON = f"Server hostname '{MASTER}' did not match server certificate; expected one of DNS:other.example"


@rule(
    "T07",
    Severity.ERROR,
    On.HANDSHAKE,
    visible=Visible.HANDSHAKE,
    title="the master's name is not in its certificate",
    remedy="Let the agent use a name for the master that the message lists: `puppet config set server <name> "
    "--section agent` on the node. Or add the name that the agent uses to the certificate: `dns_alt_names` on the "
    "master's host, then a new certificate for it.",
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/error.rb",
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
        names = some([name.partition(":")[2] for name in server.alt_names] or [server.subject])
        yield Statement(
            brief(f"the agent connected to '{leg.sni}'; the certificate presented to it is for {names}"),
            at=places.tls(f"SNI: {leg.sni}"),
        )
