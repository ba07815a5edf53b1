"""Ways in which an agent or the proxy does not reach the master."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from inspector.host import pki
from tests.e2e.wire import ScriptedMaster, Service, reset
from tests.real.faults.engine import Fault, repeats
from tests.real.machine import end, free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.real.faults.engine import Scene

KIND, LOAD, AGENT = "connection", "load", "agent's own"


def _stopped(scene: Scene) -> None:
    scene.master.stop()
    scene.later(scene.master.ensure_running)


def _frozen(scene: Scene) -> None:
    """The master's process is stopped: the kernel still accepts its connections."""
    scene.configure(http_read_timeout="61s", http_connect_timeout="61s")
    scene.master.signal(signal.SIGSTOP)
    scene.later(scene.master.signal, signal.SIGCONT)


def _closed_port(scene: Scene) -> None:
    scene.behind(f"{scene.master.name}:{free_port(scene.master.host)}")


def _unknown_name(scene: Scene) -> None:
    scene.behind("puppet.invalid:8140")


def _full(scene: Scene) -> None:
    """A queue of connections that nobody accepts, and that is full: the next one gets no answer, as from a firewall."""
    scene.configure(http_connect_timeout="8s", http_read_timeout="8s")
    listener = socket.create_server((scene.master.host, 0), backlog=0)
    address = listener.getsockname()
    waiting = []
    for _ in range(4):
        waiting.append(socket.socket())
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(address)
    for held in (listener, *waiting):
        scene.later(held.close)
    scene.behind(f"{scene.master.name}:{address[1]}")


def _service(scene: Scene, serve: Callable[[socket.socket], None]) -> None:
    _behind(scene, Service(serve, scene.master.host))


def _behind(scene: Scene, service: Service) -> None:
    service.__enter__()
    scene.later(service.__exit__)
    scene.behind(f"{scene.master.name}:{service.address[1]}")


