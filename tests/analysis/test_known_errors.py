"""Error messages as agents print them, and what they are found to be."""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import Any

import pytest

from inspector import installation
from inspector.analysis import known_errors
from inspector.cli.main import main
from inspector.errors import InspectorError
from inspector.explain import reference
from inspector.rules import all_rules
from inspector.rules.fixes import BLANK
from inspector.rules.puppet_commands import expanded
from tests.support import messages
from tests.support.messages import MESSAGES


def explain(what: str) -> dict[str, Any]:
    return reference.explain(what)


DELETES = re.compile(
    r"\brm -|-delete\b|\bca clean\b|\bcert clean\b|\bssl clean\b|\brevoke\b|\bconfig delete\b|--force|ssl-setup"
)
"""What deletes or revokes in a command."""


def test_each_message_finds_itself_and_names_rules_that_exist() -> None:
    ids = {rule.id for rule in all_rules()}
    for known in MESSAGES:
        assert set(known.rules) <= ids, known.texts
        for text in known.texts:
            printed = re.sub(r"\bX\b", "other.example", re.sub("NAME|HOST", "web1.example", text))
            found = known_errors.find(f"Error: {printed}")
            assert found, text
            assert found.known is known, text
            assert found.name == "web1.example" or "NAME" not in text
            assert found.host == "web1.example" or "HOST" not in text
        output = explain(f"Error: {printed}")
        assert output["message"] == f"Error: {printed}"
        assert output["meaning"] == known.meaning
        advice = output["check"] + output["remedy"]
        assert not re.search(r"\{(?:name|host|list|sign|clean|enrol|reset|verify)", advice), known.texts
        assert all(output.values()), known.texts


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "hello there",
        "the server is in the cellar",
        "error error error",
    ],
)
def test_what_is_none_of_them_is_not_found(pasted: str) -> None:
    assert known_errors.find(pasted) is None


@pytest.mark.parametrize(
    "pasted",
    [
        "Could not request certificate: getaddrinfo: Name or service not known",
        "Failed to open TCP connection to p.example:8140 (getaddrinfo: Name or service not known)",
        "getaddrinfo: Temporary failure in name resolution",
    ],
)
def test_a_name_that_is_not_resolved_is_no_closed_port(pasted: str) -> None:
    output = explain(pasted)
    assert "DNS" in output["meaning"]
    assert "getent hosts" in output["check"]


@pytest.mark.parametrize(
    ("pasted", "name", "host"),
    [
        ("Error: Certificate 'CN=db7.example' is revoked", "db7.example", None),
        ("certificate verify failed [certificate revoked for /CN=db7.example]", "db7.example", None),
        ("you might still need to sign this agent's certificate (db7.example).", "db7.example", None),
        ("Request to https://p.example:8140/puppet timed out connect operation after 120.2 seconds", None, "p.example"),
        ("Server hostname 'p.example' did not match server certificate; expected one of a", None, "p.example"),
        ("The certificate 'CN=Puppet CA: p.example' has expired, verify time is synchronized", None, None),
    ],
)  # fmt: skip
def test_names_are_taken_from_what_was_pasted(pasted: str, name: str | None, host: str | None) -> None:
    found = known_errors.find(pasted)
    assert found is not None
    assert (found.name, found.host) == (name, host)


def test_the_pasted_name_gets_into_the_commands_if_it_is_plain() -> None:
    output = explain("db7 already has a signed certificate; ignoring certificate request")
    assert "`puppetserver ca clean --certname db7`" in output["remedy"]
    output = explain("$(reboot) already has a signed certificate; ignoring certificate request")
    assert "`puppetserver ca clean --certname <certname>`" in output["remedy"]
    assert "reboot" not in output["remedy"]
    output = explain("Failed to open TCP connection to p.example:8140 (Connection refused - connect(2) for")
    assert output["check"].startswith("1. On the master, see whether a process listens on p.example: `ss ")


