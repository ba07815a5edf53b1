"""``puppet-inspector fix``: what is printed, and that nothing is written unasked."""

from __future__ import annotations

import datetime
import shlex
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.lab.ca import LabCA
from tests.support import json_output

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

DAY = datetime.timedelta(days=1)


@pytest.fixture
def ca(tmp_path: Path) -> LabCA:
    """A CA that has revoked a certificate; its CRL ended yesterday."""
    made, now = LabCA("ca.example"), datetime.datetime.now(datetime.UTC)
    made.enrol(tmp_path / "ssl", "web1.example")
    made.revoke("web1.example")
    made.publish_crl(now - 2 * DAY, now - DAY)
    return made


@pytest.fixture
def cadir(ca: LabCA, tmp_path: Path) -> Path:
    ca.write_cadir(tmp_path / "the ca")
    return tmp_path / "the ca"


def test_it_shows_each_crl_and_writes_nothing(run: Run, cadir: Path) -> None:
    before = (cadir / "ca_crl.pem").read_bytes()
    status, out, _ = run("fix", "new-crl", "--cadir", cadir)
    assert status == 0
    assert "  CN=Puppet CA: ca.example: signed anew\n    now:  number 2, " in out
    assert " UTC, 1 revoked; expired\n    then: number 3, " in out
    assert " UTC, 0 revoked; valid\n" in out
    assert (cadir / "ca_crl.pem").read_bytes() == before
    assert len(list(cadir.iterdir())) == 3


def test_the_printed_command_writes_the_file(run: Run, cadir: Path) -> None:
    _, out, _ = run("fix", "new-crl", "--cadir", cadir)
    command = out.splitlines()[-1].removeprefix("Nothing was written. To write it: puppet-inspector ")
    before = (cadir / "ca_crl.pem").read_bytes()
    status, out, _ = run(*shlex.split(command))
    (copy,) = cadir.glob("*Z")
    assert status == 0
    assert out.splitlines()[-1] == f"Written: {cadir / 'ca_crl.pem'}. The old file is {copy}."
    assert copy.read_bytes() == before
    new = x509.load_pem_x509_crl((cadir / "ca_crl.pem").read_bytes())
    assert new.next_update_utc
    assert new.next_update_utc > datetime.datetime.now(datetime.UTC)


def test_a_missing_crl_ends_with_status_1_and_says_where_one_is(run: Run, ca: LabCA, cadir: Path) -> None:
    (cadir / "ca_crl.pem").write_bytes(ca.signing_crl)
    status, out, _ = run("fix", "new-crl", "--cadir", cadir, "--execute")
    assert status == 1
    assert "  CN=Puppet Root CA: " in out
    assert ": missing\n" in out
    assert "There is no usable CRL of CN=Puppet Root CA: " in out
    assert "infra_crl.pem" in out
    (cadir / "agents.pem").write_bytes(ca.crl_bundle)
    status, out, _ = run("fix", "new-crl", "--cadir", cadir, "--add", cadir / "agents.pem")
    assert status == 0
    assert ": added\n" in out
    assert f"--add '{cadir}/agents.pem' --execute" in out


def test_lost_entries_are_announced(run: Run, cadir: Path) -> None:
    (cadir / "ca_crl.pem").unlink()
    status, out, _ = run("fix", "new-crl", "--cadir", cadir, "--execute")
    assert status == 1  # the root's is missing
    assert "No earlier CRL of CN=Puppet CA: ca.example is known." in out
    assert "There was no such file before." in out


@pytest.mark.parametrize("more", [[], ["--execute"]])
def test_json(run: Run, ca: LabCA, cadir: Path, more: list[str]) -> None:
    if not more:
        (cadir / "ca_crl.pem").write_bytes(ca.signing_crl)
    status, out, _ = run("fix", "new-crl", "--cadir", cadir, "--json", *more)
    document = json_output.valid("fix", out)
    assert document["written"] is bool(more)
    assert (document["copy"] is None) is not bool(more)
    assert [entry["action"] for entry in document["crls"]] == ["signed anew", "unchanged" if more else "missing"]
    assert (status, len(document["lacking"])) == ((0, 0) if more else (1, 1))
    assert document["crls"][0]["after"]["number"] == document["crls"][0]["before"]["number"] + 1


def test_names_from_certificates_do_not_reach_the_terminal_raw(run: Run, tmp_path: Path) -> None:
    LabCA("\x1b[31mca").write_cadir(tmp_path)
    _, out, _ = run("fix", "new-crl", "--cadir", tmp_path)
    assert "\x1b" not in out
    assert "\\1B[31mca" in out


@pytest.mark.parametrize(
    "words", [["new-crl", "--cadir", "{tmp}/none"], ["new-crl", "--cadir", "{tmp}"],
              ["new-crl", "--cadir", "{tmp}/the ca", "--add", "{tmp}/none"]]
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_a_hint(run: Run, cadir: Path, words: list[str]) -> None:
    status, out, err = run("fix", *(word.replace("{tmp}", str(cadir.parent)) for word in words))
    assert (status, out, len(err.splitlines())) == (2, "", 2)


def test_the_help_names_what_can_be_fixed(run: Run) -> None:
    status, out, _ = run("fix", "--help")
    assert status == 0
    assert "new-crl: sign the CA's own CRL anew" in out
    assert "example: puppet-inspector fix new-crl --cadir" in out
    assert run("fix")[0] == run("fix", "other", "--cadir", "x")[0] == 2
