"""One resource of a run, explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.compare import why
from inspector.compare.why import Resources, Why
from inspector.runs.examples import bucket, catalog, content, metadata, report, talk
from tests.support.catalogs import related
from tests.support.compared import file, gathered, resource

if TYPE_CHECKING:
    from inspector.compare.documents import RunDocuments

NAME = "modules/m/f"
EVENTS = [{"status": "success", "property": "content", "message": "content changed 'a' to 'b'"}]


def of(documents: RunDocuments, ref: str, before: RunDocuments | None = None) -> Why:
    resources = Resources(documents)
    applied = resources.find(ref)
    assert applied is not None
    return why.explain(resources, applied, before)


def run(body: bytes, *, after: float = 0, **parameters: Any) -> RunDocuments:
    resources = [file("/f", source=f"puppet:///{NAME}", **parameters), file("/g")]
    statuses = {"File[/f]": {"changed": True, "evaluation_time": 0.5, "events": EVENTS}}
    logs = [
        {"level": "notice", "message": "content changed 'a' to 'b'", "source": "/File[/f]/content"},
        {"level": "info", "message": "Filebucketed", "source": "/File[/f]"},
    ]
    parts = [
        catalog(resources=resources), metadata(NAME, body), content(NAME, body),
        report(result="changed", resource_statuses=statuses, logs=logs),
    ]  # fmt: skip
    return gathered(talk(*parts, after=after), "c.sqlite run 2")


def test_from_the_report_to_the_bytes() -> None:
    found = of(run(b"new\n", mode="1"), "file[/f/]")
    assert (found.ref, found.applied.status, found.applied.place) == ("File[/f]", "changed", "/m/site.pp:1")
    assert [(each.kind, each.property, each.text) for each in found.messages] == [
        ("event success", "content", "content changed 'a' to 'b'"), ("log info", "", "Filebucketed"),
    ]  # fmt: skip
    assert found.parameters == {"source": f"puppet:///{NAME}", "mode": "1"}
    (story,) = found.files
    assert (story.use.name, story.use.asked, story.content, story.size) == (NAME, [2], "new\n", 4)
    assert [fetch.seq for fetch in story.use.fetches] == [3]
    assert (found.catalog_seq, found.report_seq) == (1, 4)
    assert (found.before, found.differences) == (None, [])


def test_what_the_run_before_had() -> None:
    found = of(run(b"new\n", mode="1"), "File[/f]", run(b"old\n", mode="2"))
    assert [(each.address, each.lines) for each in found.differences] == [
        ("File[/f]/mode", ()), (f"{NAME}/content", ("@@ -1 +1 @@", "-old", "+new")),
    ]  # fmt: skip
    assert of(run(b"new\n"), "File[/g]", run(b"old\n")).differences == []


def test_what_the_run_before_had_of_a_resource_whose_title_is_masked() -> None:
    title = "curl -u token=Abcdef123456 http://x"
    before, after = (
        gathered(talk(catalog(resources=[resource("Exec", title, command=text)])), f"{text}.sqlite run 1")
        for text in ("one", "other")
    )
    (difference,) = of(after, f"Exec[{title}]", before).differences
    assert (difference.part, difference.before, difference.after) == ("command", "one", "other")
    assert "Abcdef123456" not in difference.name + repr(difference)


def test_containers_and_relationships() -> None:
    documents = gathered(related())
    found = of(documents, "File[/etc/web/x.conf]")
    assert found.containers == ["Stage[main]", "Class[Web]", "Web::Vhost[x]"]
    assert "File[/etc/web/x.conf] has subscribe => Exec[fail]." in found.relations
    assert "Service[web] has require => File[/etc/web/x.conf]." in found.relations


def test_secrets_are_masked() -> None:
    secret = file("/s", sensitive=["content"], content="hunter2-old")
    events = [{"status": "success", "property": "content", "message": "changed to hunter2-old"}]
    other = [{"status": "success", "property": "mode", "message": "beside hunter2-old"}]
    statuses = {"File[/s]": {"changed": True, "events": events + other}}
    documents = gathered(talk(catalog(resources=[secret]), report(resource_statuses=statuses)))
    found = of(documents, "File[/s]", documents)
    assert "hunter2" not in repr((found.messages, found.parameters, found.differences))
    assert found.parameters == {"content": "MASKED"}


def test_what_is_only_in_the_report() -> None:
    statuses = {"File[/tree/a]": {"changed": True}}
    documents = gathered(talk(catalog(resources=[file("/tree")]), report(resource_statuses=statuses)))
    found = of(documents, "File[/tree/a]")
    assert (found.applied.resource, found.parameters, found.applied.status) == (None, {}, "changed")


def test_the_backup_that_was_refused_and_a_catalog_that_was_not_given() -> None:
    refused = {"File[/etc/app.conf]": {"failed": True}}
    parts = metadata(NAME), bucket(method="HEAD", status=404), bucket(status=400), report(resource_statuses=refused)
    made = file("/etc/app.conf", source=f"puppet:///{NAME}")
    found = of(gathered(talk(catalog(resources=[made]), *parts)), "File[/etc/app.conf]")
    assert [(each.seq, each.method, each.result) for each in found.backups] == [
        (3, "HEAD", "it is not in the bucket yet"), (4, "PUT", "refused with 400"),
    ]  # fmt: skip
    assert [story.use.state for story in found.files] == ["not known"]
    renamed = resource("File", "app", path="/etc/app.conf")
    documents = gathered(talk(catalog(resources=[renamed, file("/other")]), bucket()))
    assert [each.result for each in of(documents, "File[app]").backups] == ["stored"]
    assert of(documents, "File[/other]").backups == []
    cached = of(gathered(talk(catalog(status=500), report(resource_statuses=refused))), "File[/etc/app.conf]")
    assert (cached.catalog_seq, cached.report_seq) == (None, 2)


def test_resources_with_similar_names() -> None:
    resources = Resources(gathered(related()))
    assert resources.find("Service[wbe]") is None
    assert resources.find("Notify[virtual]") is None  # only referred to
    assert resources.near("Service[wbe]")[0] == "Service[web]"
