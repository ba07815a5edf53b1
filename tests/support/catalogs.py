"""A small catalog with containers, relationships of all kinds, a cycle, a reference to nothing, and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.runs.examples import catalog, report, talk

if TYPE_CHECKING:
    from inspector.model import Record

HOSTILE = "\x1b[2J[bold]\u202e"


def resource(kind: str, title: str, line: int = 1, **parameters: Any) -> dict[str, Any]:
    return {"type": kind, "title": title, "parameters": parameters, "file": "/m/site.pp", "line": line}


def related() -> list[Record]:
    """The records of a run with that catalog."""
    resources = [
        resource("Stage", "main"), resource("Class", "Web", require="Class[Repo]"), resource("Class", "Repo"),
        resource("Package", "web", before="File[conf]"), resource("File", "conf", path="/etc/web"),
        resource("Web::Vhost", "x"), resource("File", "/etc/web/x.conf", subscribe=["File[/etc/web/]", "Exec[fail]"]),
        resource("Exec", "fail"), resource("Service", "web", require=["File[/etc/web/x.conf]", "Notify[virtual]"]),
        resource("Notify", "one", before="Notify[two]"), resource("Notify", "two", before="Notify[one]"),
        resource("Notify", HOSTILE, require="Service[web]") | {"exported": True},
    ]  # fmt: skip
    inside = {
        "Stage[main]": ["Class[Repo]", "Class[Web]"],
        "Class[Web]": ["Package[web]", "File[conf]", "Web::Vhost[x]", "Exec[fail]", "Service[web]", "Notify[one]",
                       "Notify[two]", f"Notify[{HOSTILE}]"],
        "Web::Vhost[x]": ["File[/etc/web/x.conf]"],
    }  # fmt: skip
    edges = [{"source": outer, "target": inner} for outer, inners in inside.items() for inner in inners]
    statuses = {
        "Package[web]": {"evaluation_time": 0.5}, "File[conf]": {"changed": True, "evaluation_time": 1.0},
        "Exec[fail]": {"failed": True}, "File[/etc/web/x.conf]": {"skipped": True},
        "Service[web]": {"changed": True, "corrective_change": True},
    }  # fmt: skip
    return talk(catalog(resources=resources, edges=edges), report(result="failed", resource_statuses=statuses))
