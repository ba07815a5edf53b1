"""A table of faults between an agent and its master, each of which can be played in a lab.

A scenario drives agents and CA, and returns the results of the agents' runs, in order. ``rules`` and ``outcome`` are
the expected findings and outcome; tests compare them with the analysis.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from inspector.errors import InspectorError
from inspector.lab.ca import LabCA
from inspector.lab.wire import VERSION
from inspector.model import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.lab.agent import AgentResult, LabAgent
    from inspector.lab.scene import Lab

type ExpectedOutcome = Literal["complete", "failed", "waiting", "refused", "unfinished"]
type Scenario = Callable[[Lab], list[AgentResult]]

POLL = 0.2
"""``waitforcert`` of the lab's agents (seconds)."""
NODE = "web1.lab.example"
"""The node that is broken."""
_CRL = ("GET", "/puppet-ca/v1/certificate_revocation_list/ca")


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the table."""

    name: str
    description: str
    """One sentence for the list of faults: the scenario's docstring."""
    rules: tuple[str, ...]
    """Rules that must be among the findings."""
    outcome: ExpectedOutcome
    """The outcome of the run with the fault."""
    play: Scenario


FAULTS: dict[str, Fault] = {}
"""Faults by name: the scenario's name with dashes."""


def fault(outcome: ExpectedOutcome, *rules: str) -> Callable[[Scenario], Scenario]:
    """Add a scenario to the table."""

    def enter(play: Scenario) -> Scenario:
        name = play.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, play.__doc__ or "", rules, outcome, play)
        return play

    return enter


def _healthy(lab: Lab) -> list[AgentResult]:
    """A new agent asks for a certificate, waits, is signed, and runs twice."""
    agent = lab.agent(NODE, waitforcert=POLL)
    return [agent.run(lambda wait: wait == 2 and lab.ca.sign(NODE)), agent.run()]


HEALTHY = Fault("healthy", _healthy.__doc__ or "", (), "complete", _healthy)


def _healed(lab: Lab) -> list[AgentResult]:
    """A node that was reinstalled under its old name gets no certificate, until the steps of the fix are taken."""
    agent = lab.agent(NODE, enrolled=True)
    shutil.rmtree(agent.place.path)
    before = agent.run()
    lab.ca.clean(NODE)  # `puppetserver ca clean`
    shutil.rmtree(agent.place.path)  # `puppet ssl clean`
    return [before, _first_run(lab, agent)]


HEALED = Fault("healed", _healed.__doc__ or "", ("B18", "B22", "B23"), "waiting", _healed)


@fault("refused", "B10")
def expired_crl(lab: Lab) -> list[AgentResult]:
    """The CA's CRL has expired, so the agent refuses every server."""
    now = datetime.now(UTC)
    lab.ca.publish_crl(now - timedelta(days=60), now - timedelta(days=30))
    return [lab.agent(NODE).run()]


@fault("unfinished", "B08")
def missing_crl(lab: Lab) -> list[AgentResult]:
    """The master has no CRL, so the agent stops before it asks for a certificate."""
    text = b"Could not find certificate_revocation_list ca"
    lab.master.instead[_CRL] = _answer(404, "text/plain", text)
    return [lab.agent(NODE).run()]


@fault("refused", "B13")
def incomplete_crl(lab: Lab) -> list[AgentResult]:
    """The CRL of the root CA is missing, so the agent cannot check the whole chain."""
    lab.master.instead[_CRL] = _answer(200, "text/plain", lab.ca.signing_crl)
    return [lab.agent(NODE).run()]


@fault("complete", "B07")
def no_crl_check(lab: Lab) -> list[AgentResult]:
    """An agent with certificate_revocation=false never asks for a CRL."""
    return [_first_run(lab, lab.agent(NODE, certificate_revocation=False))]


@fault("waiting", "B17")
def repeated_csr(lab: Lab) -> list[AgentResult]:
    """Nobody signs the agent's certificate request, and it asks again and again."""
    return [lab.agent(NODE, waitforcert=POLL, maxwaitforcert=3 * POLL).run()]


