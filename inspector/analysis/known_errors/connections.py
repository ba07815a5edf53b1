"""Messages about the way to the server: names, ports, timeouts, TLS and HTTP."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible

_W, _H, _C = Visible.WIRE, Visible.HANDSHAKE, Visible.CONSEQUENCE
_SERVER = "On the node run `puppet config print server serverport --section agent` (up to version 5: masterport)."
_STATUS = "`curl -sk https://{host}:8140/status/v1/simple/server`"

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            'Failed to open TCP connection to HOST:8140 (Connection refused - connect(2) for "X" port 8140)',
            "Failed to open TCP connection to HOST:X (Connection refused",
            "Connection refused - connect(2)",
            "Connection refused",
        ),
        "No process listens on that port of the server.",
        (
            "The server is still starting: it needs half a minute or more.",
            "The server is stopped or has crashed.",
            "`server` or its port is wrong.",
            "A firewall rejects the connection.",
        ),
        "On {host} run `ss -ltn sport = :8140; systemctl status puppetserver`. " + _SERVER,
        "On {host} run `systemctl start puppetserver`. If the name is wrong: `puppet config set server "
        "<name> --section agent`.",
        ("T18",),
        _C,
    ),
    KnownError(
        (
            "Failed to open TCP connection to HOST:X (getaddrinfo",
            "getaddrinfo: Name or service not known",
            "getaddrinfo: Temporary failure in name resolution",
            "getaddrinfo: nodename nor servname provided, or not known",
            "getaddrinfo(3)",
            "getaddrinfo",
            "No address for HOST",
        ),
        "The node cannot resolve the server's name: DNS or /etc/hosts does not know it.",
        (
            "`server` is not set, and the node looks for `puppet`.",
            "The name is misspelt, or lacks its domain.",
            "DNS does not answer, or does not know the name.",
        ),
        "On the node run `puppet config print server --section agent`, then `getent hosts {host}`.",
        "Fix DNS or /etc/hosts, or `puppet config set server <name> --section agent`.",
        ("T19",),
        _C,
    ),
    KnownError(
        (
            "Request to HOST timed out connect operation after X seconds",
            "Could not request certificate: Connection timed out - connect(2)",
            "Connection timed out - connect(2)",
            "Connection timed out - user specified timeout",
            "Net::OpenTimeout",
            "Could not request certificate: execution expired",
        ),
        "Nothing answers at the server's address: packets are dropped on the way.",
        (
            "A firewall drops them.",
            "The address is wrong, or of a member of a load balancer that is down.",
            "The network has no route.",
        ),
        "On the node run `nc -vz {host} 8140`.",
        "Open port 8140 on the way, or correct the address. `http_connect_timeout` limits the wait.",
        ("T20",),
        _C,
    ),
    KnownError(
        (
            "No route to host",
            "Network is unreachable",
            "Host is down",
        ),
        "The node's network has no way to the server.",
        (
            "A firewall rejects the packets.",
            "The server is down.",
            "A route or a gateway is missing.",
        ),
        "On the node run `ip route get \"$(getent hosts {host} | cut -d' ' -f1)\"`.",
        "Open port 8140 in the firewall of {host}: `firewall-cmd --permanent --add-port=8140/tcp; "
        "firewall-cmd --reload`. Or repair the route.",
        ("T20",),
        _C,
    ),
    KnownError(
        (
            "Request to X/catalog/X timed out read operation after X seconds",
            "timed out read operation after X seconds",
            "Could not retrieve catalog from remote server: execution expired",
            "Connection timed out - execution expired",
            "execution expired",
            "Net::ReadTimeout",
            "Timeout::Error",
        ),
        "The master took longer to answer than the agent waits: `http_read_timeout`, 10 minutes (up to "
        "version 3 `configtimeout`, 2 minutes).",
        (
            "The catalog takes long: a slow function, Hiera backend, PuppetDB query or node classifier.",
            "All JRubies are busy, so the request waits in the queue.",
            "The server has just started, and is cold.",
            "The server hangs: out of memory.",
        ),
        "On the master run `grep 'Compiled catalog for' /var/log/puppetlabs/puppetserver/puppetserver.log | tail`.",
        "Find the slow part with `puppet agent -t --profile`; raise the timeout only after that.",
        ("S08", "S23"),
        _W,
    ),
    KnownError(
        (
            "Request to X interrupted after X seconds",
            "end of file reached",
            "EOFError",
        ),
        "The server closed the connection before its answer was complete.",
        (
            "The server was restarted or has crashed (out of memory).",
            "A load balancer or proxy in between has a shorter timeout than the master needs.",
        ),
        "On {host} run `journalctl -u puppetserver --since -1h | tail -n 50`.",
        "Raise the timeout of the load balancer above the master's longest compilation, or give the "
        "server more memory (-Xmx in JAVA_ARGS), then `systemctl restart puppetserver`.",
        ("S14", "T22"),
        _W,
    ),
    KnownError(
        (
            "Connection reset by peer",
            "SSL_connect SYSCALL returned=5 errno=0 state=X",
            "Broken pipe",
            "SSL_connect SYSCALL returned=5 errno=104",
            "unexpected eof while reading",
        ),
        "The other end cut the connection, often during the TLS handshake.",
        (
            "A firewall or load balancer cuts it.",
            "The server is starting or stopping.",
            "The server refuses the agent's certificate, and says so only by closing (TLS 1.3).",
        ),
        "On the node run `openssl s_client -connect {host}:8140 </dev/null`.",
        "If it connects without a certificate, check the node's: {verify}; if it was revoked, {enrol}. "
        "Otherwise look at the log of the server and of what is in between.",
        ("T22", "T09", "T05"),
        _H,
    ),
    KnownError(
        (
            "wrong version number",
            "state=X http request",
            "plain http request",
            "unknown protocol",
            "packet length too long",
            "record layer failure",
        ),
        "What answers on that port speaks no TLS.",
        (
            "The port is wrong: another service answers there.",
            "A proxy or load balancer answers in plain HTTP.",
            "`http_proxy` sends the agent to a web proxy.",
        ),
        "On the node run `curl -sv http://{host}:8140/; puppet config print http_proxy_host --section agent`.",
        "Correct the port: `puppet config set serverport 8140 --section agent` (up to version 5: "
        "masterport), or let the load balancer pass TLS through.",
        ("T21",),
        _H,
    ),
    KnownError(
        ("attempt to read body out of block",),
        "The agent was to wait and repeat its request (503 with Retry-After), and cannot: it closes the "
        "connection and then reads its answer. The run ends without a catalog, or the report is lost. "
        "This is a bug of agents 6.29, 7 before 7.26 and 8 before 8.2.",
        (
            "The master is busy, and `max-queued-requests` and `max-retry-delay` are set.",
            "A load balancer answers 503 with Retry-After while the master is down.",
        ),
        "On the node run `puppet --version`. On the master run `grep -rn -e max-queued-requests -e "
        "max-retry-delay /etc/puppetlabs/puppetserver/conf.d /etc/puppet/puppetserver/conf.d`.",
        "Upgrade the agent to 7.26 or later, or to 8.2 or later. Until then set `max-queued-requests: 0` "
        "in the jruby-puppet section of puppetserver.conf and run `systemctl restart puppetserver`. With "
        "`max-retry-delay: 0` agents fail at once, but with a clear message. A load balancer must not "
        "send Retry-After.",
        ("S24", "S05"),
        _W,
        old=False,
    ),
    KnownError(
        (
            "Sleeping for X seconds before retrying the request",
            "Too many HTTP retries for X",
            "Failed to parse Retry-After header X as an integer or RFC 2822 date",
        ),
        "The server answers 503 with Retry-After: it has too many requests at once.",
        (
            "More requests are waiting than `max-queued-requests` allows.",
            "All agents start at the same time.",
            "A load balancer has no healthy master.",
        ),
        "On the node run " + _STATUS + ".",
        "Spread the runs: `puppet config set splay true --section agent`, or give the server more "
        "JRubies (`max-active-instances`).",
        ("S05", "S06", "S07", "R16", "S24"),
        _W,
    ),
    KnownError(
        (
            "Error 503 on SERVER",
            "503 Service Unavailable",
            "503 Service Temporarily Unavailable",
        ),
        "The server cannot serve the request now.",
        (
            "It is still starting.",
            "All JRubies are busy, and its queue is full.",
            "A load balancer has no healthy master behind it.",
        ),
        "On the node run " + _STATUS + ".",
        "Wait until it answers `running`. If it is only busy, spread the runs (`splay`) or raise "
        "`max-active-instances`.",
        ("S06", "S05"),
        _W,
    ),
    KnownError(
        (
            "Error 502 on SERVER",
            "502 Bad Gateway",
            "504 Gateway",
            "502 Proxy Error",
        ),
        "A proxy or load balancer in front of the master got no answer from it.",
        (
            "The master behind it is down or starting.",
            "The master takes longer than the proxy waits.",
        ),
        "On the proxy's host run " + _STATUS + " with the master's name.",
        "Start the master: `systemctl start puppetserver`; raise the proxy's timeout above 10 minutes.",
        ("S15", "S23"),
        _W,
    ),
    KnownError(
        (
            "413 Request Entity Too Large",
            "Request Entity Too Large",
        ),
        "A web server in front of the master limits the size of requests, and a report or the facts exceed it.",
        (
            "Its limit is its default (nginx: 1 MB).",
            "A fact or a report of this node is unusually large.",
        ),
        "On the node run `puppet facts show | wc -c` (up to version 5: `facter -p | wc -c`).",
        "Raise its limit (nginx: `client_max_body_size 20m;`, then `nginx -s reload`).",
        ("P03", "S15"),
        _W,
    ),
    KnownError(
        (
            "Error 400 on SERVER: Bad Request",
            "400 Bad Request",
            "Unrecognized SSL message, plaintext connection",
            "400 The plain HTTP request was sent to HTTPS port",
        ),
        "What answers does not understand the request.",
        (
            "A request without TLS went to a TLS port.",
            "A proxy in between changes the requests.",
        ),
        _SERVER,
        "Correct the address, or take the proxy out of the way.",
        ("S15", "T15"),
        _W,
    ),
    KnownError(
        (
            "Too many HTTP redirections for X",
            "Location response header is missing",
            "Location URI is invalid: X",
        ),
        "The agent is sent from one address to another, and does not arrive.",
        ("A load balancer redirects to itself, or to a login page.",),
        "On the node run `curl -skI https://{host}:8140/puppet/v3/environments`.",
        "Let the load balancer pass the requests on instead of redirecting them.",
        ("S12",),
        _W,
    ),
    KnownError(
        (
            "No content type in http response; cannot parse",
            "Content-Type is unsupported",
            "Failed to deserialize X",
            "Unsupported Media Type",
            "No client-supported formats provided",
            "Unknown content encoding",
            "Client sent a mime-type (X) that doesn't correspond to a format we support",
        ),
        "One end got a format that it cannot read.",
        (
            "A web page of a proxy or load balancer came instead of the master's answer.",
            "Agent and master are many versions apart.",
            "`preferred_serialization_format` is one that the other end lacks.",
        ),
        "On the node run `puppet config print preferred_serialization_format --section agent; puppet --version`.",
        "Unset it: `puppet config delete preferred_serialization_format --section agent`. If a proxy "
        "answers, correct it.",
        ("S04", "S09", "S15"),
        _W,
    ),
    KnownError(
        (
            "Could not select a functional puppet server from server_list: 'X'",
            "Could not select a functional OpenVox server from server_list: 'X'",
            "Could not select a functional puppet master from server_list: 'X'",
            "Unable to connect to server from server_list setting",
            "Puppet server X is unavailable: X",
        ),
        "No server in the list answers 200 to /status/v1/simple/server.",
        (
            "The servers are starting, and answer 503.",
            "Their names or ports are wrong.",
            "A firewall drops the connections.",
        ),
        "Query each server: " + _STATUS + ".",
        "Start the servers: `systemctl start puppetserver`. Or correct the list: `puppet config set "
        "server_list <name>:8140,<name>:8140 --section agent`.",
        ("S21", "T18"),
        _W,
    ),
    KnownError(
        ("No more routes to X",),
        "The agent has no further server to try for this service (puppet, ca, report or fileserver). The line "
        "before it names the reason.",
        (
            "The server does not run, or cannot be reached.",
            "TLS with it failed.",
        ),
        _SERVER + " Then try " + _STATUS + ".",
        "Explain the line before it.",
        ("T18", "T19", "T20"),
        _C,
    ),
    KnownError(
        (
            "Connection to X failed, trying next route: X",
            "Request to X failed after X seconds: X",
            "Wrapped exception:",
        ),
        "A request failed before there was an answer. What follows names the reason.",
        (
            "The server does not run, or cannot be reached.",
            "TLS with it failed.",
        ),
        _SERVER + " Then try " + _STATUS + ".",
        "Explain what follows.",
        ("T18", "T19", "T20"),
        _C,
        frame=True,
    ),
    KnownError(
        (
            "Proxy Authentication Required",
            "Error 407",
            "Failed to connect via proxy",
        ),
        "The agent goes through a web proxy, which wants a password.",
        ("`http_proxy_host` or the environment variable https_proxy is set for the agent.",),
        "On the node run `puppet config print http_proxy_host http_proxy_port no_proxy --section agent; "
        "env | grep -i proxy`.",
        "Exclude the server: `puppet config set no_proxy {host} --section agent`.",
        ("S12",),
        _C,
    ),
)