def test_no_control_character_of_what_was_pasted_is_printed() -> None:
    output = explain("\x1b[31mdb7 already has a signed certificate; ignoring certificate request")
    assert "\x1b" not in output["message"]


def test_commands_are_those_of_the_agents_that_print_it() -> None:
    old = explain("The certificate retrieved from the master does not match the agent's private key")["remedy"]
    assert "-delete; puppet agent -t`" in old
    assert "puppet ssl" not in old
    new = explain("The certificate for 'CN=a' does not match its private key")["remedy"]
    assert "puppet ssl clean" in new
    assert "puppet cert" not in new


@pytest.mark.parametrize(
    "text",
    [
        "The certificate for 'CN=web1.example' does not match its private key",
        "The certificate retrieved from the master does not match the agent's private key",
        "The CSR retrieved from the master does not match the agent's public key",
        "web1.example already has a requested certificate; ignoring certificate request",
        "web1.example already has a signed certificate; ignoring certificate request",
    ],
)
def test_where_two_nodes_may_share_a_name_nothing_of_the_other_is_revoked(text: str) -> None:
    output = explain(text)
    assert "Two nodes use the same certname." in output["causes"]
    steps = output["steps"]
    assert any("certname <name>" in step.command and step.only_if == "another node uses the name" for step in steps)
    for step in steps:
        if step.destroys and step.on == "ca":
            assert "the node was reinstalled" in step.only_if or "no other node uses the name" in step.only_if


@pytest.mark.parametrize(
    "text",
    [
        "The certificate for 'CN=web1.example' does not match its private key",
        "web1.example already has a signed certificate; ignoring certificate request",
    ],
)
def test_a_request_is_not_compared_with_a_certificate(text: str) -> None:
    # The CA lists a signed name with its certificate's fingerprint, which is never that of a request.
    commands = [step.command for step in explain(text)["check_steps"]]
    assert not any("--fingerprint" in command or "ca list" in command for command in commands)
    assert any("/catalog/" in command and "'*access*'" in command for command in commands)


@pytest.mark.parametrize(
    "pasted",
    [
        "Error: Could not send report: a reason of its own",
        "Error: Could not retrieve catalog from remote server: a reason of its own",
        "Error: Could not request certificate: a reason of its own",
        "certificate verify failed [a new reason for CN=a.example]",
    ],
)
def test_what_many_messages_begin_with_is_explained_if_nothing_else_is_known(pasted: str) -> None:
    found = known_errors.find(pasted)
    assert found is not None
    assert found.known.frame


def test_an_explanation_is_in_plain_sentences() -> None:
    for known in MESSAGES:
        assert known.causes, known.texts
        for sentence in (known.meaning, *known.causes):
            assert sentence.endswith("."), sentence
            assert sentence.count("`") % 2 == 0, sentence


def test_check_and_fix_are_steps_whose_commands_can_be_executed() -> None:
    commands = set()
    for known in MESSAGES:
        output = explain(known.texts[0])
        checks = output["check_steps"]
        assert checks, known.texts
        assert output["steps"], known.texts
        assert not any(step.destroys for step in checks), f"{known.texts}: a check changes nothing"
        for step in (*checks, *output["steps"]):
            clause = step.text + step.only_if
            assert not re.search(r"(?<!%)\{[a-z_]+\}", clause + step.command), clause
            assert clause.count("`") % 2 == 0, clause
            assert not clause.endswith("."), clause
            assert not re.match(r"[A-Z][a-z]", step.text), clause
            assert len(step.command) <= 100, step.command
            assert "`" not in step.command, step.command
            assert bool(DELETES.search(step.command)) <= bool(step.destroys), step.command
            # A part in angle brackets is to be filled in, and would be a redirection.
            commands.add(BLANK.sub("filled", step.command))
    checked = subprocess.run(
        ["sh", "-n"], input="\n".join(sorted(commands)), text=True, capture_output=True, check=False
    )
    assert checked.stderr == ""


