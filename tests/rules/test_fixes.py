"""Fixes in steps: the commands of each version, the hosts they are for, and how they are shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inspector.rules import all_rules, fixes, rule_of
from inspector.rules.fixes import Host
from inspector.rules.kit import *
from inspector.rules.puppet_commands import FixContext, fill
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence


WORDS = ("sign", "clean", "list", "alt_names", "new_crl", "crls", "write_crls", "check_ca", "renew_master", "reset",
         "reset_ca", "trust_anew", "new_crl_of_agent", "verify", "renew", "enrol", "enrol_ca", "compare", "signing",
         "renew_crl", "fingerprint", "resubmit", "missing_crl", "revoked")  # fmt: skip
"""Every placeholder for a command or a group."""
PROGRAMS = (
    r"puppet|puppetserver|puppet-inspector|systemctl|journalctl|openssl|curl|rm|find|ls|ps|ss|ip|ping|getent|date|"
    r"timedatectl|chronyc|sha256sum|gem|chown|chmod|mv|cp|cat|grep|openvox-ca-ctl"
)
"""What a command begins with; settings and file contents in a text do not."""
LONGEST = 100
"""Characters of a command, before names are filled in."""


def _run(agent: str | None, master: str | None = None, name: str = "a.example") -> Run:
    dialect = "legacy" if agent and agent.startswith(("2", "3")) else "v3"
    return Run("192.0.2.1", name, dialect, agent_version=agent, master_versions={master: 1} if master else {})  # type: ignore[arg-type]


def _commands(word: str, agent: str | None, master: str | None = None, name: str = "a.example") -> list[str]:
    return [step.command for step in fill([group(word)], FixContext.of(_run(agent, master, name))) if step.command]


# -- the commands --------------------------------------------------------------------------------------


def test_the_commands_of_each_generation() -> None:
    assert _commands("alt_names", "3.8.7", "3.8.7") == ["puppet cert --allow-dns-alt-names sign a.example"]
    (allow, *_) = fill([group("alt_names")], FixContext.of(_run("7.23.0", "7.9.5")))
    assert "allow-subject-alt-names: true" in allow.text
    assert _commands("sign", "3.8.7", "7.9.5") == ["puppetserver ca sign --certname a.example"]
    assert _commands("sign", "6.29.0", "5.5.22") == ["puppet cert sign a.example"]
    for version in ("2.7.26", "3.8.7", "5.5.22"):
        assert "-name a.example.pem -delete" in _commands("reset", version)[0]
        assert r"\(a.example\|ca\|crl\).pem" in _commands("reset_ca", version)[0]
        assert _commands("verify", version)[0].startswith("openssl verify")
    for version in ("6.0.0", "6.29.0", "8.10.0", "8.28.1"):
        assert _commands("reset", version) == ["puppet ssl clean; puppet agent -t"]
        assert "--localca" in _commands("reset_ca", version)[0]
        assert _commands("verify", version) == ["puppet ssl verify"]
    assert _commands("renew", "8.28.1") == ["puppet ssl renew_cert"]
    # Elsewhere dropping the key alone would take a working node's certificate, and the CA would give it no other.
    assert _commands("renew", "8.10.0") == _commands("enrol", "8.10.0")


def test_a_node_is_enrolled_in_the_order_that_works() -> None:
    assert _commands("enrol", "7.23.0", "7.9.5") == [
        "puppetserver ca clean --certname a.example",
        "puppet ssl clean; puppet agent -t",
        "puppetserver ca sign --certname a.example",
    ]
    assert [step.on for step in fill([group("enrol")], FixContext.of(_run("7.23.0")))] == [Host.CA, Host.NODE, Host.CA]
    old = 'find "$(puppet config print ssldir)" -name a.example.pem -delete'
    assert _commands("enrol", "5.5.22", "5.5.22") == [
        "puppet cert clean a.example", f"{old}; puppet agent -t", "puppet cert sign a.example"
    ]  # fmt: skip
    assert _commands("enrol", "5.5.22", "7.9.5")[1:] == [
        f"{old}; puppet agent -t", "puppetserver ca sign --certname a.example"
    ]  # fmt: skip
    (clean, reset, sign) = _commands("enrol_ca", "8.10.0")
    assert ("clean" in clean, reset, "sign" in sign) == (True, "puppet ssl clean --localca; puppet agent -t", True)


def test_to_trust_a_new_ca_drops_no_key() -> None:
    for version in ("3.8.7", "8.10.0"):
        (output,) = _commands("trust_anew", version)
        assert output == 'rm -f "$(puppet config print localcacert)" "$(puppet config print hostcrl)"; puppet agent -t'


def test_without_a_run_the_commands_are_those_of_both_generations_unless_one_is_known() -> None:
    both = fill([group("enrol")])
    assert [step.command.split()[:3] for step in both] == [
        ["puppetserver", "ca", "clean"], ["puppet", "ssl", "clean;"], ["puppetserver", "ca", "sign"]
    ]  # fmt: skip
    assert [step.variant.split()[:3] for step in both] == [
        ["puppet", "cert", "clean"], ["find", '"$(puppet', "config"], ["puppet", "cert", "sign"]
    ]  # fmt: skip
    assert {step.variant_for for step in both} == {"up to version 5"}
    old = fill([group("enrol"), on_node("x", "{verify}"), group("renew")], FixContext.of_generation(old=True))
    assert "puppet ssl" not in fixes.plain(old)
    assert old[0].variant == "puppetserver ca clean --certname <certname>"
    assert old[0].variant_for == "with a CA of version 6 and later"
    new = fill([group("enrol"), on_node("x", "{verify}")], FixContext.of_generation(old=False))
    assert all(not step.variant for step in new)
    assert not any(word in fixes.plain(new) for word in ("puppet cert", "find ", "openssl verify"))
    assert "`puppet ssl renew_cert`" in fixes.plain(fill([group("renew")]))


def test_an_openvox_ca_has_commands_of_its_own() -> None:
    (first, *_) = _finished(talk(ca(), crl(), csr(), of_openvox_ca(not_issued(), "certificate not found")))
    assert first.ca_service == "openvox-ca"
    context = FixContext.of(first)
    for word in WORDS:
        assert "puppetserver ca" not in fixes.plain(fill([group(word)], context)), word
    assert [step.command for step in fill([group("enrol")], context)] == [
        f"openvox-ca-ctl clean --certname {NAME}",
        "puppet ssl clean; puppet agent -t",
        f"openvox-ca-ctl sign --certname {NAME}",
    ]
    # Its list shows no fingerprints.
    assert f"/requests/{NAME}.pem -outform DER" in fill([group("signing")], context)[0].command
    assert [step.command for step in fill([on_ca("", "{new_crl}")], context)] == ["openvox-ca-ctl reissue-crl"]
    assert all("--execute" not in step.command for step in fill([group("missing_crl")], context))


def test_a_later_run_of_the_same_ca_has_its_commands_too() -> None:
    enrolled = (ca(), crl(), csr(), of_openvox_ca(not_issued(), "certificate not found"), of_openvox_ca(issued()))
    run = (plugins(), catalog(), report())
    first, later = _finished(talk(*enrolled, *run, wait(1800), *run))
    assert (first.ca_service, later.ca_service) == ("openvox-ca", "openvox-ca")
    assert [found.ca_service for found in _finished(talk(ca(), crl(), csr(), issued(), *run, wait(1800), *run))] == [
        None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "name"), [("m.example:8140", "m.example"), ("$(reboot):8140", "<name>"), ("-x:8140", "<name>")]
)
def test_a_name_that_does_not_resolve_is_in_the_command(target: str, name: str) -> None:
    reason = f"cannot connect to the master {target}: Name or service not known"
    (run,) = _finished(talk(unconnected(plugins(), reason)))
    assert rule_of("T19").fix_for(run)[0].command == f"getent hosts {name}"
    assert rule_of("T19").fix_for(None)[0].command == "getent hosts <name>"


@pytest.mark.parametrize("ident", ["B08", "B34", "B36", "B43", "B45"])
def test_a_rule_advises_no_setting_that_an_openvox_ca_does_not_have(ident: str) -> None:
    (run, *_) = _finished(talk(ca(), crl(), csr(), of_openvox_ca(not_issued(), "certificate not found")))
    fix = fixes.plain(rule_of(ident).fix_for(run))
    assert not any(word in fix for word in ("ca.conf", "auth.conf", "puppetserver"))


def test_a_given_name_and_host_are_taken_if_they_are_plain() -> None:
    step = on_ca("for {host}", "{sign}")
    (filled,) = fill([step], FixContext.of_generation("a.example", "p.example", old=False))
    assert (filled.text, filled.command) == ("for p.example", "puppetserver ca sign --certname a.example")
    (filled,) = fill([step], FixContext.of_generation("a;reboot", "$(id)", old=False))
    assert (filled.text, filled.command) == ("for <server>", "puppetserver ca sign --certname <certname>")
    assert not filled.pastable


@pytest.mark.parametrize("name", ["a;reboot", "*", "$(id)", "-rf", "a b", "a`id`", "a'b", "ä.example", "a\nb", ""])
def test_no_strange_name_gets_into_a_command(name: str) -> None:
    for word in WORDS:
        for version in ("3.8.7", "7.23.0"):
            output = _commands(word, version, name=name)
            assert output == _commands(word, version, name="<certname>")


def test_the_commands_for_crls_show_first_and_are_short() -> None:
    for version in ("3.8.7", "7.23.0"):
        (show,) = _commands("crls", version)
        assert _commands("write_crls", version) == [f"{show} --execute"]
    assert _commands("new_crl", "7.23.0", "7.9.5") == _commands("write_crls", "7.23.0")
    assert "puppet cert" in _commands("new_crl", "5.5.22", "5.5.22")[0]


def _finished(records: list[Record]) -> Sequence[Run]:
    return runs_of(records)


def _refusing(*alt_names: str, name: str = "m.example") -> Run:
    """A run whose proxy refused the master because of its certificate, which has expired."""
    leg = {"side": "master", "peer_chain": carried(made(name, ends=-60, alt_names=alt_names)), "own_chain": ()}
    (run,) = _finished(talk(refused(None, by="proxy", culprits=("expired",), leg=leg)))
    return run


def _renewal(run: Run) -> list[str]:
    return [step.command for step in fill([group("renew_master")], FixContext.of(run))]


def test_the_masters_new_certificate_has_the_names_of_the_old_one() -> None:
    run = _refusing("m.example", "puppet", "puppet.example")
    assert _renewal(run) == [
        'openssl x509 -noout -text -in "$(puppet config print hostcert)"',
        "systemctl stop puppetserver",
        'find "$(puppet config print ssldir)" -name m.example.pem -delete',
        'rm -f "$(puppet config print signeddir --section master)/m.example.pem"',
        "puppetserver ca generate --certname m.example --subject-alt-names m.example,puppet,puppet.example --ca-client",
        "systemctl start puppetserver",
    ]
    run.master_versions = {"5.5.22": 1}
    assert "puppet cert generate m.example --dns_alt_names=m.example,puppet,puppet.example" in _renewal(run)
    # They come from the traffic, and administrators paste the commands.
    strange = _renewal(_refusing("$(reboot)", "ok.example", "-rf", name="a;reboot"))
    assert "puppetserver ca generate --certname <server> --subject-alt-names ok.example --ca-client" in strange


def test_the_node_prints_its_fingerprint_only_where_the_traffic_does_not_show_it() -> None:
    unknown = fill([group("signing")])
    assert [step.command.split()[:2] for step in unknown[:2]] == [["puppet", "agent"], ["puppetserver", "ca"]]
    (run,) = _finished(talk(ca(), crl(), csr(), not_issued()))
    known = fill([group("compare")], FixContext.of(run))
    assert [step.on for step in known] == [Host.CA]
    assert f"this agent's, fingerprint {run.csrs[-1].fingerprint}" in known[0].text


# -- those of the rules --------------------------------------------------------------------------------


def test_a_request_that_waits_asks_whether_the_ca_was_to_sign_it() -> None:
    (*_, last) = fill([group("signing")])
    assert last.only_if == "the CA is to autosign"
    assert last.command == "grep -rhs --include=puppetserver.log 'autosign\\|Invalid pattern' /var/log/puppet* | tail"


DELETES = re.compile(r"\brm -|-delete\b|\bca clean\b|\bcert clean\b(?! crl-renewal)|\bssl clean\b|\brevoke\b")
"""What deletes files of an agent or of a CA, or revokes."""
TRUST = re.compile(r"\brm -f (?:\"\$\(puppet config print (?:localcacert|hostcrl)\)\"(?: |; ))+puppet agent -t")
"""What deletes only the CA and its CRLs on a node, which the next run downloads again."""
MAY_DELETE_IDENTITIES = {
    "B04": "the CA in the node's bundle has another key than before",
    "B17": "under a condition: the request that waits is not this agent's",
    "B18": "the CA has a certificate for another key than the agent's",
    "B19": "the CA says that the certificate was revoked",
    "B20": "the request that waits is for another key",
    "B21": "two certnames have one key",
    "B22": "the CA has a certificate for another key than that of the new request",
    "B23": "the certificate is for another key than the agent's",
    "B24": "the request is for another name than its URL",
    "B25": "there is no certificate: the CA refuses the name",
    "B26": "there is no certificate: the CA refuses the name",
    "B27": "the CA keeps the request that it does not sign",
    "B28": "the CA keeps the request that it does not sign",
    "B29": "the CA keeps the request that it does not sign",
    "B31": "the key in the certificate is weak",
    "B32": "the digest in the certificate is weak",
    "B33": "the certificate has expired, by its own date",
    "B34": "the certificate expires soon, by its own date",
    "B35": "the certificate is not yet valid, by its own date",
    "B36": "the CA does not renew the certificate, which is about to expire",
    "B38": "the certificate is for another name",
    "B39": "under a condition: the request that waits is not this agent's",
    "B40": "the CA has neither a request nor a certificate",
    "B42": "under a condition: the request that waits is not this agent's",
    "B44": "there is no certificate: the agent's request is damaged",
    "B46": "two agents have one certname and different keys",
    "B48": "the certificate gives more than was asked for",
    "R17": "under a condition: two hosts have one certname",
    "T04": "the certificate is for another name than the requests",
    "T05": "the certificate is revoked",
    "T06": "the certificate is of another CA",
    "T08": "under a condition: the certificate is of the other CA, too; or it is the master's own that has expired",
    "T17": "the certificate is another one than the one that was downloaded",
}
"""The rules whose fix may delete, revoke or replace a key or a certificate, and what in their evidence shows that it is
at fault. What only a time, a network or a setting explains is not here."""


def _steps_of(ident: str) -> Iterator[fixes.Step]:
    """Every step of a rule's fix: without a run, for each generation, and for the runs of its examples."""
    rule = rule_of(ident)
    runs = [run for example in rule.bad() for run in runs_of(example)]
    found = [run for run in runs if any(finding.rule == ident for finding in run.findings)]
    for run in (None, *GENERATIONS, *found):
        yield from rule.fix_for(run)


