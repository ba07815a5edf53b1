from inspector.rules.kit import *


@rule(
    "S07",
    Severity.WARNING,
    at=(Kind.CATALOG,),
    title="the agent retries before the requested delay",
    fix=(
        advice(
            "see which client uses the agent's name: agents of 5.3 and later respect Retry-After and stop after "
            "100 tries"
        ),
        advice("turn that off for POST", only_if="something in between repeats requests"),
        on_node("upgrade the agent", only_if="nothing does"),
    ),
    source="docs/protocol.md#retry-after; puppet 7.23.0 lib/puppet/http/retry_after_handler.rb",
    good=lambda: [
        talk(plugins(), catalog(environment="dev"), plugins(), catalog(asks="dev", environment="dev"), report())
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "60"}), wait(5), catalog(), report()),
    ],
    also=("S05",),
)
def retried_too_early(case: ExchangeCase, *, longest_s: float = 300, retries: float = 100) -> Iterator[Statement]:
    """A busy master told the agent how long to wait, and the agent sent its request again earlier, or far more often
    than agents do: that keeps the master busy. Agents wait no longer than their runinterval, so only delays up to five
    minutes are checked."""
    run, exchange = case.run, case.exchange
    if run.tool or not run.delayed or (0, 0) < run.major < (5, 3):
        return
    tries = [refusal for refusal in run.delayed if refusal.endpoint.kind is Kind.CATALOG and refusal.seq < exchange.seq]
    if not tries:
        return
    refusal = tries[-1]
    delay = retry_after(refusal.retry_after, refusal.time) if (refusal.retry_after or "").strip().isdigit() else None
    pause = exchange.time - refusal.time
    if delay is not None and pause < min(delay, longest_s) - 1:
        yield Statement(
            f"the agent requested the catalog again after {pause:.0f} s instead of {delay:.0f} s",
            (refusal.seq, exchange.seq),
            at=(places.header("response", "Retry-After"), places.REQUEST_LINE),
        )
    if len(tries) > retries:
        yield Statement(f"the agent requested the catalog again more than {retries:.0f} times", at=places.REQUEST_LINE)