def _plain(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nThis is an HTTPS port")


def _resets(connection: socket.socket) -> None:
    connection.recv(1000)
    reset(connection)


def _closes(_: socket.socket) -> None:
    pass


def _context(folder: Path, authority: pki.Authority, name: str) -> ssl.SSLContext:
    key = pki.new_key(2048)
    certificate = pki.sign(authority, key.public_key(), name, (name,))
    pki.write_private(folder / "server.pem", pki.key_pem(key) + pki.pem(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context


def _other_ca(scene: Scene) -> None:
    context = _context(scene.directory, pki.make_ca("Puppet CA: puppet.elsewhere.example"), scene.master.name)

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(1000)

    _behind(scene, ScriptedMaster(lambda: context, serve, scene.master.host))


def _scripted(serve: Callable[[ssl.SSLSocket], None]) -> Callable[[Scene], None]:
    """A master of the right name and CA, that serves each connection like this, and then closes it."""

    def make(scene: Scene) -> None:
        context = _context(scene.directory, pki.read_authority(scene.master.cadir), scene.master.name)
        _behind(scene, ScriptedMaster(lambda: context, serve, scene.master.host))

    return make


def _lingers(connection: ssl.SSLSocket) -> None:
    """Longer than a refused certificate would take."""
    _drain(connection, 1)
    time.sleep(4)


def _hangs(scene: Scene) -> None:
    """It takes every request, and answers none until the agent gives up, which S23 believes after a minute."""
    scene.configure(http_read_timeout="61s")
    _scripted(lambda connection: _drain(connection, 10**6))(scene)


def _drain(connection: socket.socket, most: int) -> None:
    connection.settimeout(None)
    for _ in range(most):
        if not connection.recv(65536):
            break


def _killed(scene: Scene) -> None:
    """The master is killed while it compiles the catalog; the next compilation is as quick as ever."""
    begun, script = scene.master.confdir / "var/begun", scene.master.confdir / "slow"
    scene.edit(script, f"#!/bin/sh\n[ -e {begun} ] || {{ touch {begun}; sleep 60; }}\n")
    script.chmod(0o755)
    scene.later(begun.unlink, True)
    scene.manage(f"generate('{script}')")

    def kill() -> None:
        while not begun.exists() and not over.wait(0.1):
            pass
        if not over.is_set():
            scene.master.signal(signal.SIGKILL)

    over, thread = threading.Event(), threading.Thread(target=kill)
    thread.start()
    scene.later(scene.master.ensure_running)
    scene.later(thread.join)
    scene.later(over.set)


# -- a relay in front of the master ------------------------------------------------------------------------


def _relayed(scene: Scene, limit: int) -> None:
    """The real master, until it has sent ``limit`` bytes: then every connection ends, and none is accepted."""
    left, closed = [limit], threading.Event()

    def serve(connection: socket.socket) -> None:
        if closed.is_set():
            reset(connection)
            return
        with socket.create_connection((scene.master.host, scene.master.port)) as upstream:

            def upward() -> None:
                with contextlib.suppress(OSError):
                    while data := connection.recv(65536):
                        upstream.sendall(data)

            thread = threading.Thread(target=upward)
            thread.start()
            with contextlib.suppress(OSError):
                while data := upstream.recv(4096):
                    left[0] -= len(data)
                    if left[0] < 0:
                        closed.set()
                        break
                    connection.sendall(data)
            reset(connection)
            thread.join()

    _service(scene, serve)


def _gone_in_the_middle(scene: Scene) -> None:
    big = random.randbytes(400_000)  # noqa: S311 - what cannot be compressed
    scene.edit(scene.master.environment / "modules/demo/files/big.txt", big)
    scene.manage(f"file {{ '{scene.agent.base}/big.txt': source => 'puppet:///modules/demo/big.txt' }}")
    scene.directly()
    (scene.agent.base / "big.txt").unlink()
    _relayed(scene, 200_000)


# -- a web server -------------------------------------------------------------------------------------------


def _nginx(scene: Scene, inside: str) -> None:
    """nginx with a certificate of the master's name, of the same CA, in the place of the master."""
    folder, port = scene.directory, free_port(scene.master.host)
    _context(folder, pki.read_authority(scene.master.cadir), scene.master.name)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen {scene.master.host}:{port} ssl; ssl_certificate {folder}/server.pem;\n"
        f"ssl_certificate_key {folder}/server.pem; {inside} }} }}\n"
    )
    process = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/nginx.log"])
    scene.later(end, process)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((scene.master.host, port)):
            break
        time.sleep(0.05)
    scene.behind(f"{scene.master.name}:{port}")


def _web_server(scene: Scene) -> None:
    _nginx(scene, f"root {scene.directory};")


def _balancer_without_masters(scene: Scene) -> None:
    nobody = free_port(scene.master.host)
    _nginx(scene, f"location / {{ proxy_pass https://{scene.master.host}:{nobody}; }}")


def _busy(scene: Scene) -> None:
    """7.23 fails at once. A later one repeats each of its four requests a hundred times: it is not to wait between."""
    scene.configure(http_read_timeout="5s", http_connect_timeout="5s")
    seconds = 0 if repeats(scene.agent) else 1
    _nginx(scene, f'location / {{ add_header Retry-After {seconds} always; return 503 "busy"; }}')


def _unavailable(scene: Scene) -> None:
    _nginx(scene, 'location / { default_type text/plain; return 503 "not ready"; }')


# -- the agent's settings -----------------------------------------------------------------------------------


def _dead_web_proxy(scene: Scene) -> None:
    scene.configure(http_proxy_host="127.0.0.1", http_proxy_port=free_port("127.0.0.1"), no_proxy="")


def _wrong_port(scene: Scene) -> None:
    scene.configure(serverport=free_port("127.0.0.1"))


def _dead_servers(scene: Scene) -> None:
    scene.configure(server_list=f"localhost:{free_port('127.0.0.1')}")


def _first_server_dead(scene: Scene) -> None:
    """The agent goes on with the second one."""
    dead = f"localhost:{free_port('127.0.0.1')}"
    scene.configure(server_list=f"{dead},{scene.hosts.road.server}:{scene.port}")


def _agents_unknown_name(scene: Scene) -> None:
    scene.configure(server="puppet.invalid")


def _no_server(scene: Scene) -> None:
    conf = scene.agent.confdir / "puppet.conf"
    scene.edit(conf, re.sub(r"(?m)^server = .*\n", "", conf.read_text()))


FAULTS = (
    Fault(name="the master is stopped", kind=KIND, make=_stopped, restarts=True, cause="T18",
          true=("it does not",)),
    Fault(name="puppet_master has a wrong port", kind=KIND, make=_closed_port, cause="T18",
          corrects="puppet_master"),
    Fault(name="the master's name does not resolve", kind=KIND, make=_unknown_name, cause="T19",
          corrects="puppet_master"),
    Fault(name="there is no route to the master", kind=KIND, cause="T20", corrects="route",
          make=lambda scene: scene.behind("255.255.255.255:8140")),
    Fault(name="a firewall drops what is sent to the master", kind=KIND, make=_full, cause="no connection",
          through="T20", looks=("live",), rests=11, corrects="firewall"),
    Fault(name="a server that speaks no TLS", kind="TLS", make=lambda scene: _service(scene, _plain), cause="T21",
          corrects="puppet_master"),
    Fault(name="a TLS server of another CA", kind="TLS", make=_other_ca, cause="T08", corrects="puppet_master"),
    Fault(name="the connection is reset in the handshake", kind="TLS", make=lambda scene: _service(scene, _resets),
          cause="T22", corrects="firewall"),
    Fault(name="the connection is closed at once", kind="TLS", make=lambda scene: _service(scene, _closes),
          cause="T22", corrects="firewall"),
    Fault(name="each connection is closed after the handshake", kind=KIND, make=_scripted(_closes), cause="T28",
          corrects="load balancer"),
    Fault(name="autosigned, and each connection is closed after the handshake", kind=KIND, make=_scripted(_closes),
          agent="fresh", cause="T28", corrects="load balancer"),
    Fault(name="each request is closed without an answer", kind=KIND, make=_scripted(lambda held: _drain(held, 1)),
          cause="T28", corrects="load balancer"),
    Fault(name="each request is closed after four seconds", kind=KIND, make=_scripted(_lingers), cause="T28",
          corrects="load balancer"),
    Fault(name="the master is killed while it compiles", kind=KIND, make=_killed, restarts=True, cause="T28",
          once=True, true=("it does not",)),
    Fault(name="the master answers nothing until the agent gives up", kind=KIND, make=_hangs, cause="S23",
          rests=11, corrects="restart"),
    Fault(name="the master's process is frozen", kind=KIND, make=_frozen, restarts=True, rests=11, cause="S23"),
    Fault(name="the master goes away in the middle of a file", kind=KIND, make=_gone_in_the_middle, cause="S14",
          once=True, corrects="restarted", ends=(1, 4, 6)),
    Fault(name="a web server in the place of the master", kind=KIND, make=_web_server, cause="S15",
          corrects="which server", needs="nginx"),
    Fault(name="a load balancer without a master behind it", kind=KIND, make=_balancer_without_masters, cause="S15",
          corrects="load balancer", needs="nginx"),
    Fault(name="503 with Retry-After", kind=LOAD, make=_busy, cause="S24", repeated="S05", corrects="load balancer",
          needs="nginx"),
    Fault(name="503 without Retry-After", kind=LOAD, make=_unavailable, cause="S06",
          corrects="load balancer", needs="nginx"),
    Fault(name="the agent's http_proxy is dead", kind=AGENT, make=_dead_web_proxy, cause="web proxy",
          looks=("explain",), true=("another address than the server's",)),
    Fault(name="the agent has a wrong serverport", kind=AGENT, make=_wrong_port,
          cause="`server` or its port is wrong", looks=("explain",), true=("port is wrong",),
          fill=(("<right port>", "{port}"),)),
    Fault(name="the agent's server does not resolve", kind=AGENT, make=_agents_unknown_name,
          cause="cannot resolve the server's name", looks=("explain",), true=("name is wrong",),
          fill=(("<name>", "{server}"),)),
    Fault(name="the agent names no server", kind=AGENT, make=_no_server, cause="takes no name by itself", since=9,
          looks=("explain",), true=("another name",), fill=(("<name>", "{server}"),)),
    Fault(name="no server of server_list answers", kind=AGENT, make=_dead_servers,
          cause="No process listens on that port", looks=("explain",), true=("server_list's",),
          fill=(("<name>:8140,<name>:8140", "{server}:{port}"),)),
    Fault(name="the first server of server_list is down", kind=AGENT, make=_first_server_dead, cause="",
          through="T18", ends=(0, 2)),
)  # fmt: skip