def test_only_where_the_identity_is_at_fault_a_fix_deletes_it() -> None:
    deleting = {
        rule.id
        for rule in all_rules()
        for step in _steps_of(rule.id)
        if DELETES.search(step.command) and not TRUST.fullmatch(step.command)
    }
    assert deleting == set(MAY_DELETE_IDENTITIES)


def test_whatever_deletes_says_what() -> None:
    assert [
        (rule.id, step)
        for rule in all_rules()
        for step in _steps_of(rule.id)
        if DELETES.search(step.command) and not step.destroys
    ] == []


GENERATIONS = (_run("3.8.7"), _run("5.5.22", "5.5.22"), _run("7.23.0", "7.23.0"))


def problems(fix: Fix) -> Iterator[str]:
    """What is wrong with the steps of a fix."""
    if not fix or (fix[0].destroys and not fix[0].only_if):
        yield "it begins with a check or a condition, not with what deletes"
    for step in fix:
        words = f"{step.text} {step.only_if}"
        deletes = DELETES.search(step.command)
        wrong = {
            "a placeholder is not filled in": re.search(r"\{[a-z_]*\}", step.text + step.command + step.only_if),
            "it says nothing": not (step.text or step.command),
            "its command is long": len(step.command) > LONGEST,
            "nothing says where": step.command and not step.on,
            "its text is a sentence": step.text.endswith(".") or step.text[:1] != step.text[:1].lower(),
            "a command is in its text": re.search(rf"`(?:{PROGRAMS}) ", words),
            "its text says where": re.match(r"(?i)on the (?:node|CA|master)\b", step.text),
            "its condition has a colon": ": " in step.only_if,
            "nothing says that it deletes": deletes and not step.destroys,
        }
        yield from (f"{problem}: {step}" for problem, found in wrong.items() if found)


