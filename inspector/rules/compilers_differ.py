from inspector.clocks import MINUTE
from inspector.rules.kit import *
from inspector.runs.history import Code, code_of
from inspector.runs.servers import key_of, name_of


def _old(*parts: ExamplePart) -> list[ExamplePart]:
    return answered_by("c1.example", *parts)


def _new(*parts: ExamplePart) -> list[ExamplePart]:
    return answered_by("c2.example", *parts)


_ONE = listing("plugins", {"facter/role.rb": b"1"})
_OTHER = listing("plugins", {"facter/role.rb": b"2"})


@rule(
    "S33",
    Severity.WARNING,
    at=(Kind.PLUGIN_LISTING, Kind.CATALOG),
    title="compilers with different code",
    fix=(
        on_master("compare the code that is deployed on each, for example the commit",
                  'git -C "$(puppet config print environmentpath --section master)/production" log -1'),
        advice("deploy the same revision to all compilers, all at the same time"),
    ),
    source="docs/protocol.md#several-masters",
    explains=("F02", "F03", "P01", "P13"),
    good=lambda: [
        together(talk(*_old(_ONE, catalog(), report())),
                 talk(*_new(_ONE, catalog(), report()), certname="node2.example", address="192.0.2.8", after=20)),
        # Deployed between the two.
        together(talk(*_old(_ONE, catalog(), report())),
                 talk(*_new(_OTHER, catalog(), report()), certname="node2.example", address="192.0.2.8", after=900),
                 talk(*_old(_OTHER, catalog(), report()), after=1800)),
    ],
    bad=lambda: [
        together(talk(*_old(_ONE, catalog(), report())),
                 talk(*_new(_OTHER, catalog(), report()), certname="node2.example", address="192.0.2.8", after=20)),
        together(talk(*_old(_ONE, catalog(), report())),
                 talk(*_new(_OTHER, catalog(), report()), certname="node2.example", address="192.0.2.8", after=900),
                 talk(*_old(_ONE, catalog(), report()), after=1800)),
    ],
)  # fmt: skip
def compilers_differ(case: ExchangeCase) -> Iterator[Statement]:
    """Two compilers have different code for one environment: they list other plugins, or give their catalogs another
    version, in one minute or in turns. What an agent gets depends on where the balancer sends it; a run that is moved
    between them applies the catalog of one with the plugins and files of the other."""
    leg = case.exchange.master
    if leg is None or all(key == key_of(leg) for known in case.ledger.code.values() for key in known):
        return  # most sites have one compiler: a long list is not looked through for it
    shown = code_of(case.exchange, case.step.match, case.step.response)
    if shown is None:
        return
    known = case.ledger.code.get(shown.asked, {})
    own = known.get(key_of(leg))
    for key, other in known.items():
        if key == key_of(leg) or other.content == shown.content:
            continue
        turns = own is not None and own.content == shown.content and own.since < other.time
        if not turns and case.exchange.ended - other.time > MINUTE:
            continue  # code may have been deployed meanwhile
        yield Statement(
            _words(name_of(leg), shown.content, other, shown.asked, turns=turns), (other.seq, case.exchange.seq)
        )


def _words(name: str, content: frozenset[str], other: Code, asked: tuple[str, str], *, turns: bool) -> str:
    when = "in turns" if turns else "within a minute"
    if asked[0] == "catalog":
        one, two = some(list(content)), some(list(other.content))
        return f"{name} makes catalogs of version {one}, {other.server} of {two}, {when}"
    differing = sorted({line.partition(" ")[2] for line in content ^ other.content})
    return f"{name} and {other.server} list different plugins {when}: {some(differing)}"
