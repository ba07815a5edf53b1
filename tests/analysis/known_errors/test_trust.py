"""Messages about the CA bundle, the CRLs and the certificate that a server shows, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import trust
from tests.support.printed import AGENT, LOG, Printed, assert_found, without_line

PROVIDER = "puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb"
MACHINE = "puppet 7.23.0 lib/puppet/ssl/state_machine.rb"
VERIFIER = "puppet 7.23.0 lib/puppet/ssl/verifier.rb"

LINES = [
    Printed(
        VERIFIER,
        "Error: Could not retrieve catalog from remote server: certificate verify failed [unable to "
        "get local issuer certificate for CN=master.example]",
        "unable to get local issuer certificate",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/ssl/validator/default_validator.rb",
        "Error: Could not request certificate: SSL_connect returned=1 errno=0 state=SSLv3 read server "
        "certificate B: certificate verify failed: [unable to get local issuer certificate for "
        "/CN=master.example]",
        "unable to get local issuer certificate",
    ),
    Printed(
        "OpenSSL 3",
        "Error: SSL_connect returned=1 errno=0 peeraddr=192.0.2.1:8140 state=error: certificate "
        "verify failed (self-signed certificate in certificate chain)",
        "self-signed certificate in certificate chain",
    ),
    Printed(
        VERIFIER,
        "Error: certificate verify failed [self signed certificate in certificate chain for CN=Puppet CA]",
        "self-signed certificate in certificate chain",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/ssl/error.rb",
        "Error: Server hostname 'puppet' did not match server certificate; expected one of "
        "master.example, DNS:puppetdb, DNS:master.example",
        "Server hostname 'HOST' did not match server certificate",
    ),
    Printed(
        AGENT,
        "Error: Connection to https://127.0.7.1:8140/puppet/v3 failed, trying next route: Request to "
        'https://127.0.7.1:8140/puppet/v3 failed after 0.046 seconds: hostname "127.0.7.1" does not '
        'match the server certificate\nWrapped exception:\nhostname "127.0.7.1" does not match the '
        "server certificate\nError: No more routes to fileserver",
        'hostname "HOST" does not match the server certificate',
    ),
    Printed(
        LOG,
        "Error: Could not request certificate: SSL_connect returned=1 errno=0 state=error: "
        "certificate verify failed: [ok for /CN=master.example]",
        "Server hostname 'HOST' did not match server certificate",
    ),
    Printed(
        PROVIDER,
        "Error: The certificate 'CN=web1.example' has expired, verify time is synchronized",
        "The certificate 'NAME' is not yet valid, verify time is synchronized",
    ),
    Printed(
        PROVIDER,
        "Error: The CRL issued by 'CN=Puppet CA: master.example' is not yet valid, verify time is synchronized",
        "The CRL issued by 'X' is not yet valid, verify time is synchronized",
    ),
    Printed(
        PROVIDER,
        "Error: The CRL issued by 'CN=Puppet CA: master.example' has expired, verify time is synchronized",
        "The CRL issued by 'X' has expired, verify time is synchronized",
    ),
    Printed(
        PROVIDER,
        "Error: The CRL issued by 'CN=Puppet Root CA: 12ab34' is missing",
        "The CRL issued by 'X' is missing",
    ),
    Printed(
        PROVIDER,
        "Error: Invalid signature for CRL issued by 'CN=Puppet CA: master.example'",
        "Invalid signature for CRL issued by 'X'",
    ),
    Printed(
        PROVIDER,
        "Error: Certificate 'CN=web1.example' failed verification (26): unsuitable certificate purpose",
        "Certificate 'X' failed verification (X)",
    ),
    Printed(
        VERIFIER,
        "Error: certificate verify failed [a reason of its own for CN=master.example]",
        "certificate verify failed",
    ),
    Printed(
        AGENT,
        "Error: Failed to parse CRLs as PEM\nError: Failed to parse CRLs as PEM",
        "Failed to parse CRLs as PEM",
    ),
    Printed(
        AGENT,
        "Error: Failed to parse CA certificates as PEM",
        "Failed to parse CA certificates as PEM",
    ),
    Printed(
        AGENT,
        "Error: Could not run: The CA certificates are missing from '/etc/puppetlabs/puppet/ssl/certs/ca.pem'",
        "Failed to parse CA certificates as PEM",
    ),
    Printed(
        AGENT,
        "Error: PEM_read_bio_X509: bad end line",
        "bad end line",
    ),
    Printed(
        AGENT,
        "Error: PEM_read_bio_X509_CRL: bad base64 decode",
        "bad end line",
    ),
    Printed(
        AGENT,
        "Error: PEM_read_bio_X509: ASN1 lib",
        "bad end line",
    ),
    Printed(
        MACHINE,
        "Error: CA bundle with digest (SHA256) 11:22 did not match expected digest 33:44",
        "CA bundle with digest (X) X did not match expected digest X",
    ),
    Printed(
        MACHINE,
        "Error: CA certificate is missing from the server",
        "CA certificate is missing from the server",
    ),
    Printed(
        MACHINE,
        "Error: CRL is missing from the server",
        "CRL is missing from the server",
    ),
    Printed(
        PROVIDER,
        "Error: CRLs are missing",
        "CRLs are missing",
    ),
    Printed(
        LOG,
        "Error: SSL_connect returned=1 errno=0 state=error: dh key too small",
        "dh key too small",
    ),
    Printed(
        "OpenSSL 3",
        "Error: Could not run: digital envelope routines::unsupported",
        "digital envelope routines::unsupported",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(trust.MESSAGES, LINES) == []