IDENTITY = re.compile(
    r"\{(clean|reset|reset_ca|trust_anew)\}|hostcert|ssldir|signeddir|ca generate|revoke|cert clean|ca clean|ssl clean"
)
"""What deletes a key, a certificate or the CA that a node trusts."""
PROOFS = {
    "The CSR for host 'NAME' does not match the public key": "another key",
    "CSR sign verification failed; you need to clean the certificate request for NAME on the server": "forged",
    "Certname X must not contain unprintable or non-ASCII characters": "a name that no CA signs",
    "Failed to load client certificate for 'NAME'": "a damaged file, which the CA serves again",
    "The certificate NAME must be cleaned from the CA first": "the command itself is to delete it",
}
"""The messages that alone prove that the identity is at fault."""


def test_an_identity_is_deleted_only_where_evidence_shows_that_it_is_at_fault() -> None:
    proofs = set(PROOFS)
    for known in MESSAGES:
        steps = [step for step in expanded(known.fix) if step.destroys and IDENTITY.search(step.command)]
        if not all(step.only_if for step in steps):
            assert known.texts[0] in proofs, known.texts[0]
            assert not known.frame
            proofs.discard(known.texts[0])
    assert not proofs, "these delete nothing any more"


def test_a_check_is_printed_in_steps(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "The client certificate is missing from /tmp/a.pem"])
    printed = capsys.readouterr().out
    assert "check:      On the node, see whether it can be read:\n" in printed
    assert '  openssl x509 -noout -subject -enddate -in "$(puppet config print hostcert)"\n' in printed


LOG = """\
Nov 23 10:11:58 web1 puppet-agent[812]: Using environment 'production'
Nov 23 10:11:59 web1 puppet-agent[812]: Warning: Unable to fetch my node definition, but the agent run will continue:
Nov 23 10:12:00 web1 puppet-agent[812]: Notice: Local environment: 'a' doesn't match server specified environment 'b', \
restarting agent run with environment 'b'
Nov 23 10:12:01 web1 puppet-agent[812]: Error: Could not retrieve catalog from remote server: Error 500 on SERVER: \
Server Error: Evaluation Error: Error while evaluating a Function Call, Could not find class ::a::b for web1.example \
(file: /etc/puppetlabs/code/environments/b/manifests/site.pp, line: 1, column: 1) on node web1.example
Nov 23 10:12:01 web1 puppet-agent[812]: Error: Could not retrieve catalog; skipping run
Nov 23 10:12:02 web1 puppet-agent[812]: Error: Could not send report: Connection refused - connect(2)
"""


def test_of_a_whole_log_the_first_error_counts() -> None:
    found = known_errors.find(LOG)
    assert found is not None
    assert "Could not find class" in found.known.texts
    assert found.name == "web1.example"


@pytest.mark.parametrize("colour", ["\x1b[1;31m", "^[[1;31m", "#033[1;31m", "[1;31m"])
def test_colours_do_not_matter_wherever_they_are(colour: str) -> None:
    pasted = f"{colour}Error: Could not find cl{colour}ass ::a for web1.example{colour.replace('1;31', '0')}"
    found = known_errors.find(pasted)
    assert found is not None
    assert "Could not find class" in found.known.texts
    assert "31m" not in explain(pasted)["message"]


def test_a_line_that_is_broken_before_a_level_is_one_message() -> None:
    pasted = (
        "Could not retrieve catalog from remote server: Error 500 on SERVER: Server\nError: Evaluation\nError: Could"
    )
    found = known_errors.find(f"{pasted}\nnot find class ::a for web1.example")
    assert found is not None
    assert "Could not find class" in found.known.texts


def test_the_server_is_taken_from_the_request_around_the_reason() -> None:
    output = explain(
        "Error: Request to https://p.example:8140/puppet/v3 failed after 0.013 seconds: SSL_connect returned=1 errno=0 "
        "peeraddr=192.0.2.1:8140 state=error: wrong version number"
    )
    assert "http://p.example:8140/" in output["check"]


def test_a_message_can_be_one_word() -> None:
    assert "DNS" in explain("getaddrinfo")["meaning"]


