"""Messages about the CA bundle, the CRLs and the certificate that a server shows."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible

_W, _H = Visible.WIRE, Visible.HANDSHAKE
_SERVED = (
    "On the node run `openssl s_client -connect {host}:8140 -servername {host} </dev/null 2>/dev/null | openssl x509 "
    "-noout -subject -issuer -enddate`."
)

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            "certificate verify failed [unable to get local issuer certificate for CN=X]",
            "certificate verify failed [unable to get issuer certificate for CN=X]",
            "certificate verify failed [unable to get local issuer certificate for X]",
            "certificate verify failed (unable to get local issuer certificate)",
            "certificate verify failed: [unable to get local issuer certificate for X]",
            "unable to get local issuer certificate",
            "The issuer 'X' of certificate 'X' is missing",
            "The issuer 'X' of certificate 'X' cannot be found locally",
        ),
        "The agent's ca.pem does not contain the CA that signed the presented certificate.",
        (
            "The CA was recreated, or the node belonged to another CA, and its ca.pem is the old one.",
            "The agent reaches another server than it should.",
            "The intermediate CA is missing in ca.pem.",
        ),
        _SERVED + (' Compare the issuer with `openssl x509 -noout -subject -in "$(puppet config print localcacert)"`.'),
        "Make sure that the agent reaches the right server; then on the node run {trust_anew}. If the "
        "node's own certificate was also issued by the other CA: {enrol_ca}.",
        ("T08", "T06", "B04", "B05"),
        _H,
    ),
    KnownError(
        (
            "certificate verify failed [self signed certificate in certificate chain for CN=X]",
            "certificate verify failed [self-signed certificate in certificate chain for CN=X]",
            "certificate verify failed: [self signed certificate in certificate chain for X]",
            "certificate verify failed (self signed certificate in certificate chain)",
            "self signed certificate in certificate chain",
            "self-signed certificate in certificate chain",
        ),
        "The chain ends in a root CA that the agent does not have.",
        (
            "The CA was recreated.",
            "Only a part of the CA bundle was distributed.",
            "A proxy on the way shows certificates of its own.",
        ),
        _SERVED,
        "Distribute the new bundle to every host that uses the CA; on a node run {trust_anew}. If the "
        "node's own certificate was also issued by the other CA: {enrol_ca}.",
        ("T08", "B04"),
        _H,
    ),
    KnownError(
        (
            "Server hostname 'HOST' did not match server certificate; expected one of X, DNS:X",
            "Server hostname 'HOST' did not match server certificate; expected X",
            "Server hostname 'HOST' did not match server certificate",
            'hostname "HOST" does not match the server certificate',
            "hostname was not match with the server certificate",
            "certificate verify failed: [ok for /CN=X]",
        ),
        "The name that the agent uses for its server is not in the server's certificate. With Ruby 2.4 "
        "and later, old versions of Puppet print `[ok for ...]` instead.",
        (
            "`server` in the agent's puppet.conf is an alias, an address or a short name.",
            "The server's certificate was made before `dns_alt_names` was set.",
            "The name leads to another server, for example a load balancer.",
        ),
        "On the node run `puppet config print server --section agent`. " + _SERVED.removeprefix("On the node run "),
        "On the node set `server` to a name that the message lists: `puppet config set server <name> "
        "--section main`. Or recreate the server's certificate, with {host} in its `dns_alt_names`.",
        ("T07",),
        _H,
    ),
    KnownError(
        (
            "The certificate 'NAME' is not yet valid, verify time is synchronized",
            "The certificate 'NAME' has expired, verify time is synchronized",
            "The certificate 'X' has expired",
            "certificate verify failed [certificate has expired for CN=NAME]",
            "certificate verify failed [certificate has expired for X]",
            "certificate verify failed [certificate is not yet valid for X]",
        ),
        "A certificate is outside its time. Puppet's certificates are valid for five years.",
        (
            "The certificate has really expired.",
            "The clock of the node or of the CA is wrong.",
        ),
        "Check the time on both ends first: `date -u`. On the node run `openssl x509 -noout -enddate -in "
        '"$(puppet config print hostcert)"`.',
        "If a node's certificate has expired: {enrol}. If the master's has expired: {renew_master}. If the CA's has "
        "expired: renew it on the CA.",
        ("B33", "B35", "T08", "T10"),
        _W,
    ),
    KnownError(
        (
            "The CRL issued by 'X' is not yet valid, verify time is synchronized",
            "The CRL issued by 'X' is not yet valid",
            "certificate verify failed [CRL is not yet valid for X]",
        ),
        "The CRL begins in the future, by the agent's clock. Agents allow five minutes.",
        (
            "The agent's clock is behind.",
            "The CA's clock was ahead when it wrote the list.",
        ),
        "Compare `date -u` on the node and on the CA.",
        "Synchronise the clocks (NTP) on the agent and on the CA. If the CA's clock was ahead, correct "
        "it first, then: {new_crl}.",
        ("B12", "T10"),
        _W,
    ),
    KnownError(
        (
            "The CRL issued by 'X' has expired, verify time is synchronized",
            "The CRL issued by 'X' has expired",
            "certificate verify failed [CRL has expired for CN=X]",
            "certificate verify failed [CRL has expired for X]",
        ),
        "The CRL's nextUpdate has passed, so nobody may rely on the list any more.",
        (
            "The CA has not issued a new list for years.",
            "The agent or a compiler still has an old file.",
            "The list of an external CA was not fetched again.",
        ),
        "On the CA run {crls}.",
        'On the CA run {new_crl}. Then on each agent that still has the old one run `rm -f "$(puppet '
        'config print hostcrl)"; puppet agent -t`. If the message names an external CA, that CA must '
        "issue the list: pass its file with --add.",
        ("B10",),
        _W,
    ),
    KnownError(
        (
            "The CRL issued by 'X' is missing",
            "certificate verify failed [unable to get certificate CRL for CN=X]",
            "certificate verify failed [unable to get certificate CRL for X]",
        ),
        "The CRL bundle does not contain the CRL of one CA of the chain.",
        (
            "The root's CRL is not in the bundle of an intermediate CA.",
            "The agent has a bundle of another CA.",
        ),
        "On the CA run {crls}.",
        'On the CA add the missing one: {write_crls}. Then on each agent run `rm -f "$(puppet config print hostcrl)"; '
        "puppet agent -t`. As a workaround `puppet config set certificate_revocation leaf --section agent`.",
        ("B13", "B07", "B08"),
        _W,
    ),
    KnownError(
        (
            "Invalid signature for CRL issued by 'X'",
            "Invalid signature for certificate 'X'",
            "certificate verify failed [certificate signature failure for X]",
            "certificate verify failed [CRL signature failure for X]",
        ),
        "A signature does not fit the key of the CA that has this name.",
        ("The CA was recreated with the same name and another key, and the node has files of both.",),
        "On the node run {verify}.",
        "On the node run {trust_anew}. If the node's own certificate was also issued by the old CA: {enrol_ca}.",
        ("B14", "T06", "B04"),
        _W,
    ),
    KnownError(
        ("Certificate 'X' failed verification (X)",),
        "OpenSSL does not accept a certificate of the chain, for the reason that the message names.",
        (
            "The CA bundle and the certificate are from different installations.",
            "A certificate has a use or an extension that does not fit.",
        ),
        "On the node run {verify}.",
        "On the node run {trust_anew}.",
        ("T08", "B05"),
        _H,
    ),
    KnownError(
        ("certificate verify failed",),
        "The agent does not trust the certificate of the server. The words in brackets name the reason.",
        (
            "The node's CA bundle is of another CA.",
            "The name, the time or the CRL does not fit.",
        ),
        _SERVED,
        "On the node run {trust_anew}. If that does not help, explain the whole line, with the words in brackets.",
        ("T08", "T07"),
        _H,
        frame=True,
    ),
    KnownError(
        (
            "Failed to parse CRLs as PEM",
            "Failed to load CRLs from X",
            "The CRL is missing from X",
        ),
        "The agent cannot read its file of CRLs.",
        (
            "The file is empty or cut off, after a full disk or a crash.",
            "Something else was copied to its place, for example an error page or DER.",
            "The master serves a damaged list, and the agent just fetched it.",
        ),
        "On the node run `grep -c 'BEGIN X509 CRL' \"$(puppet config print hostcrl)\"; openssl crl "
        '-noout -issuer -nextupdate -in "$(puppet config print hostcrl)"`.',
        'On the node run `rm -f "$(puppet config print hostcrl)"; puppet agent -t`. If it comes back '
        "damaged, repair ca_crl.pem on the CA; {crls} shows what is in it.",
        ("B07", "B08", "B13"),
        None,
        old=False,
    ),
    KnownError(
        (
            "Failed to parse CA certificates as PEM",
            "Failed to load CA certificates from X",
            "The CA certificates are missing from X",
        ),
        "The agent cannot read its file of CA certificates.",
        (
            "The file is empty or cut off, after a full disk or a crash.",
            "Something else was copied to its place, for example an error page or DER.",
            "The master serves a damaged bundle, and the agent just fetched it.",
        ),
        "On the node run `grep -c 'BEGIN CERTIFICATE' \"$(puppet config print localcacert)\"; openssl "
        'x509 -noout -subject -in "$(puppet config print localcacert)"`.',
        "On the node run {trust_anew}. If it comes back damaged, repair ca_crt.pem on the CA.",
        ("B05", "B01"),
        None,
        old=False,
    ),
    KnownError(
        (
            "bad end line",
            "no start line",
            "bad base64 decode",
            "PEM_read_bio",
            "nested asn1 error",
            "PEM_read_bio_X509: no start line",
            "PEM_read_bio:bad end line",
            "PEM_read_bio_X509: ASN1 lib",
            "PEM_read_bio_X509_CRL",
            "asn1 encoding routines",
        ),
        "A key, certificate or CRL file is no valid PEM.",
        (
            "The file is cut off or empty, after a full disk or a crash.",
            "It was pasted with changed line ends or missing dashes.",
            "It holds another kind of file, for example DER or a page of a web server.",
        ),
        "On the node run `find \"$(puppet config print ssldir)\" -name '*.pem' ! -exec openssl asn1parse "
        "-noout -in {{}} \\; -print`: it prints the files that cannot be read.",
        "A damaged CA bundle or CRL: {trust_anew}. A damaged key or certificate of the node: {enrol}.",
        ("B05", "B23"),
        None,
    ),
    KnownError(
        ("CA bundle with digest (X) X did not match expected digest X",),
        "The CA bundle that the master serves is not the one whose fingerprint was given (`ca_fingerprint`).",
        (
            "The fingerprint is of another CA, or of before the CA was recreated.",
            "Another server answers in the master's place.",
        ),
        'On the CA run `sha256sum "$(puppet config print cacert --section master)"`.',
        "Correct it: `puppet config set ca_fingerprint <digest> --section main`, then `puppet agent -t`. "
        "If the server is the wrong one, correct `server`.",
        ("B04", "B01"),
        _W,
        old=False,
    ),
    KnownError(
        (
            "CA certificate is missing from the server",
            "Could not download CA certificate: X",
            "Could not find certificate ca",
        ),
        "The server has no CA certificate to serve.",
        (
            "The agent asks a compiler whose CA service is off.",
            "The CA was not set up yet.",
        ),
        "On the node run `curl -sk -o /dev/null -w '%{{http_code}}' https://{host}:8140/puppet-ca/v1/certificate/ca`.",
        "Point the agent to the CA: `puppet config set ca_server <name> --section agent`. On a new CA "
        "run `puppetserver ca setup`.",
        ("B06",),
        _W,
    ),
    KnownError(
        (
            "CRL is missing from the server",
            "Could not download CRLs: X",
            "Failed to refresh CRL, using existing CRL: X",
        ),
        "The server has no CRL to serve, or refuses it.",
        (
            "The agent asks a compiler whose CA service is off and that has no CRL.",
            "The server's auth.conf has no rule for the CRL.",
        ),
        "On the node run `curl -sk -o /dev/null -w '%{{http_code}}' "
        "https://{host}:8140/puppet-ca/v1/certificate_revocation_list/ca`.",
        "Point the agent to the CA: `puppet config set ca_server <name> --section agent`. If it answers "
        "403, add the rule `puppetlabs crl` to its auth.conf.",
        ("B08", "B09", "B17"),
        _W,
    ),
    KnownError(
        (
            "CRLs are missing",
            "CA certs are missing",
            "Client cert is missing",
            "Private key is missing",
            "Failed to initialize SSL: X",
        ),
        "A file that a command needs for TLS is not there yet.",
        (
            "The node has no certificate yet, and the command does not fetch one.",
            "The command runs as another user than the agent, with an ssldir of its own.",
        ),
        'Run `id -un; ls -lR "$(puppet config print ssldir)"` as the same user.',
        "Run `puppet agent -t` as root, then the command again.",
        ("B07", "B39"),
        None,
        frame=True,
    ),
    KnownError(
        (
            "dh key too small",
            "ee key too small",
            "ca md too weak",
            "ca key too small",
            "no protocols available",
            "unsupported protocol",
            "tlsv1 alert protocol version",
            "sslv3 alert handshake failure",
            "no ciphers available",
        ),
        "Both ends have no TLS version, cipher or key length in common that the other end's OpenSSL or Java accepts.",
        (
            "One end is much older than the other.",
            "The system's crypto policy forbids what the other end offers.",
        ),
        "Run `puppet-inspector doctor --live {host}`, and on the node `openssl version`.",
        "Update Java or OpenSSL on the older side. For a key that is too small: {enrol_ca}.",
        ("T02", "T01", "B31"),
        _H,
    ),
    KnownError(
        ("digital envelope routines::unsupported",),
        "OpenSSL does not know a key format or digest that Puppet uses.",
        (
            "OpenSSL 3 without its legacy provider meets an old key.",
            "FIPS mode forbids the digest.",
        ),
        'On the node run `openssl version; openssl pkey -noout -in "$(puppet config print hostprivkey)"`.',
        "{enrol}.",
        ("B32",),
        None,
    ),
)
