"""What the tests of puppetserver (`auth_conf_test.clj`) and of trapperkeeper-authorization (`acl_test.clj`,
`authorization_core_test.clj`) expect of an auth.conf, asked of our reader of auth.conf."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.explain.authorization import traffic
from inspector.explain.authorization.decision import OIDS, Client, Question, Verdict
from inspector.host.auth_conf import puppetserver
from inspector.host.auth_conf.rules import Refused
from tests.material import cases as c
from tests.material.clojure import CORE, Environment, Keyword, Unknown, evaluate, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.material.cases import Case

_ASKED = re.compile(r'\(http-get(?:-no-ssl)?\s+(?:\(str\s+)?"([^"]+)"(?:\s+"([^"]+)")?\)')
_ANSWERED = re.compile(r"\(= (\d+) \(:status")
_SETTINGS = re.compile(r":authorization\s+(\{)")
_DENIED = {403: Verdict.DENIED, 400: Verdict.UNASKED}
_NAMES = [name for name in OIDS if name.startswith("pp_")]
"""Names of Puppet's, for those that the tests give to extensions."""


def cases(directory: Path) -> Iterator[Case]:
    """Every expectation in the three files, which may be anywhere below a directory."""
    found = {path.name: path for path in directory.rglob("*_test.clj")}
    for name, function in (("auth_conf", _answers), ("acl", _entries), ("authorization_core", _refusals)):
        if path := found.get(f"{name}_test.clj"):
            yield from function(path.read_text())


# -- requests to a server, and what it answered ---------------------------------------------------------------


def _answers(text: str) -> Iterator[Case]:
    for test in text.split("(deftest ")[1:]:
        begin = _SETTINGS.search(test)
        if begin is None or "csr_attributes" in test:  # names of a site's own extensions are not decided
            continue
        settings = read(test[begin.start(1) :].partition(":webserver")[0].rsplit("}", 1)[0] + "}")[0]
        headers = (
            (("X-Client-Verify", "SUCCESS"), ("X-Client-DN", "CN=private"))
            if settings["allow-header-cert-info"]
            else ()
        )
        conf = puppetserver.read(Path("auth.conf"), json.dumps({"authorization": settings}))
        for asked in _ASKED.finditer(test):
            answered = _ANSWERED.search(test, asked.end())
            if answered is None:
                continue
            target = f"/{asked[1]}{asked[2] or ''}"
            decision = traffic.decide(conf, Question("GET", target, Client("localhost", {}), headers))
            expected = _DENIED.get(int(answered[1]), Verdict.ALLOWED)
            troubles = [] if decision.verdict is expected else [f"{decision.verdict} instead of {expected}"]
            yield c.judged(f"auth_conf: GET {target}", troubles)


# -- who is allowed by entries --------------------------------------------------------------------------------


class _Acl:
    """Entries of a rule, as the tests put them together."""

    def __init__(self, entries: tuple[tuple[str, Any], ...] = ()) -> None:
        self.entries = entries

    def allowed(self, client: dict[str, Any], more: dict[str, Any] | None = None) -> bool:
        """Whether a rule with these entries allows a client. ``more`` has the groups of its path. Raises Unknown."""
        more = more or {}
        groups = more.get("captures", [])
        names: dict[str, str] = {}

        def named(extensions: dict[str, Any]) -> dict[str, Any]:
            known = more.get("oid-map", {})
            return {
                names.setdefault(known.get(key, key), _NAMES[len(names)]): value for key, value in extensions.items()
            }

        rule: dict[str, Any] = {"name": "r", "sort-order": 1, "match-request": {"path": "/", "type": "path"}}
        if groups:
            rule["match-request"] = {"path": "^/puppet" + "/([^/]+)" * len(groups), "type": "regex"}
        for kind, entry in self.entries:
            entry = {"extensions": named(entry["extensions"])} if "extensions" in entry else entry
            rule[kind] = [*rule.get(kind, []), entry]
        conf = puppetserver.read(Path("auth.conf"), json.dumps({"authorization": {"version": 1, "rules": [rule]}}))
        extensions = {OIDS[name]: value for name, value in named(client["extensions"]).items()}
        question = Question("GET", "/".join(["/puppet", *groups]), Client(client["certname"] or None, extensions))
        verdict = traffic.decide(conf, question).verdict
        if verdict is Verdict.UNDECIDED:
            raise Unknown("not decided")
        return verdict is Verdict.ALLOWED


