"""Error messages of agents, with cause and fix, for ``puppet-inspector explain "..."``.

The texts are those of Puppet and OpenVox. ``X`` stands for a part that varies, ``NAME`` for a certname and ``HOST``
for a server; the latter two are filled into the commands of the fix. The rules named with a message explain how an
agent comes to print it.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector import regex
from inspector.model import Visible


class KnownError(NamedTuple):
    """A message, or several with the same meaning."""

    texts: tuple[str, ...]
    cause: str
    remedy: str
    """With the placeholders of ``inspector.rules.remedies``."""
    rules: tuple[str, ...]
    visible: Visible | None
    """None: local to the agent, not visible in the traffic."""
    old: bool | None = None
    """True: only agents up to version 5 print it; False: only later ones; None: both."""


class ErrorMatch(NamedTuple):
    """The known message that a pasted line matches."""

    known: KnownError
    name: str | None
    """The certname in the line."""
    host: str | None
    """The server in the line."""


_W, _H, _C = Visible.WIRE, Visible.HANDSHAKE, Visible.CONSEQUENCE

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        ("Couldn't fetch certificate from CA server; you might still need to sign this agent's certificate (NAME).",
         "Certificate for NAME has not been signed yet", "Exiting; no certificate found and waitforcert is disabled"),
        "The agent's signing request is waiting on the CA: it is not signed yet, and autosigning does not apply to "
        "it.",
        "Compare {fingerprint} on the node with {list} on the CA, then sign: {sign}. To limit the wait: `puppet "
        "config set maxwaitforcert 1h --section agent`.",
        ("B17", "B39", "B42"), _W,
    ),
    KnownError(
        ("The certificate for 'NAME' does not match its private key",),
        "The CA still serves an older certificate of this name, issued for another key: the node was reinstalled, "
        "lost its ssldir, or the agent runs as another user.",
        "{enrol}. Run the agent as root.",
        ("B23", "B18", "B22"), _W, old=False,
    ),
    KnownError(
        ("The certificate retrieved from the master does not match the agent's private key",),
        "The CA still serves an older certificate of this name, issued for another key: the node was reinstalled, "
        "lost its ssldir, or the agent runs as another user. Agents up to version 5 print this message.",
        "{enrol}. Run the agent as root.",
        ("B23", "B22"), _W, old=True,
    ),
    KnownError(
        ("The CSR for host 'NAME' does not match the public key",),
        "An older signing request for another key is stored on the CA or on the agent.",
        "{enrol}.",
        ("B20",), _W, old=False,
    ),
    KnownError(
        ("The CSR retrieved from the master does not match the agent's public key.",),
        "An older signing request for another key is stored on the CA or on the agent. Agents up to version 5 print "
        "this message.",
        "{enrol}.",
        ("B20", "B40"), _W, old=True,
    ),
    KnownError(
        ("NAME already has a requested certificate; ignoring certificate request",),
        "The node's signing request is waiting on the CA to be signed. Agents of 6.4 and later submit it again with "
        "each poll, and the CA prints this message each time: that is normal. If the waiting request is for another "
        "key, two hosts share the name, or the node lost its key.",
        "Compare {fingerprint} on the node with {list} on the CA. If they match, {sign}. If they do not, and the "
        "node was reinstalled: {enrol}.",
        ("B17", "B39", "B20"), _W,
    ),
    KnownError(
        ("NAME already has a signed certificate; ignoring certificate request",),
        "The CA already has a certificate for this name: the node was reinstalled, or two hosts share the name.",
        "For a reinstalled node: {enrol}. For two hosts: give each its own certname.",
        ("B18", "B22", "B46"), _W,
    ),
    KnownError(
        ("NAME already has a revoked certificate; ignoring certificate request",),
        "The certificate of this name was revoked and is still stored on the CA: until it is cleaned, the CA accepts "
        "no new request for this name.",
        "If the node is meant to come back: {enrol}. If it was revoked permanently, stop its agent.",
        ("B19",), _W,
    ),
    KnownError(
        ("certificate verify failed [unable to get local issuer certificate for CN=X]",
         "certificate verify failed [unable to get issuer certificate for CN=X]",
         "SSL_connect state=error: certificate verify failed (unable to get local issuer certificate)"),
        "The agent's ca.pem does not contain the CA that signed the presented certificate: ca.pem is from an older "
        "or another CA, or the intermediate CA is missing.",
        "Make sure that the agent reaches the right server; then on the node run {trust_anew}. If the node's own "
        "certificate was also issued by the other CA: {enrol_ca}.",
        ("T08", "T06", "B04", "B05"), _H,
    ),
    KnownError(
        ("certificate verify failed [self signed certificate in certificate chain for CN=X]",
         "certificate verify failed [self-signed certificate in certificate chain for CN=X]",
         "certificate verify failed (self signed certificate in certificate chain)"),
        "The chain ends in a root CA that the agent does not have: the CA was recreated, or only a part of the "
        "bundle was distributed.",
        "Distribute the new bundle to every host that uses the CA; on a node run {trust_anew}. If the node's own "
        "certificate was also issued by the other CA: {enrol_ca}.",
        ("T08", "B04"), _H,
    ),
    KnownError(
        ("Server hostname 'HOST' did not match server certificate; expected one of X, DNS:X",
         "hostname \"HOST\" does not match the server certificate",
         "certificate verify failed: [ok for /CN=X]"),
        "The name that the agent uses for its server is not in the server's certificate. With Ruby 2.4 and later, "
        "old versions of Puppet print `[ok for ...]` instead.",
        "On the node set `server` to a name that the message lists: `puppet config set server <name> --section "
        "main`. Or recreate the server's certificate, with {host} in its `dns_alt_names`.",
        ("T07",), _H,
    ),
    KnownError(
        ("The certificate 'NAME' is not yet valid, verify time is synchronized",
         "The certificate 'NAME' has expired, verify time is synchronized",
         "certificate verify failed [certificate has expired for CN=NAME]"),
        "A clock is wrong, or the certificate has really expired: Puppet's certificates are valid for five years.",
        "Check the time on both ends first: `date -u`. If a node's certificate has expired: {enrol}. If the "
        "master's has expired: {renew_master}. If the CA's has expired: renew it on the CA.",
        ("B33", "B35", "T08", "T10"), _W,
    ),
    KnownError(
        ("The CRL issued by 'X' is not yet valid, verify time is synchronized",),
        "The agent's clock is more than five minutes behind the CA's.",
        "Synchronise the clocks (NTP) on the agent and on the CA. If the CA's clock was ahead, correct it first, "
        "then: {new_crl}.",
        ("B12", "T10"), _W,
    ),
    KnownError(
        ("The CRL issued by 'X' has expired, verify time is synchronized",
         "certificate verify failed [CRL has expired for CN=X]"),
        "The CRL's nextUpdate has passed: the CA did not issue a new one, or the agent still has an old file.",
        "On the CA look at each CRL: {crls}. Then {new_crl}. Then on each agent that still has the old one run `rm -f "
        "\"$(puppet config print hostcrl)\"; puppet agent -t`. If the message names an external CA, that CA must issue "
        "the list: pass its file with --add.",
        ("B10",), _W,
    ),
    KnownError(
        ("The CRL issued by 'X' is missing", "certificate verify failed [unable to get certificate CRL for CN=X]"),
        "The CRL bundle does not contain the CRL of one CA of the chain, often the root's.",
        "On the CA see which one is missing: {crls}. Add it: {write_crls}. Then on each agent run `rm -f \"$(puppet "
        "config print hostcrl)\"; puppet agent -t`. As a workaround `puppet config set certificate_revocation leaf "
        "--section agent`.",
        ("B13", "B07", "B08"), _W,
    ),
    KnownError(
        ("Certificate 'NAME' is revoked", "certificate verify failed [certificate revoked for CN=NAME]",
         "sslv3 alert certificate revoked", "SSL_connect SYSCALL returned=5 errno=0 state=SSLv3 read finished"),
        "The certificate is on the CRL. With TLS 1.3 the agent notices it only after the handshake, as a closed "
        "connection.",
        "To readmit the node: {enrol}. If the revoked certificate is the master's: create a new one for it on the CA.",
        ("T05",), _H,
    ),
    KnownError(
        ("sslv3 alert certificate unknown", "tlsv1 alert certificate unknown", "ssl/tls alert certificate unknown"),
        "The master refuses the agent's certificate. Real masters (Java) send this alert for every problem with it: "
        "revoked, expired, issued by another CA; and to every agent when the master's own CRL has expired.",
        "If all agents fail, run on the master `openssl crl -noout -nextupdate -in \"$(puppet config print "
        "hostcrl)\"`; if that time has passed, on the CA run {new_crl}. If only this one fails, check {list} on the "
        "CA and {verify} on the node: if its certificate has expired or was revoked, {enrol}; if it was issued by "
        "another CA, {enrol_ca}.",
        ("T05", "T06", "B33", "B10", "T09"), _H,
    ),
    KnownError(
        ("tlsv1 alert unknown ca",),
        "The master does not trust the CA of the agent's certificate: the certificate is from another installation, "
        "or from before the CA was recreated.",
        "{enrol_ca}.",
        ("T06",), _H,
    ),
    KnownError(
        ("CSR 'NAME' contains subject alternative names (X), which are disallowed. Use X",
         "CSR 'NAME' contains extra subject alternative names (X), which are disallowed."),
        "The node's request contains alternative names (`dns_alt_names` in its puppet.conf), and the CA does not "
        "sign such requests.",
        "If the node is not a master, remove `dns_alt_names` from its puppet.conf, then {enrol}. If it should have "
        "them: {alt_names}.",
        ("B27",), _W,
    ),
    KnownError(
        ("CSR 'NAME' contains an authorization extension (X), which is disallowed. Use X",),
        "The node's signing request asks for extensions that grant rights (`pp_cli_auth`, `pp_auth_role` and others "
        "of that OID arc).",
        "Remove them from csr_attributes.yaml on the node, then {enrol}. If the site wants them: "
        "`allow-authorization-extensions: true` in the CA's ca.conf, restart it, then {sign}.",
        ("B28",), _W,
    ),
    KnownError(
        ("Forbidden request: X access to /puppet-ca/v1/sign (method :post) denied by rule 'puppetlabs deny all'",
         "Forbidden request: X access to X (method :get) (authenticated: true) denied by rule 'X'"),
        "The master's auth.conf has no rule that allows the request: an auth.conf managed by configuration "
        "management often lacks newer endpoints.",
        "Add the rule to auth.conf (or update the module that manages it), and restart the server.",
        ("S02", "B09", "B43"), _W,
    ),
    KnownError(
        ("Error 403 on SERVER: Forbidden request: /puppet/v3/catalog/X (method :post).",),
        "The certname in the path differs from the one in the certificate: a `node_name_value`, a trailing dot, or "
        "upper-case letters.",
        "Make `certname` match the certificate: `puppet config set certname {name} --section main`, then {reset}.",
        ("T04", "S02", "T03"), _W,
    ),
    KnownError(
        ("Failed to open TCP connection to HOST:8140 (Connection refused - connect(2) for \"X\" port 8140)",
         "No more routes to puppet", "Connection refused - connect(2)"),
        "No process listens on that port: the server is still starting, or the name or port is wrong.",
        "On {host} run `ss -ltn sport = :8140`; on the node run `puppet config print server masterport`.",
        (), _C,
    ),
    KnownError(
        ("Failed to open TCP connection to HOST:8140 (getaddrinfo: Name or service not known)",
         "getaddrinfo: Name or service not known", "getaddrinfo: Temporary failure in name resolution"),
        "The node cannot resolve the server's name: check DNS, or `server` in puppet.conf (`puppet` by default).",
        "On the node run `puppet config print server --section agent`, then `getent hosts {host}`. Fix DNS or "
        "/etc/hosts, or `puppet config set server <name> --section agent`.",
        (), _C,
    ),
    KnownError(
        ("Request to HOST timed out connect operation after X seconds",
         "Could not request certificate: Connection timed out - connect(2)"),
        "Packets are dropped between node and server: a wrong route, a firewall, or a dead member of a load balancer.",
        "Try `nc -vz {host} 8140` from the node; `http_connect_timeout` limits the wait.",
        (), _C,
    ),
    KnownError(
        ("Request to X/catalog/X timed out read operation after X seconds",
         "Could not retrieve catalog from remote server: execution expired",
         "Connection timed out - execution expired"),
        "The master took longer than `http_read_timeout` (10 minutes): a slow function, PuppetDB, a cold JRuby.",
        "Find the slow part with `puppet agent -t --profile`; raise the timeout only after that.",
        ("S08",), _W,
    ),
    KnownError(
        ("Could not retrieve file metadata for puppet:///plugins: X",
         "Failed to generate additional resources using 'eval_generate': X"),
        "Nearly always a consequence: the first error of the run names the cause, usually a TLS problem.",
        "Read the first error of the run; {verify} on the node checks its certificates.",
        ("T05", "T07", "T08", "B10", "B13"), _H,
    ),
    KnownError(
        ("Could not evaluate: Could not retrieve information from environment X source(s) puppet:///modules/X",
         "Could not find file_metadata modules/X"),
        "The file does not exist in that module and environment on the master that answered.",
        "Deploy the code, or correct the `source`; with several compilers compare their code.",
        ("F02", "S20"), _W,
    ),
    KnownError(
        ("Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error: X",
         "Error 400 on SERVER: X at X:X on node X"),
        "The catalog does not compile: an error in the code, the Hiera data or a template.",
        "The message names file, line and column; fix the code there.",
        ("S01", "R20"), _W,
    ),
    KnownError(
        ("Could not find node statement with name 'default' or 'X' on node X",),
        "site.pp has node blocks, and none of them matches this node.",
        "Add a node block for it, or one for `default`.",
        ("S01",), _W,
    ),
    KnownError(
        ("Failed to serialize Puppet::Resource::Catalog for 'X': source sequence is illegal/malformed utf-8",),
        "The catalog contains binary data or a file name that is not UTF-8.",
        "Use `binary_file()` instead of `file()`, or rename the file.",
        ("S01", "S10"), _W,
    ),
    KnownError(
        ("Local environment: 'X' doesn't match server specified environment 'X', restarting agent run",
         "Catalog environment didn't stabilize after X fetches, aborting run"),
        "The classifier assigns a different environment than the agent requested; the agent gives up if the answer "
        "changes with each try.",
        "Let the server decide, and correct classifier rules that depend on changing facts.",
        ("R06", "R08", "R07"), _W,
    ),
    KnownError(
        ("Sleeping for X seconds before retrying the request", "Too many HTTP retries for X"),
        "The server answers 503 with Retry-After: more requests are waiting than `max-queued-requests` allows.",
        "Spread the runs (`splay`), or give the server more JRubies.",
        ("S05", "S06", "S07", "R16"), _W,
    ),
    KnownError(
        ("Run of Puppet configuration client already in progress; skipping (X/agent_catalog_run.lock exists)",
         "Another puppet instance is already running", "Another OpenVox instance is already running"),
        "An earlier run is still in progress, or hangs.",
        "`cat $(puppet config print agent_catalog_run_lockfile)` shows its process id; `runtimeout` limits the "
        "duration of a run.",
        (), None,
    ),
    KnownError(
        ("Could not select a functional puppet server from server_list: 'X'",
         "Could not select a functional OpenVox server from server_list: 'X'"),
        "No server in the list answers 200 to /status/v1/simple/server; a server that is starting answers 503.",
        "Query each server: `curl -k https://{host}:8140/status/v1/simple/server`.",
        ("S21",), _W,
    ),
    KnownError(
        ("Failed to submit the CSR, HTTP response was X", "Could not send certificate request: X"),
        "The CA did not accept the signing request: an internal error, a file that it cannot write, or an auth.conf "
        "rule.",
        "Read the CA's log of that time; check owner and modes of its cadir.",
        ("B43", "B44"), _W,
    ),
    KnownError(
        ("Failed to apply catalog: undefined method 'name' for nil",),
        "A bug of OpenVox 9.0.0-rc1 that hides the real error, which is printed above it.",
        "Read the first error of the run.",
        ("R20", "S01"), _W,
    ),
    KnownError(
        ("dh key too small", "SSL_connect returned=1 errno=0 state=error: dh key too small"),
        "One end uses TLS parameters that are too old for the other end's OpenSSL.",
        "Update Java or OpenSSL on the older side; compare `puppet-inspector doctor --live {host}`.",
        ("T02", "T01"), _H,
    ),
    KnownError(
        ("The environment must be purely alphanumeric, not 'puppet-ca'",
         "Error 404 on SERVER: Could not find environment 'puppet'"),
        "An agent of Puppet 4 or later connects to a master of Puppet 3, whose URLs begin with the environment.",
        "Upgrade the master first: it must never be older than its agents.",
        ("S03", "S16"), _W,
    ),
    KnownError(
        ("413 Request Entity Too Large",),
        "A web server in front of the master limits the size of requests, and a report or the facts exceed it.",
        "Raise its limit (nginx: `client_max_body_size`).",
        ("P03", "S15"), _W,
    ),
)  # fmt: skip

# Words of the text around the reason: many messages share them, so they count little.
_COMMON = {
    "a", "an", "and", "by", "for", "from", "in", "is", "it", "not", "of", "on", "the", "to", "with", "could", "errno",
    "error", "failed", "returned", "state", "additional", "catalog", "certificate", "cn", "eval_generate", "evaluate",
    "generate", "puppet", "remote", "report", "request", "resources", "retrieve", "run", "send", "server",
    "ssl_connect", "using", "verify",
}  # fmt: skip
_COMMON_WEIGHT = 0.2
_WORD = regex.compile(r"[a-z0-9_/.:-]*[a-z0-9]")
_PLACEHOLDER = regex.compile(r"\b(NAME|HOST|X)\b")
_VALUE = r"""(?:https?://|/?CN=)?([^\s/:,;'"()\[\]]+)[^\s'"()\[\]]*?"""
ENOUGH = 0.6
"""The share of a message's fixed words, by weight, that a pasted line must contain."""


def find(pasted: str) -> ErrorMatch | None:
    """Return the known message that is most similar to a pasted line; None if none is similar.

    Names, quotes, prefixes and the order of words matter little.
    """
    words = _words(pasted)
    best, score = None, 0.0
    for known in MESSAGES:
        for text in known.texts:
            likeness = _likeness(_words(_PLACEHOLDER.sub(" ", text)), words)
            if likeness > score:
                best, score = known, likeness
    return ErrorMatch(best, _value(best, "NAME", pasted), _value(best, "HOST", pasted)) if best else None


def _likeness(fixed: set[str], words: set[str]) -> float:
    """How well a message's words match those of the pasted line; 0: not enough."""
    shared = fixed & words
    # A short message must not match by two words, and no message by some of the common words only.
    if len(shared) < min(3, len(fixed)) or (shared <= _COMMON and shared != fixed):
        return 0.0
    found, also = _weight(shared) / _weight(fixed), _weight(shared) / _weight(words)
    if found >= ENOUGH or (also >= ENOUGH and len(shared) >= 3):
        return max(found, also) + _weight(shared) / 100
    return 0.0


def _weight(words: set[str]) -> float:
    return sum(_COMMON_WEIGHT if word in _COMMON else 1 for word in words)


def _value(known: KnownError, placeholder: str, pasted: str) -> str | None:
    """The part of the pasted line at the message's ``NAME`` or ``HOST``."""
    for text in known.texts:
        before, found, after = text.partition(placeholder)
        if found:
            # The words next to it are enough: pasted lines may be incomplete.
            ahead, behind = before.removesuffix("CN=").split(" ")[-3:], after.rstrip(".").split(" ")[:3]
            if value := regex.search(_loose(ahead) + _VALUE + _loose(behind), pasted, regex.IGNORECASE):
                return value[1]
    return None


def _loose(words: list[str]) -> str:
    """A pattern of words that accepts any spaces in between, and missing quotes."""
    return regex.sub(r"\\?['\"]", "['\"]?", r"\s+".join(map(regex.escape, words)))


def _words(text: str) -> set[str]:
    return {word.strip(".:'\"") for word in _WORD.findall(text.lower())} - {"", "error", "info", "notice", "warning"}
