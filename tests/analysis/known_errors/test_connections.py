"""Messages about the way to the server, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import connections
from inspector.explain import reference
from tests.support.printed import AGENT, LOG, Printed, assert_found, without_line

CLIENT = "puppet 7.23.0 lib/puppet/http/client.rb"

BUSY = """\
Info: Using environment 'production'
Info: Retrieving pluginfacts
Notice: Environment 'production' not found on server, skipping initial pluginsync.
Warning: Sleeping for 1 seconds before retrying the request
Error: Could not retrieve catalog from remote server: Request to \
https://master.example:8140/puppet/v3/catalog/e.example?environment=production failed after 1.014 seconds: attempt to \
read body out of block
Wrapped exception:
attempt to read body out of block
Warning: Not using cache on failed catalog
Error: Could not retrieve catalog; skipping run
"""
"""A real agent 7.23.0 on Ruby 3.1, at a server that answers its request for a catalog 503 with Retry-After: 1."""

LINES = [
    Printed(
        AGENT,
        "Error: Connection to https://127.0.0.1:9/puppet-ca/v1 failed, trying next route: Request to "
        "https://127.0.0.1:9/puppet-ca/v1 failed after 0.001 seconds: Failed to open TCP connection "
        'to 127.0.0.1:9 (Connection refused - connect(2) for "127.0.0.1" port 9)\nWrapped exception:\n'
        "Failed to open TCP connection to 127.0.0.1:9 (Connection refused - connect(2) for "
        '"127.0.0.1" port 9)\nError: No more routes to ca',
        "Connection refused",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/ssl/host.rb",
        'Error: Could not request certificate: Connection refused - connect(2) for "puppet" port 8140',
        "Connection refused",
    ),
    Printed(
        AGENT,
        "Error: Connection to https://puppet.invalid.example:9/puppet-ca/v1 failed, trying next "
        "route: Request to https://puppet.invalid.example:9/puppet-ca/v1 failed after 0.002 seconds: "
        "Failed to open TCP connection to puppet.invalid.example:9 (getaddrinfo: Name or service not "
        "known)",
        "getaddrinfo",
    ),
    Printed(
        LOG,
        "err: Could not request certificate: getaddrinfo: Name or service not known",
        "getaddrinfo",
    ),
    Printed(
        CLIENT,
        "Error: Could not retrieve catalog from remote server: Request to "
        "https://master.example:8140/puppet/v3 timed out connect operation after 120.004 seconds",
        "Request to HOST timed out connect operation after X seconds",
    ),
    Printed(
        LOG,
        "Error: Could not request certificate: No route to host - connect(2)",
        "No route to host",
    ),
    Printed(
        CLIENT,
        "Error: Could not retrieve catalog from remote server: Request to "
        "https://master.example:8140/puppet/v3/catalog/web1?environment=production timed out read "
        "operation after 600.212 seconds",
        "execution expired",
    ),
    Printed(
        LOG + " of 3.x",
        "Error: Could not retrieve catalog from remote server: execution expired",
        "execution expired",
    ),
    Printed(
        CLIENT,
        "Error: Request to https://master.example:8140/puppet/v3/catalog/web1 interrupted after 31.2 seconds",
        "Request to X interrupted after X seconds",
    ),
    Printed(
        AGENT,
        "Error: Connection to https://127.0.0.1:51069/puppet/v3 failed, trying next route: Request to "
        "https://127.0.0.1:51069/puppet/v3 failed after 0.002 seconds: SSL_connect returned=1 errno=0 "
        "peeraddr=(null) state=error: unexpected eof while reading",
        "Connection reset by peer",
    ),
    Printed(
        LOG,
        "Error: Could not send report: Connection reset by peer - SSL_connect",
        "Connection reset by peer",
    ),
    Printed(
        AGENT,
        "Error: Connection to https://127.0.0.1:34877/puppet/v3 failed, trying next route: Request to "
        "https://127.0.0.1:34877/puppet/v3 failed after 0.013 seconds: SSL_connect returned=1 errno=0 "
        "peeraddr=127.0.0.1:34877 state=error: wrong version number",
        "wrong version number",
    ),
    Printed(
        LOG + " of 3.x",
        "Error: Could not request certificate: SSL_connect returned=1 errno=0 state=SSLv2/v3 read "
        "server hello A: unknown protocol",
        "wrong version number",
    ),
    Printed(
        AGENT,
        BUSY,
        "attempt to read body out of block",
    ),
    Printed(
        AGENT,
        "Warning: Sleeping for 1 seconds before retrying the request",
        "Sleeping for X seconds before retrying the request",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/http/errors.rb",
        "Error: Too many HTTP retries for https://master.example:8140",
        "Too many HTTP retries for X",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/rest.rb",
        "Error: Could not retrieve catalog from remote server: Error 503 on SERVER: Service Unavailable",
        "Error 503 on SERVER",
    ),
    Printed(
        LOG,
        "Error: Could not send report: Error 502 on SERVER: <html><head><title>502 Bad Gateway</title></head>",
        "502 Bad Gateway",
    ),
    Printed(
        LOG,
        "Error: Could not send report: Error 413 on SERVER: <html><head><title>413 Request Entity Too "
        "Large</title></head>",
        "413 Request Entity Too Large",
    ),
    Printed(
        LOG,
        "Error: Could not retrieve catalog from remote server: Error 400 on SERVER: Bad Request",
        "400 Bad Request",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/http/errors.rb",
        "Error: Too many HTTP redirections for https://master.example:8140",
        "Too many HTTP redirections for X",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/http/service.rb",
        "Error: No content type in http response; cannot parse",
        "No content type in http response; cannot parse",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/configurer.rb",
        "Error: Could not select a functional puppet server from server_list: 'a.example:8140,b.example:8140'",
        "Could not select a functional puppet server from server_list: 'X'",
    ),
    Printed(
        AGENT,
        "Error: Could not retrieve catalog from remote server: No more routes to puppet",
        "No more routes to X",
    ),
    Printed(
        CLIENT,
        "Error: Could not retrieve catalog from remote server: Request to "
        "https://master.example:8140/puppet/v3 failed after 0.2 seconds: a reason of its own",
        "Request to X failed after X seconds: X",
    ),
    Printed(
        LOG,
        'Error: Could not request certificate: 407 "Proxy Authentication Required"',
        "Proxy Authentication Required",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(connections.MESSAGES, LINES) == []


def test_a_run_that_fails_at_a_busy_master_is_explained_by_the_agents_bug() -> None:
    output = reference.explain(BUSY)
    assert output["rules"].startswith("S24 ")
    assert "7.26" in output["remedy"]
    assert "`max-queued-requests: 0`" in output["remedy"]
    assert "puppet --version" in output["check"]
