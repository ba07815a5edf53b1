"""Messages of the tools that manage a CA: ``puppetserver ca`` and the old ``puppet cert``."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible

_W = Visible.WIRE

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            "Could not find certificate request for NAME",
            "Could not find CSR for: NAME",
        ),
        "There is no signing request of this name to sign.",
        (
            "It was signed already, perhaps automatically.",
            "The agent has not sent one yet, or sends it to another CA.",
            "The name is misspelt: capital letters, the domain.",
        ),
        "On the CA look for the name in {list}.",
        "On the node run `puppet agent -t`, then on the CA {sign}.",
        ("B18", "B39"),
        _W,
    ),
    KnownError(
        (
            "Could not find files to clean for NAME",
            "Could not find files for NAME",
        ),
        "The CA has neither a certificate nor a request of this name.",
        (
            "It was cleaned already.",
            "The name is misspelt.",
        ),
        "On the CA look for the name in {list}.",
        "Nothing is left to clean. On the node: {reset}.",
    ),
    KnownError(
        (
            "Could not find certificate for NAME",
            "Could not find a serial number for NAME",
            "Signed certificate NAME could not be found on the CA",
            "Could not revoke unsigned csr for NAME",
        ),
        "The CA has no certificate of this name to revoke or show.",
        (
            "It was cleaned already.",
            "Its request was never signed.",
            "The name is misspelt.",
        ),
        "On the CA look for the name in {list}.",
        "For a request that was never signed: {clean}.",
    ),
    KnownError(
        (
            "When attempting to sign certificate request 'NAME', received",
            "When attempting to revoke certificate 'NAME', received",
            "When attempting to clean certificate 'NAME', received",
            "When attempting to submit certificate request for 'NAME', received",
            "When attempting to download certificate 'NAME', received",
            "Error while getting certificates",
            "Error while getting certificate requests",
        ),
        "The CA service refused what the tool asked for. The code and body below the message name the reason.",
        (
            "auth.conf does not let this host's certificate manage the CA (`pp_cli_auth`): code 403.",
            "The request has alternative names or extensions that the CA does not sign: code 409.",
            "The service is starting: code 503.",
        ),
        'On the CA run `openssl x509 -noout -text -in "$(puppet config print hostcert)" | grep -A1 '
        "1.3.6.1.4.1.34380.1.3.39`.",
        "For 403: stop the server and make this host's certificate anew: `puppetserver ca generate "
        '--ca-client --certname "$(puppet config print certname)" --force`. For 409: {alt_names}.',
        ("S02", "B27", "B28"),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Cannot manage cert named",
            "from the CLI, if needed use the HTTP API directly",
            "At least one certname is required",
        ),
        "The tool does not take this name.",
        (
            "The name begins with `--`: an option is misspelt.",
            "The name is missing.",
        ),
        "Run `puppetserver ca --help`.",
        "Give the name: {list} shows which there are.",
    ),
    KnownError(
        (
            "CA not initialized",
            "Please set up your CA before attempting to generate certs offline",
            "Could not find CA certificate",
            "Missing: X/ca_crt.pem",
            "Could not read CA certificate",
        ),
        "There is no CA on this host yet.",
        (
            "The command runs on a host that is not the CA.",
            "`cadir` points elsewhere.",
            "The CA was not set up.",
        ),
        'Run `ls -l "$(puppet config print cadir --section master)"`.',
        "On the CA: `puppetserver ca setup`, then `systemctl start puppetserver`.",
        ("B06",),
        None,
    ),
    KnownError(
        (
            "Existing file at X",
            "If you would really like to replace your CA, please delete the existing files",
            "already exists. Please delete it if you really want to regenerate it",
            "Please delete these files if you really want to generate a new cert for NAME",
        ),
        "The tool does not overwrite files that exist: a CA or a certificate is there already.",
        (
            "The CA was set up before.",
            "The certificate of this name was generated before.",
        ),
        'Run `ls -l "$(puppet config print cadir --section master)" "$(puppet config print ssldir)/certs"`.',
        "Keep the CA if agents have certificates of it. For a certificate: {clean}, then generate it again.",
    ),
    KnownError(
        (
            "Could not determine whether Puppet Server is online",
            "Puppetserver service is running. Please stop it before attempting to run this command",
            "Puppet Server is running",
        ),
        "The command works on the CA's files, and the CA service must not run meanwhile.",
        (
            "puppetserver runs.",
            "The tool cannot find out, because the server's name or certificate is wrong.",
        ),
        "On the CA run `systemctl status puppetserver`.",
        "`systemctl stop puppetserver`, run the command again, then `systemctl start puppetserver`.",
    ),
    KnownError(
        (
            "Private key and certificate do not match",
            "Could not find certificate matching private key",
            "Leaf certificate could not be validated",
            "Leaf CRL was not issued by leaf certificate",
            "Could not detect any certs within X",
            "Could not detect any crls within X",
            "Could not parse X.pem",
            "Could not parse entry:",
        ),
        "The files for the CA do not belong together, or are no PEM.",
        (
            "The bundle is in the wrong order: the certificate that signs comes first, the root last.",
            "A CRL of one of the CAs is missing.",
            "The key is of another certificate.",
        ),
        "Run `openssl crl2pkcs7 -nocrl -certfile <bundle> | openssl pkcs7 -print_certs -noout`.",
        "Put the files together again: the CA's certificate first, its issuer after it, and a CRL for each.",
        ("B05", "B13"),
        None,
    ),
    KnownError(
        (
            "is an invalid ttl value",
            "Invalid 'time to live' format",
            "Invalid negative 'time to live'",
        ),
        "The time to live of a certificate is not readable.",
        ("A unit is missing or unknown: s, m, h, d and y are possible.",),
        "Run `puppet config print ca_ttl --section master`.",
        "`puppet config set ca_ttl 5y --section master`, or `--ttl 365d` on the command line.",
    ),
    KnownError(
        (
            "The cadir is currently configured to be inside the X",
            "Please run the puppetserver ca tool to migrate",
        ),
        "The CA's directory is still inside the ssldir, which a cleaned ssldir would delete. It is a warning.",
        ("The CA was set up before version 7.",),
        "Run `puppet config print cadir ssldir --section master`.",
        "`systemctl stop puppetserver; puppetserver ca migrate; systemctl start puppetserver`.",
    ),
)
