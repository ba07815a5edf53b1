"""Messages about the CA bundle, the CRLs and the certificate that a server shows."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, group, on_ca, on_master, on_node

_W, _H = Visible.WIRE, Visible.HANDSHAKE

_SHOWN = on_node(
    "see which certificate {host} shows",
    "openssl s_client -connect {host}:8140 </dev/null | openssl x509 -noout -subject -issuer -enddate",
)
_VERIFY = on_node("check its files", "{verify}")
_CRLS = on_ca("see when each CRL expires", "{crls}")
_TRUST_ANEW = on_node("fetch the CA and its CRL anew", "{trust_anew}", destroys="those that it has")
_ENROL_TOO = group("enrol_ca", only_if="the node's own certificate was also issued by the other CA")
_CA_SERVER = on_node(
    "point it to the CA", "puppet config set ca_server <name> --section agent", only_if="{host} is not the CA"
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
        (
            _SHOWN,
            on_node(
                "compare the issuer with the CA that it trusts",
                'openssl x509 -noout -subject -in "$(puppet config print localcacert)"',
            ),
        ),
        (
            advice("make sure that the agent reaches the right server"),
            _TRUST_ANEW,
            _ENROL_TOO,
        ),
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
        (_SHOWN,),
        (
            advice("distribute the new bundle to every host that uses the CA"),
            _TRUST_ANEW,
            _ENROL_TOO,
        ),
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
        (
            on_node("see the name that it uses", "puppet config print server --section agent"),
            _SHOWN,
        ),
        (
            on_node("use a name that the message lists", "puppet config set server <name> --section main"),
            advice(
                "make the server's certificate anew, with {host} in its `dns_alt_names`",
                only_if="agents must use that name",
            ),
        ),
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
        (
            on_node("check its clock", "date -u"),
            on_master("check its clock", "date -u"),
            on_node(
                "see when its certificate ends", 'openssl x509 -noout -enddate -in "$(puppet config print hostcert)"'
            ),
        ),
        (
            group("enrol", only_if="the node's certificate has expired"),
            group("renew_master", only_if="the master's certificate has expired"),
            advice("renew it on the CA", only_if="the CA's certificate has expired"),
        ),
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
        (
            on_node("check its clock", "date -u"),
            on_ca("check its clock", "date -u"),
        ),
        (
            advice("synchronise the clocks (NTP) of the agent and the CA"),
            on_ca("sign the CRL anew by the right clock", "{new_crl}", only_if="the CA's clock was ahead"),
        ),
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
        (_CRLS,),
        (
            on_ca("sign it anew", "{new_crl}"),
            on_node("fetch it, on each agent that still has the old one", "{new_crl_of_agent}", destroys="the old CRL"),
            advice(
                "let that CA issue the list, and pass its file with --add", only_if="the message names an external CA"
            ),
        ),
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
        (_CRLS,),
        (
            on_ca("add the missing one", "{write_crls}"),
            on_node("fetch it, on each agent", "{new_crl_of_agent}", destroys="the old CRL"),
            on_node(
                "check only the server's own certificate until then",
                "puppet config set certificate_revocation leaf --section agent",
                only_if="it cannot be issued now",
            ),
        ),
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
        (_VERIFY,),
        (
            _TRUST_ANEW,
            group("enrol_ca", only_if="the node's own certificate was also issued by the old CA"),
        ),
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
        (_VERIFY,),
        (_TRUST_ANEW,),
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
        (_SHOWN,),
        (
            _TRUST_ANEW,
            advice("explain the whole line, with the words in brackets", only_if="that does not help"),
        ),
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
        (
            on_node("count the CRLs in its file", "grep -c 'BEGIN X509 CRL' \"$(puppet config print hostcrl)\""),
            on_node(
                "see whether the first one can be read",
                'openssl crl -noout -issuer -nextupdate -in "$(puppet config print hostcrl)"',
            ),
        ),
        (
            on_node("fetch them anew", "{new_crl_of_agent}", destroys="the CRLs that it has"),
            on_ca("see what is in ca_crl.pem, and repair it", "{crls}", only_if="they come back damaged"),
        ),
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
        (
            on_node(
                "count the certificates in its file",
                "grep -c 'BEGIN CERTIFICATE' \"$(puppet config print localcacert)\"",
            ),
            on_node(
                "see whether the first one can be read",
                'openssl x509 -noout -subject -in "$(puppet config print localcacert)"',
            ),
        ),
        (
            _TRUST_ANEW,
            advice("repair ca_crt.pem on the CA", only_if="it comes back damaged"),
        ),
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
        (
            on_node(
                "print the files that cannot be read",
                "find \"$(puppet config print ssldir)\" -name '*.pem' ! -exec openssl asn1parse -noout -in {{}} \\; "
                "-print",
            ),
        ),
        (
            on_node(
                "fetch both anew",
                "{trust_anew}",
                only_if="the CA bundle or the CRL is damaged",
                destroys="the CA and the CRL that it has",
            ),
            group("enrol", only_if="the node's key or certificate is damaged"),
        ),
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
        (on_ca("see the right digest", 'sha256sum "$(puppet config print cacert --section master)"'),),
        (
            on_node(
                "correct it",
                "puppet config set ca_fingerprint <digest> --section main",
                only_if="the server is the right one",
            ),
            on_node("run it", "puppet agent -t", only_if="the server is the right one"),
            advice("correct `server`", only_if="the server is the wrong one"),
        ),
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
        (
            on_node(
                "see what the server answers",
                "curl -sk -o /dev/null -w '%{{http_code}}' https://{host}:8140/puppet-ca/v1/certificate/ca",
            ),
        ),
        (
            _CA_SERVER,
            on_ca("set the CA up", "puppetserver ca setup", only_if="it is a new CA"),
        ),
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
        (
            on_node(
                "see what the server answers",
                "curl -ski https://{host}:8140/puppet-ca/v1/certificate_revocation_list/ca | head -n 1",
            ),
        ),
        (
            _CA_SERVER,
            advice("add the rule `puppetlabs crl` to its auth.conf", only_if="it answers 403"),
        ),
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
        (
            on_node("see as which user it runs", "id -un"),
            on_node("look at the files, as the same user", 'ls -lR "$(puppet config print ssldir)"'),
        ),
        (
            on_node("let the agent fetch them, as root", "puppet agent -t"),
            advice("run the command again"),
        ),
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
        (
            on_node("see what the server accepts", "puppet-inspector doctor --live {host}"),
            on_node("see its version of OpenSSL", "openssl version"),
        ),
        (
            advice("update Java or OpenSSL on the older side"),
            group("enrol_ca", only_if="the node's key is too small"),
        ),
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
        (
            on_node("see its version of OpenSSL", "openssl version"),
            on_node("see whether the key can be read", 'openssl pkey -noout -in "$(puppet config print hostprivkey)"'),
        ),
        (group("enrol"),),
        ("B32",),
        None,
    ),
)
