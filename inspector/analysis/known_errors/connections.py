"""Messages about the way to the server: names, ports, timeouts, TLS and HTTP."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import Step, advice, group, on_master, on_node

_W, _H, _C = Visible.WIRE, Visible.HANDSHAKE, Visible.CONSEQUENCE

_SERVER = (
    on_node("see which server it uses", "puppet config print server serverport --section agent"),
    on_node(
        "see which port it uses",
        "puppet config print masterport --section agent",
        only_if="it is of version 5 or earlier",
    ),
)
_OTHERS = on_node(
    "see whether another setting names it",
    "puppet config print server_list ca_server ca_port report_server report_port --section agent",
)
"""What else names a server, and counts more than `server`."""
_CA_SERVER = on_node(
    "correct the name of the CA", "puppet config set ca_server <name> --section agent", only_if="it is ca_server's"
)
_SERVER_LIST = on_node(
    "correct the list",
    "puppet config set server_list <name>:8140,<name>:8140 --section agent",
    only_if="it is server_list's",
)
_STATUS = on_node("ask whether the server is ready", "curl -sk https://{host}:8140/status/v1/simple/server")

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
            "The agent's web proxy (http_proxy_host) is down: then the message names that one's address.",
            "A firewall rejects the connection.",
        ),
        (
            on_master("see whether a process listens on {host}", "ss -ltn sport = :8140"),
            on_master("see whether the server runs", "systemctl status puppetserver"),
            *_SERVER,
            _OTHERS,
        ),
        (
            on_master("start the server", "systemctl start puppetserver", only_if="it is stopped"),
            on_node("correct the name", "puppet config set server <name> --section agent", only_if="the name is wrong"),
            _SERVER_LIST,
            _CA_SERVER,
            on_node(
                "correct the port", "puppet config set serverport <port> --section agent", only_if="the port is wrong"
            ),
            on_node(
                "correct the port of the CA",
                "puppet config set ca_port <port> --section agent",
                only_if="it is ca_port's",
            ),
            on_node(
                "use no web proxy",
                "puppet config set http_proxy_host none --section agent",
                only_if="the message names another address than the server's",
            ),
        ),
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
        (
            on_node("see the name that it uses", "puppet config print server --section agent"),
            _OTHERS,
            on_node("look the name up", "getent hosts {host}"),
        ),
        (
            advice("correct DNS or /etc/hosts"),
            on_node("use another name", "puppet config set server <name> --section agent", only_if="the name is wrong"),
            _SERVER_LIST,
            _CA_SERVER,
        ),
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
        (on_node("see whether the port answers", "nc -vz {host} 8140"),),
        (
            advice("open port 8140 on the way, or correct the address"),
            advice("limit the wait with `http_connect_timeout`", only_if="it is too long"),
        ),
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
        (on_node("see the way to the server", "ip route get \"$(getent hosts {host} | cut -d' ' -f1)\""),),
        (
            on_master(
                "open the port",
                "firewall-cmd --permanent --add-port=8140/tcp",
                only_if="its firewall rejects the packets",
            ),
            on_master("apply this", "firewall-cmd --reload", only_if="its firewall rejects the packets"),
            advice("repair the route", only_if="a route or a gateway is missing"),
        ),
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
        (
            on_master(
                "see how long catalogs take",
                "grep 'Compiled catalog for' /var/log/puppetlabs/puppetserver/puppetserver.log | tail",
            ),
        ),
        (
            on_node("find the slow part", "puppet agent -t --profile"),
            advice("raise the timeout only after that"),
        ),
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
        (on_master("see whether the server was restarted", "journalctl -u puppetserver --since -1h | tail -n 50"),),
        (
            advice("raise its timeout above the master's longest compilation", only_if="a load balancer is in between"),
            advice("give it more memory (-Xmx in JAVA_ARGS)", only_if="the server ran out of memory"),
            on_master("restart it", "systemctl restart puppetserver", only_if="the server ran out of memory"),
        ),
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
        (on_node("connect without a certificate", "openssl s_client -connect {host}:8140 </dev/null"),),
        (
            on_node("check its certificate", "{verify}", only_if="it connects without a certificate"),
            group("enrol", only_if="its certificate was revoked"),
            advice("look at the log of the server and of what is in between", only_if="it does not connect"),
        ),
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
        (
            on_node("see what answers", "curl -sv http://{host}:8140/"),
            on_node("see whether it uses a web proxy", "puppet config print http_proxy_host --section agent"),
        ),
        (
            on_node("correct the port", "puppet config set serverport 8140 --section agent", only_if="it is wrong"),
            on_node(
                "correct the port",
                "puppet config set masterport 8140 --section agent",
                only_if="it is wrong, and the agent is of version 5 or earlier",
            ),
            advice("let it pass TLS through", only_if="a load balancer answers"),
        ),
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
        (
            on_node("see its version", "puppet --version"),
            on_master(
                "see whether it lets agents wait",
                "grep -rnE 'max-(queued-requests|retry-delay)' /etc/puppetlabs/puppetserver /etc/puppet/puppetserver",
            ),
        ),
        (
            advice("upgrade the agent to 7.26 or later, or to 8.2 or later"),
            advice(
                "set `max-queued-requests: 0` in the jruby-puppet section of puppetserver.conf; with "
                "`max-retry-delay: 0` agents fail at once, but with a clear message",
                only_if="it cannot be upgraded now",
            ),
            on_master("restart the server", "systemctl restart puppetserver", only_if="it cannot be upgraded now"),
            advice("let it not send Retry-After", only_if="a load balancer answers"),
        ),
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
        (_STATUS,),
        (
            on_node("spread the runs", "puppet config set splay true --section agent"),
            advice("give the server more JRubies (`max-active-instances`)"),
        ),
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
        (_STATUS,),
        (
            advice("wait until it answers `running`"),
            advice("spread the runs (`splay`) or raise `max-active-instances`", only_if="it is only busy"),
        ),
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
        (
            Step(
                "ask the master, on the host of what is in front of it",
                "curl -sk https://<master>:8140/status/v1/simple/server",
            ),
        ),
        (
            on_master("start the server", "systemctl start puppetserver"),
            advice("raise the proxy's timeout above 10 minutes"),
        ),
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
        (
            on_node("see how large the facts are", "puppet facts show | wc -c"),
            on_node("see how large the facts are", "facter -p | wc -c", only_if="it is of version 5 or earlier"),
        ),
        (advice("raise the web server's limit (nginx: `client_max_body_size 20m;`, then `nginx -s reload`)"),),
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
        (*_SERVER,),
        (advice("correct the address, or take the proxy out of the way"),),
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
        (on_node("see where it is sent", "curl -skI https://{host}:8140/puppet/v3/environments"),),
        (advice("let the load balancer pass the requests on instead of redirecting them"),),
        ("S12", "S32"),
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
        (
            on_node(
                "see which format it prefers", "puppet config print preferred_serialization_format --section agent"
            ),
            on_node("see its version", "puppet --version"),
        ),
        (
            on_node(
                "prefer none",
                "puppet config delete preferred_serialization_format --section agent",
                destroys="the setting",
            ),
            advice("correct it", only_if="a proxy answers"),
        ),
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
        (on_node("ask each server whether it is ready", "curl -sk https://{host}:8140/status/v1/simple/server"),),
        (
            on_master("start the servers", "systemctl start puppetserver"),
            on_node(
                "correct the list",
                "puppet config set server_list <name>:8140,<name>:8140 --section agent",
                only_if="it is wrong",
            ),
        ),
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
        (
            *_SERVER,
            _STATUS,
        ),
        (advice("explain the line before it"),),
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
        (
            *_SERVER,
            _STATUS,
        ),
        (advice("explain what follows"),),
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
        (
            on_node("see its settings", "puppet config print http_proxy_host http_proxy_port no_proxy --section agent"),
            on_node("see its environment", "env | grep -i proxy"),
        ),
        (on_node("go to the server directly", "puppet config set no_proxy {host} --section agent"),),
        ("S12",),
        _C,
    ),
)
