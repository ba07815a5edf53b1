from inspector.rules.kit import *


@rule(
    "T04",
    Severity.ERROR,
    at=(Kind.NODE, Kind.CATALOG, Kind.FACTS, Kind.REPORT),
    otherwise="warning if the master answers",
    title="request in another node's name",
    fix=(
        on_node("see its names", "puppet config print certname node_name_value --section agent"),
        on_node("give it the name in its certificate, and do not set `node_name_value`",
                "puppet config set certname {name} --section main"),
        on_node("enrol with another name, after setting it", "{reset}", only_if="it is to have another name",
                destroys="its key and its certificate"),
        advice("find out who has this certificate", only_if="a client tried to read another node's data"),
    ),
    source="docs/protocol.md#default-rules; puppetserver 7.9.5 ezbake/config/conf.d/auth.conf",
    explains=("S02",),
    without_catalog=NO_CATALOG_NO_REPORT,
    good=lambda: [
        talk(node(), plugins(), catalog(), report()),
        talk(asked("node/NODE1.example", {"name": "node1.example"})),
    ],
    bad=lambda: [
        talk(asked("node/node2.example", b"Forbidden request: /puppet/v3/node/node2.example", status=403,
                   media="text/plain")),
        talk(asked("node/node2.example", {"name": "node2.example"})),
    ],
)  # fmt: skip
def certname_of_another_node(case: ExchangeCase) -> Iterator[Statement]:
    """The certificate is for one name, the request is about another. Masters refuse that: each node may only request
    its own data. Either the node's certname was changed after it got its certificate, or a client is trying to read
    another node's data. A master that answers has a customised auth.conf."""
    client, match, status = case.step.client, case.step.match, case.status
    if client is None or match is None or match.certname is None or status is None:
        return
    presented = client.common_name or ""
    if presented.lower() == match.certname.lower():
        return
    target = brief(f"{match.endpoint.name} of {match.certname}")
    if status < 400 or status in (401, 403):
        answer, severity = (", and the master answers", Severity.WARNING) if status < 400 else (" and is refused", None)
        yield Statement(f"{brief(presented)} requests {target}{answer}", severity=severity, at=places.REQUEST_LINE)