def test_only_the_beginning_of_what_is_pasted_is_read() -> None:
    beyond = "x" * known_errors.LIMIT + " Could not find class ::a"
    assert known_errors.find(beyond) is None
    assert len(explain("Could not find class ::a " + beyond)["message"]) < 2000


@pytest.mark.parametrize(
    "piece", ["Error: ", "Could not find ", "[1;31m", "\n", "Error 400 on SERVER: at : ", "X" * 40]
)
def test_what_repeats_without_end_takes_no_longer(piece: str) -> None:
    # A pattern that tries every way through it would not come back within the time limit of the tests.
    assert len(known_errors.plain(piece * 100_000)) <= known_errors.LIMIT
    known_errors.find(piece * 100_000)
    known_errors.nearest(piece * 100_000)


def test_the_nearest_messages_are_offered_with_how_to_ask_for_them() -> None:
    with pytest.raises(InspectorError) as error:
        explain("the resource could not be aliased twice: declaration")
    first, *commands = error.value.hint.split("\n")
    assert first == "Paste the whole line, as it was printed. The nearest ones:"
    assert len(commands) == 3
    for command in commands:
        program, verb, text = shlex.split(command)
        assert (program, verb) == ("puppet-inspector", "explain")
        assert explain(text)["meaning"]


@pytest.mark.slow
def test_all_that_is_offered_is_known() -> None:
    for known in MESSAGES:
        nearest = known_errors.nearest(known.texts[0])
        assert nearest
        assert all(known_errors.find(offered) for offered in nearest)


def test_an_expired_crl_is_not_made_anew_by_a_revocation() -> None:
    for known in MESSAGES:
        assert "revoke --certname" not in explain(known.texts[0])["remedy"]
    output = explain("The CRL issued by 'CN=Puppet CA' has expired, verify time is synchronized")["remedy"]
    assert "puppet-inspector fix new-crl --cadir" in output


def test_who_only_has_an_old_ca_keeps_its_key() -> None:
    for text in ("unable to get local issuer certificate", "self signed certificate in certificate chain for CN=a"):
        output = explain(f"certificate verify failed [{text}]")["remedy"]
        assert output.index("localcacert") < output.index("If the node's own certificate") < output.index("--localca")


def test_a_run_that_fails_at_a_busy_master_is_explained_by_the_agents_bug() -> None:
    """Of several messages in one output, the error that was caused by the others."""
    output = explain(
        "Warning: Sleeping for 1 seconds before retrying the request\n"
        "Error: Could not retrieve catalog from remote server: Request to https://master.example:8140/puppet/v3/catalog/"
        "e.example?environment=production failed after 1.014 seconds: attempt to read body out of block\n"
        "Warning: Not using cache on failed catalog\n"
    )
    assert output["rules"].startswith("S24 ")
    assert "7.26" in output["remedy"]
    assert "`max-queued-requests: 0`" in output["remedy"]
    assert "puppet --version" in output["check"]


# -- as they are written ----------------------------------------------------------------------------------


def test_they_are_compiled() -> None:
    """``make docs`` does it."""
    assert installation.messages() == messages.compiled()


def test_each_line_that_was_printed_is_found_to_be_its_message() -> None:
    """Also with what logs and terminals do to it."""
    for (subject, number, written), known in zip(messages.written(), MESSAGES, strict=True):
        where = f"{subject}.yaml, message {number + 1}"
        assert written.printed, f"{where}: who prints it, and how?"
        for line in (printed.line for printed in written.printed):
            folded = "\n".join(line[at : at + 80] for at in range(0, len(line), 80))
            logged = f"Nov 23 10:12:01 web1 puppet-agent[812]: {line.removeprefix('Error: ')}"
            for text in (line, folded, f"\x1b[1;31m{line}\x1b[0m", logged):
                found = known_errors.find(text)
                assert found, f"{where}: not found: {text}"
                assert found.known is known, f"{where}: found to be {found.known.texts[0]!r}: {text}"
