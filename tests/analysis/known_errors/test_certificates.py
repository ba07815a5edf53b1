"""Messages about an agent's key, its signing request and its certificate, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import certificates
from tests.support.printed import AGENT, LOG, TOOL, Printed, assert_found, without_line

MACHINE = "puppet 7.23.0 lib/puppet/ssl/state_machine.rb"
PROVIDER = "puppet 7.23.0 lib/puppet/x509/cert_provider.rb"
REQUEST = "puppet 7.23.0 lib/puppet/ssl/certificate_request.rb"
HOST_3 = "puppet 3.8.7 lib/puppet/ssl/host.rb"
CA = "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj"

LINES = [
    Printed(
        MACHINE,
        "Couldn't fetch certificate from CA server; you might still need to sign this agent's "
        "certificate (web1.example).",
        "Certificate for NAME has not been signed yet",
    ),
    Printed(
        MACHINE,
        "Info: Certificate for web1.example has not been signed yet",
        "Certificate for NAME has not been signed yet",
    ),
    Printed(
        HOST_3,
        "Exiting; no certificate found and waitforcert is disabled",
        "Certificate for NAME has not been signed yet",
    ),
    Printed(
        AGENT,
        "Error: The certificate for 'CN=web1.example' does not match its private key",
        "The certificate for 'NAME' does not match its private key",
    ),
    Printed(
        HOST_3,
        "Error: Could not request certificate: The certificate retrieved from the master does not "
        "match the agent's private key. Did you forget to run as root?",
        "The certificate retrieved from the master does not match the agent's private key",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
        "Error: The CSR for host 'CN=web1.example' does not match the public key",
        "The CSR for host 'NAME' does not match the public key",
    ),
    Printed(
        "puppet 5.5.22 lib/puppet/ssl/host.rb",
        "Error: The CSR retrieved from the master does not match the agent's public key.",
        "The CSR retrieved from the master does not match the agent's public key",
    ),
    Printed(
        CA,
        "Error: Could not request certificate: Error 400 on SERVER: web1.example already has a "
        "requested certificate; ignoring certificate request",
        "NAME already has a requested certificate; ignoring certificate request",
    ),
    Printed(
        CA,
        "web1.example already has a signed certificate; ignoring certificate request",
        "NAME already has a signed certificate; ignoring certificate request",
    ),
    Printed(
        CA,
        "web1.example already has a revoked certificate; ignoring certificate request",
        "NAME already has a revoked certificate; ignoring certificate request",
    ),
    Printed(
        AGENT,
        "Error: Could not run: Could not submit certificate request for 'web1.example' to "
        "https://master.example:8140/puppet-ca/v1 due to a conflict on the server",
        "due to a conflict on the server",
    ),
    Printed(
        MACHINE,
        "Error: Failed to submit the CSR, HTTP response was 500",
        "Failed to submit the CSR, HTTP response was X",
    ),
    Printed(
        CA,
        "CSR 'web1.example' contains subject alternative names (DNS:www.example, DNS:web1.example), "
        "which are disallowed. Use `allow-subject-alt-names` in ca.conf",
        "CSR 'NAME' contains subject alternative names (X), which are disallowed",
    ),
    Printed(
        CA,
        "CSR 'web1.example' contains an authorization extension (1.3.6.1.4.1.34380.1.3.39), which is disallowed.",
        "CSR 'NAME' contains an authorization extension (X), which is disallowed",
    ),
    Printed(
        REQUEST,
        "Error: Cannot create CSR with extension request pp_rolle: no such OID",
        "Cannot create CSR with extension request X",
    ),
    Printed(
        REQUEST,
        "Error: CSR sign verification failed; you need to clean the certificate request for web1.example on the server",
        "CSR sign verification failed; you need to clean the certificate request for NAME on the server",
    ),
    Printed(
        AGENT,
        "\x1b[1;31mError: Could not initialize global default settings: Certificate names must be lower case\x1b[0m",
        "Certificate names must be lower case",
    ),
    Printed(
        TOOL,
        "Error:\n    Certificate names must be lower case\n",
        "Certificate names must be lower case",
    ),
    Printed(
        PROVIDER,
        'Error: Certname "wéb1.example" must not contain unprintable or non-ASCII characters',
        "Certname X must not contain unprintable or non-ASCII characters",
    ),
    Printed(
        AGENT,
        "Error: Could not parse PKey: unsupported",
        "Could not parse PKey",
    ),
    Printed(
        AGENT,
        "Error: Could not run: Failed to load private key for host 'web1.example': Could not parse "
        "PKey: unsupported\nWrapped exception:\nCould not parse PKey: unsupported",
        "Failed to load private key for host 'NAME'",
    ),
    Printed(
        LOG,
        "Error: Could not request certificate: Neither PUB key nor PRIV key: nested asn1 error",
        "Could not parse PKey",
    ),
    Printed(
        AGENT,
        "Error: Could not run: The private key is missing from "
        "'/etc/puppetlabs/puppet/ssl/private_keys/web1.example.pem'",
        "The private key is missing from X",
    ),
    Printed(
        PROVIDER,
        "Error: Failed to load client certificate for 'web1.example'",
        "Failed to load client certificate for 'NAME'",
    ),
    Printed(
        PROVIDER,
        "Error: Failed to save private key for 'web1.example'",
        "Failed to save private key for 'NAME'",
    ),
    Printed(
        MACHINE,
        "Error: Failed to retrieve certificate for web1.example: a reason of its own",
        "Failed to retrieve certificate for NAME",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/application/ssl.rb",
        "Error: Could not run: The certificate web1.example must be cleaned from the CA first. To fix "
        "this,\nrun the following commands on the CA:\n  puppetserver ca clean --certname "
        "web1.example\n  puppet ssl clean",
        "The certificate NAME must be cleaned from the CA first",
    ),
    Printed(
        LOG,
        "Error: Could not retrieve catalog from remote server: SSL_connect SYSCALL returned=5 errno=0 "
        "state=SSLv3 read finished A",
        "Certificate 'NAME' is revoked",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
        "Error: Certificate 'CN=web1.example' is revoked",
        "Certificate 'NAME' is revoked",
    ),
    Printed(
        "OpenSSL 3",
        "Error: Could not retrieve catalog from remote server: SSL_read: ssl/tls alert certificate "
        "unknown (SSL alert number 46)",
        "ssl/tls alert certificate unknown",
    ),
    Printed(
        "OpenSSL 1.1",
        "Error: SSL_connect returned=1 errno=0 state=error: tlsv1 alert unknown ca",
        "tlsv1 alert unknown ca",
    ),
    Printed(
        "OpenSSL 1.1",
        "Error: SSL_connect returned=1 errno=0 state=error: sslv3 alert certificate expired",
        "sslv3 alert certificate expired",
    ),
    Printed(
        "OpenSSL 3",
        "Error: SSL_read: tlsv13 alert certificate required",
        "alert certificate required",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(certificates.MESSAGES, LINES) == []
