"""Copied as curl: a shell makes of it the same request again, whatever was in it, and no secret is in it."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.formats import curl
from inspector.host import pki
from inspector.model import Exchange, Leg, Request
from inspector.text import clean
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "[bold]x[/] \x1b[2J $(touch pwned) `id` \"'\\ !! *"


def exchange(request: Request, name: str = "node1.example") -> Exchange:
    certificate = pki.sign(pki.make_ca("CA"), pki.new_key().public_key(), name).public_bytes(Encoding.DER)
    return Exchange(Leg("a", "agent", peer_chain=(certificate,)), request, seq=12)


def arguments(command: str, folder: Path, **variables: str) -> list[str]:
    """What curl would be given by a shell."""
    output = 'curl() { printf "%s\\0" "$@"; }\nputs() { :; }\npuppet() { echo /ssl; }\n'
    done = subprocess.run(
        ["/bin/bash", "-c", output + command],
        capture_output=True,
        check=True,
        cwd=folder,
        env={"PATH": "/bin"} | variables,
    )
    return [word.decode("latin-1") for word in done.stdout.split(b"\0")[:-1]]


def after(words: list[str], option: str) -> list[str]:
    return [following for word, following in itertools.pairwise(words) if word == option]


def test_a_plain_request_reads_well() -> None:
    request = Request(
        (("Host", "puppet:8140"), ("Accept", "application/json"), ("Accept-Encoding", "gzip"), ("Connection", "close"),
         ("X-Puppet-Version", "8.28.1")),
        target="/puppet/v3/node/node1.example?environment=production&a=[1]",
    )  # fmt: skip
    assert curl.command(exchange(request)) == (
        'SSLDIR="$(puppet config print ssldir)"\n'
        'curl --globoff --path-as-is --cert "$SSLDIR"/certs/node1.example.pem'
        ' --key "$SSLDIR"/private_keys/node1.example.pem --cacert "$SSLDIR"/certs/ca.pem --compressed'
        " --header 'Accept: application/json' --header 'X-Puppet-Version: 8.28.1'"
        " https://puppet:8140'/puppet/v3/node/node1.example?environment=production&a=[1]'"
    )


def test_without_a_certificate_none_is_named() -> None:
    output = curl.command(Exchange(Leg("a", "agent"), Request((("Host", "puppet"),))))
    assert "--cert " not in output
    assert "--key" not in output
    assert output.endswith('--cacert "$SSLDIR"/certs/ca.pem https://puppet/')


def test_hostile_values_stay_words(tmp_path: Path) -> None:
    request = Request(
        (("Host", "x; rm -rf $HOME"), ("X-Evil", HOSTILE), ("@file", "x"), ("X-Split", "a\r\nb: c"), ("X-Empty", ""),
         ("X-Latin", "\xe9")),
        body=f"@{HOSTILE}\n".encode(), method="PUT", target=f"/a/../{HOSTILE}#frag",
    )  # fmt: skip
    output = curl.command(exchange(request, "node1'; id; '.example"))
    assert all(clean(line) == line for line in output.split("\n"))
    words = arguments(output, tmp_path, HOST="puppet:8140")
    assert not (tmp_path / "pwned").exists()
    assert after(words, "--header") == [f"X-Evil: {HOSTILE}", "X-Split: a  b: c", "X-Empty;", "X-Latin: \xe9",
                                        "Content-Type:"]  # fmt: skip
    assert after(words, "--data-raw") == [f"@{HOSTILE}\n"]
    assert after(words, "--cert") == ["/ssl/certs/node1'; id; '.example.pem"]
    assert after(words, "--request") == ["PUT"]
    (target,) = after(words, "--request-target")
    assert target.startswith("/a/../[bold]x[/]%20%1B[2J%20$(touch%20pwned)")
    assert words[-1] == "https://puppet:8140/"


@settings(max_examples=60)
@given(data=st.binary(max_size=60).filter(lambda data: b"\0" not in data))
def test_any_bytes_are_one_word(data: bytes) -> None:
    word = curl.quoted(data)
    assert clean(word) == word
    done = subprocess.run(["/bin/bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout == data


def test_secrets_are_asked_for(tmp_path: Path) -> None:
    request = Request((("Host", "puppet"), ("Authorization", "Basic c2VjcmV0"), ("cookie", "secret"),
                       ("X-Authentication", "secret")))  # fmt: skip
    output = curl.command(exchange(request))
    assert "c2VjcmV0" not in output
    assert "secret" not in output
    with pytest.raises(subprocess.CalledProcessError) as caught:
        arguments(output, tmp_path)
    assert b"AUTHORIZATION" in caught.value.stderr
    words = arguments(output, tmp_path, AUTHORIZATION="Basic x y", COOKIE="c", X_AUTHENTICATION="t")
    assert after(words, "--header") == ["authorization: Basic x y", "cookie: c", "x-authentication: t"]


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        (Request(method="PUT", target="/puppet-ca/v1/certificate_request/a", body=b"-----BEGIN"), "CSR of record 12"),
        (Request(method="PUT", target="/x", body=b"-----BEGIN EC PRIVATE KEY-----"), "body of record 12"),
        (Request((("Content-Encoding", "gzip"),), b"\x1f\x8b", method="PUT", target="/x"), "body of record 12"),
        (Request(method="PUT", target="/x", body=b"x" * 3000), "body of record 12"),
        (Request(method="PUT", target="/x", body=b"a\0b"), "body of record 12"),
        (Request(method="PUT", target="/x", body=b"\xff"), "body of record 12"),
        (Request(method="PUT", target="/x", body=b"cut", lost=5), "body of record 12"),
    ],
)
def test_a_body_that_can_not_stand_there_is_a_file(request_: Request, what: str, tmp_path: Path) -> None:
    request_ = dataclasses.replace(request_, headers=(("Host", "puppet"), *request_.headers))
    output = curl.command(exchange(request_))
    assert what in output
    assert "BEGIN" not in output
    assert after(arguments(output, tmp_path, BODY="my body"), "--data-binary") == ["@my body"]


def test_every_sample_is_a_command(tmp_path: Path) -> None:
    count = 0
    for record in (record for sample in SAMPLES for record in records_of(sample)):
        if isinstance(record, Exchange):
            output = curl.command(record)
            assert clean(output.replace("\n", "", 1)) == output.replace("\n", "", 1)
            assert arguments(output, tmp_path, BODY="b")[-1].startswith("https://")
            count += 1
    assert count > 20


# -- against a server -------------------------------------------------------------------------------------


class _Echo(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.received.append((self.command, self.path, dict(self.headers.items()), body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815 - the server's own names

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[tuple[HTTPServer, Path]]:
    """A master that takes certificates of its CA only, and an agent's ssldir."""
    ca, key, mine = pki.make_ca("CA"), pki.new_key(), pki.new_key()
    ssldir = tmp_path / "ssl"
    for folder in ("certs", "private_keys"):
        (ssldir / folder).mkdir(parents=True)
    (ssldir / "certs" / "ca.pem").write_bytes(pki.pem(ca.certificate))
    (ssldir / "certs" / "node1.example.pem").write_bytes(pki.pem(pki.sign(ca, mine.public_key(), "node1.example")))
    (ssldir / "private_keys" / "node1.example.pem").write_bytes(pki.key_pem(mine))
    served = tmp_path / "server.pem"
    served.write_bytes(pki.pem(pki.sign(ca, key.public_key(), "localhost", ["localhost"])) + pki.key_pem(key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served)
    context.load_verify_locations(ssldir / "certs" / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = HTTPServer(("127.0.0.1", 0), _Echo)
    server.received = []  # type: ignore[attr-defined]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server, ssldir
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    "sent",
    [
        Request((("Accept", "application/json"), ("User-Agent", "Puppet/8.28.1 R/3")), target="/a//b/../c?x={1}&y=[2]"),
        Request((("Content-Type", "application/json"),), '{"a": "it\'s näh\\n\t"}'.encode(), method="PUT", target="/x"),
        Request((), b"@/etc/hostname", method="POST", target="/x"),
        Request((), method="HEAD", target="/x"),
    ],
)  # fmt: skip
def test_the_master_gets_the_same_again(sent: Request, echo: tuple[HTTPServer, Path], tmp_path: Path) -> None:
    server, ssldir = echo
    host = ("Host", f"localhost:{server.server_port}")
    output = curl.command(exchange(dataclasses.replace(sent, headers=(host, *sent.headers))))
    output = output.replace("$(puppet config print ssldir)", str(ssldir))
    subprocess.run(
        ["/bin/bash", "-c", output.replace("curl ", "curl -sS --noproxy '*' ", 1)],
        check=True, capture_output=True, cwd=tmp_path, timeout=300, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    ((method, target, headers, body),) = server.received  # type: ignore[attr-defined]
    assert (method, target, body) == (sent.method, sent.target, sent.body)
    assert dict(sent.headers).items() <= headers.items()
    assert ("Content-Type" in headers) is ("Content-Type" in dict(sent.headers))


def test_what_is_secret_in_a_body_or_a_url_is_not_copied() -> None:
    request = Request(
        (("Host", "puppet"), ("X-Vault-Token", "hunter2-horse"), ("Content-Type", "application/json")),
        b'{"db_password": "hunter2-horse"}',
        method="POST",
        target="/puppet/v3/compile?token=hunter2-horse",
    )
    output = curl.command(exchange(request))
    assert "hunter2" not in output
    assert "${X_VAULT_TOKEN:?}" in output
    assert "set it to a file with the body of record 12" in output
    assert "token=MASKED" in output