@fault("complete", "B46", "B18", "B20", "B22", "B23")
def cloned_certname(lab: Lab) -> list[AgentResult]:
    """Two machines with different keys request the same certname, and one of them gets the certificate."""
    first, second = lab.agent(NODE), lab.agent(NODE, directory="clone")
    results = [first.run(), second.run()]
    lab.ca.sign(NODE)
    return [*results, first.run(), second.run()]


@fault("waiting", "B18", "B02", "B20", "B22", "B23")
def lost_key(lab: Lab) -> list[AgentResult]:
    """A signed agent has lost its ssldir and requests a certificate for its old name with a new key."""
    agent = lab.agent(NODE)
    before = _first_run(lab, agent)
    shutil.rmtree(agent.place.path)
    return [before, agent.run()]


@fault("refused", "T05", "T09")
def revoked(lab: Lab) -> list[AgentResult]:
    """The agent runs with a revoked certificate."""
    agent = lab.agent(NODE, enrolled=True)
    lab.revoke(NODE)
    return [agent.run()]


@fault("refused", "T08")
def wrong_ca(lab: Lab) -> list[AgentResult]:
    """The agent trusts the CA of another Puppet installation."""
    agent = lab.agent(NODE)
    agent.place.create()
    agent.place.ca.write_bytes(LabCA("puppet.elsewhere.example").ca_bundle)
    return [agent.run()]


@fault("refused", "T07")
def hostname_mismatch(lab: Lab) -> list[AgentResult]:
    """The agent's server setting is a name that is not in the server's certificate."""
    return [lab.agent(NODE, server_name="puppet.wrong.example").run()]


@fault("failed", "S01", "R20")
def catalog_error(lab: Lab) -> list[AgentResult]:
    """The catalog does not compile, and the agent reports a failed run."""
    message = (
        "Server Error: Evaluation Error: Error while evaluating a Function Call, Could not find class "
        f"::missing for {NODE} (file: /etc/puppetlabs/code/environments/production/manifests/site.pp, "
        f"line: 4, column: 15) on node {NODE}"
    )
    lab.master.instead["POST", f"/puppet/v3/catalog/{NODE}"] = _error(500, message, "RUNTIME_ERROR")
    return [lab.agent(NODE, enrolled=True).run()]


@fault("failed", "F02", "P01")
def missing_file(lab: Lab) -> list[AgentResult]:
    """A file's source does not exist on the master, so its resource fails."""
    prefix = "/puppet/v3/file_metadata/"
    for exchange in lab.answers:
        path = unquote(exchange.request.path)
        if path.startswith(prefix) and exchange.response and exchange.response.status == 200:
            message = f"Not Found: Could not find file_metadata {path.removeprefix(prefix)}"
            lab.master.instead["GET", path] = _error(404, message, "RESOURCE_NOT_FOUND")
            return [lab.agent(NODE, enrolled=True).run()]
    raise InspectorError("The recorded run has no request for a single file, so none can be missing.")


@fault("refused", "T03", "R20")
def no_client_certificate(lab: Lab) -> list[AgentResult]:
    """The agent presents no certificate, and the master refuses every request."""
    return [lab.agent(NODE, enrolled=True, show_certificate=False).run()]


def _first_run(lab: Lab, agent: LabAgent) -> AgentResult:
    """Run a new agent up to its report; an administrator signs while the agent waits."""
    agent.waitforcert = POLL
    return agent.run(lambda wait: wait == 1 and lab.ca.sign(agent.certname))


def _error(status: int, message: str, kind: str) -> Response:
    document = json.dumps({"message": message, "issue_kind": kind}).encode()
    return _answer(status, "application/json;charset=utf-8", document)


def _answer(status: int, content_type: str, body: bytes) -> Response:
    headers = (("Content-Type", content_type), ("X-Puppet-Version", VERSION))
    return Response(status=status, headers=headers, body=body)
