"""Messages of the tools that manage a CA: ``puppetserver ca`` and the old ``puppet cert``."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, group, on_ca, on_node

_W = Visible.WIRE

_LIST = on_ca("look for the name", "{list}")

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
        (_LIST,),
        (
            on_node("send its request", "puppet agent -t"),
            on_ca("sign it", "{sign}"),
        ),
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
        (_LIST,),
        (
            advice("clean nothing: nothing is left"),
            on_node(
                "enrol again", "{reset}", only_if="the node is to enrol again", destroys="its key and its certificate"
            ),
        ),
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
        (_LIST,),
        (on_ca("remove the request", "{clean}", only_if="its request was never signed", destroys="the request"),),
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
        (
            on_ca(
                "see whether its certificate may manage the CA",
                'openssl x509 -noout -text -in "$(puppet config print hostcert)" | grep -A1 34380.1.3.39',
            ),
        ),
        (
            on_ca("stop the server", "systemctl stop puppetserver", only_if="the code is 403"),
            on_ca(
                "make this host's certificate anew",
                'puppetserver ca generate --ca-client --certname "$(puppet config print certname)" --force',
                only_if="the code is 403",
                destroys="its old key and certificate",
            ),
            on_ca("start the server", "systemctl start puppetserver", only_if="the code is 403"),
            group("alt_names", only_if="the code is 409"),
            advice("wait until the service has started", only_if="the code is 503"),
        ),
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
        (on_ca("see how the tool is called", "puppetserver ca --help"),),
        (on_ca("give it a name from this list", "{list}"),),
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
        (on_ca("look at the CA's directory", 'ls -l "$(puppet config print cadir --section master)"'),),
        (
            on_ca("set the CA up", "puppetserver ca setup", only_if="this host is to be the CA"),
            on_ca("start it", "systemctl start puppetserver", only_if="this host is to be the CA"),
        ),
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
        (
            on_ca("look at the CA's directory", 'ls -l "$(puppet config print cadir --section master)"'),
            on_ca("look at the certificates", 'ls -l "$(puppet config print ssldir)/certs"'),
        ),
        (
            advice("keep the CA", only_if="agents have certificates of it"),
            on_ca(
                "remove it, then generate it again",
                "{clean}",
                only_if="it is about a certificate",
                destroys="the certificate, and revokes it",
            ),
        ),
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
        (on_ca("see whether it runs", "systemctl status puppetserver"),),
        (
            on_ca("stop it", "systemctl stop puppetserver"),
            advice("run the command again"),
            on_ca("start it", "systemctl start puppetserver"),
        ),
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
        (
            on_ca(
                "see which certificates there are, and in which order",
                "openssl crl2pkcs7 -nocrl -certfile <bundle> | openssl pkcs7 -print_certs -noout",
            ),
        ),
        (advice("put the files together again: the CA's certificate first, its issuer after it, and a CRL for each"),),
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
        (on_ca("see the setting", "puppet config print ca_ttl --section master"),),
        (
            on_ca("correct it", "puppet config set ca_ttl 5y --section master", only_if="it is the setting"),
            advice("write `--ttl 365d`", only_if="it is the command line"),
        ),
    ),
    KnownError(
        (
            "The cadir is currently configured to be inside the X",
            "Please run the puppetserver ca tool to migrate",
        ),
        "The CA's directory is still inside the ssldir, which a cleaned ssldir would delete. It is a warning.",
        ("The CA was set up before version 7.",),
        (on_ca("see where both directories are", "puppet config print cadir ssldir --section master"),),
        (
            on_ca("stop the server", "systemctl stop puppetserver"),
            on_ca("move the CA's directory", "puppetserver ca migrate"),
            on_ca("start the server", "systemctl start puppetserver"),
        ),
    ),
)
