"""The lab's agent against the lab's master, without a proxy between them."""

from __future__ import annotations

import gzip
import hashlib
import json
import stat
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import pytest

from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab import FAULTS, HEALTHY, Lab
from inspector.lab.ca import LabCA
from inspector.model import Exchange, Leg, Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDED = "recorded.example"
PLUGIN, MOTD, TREE = b"Facter.add(:x) {}\n", b"hello\n", b"leaf\n"


def answer(method: str, target: str, document: object, status: int = 200, kind: str = "json") -> Exchange:
    """A recorded exchange; JSON is gzipped and chunked as puppetserver sends it, files are neither."""
    if isinstance(document, bytes):
        headers = [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(document)))]
        body = document
    else:
        headers = [("Content-Type", "application/json;charset=utf-8"), ("Content-Encoding", "gzip")]
        headers += [("Date", "Sat, 21 Nov 2026 09:06:39 GMT"), ("Transfer-Encoding", "chunked")]
        body = gzip.compress(json.dumps(document).encode())
    headers.insert(1, ("X-Puppet-Version", "7.23.0"))
    return Exchange(
        agent=Leg(id="1", side="agent"),
        request=Request(method=method, target=target),
        response=Response(status=status, headers=tuple(headers), body=body),
    )


def metadata(content: bytes | None, relative_path: str | None = None) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest() if content is not None else ""
    checksum = {"type": "sha256", "value": f"{{sha256}}{digest}"}
    if content is None:
        checksum = {"type": "ctime", "value": "{ctime}2026-11-21 08:25:37 +0000"}
    kind = "directory" if content is None else "file"
    return {"path": "/srv", "relative_path": relative_path, "type": kind, "checksum": checksum}


def resource(type_: str, title: str, **parameters: Any) -> dict[str, Any]:
    return {"type": type_, "title": title, "kind": "compilable_type", "parameters": parameters}


CATALOG = {
    "name": RECORDED,
    "version": 1,
    "catalog_uuid": "c0ffee",
    "environment": "production",
    "resources": [
        {"type": "Class", "title": "main", "kind": "unknown"},
        resource("Filebucket", "main", path=False),
        resource("File", f"/etc/{RECORDED}", content="x"),
        resource("File", "/etc/motd", source=["puppet:///modules/m/no", "puppet:///modules/m/a b"], backup="main"),
        resource("File", "/etc/tree", source="puppet:///modules/m/tree", recurse=True, backup="main"),
    ],
}
V3 = "/puppet/v3"
ANSWERS = [
    answer("GET", f"{V3}/node/{RECORDED}?environment=x", {"name": RECORDED, "environment": "production"}),
    answer("GET", f"{V3}/file_metadatas/plugins?recurse=false", [metadata(None, ".")]),
    answer("GET", f"{V3}/file_metadatas/pluginfacts?recurse=true", []),
    answer("GET", f"{V3}/file_metadatas/plugins?recurse=true", [metadata(None, "."), metadata(PLUGIN, "x.rb")]),
    answer("GET", f"{V3}/file_content/plugins/x.rb", PLUGIN),
    answer("POST", f"{V3}/catalog/{RECORDED}", CATALOG),
    answer("GET", f"{V3}/file_metadata/modules/m/a%20b", metadata(MOTD)),
    answer("GET", f"{V3}/file_content/modules/m/a%20b", MOTD),
    answer("GET", f"{V3}/file_metadatas/modules/m/tree?recurse=true", [metadata(TREE, "t")]),
    answer("GET", f"{V3}/file_content/modules/m/tree/t", TREE),
]
FIRST_RUN = [
    *["node", "plugins?recurse=false", "pluginfacts?recurse=true", "plugins?recurse=true", "plugins/x.rb"],
    *["catalog", "m/no?", "m/a%20b?", "m/a%20b?", "m/tree?recurse=true", "tree/t?", "report"],
]
SECOND_RUN = [
    *["plugins?recurse=false", "pluginfacts?recurse=true", "plugins?recurse=true"],
    *["catalog", "m/no?", "m/a%20b?", "m/tree?recurse=true", "report"],
]


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(answers=ANSWERS) as lab:
        yield lab
    assert [t.name for t in threading.enumerate() if t.name.startswith(("lab-", "Thread-"))] == []


