"""B08, B09 and S17: CRLs that the master does not have or does not give."""

from inspector.rules.kit import *


@rule(
    "B08",
    Severity.ERROR,
    at=(Kind.CRL,),
    refused=True,
    otherwise="warning for agents up to 6.3",
    title="the master has no CRL",
    fix=(
        on_ca("see whether ca_crl.pem is there and what it contains", "{crls}"),
        on_ca("restart it", "systemctl restart puppetserver", only_if="nothing is missing"),
        on_ca("restore it from the CA's backup", only_if="the file is missing, and there is a backup"),
        on_ca(
            "make a new one; certificates that were revoked are accepted again",
            "{write_crls}",
            only_if="the file is missing, and there is no backup",
        ),
        on_ca(
            "let that CA issue the list, and pass its file to the same command with `--add`",
            only_if="the CA is external",
        ),
    ),
    instead=at_openvox_ca(
        on_ca("see whether ca_crl.pem is there and what it contains", "{crls}"),
        on_ca("restore it from the CA's backup", only_if="the file is missing, and there is a backup"),
        on_ca(
            "restart it, then it makes a new one; certificates that were revoked are accepted again",
            "systemctl restart openvox-ca",
            only_if="the file is missing, and there is no backup",
        ),
    ),
    source="docs/protocol.md#crl-download; puppet 5.5.22 lib/puppet/ssl/host.rb; "
    "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(status=404)), talk(ca(), crl(status=404), csr(), version="5.5.22")],
)
def crl_not_found(case: ExchangeCase) -> Iterator[Statement]:
    """The master answered 404 for the CRL. A new agent cannot complete its bootstrap; an older agent runs, but would
    accept revoked certificates."""
    if case.status != 404 or case.run.tool or NO_ENVIRONMENT in case.answer:  # a tool's request, R09
        return
    old = case.run.old_engine
    then = "continues without checking revocation" if old else "stops with 'CRL is missing from the server'"
    yield Statement(f"the master has no CRL: the agent {then}", severity=Severity.WARNING if old else None)


@rule(
    "B09",
    Severity.ERROR,
    at=(Kind.CRL,),
    refused=True,
    otherwise="warning for an agent that only refreshes its CRL",
    title="the master refuses to serve its CRL",
    fix=(
        on_master(
            "allow GET on /puppet-ca/v1/certificate_revocation_list/ca without a certificate in its auth.conf, which "
            "is puppetserver's default"
        ),
        on_master("restart it", "systemctl restart puppetserver"),
    ),
    source="docs/protocol.md#the-crl-of-a-ca-in-ruby; docs/protocol.md#crl-download",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(status=403)), talk(ca(), crl(status=401))],
)
def crl_denied(case: ExchangeCase) -> Iterator[Statement]:
    """The master forbids the download of the CRL. A new agent has no certificate yet to authenticate with, and stops;
    an agent that only refreshes its CRL keeps the old one until that expires."""
    if case.status not in (401, 403):
        return
    refreshes = case.exchange.request.header("if-modified-since")
    if refreshes:
        then = ": the agent keeps its current one"
    elif case.exchange.agent.peer_chain:
        then = ": the agent stops"
    else:
        then = " to an agent that has no certificate yet: it stops"
    yield Statement(
        f"the master refuses the CRL with {case.status}{then}", severity=Severity.WARNING if refreshes else None
    )


@rule(
    "S17",
    Severity.ERROR,
    at=(Kind.CRL,),
    generations=SINCE_6,
    refused=True,
    title="the CA serves its CRL only to agents that have a certificate",
    fix=(
        on_ca(
            "let everybody read the CRL in auth.conf: `path /puppet-ca/v1/certificate_revocation_list/ca`, `method "
            "find`, `auth any`, `allow *`"
        ),
        on_ca("or upgrade it to Puppet Server 5.3 or later, which allows it by default"),
    ),
    source="docs/protocol.md#the-crl-of-a-ca-in-ruby",
    explains=("B09",),
    good=lambda: [talk(ca(), crl(), csr(), issued(), plugins(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(status=403))],
)
def crl_needs_certificate(case: ExchangeCase) -> Iterator[Statement]:
    """Agents of version 6.0 and later download the CRL before they request a certificate. A CA that runs on a Ruby
    master, or with auth.conf rules of that time, refuses the download, and no new agent can be enrolled."""
    if case.status in (401, 403) and not case.exchange.agent.peer_chain:
        yield Statement(f"the CRL was refused with {case.status} to an agent without a certificate: it cannot enrol")
