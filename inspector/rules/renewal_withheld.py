from inspector.model import Identity, Leg
from inspector.rules.kit import *
from inspector.rules.trust import signed_for_proxy

_WITHHELD = Identity("mint", reason="the CA would have signed the key of the identity that the proxy uses")
_MINTED = Leg("master#1", "master", own_chain=carried(made(key="other")))


@rule(
    "B49",
    Severity.NOTICE,
    at=(Kind.RENEWAL,),
    otherwise="error if the CA signed the key of the proxy's identity",
    title="renewal is not possible through this proxy",
    fix=(
        advice("nothing to do on node, master and CA: in a run without this proxy the agent renews its certificate"),
        on_proxy("let the proxy use the agents' own keys, if renewals are to pass: `puppet_identity=keys:DIR`"),
    ),
    source="docs/protocol.md#renewal",
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [
        talk(
            altered(renewal(status=404), identity=_WITHHELD), catalog(), report(),
            version="8.10.0", master_version="8.10.0",
        ),
        talk(
            altered(renewal(key="other"), identity=Identity("mint", "node1.example"), master=_MINTED),
            catalog(), report(), version="8.10.0", master_version="8.10.0",
        ),
    ],
)  # fmt: skip
def renewal_withheld(case: ExchangeCase) -> Iterator[Statement]:
    """A CA signs the key of the client certificate that it sees. Where the proxy uses an identity with another key than
    the agent's (puppet_identity=mint:), that is the proxy's key, and the agent could not use the renewed certificate.
    So the proxy answers the renewal itself, as a CA without renewal does; the agent keeps its certificate."""
    if case.exchange.withheld:
        yield Statement(
            brief(f"the proxy answered the renewal itself ({case.status}): {case.exchange.withheld}"), at=places.STATUS
        )
    elif signed_for_proxy(case):
        mode = case.exchange.identity.mode if case.exchange.identity else ""
        option = f" (puppet_identity={mode}:)" if mode in ("mint", "keys") else ""
        yield Statement(
            f"the CA renewed the certificate for the key of the identity that the proxy used{option}, not the agent's",
            severity=Severity.ERROR,
        )