def requests(lab: Lab, *, authenticated: bool) -> list[str]:
    return [
        f"{r.request.method} {r.request.target}"
        for r in lab.master.received
        if (r.certname is not None) == authenticated
    ]


def test_a_new_agent_waits_is_signed_and_runs_twice(lab: Lab) -> None:
    first, second = HEALTHY.play(lab)
    assert (first.status, second.status) == (2, 0), first.log + second.log
    ca, csr, cert = "GET /puppet-ca/v1/certificate/ca", "PUT /puppet-ca/v1/certificate_request/", "certificate/web1"
    anonymous = requests(lab, authenticated=False)
    assert anonymous[:2] == [ca, "GET /puppet-ca/v1/certificate_revocation_list/ca"]
    assert [csr in r or cert in r for r in anonymous[2:]] == [True] * 6
    run = requests(lab, authenticated=True)
    assert len(run) == len(FIRST_RUN + SECOND_RUN)
    for got, expected in zip(run, FIRST_RUN + SECOND_RUN, strict=True):
        assert expected in got
    identity = lab.identities / "web1.lab.example.pem"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    assert b"PRIVATE KEY" in identity.read_bytes()


def test_the_catalog_is_renamed_asked_for_with_facts_and_reported(lab: Lab) -> None:
    agent = lab.agent("other.example", enrolled=True)
    agent.run()
    posted, report = (
        r.request for r in lab.master.received if r.request.method in ("POST", "PUT") and V3 in r.request.target
    )
    assert [name for name, _ in posted.headers] == [
        *["X-Puppet-Version", "User-Agent", "Accept", "Content-Type"],
        *["Accept-Encoding", "Host", "Content-Length"],
    ]
    assert posted.header("Host") == f"puppet.lab.example:{lab.master_address[1]}"
    form = parse_qs(posted.body.decode())
    assert json.loads(unquote(form["facts"][0]))["values"]["clientcert"] == "other.example"
    document = json.loads(report.body)
    assert document["transaction_uuid"] == form["transaction_uuid"][0]
    assert (document["status"], document["host"], document["report_format"]) == ("changed", "other.example", 12)
    assert document["catalog_uuid"] == "c0ffee"
    assert "File[/etc/other.example]" in document["resource_statuses"]


def test_a_changed_file_is_backed_up_before_it_is_replaced(lab: Lab) -> None:
    agent = lab.agent("a.example", enrolled=True)
    agent.run()
    for local in (agent.directory / "files").iterdir():
        if local.read_bytes() == MOTD:
            local.write_bytes(b"edited by hand")
    lab.master.received.clear()
    for _ in range(2):
        assert agent.run().status in (0, 2)
    bucket = f"file_bucket_file/sha256/{hashlib.sha256(b'edited by hand').hexdigest()}//etc/motd?"
    run = requests(lab, authenticated=True)
    at = next(i for i, r in enumerate(run) if bucket in r)
    assert [r.split()[0] for r in run[at : at + 3]] == ["HEAD", "PUT", "GET"]
    assert "file_content/modules/m/a%20b" in run[at + 2]


def test_another_environment_in_the_catalog_is_followed() -> None:
    staging = answer("POST", f"{V3}/catalog/{RECORDED}", CATALOG | {"environment": "staging", "resources": []})
    with Lab(answers=[staging, *ANSWERS]) as lab:
        assert lab.agent("a.example", enrolled=True).run().status == 0
        targets = [r.request.target for r in lab.master.received]
    catalogs = [t for t in targets if "/catalog/" in t]
    assert [t.rpartition("=")[2] for t in catalogs] == ["production", "staging"]
    assert any("plugins?recurse=true" in t and "staging" in t for t in targets)


