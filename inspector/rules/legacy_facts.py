"""R15 and S30: legacy facts that are sent, or missing."""

from inspector.protocol.facts import LEGACY, LEGACY_STARTS
from inspector.rules.kit import *
from inspector.text import READ, beginning


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


_VARIABLE = regex.compile(r"Unknown variable: '(?:::)?([a-z0-9_]{1,100})'")
BROKEN = (
    "Server Error: Evaluation Error: Unknown variable: '::osfamily'. (file: /etc/puppetlabs/code/environments/"
    "production/modules/web/manifests/init.pp, line: 4, column: 6) on node node1.example"
)


@rule(
    "S30",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    visible=Visible.CONSEQUENCE,
    title="the code needs a legacy fact that the agent does not send",
    fix=(
        on_node("send these facts until the code is changed",
                "puppet config set include_legacy_facts true --section agent"),
        on_master("correct the code that the message names, or update its module: `$facts['os']['family']` replaces "
                  "$osfamily, and so on; puppet-lint's legacy_facts check finds and replaces them"),
    ),
    source="docs/protocol.md#legacy-facts; docs/protocol.md#failed-catalogs",
    explains=("S01",),
    without_catalog=NO_CATALOG,
    good=lambda: [talk(plugins(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed"), version="8.10.0",
             master_version="8.10.0"),
    ],
    also=("P01",),
)  # fmt: skip
def legacy_facts_missing(case: ExchangeCase) -> Iterator[Statement]:
    """The master stops at a variable that it does not know, and that is the name of a flat fact which agents of
    version 8 no longer send. The code, or a module, was written for older agents."""
    text, request = compile_error(case), case.step.request
    found = _VARIABLE.search(beginning(text, READ)) if text else None
    if found is None or not isinstance(request, d.CatalogRequest) or not isinstance(request.facts, d.Facts):
        return
    name = found[1]
    if (name in LEGACY or name.startswith(LEGACY_STARTS)) and name not in request.facts.values:
        yield Statement(
            f"the code uses the legacy fact {name}, which the agent did not send: {brief(text or '')}",
            at=places.error(case.answer),
        )
