"""Reports: what changed, failed or was skipped in one run only."""

from __future__ import annotations

from inspector.compare import reports
from inspector.compare.differences import Difference, Differences
from inspector.compare.masks import Masks
from inspector.compare.reports import SecretParameters
from inspector.protocol.documents import Event, LogLine, Report, ResourceStatus
from tests.support.compared import decoded, file


def compared(before: Report, after: Report, secret: SecretParameters | None = None) -> list[Difference]:
    found = Differences(Masks())
    reports.compare(before, after, found, secret or SecretParameters())
    return found.found


def of(**statuses: ResourceStatus) -> Report:
    return Report(resource_statuses={f"File[{name}]": status for name, status in statuses.items()})


def test_outcomes() -> None:
    failed = ResourceStatus(
        failed=True, file="/m/a.pp", line=3, events=[Event("failure", "mode", message="no\n  such")]
    )
    same = ResourceStatus(changed=False)
    before = of(a=same, b=ResourceStatus(changed=True), c=same, d=ResourceStatus(skipped=True))
    after = of(a=failed, b=ResourceStatus(changed=True), d=same)
    found = compared(before, after)
    assert [(each.address, each.before, each.after) for each in found] == [
        ("File[a]/outcome", "unchanged", "failed"), ("File[d]/outcome", "skipped", "unchanged"),
    ]  # fmt: skip
    assert (found[0].note, found[0].places) == ("no such", ("/m/a.pp:3",))


def test_the_status() -> None:
    (difference,) = compared(Report(status="unchanged"), Report(status="failed"))
    assert (difference.address, difference.before, difference.after) == ("status", "unchanged", "failed")


def test_messages_about_secrets_are_not_shown() -> None:
    changed = ResourceStatus(changed=True, events=[Event("success", "content", message="changed from hunter2")])
    secret = SecretParameters(decoded([file("a", sensitive=["content"], content="x")]), None)
    unchanged = ResourceStatus()
    (difference,) = compared(of(a=unchanged), of(a=changed), secret)
    assert "hunter2" not in repr(difference)
    (difference,) = compared(of(a=unchanged), of(a=changed))
    assert difference.note == "changed from hunter2"


def test_warnings_and_errors_of_one_side() -> None:
    def log(*lines: tuple[str, str]) -> Report:
        return Report(logs=[LogLine(level, message, "Puppet") for level, message in lines])

    found = compared(log(("err", "both"), ("notice", "a")), log(("err", "both"), ("info", "b"), (":warning", "new")))
    assert [(each.change, each.address, each.after) for each in found] == [("added", "Puppet/log", "warning: new")]


def test_what_8_leaves_out_is_unchanged() -> None:
    changed = ResourceStatus(changed=True)
    before, after = of(a=changed, b=ResourceStatus()), of(a=changed)
    assert compared(before, after) == compared(after, before) == []


def test_a_run_that_applied_nothing() -> None:
    (difference,) = compared(of(a=ResourceStatus(), b=ResourceStatus(changed=True)), of())
    assert (difference.address, difference.before, difference.after) == ("resources", "2 resources", "no resources")