def _with(kind: str) -> Any:
    def add(*given: Any) -> _Acl:
        before = given[0].entries if isinstance(given[0], _Acl) else ()
        return _Acl((*before, (kind, given[-1])))

    return add


def _entries(text: str) -> Iterator[Case]:
    found: list[bool] = []
    defaults = {"foo": "foo", "baz": "baz", "quux": "quux"}
    names: Environment = CORE | {
        "is": lambda value, *_: found.append(value is True),
        "acl/allow": _with("allow"),
        "acl/deny": _with("deny"),
        "acl/new-domain": lambda kind, entry: _Acl(((str(kind), entry),)),
        "acl/match?": _Acl.allowed,
        "acl/allowed?": _Acl.allowed,
        "challenge": lambda *given: {
            "certname": given[0] if len(given) > 1 else "sylvia.plath.net", "extensions": defaults | given[-1],
        },
    }  # fmt: skip
    for form in read(text):
        match form:
            case ["def", name, value]:
                names[name] = evaluate(value, names)
            case ["deftest", name, *body]:
                yield from _tested(f"acl: {name}", body, names, found)


def _tested(name: str, body: list[Any], names: Environment, found: list[bool]) -> Iterator[Case]:
    """Yield a case for each expectation of a test: those that are within each other's reach share its name."""
    for number, part in enumerate(body, 1):
        found.clear()
        try:
            evaluate(part, names)
            reason = ""
        except (Unknown, TypeError, KeyError) as error:
            reason = f"not evaluated: {error}"
        for at, agreed in enumerate(found, 1):
            yield c.judged(f"{name} {number}.{at}", [] if agreed else ["decided otherwise"])
        if reason:
            yield c.undecided(f"{name} {number}", reason)


# -- files that a server does not start with ------------------------------------------------------------------


def _refusals(text: str) -> Iterator[Case]:
    names: Environment = dict(CORE)
    number = 0
    for form in read(text):
        match form:
            case ["def", name, *_, value]:
                names[name] = evaluate(value, names)
            case ["deftest", "invalid-configs-fail", *body]:
                for expression in _within(body):
                    number += 1
                    yield _refused(f"authorization_core: {number}", expression, names)


def _within(form: Any, bound: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Each configuration that has to be refused, with the names around it."""
    if not isinstance(form, list):
        return
    match form:
        case ["doseq" | "let", pairs, *body]:
            for part in body:
                yield from _within(part, (*bound, (form[0], pairs)))
        case ["validate-auth-config-rule!" | "validate-auth-config!", value]:
            yield form[0], value, bound
        case _:
            for part in form:
                yield from _within(part, bound)


def _refused(name: str, expression: Any, names: Environment) -> Case:
    function, value, bound = expression
    try:
        for kind, pairs in bound:
            for variable, given in zip(pairs[::2], pairs[1::2], strict=True):
                values = evaluate(given, names)
                names = names | {variable: values[0] if kind == "doseq" else values}
        configuration = evaluate(value, names)
    except Unknown as error:
        return c.undecided(name, f"not evaluated: {error}")
    if _keywords(configuration):
        return c.undecided(name, "a value that no file can have")
    section = configuration if function == "validate-auth-config!" else {"version": 1, "rules": [configuration]}
    try:
        puppetserver.read(Path("auth.conf"), json.dumps({"authorization": section}))
    except Refused:
        return c.judged(name, [])
    return c.judged(name, [f"not refused: {json.dumps(configuration)}"])


def _keywords(value: Any) -> bool:
    if isinstance(value, dict):
        return any(not isinstance(key, str) or _keywords(item) for key, item in value.items())
    return any(map(_keywords, value)) if isinstance(value, list) else isinstance(value, Keyword)
