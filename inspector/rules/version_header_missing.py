from inspector.rules.kit import *

ABSENT = {"X-Puppet-Version": None}


@rule(
    "S11",
    Severity.WARNING,
    at=RUN,
    title="answer without X-Puppet-Version",
    fix=(
        advice("let the devices between master and agent pass the header X-Puppet-Version"),
        on_master("upgrade it: it does not send the header", only_if="the master is older than 3.3.1"),
    ),
    source="docs/protocol.md#x-puppet-version-of-the-master; docs/protocol.md#reports-as-yaml",
    explains=("P08",),
    good=lambda: [
        talk(plugins(), catalog(), report()),
        # The CA may be an openvox-ca, which sends none.
        talk(*map(of_openvox_ca, (ca(), crl(), csr(), issued())), plugins(), catalog(), report()),
        talk(
            altered(plugins(), answers=ABSENT),
            altered(catalog(), answers=ABSENT),
            altered(report(), answers=ABSENT),
            version="2.7.26",
        ),
    ],
    bad=lambda: [talk(altered(plugins(), answers=ABSENT), catalog(), report())],
)
def version_header_missing(case: ExchangeCase) -> Iterator[Statement]:
    """Every master from 3.3.1 on sends its version with each answer. If it is missing, something in between removed it.
    Agents of 3.3 to 3.8 assume that such a master is old and send YAML; later ones skip translations. Answers of a CA
    do not count: agents do not look for it there, and not every CA sends it."""
    response = case.exchange.response
    if response is None or response.status != 200 or response.header("x-puppet-version") is not None:
        return
    if (0, 0) < case.run.major < (3, 3):  # their masters may be that old
        return
    yield Statement("the master's answers do not contain X-Puppet-Version", at=places.STATUS)
