"""Explanations of endpoints and rules, from the very tables that the inspector works with.

``puppet-inspector explain`` prints them; ``python -m inspector.explain.reference`` writes them to docs/, and a test
checks that those are current.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.analysis import known_errors
from inspector.errors import InspectorError
from inspector.model import Visible
from inspector.protocol.endpoints import ENDPOINTS, match
from inspector.rules import On, all_rules, rule_of
from inspector.rules.remedies import fill
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.protocol.endpoints import Endpoint
    from inspector.protocol.kinds import Kind
    from inspector.rules import Rule

_WHEN = {
    On.EXCHANGE: "at every request",
    On.HANDSHAKE: "at every failed TLS handshake",
    On.RUN_END: "when the run is over",
}
_VISIBLE = {
    Visible.WIRE: "visible in the traffic",
    Visible.HANDSHAKE: "visible only as a failed handshake",
    Visible.CONSEQUENCE: "visible only by its consequences",
}
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_USAGE = "`explain S01` for a rule, `explain catalog` for an endpoint; with a capture: `doctor FILE`."
_PREFIX = {"master": "/puppet/v3/", "ca": "/puppet-ca/v1/", "root": ""}


def explain(what: str) -> dict[str, str]:
    """What an endpoint (by name or by a request: a path, with or without its method), a rule or an agent's error
    message is about.

    Raises InspectorError.
    """
    if re.fullmatch(r"[A-Za-z][0-9]{2}", what):
        try:
            return _rule(rule_of(what.upper()))
        except KeyError:
            pass
    asked = re.fullmatch(rf"(?:({'|'.join(_METHODS)})\s+)?(\S+)", what.strip())
    if asked is None:
        if found := known_errors.find(what):
            return _message(what, found)
        raise InspectorError("No known message matches.", _USAGE)
    method, target = asked.groups()
    if rows := _rows(target, (method,) if method else _METHODS):
        return _endpoint(rows)
    if method and (rows := _rows(target, _METHODS)):
        methods = dict.fromkeys(each for row in rows for each in row.methods)
        raise InspectorError(f"There is no {method} of {rows[0].name}.", f"It takes {', '.join(methods)}.")
    names = [*(endpoint.name for endpoint in ENDPOINTS), *(rule.id for rule in all_rules())]
    near = difflib.get_close_matches(target.upper() if len(target) == 3 else target, names, 3)
    raise InspectorError(
        f"{target!r} is neither an endpoint nor a rule.",
        f"Did you mean {' or '.join(dict.fromkeys(near))}?" if near else _USAGE,
    )


def _rows(target: str, methods: Sequence[str]) -> list[Endpoint]:
    """The endpoints with a name, or with a request path, that take one of these methods."""
    if "/" not in target:
        return [each for each in ENDPOINTS if each.name == target and not set(methods).isdisjoint(each.methods)]
    path = target if target.startswith("/") else f"/{target}"
    return [found.endpoint for method in methods if (found := match(method, path))]


def _message(pasted: str, found: known_errors.ErrorMatch) -> dict[str, str]:
    known = found.known
    seen = {None: "no: only in the agent's own log", "wire": "yes, in the traffic"}
    return {
        "message": wording.clean(pasted.strip()),
        "meaning": known.cause,
        "seen": seen.get(known.visible, f"only as a {known.visible}"),
        "rules": "; ".join(f"{each} {rule_of(each).title}" for each in known.rules) or "none",
        "remedy": fill(known.remedy, None, name=found.name, host=found.host, old=known.old),
    }


def _endpoint(rows: list[Endpoint]) -> dict[str, str]:
    row = rows[0]
    return {
        "endpoint": row.name,
        "purpose": row.purpose,
        "phase": str(row.phase),
        "requests": "; ".join(dict.fromkeys(each for one in rows for each in _requests(one))),
        "indirector": ", ".join(row.verbs) or "none",
        "asked by": row.caller,
        "allowed": f"{row.access} (by default)",
        "source": row.source,
    }


def _requests(row: Endpoint) -> list[str]:
    """Method and path in each dialect, the way a person writes them."""
    path = re.sub(r"\(\?P<name>\[\^/\]\+\)", "{certname}", row.path)
    path = re.sub(r"\(\?P<key>(?:\[\^/\]\+|\.[*+])\)", "{key}", path)
    path = re.sub(r"\(\?:/\{key\}\)\?", "[/{key}]", path).replace("[^/]+", "ca").replace("/?", "")
    path = re.sub(r"\(\?P<key>(.*)\)", r"\1", path)
    path = re.sub(r"\(\?:/\.\*\)\?$", "[/{path}]", path).replace("[0-9a-f]+", "{digest}")
    path = re.sub(r"\(\?:([^()]*)\)", r"{\1}", path)
    methods = ", ".join(row.methods)
    lines = []
    if "v3" in row.dialects:
        lines.append(f"{methods} {_PREFIX[row.area]}{path}")
    if "legacy" in row.dialects:
        lines.append(f"{methods} {'' if row.area == 'root' else '/{environment}/'}{path}")
    return lines


def _linked(source: str) -> str:
    """A rule's or an endpoint's source for a page in docs/: sections as links, files as code."""
    return "; ".join(map(_part, source.split("; ")))


def _part(part: str) -> str:
    if part.startswith("docs/"):
        page = part.removeprefix("docs/")
        return f"[{page}]({page})"
    return part if part.startswith("RFC ") else f"`{part}`"


def _rule(rule: Rule) -> dict[str, str]:
    otherwise = f"; {rule.otherwise}" if rule.otherwise else ""
    return {
        "rule": f"{rule.id} {rule.title}",
        "severity": f"{rule.severity}{otherwise}; {_VISIBLE[rule.visible]}",
        "meaning": rule.explanation,
        "seen": f"at requests to {', '.join(_names(rule.at))}" if rule.at else _WHEN[rule.on],
        "agents": ", ".join(rule.generations) or "all generations",
        "thresholds": ", ".join(f"{name} {value:g}" for name, value in rule.thresholds.items()) or "none",
        "remedy": rule.remedy_for(None),
        "source": rule.source,
    }


def _names(about: Iterable[Kind]) -> list[str]:
    """The endpoints of some kinds."""
    return list(dict.fromkeys(row.name for kind in about for row in ENDPOINTS if row.kind is kind))


def endpoints_page() -> str:
    """docs/endpoints.md."""
    lines = [
        "# Endpoints",
        "",
        "What agents and tools ask a master for, in both dialects: v3 (Puppet 4 to 8, OpenVox) and legacy (2.7, 3.x).",
        "Made from `inspector/protocol/endpoints.py` with `make docs`; `puppet-inspector explain NAME` prints it.",
        "The last column leads to what each request carries and how it can be answered:",
        "[Endpoints](protocol.md#endpoints) in the description of the wire protocol.",
        "",
        "| endpoint | phase | requests | indirector | for | asked by | allowed by default | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ENDPOINTS:
        requests = "<br>".join(f"`{_escape(each)}`" for each in _requests(row))
        cells = (
            row.name,
            str(row.phase),
            requests,
            ", ".join(row.verbs) or "-",
            row.purpose,
            row.caller,
            str(row.access),
            _linked(row.source),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def rules_page() -> str:
    """docs/rules.md."""
    lines = [
        "# Rules",
        "",
        "Every deviation that puppet-inspector detects. Made from `inspector/rules/` with `make docs`;",
        "`puppet-inspector explain ID` prints the same.",
        "",
        "Sources are sections of [protocol.md](protocol.md), which describes the wire protocol; public files by",
        "project, version and path; and RFCs.",
        "",
        "| rule | severity | deviation |",
        "|---|---|---|",
    ]
    for rule in all_rules():
        anchor = re.sub(r"[^a-z0-9 _-]", "", f"{rule.id} {rule.title}".lower()).replace(" ", "-")
        lines.append(f"| [{rule.id}](#{anchor}) | {rule.severity} | {_escape(rule.title)} |")
    for rule in all_rules():
        otherwise = f" ({rule.otherwise})" if rule.otherwise else ""
        lines += ["", f"## {rule.id} {rule.title}", ""]
        lines += [f"*{rule.severity}{otherwise}, {_VISIBLE[rule.visible]}.* {rule.explanation}", ""]
        if rule.generations:
            lines += [f"**Agents:** {', '.join(rule.generations)}", ""]
        if rule.thresholds:
            lines += [f"**Thresholds:** {', '.join(f'`{n}` {v:g}' for n, v in rule.thresholds.items())}", ""]
        lines += [f"**Fix:** {rule.remedy_for(None)}", "", f"**Source:** {_linked(rule.source)}"]
    return "\n".join([*lines, ""])


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {"endpoints.md": endpoints_page, "rules.md": rules_page}


def main() -> None:
    """Write the pages to docs/."""
    for name, page in PAGES.items():
        Path("docs", name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
