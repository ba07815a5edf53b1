"""B37."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.rules import Case, On, rule
from inspector.rules.words import brief
from inspector.runs.examples import catalog, renewal, report, talk


@rule(
    "B37",
    Severity.ERROR,
    On.EXCHANGE,
    at=("renewal",),
    visible=Visible.WIRE,
    title="renewed certificate for another key",
    remedy="Find out who answered: no CA does this. Compare {fingerprint} on the node with {list} on the CA.",
    source="docs/protocol.md#renewal",
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [talk(renewal(key="other"), catalog(), report(), version="8.10.0", master_version="8.10.0")],
)
def renewal_with_another_key(case: Case) -> Iterator[str]:
    """The certificate that came back from the renewal is for another key than the agent's. A CA signs the key that
    it is shown; the agent can't use this one. Something in between answered, or shows the CA another client."""
    given, client = case.step.response, case.step.client
    if isinstance(given, d.Certificates) and client and given.certificates[0].key != client.key:
        got = given.certificates[0]
        yield brief(
            f"the renewed certificate is for the key {got.key[:16]}…, {client.common_name} has {client.key[:16]}…"
        )
