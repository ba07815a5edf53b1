"""Messages about compiling a catalog: its environment, and failures of the server, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import catalogs
from tests.support.printed import AGENT, Printed, assert_found, without_line

SERVER = "Error: Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: "
SITE = "(file: /etc/puppetlabs/code/environments/production/manifests/site.pp, line: 1, column: 1) on node web1.example"

LINES = [
    Printed(
        AGENT,
        "Error: Failed to apply catalog: Environment 'nosuch' not found on server, aborting run.",
        "Environment 'X' not found on server",
    ),
    Printed(
        AGENT,
        "Notice: Environment 'nosuch' not found on server, skipping initial pluginsync.",
        "Environment 'X' not found on server",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/network/http/api/indirected_routes.rb",
        "Error: Could not retrieve catalog from remote server: Error 404 on SERVER: Not Found: Could "
        "not find environment 'nosuch'",
        "Could not find environment 'X'",
    ),
    Printed(
        AGENT,
        "Notice: Local environment: 'nosuch' doesn't match server specified environment 'production', "
        "restarting agent run with environment 'production'",
        "Local environment: 'X' doesn't match server specified environment 'X', restarting agent run",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/network/http/api/v1.rb",
        "Error: Could not request certificate: Error 400 on SERVER: The environment must be purely "
        "alphanumeric, not 'puppet-ca'",
        "Invalid environment name",
    ),
    Printed(
        "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/jruby_request.clj",
        "Error: Could not retrieve catalog from remote server: Error 503 on SERVER: Attempt to borrow "
        "a JRuby instance from the pool timed out",
        "Attempt to borrow a JRuby instance from the pool timed out",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Function Call, stop here {SITE}",
        "Server Error: Evaluation Error",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/catalog/rest.rb",
        "Error: Could not retrieve catalog from remote server: Find /puppet/v3/catalog/web1.example "
        "resulted in 404 with the message: a text of its own",
        "Find X resulted in 404 with the message: X",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(catalogs.MESSAGES, LINES) == []