STATUSES = {
    "expired-crl": [1],
    "missing-crl": [1],
    "incomplete-crl": [1],
    "no-crl-check": [2],
    "repeated-csr": [1],
    "cloned-certname": [1, 1, 2, 1],
    "lost-key": [2, 1],
    "revoked": [1],
    "wrong-ca": [1],
    "hostname-mismatch": [1],
    "catalog-error": [1],
    "missing-file": [6],
    "no-client-certificate": [1],
}
WORDS = {
    "expired-crl": "CRL has expired",
    "missing-crl": "CRL is missing from the server",
    "incomplete-crl": "unable to get certificate CRL",
    "repeated-csr": "not been signed",
    "cloned-certname": "does not match its private key",
    "lost-key": "does not match its private key",
    "revoked": "CERTIFICATE_REVOKED",
    "wrong-ca": "self-signed certificate",
    "hostname-mismatch": "Hostname mismatch",
    "catalog-error": "Error 500 on SERVER: Server Error: Evaluation Error",
    "missing-file": "Could not retrieve information from environment production source(s)",
    "no-client-certificate": "Forbidden request: /puppet/v3/catalog/web1.lab.example (method :post). "
    "Please see the server logs for details.",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_the_agents_run_as_it_should(name: str, lab: Lab) -> None:
    results = FAULTS[name].play(lab)
    assert [r.status for r in results] == STATUSES[name]
    assert WORDS.get(name, "") in "\n".join(results[-1].log)
    assert FAULTS[name].description.endswith(".")


def test_a_name_has_one_state_and_the_ca_says_which() -> None:
    ca, key = LabCA("puppet"), pki.new_key()
    csr = pki.pem(pki.make_csr("n.example", key))
    again = "n.example already has a {} certificate; ignoring certificate request"
    assert ca.state("n.example") is None
    assert ca.submit("n.example", csr) == (200, "")
    assert ca.submit("n.example", csr) == (400, again.format("requested"))
    assert pki.certname_of(ca.sign("n.example")) == "n.example"
    assert ca.submit("n.example", csr) == (400, again.format("signed"))
    ca.revoke("n.example")
    assert ca.submit("n.example", csr) == (400, again.format("revoked"))
    ca.clean("n.example")
    assert ca.submit("n.example", csr) == (200, "")
    assert [c.serial_number for c in ca.inventory] == [3]
    with pytest.raises(InspectorError, match="without a certificate request"):
        ca.sign("nobody")


@pytest.mark.parametrize(
    ("asked", "name", "status", "text"),
    [
        ("a.example", "b.example", 400, 'Instance name "b.example" does not match requested key "a.example"'),
        ("A.example", "A.example", 400, "Certificate names must be lower case."),
        ("*.example", "*.example", 400, "Subject contains a wildcard, which is not allowed: *.example"),
        ("-a.example", "-a.example", 400, "Subject hostname format is invalid"),
    ],
)
def test_a_bad_subject_is_refused_in_puppetservers_words(asked: str, name: str, status: int, text: str) -> None:
    assert LabCA("puppet").submit(asked, pki.pem(pki.make_csr(name, pki.new_key()))) == (status, text)


def test_autosigning_refuses_alt_names_and_keeps_the_request() -> None:
    ca = LabCA("puppet", autosign=True)
    status, text = ca.submit("a.example", pki.pem(pki.make_csr("a.example", pki.new_key(), ["b.example"])))
    assert status == 400
    assert text.startswith(
        "CSR 'a.example' contains extra subject alternative names (DNS:a.example, DNS:b.example), which are "
        "disallowed. To allow subject alternative names, set allow-subject-alt-names to true in your ca.conf"
    )
    assert ca.state("a.example") == "requested"
    assert ca.submit("c.example", b"garbage")[0] == 500


def test_a_master_may_take_the_identity_from_headers() -> None:
    with Lab(answers=ANSWERS, trust_headers=True) as lab:
        output = (("X-Client-Verify", "SUCCESS"), ("X-Client-DN", "CN=a.example"))
        node = Request(target=f"{V3}/node/a.example?environment=production", headers=output)
        assert lab.master.answer(node, None).status == 200
        assert lab.master.answer(Request(target=node.target), "a.example").status == 403


def test_private_things_are_private(tmp_path: Path) -> None:
    with Lab(tmp_path / "lab") as lab:
        lab.agent("a.example", enrolled=True)
        lab.agent("b.example").run()
    for path in (tmp_path / "lab").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
            assert mode == 0o600, path
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, path
    assert (tmp_path / "lab" / "ca" / "ca_crl.pem").exists()
