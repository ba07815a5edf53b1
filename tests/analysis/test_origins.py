"""Where messages of the programs are found to be printed, and what is found to be none of theirs."""

from __future__ import annotations

import random
import zlib
from functools import cache

import pytest

from inspector import installation
from inspector.analysis import origins
from inspector.analysis.origins import Book, Origins
from tests.support import messages


@cache
def book() -> Origins:
    return Origins(installation.origins())


def files(text: str) -> set[str]:
    return {origin.file for found in book().find(text) for origin in found.origins}


@pytest.mark.parametrize(
    ("printed", "file"),
    [
        ("Error: Could not save last run local report: disk full", "lib/puppet/configurer.rb"),
        ("Error: Removing corrupt state file /var/x/state.yaml: (<unknown>)", "lib/puppet/configurer.rb"),
        ("puppet-agent[812]: Applied catalog in 12.30 seconds", "lib/puppet/configurer.rb"),
        ("err: Could not run Puppet configuration client: no route", "lib/puppet/agent.rb"),
        (
            "Error: Evaluation Error: The value 'x' cannot be converted to Numeric.",
            "lib/puppet/pops/issues.rb",
        ),
        ("Signed certificate request for web1", "src/clj/puppetlabs/puppetserver/certificate_authority.clj"),
        (
            "Forbidden request: /a access to a (method :get) at p:8140 (authenticated: true) denied by rule",
            "src/puppetlabs/trapperkeeper/authorization/rules.clj",
        ),
        ("Successfully signed certificate request for web1", "lib/puppetserver/ca/certificate_authority.rb"),
        (
            "Error: Failed to submit 'replace facts' command for web1 to PuppetDB at p.example:8081: [404 Not Found] x",
            "puppet/lib/puppet/util/puppetdb/http.rb",
        ),
        (
            "Error: Facter: Fact resolution fact='x', resolution='<anonymous>' resolved to an invalid value: Expected",
            "lib/facter/custom_facts/core/resolvable.rb",
        ),
    ],
)
def test_a_message_of_each_program(printed: str, file: str) -> None:
    assert file in files(printed)


@pytest.mark.parametrize(
    ("of_puppet", "renamed"),
    [
        ("Run of Puppet configuration client already in progress; skipping  (/x/lock exists)",
         "Run of OpenVox configuration client already in progress; skipping  (/x/lock exists)"),
        ("Error: Failed to submit 'store report' command for a to PuppetDB at p:8081: [500 x] y",
         "Error: Failed to submit 'store report' command for a to OpenVoxDB at p:8081: [500 x] y"),
        ("Could not select a functional Puppet server from server_list: 'a'",
         "Could not select a functional OpenVox server from server_list: 'a'"),
    ],
)  # fmt: skip
def test_a_message_that_openvox_renamed(of_puppet: str, renamed: str) -> None:
    assert book().find(of_puppet) == book().find(renamed) != ()


def test_most_lines_that_were_printed_have_an_origin() -> None:
    lines = [printed.line for each in messages.written() for printed in each.written.printed]
    found = sum(bool(book().find(line)) for line in lines)
    assert found > 0.7 * len(lines), f"{found} of {len(lines)}"


def test_one_message_printed_at_several_places() -> None:
    (found,) = book().find("Error: Could not find group(s) wheel")
    assert {origin.printer for origin in found.origins} == {"a resource's type on the node"}
    assert len(files("Error: Could not connect to LDAP: no route")) > 1


def test_messages_within_one_another_are_in_their_order() -> None:
    outer, inner = book().find(
        "Error: Could not retrieve catalog from remote server: Request to https://p:8140/puppet/v3/catalog/web1 timed "
        "out read operation after 60 seconds"
    )
    assert outer.start < inner.start
    assert {origin.file for origin in outer.origins} == {"lib/puppet/configurer.rb"}
    assert {origin.file for origin in inner.origins} == {"lib/puppet/http/client.rb"}


# -- other programs' logs ---------------------------------------------------------------------------------

_OTHERS = (
    "{time} web1 sshd[{n}]: Connection closed by authenticating user root 10.0.0.{b} port {n} [preauth]",
    "{time} web1 sshd[{n}]: error: kex_exchange_identification: Connection closed by remote host",
    "{time} web1 kernel: [{n}.12] eth0: link is not ready, could not find {word} device",
    "{time} web1 systemd[1]: Failed to start {word}.service - could not be found in the {word} directory.",
    "{time} web1 CRON[{n}]: (root) CMD (test -x /usr/sbin/{word} || run-parts --report /etc/cron.daily)",
    "{time} web1 dhclient[{n}]: Could not connect to {word}: No such file or directory",
    "[Sun Dec 04 04:47:{b} 2005] [error] mod_jk child workerEnv in error state {b}, file does not exist: /{word}",
    "2026-01-02 10:00:{b},978 INFO [main] org.example.{word}: Unable to find {word} for {word}, is not a valid {b}",
    "2026-01-02 status installed {word}:amd64 1.2-{b}",
    'nginx: 10.0.0.{b} - - "GET /{word} HTTP/1.1" 404 {n} could not open file: permission denied',
    "<{b}>1 2026-01-02T10:00:00Z db1 postgres {n} - - FATAL: password authentication failed for user {word}",
    "ERROR {word}: failed to resolve host {word}: the certificate has expired and must be a valid one",
    "{time} web1 postfix/smtpd[{n}]: warning: hostname {word} does not resolve to address 10.0.0.{b}",
    "{time} web1 named[{n}]: could not retrieve the list of {word}: connection refused, trying the next server",
)
_FILLS = (
    "disk",
    "network",
    "apache2",
    "cups",
    "user",
    "the",
    "file",
    "request",
    "server",
    "mount",
    "service",
    "package",
)


