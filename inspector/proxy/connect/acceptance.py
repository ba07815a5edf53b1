"""Whether an agent would accept a server: a handshake as this agent would make it, without a client certificate; and
what is recorded of a server that the agent cannot use."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from OpenSSL import SSL

from inspector.model import Exchange, Handshake, Leg, Request
from inspector.proxy import tls
from inspector.proxy.connect import dialing
from inspector.proxy.connect.trust import BUNDLE, download
from inspector.proxy.connection_state import name_mismatch
from inspector.rules.connection_errors import NO_HANDSHAKE
from inspector.text import address, lasting

if TYPE_CHECKING:
    import socket

    from inspector.protocol import x509
    from inspector.proxy.connect.dialing import SiteProxy
    from inspector.proxy.tls import Trust

RECORD = 2**14
SILENCE = 15.0
"""Seconds that TLS may take at most. An agent waits for longer, and says then what it says in a direct run."""
WRONG_NAME = 62
"""OpenSSL's X509_V_ERR number of a name that is not in the certificate."""
_OF_TIME = frozenset({9, 10, 11, 12})
"""Its numbers for certificates and CRLs that have expired or are not yet valid."""
_ALERTS = {
    WRONG_NAME: "bad_certificate",
    9: "bad_certificate",
    10: "certificate_expired",
    12: "certificate_expired",
    23: "certificate_revoked",
}
"""The alert that OpenSSL sends for a verification error, by its number; another one is `unknown_ca`."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What a server showed."""

    at: float
    unreachable: OSError | None = None
    """Why there is no connection; None if there is one."""
    refusal: str = ""
    """Why an agent would refuse the server, in its own words; empty if it would not."""
    silent: float = 0.0
    """Seconds for which it did not answer the TLS handshake; 0: it did."""
    problems: tuple[x509.Problem, ...] = ()
    chain: tuple[bytes, ...] = ()
    """The server's certificates in DER, its own first."""
    ahead: float | None = None
    """Seconds by which the server's clock is ahead of this host's; None: it was not asked, or did not answer."""

    @property
    def accepted(self) -> bool:
        return not self.unreachable and not self.refusal and not self.silent


def examine(server: tuple[str, int], trust: Trust, site: SiteProxy | None, timeout: float) -> Examination:
    """Look at a server. It may take ``timeout`` seconds to connect, and ``SILENCE``, or half of that, for TLS."""
    began = time.time()
    try:
        connection = dialing.dial(server, site, timeout)
    except OSError as error:
        return Examination(began, unreachable=error)
    with connection:
        context = tls.verifying(SSL.TLS_CLIENT_METHOD, trust)
        made, state = tls.master_connection(context, trust, server[0], server[0], None)
        patience = min(timeout / 2, SILENCE)
        try:
            failure = _shake_hands(made, connection, time.monotonic() + patience)
        except TimeoutError:
            return Examination(began, silent=patience)
        state.complete(made)
    refusal = ""
    if state.wrong_name:
        refusal = name_mismatch(server[0], state.wrong_name)
    elif trust.verifies and state.problems:
        refusal = str(state.problems[0])
    elif failure and not state.chain:  # a server that showed its certificate may want one of the agent
        refusal = failure
    ahead = None
    if refusal and any(problem.code in _OF_TIME for problem in state.problems):
        ahead = download(server, site, BUNDLE).ahead
    return Examination(began, refusal=refusal, problems=tuple(state.problems), chain=state.peer_chain, ahead=ahead)


def _shake_hands(made: SSL.Connection, connection: socket.socket, until: float) -> str:
    """Make a TLS handshake; return why it failed, empty if it did not. Raises TimeoutError."""
    while True:
        if (left := until - time.monotonic()) <= 0:
            raise TimeoutError
        connection.settimeout(left)
        try:
            made.do_handshake()
        except SSL.WantReadError:
            pass
        except SSL.Error as error:
            return tls.words(error)
        else:
            made.shutdown()
            with contextlib.suppress(OSError):
                _send(made, connection)  # or it would be a client that left during the handshake
            return ""
        try:
            _send(made, connection)
            received = connection.recv(RECORD)
        except TimeoutError:
            raise
        except OSError as error:
            return error.strerror or str(error)
        if not received:
            return "the server closed the connection"
        made.bio_write(received)


def _send(made: SSL.Connection, connection: socket.socket) -> None:
    try:
        while data := made.bio_read(RECORD):
            connection.sendall(data)
    except SSL.WantReadError:
        pass


def record(agent: Leg, server: tuple[str, int], examination: Examination) -> Exchange | Handshake:
    """Return what is recorded of a connection that is not intercepted: the handshake that the agent makes with the
    server itself and does not finish, or the request for a connection that was not answered."""
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
    alert = _ALERTS.get(code, "unknown_ca")
    return Handshake(leg, time.time(), examination.refusal, alert, "agent", culprits, master_ahead=examination.ahead)
