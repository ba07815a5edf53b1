from inspector.rules.kit import *
from inspector.rules.trust import serial


def _again() -> list[ExamplePart]:
    leg = {"id": "later", "peer_chain": carried(made(serial=77))}
    return [altered(part, leg=leg) for part in (catalog(uuid="a-2"), report(uuid="a-2"))]


@rule(
    "T17",
    Severity.WARNING,
    opening=True,
    title="certificate changed without a recorded download",
    fix=(
        on_ca("see when it was issued, also in inventory.txt in the cadir", "{list}"),
        group("enrol", only_if="the certificate was neither copied by hand nor downloaded without this proxy"),
    ),
    source="docs/protocol.md#certificate-download; docs/protocol.md#renewal",
    good=lambda: [talk(catalog(), report(), wait(1800), issued(made=made(serial=77)), *_again()), talk(*_again())],
    bad=lambda: [talk(catalog(), report(), wait(1800), *_again())],
)
def certificate_changed(case: ExchangeCase) -> Iterator[Statement]:
    """The node presents a different certificate than before, and this capture contains neither a download nor a renewal
    of it. It was copied by hand, or downloaded without passing through this proxy; or another host uses this name."""
    client = case.step.client
    if client is None or not client.common_name:
        return
    history = case.ledger.known(client.common_name)
    previous = history.presented
    if previous is None or previous.certificate is client or previous.certificate.der == client.der:
        return
    if any(entry and entry.certificate.der == client.der for entry in (history.issued, history.renewed)):
        return
    request = history.csrs.get(client.key)
    if request and request.last_seq > previous.last_seq:
        return
    key = "the same key" if client.key == previous.certificate.key else "another key"
    words = (
        f"{client.common_name} presents the certificate {serial(client)}, with {key}; "
        f"until {utc(previous.last_time)} it presented {serial(previous.certificate)}"
    )
    yield Statement(
        brief(words),
        (previous.last_seq, case.exchange.seq),
        at=(places.tls(f"({client.serial})"), places.tls(f"({previous.certificate.serial})")),
    )
