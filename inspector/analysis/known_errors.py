"""What agents print when something is wrong, and what that means: for ``puppet-inspector explain "..."``.

The texts are Puppet's and OpenVox's own, with ``X`` for what varies, ``NAME`` for a certname and ``HOST`` for a
server, which go into the remedy's commands; people paste them into search boxes. How an agent came to print one is
told by the rules that are named with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from inspector.model import Visible


class Known(NamedTuple):
    """A message, or several that mean the same."""

    texts: tuple[str, ...]
    cause: str
    remedy: str
    """With the placeholders of ``inspector.rules.remedies``."""
    rules: tuple[str, ...]
    visible: Visible | None
    """None: local to the agent, nothing of it is on the wire."""
    old: bool | None = None
    """Whether only agents up to 5 print it, or only later ones; None: both."""


class Found(NamedTuple):
    """What a pasted line is."""

    known: Known
    name: str | None
    """The certname in it."""
    host: str | None
    """The server in it."""


_W, _H, _C = Visible.WIRE, Visible.HANDSHAKE, Visible.CONSEQUENCE

MESSAGES: tuple[Known, ...] = (
    Known(
        ("Couldn't fetch certificate from CA server; you might still need to sign this agent's certificate (NAME).",
         "Certificate for NAME has not been signed yet", "Exiting; no certificate found and waitforcert is disabled"),
        "The agent's signing request waits on the CA: nobody signed it, and nothing signs by itself.",
        "Compare {fingerprint} on the node with {list} on the CA, then {sign}. To bound the wait: "
        "`puppet config set maxwaitforcert 1h --section agent`.",
        ("B17", "B39", "B42"), _W,
    ),
    Known(
        ("The certificate for 'NAME' does not match its private key",),
        "The CA still hands out an older certificate of this name, made for another key: the node was reinstalled, "
        "lost its ssldir, or the agent runs as another user.",
        "{enrol}. Run the agent as root.",
        ("B23", "B18", "B22"), _W, old=False,
    ),
    Known(
        ("The certificate retrieved from the master does not match the agent's private key",),
        "The CA still hands out an older certificate of this name, made for another key: the node was reinstalled, "
        "lost its ssldir, or the agent runs as another user. Agents up to 5 print it.",
        "{enrol}. Run the agent as root.",
        ("B23", "B22"), _W, old=True,
    ),
    Known(
        ("The CSR for host 'NAME' does not match the public key",),
        "An older signing request of another key lies on the CA or on the agent.",
        "{enrol}.",
        ("B20",), _W, old=False,
    ),
    Known(
        ("The CSR retrieved from the master does not match the agent's public key.",),
        "An older signing request of another key lies on the CA or on the agent. Agents up to 5 print it.",
        "{enrol}.",
        ("B20", "B40"), _W, old=True,
    ),
    Known(
        ("NAME already has a requested certificate; ignoring certificate request",),
        "Its request waits on the CA to be signed. Agents of 6.4 and later submit it again with each poll, and the CA "
        "says this each time: no fault. If another key made the waiting request, two hosts share the name, or the node "
        "lost its key.",
        "Compare {fingerprint} on the node with {list} on the CA. If they agree, {sign}. If they do not, and the node "
        "was reinstalled: {enrol}.",
        ("B17", "B39", "B20"), _W,
    ),
    Known(
        ("NAME already has a signed certificate; ignoring certificate request",),
        "The CA holds a certificate for this name already: the node was made anew, or two hosts share the name.",
        "For a reinstalled node: {enrol}. For two hosts: give each a certname of its own.",
        ("B18", "B22", "B46"), _W,
    ),
    Known(
        ("NAME already has a revoked certificate; ignoring certificate request",),
        "The certificate of this name was revoked, and the CA keeps it: until it is cleaned there is no room for a new "
        "one.",
        "If the node may come back: {enrol}. If it was revoked for good, stop its agent.",
        ("B19",), _W,
    ),
    Known(
        ("certificate verify failed [unable to get local issuer certificate for CN=X]",
         "certificate verify failed [unable to get issuer certificate for CN=X]",
         "SSL_connect state=error: certificate verify failed (unable to get local issuer certificate)"),
        "The agent's ca.pem does not hold the CA that signed what it was shown: it is from an older or another CA, or "
        "the intermediate is missing.",
        "Make sure that the agent reaches the right server; then on the node {trust_anew}. If the node's own "
        "certificate is of the other CA too: {enrol_ca}.",
        ("T08", "T06", "B04", "B05"), _H,
    ),
    Known(
        ("certificate verify failed [self signed certificate in certificate chain for CN=X]",
         "certificate verify failed [self-signed certificate in certificate chain for CN=X]",
         "certificate verify failed (self signed certificate in certificate chain)"),
        "The chain ends in a root that the agent does not hold: the CA was made anew, or only a part of the bundle was "
        "distributed.",
        "Give every consumer the new bundle; on a node {trust_anew}. If the node's own certificate is of the other CA "
        "too: {enrol_ca}.",
        ("T08", "B04"), _H,
    ),
    Known(
        ("Server hostname 'HOST' did not match server certificate; expected one of X, DNS:X",
         "hostname \"HOST\" does not match the server certificate",
         "certificate verify failed: [ok for /CN=X]"),
        "The name by which the agent calls its server is not in the server's certificate. Agents of Ruby 2.4 and later "
        "with an old Puppet say `[ok for ...]` instead.",
        "On the node set `server` to a name that the message lists: `puppet config set server <name> --section main`. "
        "Or make the server's certificate anew, with {host} in its `dns_alt_names`.",
        ("T07",), _H,
    ),
    Known(
        ("The certificate 'NAME' is not yet valid, verify time is synchronized",
         "The certificate 'NAME' has expired, verify time is synchronized",
         "certificate verify failed [certificate has expired for CN=NAME]"),
        "A clock is wrong, or the certificate really ended: Puppet's are valid for five years.",
        "Check the time on both ends first: `date -u`. If a node's certificate ended: {enrol}. If the master's or the "
        "CA's did: renew it on the CA.",
        ("B33", "B35", "T08", "T10"), _W,
    ),
    Known(
        ("The CRL issued by 'X' is not yet valid, verify time is synchronized",),
        "The agent's clock is more than five minutes behind the CA's.",
        "Synchronise the clocks (NTP) on the agent and on the CA. If the CA's was ahead, when it is right: {new_crl}.",
        ("B12", "T10"), _W,
    ),
    Known(
        ("The CRL issued by 'X' has expired, verify time is synchronized",
         "certificate verify failed [CRL has expired for CN=X]"),
        "The revocation list's nextUpdate has passed: the CA made no new one, or the agent keeps an old file.",
        "On the CA {new_crl}. Then on each agent that keeps the old one `rm -f \"$(puppet config print hostcrl)\"; "
        "puppet agent -t`. If the message names an external CA, that CA must issue the list: put it into ca_crl.pem.",
        ("B10",), _W,
    ),
    Known(
        ("The CRL issued by 'X' is missing", "certificate verify failed [unable to get certificate CRL for CN=X]"),
        "The bundle of revocation lists lacks that of one CA of the chain, often the root's.",
        "Serve a CRL for each CA of the chain; as a stop-gap `puppet config set certificate_revocation leaf --section "
        "agent`.",
        ("B13", "B07", "B08"), _W,
    ),
    Known(
        ("Certificate 'NAME' is revoked", "certificate verify failed [certificate revoked for CN=NAME]",
         "sslv3 alert certificate revoked", "SSL_connect SYSCALL returned=5 errno=0 state=SSLv3 read finished"),
        "The certificate is on the revocation list. In TLS 1.3 the agent notices only after the handshake, as a closed "
        "connection.",
        "To let the node in again: {enrol}. If it is the master's that was revoked: make it a new one on the CA.",
        ("T05",), _H,
    ),
    Known(
        ("sslv3 alert certificate unknown", "tlsv1 alert certificate unknown", "ssl/tls alert certificate unknown"),
        "The master refuses the agent's certificate. Real masters (Java) send this alert for whatever is wrong with "
        "it: revoked, ended, of another CA; and for every agent when the master's own CRL has expired.",
        "If all agents fail, on the master `openssl crl -noout -nextupdate -in \"$(puppet config print hostcrl)\"`; "
        "if that has passed, on the CA {new_crl}. If only this one fails, see {list} on the CA and {verify} on the "
        "node: if its certificate ended or was revoked, {enrol}; if it is of another CA, {enrol_ca}.",
        ("T05", "T06", "B33", "B10", "T09"), _H,
    ),
    Known(
        ("tlsv1 alert unknown ca",),
        "The master does not know the CA of the agent's certificate: it is from another installation, or from before "
        "the CA was made anew.",
        "{enrol_ca}.",
        ("T06",), _H,
    ),
    Known(
        ("CSR 'NAME' contains subject alternative names (X), which are disallowed. Use X",
         "CSR 'NAME' contains extra subject alternative names (X), which are disallowed."),
        "The node asks for alternative names (`dns_alt_names` in its puppet.conf), and the CA does not sign such "
        "requests.",
        "If the node is no master, take `dns_alt_names` out of its puppet.conf, then {enrol}. If it is to have them: "
        "{alt_names}.",
        ("B27",), _W,
    ),
    Known(
        ("CSR 'NAME' contains an authorization extension (X), which is disallowed. Use X",),
        "The node asks for rights (`pp_cli_auth`, `pp_auth_role` and others of that arc) in its signing request.",
        "Take them out of csr_attributes.yaml on the node, then {enrol}. If the site means it: "
        "`allow-authorization-extensions: true` in the CA's ca.conf, restart it, then {sign}.",
        ("B28",), _W,
    ),
    Known(
        ("Forbidden request: X access to /puppet-ca/v1/sign (method :post) denied by rule 'puppetlabs deny all'",
         "Forbidden request: X access to X (method :get) (authenticated: true) denied by rule 'X'"),
        "The master's auth.conf has no rule that allows it: a managed auth.conf often lacks newer endpoints.",
        "Add the rule to auth.conf (or update the module that manages it), and restart the server.",
        ("S02", "B09", "B43"), _W,
    ),
    Known(
        ("Error 403 on SERVER: Forbidden request: /puppet/v3/catalog/X (method :post).",),
        "The certname in the path is not the one of the certificate: another `node_name_value`, a trailing dot, "
        "upper case.",
        "Make `certname` and the certificate agree: `puppet config set certname {name} --section main`, then {reset}.",
        ("T04", "S02", "T03"), _W,
    ),
    Known(
        ("Failed to open TCP connection to HOST:8140 (Connection refused - connect(2) for \"X\" port 8140)",
         "No more routes to puppet", "Connection refused - connect(2)"),
        "Nobody listens there: the server is still starting, or the name or port is wrong.",
        "On {host} `ss -ltn sport = :8140`; on the node `puppet config print server masterport`.",
        (), _C,
    ),
    Known(
        ("Failed to open TCP connection to HOST:8140 (getaddrinfo: Name or service not known)",
         "getaddrinfo: Name or service not known", "getaddrinfo: Temporary failure in name resolution"),
        "The node can't resolve the server's name: DNS, or `server` in puppet.conf (`puppet` by default).",
        "On the node `puppet config print server`, then `getent hosts {host}`. Mend DNS or /etc/hosts, or `puppet "
        "config set server <name> --section main`.",
        (), _C,
    ),
    Known(
        ("Request to HOST timed out connect operation after X seconds",
         "Could not request certificate: Connection timed out - connect(2)"),
        "Packets are dropped on the way: a route, a firewall, a dead member of a load balancer.",
        "Try `nc -vz {host} 8140` from the node; `http_connect_timeout` bounds the wait.",
        (), _C,
    ),
    Known(
        ("Request to X/catalog/X timed out read operation after X seconds",
         "Could not retrieve catalog from remote server: execution expired",
         "Connection timed out - execution expired"),
        "The master took longer than `http_read_timeout` (10 minutes): a slow function, PuppetDB, a cold JRuby.",
        "Find the slow part with `puppet agent -t --profile`; raise the timeout only afterwards.",
        ("S08",), _W,
    ),
    Known(
        ("Could not retrieve file metadata for puppet:///plugins: X",
         "Failed to generate additional resources using 'eval_generate': X"),
        "Nearly always a symptom: the first error of the run says what is wrong, mostly with TLS.",
        "Look at the first error of the run; {verify} on the node shows what it thinks of its certificates.",
        ("T05", "T07", "T08", "B10", "B13"), _H,
    ),
    Known(
        ("Could not evaluate: Could not retrieve information from environment X source(s) puppet:///modules/X",
         "Could not find file_metadata modules/X"),
        "The file is not in that module of that environment on the master that answered.",
        "Deploy the code, or mend the `source`; with several compilers compare what they have.",
        ("F02", "S20"), _W,
    ),
    Known(
        ("Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error: X",
         "Error 400 on SERVER: X at X:X on node X"),
        "The catalog does not compile: code, Hiera data or a template.",
        "The message names file, line and column; mend the code there.",
        ("S01", "R20"), _W,
    ),
    Known(
        ("Could not find node statement with name 'default' or 'X' on node X",),
        "site.pp has node blocks, and none fits this node.",
        "Add a node block for it, or one for `default`.",
        ("S01",), _W,
    ),
    Known(
        ("Failed to serialize Puppet::Resource::Catalog for 'X': source sequence is illegal/malformed utf-8",),
        "Binary data or a file name that is not UTF-8 is in the catalog.",
        "Use `binary_file()` instead of `file()`, or mend the file's name.",
        ("S01", "S10"), _W,
    ),
    Known(
        ("Local environment: 'X' doesn't match server specified environment 'X', restarting agent run",
         "Catalog environment didn't stabilize after X fetches, aborting run"),
        "The classifier gives another environment than the agent asked for; it gives up if that changes with each try.",
        "Let the server decide, and mend a classifier rule that depends on facts which change.",
        ("R06", "R08", "R07"), _W,
    ),
    Known(
        ("Sleeping for X seconds before retrying the request", "Too many HTTP retries for X"),
        "The server answers 503 with Retry-After: more requests wait than `max-queued-requests` allows.",
        "Spread the runs (`splay`), or give the server more JRubies.",
        ("S05", "S06", "S07", "R16"), _W,
    ),
    Known(
        ("Run of Puppet configuration client already in progress; skipping (X/agent_catalog_run.lock exists)",
         "Another puppet instance is already running", "Another OpenVox instance is already running"),
        "An earlier run still goes on, or hangs.",
        "`cat $(puppet config print agent_catalog_run_lockfile)` names its process; `runtimeout` bounds a run.",
        (), None,
    ),
    Known(
        ("Could not select a functional puppet server from server_list: 'X'",
         "Could not select a functional OpenVox server from server_list: 'X'"),
        "No server of the list answers 200 to /status/v1/simple/server; one that starts answers 503.",
        "Ask each: `curl -k https://{host}:8140/status/v1/simple/server`.",
        ("S21",), _W,
    ),
    Known(
        ("Failed to submit the CSR, HTTP response was X", "Could not send certificate request: X"),
        "The CA did not take the signing request: an error of its own, a file it can't write, or a rule.",
        "Read the CA's log of that moment; check owner and modes of its cadir.",
        ("B43", "B44"), _W,
    ),
    Known(
        ("Failed to apply catalog: undefined method 'name' for nil",),
        "A bug of OpenVox 9.0.0-rc1 that hides the real error, which is printed above it.",
        "Read the first error of the run.",
        ("R20", "S01"), _W,
    ),
    Known(
        ("dh key too small", "SSL_connect returned=1 errno=0 state=error: dh key too small"),
        "One end's TLS is older than the other's OpenSSL accepts.",
        "Update the older side's Java or OpenSSL; compare `puppet-inspector doctor --live {host}`.",
        ("T02", "T01"), _H,
    ),
    Known(
        ("The environment must be purely alphanumeric, not 'puppet-ca'",
         "Error 404 on SERVER: Could not find environment 'puppet'"),
        "An agent of Puppet 4 or later talks to a master of Puppet 3, whose URLs begin with the environment.",
        "Upgrade the master first: it must never be older than its agents.",
        ("S03", "S16"), _W,
    ),
    Known(
        ("413 Request Entity Too Large",),
        "A web server in front of the master limits the size of requests: reports and facts are larger.",
        "Raise its limit (nginx: `client_max_body_size`).",
        ("P03", "S15"), _W,
    ),
)  # fmt: skip

# The wrappers around the real reason are the same for many reasons: they say little.
_COMMON = {
    "a", "an", "and", "by", "for", "from", "in", "is", "it", "not", "of", "on", "the", "to", "with", "could", "errno",
    "error", "failed", "returned", "state", "additional", "catalog", "certificate", "cn", "eval_generate", "evaluate",
    "generate", "puppet", "remote", "report", "request", "resources", "retrieve", "run", "send", "server",
    "ssl_connect", "using", "verify",
}  # fmt: skip
_LITTLE = 0.2
_WORD = re.compile(r"[a-z0-9_/.:-]*[a-z0-9]")
_HOLE = re.compile(r"\b(NAME|HOST|X)\b")
_VALUE = r"""(?:https?://|/?CN=)?([^\s/:,;'"()\[\]]+)[^\s'"()\[\]]*?"""
ENOUGH = 0.6
"""How much of a message's fixed words must be in what was pasted, by weight."""


def find(pasted: str) -> Found | None:
    """The message that a pasted line is, loosely: names, quotes, prefixes and order of words do not matter much."""
    words = _words(pasted)
    best, score = None, 0.0
    for known in MESSAGES:
        for text in known.texts:
            each = _likeness(_words(_HOLE.sub(" ", text)), words)
            if each > score:
                best, score = known, each
    return Found(best, _value(best, "NAME", pasted), _value(best, "HOST", pasted)) if best else None


def _likeness(fixed: set[str], words: set[str]) -> float:
    """How much a message's words are those of the pasted line; 0: not enough."""
    shared = fixed & words
    # A short message must not win by two words, and none by a part of the words that many have.
    if len(shared) < min(3, len(fixed)) or (shared <= _COMMON and shared != fixed):
        return 0.0
    found, also = _weight(shared) / _weight(fixed), _weight(shared) / _weight(words)
    if found >= ENOUGH or (also >= ENOUGH and len(shared) >= 3):
        return max(found, also) + _weight(shared) / 100
    return 0.0


def _weight(words: set[str]) -> float:
    return sum(_LITTLE if word in _COMMON else 1 for word in words)


def _value(known: Known, hole: str, pasted: str) -> str | None:
    """What stands in the pasted line where the message has a ``NAME`` or a ``HOST``."""
    for text in known.texts:
        before, found, after = text.partition(hole)
        if found:
            # The words next to it are enough: lines are cut off.
            ahead, behind = before.removesuffix("CN=").split(" ")[-3:], after.rstrip(".").split(" ")[:3]
            if value := re.search(_loose(ahead) + _VALUE + _loose(behind), pasted, re.IGNORECASE):
                return value[1]
    return None


def _loose(words: list[str]) -> str:
    """A pattern of words, with any spaces in between, and any quotes or none."""
    return re.sub("['\"]", "['\"]?", r"\s+".join(map(re.escape, words)))


def _words(text: str) -> set[str]:
    return {word.strip(".:'\"") for word in _WORD.findall(text.lower())} - {"", "error", "info", "notice", "warning"}
