"""``puppet-inspector auth``: its output, its exit status, its mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.host import pki
from tests.support import auth_confs, json_output
from tests.support.captures import save
from tests.support.conversations import CA, Agent, together
from tests.support.users import as_nobody

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "auth.conf"
    path.write_text(auth_confs.USUAL)
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """One run; its node request and the facts are refused by the usual rules."""
    agent = Agent().ask("POST", "/puppet/v3/catalog/a.example", own=True)
    return save(tmp_path / "capture.sqlite", *together(agent.ask("PUT", "/puppet/v3/report/a.example", own=True)))


def test_recorded_requests(run: Run, conf: Path, capture: Path) -> None:
    status, out, err = run("auth", capture, "--auth-conf", conf)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"2 requests: 2 allowed, by 2 of the 6 rules of {conf}"


def test_what_is_denied_is_the_exit_status(run: Run, conf: Path, capture: Path) -> None:
    conf.write_text(auth_confs.USUAL.replace('"$1"', '"b.example"', 1))
    status, out, _ = run("auth", capture, "--auth-conf", conf)
    assert status == 1
    assert 'denied by "own catalog" (sort-order 500, auth.conf:4): no entry is for a.example' in out
    assert "record 1" in out


def test_what_would_change(run: Run, conf: Path, capture: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.conf"
    new.write_text(auth_confs.USUAL.replace('"$1"', '"b.example"', 1))
    status, out, _ = run("auth", capture, "--auth-conf", conf, "--new", new)
    assert status == 1
    assert out.startswith(f"1 of 2 requests, of 1 node, would be answered otherwise with {new}\n")
    status, out, _ = run("auth", capture, "--auth-conf", conf, "--new", conf)
    assert (status, out) == (0, f"nothing changes for 2 requests with {conf}\n")


@pytest.mark.parametrize(
    ("request_", "more", "status", "begins"),
    [
        ("GET /puppet/v3/catalog/a", ["--certname", "a"], 0, 'allowed by "own catalog" '),
        ("GET /puppet/v3/catalog/b", ["--certname", "a"], 1, 'denied by "own catalog" '),
        ("GET /puppet/v3/catalog/a", [], 1, 'denied by "own catalog" '),
        ("get  /puppet-ca/v1/certificate/ca", [], 0, 'allowed by "bootstrap" '),
        ("PUT /puppet-ca/v1/clean", ["--certname", "a"], 1, 'not decided here because of "clean" '),
        ("GET /puppet/v3/../x", [], 0, "answered without auth.conf: the path has `.` or `..`: 400"),
        ("GET /puppet/v3/catalog/é", ["--certname", "é"], 1, "answered with an error by "),
    ],
)
def test_one_request(run: Run, conf: Path, request_: str, more: list[str], status: int, begins: str) -> None:
    found, out, err = run("auth", "--auth-conf", conf, "--request", request_, *more)
    assert (found, err) == (status, "")
    assert out.startswith(begins)


def test_a_certificate_has_extensions_and_names(run: Run, conf: Path, tmp_path: Path) -> None:
    made = pki.sign(CA, pki.new_key().public_key(), "a.example", ("a.example", "b.example"))
    pem = tmp_path / "a.pem"
    pem.write_bytes(made.public_bytes(Encoding.PEM))
    asked = ["auth", "--auth-conf", conf, "--cert", pem, "--request"]
    assert run(*asked, "PUT /puppet-ca/v1/clean")[1].startswith('denied by "clean" ')
    # As puppetserver does it: a certificate's other names count as well.
    assert run(*asked, "GET /puppet/v3/catalog/b.example")[0] == 0
    status, _, err = run(*asked, "GET /x", "--certname", "c.example")
    assert status == 2
    assert "is for 'a.example', not for 'c.example'." in err


def test_json(run: Run, conf: Path, capture: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.conf"
    new.write_text(auth_confs.USUAL.replace('"$1"', '"b.example"', 1))
    documents = [
        json_output.valid("auth", run("auth", *words, "--auth-conf", conf, "--json")[1])
        for words in (
            [capture],
            [capture, "--new", new],
            ["--request", "GET /x"],
            ["--request", "GET /puppet/v3/../x", "--new", new],
        )
    ]
    decided, changed, asked, _ = documents
    assert [group["decision"]["verdict"] for group in decided["groups"]] == ["allowed", "allowed"]
    assert [group["then"]["verdict"] for group in changed["groups"]] == ["denied"]
    assert asked["groups"][0]["decision"]["rule"] is None


def test_a_key_that_puppetserver_ignores_is_a_warning(run: Run, conf: Path) -> None:
    conf.write_text(auth_confs.USUAL.replace('name: "files"', 'name: "files", alow: "x"'))
    status, out, err = run("auth", "--auth-conf", conf, "--request", "GET /puppet-ca/v1/certificate/ca")
    assert (status, out[:7]) == (0, "allowed")
    assert err == (
        f"puppet-inspector: {conf}:20: puppetserver ignores the key 'alow' of the rule 'files'; did you mean 'allow'?\n"
    )


def test_many_warnings_are_counted(run: Run, conf: Path) -> None:
    keys = ", ".join(f"x{number}: 1" for number in range(30))
    conf.write_text(auth_confs.USUAL.replace('name: "files"', f'name: "files", {keys}'))
    _, _, err = run("auth", "--auth-conf", conf, "--request", "GET /x")
    lines = err.splitlines()
    assert (len(lines), lines[-1]) == (21, "puppet-inspector: and 10 more (--json has all)")


BROKEN = [
    ("nonsense", "1: the file ends within an object or a list."),
    ("authorization: {version: 1, rules: [{}]}", "1: a rule has no match-request."),
    ("a: " + "[" * 5000, "1: it is nested deeper than 100 levels."),
    ("path /file\nallow\n", "2: 'allow' is no line of such a file."),
    (auth_confs.USUAL.replace('name: "files"', ""), "16: a rule has no name."),
    (
        auth_confs.USUAL.replace('name: "files"', 'name: "clean"'),
        "28: a rule has the name 'clean', as that of line 16.",
    ),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_file_that_no_master_takes(run: Run, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "auth.conf"
    path.write_text(text)
    for option in ("--auth-conf", "--new"):
        good = tmp_path / "good.conf"
        good.write_text(auth_confs.USUAL)
        words = ["--auth-conf", good, "--new", path] if option == "--new" else ["--auth-conf", path]
        status, out, err = run("auth", "--request", "GET /x", *words)
        assert (status, out) == (2, "")
        first, hint = err.splitlines()
        assert first == f"puppet-inspector: {path}:{message}"
        assert hint.endswith(" does not start with this file.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--request", "/x"], "'/x' is no request."),
        (["--request", "GET x"], "'GET x' is no request."),
        (["--request", "GET /a b"], "'GET /a b' is no request."),
        (["--certname", "a"], "--certname and --cert belong to --request."),
        (["--request", "GET /x", "--cert", "{tmp}/none.pem"], "Cannot read {tmp}/none.pem: No such file or directory."),
        (["--request", "GET /x", "--cert", "{tmp}/auth.conf"], "{tmp}/auth.conf is no certificate: "),
        (["{tmp}/x.sqlite", "--request", "GET /x"], "A capture and --request cannot be used together."),
        (["{tmp}/x.sqlite"], "There is no capture at {tmp}/x.sqlite."),
    ],
)
def test_mistakes(run: Run, conf: Path, tmp_path: Path, words: list[str], message: str) -> None:
    status, out, err = run("auth", "--auth-conf", conf, *(word.replace("{tmp}", str(tmp_path)) for word in words))
    assert (status, out) == (2, "")
    assert err.startswith(f"puppet-inspector: {message.replace('{tmp}', str(tmp_path))}")
    assert len(err.splitlines()) == 2


def test_a_file_that_only_others_may_read(conf: Path) -> None:
    conf.chmod(0o600)
    status, out, err = as_nobody("auth", "--auth-conf", conf, "--request", "GET /x")
    assert (status, out) == (2, "")
    assert err.startswith(f"puppet-inspector: Cannot read {conf}: Permission denied.")


def test_hostile_names_do_not_reach_the_terminal(run: Run, conf: Path) -> None:
    conf.write_text(auth_confs.USUAL.replace("own catalog", r"own \u001b[31mcatalog"))
    _, out, _ = run("auth", "--auth-conf", conf, "--request", "GET /puppet/v3/catalog/%1b%5bm", "--certname", "a")
    assert "\x1b" not in out
    assert r"\x1b[31mcatalog" in out
