"""Messages about an agent's key, its signing request and its certificate."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, group, on_ca, on_master, on_node

_W, _H = Visible.WIRE, Visible.HANDSHAKE

_COMPARE = (
    on_node("print the fingerprint of its request", "{fingerprint}"),
    on_ca("compare it with that of the name", "{list}"),
)
_LIST = on_ca("look for the name", "{list}")
_USER = (
    on_node("see which user runs the agent", "id -un"),
    on_node("see which ssldir this user has", "puppet config print ssldir"),
)
_AS_ROOT = advice("run the agent as root", only_if="another user ran it")
_ATTRIBUTES = on_node("read the file", 'cat "$(puppet config print csr_attributes)"')

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            (
                "Couldn't fetch certificate from CA server; you might still need to sign this agent's "
                "certificate (NAME)."
            ),
            "you might still need to sign this agent's certificate (NAME)",
            "Certificate for NAME has not been signed yet",
            "The certificate for 'NAME' has not yet been signed",
            "Exiting; no certificate found and waitforcert is disabled",
            "Exiting now because the waitforcert setting is set to 0",
            "Did not receive certificate",
            "Fingerprint asked but neither the certificate, nor the certificate request have been issued",
        ),
        "The agent's signing request is waiting on the CA: it is not signed yet.",
        (
            "The CA does not sign automatically, and nobody has signed it.",
            "autosign.conf or the autosign script does not cover this name.",
            "The agent talks to another CA than the one where you look.",
        ),
        (*_COMPARE,),
        (
            on_ca("sign the request", "{sign}", only_if="the fingerprints are the same"),
            on_node("fetch the certificate", "puppet agent -t", only_if="the fingerprints are the same"),
            on_node(
                "limit the wait",
                "puppet config set maxwaitforcert 1h --section agent",
                only_if="the agent waits too long",
            ),
        ),
        ("B17", "B39", "B42"),
        _W,
    ),
    KnownError(
        ("The certificate for 'NAME' does not match its private key",),
        "The agent's certificate was issued for another key than the agent has now.",
        (
            ("The node was reinstalled or lost its ssldir, and the CA still serves the old certificate of its name."),
            "The agent runs as another user, who has an ssldir of its own.",
            "Two nodes use the same certname.",
        ),
        (
            *_COMPARE,
            *_USER,
        ),
        (
            _AS_ROOT,
            group("enrol", only_if="root ran the agent"),
        ),
        ("B23", "B18", "B22"),
        _W,
        old=False,
    ),
    KnownError(
        ("The certificate retrieved from the master does not match the agent's private key",),
        "The agent's certificate was issued for another key than the agent has now. Agents up to version "
        "5 print this message.",
        (
            ("The node was reinstalled or lost its ssldir, and the CA still serves the old certificate of its name."),
            "The agent runs as another user, who has an ssldir of its own.",
            "Two nodes use the same certname.",
        ),
        (
            *_COMPARE,
            *_USER,
        ),
        (
            _AS_ROOT,
            group("enrol", only_if="root ran the agent"),
        ),
        ("B23", "B22"),
        _W,
        old=True,
    ),
    KnownError(
        ("The CSR for host 'NAME' does not match the public key",),
        "A stored signing request is for another key than the agent has now.",
        (
            "The agent's key was deleted, and its old request was left.",
            "An older request of this name waits on the CA.",
        ),
        (*_COMPARE,),
        (group("enrol"),),
        ("B20",),
        _W,
        old=False,
    ),
    KnownError(
        ("The CSR retrieved from the master does not match the agent's public key",),
        "The CA has a signing request for another key than the agent has now. Agents up to version 5 "
        "print this message.",
        (
            "The node was reinstalled while its old request was waiting.",
            "Two nodes use the same certname.",
        ),
        (*_COMPARE,),
        (group("enrol"),),
        ("B20", "B40"),
        _W,
        old=True,
    ),
    KnownError(
        ("NAME already has a requested certificate; ignoring certificate request",),
        "The node's signing request is waiting on the CA to be signed. Agents of 6.4 and later submit it "
        "again with each poll, and the CA prints this message each time: that is normal.",
        (
            "The request was not signed yet.",
            "The node lost its key, and the waiting request is for the old one.",
            "Two nodes use the same certname.",
        ),
        (*_COMPARE,),
        (
            on_ca("sign the request", "{sign}", only_if="the fingerprints are the same"),
            group("enrol", only_if="they differ, and the node was reinstalled"),
        ),
        ("B17", "B39", "B20"),
        _W,
    ),
    KnownError(
        ("NAME already has a signed certificate; ignoring certificate request",),
        "The CA already has a certificate for this name, and takes no request for another.",
        (
            "The node was reinstalled or lost its ssldir.",
            "Two nodes use the same certname.",
            "The agent runs as another user, who has an ssldir of its own.",
        ),
        (*_COMPARE,),
        (
            group("enrol", only_if="the node was reinstalled"),
            on_node(
                "give one of them a name of its own",
                "puppet config set certname <name> --section main",
                only_if="two nodes use the name",
            ),
        ),
        ("B18", "B22", "B46"),
        _W,
    ),
    KnownError(
        ("NAME already has a revoked certificate; ignoring certificate request",),
        "The certificate of this name was revoked and is still stored on the CA. Until it is cleaned, "
        "the CA accepts no new request for this name.",
        (
            "The node was decommissioned, and its agent still runs.",
            "The certificate was revoked but not cleaned.",
        ),
        (_LIST,),
        (
            group("enrol", only_if="the node is to come back"),
            on_node(
                "stop its agent",
                "puppet resource service puppet ensure=stopped enable=false",
                only_if="the node is not to come back",
            ),
        ),
        ("B19",),
        _W,
    ),
    KnownError(
        (
            "Could not submit certificate request for 'NAME' to X due to a conflict on the server",
            "due to a conflict on the server",
            "Failed to submit certificate request: X",
        ),
        "The CA did not take the signing request of `puppet ssl`. A conflict means that it already has a "
        "request or a certificate of this name.",
        (
            "The node was reinstalled, and the CA has its old certificate.",
            "An earlier request of this name is waiting for its signature.",
            "Two nodes use the same certname.",
        ),
        (*_COMPARE,),
        (
            on_ca("sign the request", "{sign}", only_if="the one that waits is this node's"),
            group("enrol", only_if="the one that waits is not this node's, or none does"),
        ),
        ("B18", "B20", "B43"),
        _W,
        old=False,
    ),
    KnownError(
        (
            "Failed to submit the CSR, HTTP response was X",
            "Could not send certificate request: X",
            "Could not request certificate: Error 400 on SERVER: X",
        ),
        "The CA did not accept the signing request.",
        (
            "The CA already has a certificate or a request of this name.",
            "The CA cannot write into its cadir, or had an internal error.",
            "A rule of its auth.conf forbids it.",
        ),
        (
            _LIST,
            on_ca("read the reason in its log", "tail -n 50 /var/log/puppetlabs/puppetserver/puppetserver.log"),
        ),
        (
            group("enrol", only_if="it has an old certificate of the name"),
            on_ca(
                "let it write its files",
                'chown -R puppet:puppet "$(puppet config print cadir --section master)"',
                only_if="it cannot write",
            ),
        ),
        ("B43", "B44", "B18"),
        _W,
    ),
    KnownError(
        (
            "CSR 'NAME' contains subject alternative names (X), which are disallowed",
            "CSR 'NAME' contains extra subject alternative names (X), which are disallowed",
        ),
        "The node's signing request contains alternative names, and the CA does not sign such requests.",
        (
            "`dns_alt_names` is in the node's puppet.conf, often by a copied file.",
            "It is to be a master or a compiler, which needs them.",
        ),
        (on_node("see its alternative names", "puppet config print dns_alt_names"),),
        (
            advice("remove `dns_alt_names` from its puppet.conf", only_if="the node is not a master"),
            group("enrol", only_if="the node is not a master"),
            group("alt_names", only_if="the node should have them"),
        ),
        ("B27",),
        _W,
    ),
    KnownError(
        ("CSR 'NAME' contains an authorization extension (X), which is disallowed",),
        "The node's signing request asks for extensions that grant rights (`pp_cli_auth`, `pp_auth_role` "
        "and others of that OID arc).",
        ("csr_attributes.yaml on the node contains them.",),
        (_ATTRIBUTES,),
        (
            advice("remove them from csr_attributes.yaml on the node", only_if="the site does not want them"),
            group("enrol", only_if="the site does not want them"),
            advice("write `allow-authorization-extensions: true` into the CA's ca.conf", only_if="the site wants them"),
            on_ca("restart it", "systemctl restart puppetserver", only_if="the site wants them"),
            on_ca("sign the request", "{sign}", only_if="the site wants them"),
        ),
        ("B28",),
        _W,
    ),
    KnownError(
        (
            "Cannot create CSR with attribute X",
            "Cannot create CSR with extension request X",
            "Cannot specify CSR attribute X: conflicts with internally used CSR attribute",
            "Cannot specify CSR extension request X: conflicts with internally used extension request",
            "invalid CSR attributes, expected instance of Hash",
            "unexpected attributes X in X",
        ),
        "The agent cannot make its signing request from csr_attributes.yaml.",
        (
            "The file has a key besides `custom_attributes` and `extension_requests`, or is not a hash.",
            "A name in it is no known OID.",
            "It sets an extension that Puppet sets itself, such as subjectAltName.",
        ),
        (_ATTRIBUTES,),
        (
            advice("correct the file"),
            on_node("run it", "puppet agent -t"),
        ),
        ("B29",),
        None,
    ),
    KnownError(
        ("CSR sign verification failed; you need to clean the certificate request for NAME on the server",),
        "The signing request is not signed with its own key, so the CA cannot trust it.",
        ("The request was damaged or changed on its way or on the CA's disk.",),
        (*_COMPARE,),
        (group("enrol"),),
        ("B43", "B44"),
        _W,
    ),
    KnownError(
        ("Certificate names must be lower case",),
        "A certname with capital letters is not allowed, so the command stops at once.",
        (
            "`certname` in puppet.conf or on the command line has capital letters.",
            "The node's host name has them, and a tool copied it into puppet.conf.",
        ),
        (on_node("look for the name", "grep -rn certname /etc/puppetlabs/puppet/puppet.conf /etc/puppet/puppet.conf"),),
        (
            advice(
                "write the name in lower case into that file, because `puppet config set` fails with the same message"
            ),
            on_node("run it", "puppet agent -t"),
        ),
        ("B25",),
        None,
    ),
    KnownError(
        ("Certname X must not contain unprintable or non-ASCII characters",),
        "A certname may only have printable ASCII characters.",
        (
            "The host name or `certname` in puppet.conf has an umlaut or another letter beyond ASCII.",
            "An invisible character was pasted into puppet.conf.",
        ),
        (on_node("look for the character", 'grep -n certname "$(puppet config print config)" | cat -A'),),
        (
            on_node("set a plain name", "puppet config set certname <name> --section main"),
            on_node("enrol under this name", "{reset}", destroys="its key and its certificate"),
        ),
        ("B26",),
        None,
    ),
    KnownError(
        (
            "Failed to load private key for host 'NAME'",
            "Failed to load private key for 'NAME'",
            "The private key is missing from X",
            "Unsupported key X",
            "Could not parse PKey",
            "Neither PUB key nor PRIV key",
        ),
        "The agent cannot read its private key.",
        (
            "The file is damaged, empty or of another kind.",
            "The agent does not run as root, or the file's owner is wrong.",
            "The key has a passphrase that the agent does not know.",
        ),
        (
            on_node("see whether it is a key", 'head -c 40 "$(puppet config print hostprivkey)"'),
            on_node("see its owner and its mode", 'ls -l "$(puppet config print hostprivkey)"'),
        ),
        (
            on_node(
                "correct the owner",
                'chown root:root "$(puppet config print hostprivkey)"',
                only_if="only its owner or its mode is wrong",
            ),
            on_node(
                "correct the mode",
                'chmod 640 "$(puppet config print hostprivkey)"',
                only_if="only its owner or its mode is wrong",
            ),
            group("enrol", only_if="the key is damaged"),
        ),
        ("B23",),
        None,
    ),
    KnownError(
        (
            "Failed to load client certificate for 'NAME'",
            "The client certificate is missing from X",
            "Failed to parse certificate: X",
        ),
        "The agent cannot read its certificate.",
        (
            "It was never signed and downloaded.",
            "The file is damaged or empty.",
            "The agent does not run as root.",
        ),
        (
            on_node(
                "see whether it can be read",
                'openssl x509 -noout -subject -enddate -in "$(puppet config print hostcert)"',
            ),
        ),
        (
            on_node("delete it", 'rm -f "$(puppet config print hostcert)"', destroys="the certificate that it has"),
            on_node("download it again", "puppet agent -t"),
            group("enrol", only_if="the CA has none for this key"),
        ),
        ("B39", "B23"),
        None,
    ),
    KnownError(
        (
            "Failed to load certificate request for 'NAME'",
            "Failed to save certificate request for 'NAME'",
            "Failed to save private key for 'NAME'",
            "Failed to save client certificate for 'NAME'",
            "Failed to save CA certificates to X",
            "Failed to save CRLs to X",
            "Failed to delete certificate request for 'NAME'",
        ),
        "The agent cannot write into its ssldir, or read what is there.",
        (
            "The disk is full or mounted read-only.",
            "The agent does not run as root.",
            "SELinux or the owner of a directory forbids it.",
        ),
        (
            on_node("see its owner and its mode", 'ls -ld "$(puppet config print ssldir)"'),
            on_node("see whether the disk is full", 'df -h "$(puppet config print ssldir)"'),
        ),
        (
            advice("free space, or run the agent as root"),
            on_node(
                "correct the owner", 'chown -R root:root "$(puppet config print ssldir)"', only_if="the owner is wrong"
            ),
            on_node("run it", "puppet agent -t"),
        ),
    ),
    KnownError(
        (
            "Failed to retrieve certificate for NAME",
            "Failed to download certificate: X",
            "Failed to connect to the CA to determine if certificate NAME has been cleaned",
        ),
        "The agent could not get its certificate from the CA.",
        (
            "The CA cannot be reached.",
            "The CA's auth.conf forbids the request.",
            "The CA had an internal error.",
        ),
        (on_node("see where it looks for the CA", "puppet config print ca_server ca_port --section agent"),),
        (
            advice("read the first error of the run"),
            on_node(
                "correct the name", "puppet config set ca_server <name> --section agent", only_if="the name is wrong"
            ),
        ),
        ("B43", "B40"),
        _W,
        frame=True,
    ),
    KnownError(
        ("The certificate NAME must be cleaned from the CA first",),
        "`puppet ssl clean` deletes nothing while the CA still has this node's certificate: otherwise "
        "the node could not get a new one.",
        ("The certificate was not cleaned on the CA yet.",),
        (_LIST,),
        (group("enrol"),),
        ("B18",),
        _W,
        old=False,
    ),
    KnownError(
        (
            "Certificate 'NAME' is revoked",
            "certificate verify failed [certificate revoked for CN=NAME]",
            "certificate verify failed [certificate revoked for X]",
            "sslv3 alert certificate revoked",
            "tlsv1 alert certificate revoked",
            "SSL_connect SYSCALL returned=5 errno=0 state=SSLv3 read finished",
        ),
        "The certificate is on the CRL. With TLS 1.3 the agent notices it only after the handshake, as a "
        "closed connection.",
        (
            "The node's certificate was revoked or cleaned on the CA, and the node still uses it.",
            "The master's certificate was revoked.",
        ),
        (
            _LIST,
            on_node("check its certificate", "{verify}"),
        ),
        (
            group("enrol", only_if="it is the node's, and the node is to come back"),
            advice("create a new one for it on the CA", only_if="it is the master's"),
        ),
        ("T05",),
        _H,
    ),
    KnownError(
        (
            "sslv3 alert certificate unknown",
            "tlsv1 alert certificate unknown",
            "ssl/tls alert certificate unknown",
            "sslv3 alert bad certificate",
            "tlsv1 alert bad certificate",
        ),
        "The master refuses the agent's certificate. Real masters (Java) send this alert for every "
        "problem with it, and to every agent when the master's own CRL has expired.",
        (
            "The certificate was revoked, or has expired.",
            "It was issued by another CA, before the CA was recreated.",
            "The CRL on the master has expired: then every agent fails.",
        ),
        (
            on_master(
                "see when its CRL expires", 'openssl crl -noout -nextupdate -in "$(puppet config print hostcrl)"'
            ),
            _LIST,
            on_node("check its certificate", "{verify}"),
        ),
        (
            on_ca("sign the CRL anew", "{new_crl}", only_if="the CRL has expired"),
            group("enrol", only_if="only this agent fails, and its certificate has expired or was revoked"),
            group("enrol_ca", only_if="only this agent fails, and its certificate was issued by another CA"),
        ),
        ("T05", "T06", "B33", "B10", "T09"),
        _H,
    ),
    KnownError(
        (
            "tlsv1 alert unknown ca",
            "tlsv13 alert unknown ca",
            "sslv3 alert unknown ca",
            "SSL alert number 48",
        ),
        "The master does not trust the CA of the agent's certificate.",
        (
            "The CA was recreated, and the node has its certificate from before.",
            "The node was enrolled at another installation.",
        ),
        (
            on_node(
                "see who issued its certificate", 'openssl x509 -noout -issuer -in "$(puppet config print hostcert)"'
            ),
            on_ca(
                "compare with the CA",
                'openssl x509 -noout -subject -in "$(puppet config print cacert --section master)"',
            ),
        ),
        (group("enrol_ca"),),
        ("T06",),
        _H,
    ),
    KnownError(
        (
            "sslv3 alert certificate expired",
            "tlsv1 alert certificate expired",
            "SSL alert number 45",
        ),
        "The other end refuses a certificate that has expired.",
        (
            "The node's certificate is over five years old.",
            "The clock of one end is wrong.",
        ),
        (
            on_node("check its clock", "date -u"),
            on_node(
                "see when its certificate ends", 'openssl x509 -noout -enddate -in "$(puppet config print hostcert)"'
            ),
        ),
        (group("renew"),),
        ("B33", "T10"),
        _H,
    ),
    KnownError(
        (
            "alert certificate required",
            "peer did not return a certificate",
            "SSL alert number 116",
        ),
        "The master wants a client certificate, and the agent showed none.",
        (
            "The node has no certificate yet.",
            "A proxy or load balancer in between ends TLS and has none.",
        ),
        (on_node("see whether it has one", 'ls -l "$(puppet config print hostcert)"'),),
        (
            on_node("request one", "puppet agent -t", only_if="it is missing"),
            on_ca("sign the request", "{sign}", only_if="it is missing"),
            advice("let it pass TLS through", only_if="a load balancer is in between"),
        ),
        ("T03",),
        _H,
    ),
)
