from inspector.rules.kit import *


@rule(
    "R15",
    Severity.NOTICE,
    at=(Kind.CATALOG,),
    generations=SINCE_8,
    title="legacy facts are still sent",
    fix=(
        advice("see that no manifest and no Hiera file uses them any more: puppet-lint's legacy_facts check finds "
               "them"),
        on_node("send them no more", "puppet config set include_legacy_facts false --section agent"),
    ),
    source="docs/protocol.md#legacy-facts",
    good=lambda: [
        talk(plugins(), catalog(facts={"uuid": "of our own"}), report(), version="8.10.0", master_version="8.10.0"),
    ],
    bad=lambda: [
        talk(
            plugins(),
            catalog(facts={"osfamily": "Debian", "operatingsystem": "Debian", "ipaddress_eth0": "192.0.2.7"}),
            report(), version="8.10.0", master_version="8.10.0",
        ),
    ],
)  # fmt: skip
def legacy_facts(case: ExchangeCase, *, least: float = 3) -> Iterator[Statement]:
    """This agent is configured to send the old flat facts (osfamily, ipaddress_eth0) in addition to the structured
    ones. They make requests and PuppetDB larger; manifests that use them keep working, which may be why it is
    configured."""
    request = case.step.request
    if not isinstance(request, d.CatalogRequest) or not isinstance(request.facts, d.Facts) or case.run.tool:
        return
    legacy = request.facts.legacy
    if len(legacy) >= least:
        yield Statement(
            f"{len(legacy)} legacy facts, including {some(sorted(legacy))}",
            at=places.meaning(f"{min(legacy)}: ", "facts"),
        )
