"""Messages of the tools that manage a CA, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import authorities
from tests.support.printed import TOOL, Printed, assert_found, without_line

SOURCE = "puppetserver-ca 2.4.0 lib/puppetserver/ca"

LINES = [
    Printed(
        TOOL,
        "Error:\n    Could not find certificate request for nosuch.example",
        "Could not find certificate request for NAME",
    ),
    Printed(
        TOOL,
        "Error:\n    Could not find files to clean for nosuch.example",
        "Could not find files to clean for NAME",
    ),
    Printed(
        TOOL,
        "Error:\n    Could not find certificate for nosuch.example",
        "Could not find certificate for NAME",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/ssl/certificate_authority.rb",
        "Error: Could not find a serial number for web1.example",
        "Could not find a serial number for NAME",
    ),
    Printed(
        f"{SOURCE}/certificate_authority.rb",
        "Error:\n    When attempting to sign certificate request 'web1.example', received\n      "
        "code: 409\n      body: a text of its own",
        "When attempting to sign certificate request 'NAME', received",
    ),
    Printed(
        f"{SOURCE}/action/clean.rb",
        "Error:\n    Cannot manage cert named `--all` from the CLI, if needed use the HTTP API directly",
        "Cannot manage cert named",
    ),
    Printed(
        f"{SOURCE}/local_certificate_authority.rb",
        "Error:\n    CA not initialized. Please set up your CA before attempting to generate certs offline.",
        "CA not initialized",
    ),
    Printed(
        f"{SOURCE}/utils/file_system.rb",
        "Error:\n    Existing file at '/etc/puppetlabs/puppetserver/ca/ca_crt.pem'",
        "Existing file at X",
    ),
    Printed(
        f"{SOURCE}/action/generate.rb",
        "Could not determine whether Puppet Server is online. Connection check failed with an error.",
        "Could not determine whether Puppet Server is online",
    ),
    Printed(
        f"{SOURCE}/x509_loader.rb",
        "Error:\n    Private key and certificate do not match",
        "Private key and certificate do not match",
    ),
    Printed(
        f"{SOURCE}/certificate_authority.rb",
        "Error:\n '5x' is an invalid ttl value",
        "is an invalid ttl value",
    ),
    Printed(
        f"{SOURCE}/config/puppet.rb",
        "The cadir is currently configured to be inside the /etc/puppetlabs/puppet/ssl directory.",
        "The cadir is currently configured to be inside the X",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(authorities.MESSAGES, LINES) == []
