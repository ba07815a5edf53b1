"""Decide about requests, recorded ones and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.explain.authorization import decision, puppetserver, ruby
from inspector.explain.authorization.decision import ANONYMOUS, Question

if TYPE_CHECKING:
    from inspector.explain.authorization.decision import Client, Decision
    from inspector.host.auth_conf.rules import AuthConf
    from inspector.model import Exchange


def decide(conf: AuthConf, question: Question) -> Decision:
    """Return what a master with these rules says to a request."""
    return ruby.decide(conf, question) if conf.kind == "ruby" else puppetserver.decide(conf, question)


def question(exchange: Exchange, conf: AuthConf) -> Question:
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
    return decision.of_der(chain[0]) if chain else ANONYMOUS
