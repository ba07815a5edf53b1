"""Recorded requests, grouped by what an auth.conf says to them, or by what another one would say instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.explain.authorization import puppetserver, ruby
from inspector.explain.authorization.decision import ANONYMOUS, Question, Verdict, of_der
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from inspector.explain.authorization.decision import Client, Decision
    from inspector.host.auth_conf.rules import AuthConf
    from inspector.model import Exchange

_ORDER = (Verdict.DENIED, Verdict.FAILS, Verdict.UNDECIDED, Verdict.UNASKED, Verdict.ALLOWED)
OTHER = "other"
"""The endpoint of requests that are none of Puppet's."""


@dataclass(slots=True)
class Group:
    """Requests to one endpoint with the same decision by the same rule."""

    endpoint: str
    decision: Decision
    """On the first of them."""
    then: Decision | None = None
    """What the other auth.conf says; None: there is no other one."""
    methods: dict[str, None] = field(default_factory=dict)
    records: list[int] = field(default_factory=list)
    requests: int = 0
    nodes: dict[str, int] = field(default_factory=dict)
    """The requests of each client."""
    contradicted: list[int] = field(default_factory=list)
    """The records that show that the master decided otherwise: it had another auth.conf."""


@dataclass(slots=True)
class Traffic:
    """What an auth.conf, or two of them, say to requests."""

    conf: AuthConf
    new: AuthConf | None = None
    requests: int = 0
    counts: dict[Verdict, int] = field(default_factory=dict)
    """Requests by what ``conf`` says."""
    _groups: dict[tuple[object, ...], Group] = field(default_factory=dict)

    def add(self, exchange: Exchange) -> None:
        """Add a recorded request."""
        question = question_of(exchange, self.conf)
        group = self._place(question, question_of(exchange, self.new) if self.new else None)
        if group is None:
            return
        node = question.client.name or f"{exchange.agent.address or 'an unknown address'} without a certificate"
        group.nodes[node] = group.nodes.get(node, 0) + 1
        group.records.append(exchange.seq)
        if _contradicts(group.decision, exchange):
            group.contradicted.append(exchange.seq)

    def ask(self, question: Question) -> None:
        """Add a request that was not recorded."""
        group = self._place(question, question)
        if group is not None:
            group.nodes[question.client.name or "a client without a certificate"] = 1

    def _place(self, question: Question, again: Question | None) -> Group | None:
        """Return the group of a request; None if it is in none, because nothing would change."""
        decision = decide(self.conf, question)
        self.requests += 1
        self.counts[decision.verdict] = self.counts.get(decision.verdict, 0) + 1
        then = decide(self.new, again) if self.new and again else None
        if then is not None and then.verdict is decision.verdict and then.verdict is not Verdict.UNDECIDED:
            return None
        found = endpoints.match(question.method, question.target)
        endpoint = found.endpoint.name if found else OTHER
        key = endpoint, *_identity(decision), *(_identity(then) if then else ())
        group = self._groups.setdefault(key, Group(endpoint, decision, then))
        group.methods[question.method] = None
        group.requests += 1
        return group

    @property
    def groups(self) -> list[Group]:
        """The groups, what is denied first; those that one rule decides are side by side."""

        def place(group: Group) -> tuple[int, int, str, int]:
            last = group.then or group.decision
            order = last.rule.order if last.rule and last.rule.order is not None else 1000
            return _ORDER.index(last.verdict), order, f"{last.rule.name if last.rule else last.why}", -group.requests

        return sorted(self._groups.values(), key=place)

    @property
    def quiet(self) -> bool:
        """Whether nothing is denied, or would change."""
        if self.new is not None:
            return not self._groups
        return not any(self.counts.get(verdict) for verdict in (Verdict.DENIED, Verdict.FAILS, Verdict.UNDECIDED))


def _identity(decision: Decision) -> tuple[Verdict, str | None, str]:
    """Return what the decisions of a group share."""
    of_its_own = decision.verdict in (Verdict.UNASKED, Verdict.UNDECIDED) and decision.rule is None
    rule = decision.rule.name if decision.rule else None
    return decision.verdict, rule, decision.why if of_its_own else ""


def _contradicts(decision: Decision, exchange: Exchange) -> bool:
    """Whether the recorded answer is none that a decision allows."""
    status = exchange.response.status if exchange.response else None
    if status is None:
        return False
    if decision.verdict is Verdict.DENIED:
        return 200 <= status < 300
    found = endpoints.match(exchange.request.method, exchange.request.target)
    # Of static content some paths are refused by the master itself.
    own_reasons = found is not None and found.endpoint.kind is Kind.STATIC_CONTENT
    return decision.verdict is Verdict.ALLOWED and status == 403 and not own_reasons


def decide(conf: AuthConf, question: Question) -> Decision:
    """Return what a master with these rules says to a request."""
    return ruby.decide(conf, question) if conf.kind == "ruby" else puppetserver.decide(conf, question)


def question_of(exchange: Exchange, conf: AuthConf) -> Question:
    """Return what a master is asked by a recorded request: with the identity that the proxy used for it."""
    request = exchange.request
    return Question(request.method, request.target, _client(exchange, conf), request.headers)


def _client(exchange: Exchange, conf: AuthConf) -> Client:
    identity = exchange.identity
    chain = exchange.agent.peer_chain
    if identity is not None:
        if identity.certname is None or (identity.mode == "headers" and not conf.headers and conf.kind != "ruby"):
            return ANONYMOUS
        if exchange.master is not None and exchange.master.own_chain and identity.mode != "headers":
            chain = exchange.master.own_chain
    return of_der(chain[0]) if chain else ANONYMOUS
