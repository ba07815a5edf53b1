"""A run of a large site, for a picture: made, in the shape of one that was recorded (``tests.real.real_site``).

The recording itself holds the plugins of sixty modules, which are other people's; only names of its catalog are here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.runs.examples import catalog, content, listing, report, talk
from tests.support.catalogs import resource

if TYPE_CHECKING:
    from inspector.model import Record

NODE = "web.site.example"
SHOPS = 120
FRAGMENTS = ("access_log", "aliases", "api", "directories", "docroot", "file_header", "fragment", "headers", "logging",
             "proxy", "rewrite", "serveralias")  # fmt: skip
"""What a virtual host is made of, each a resource in another one."""
CLASSES = ("Apt", "Apache", "Apache::Mod::Proxy", "Apache::Mod::Status", "Ntp", "Rsync", "Stdlib", "Systemd")
PLUGINS = {f"puppet/{kind}/{module}_{number}.rb": b"# a plugin\n" for kind in ("functions", "provider", "type")
           for module in ("apache", "apt", "keystone", "mysql", "neutron", "nova") for number in range(36)}  # fmt: skip
"""As many files as such a site syncs."""


def _shop(name: str) -> dict[str, list[dict[str, Any]]]:
    """The resources of a shop, by what contains them."""
    site = f"{name}.{NODE.partition('.')[2]}"
    vhost = [resource("Concat", f"25-{site}.conf"), resource("File", f"/srv/www/{name}")]
    parts = {f"Apache::Vhost[{site}]": vhost}
    for fragment in FRAGMENTS:
        vhost.append(resource("Concat::Fragment", f"{site}-{fragment}"))
        parts[f"Concat::Fragment[{site}-{fragment}]"] = [resource("Concat_fragment", f"{site}-{fragment}")]
    parts[f"Concat[25-{site}.conf]"] = [resource("Concat_file", f"25-{site}.conf")]
    parts[f"Logrotate::Rule[{name}]"] = [resource("File", f"/etc/logrotate.d/{name}")]
    parts[f"Node[{NODE}]"] = [resource("Apache::Vhost", site, 18), resource("Logrotate::Rule", name, 28),
                              resource("Cron", f"sitemap of {name}", 34)]  # fmt: skip
    return parts


def _status(each: dict[str, Any]) -> dict[str, Any] | None:
    """What became of a resource in a noop run; nothing is reported of what only contains others."""
    if each["type"] == "Cron":
        return {"failed": True, "events": []}
    if each["type"] in ("File", "Concat_file"):
        event = {"property": "ensure", "previous_value": "absent", "desired_value": "file", "status": "noop"}
        return {"out_of_sync": True, "events": [event], "evaluation_time": 0.004}
    return {"evaluation_time": 0.001} if each["type"] == "Concat_fragment" else None


def records() -> list[Record]:
    """The records of the run: plugins, a catalog of thousands of resources, the report."""
    inside: dict[str, list[dict[str, Any]]] = {
        "Stage[main]": [resource("Class", "main"), *(resource("Class", name) for name in CLASSES)],
        "Class[Main]": [resource("Node", NODE)],
    }
    for number in range(1, SHOPS + 1):
        for outer, inners in _shop(f"shop{number:03}").items():
            inside.setdefault(outer, []).extend(inners)
    resources = [resource("Stage", "main"), *(each for inners in inside.values() for each in inners)]
    edges = [{"source": outer, "target": f"{each['type']}[{each['title']}]"} for outer, inners in inside.items()
             for each in inners]  # fmt: skip
    statuses = {f"{each['type']}[{each['title']}]": status for each in resources if (status := _status(each))}
    log = {"level": "err", "source": "Puppet", "message": "Could not find a suitable provider for cron"}
    return talk(
        listing("plugins", PLUGINS), *(content(f"plugins/{name}", body) for name, body in PLUGINS.items()),
        catalog(resources=resources, edges=edges),
        report(result="failed", resource_statuses=statuses, logs=[log], noop=True), certname=NODE,
    )  # fmt: skip
