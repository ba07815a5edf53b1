from inspector.rules.environment_not_found import ABSENT
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
    source="docs/protocol.md#crl-download; puppet 5.5.22 lib/puppet/ssl/host.rb; "
    "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(status=404)), talk(ca(), crl(status=404), csr(), version="5.5.22")],
    also=("B01", "B03"),
)
def crl_not_found(case: ExchangeCase) -> Iterator[Statement]:
    """The master answered 404 for the CRL. A new agent cannot complete its bootstrap; an older agent runs, but would
    accept revoked certificates."""
    if case.status != 404 or case.run.tool or ABSENT in case.answer:  # a tool's request, R09
        return
    if case.run.old_engine:
        yield Statement(
            "the master has no CRL: the agent continues without checking revocation", severity=Severity.WARNING
        )
    else:
        yield Statement("the master has no CRL: the agent stops with 'CRL is missing from the server'")
