"""The rule of a master's auth.conf behind an answer of 403 (S02), and what to change in the file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import inputs, regex
from inspector.capture.store import Capture
from inspector.doctor.findings import error, listed, notice, warning
from inspector.errors import InspectorError
from inspector.explain.authorization import decision_text, traffic
from inspector.explain.authorization.decision import OIDS, Verdict
from inspector.host.auth_conf import puppetserver, reading
from inspector.host.auth_conf.rules import Sort
from inspector.model import Exchange
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.rules.fixes import Step, advice, on_master
from inspector.rules.puppet_commands import FORBIDDEN, in_server_log, safe_name
from inspector.text import clean, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from inspector.explain.authorization.decision import Decision, Question
    from inspector.host.auth_conf.rules import AuthConf, Rule
    from inspector.rules.fixes import Fix
    from inspector.summaries.summary import RunBrief

RULE = "S02"
MOST = 100
"""Refused requests of a run that are looked at."""
_SERVERS_OWN = frozenset({"pp_cli_auth", OIDS["pp_cli_auth"]})
"""An extension of the server's own certificate only, by its names."""
_PLAIN = regex.compile(r"[\w '|./-]+")
"""Text that a shell leaves as it is between double quotes."""
_GENERAL = ("", "/puppet", "/puppet/v3")
"""The paths of rules that are for more than one kind of request."""


class _Default(NamedTuple):
    """A rule that puppetserver's packages bring."""

    name: str
    path: str
    methods: str
    allow: str = "*"


_DEFAULTS = {
    "catalog": _Default("puppetlabs v3 catalog from agents", "^/puppet/v3/catalog/([^/]+)$", "get, post", "$1"),
    "node": _Default("puppetlabs node", "^/puppet/v3/node/([^/]+)$", "get", "$1"),
    "report": _Default("puppetlabs report", "^/puppet/v3/report/([^/]+)$", "put", "$1"),
    "facts": _Default("puppetlabs facts", "^/puppet/v3/facts/([^/]+)$", "put", "$1"),
    "file_metadata": _Default("puppetlabs file metadata", "/puppet/v3/file_metadata", "get, post"),
    "file_content": _Default("puppetlabs file content", "/puppet/v3/file_content", "get, post"),
}
"""By the part of the path that names the indirection. Not the filebucket's, which lets every node read what others have
stored."""
_SORT_ORDER = 500
"""The sort-order of the rules that puppetserver's packages bring."""


