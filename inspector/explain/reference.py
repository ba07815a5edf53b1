"""Explanations of endpoints, rules and error messages, from the tables that the inspector itself uses.

``puppet-inspector explain`` prints them. ``python -m inspector.explain.reference`` writes docs/endpoints.md and
docs/rules.md, and a test checks that these are up to date.
"""

from __future__ import annotations

import difflib
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import regex
from inspector.analysis import known_errors
from inspector.errors import InspectorError
from inspector.explain import printed_by
from inspector.model import Visible
from inspector.protocol.endpoints import ENDPOINTS, V3_PREFIXES, match
from inspector.rules import On, all_rules, fixes, known_rules, rule_of
from inspector.rules.puppet_commands import FixContext, fill
from inspector.text import clean, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inspector.protocol.endpoints import Dialect, Endpoint
    from inspector.protocol.kinds import Kind
    from inspector.rules import Rule
    from inspector.rules.fixes import Fix

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
_SHOWN = 1000
"""Characters of a pasted message that its explanation repeats."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT")
_USAGE = "`explain S01` for a rule, `explain catalog` for an endpoint; with a capture: `doctor FILE`."


def explain(what: str) -> dict[str, Any]:
    """Return the explanation of a rule, an endpoint or an agent's error message, as labels with text.

    ``steps`` is the fix of a rule or a message in steps; ``remedy`` is the same as text. ``check_steps`` and ``check``
    are what shows the cause of a message.

    An endpoint can be given by its name or by a request: a path, with or without a method. A message can be pasted with
    what surrounds it. Raises InspectorError if nothing matches, with the nearest names or messages as its hint.
    """
    if regex.fullmatch(r"[A-Za-z][0-9]{2,4}", what):
        try:
            return _rule(rule_of(what.upper()))
        except KeyError:
            raise InspectorError(
                f"There is no rule {what.upper()}.", "`puppet-inspector explain rules` lists them."
            ) from None
    request = regex.fullmatch(rf"(?:({'|'.join(_METHODS)})\s+)?(\S+)", what.strip())
    if request is None:
        if found := known_errors.find(what):
            return _message(what, found, printed_by.printed_by(found.text))
        if by := printed_by.printed_by(what):
            return _shown(what, by)
        raise InspectorError("No known message matches.", _nearest(what))
    method, target = request.groups()
    if rows := _rows(target, (method,) if method else _METHODS):
        return _endpoint(rows)
    if method and (rows := _rows(target, _METHODS)):
        methods = dict.fromkeys(other for row in rows for other in row.methods)
        raise InspectorError(f"{rows[0].name} does not accept {method}.", f"Its methods: {', '.join(methods)}.")
    if found := known_errors.find(what):
        return _message(what, found, printed_by.printed_by(found.text))
    near = difflib.get_close_matches(target, [endpoint.name for endpoint in ENDPOINTS], 3)
    raise InspectorError(
        f"{target!r} is neither an endpoint nor a rule.",
        f"Did you mean {' or '.join(dict.fromkeys(near))}?" if near else _USAGE,
    )


def explain_output(printed: str) -> dict[str, Any] | None:
    """Return the explanation of the message that matters most in a command's output; None if none is known."""
    found = known_errors.find(printed)
    return _message(found.text, found) if found else None


def _rows(target: str, methods: Sequence[str]) -> list[Endpoint]:
    """Return the endpoints with this name or request path that accept one of the methods."""
    if "/" not in target:
        return [row for row in ENDPOINTS if row.name == target and not set(methods).isdisjoint(row.methods)]
    path = target if target.startswith("/") else f"/{target}"
    return [found.endpoint for method in methods if (found := match(method, path))]


def _nearest(what: str) -> str:
    """Return a hint with the messages that share most words with an unknown one."""
    commands = [f"puppet-inspector explain {shlex.quote(text)}" for text in known_errors.nearest(what)]
    return (
        "\n  ".join(["Paste the whole line, as it was printed. The nearest ones:", *commands]) if commands else _USAGE
    )


def _message(pasted: str, found: known_errors.ErrorMatch, by: str = "") -> dict[str, Any]:
    known = found.known
    visible = {
        None: "no: only in the agent's own log",
        Visible.WIRE: "yes, in the traffic",
        Visible.HANDSHAKE: "only as a failed handshake",
        Visible.CONSEQUENCE: "only by its consequences",
    }

    def filled(steps: Fix) -> Fix:
        named = known_errors.filled(steps, found.text)
        return fill(named, FixContext.of_generation(found.name, found.host, old=known.old))

    check, fix = filled(known.check), filled(known.fix)
    return _shown(pasted, by) | {
        "meaning": known.meaning,
        "causes": " ".join(f"{number}. {cause}" for number, cause in enumerate(known.causes, 1)),
        "check": fixes.plain(check),
        "check_steps": check,
        "remedy": fixes.plain(fix),
        "steps": fix,
        "seen": visible[known.visible],
        "rules": "; ".join(f"{ident} {rule_of(ident).title}" for ident in known.rules) or "none",
    }


def _shown(pasted: str, by: str) -> dict[str, Any]:
    """Return a message as it was pasted, and who prints it, if that is known."""
    message = excerpt(clean(" ".join(known_errors.plain(pasted).split())), _SHOWN)
    return {"message": message} | ({"printed by": by} if by else {})


def _endpoint(rows: list[Endpoint]) -> dict[str, str]:
    row = rows[0]
    return {
        "endpoint": row.name,
        "purpose": row.purpose,
        "phase": str(row.phase),
        "requests": "; ".join(dict.fromkeys(request for other in rows for request in _requests(other))),
        "indirector": ", ".join(row.verbs) or "none",
        "asked by": row.caller,
        "allowed": f"{row.access} (by default)",
        "source": row.source,
    }


