from inspector.rules.kit import *


@rule(
    "P06",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="restart failed",
    fix=(
        on_node("see why the restart failed", "systemctl status <service>; journalctl -u <service>"),
        on_node("restart it by hand once that is fixed: Puppet does it only when something notifies the resource "
                "again"),
    ),
    source="docs/protocol.md#report-status",
    good=lambda: [
        talk(plugins(), catalog(), report(result="changed", resource_statuses={
            "Service[app]": {"changed": True, "failed_to_restart": False},
        })),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), report(result="failed", resource_statuses={
            "Service[app]": {"failed_to_restart": True},
        })),
    ],
)  # fmt: skip
def restart_failed(case: ExchangeCase) -> Iterator[Statement]:
    """A resource that a service (or an exec) subscribes to was changed, and the restart failed. The new configuration
    is on the node, but the service may still run with the old one, or not at all."""
    report = case.step.request
    if not isinstance(report, d.Report):
        return
    refs = [ref for ref, status in report.resource_statuses.items() if status.failed_to_restart]
    count = len(refs) or whole(report.metric("resources", "failed_to_restart"))
    if count > 0:
        summary = "1 resource did not restart" if count == 1 else f"{count} resources did not restart"
        yield Statement(
            f"{summary}: {some(refs)}" if refs else summary, at=places.meaning(refs[0] if refs else "failed_to_restart")
        )