def changed(old: Path, new: Path, capture: Path | None) -> list[Diagnosis]:
    """Return what the auth.conf of a NEW master decides otherwise than that of OLD, for the requests of a capture;
    without one, whether the files differ. Raises InspectorError for a file that cannot be read."""
    try:
        same = inputs.read(old, reading.LARGEST) == inputs.read(new, reading.LARGEST)
    except OSError as problem:
        raise InspectorError(
            f"{problem.filename or old} cannot be read: {problem.strerror}.", "Run as root."
        ) from problem
    if same:
        return []
    try:
        confs = reading.read(old), reading.read(new)
    except InspectorError as problem:
        return [error("an auth.conf is unusable", problem.message, (advice("correct it"),))]
    recorded = shlex.quote(str(capture)) if capture else "<capture>"
    command = f"puppet-inspector auth {recorded} --auth-conf {shlex.quote(str(old))} --new {shlex.quote(str(new))}"
    look = (Step("see what would change, and why", command),)
    if capture is None:
        return [notice("auth.conf differs", "what that changes for nodes shows with a capture of their requests", look)]
    asked = traffic.Traffic(*confs)
    with Capture.open(capture) as records:
        for record in records.records():
            if isinstance(record, Exchange):
                asked.add(record)
    groups = asked.groups
    if not groups:
        return [notice("auth.conf differs", f"nothing changes for {plural(asked.requests, 'recorded request')}", look)]
    count = sum(one.requests for one in groups)
    kinds = [f"{', '.join(one.methods)} {one.endpoint} of {listed(list(one.nodes))}: "
             f"{decision_text.sentence(one.then or one.decision, confs[1])}" for one in groups]  # fmt: skip
    detail = f"{count} of {plural(asked.requests, 'recorded request')} would be answered otherwise: {listed(kinds, 3)}"
    denied = any(one.then and one.then.verdict in (Verdict.DENIED, Verdict.FAILS) for one in groups)
    return [(error if denied else warning)("auth.conf decides otherwise", detail, look)]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refused request, and what auth.conf says to it."""

    seq: int
    question: Question
    decision: Decision

    @property
    def certname(self) -> str:
        return self.question.client.name or ""

    @property
    def request(self) -> str:
        """The request for ``puppet-inspector auth --request``, without its query."""
        return f"{self.question.method} {self.question.target.partition('?')[0]}"


def explained(run: RunBrief, capture: Capture, conf: AuthConf) -> RunBrief:
    """Return a run whose verdict names the rule and the line behind the 403, with the fix for it, if that is its
    cause."""
    refusals = list(_refusals(run, capture, conf)) if run.cause == RULE else []
    if not refusals or run.verdict is None:
        return run
    first = refusals[0]
    sentence = decision_text.sentence(first.decision, conf)
    if first.decision.verdict is Verdict.ALLOWED:
        sentence = f"this auth.conf allows it, so the master has another one, or has not read it again ({sentence})"
    elif _extensions(first):
        sentence += ", which may be intended"
    verdict = msgspec.structs.replace(run.verdict, reason=f"{run.verdict.reason}: {sentence}")
    fix = tuple(_literal(step) for step in _fix(refusals, conf))
    return msgspec.structs.replace(run, verdict=verdict, special_fixes={**run.special_fixes, RULE: fix})


def others(run: RunBrief, capture: Capture, conf: AuthConf) -> Iterator[Diagnosis]:
    """Yield which rule refused the requests of a run that failed for another cause."""
    if run.cause == RULE:
        return
    reported: set[str] = set()
    for refusal in _refusals(run, capture, conf):
        sentence = decision_text.sentence(refusal.decision, conf)
        if sentence not in reported:
            reported.add(sentence)
            detail = f"run {run.number}, record {refusal.seq}, {refusal.request}: {sentence}"
            yield notice("auth.conf", detail, rule=RULE)


def _refusals(run: RunBrief, capture: Capture, conf: AuthConf) -> Iterator[_Refusal]:
    seqs = sorted({seq for finding in run.findings if finding.rule == RULE for seq in finding.seqs})
    for seq in seqs[:MOST]:
        record = capture.record(seq)
        if isinstance(record, Exchange):
            question = traffic.question_of(record, conf)
            yield _Refusal(seq, question, traffic.decide(conf, question))


def _literal(step: Step) -> Step:
    """Return a step in which braces are no placeholders."""
    return msgspec.structs.replace(
        step, text=_doubled(clean(step.text)), command=_doubled(clean(step.command)), only_if=_doubled(step.only_if)
    )


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _fix(refusals: Sequence[_Refusal], conf: AuthConf) -> Fix:
    """Return what to look at, what to change in the file, and how the master reads it."""
    denied = {
        refusal.decision.rule: refusal
        for refusal in reversed(refusals)
        if refusal.decision.verdict is not Verdict.ALLOWED
    }
    steps = [_look(refusals[0], conf)]
    if not denied:
        return (*steps, _reload(conf))
    # From the end of the file to its beginning, so that the numbers of the lines stay right.
    changes = sorted(
        dict.fromkeys(each for refusal in reversed(denied.values()) for each in _changes(refusal, conf)),
        key=lambda change: -change.line,
    )
    checks = dict.fromkeys(_check(refusal, conf) for refusal in reversed(denied.values()))
    steps += dict.fromkeys(_intended(names) for refusal in denied.values() if (names := _extensions(refusal)))
    return (*steps, *(change.step for change in changes), *checks, _reload(conf))


def _extensions(refusal: _Refusal) -> tuple[str, ...]:
    """Return the extensions that the rule wants in a certificate, if this client's was refused because it lacks one."""
    rule = refusal.decision.rule
    if rule is None or refusal.decision.entry or refusal.decision.verdict is not Verdict.DENIED:
        return ()
    return tuple(dict.fromkeys(name for entry in rule.entries if entry.allows for name in entry.extensions or ()))


def _intended(extensions: Sequence[str]) -> Step:
    does = f"change nothing if that is intended: the rule is for certificates with {' or '.join(extensions)}"
    own = "; the server's own has it, so the command works on the master"
    return advice(does + (own if not _SERVERS_OWN.isdisjoint(extensions) else ""))


def _look(refusal: _Refusal, conf: AuthConf) -> Step:
    if conf.kind == "ruby":
        return on_master("look for `Denying access: Forbidden request` in its log")
    rule = refusal.decision.rule
    named = rule is not None and refusal.decision.verdict is Verdict.DENIED
    pattern = f"denied by rule '{rule.name}'" if rule and named else FORBIDDEN
    quoted = f'"{pattern}"' if _PLAIN.fullmatch(pattern) else shlex.quote(pattern)
    return on_master("see the refusal in its log", in_server_log(quoted))


def _check(refusal: _Refusal, conf: AuthConf) -> Step:
    name = safe_name(refusal.certname, "<certname>")
    request = shlex.quote(refusal.request) if refusal.request.isascii() else "'<method> <path>'"
    return on_master(
        "see what the changed file says: the master ends if it cannot read it",
        f"puppet-inspector auth --auth-conf {_path(conf)} --request {request} --certname {name}",
    )


def _reload(conf: AuthConf) -> Step:
    if conf.kind == "ruby":
        return advice("restart the master, so that it reads the file")
    return on_master("let it read the file", "systemctl reload puppetserver")