def test_the_fix_of_every_rule_is_complete_and_its_commands_are_short() -> None:
    assert [
        (rule.id, problem)
        for rule in all_rules()
        for run in (*GENERATIONS, None)
        for problem in problems(rule.fix_for(run))
    ] == []


def test_the_fix_of_every_rule_uses_the_commands_of_the_generation() -> None:
    for rule in all_rules():
        old, five, seven = (" ".join(step.command for step in rule.fix_for(run)) for run in GENERATIONS)
        assert "puppetserver ca " not in old + five, rule.id
        assert "puppet ssl clean" not in old + five, rule.id
        assert "puppet cert " not in seven, rule.id


# -- what they change ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("date -u", False),
        ("puppet ssl verify", False),
        ("puppet facts show <fact> --debug", False),
        ('openssl x509 -noout -enddate -in "$(puppet config print hostcert)"', False),
        ("openssl s_client -connect a:8140 </dev/null 2>/dev/null", False),
        ("puppet-inspector fix new-crl --cadir x", False),
        ("puppet-inspector fix new-crl --cadir x --execute", True),
        ("openssl pkey -in a -pubout -out b", True),
        ("echo 0005 > serial", True),
        ("cat a > b", True),
        ("puppet agent -t", True),
        ("puppet config set server a", True),
        ("lsx", True),
        ("", False),
    ],
)
def test_which_commands_change_something(command: str, changes: bool) -> None:
    assert on_node("x", command).changes is changes


