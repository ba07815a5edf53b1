"""B36, B37 and B49: renewals that gave no usable certificate."""

from inspector.model import Identity, Leg
from inspector.rules.kit import *
from inspector.rules.trust import signed_for_proxy, without_identity


@rule(
    "B36",
    Severity.WARNING,
    at=(Kind.RENEWAL,),
    refused=True,
    otherwise="notice if the CA does not renew certificates (404, or 403 before version 8) and the old one is valid "
    "for longer",
    title="renewal refused",
    fix=(
        on_ca("turn renewal on: `allow-auto-renewal: true` in the CA's ca.conf, then restart the server",
              only_if="it answered 404"),
        advice("let the device between agent and CA that terminates TLS pass on the client certificate",
               only_if="it answered 400"),
        on_ca("read its log of that time: the certificate is of another CA, or auth.conf does not allow "
              "/puppet-ca/v1/certificate_renewal", only_if="it answered 403 and is of version 8 or later"),
        group("enrol", only_if="the CA cannot renew, and the certificate is about to expire"),
    ),
    instead=at_openvox_ca(
        on_ca("see in its log why", "journalctl -u openvox-ca | grep -i renew | tail", only_if="it answered 403"),
        group("enrol", only_if="its key is too weak (422), or it was revoked and is meant to come back"),
        advice("nothing to do: the agent asks again in its next run", only_if="it answered 503"),
    ),
    source="docs/protocol.md#endpoint-renewal; docs/protocol.md#renewal; docs/protocol.md#openvox-ca",
    explains=("B34",),
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [
        talk(renewal(status=404), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(
            *(
                altered(part, leg={"peer_chain": carried(made(starts=-1000 * DAY, ends=20 * DAY))})
                for part in (renewal(status=404), catalog(), report())
            ),
            version="8.10.0",
            master_version="8.10.0",
        ),
        talk(renewal(status=403), catalog(), report(), version="8.10.0"),
        talk(renewal(status=403), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(renewal(status=400), catalog(), report(), version="8.10.0", master_version="8.10.0"),
        talk(of_openvox_ca(renewal(status=403), "access denied"), catalog(), report(), version="8.10.0"),
    ],
)  # fmt: skip
def renewal_refused(case: ExchangeCase, *, days: float = 30) -> Iterator[Statement]:
    """The agent requested a new certificate before its own expires, and did not get one. It continues with the old one
    until that expires. A CA older than version 8 cannot renew, and a CA where renewal is disabled answers 404: both are
    the site's choice."""
    if case.exchange.withheld or without_identity(case.exchange):
        return  # the proxy is the reason: B49, T23
    status = case.status
    version = case.exchange.response.header("x-puppet-version") if case.exchange.response else None
    ending, severity = _ending(case, days), Severity.NOTICE
    if ending:
        severity = Severity.WARNING
    if status == 404:
        yield Statement(f"the CA does not renew certificates (404): auto-renewal is off{ending}", severity=severity)
    elif status == 403 and not case.run.ca_service and 0 < major(version or case.run.master_version) < 8:
        yield Statement(f"the CA does not renew certificates (403): it is older than 8{ending}", severity=severity)
    elif status == 400:
        yield Statement("the CA refuses to renew (400): it did not receive the agent's certificate")
    else:
        yield Statement(f"the CA refuses to renew ({status}): {brief(case.answer) or 'no reason given'}")


def _ending(case: ExchangeCase, days: float) -> str:
    """Return when the agent's certificate ends, if it is soon; else nothing. The agent itself logs no error."""
    client = case.step.client
    if client is None or client.not_after - case.exchange.time >= days * DAY:
        return ""
    return f", and the node's certificate expires on {utc(client.not_after)}"


@rule(
    "B37",
    Severity.ERROR,
    at=(Kind.RENEWAL,),
    title="renewed certificate belongs to another key",
    fix=(
        on_node("print the fingerprint", "{fingerprint}"),
        on_ca("compare it with that of the certificate there", "{list}"),
        advice("find out which server answered: a CA does not do this"),
    ),
    source="docs/protocol.md#renewal",
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [talk(renewal(key="other"), catalog(), report(), version="8.10.0", master_version="8.10.0")],
)
def renewal_with_another_key(case: ExchangeCase) -> Iterator[Statement]:
    """The certificate returned by the renewal belongs to a different key than the agent's. A CA signs the key that the
    client presents; the agent cannot use this certificate. A device in between answered, or presents a different client
    to the CA."""
    answer, client = case.step.response, case.step.client
    if signed_for_proxy(case):
        return  # B49
    if isinstance(answer, d.Certificates) and client and answer.certificates[0].key != client.key:
        certificate = answer.certificates[0]
        yield Statement(
            brief(
                f"the renewed certificate is for the key {certificate.key[:16]}…, "
                f"{client.common_name} has {client.key[:16]}…"
            ),
            at=places.certificate(certificate.key),
        )


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