def other_lines(number: int) -> list[str]:
    chosen = random.Random(7)  # noqa: S311
    lines: list[str] = []
    while len(lines) < number:
        line = chosen.choice(_OTHERS)
        while "{word}" in line:
            line = line.replace("{word}", chosen.choice(_FILLS), 1)
        moment = f"Dec 10 06:{chosen.randrange(10, 60)}:46"
        lines.append(line.format(time=moment, n=chosen.randrange(10, 99999), b=chosen.randrange(10, 60)))
    return lines


def test_lines_of_other_programs_have_none() -> None:
    for line in other_lines(10_000):
        assert book().find(line) == (), line


def test_a_log_of_another_program_has_none() -> None:
    lines = other_lines(600)
    for at in range(0, len(lines), 30):
        assert book().find("\n".join(lines[at : at + 30])) == ()


@pytest.mark.parametrize(
    "text", ["", " ", "hello there", "error: error: error:", "could not", "No such file or directory"]
)
def test_what_says_too_little_has_none(text: str) -> None:
    assert book().find(text) == ()


def test_a_short_message_is_found_where_a_message_begins_only() -> None:
    assert files("Error: Could not find group(s) wheel")
    assert files("Could not find group(s) wheel")
    assert not files("Dec 10 06:10:46 web1 useradd[12]: Could not find group(s) wheel")
    assert not files("tool: Could not find group(s) wheel")
    assert files("x does not accept arguments")
    assert not files("tool: x does not accept arguments")
    assert not files("the tool says that it could not find group(s) wheel today")


def test_the_steps_of_a_message_are_no_lines_of_another_log() -> None:
    message = (
        "Error: Could not request certificate: The certificate retrieved from the master does not match the agent's "
        "private key. Did you forget to run as root?\nCertificate fingerprint: AA:BB\nTo fix this, remove the "
        "certificate from both the master and the agent and then start a puppet run, which will automatically "
        "regenerate a certificate.\nOn the master:\n  puppet cert clean web1\nOn the agent:\n  1a. On most platforms: "
        "find /x -name web1.pem -delete\n  1b. On Windows: del /x/web1.pem /f\n  2. puppet agent -t\n"
    )
    assert files(message) == {"lib/puppet/ssl/host.rb"}


# -- bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit", ["a b ", "could not find ", "error on server ", "x", "Error: could\n", "'", "\x1b[31m", "ß "]
)
def test_hostile_text_is_searched_in_bounded_work(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = 0
    real = origins._hash

    def counted(words: list[str]) -> bytes:
        nonlocal hashed
        hashed += 1
        return real(words)

    monkeypatch.setattr(origins, "_hash", counted)
    book().find(unit * 2_000_000)
    # Each run of up to RUN words, once for the text in parts and once without its line breaks.
    assert hashed <= 2 * origins.RUN * origins.LIMIT


def test_values_that_look_like_fixed_words_do_not_matter() -> None:
    message = "Could not save last run local report: Could not save last run local report: x"
    assert {each.origins[0].file for each in book().find(f"Error: {message}")} == {"lib/puppet/configurer.rb"}


# -- what is stored ---------------------------------------------------------------------------------------


def test_the_file_is_small() -> None:
    assert len(installation.origins()) <= 300_000


def test_no_sentence_of_a_program_can_be_read_in_the_file() -> None:
    text = zlib.decompress(installation.origins()).decode("latin-1").lower()
    for each in messages.written():
        for printed in each.written.printed:
            words = printed.line.lower().split()
            for at in range(len(words) - 4):
                assert " ".join(words[at : at + 5]) not in text


def test_every_template_has_an_origin_with_its_words() -> None:
    stored = book().book
    assert len(stored.templates) > 6_000
    for each in stored.templates:
        assert each.origins
        assert max(each.origins) < len(stored.origins)
    assert max(word for row in stored.origins for word in row) < len(stored.words)


def test_what_is_encoded_is_decoded() -> None:
    made = origins.template(["Could not \x07", " the ", ""], sure=True, origins=(0,))
    assert made is None or isinstance(made, origins.Template)
    first = origins.template(["The flux of ", " has overheated: ", ""], sure=False, origins=(0,))
    assert first is not None
    stored = origins.encoded(
        Book(("the reactor", "flux.rb", "error", "at night", "nothing"), ((0, 1, 2, 3, 4),), (first,))
    )
    (found,) = Origins(stored).find("Error: The flux of capacitor 7 has overheated: badly")
    assert found.origins == (origins.Origin("the reactor", "flux.rb", "error", "at night", "nothing"),)
    assert b"overheated" not in zlib.decompress(stored)
