"""The grammar of faults, and what is wrong in one."""

from __future__ import annotations

import pytest

from inspector.errors import InspectorError
from inspector.proxy.faults import fault
from inspector.proxy.faults.actions import KINDS
from tests.support.rows import each_row


def test_a_line() -> None:
    found = fault.parse(
        "  503=10 agent:web1.example -agent:web2.example phase:catalog nth:2-3 for:10m share:30% seed:7 "
    )
    assert found.line == "503=10 agent:web1.example -agent:web2.example phase:catalog nth:2-3 for:10m share:30% seed:7"
    assert found.agents == ("web1.example",)
    assert found.lasts == 600
    assert (found.share, found.seed) == (0.3, "7")
    assert found.action.note == "answered 503 with Retry-After: 10"
    assert [number for number in range(1, 6) if found.nth is not None and found.nth(number)] == [2, 3]


@each_row("name", [name for name, kind in KINDS.items() if "mint:" not in kind.example])
def test_every_example_is_a_fault(name: str) -> None:
    assert fault.parse(KINDS[name].example).line == KINDS[name].example


@each_row("line", ["500 agent:*", "500 -agent:web1", "500 phase:catalog", "500", "500 agent:?*", "500 agent:*.*"])
def test_these_name_no_agent(line: str) -> None:
    assert fault.parse(line).agents == ()


def test_a_share_is_about_right_and_the_same_each_time() -> None:
    found = fault.parse("500 agent:a share:30% seed:7")
    hits = [found.hits("web1.example", number) for number in range(1, 2001)]
    assert hits == [fault.parse("500 agent:a share:30% seed:7").hits("web1.example", n) for n in range(1, 2001)]
    assert 540 < sum(hits) < 660
    assert hits != [fault.parse("500 agent:a share:30% seed:8").hits("web1.example", n) for n in range(1, 2001)]
    assert hits != [found.hits("web2.example", number) for number in range(1, 2001)]


def test_its_time_passes() -> None:
    assert not fault.parse("500 agent:a").over(1e9)
    assert not fault.parse("500 agent:a for:2s").over(2)
    assert fault.parse("500 agent:a for:2s").over(2.1)


@each_row(
    ("line", "words"),
    [
        ("", "A fault is empty"),
        ("   ", "A fault is empty"),
        ("agent:web1", "There is no fault 'agent:web1'"),
        ("502 agent:web1", "There is no fault '502'"),
        ("dealy=5s agent:web1", "Do you mean delay?"),
        ("delay agent:web1", "needs a value: DURATION"),
        ("delay=soon agent:web1", "cannot be 'soon'"),
        ("delay=1000000h agent:web1", "cannot be '1000000h'"),
        ("throttle=0 agent:web1", "cannot be '0'"),
        ("500=3 agent:web1", "The fault 500 has no value"),
        ("503=x agent:web1", "cannot be 'x'"),
        ("500 catalog", "A fault has no plain words: 'catalog'"),
        ("500 status:500", "cannot depend on status: that is not known when the request arrives"),
        ("500 text:secret", "cannot depend on text"),
        ("500 certname:web1", "Do you mean agent?"),
        ("500 nht:1", "Do you mean nth?"),
        ("500 agent:a colour:red", "A fault has no key 'colour'"),
        ("500 agent:a phase:handshake", "No request has the phase handshake"),
        ("500 agent:a phase:catalogue", "phase cannot be 'catalogue'"),
        ("500 agent:a nth:first", "nth: cannot be 'first'"),
        ("500 agent:a nth:1 nth:2", "nth: is given once"),
        ("500 agent:a -nth:1", "nth: is given once, and not negated"),
        ("500 agent:a share:0%", "share: cannot be '0%'"),
        ("500 agent:a share:130%", "share: cannot be '130%'"),
        ("500 agent:a share:0.3", "share: cannot be '0.3'"),
        ("500 agent:a for:ever", "for: cannot be 'ever'"),
        ('500 agent:"a', "is not valid from"),
        ("refuse agent:web1.example", "needs the agent's address"),
        ("refuse", "needs the agent's address"),
        ("refuse agent:192.0.2.7 phase:catalog", "cannot depend on phase"),
        ("refuse agent:192.0.2.7 agent:web*", "needs the agent's address"),
        ("refuse agent:*", "needs the agent's address"),
        ("crl=/nowhere/crl.pem agent:192.0.2.7", "Cannot read the CRL /nowhere/crl.pem: No such file or directory"),
        ("crl=mint: agent:192.0.2.7", "cannot be 'mint:'"),
        ("certificate=/nowhere/a.pem agent:192.0.2.7", "Cannot read the certificate /nowhere/a.pem"),
        ("certificate=mint:/nowhere agent:192.0.2.7", "/nowhere contains no usable ca_crt.pem"),
    ],
)
def test_what_is_wrong_is_one_sentence(line: str, words: str) -> None:
    with pytest.raises(InspectorError) as raised:
        fault.parse(line)
    assert words in str(raised.value)
    assert raised.value.hint or "nowhere" in line


@pytest.mark.parametrize("agent", ["192.0.2.7", "2001:db8::1", "192.0.2.*", "10.*"])
def test_handshakes_are_chosen_by_address(agent: str) -> None:
    assert fault.parse(f"refuse agent:{agent} nth:1 for:1h share:50%").action.refuse


def test_whether_an_agent_is_named() -> None:
    assert fault.names_agent("500 phase:catalog agent:web1")
    assert not fault.names_agent("500 phase:catalog -agent:web1")