def _path(conf: AuthConf) -> str:
    return shlex.quote(str(conf.path.absolute()))


# -- what to change ------------------------------------------------------------------------------


class _Change(NamedTuple):
    """A change of the file, and where."""

    line: int
    step: Step


def _changes(refusal: _Refusal, conf: AuthConf) -> Iterator[_Change]:
    """Yield what to change so that a request is allowed."""
    rule, entry = refusal.decision.rule, refusal.decision.entry
    own = _requested_name(refusal)
    if own and own != refusal.certname.lower():
        does = f"let the node ask under the name of its certificate, {refusal.certname}: it asks for {own}"
        yield _Change(0, advice(does))
        return
    if inserted := _missing(refusal, conf):
        yield _Change(0, inserted)
        return
    bucket = _asks_bucket(refusal)
    reads = bucket and refusal.question.method in ("GET", "POST")
    condition = f"{refusal.certname} may {'read what other nodes have stored' if reads else 'have it'}"
    if rule is None or rule.line is None or (bucket and _is_general(rule)):
        place = f"{conf.path}, before line {rule.line}," if rule and rule.line else conf.path
        does = f"add a rule to {place} that allows `{refusal.request}` to {refusal.certname}"
        yield _Change(0, advice(does, only_if=condition if bucket else ""))
        return
    where = f"that begins in line {rule.line} of {conf.path}"
    if refusal.decision.verdict is not Verdict.DENIED:
        yield _Change(rule.line, advice(f"look at the rule {where}: {refusal.decision.why}"))
    elif entry is None:
        does = f"add {refusal.certname} to `allow` of the rule {where}"
        yield _Change(rule.line, advice(does, only_if=condition))
    elif len(rule.entries) > 1:
        does = f"take `{entry}` out of line {entry.line} of {conf.path}"
        yield _Change(entry.line or rule.line, advice(does, only_if=condition))
    else:
        yield _Change(rule.line, advice(f"remove the rule {where}", only_if=condition))
        without = replace(conf, rules=tuple(each for each in conf.rules if each is not rule))
        decision = traffic.decide(without, refusal.question)
        if decision.verdict is not Verdict.ALLOWED:
            yield from _changes(replace(refusal, decision=decision), without)


def _requested_name(refusal: _Refusal) -> str | None:
    """Return the certname in the path, in lower case; None if none is there, or if no rule compares it."""
    rule = refusal.decision.rule
    if rule is None or all(entry.sort is not Sort.GROUP for entry in rule.entries):
        return None
    found = endpoints.match(refusal.question.method, refusal.question.target)
    return found.certname.lower() if found and found.certname else None


def _is_general(rule: Rule) -> bool:
    """Whether a rule is for more than one kind of request."""
    return rule.pattern is None and rule.path.rstrip("/") in _GENERAL


def _asks_bucket(refusal: _Refusal) -> bool:
    """Whether the request stores a file in the filebucket, or reads one."""
    found = endpoints.match(refusal.question.method, refusal.question.target)
    return found is not None and found.endpoint.kind is Kind.BACKUP


def _missing(refusal: _Refusal, conf: AuthConf) -> Step | None:
    """Return how to insert puppetserver's own rule for a request that only a general rule denies; None if that is not
    what is missing, or would not help."""
    rule = refusal.decision.rule
    parts = refusal.question.target.partition("?")[0].split("/")
    name = parts[3] if parts[1:3] == ["puppet", "v3"] and len(parts) > 3 else parts[2] if len(parts) > 2 else ""
    default = _DEFAULTS.get("file_metadata" if name == "file_metadatas" else name)
    if default is None or conf.kind == "ruby" or conf.list_line is None:
        return None
    if rule is not None and not _is_general(rule):
        return None
    order = _SORT_ORDER if rule is None or rule.order is None or rule.order > _SORT_ORDER else rule.order - 1
    known = {each.name for each in conf.rules}
    own = next(title for title in (default.name, f"{default.name} (2)", f"{default.name} (3)") if title not in known)
    kind = "regex" if default.path.startswith("^") else "path"
    line = (
        f'        {{match-request: {{path: "{default.path}", type: {kind}, method: [{default.methods}]}}, '
        f'allow: "{default.allow}", sort-order: {order}, name: "{own}"}},'
    )
    if order < 1 or not _helps(refusal, conf, line):
        return None
    command = f"sed -i {shlex.quote(f'{conf.list_line}a\\{line}')} {_path(conf)}"
    return on_master(f"insert puppetserver's own rule for {name} at the beginning of `rules`", command)


def _helps(refusal: _Refusal, conf: AuthConf, line: str) -> bool:
    """Whether an auth.conf with one more line allows the request."""
    (added,) = puppetserver.read(conf.path, f"authorization: {{version: 1, rules: [{line}]}}").rules
    amended = replace(conf, rules=puppetserver.in_order([*conf.rules, added]))
    return traffic.decide(amended, refusal.question).verdict is Verdict.ALLOWED
