"""This host's own agent, as `run` starts it: a program of a few lines, and the settings that it would read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.model import Exchange
from tests.support import places

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.host import pki

NAME = "localhost"
"""This host's certname: a name that resolves to this host everywhere."""

_BEGINNING = f"""#!{sys.executable}
import http.client, os, pathlib, socket, ssl, sys
words = sys.argv[1:]
if "--version" in words:
    sys.exit(print(os.environ.get("VERSION", "7.23.0")))
print("agent", *words, flush=True)

def setting(name, default=None):
    at = [number for number, word in enumerate(words) if word == "--" + name]
    if at:
        return words[at[-1] + 1]
    lines = pathlib.Path(setting("confdir"), "puppet.conf").read_text().splitlines() if name != "confdir" else []
    return next((line.partition(" = ")[2] for line in lines if line.startswith(name + " = ")), default)
"""

_QUESTION = f"""
context.load_cert_chain("SSLDIR/certs/{NAME}.pem", "SSLDIR/private_keys/{NAME}.pem")
try:
    connection.request("GET", "/puppet/v3/file_metadata/modules/x")
    print(connection.getresponse().status, flush=True)
except OSError as error:
    print(error, file=sys.stderr, flush=True)
    sys.exit(1)
sys.exit(int(os.environ.get("STATUS", "0")))
"""
"""Asks one question as an agent would, and exits with STATUS."""

TO_ITS_MASTER = f"""{_BEGINNING}
ports = [int(words[at + 1]) for at, word in enumerate(words) if word in ("--serverport", "--masterport")]
server, port = setting("server"), ports[-1]
context = ssl.create_default_context(cafile="SSLDIR/certs/ca.pem")
connection = http.client.HTTPSConnection(server, port, context=context)
{_QUESTION}"""
"""An agent that knows of no HTTP proxy: it takes the proxy for its master."""

THROUGH_PROXY = f"""{_BEGINNING}
context = ssl.create_default_context(cafile=setting("localcacert"))
context.load_verify_locations(cafile=setting("hostcrl"))
context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
connection = http.client.HTTPSConnection(setting("http_proxy_host"), int(setting("http_proxy_port")), context=context)
connection.set_tunnel(setting("server"), int(setting("serverport")))
{_QUESTION}"""
"""An agent that uses the proxy as its HTTP proxy."""

OF_THE_LAB = f"""{_BEGINNING}
sys.path.insert(0, {str(places.ROOT)!r})
from inspector.host import pki
from inspector.lab.agent import LabAgent
from inspector.lab.wire import ServerAddress

connect = socket.create_connection

def through(address, timeout=None, source=None):
    made = connect((setting("http_proxy_host"), int(setting("http_proxy_port"))), timeout)
    made.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n" % (address[0].encode(), address[1]))
    answer = b""
    while not answer.endswith(b"\\r\\n\\r\\n"):
        answer += made.recv(1) or sys.exit("no answer")
    if b" 200 " not in answer:
        raise OSError(answer.splitlines()[0].decode())
    return made

if setting("http_proxy_host"):
    socket.create_connection = through

class Place(pki.SslDirPaths):
    ca = property(lambda self: pathlib.Path(setting("localcacert") or self.path / "certs" / "ca.pem"))
    crl = property(lambda self: pathlib.Path(setting("hostcrl") or self.path / "crl.pem"))

server = setting("server"), int(setting("serverport"))
agent = LabAgent("{NAME}", pathlib.Path(os.environ["STATE"]), ServerAddress(server[0], server))
agent.place = Place(pathlib.Path("SSLDIR"), "{NAME}")
agent.place.certificate.parent.mkdir(parents=True, exist_ok=True)
result = agent.run()
print(*result.log, sep="\\n", flush=True)
sys.exit(result.status)
"""
"""The lab's agent with all its requests; STATE is its directory."""


def configure(confdir: Path, place: pki.SslDirPaths, master: tuple[str, int], more: str = "") -> Path:
    """Write a puppet.conf; return its directory."""
    confdir.mkdir(exist_ok=True)
    text = f"[main]\nssldir = {place.path}\ncertname = {NAME}\nserver = {NAME}\nserverport = {master[1]}\n{more}"
    (confdir / "puppet.conf").write_text(text)
    return confdir


def install(folder: Path, text: str, place: pki.SslDirPaths) -> Path:
    """Install a command ``puppet`` for this ssldir."""
    program = folder / "bin" / "puppet"
    program.parent.mkdir(exist_ok=True)
    program.write_text(text.replace("SSLDIR", str(place.path)))
    program.chmod(0o755)
    return program


def exchanges(capture: Path) -> list[Exchange]:
    with Capture.open(capture) as records:
        return [record for record in records.records() if isinstance(record, Exchange)]
