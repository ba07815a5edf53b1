"""The files, the resources and the connections of one run, as the views show them."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import retrace
from inspector.capture.store import Capture
from inspector.explain import connection_usage, file_transfers, resource_outcomes
from inspector.explain.file_transfers import FileState, FileUse
from inspector.explain.resource_outcomes import Status
from inspector.model import Closed, Connection, Exchange, Handshake, Leg, Phase
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol import documents as d
from inspector.protocol.files import Checksum, ChecksumResult, FileMetadata
from inspector.protocol.rich import Rich
from inspector.runs.examples import asked, catalog, content, listing, metadata, plugins, report, talk
from inspector.summaries import summary
from tests.support import places
from tests.support.conversations import Agent, certificate, numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Record

SAMPLES = places.SAMPLES
FILE = "modules/demo/app.conf"


def files(records: Sequence[Record]) -> dict[str, FileUse]:
    return {use.name: use for use in file_transfers.files(retrace(records))}


def file_resource(*sources: str) -> dict[str, Any]:
    return {"type": "File", "title": "/etc/app.conf", "parameters": {"source": list(sources)}}


# -- files --------------------------------------------------------------------------------------------------------


def test_what_was_asked_and_not_fetched_is_in_sync() -> None:
    uses = files(talk(plugins(), catalog(), metadata(FILE), report()))
    assert uses[FILE].state is FileState.IN_SYNC
    assert uses[FILE].present is True
    assert (uses[FILE].seq, uses[FILE].environment, uses[FILE].asking) == (3, "production", "metadata")
    output = uses[FILE].metadata
    assert output is not None
    assert output.checksum is not None
    assert output.checksum.type == "sha256"
    assert file_transfers.totals(uses.values())[:4] == (2, 1, 0, 0)


def test_in_noop_mode_a_file_that_was_not_fetched_may_differ() -> None:
    use = files(talk(catalog(), metadata(FILE), report(noop=True)))[FILE]
    assert (use.state, use.present) == (FileState.UNKNOWN, None)


@pytest.mark.parametrize(
    ("status", "state"),
    [({"failed": True}, FileState.UNKNOWN), ({"skipped": True}, FileState.UNKNOWN),
     ({"out_of_sync": True}, FileState.UNKNOWN), ({"changed": True}, FileState.IN_SYNC), ({}, FileState.IN_SYNC)],
)  # fmt: skip
def test_a_file_that_was_left_as_it_was_may_differ(status: dict[str, bool], state: FileState) -> None:
    """Its backup was refused, for instance, so its content was not fetched."""
    tree = {"type": "File", "title": "/etc/tree", "parameters": {"source": "puppet:///modules/m/tree"}}
    known = {"failed": False, "changed": False}
    used = files(talk(
        catalog(resources=[file_resource("puppet:///modules/m/a"), tree]), metadata("modules/m/a"),
        listing("modules/m/tree", {"sub/b": b"b", "c": b"c"}),
        report(resource_statuses={"File[/etc/app.conf]": known | status, "File[/etc/tree/sub/b]": known | status,
                                  "File[/etc/tree/c]": known}),
    ))  # fmt: skip
    assert (used["modules/m/a"].state, used["modules/m/tree/sub/b"].state) == (state, state)
    assert used["modules/m/tree/c"].state is FileState.IN_SYNC
    assert used["modules/m/tree/sub/b"].resources == ["File[/etc/tree/sub/b]"]


def test_fetched_content_is_checked_by_the_digest_of_its_metadata() -> None:
    uses = files(
        talk(
            catalog(), metadata(FILE), content(FILE), metadata("modules/x/y", b"old"), content("modules/x/y", b"newer")
        )
    )
    assert (uses[FILE].state, uses[FILE].present) == (FileState.FETCHED, False)
    assert uses[FILE].fetches == [file_transfers.Fetch(3, 200, 7, ChecksumResult.RIGHT)]
    assert uses["modules/x/y"].state is FileState.WRONG
    assert uses["modules/x/y"].verdict == file_transfers.Fetch(5, 200, 5, ChecksumResult.WRONG)
    assert uses["modules/x/y"].seq == 5
    assert file_transfers.totals(uses.values()) == file_transfers.FileTotals(2, 0, 2, 0, 12, 1, 0)


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha512"])
def test_other_digests_are_checked_too(algorithm: str) -> None:
    use = files(talk(metadata(FILE, b"new", algorithm=algorithm), content(FILE, b"new")))[FILE]
    assert use.fetches[0].verdict is ChecksumResult.RIGHT
    use = files(talk(metadata(FILE, b"old", algorithm=algorithm), content(FILE, b"new")))[FILE]
    assert use.state is FileState.WRONG


def test_the_digest_is_of_the_content_without_its_encoding() -> None:
    records = talk(metadata(FILE, algorithm="md5"), content(FILE))
    fetched = records[1]
    assert isinstance(fetched, Exchange)
    assert fetched.response
    packed = gzip.compress(b"content")
    headers = (*fetched.response.headers, ("Content-Encoding", "gzip"))
    answer = dataclasses.replace(fetched.response, body=packed, headers=headers)
    use = files([records[0], dataclasses.replace(fetched, response=answer)])[FILE]
    assert use.fetches == [file_transfers.Fetch(2, 200, len(packed), ChecksumResult.RIGHT)]
    broken = dataclasses.replace(answer, body=b"no gzip")
    use = files([records[0], dataclasses.replace(fetched, response=broken)])[FILE]
    assert use.fetches[0][3:] == (ChecksumResult.UNCHECKABLE, "its content encoding cannot be decoded")


def fetch_of(checksum: dict[str, str] | None) -> file_transfers.Fetch:
    document = {"path": "/srv/x", "type": "file", "links": "manage", "checksum": checksum}
    return files(talk(asked(f"file_metadata/{FILE}", document), content(FILE)))[FILE].fetches[0]


def test_why_content_can_not_be_checked() -> None:
    assert fetch_of({"type": "mtime", "value": "{mtime}2026-01-01"})[3:] == (
        ChecksumResult.UNCHECKABLE,
        "checksum mtime",
    )
    assert fetch_of({"type": "none", "value": "{none}"}).why == "checksum none"
    assert fetch_of(None).why == "no checksum"
    assert fetch_of({"type": "sha3", "value": "{sha3}00"}).why == "unknown checksum sha3"
    assert fetch_of({"type": "md5", "value": "{md5}zz"}).why == "its checksum is not a digest"
    assert files(talk(content(FILE)))[FILE].fetches[0].why == "no metadata"
    records = talk(metadata(FILE), content(FILE))
    cut = records[1]
    assert isinstance(cut, Exchange)
    assert cut.response
    cut = dataclasses.replace(cut, response=dataclasses.replace(cut.response, lost=3))
    assert files([records[0], cut])[FILE].fetches == [
        file_transfers.Fetch(2, 200, 10, ChecksumResult.UNCHECKABLE, "incomplete")
    ]


def test_content_of_another_environment_is_not_held_against_these_metadata() -> None:
    uses = file_transfers.files(retrace(talk(metadata(FILE, b"old"), content(FILE, b"new", environment="testing"))))
    assert [(use.environment, use.state) for use in uses] == [
        ("production", FileState.IN_SYNC),
        ("testing", FileState.FETCHED),
    ]
    assert uses[1].fetches[0].why == "metadata of another environment"


def test_fetching_twice_is_counted() -> None:
    uses = files(talk(metadata(FILE), content(FILE), content(FILE), content(FILE, status=500)))
    assert (uses[FILE].times, uses[FILE].size, uses[FILE].state) == (2, 14, FileState.FETCHED)
    assert file_transfers.totals(uses.values()) == file_transfers.FileTotals(1, 0, 1, 1, 14, 0, 0)


def test_candidates_are_tried_in_turn() -> None:
    first, second = "modules/demo/app.conf.a", "modules/demo/app.conf.b"
    resource = file_resource(f"puppet:///{first}", f"puppet:///{second}")
    uses = files(talk(catalog(resources=[resource]), metadata(first, status=404), metadata(second)))
    assert (uses[first].state, uses[first].instead) == (FileState.PASSED, second)
    assert (uses[second].state, uses[second].resources) == (FileState.IN_SYNC, ["File[/etc/app.conf]"])
    uses = files(talk(catalog(resources=[resource]), metadata(first, status=404), metadata(second, status=404)))
    assert [uses[first].state, uses[second].state] == [FileState.MISSING, FileState.MISSING]
    assert file_transfers.totals(uses.values()).missing == 2


def test_a_refused_file_is_not_missing() -> None:
    uses = files(talk(metadata(FILE, status=403), metadata("modules/x/y"), content("modules/x/y", status=500)))
    assert [use.state for use in uses.values()] == [FileState.REFUSED, FileState.REFUSED]


def test_listed_files_are_asked_and_of_plugins_it_is_not_known_whether_they_were_there() -> None:
    uses = files(talk(listing("modules/demo/tree", {"a": b"1", "b/c": b"2"}), content("modules/demo/tree/b/c", b"2")))
    assert [(use.name, use.asking, use.state) for use in uses.values()] == [
        ("modules/demo/tree", "listing", FileState.IN_SYNC),
        ("modules/demo/tree/a", "listing", FileState.IN_SYNC),
        ("modules/demo/tree/b/c", "listing", FileState.FETCHED),
    ]
    uses = files(
        talk(listing("plugins", {"facter/a.rb": b"1", "facter/b.rb": b"2"}), content("plugins/facter/b.rb", b"2"))
    )
    assert (uses["plugins/facter/a.rb"].state, uses["plugins/facter/a.rb"].present) == (FileState.UNKNOWN, None)
    assert (uses["plugins/facter/b.rb"].state, uses["plugins/facter/b.rb"].asking) == (FileState.FETCHED, "plugins")


def inlined(body: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(body).hexdigest()
    return {
        "/etc/app.conf": {
            "path": "/srv/app.conf", "type": "file", "source": f"puppet:///{FILE}",
            "checksum": {"type": "sha256", "value": f"{{sha256}}{digest}"},
            "content_uri": "puppet:///modules/demo/files/app.conf",
        }
    }  # fmt: skip


def test_files_of_static_catalogs() -> None:
    resource = file_resource(f"puppet:///{FILE}")
    static = catalog(resources=[resource], code_id="v1", metadata=inlined(b"content"))
    assert [(use.name, use.asking, use.state) for use in files(talk(static)).values()] == [
        (FILE, "catalog", FileState.IN_SYNC)
    ]
    fetch = content("modules/demo/files/app.conf", code_id="v1")
    uses = files(talk(static, fetch))
    assert list(uses) == [FILE]
    assert uses[FILE].fetches == [file_transfers.Fetch(2, 200, 7, ChecksumResult.RIGHT)]
    other = content("modules/demo/files/app.conf", b"x", code_id="v2")
    assert files(talk(static, other))[FILE].fetches[0].why == "metadata of another code_id"


def test_a_directory_or_a_link_has_no_content() -> None:
    document = {
        "path": "/srv/x",
        "type": "link",
        "destination": "/y",
        "checksum": {"type": "sha256", "value": "{sha256}00"},
    }
    assert files(talk(asked(f"file_metadata/{FILE}", document)))[FILE].state is FileState.BARE


# -- resources ----------------------------------------------------------------------------------------------------


def resource(title: str, **fields: Any) -> d.Resource:
    return d.Resource(type="File", title=title, **fields)


def test_each_resource_has_the_status_that_the_report_tells() -> None:
    statuses = {
        "File[/failed]": d.ResourceStatus(failed=True, changed=True, evaluation_time=2.5),
        "File[/restart]": d.ResourceStatus(failed_to_restart=True),
        "File[/skipped]": d.ResourceStatus(skipped=True),
        "File[/back]": d.ResourceStatus(changed=True, corrective_change=True, out_of_sync=True),
        "File[/changed]": d.ResourceStatus(changed=True, out_of_sync=True, evaluation_time=0.5),
        "File[/noop]": d.ResourceStatus(out_of_sync=True),
        "File[/same]": d.ResourceStatus(changed=False),
        "File[/made]": d.ResourceStatus(changed=True, file="/srv/m.pp", line=7, containment_path=["Stage[main]", "x"]),
    }
    titles = ["/failed", "/restart", "/skipped", "/back", "/changed", "/noop", "/same", "/silent"]
    found = resource_outcomes.resources(
        d.Catalog(resources=[resource(title) for title in titles]), d.Report(resource_statuses=statuses)
    )
    assert [(outcome.title, outcome.status) for outcome in found] == [
        ("/failed", Status.FAILED),
        ("/restart", Status.RESTART),
        ("/skipped", Status.SKIPPED),
        ("/back", Status.CORRECTIVE),
        ("/changed", Status.CHANGED),
        ("/noop", Status.OUT_OF_SYNC),
        ("/same", Status.UNCHANGED),
        ("/silent", Status.UNREPORTED),
        ("/made", Status.CHANGED),
    ]
    assert found[-1].resource is None
    assert (found[-1].place, found[-1].path) == ("/srv/m.pp:7", ("Stage[main]",))
    totals = resource_outcomes.totals(found)
    assert totals.time == 3.0
    assert totals.by_status == {**dict.fromkeys(Status, 1), Status.CHANGED: 2}
    assert [status.differs for status in Status] == [True] * 6 + [False] * 2


def test_of_empty_statuses_only_the_log_tells_what_failed() -> None:
    """2.7 sends them whatever became of the resources."""
    catalog = d.Catalog(resources=[resource("/a"), resource("/b")])
    empty = {"File[/a]": d.ResourceStatus(), "File[/b]": d.ResourceStatus(), "File[/c]": d.ResourceStatus()}
    logs = [d.LogLine(level=":err", message="no backup", source="/File[/a]/content"),
            d.LogLine(level="debug", message="x", source="/File[/b]")]  # fmt: skip
    found = resource_outcomes.resources(catalog, d.Report(resource_statuses=empty, logs=logs))
    statuses = {one.ref: one.status for one in found}
    assert statuses == {"File[/a]": "failed", "File[/b]": "not reported", "File[/c]": "not reported"}


def test_without_a_report_nothing_is_known_of_a_resource() -> None:
    found = resource_outcomes.resources(d.Catalog(resources=[resource("/a")]), None)
    assert [(outcome.status, outcome.time) for outcome in found] == [(Status.UNREPORTED, None)]
    assert resource_outcomes.resources(None, None) == []


def test_where_a_resource_is() -> None:
    edges = [d.Edge("Stage[main]", "Class[A]"), d.Edge("Class[A]", "File[/a]"), d.Edge("File[/b]", "File[/b]")]
    made = resource("/a", file="/m.pp", line=3, parameters={"source": ["puppet:///modules/a/b", "/srv/b"]})
    one, other = resource_outcomes.resources(d.Catalog(resources=[made, resource("/b")], edges=edges), None)
    assert one.path == ("Stage[main]", "Class[A]")
    assert (one.place, one.sources) == ("/m.pp:3", ("puppet:///modules/a/b", "/srv/b"))
    assert (other.path, other.place) == (("File[/b]",), "")


def test_sensitive_values_are_masked_wherever_they_are() -> None:
    made = resource(
        "/a",
        parameters={
            "content": "hunter2", "mode": "0600", "user": {"name": {"__ptype": "Sensitive", "__pvalue": "hunter2"}},
            "require": ["Package[x]", "Service[y]"],
        },
        sensitive_parameters=["content"],
    )  # fmt: skip
    events = [
        d.Event(status="success", property="content", message="changed 'hunter1' to 'hunter2'"),
        d.Event(status="success", property="mode", previous_value="0644", desired_value="0600"),
    ]
    report = d.Report(
        resource_statuses={"File[/a]": d.ResourceStatus(events=events, containment_path=["C", "File[/a]"])}
    )
    (outcome,) = resource_outcomes.resources(d.Catalog(resources=[made]), report)
    assert list(outcome.parameters) == [
        ("content", Secret(Rich("Sensitive", "hunter2"))),
        ("mode", "0600"),
        ("user", Secret({"name": Rich("Sensitive", "hunter2")})),
    ]
    assert [resource_outcomes.shown(value) for _, value in outcome.parameters] == [MASK, "0600", MASK]
    assert list(outcome.relations) == [("require", "Package[x]"), ("require", "Service[y]")]
    assert list(outcome.events) == [("success", "content", MASK), ("success", "mode", "0644 -> 0600")]
    logs = [
        d.LogLine(level="notice", message="was hunter1", source="/C/File[/a]/content"),
        d.LogLine(level=":err", message="no such user", source="/C/File[/a]"),
        d.LogLine(level="err", message="another's", source="/C/File[/ab]"),
    ]
    lines = resource_outcomes.logged([outcome], logs)[outcome.ref]
    assert resource_outcomes.messages(outcome, lines, 10) == [("notice", MASK), ("err", "no such user")]
    assert resource_outcomes.messages(outcome, lines, 1) == [("notice", MASK)]


def test_a_log_line_is_about_the_innermost_resource_and_not_its_containers() -> None:
    stage, demo = d.Resource(type="Stage", title="main"), d.Resource(type="Class", title="Demo")
    edges = [d.Edge("Stage[main]", "Class[Demo]"), d.Edge("Class[Demo]", "File[/a]"), d.Edge("Class[Demo]", "File[/b]")]
    statuses = {"File[/a]": d.ResourceStatus(containment_path=["Stage[main]", "Demo", "File[/a]"])}
    found = resource_outcomes.resources(
        d.Catalog(resources=[stage, demo, resource("/a"), resource("/b")], edges=edges),
        d.Report(resource_statuses=statuses),
    )
    sources = [
        "/Stage[main]/Demo/File[/a]/content", "/Stage[main]/Demo/File[/b]/ensure", "/Stage[main]/Demo",
        "/Stage[main]", "/Stage[main]/Demo/Exec[nobody knows]", "/Stage[main]/Demo/Exec[x]/returns", "Puppet", None,
    ]  # fmt: skip
    logs = [d.LogLine(level="notice", message=f"of\t{source}", source=source) for source in sources]
    lines = resource_outcomes.logged(found, logs)
    assert {ref: [line.source for line in of] for ref, of in lines.items()} == {
        "File[/a]": sources[:1], "File[/b]": sources[1:2], "Class[Demo]": sources[2:3], "Stage[main]": sources[3:4],
    }  # fmt: skip
    assert resource_outcomes.messages(found[0], lines["Stage[main]"], 9) == [("notice", "of    /Stage[main]")]


def test_what_is_logged_once_of_a_type_that_nothing_manages_is_about_each_that_failed() -> None:
    statuses = {
        "Cron[a]": d.ResourceStatus(failed=True, resource_type="Cron"),
        "Cron[b]": d.ResourceStatus(failed=True, resource_type="Cron"),
        "Cron[c]": d.ResourceStatus(resource_type="Cron", out_of_sync=True),
        "File[/a]": d.ResourceStatus(failed=True, resource_type="File"),
    }
    found = resource_outcomes.resources(None, d.Report(resource_statuses=statuses))
    log = d.LogLine(level="err", message="Could not find a suitable provider for cron", source="Puppet")
    assert resource_outcomes.logged(found, [log, log]) == {"Cron[a]": [log], "Cron[b]": [log]}


# -- connections --------------------------------------------------------------------------------------------------


def sampled(name: str) -> tuple[list[summary.Brief], dict[str, Connection]]:
    with Capture.open(SAMPLES / f"{name}.sqlite") as capture:
        briefs = [summary.brief_of(step) for step in retrace(capture.records())]
        return briefs, {connection.leg.id: connection for connection in capture.connections()}


def test_connections_of_a_first_run() -> None:
    found = connection_usage.connections(*sampled("first-run"))
    assert [
        (connection.side, len(connection.requests), connection.shown, list(connection.identities), connection.closer)
        for connection in found
    ] == [
        ("agent", 1, None, [], "agent"),
        ("master", 1, "puppet.example", [], None),
        ("agent", 1, None, [], "agent"),
        ("master", 1, "puppet.example", [], None),
        ("agent", 2, None, [], "agent"),
        ("master", 2, "puppet.example", [], None),
        ("agent", 18, "node1.example", [], "agent"),
        ("master", 18, "puppet.example", ["node1.example"], None),
    ]
    agent, master = found[4:6]
    assert (agent.seq, master.agent, agent.presented) == (3, agent.id, "proxy.example")
    assert agent.tcp is None
    assert master.tcp is not None
    assert 0 < master.tcp < 0.1
    # What the master's connection carries begins when it is ready.
    assert master.leg is not None
    assert master.requests[0].began == master.leg.secured
    assert agent.requests[0].began < master.requests[0].began
    assert len(agent.idle) == 2
    assert connection_usage.totals(found)[:4] == (4, 4, 22, 0)


def test_handshakes_that_failed_are_connections_too() -> None:
    briefs, known = sampled("revoked")
    found = connection_usage.connections(briefs, known)
    assert [(connection.side, connection.shown, connection.requests) for connection in found] == [
        ("agent", "node2.example", [])
    ] * 3
    assert [connection.failed and connection.failed.alert for connection in found] == ["certificate_revoked"] * 3
    assert connection_usage.totals(found)[:4] == (3, 0, 0, 3)
    assert [connection.seq for connection in connection_usage.connections(briefs, {})] == [1, 2, 3]


def test_a_handshake_with_the_master_that_failed_is_the_masters() -> None:
    failed = Handshake(Leg("x", "master", connected=1.0), 2.0, "expired", "certificate_expired", "master", seq=1)
    (connection,) = connection_usage.connections([summary.brief_of(step) for step in retrace([failed])], {})
    assert (connection.side, connection.leg) == ("master", None)


def leg(**times: float) -> Leg:
    return Leg("x", "agent", **times)  # type: ignore[arg-type]


def test_a_life_is_drawn_to_scale() -> None:
    requests = [
        connection_usage.RequestTimes(1, 3.0, 4.0, Phase.CATALOG),
        connection_usage.RequestTimes(2, 8.0, 9.0, Phase.REPORT),
    ]
    connection = connection_usage.ConnectionUse(
        "x", "agent", "x", leg(connected=1.0, secured=2.0), Closed(10.0, "proxy"), requests
    )
    drawn = connection_usage.bar(connection, 0.0, 12.0, 12)
    life, none = "life", "none"
    assert drawn == [none, "handshake", life, Phase.CATALOG, *[life] * 4, Phase.REPORT, life, none, none]
    assert connection_usage.bar(connection, 0.0, 12.0, 0) == []
    assert (connection.opened, connection.ended, connection.tls, connection.idle, connection.closer) == (
        1.0,
        10.0,
        1.0,
        [4.0, 1.0],
        "proxy",
    )
    still = dataclasses.replace(connection, closed=None)
    assert (still.ended, still.idle, still.closer) == (9.0, [4.0], None)
    hardly = connection_usage.bar(connection, 0.0, 1e9, 4)
    assert hardly == [Phase.REPORT, none, none, none]


def test_several_connections_to_the_master_stand_below_the_agents() -> None:
    records = Agent().run().records[:3]
    exchanges = [record for record in numbered(records) if isinstance(record, Exchange)]
    first = [
        dataclasses.replace(
            exchange, master=Leg(f"m{at > 0}", "master", own_chain=(certificate("a.example", "a.example"),))
        )
        for at, exchange in enumerate(exchanges)
    ]
    briefs = [summary.brief_of(step) for step in retrace(first)]
    found = connection_usage.connections(briefs, {})
    assert [(connection.id[:2], connection.side, len(connection.requests)) for connection in found] == [
        ("a.", "agent", 3),
        ("mF", "master", 1),
        ("mT", "master", 2),
    ]
    assert connection_usage.ids(briefs) == {"mFalse", "mTrue", exchanges[0].agent.id}


def test_the_top_of_a_listing_is_the_directory_itself() -> None:
    use = FileUse("m", None, "listing", metadata=FileMetadata(type="directory", checksum=Checksum("ctime", "{ctime}x")))
    assert use.state is FileState.BARE