@cache
def templates(row: Endpoint) -> Mapping[Dialect, str]:
    """Return an endpoint's path in each dialect, with placeholders instead of regular expressions."""
    path = regex.sub(r"\(\?P<name>\[\^/\]\+\)", "{certname}", row.path).replace("[^/]+:[0-9]+", "{host}:{port}")
    path = regex.sub(r"\(\?P<key>(?:\[\^/\]\+|\.[*+])\)", "{key}", path)
    path = regex.sub(r"\(\?:/\{key\}\)\?", "[/{key}]", path).replace("[^/]+", "ca").replace("/?", "")
    path = regex.sub(r"\(\?P<key>(.*)\)", r"\1", path)
    path = regex.sub(r"\(\?:/\.\*\)\?$", "[/{path}]", path).replace("[0-9a-f]+", "{digest}")
    path = regex.sub(r"\(\?:([^()]*)\)", r"{\1}", path)
    prefixes = {"v3": V3_PREFIXES[row.area], "legacy": "" if row.area == "root" else "/{environment}/"}
    return {dialect: f"{prefixes[dialect]}{path}" for dialect in ("v3", "legacy") if dialect in row.dialects}


def _requests(row: Endpoint) -> list[str]:
    """Return methods and path in each dialect."""
    return [f"{', '.join(row.methods)} {path}" for path in templates(row).values()]


def _linked(source: str) -> str:
    """Return a source for a page in docs/: sections as links, files as code."""
    return "; ".join(map(_part, source.split("; ")))


def _part(part: str) -> str:
    if part.startswith("docs/"):
        page = part.removeprefix("docs/")
        return f"[{page}]({page})"
    return part if part.startswith("RFC ") else f"`{part}`"


def _rule(rule: Rule) -> dict[str, Any]:
    otherwise = f"; {rule.otherwise}" if rule.otherwise else ""
    return {
        "rule": f"{rule.id} {rule.title}",
        "severity": f"{rule.severity}{otherwise}; {_VISIBLE[rule.visible]}",
        "meaning": rule.explanation,
        "seen": f"at requests to {', '.join(_names(rule.at))}" if rule.at else _WHEN[rule.on],
        "agents": ", ".join(rule.generations) or "all generations",
        "thresholds": ", ".join(f"{name} {value:g}" for name, value in rule.thresholds.items()) or "none",
        "remedy": fixes.plain(rule.fix_for(None)),
        "steps": rule.fix_for(None),
        "source": rule.source,
    }


def _names(kinds: Iterable[Kind]) -> list[str]:
    """Return the names of the endpoints of these kinds."""
    return list(dict.fromkeys(row.name for kind in kinds for row in ENDPOINTS if row.kind is kind))


def rules_list() -> list[dict[str, str]]:
    """Return id, severity and title of every rule, as the site configured it."""
    return [
        {"rule": rule.id, "severity": str(rule.chosen or rule.severity), "title": rule.title} for rule in known_rules()
    ]


def endpoints_list() -> list[dict[str, str]]:
    """Return name, phase and purpose of every endpoint."""
    return [{"endpoint": row.name, "phase": str(row.phase), "purpose": row.purpose} for row in ENDPOINTS]


def endpoints_page() -> str:
    """Return the text of docs/endpoints.md."""
    lines = [
        "# Endpoints",
        "",
        "Requests of agents and tools to a master, in both dialects: v3 (Puppet 4 to 8, OpenVox), legacy (2.7, 3.x).",
        "Generated from `inspector/protocol/endpoints.py` with `make docs`;",
        "`puppet-inspector explain NAME` prints the same.",
        "The last column links to the contents of each request and its possible answers:",
        "[Endpoints](protocol.md#endpoints) in the description of the wire protocol.",
        "",
        "| endpoint | phase | requests | indirector | purpose | sent by | allowed by default | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ENDPOINTS:
        requests = "<br>".join(f"`{_escape(request)}`" for request in _requests(row))
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
    """Return the text of docs/rules.md."""
    lines = [
        "# Rules",
        "",
        "Every deviation that puppet-inspector detects. Generated from `inspector/rules/` with `make docs`;",
        "`puppet-inspector explain ID` prints the same.",
        "",
        "Sources are sections of [protocol.md](protocol.md), which describes the wire protocol; public files by",
        "project, version and path; and RFCs.",
        "",
        "| rule | severity | deviation |",
        "|---|---|---|",
    ]
    for rule in all_rules():
        anchor = regex.sub(r"[^a-z0-9 _-]", "", f"{rule.id} {rule.title}".lower()).replace(" ", "-")
        lines.append(f"| [{rule.id}](#{anchor}) | {rule.severity} | {_escape(rule.title)} |")
    for rule in all_rules():
        otherwise = f" ({rule.otherwise})" if rule.otherwise else ""
        lines += ["", f"## {rule.id} {rule.title}", ""]
        lines += [f"*{rule.severity}{otherwise}, {_VISIBLE[rule.visible]}.* {rule.explanation}", ""]
        if rule.generations:
            lines += [f"**Agents:** {', '.join(rule.generations)}", ""]
        if rule.thresholds:
            lines += [f"**Thresholds:** {', '.join(f'`{n}` {v:g}' for n, v in rule.thresholds.items())}", ""]
        lines += ["**Fix:**", "", *fixes.markdown(rule.fix_for(None)), "", f"**Source:** {_linked(rule.source)}"]
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
