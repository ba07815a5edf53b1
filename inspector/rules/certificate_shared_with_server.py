from inspector.model import Leg
from inspector.rules.kit import *
from inspector.rules.trust import leaf


def _to_master() -> Leg:
    return Leg(id="to-master", side="master", peer_chain=carried(made(MASTER)))


@rule(
    "T25",
    Severity.NOTICE,
    opening=True,
    title="the agent on the master's host shares its certificate with the server",
    fix=(
        advice("nothing is wrong; before this certificate is cleaned or renewed, see who else uses it"),
        on_master("see where PuppetDB has a copy",
                  "grep -rs ssl-cert /etc/puppetlabs/puppetdb/conf.d /etc/puppetdb/conf.d"),
        on_master("restart the server afterwards", "systemctl restart puppetserver"),
        on_master("give PuppetDB the new one, and restart it", "puppetdb ssl-setup -f; systemctl restart puppetdb",
                  only_if="PuppetDB is on the same host", destroys="the copies that PuppetDB has"),
    ),
    source="docs/protocol.md#issued-certificates",
    good=lambda: [talk(altered(catalog(), master=_to_master()), report())],
    bad=lambda: [
        talk(*(altered(part, leg={"peer_chain": carried(made(MASTER))}, master=_to_master())
               for part in (catalog(), report())), certname=MASTER),
    ],
)  # fmt: skip
def certificate_shared_with_server(case: ExchangeCase) -> Iterator[Statement]:
    """The master presents the same certificate as the agent of its own host: that is how it is installed. Cleaning or
    renewing this node's certificate therefore changes the server's as well, and PuppetDB's if it has a copy: until
    they are restarted with the new one, every agent is concerned."""
    exchange = case.exchange
    if exchange.master is None or not exchange.agent.peer_chain:
        return
    if exchange.agent.peer_chain[:1] == exchange.master.peer_chain[:1] and (own := leaf(exchange.agent.peer_chain)):
        yield Statement(
            brief(f"the certificate of the agent {own.common_name} is also the one that the master presents"),
            at=places.tls("presented by the master"),
        )
