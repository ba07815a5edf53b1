"""What is recorded of a connection that is not intercepted because the agent cannot use it."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from inspector.model import Exchange, Handshake, Leg, Request
from inspector.proxy.connect import dialing
from inspector.rules.connection_errors import NO_HANDSHAKE
from inspector.text import address, lasting

if TYPE_CHECKING:
    from inspector.proxy.connect.acceptance import Examination

WRONG_NAME = 62
"""OpenSSL's X509_V_ERR number of a name that is not in the certificate."""
_ALERTS = {
    WRONG_NAME: "bad_certificate",
    9: "bad_certificate",
    10: "certificate_expired",
    12: "certificate_expired",
    23: "certificate_revoked",
}
"""The alert that OpenSSL sends for a verification error, by its number; another one is `unknown_ca`."""


def of(agent: Leg, server: tuple[str, int], examination: Examination) -> Exchange | Handshake:
    """Return the record: the handshake that the agent makes with the server itself and does not finish, or the request
    for a connection that was not answered."""
    error = examination.unreachable
    if error is not None or examination.silent:
        tried = Leg(id=f"{agent.id}-master", side="master", address=server[0], port=server[1],
                    connecting=examination.at)  # fmt: skip
        request = Request(method="CONNECT", target=address(*server), started=examination.at, ended=examination.at)
        reason = f"{NO_HANDSHAKE} for {lasting(examination.silent)}"
        if error is not None:
            reason = f"cannot connect to the master {address(*server)}: {dialing.reason(error)}"
        return Exchange(agent, request, master=tried, error=reason, failed=time.time())
    leg = dataclasses.replace(agent, sni=server[0], own_chain=examination.chain, tunnelled=True)
    culprits = tuple(str(problem) for problem in examination.problems)
    if not examination.chain:
        return Handshake(leg, time.time(), examination.refusal)
    code = examination.problems[0].code if examination.problems else WRONG_NAME
    return Handshake(leg, time.time(), examination.refusal, _ALERTS.get(code, "unknown_ca"), "agent", culprits)