def test_a_fix_that_changes_something_ends_with_how_to_see_that_it_worked() -> None:
    check, change, run = (
        on_node("look", "date -u"),
        on_ca("sign", "puppetserver ca sign"),
        on_node("", "x; puppet agent -t"),
    )
    assert fixes.proved((check,)) == (check,)
    assert fixes.proved((advice("wait"),)) == (advice("wait"),)
    assert fixes.proved((change, run)) == (change, run)
    assert fixes.proved((run, change))[2:] == (on_node("see that it worked", "puppet agent -t"),)
    assert fixes.proved((change, run, check))[-1].command == "puppet agent -t"


# -- how they are shown --------------------------------------------------------------------------------

SHOWN = (
    on_ca("look at each CRL", "crls"),
    on_node("remove it", "rm it", only_if="it is old", destroys="the CRL"),
    advice("tell the owner", only_if="it is old"),
    advice("read the log"),
)


def test_a_fix_is_numbered_and_its_commands_stand_alone() -> None:
    assert list(fixes.lines(SHOWN)) == [
        "1. On the CA, look at each CRL:",
        "     crls",
        "If it is old:",
        "  2. On the node, remove it (deletes the CRL):",
        "       rm it",
        "  3. Tell the owner.",
        "4. Read the log.",
    ]
    assert list(fixes.lines([advice("read the log")])) == ["Read the log."]
    assert list(fixes.lines([on_node("", "puppet agent -t")])) == ["On the node:", "  puppet agent -t"]


def test_a_long_command_is_never_broken() -> None:
    command = "puppet " + "word " * 40
    assert command in [line.lstrip() for line in fixes.lines([on_node("do " * 60, command)], 40)]
    assert all(len(line) <= 40 for line in fixes.lines([on_node("do " * 60)], 40))


def test_a_fix_in_one_line_has_its_commands_in_backticks() -> None:
    assert fixes.plain(SHOWN) == (
        "1. On the CA, look at each CRL: `crls`. 2. If it is old: on the node, remove it (deletes the CRL): `rm it`. "
        "3. tell the owner. 4. Read the log."
    ).replace("3. tell", "3. Tell")
    assert fixes.plain([on_node("", "puppet agent -t")]) == "On the node: `puppet agent -t`."


def test_a_fix_in_markdown_is_a_list_whose_items_have_their_conditions() -> None:
    assert fixes.markdown(SHOWN) == [
        "1. On the CA, look at each CRL: `crls`.",
        "2. If it is old: on the node, remove it (deletes the CRL): `rm it`.",
        "3. If it is old: tell the owner.",
        "4. Read the log.",
    ]
