"""What waits to be recorded is bounded, and what goes first is what tells least."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.capture import spool
from inspector.capture.store import Capture
from inspector.model import Exchange, Gap, Identity
from inspector.proxy import backlog, recorder
from inspector.proxy.backlog import Backlog
from inspector.proxy.recorder import Recorder
from inspector.runs.examples import catalog, content, talk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_when_too_much_waits_detail_goes_before_exchanges_and_exchanges_before_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = talk(content("app/large", b"x" * 5000))
    assert isinstance(file, Exchange)
    assert file.response
    weight = backlog._weight(file)
    monkeypatch.setattr(recorder, "QUEUE", 4 * weight)
    lines: list[str] = []
    path = tmp_path / "c.sqlite"
    recording = Recorder(path, lines.append, analyzes=False)
    for _ in range(20):
        recording.put(file)
    recording.put(talk(catalog())[0])
    recording.start()
    recording.finish()
    with Capture.open(path) as capture:
        records = list(capture.records())
    gaps = [record for record in records if isinstance(record, Gap)]
    exchanges = [record for record in records if isinstance(record, Exchange)]
    whole = [exchange for exchange in exchanges if exchange.response and exchange.response.body]
    bare = [exchange for exchange in exchanges if exchange.response and exchange.response.lost]
    assert len(whole) == 3 + 1  # and the catalog, though it came last
    assert {exchange.response.lost for exchange in bare if exchange.response} == {5000}
    assert sum(gap.lost for gap in gaps) == 20 - 3 - len(bare) > 0
    assert {gap.reason.partition(" ")[2].partition(" (")[0] for gap in gaps} == {
        backlog.DROPS[kind].partition("{} ")[2].format("written") for kind in ("file", "body")
    }
    assert {gap.reason.partition(" ")[0] for gap in gaps if not gap.lost} == {str(len(bare))}
    assert len([line for line in lines if line.startswith("-- ")]) == 2


def test_headers_and_targets_count_as_well() -> None:
    """A hundred thousand requests with a header of 64 kB each would be 6 GB."""
    (asked,) = talk(catalog())
    assert isinstance(asked, Exchange)
    headers = dataclasses.replace(asked.request, headers=(("x", "y" * 10_000),), target="/" + "z" * 10_000)
    long = dataclasses.replace(asked, request=headers)
    full = Backlog(30_000, "written")
    taken = [full.add(long, None, {}) for _ in range(10)]
    assert sum(item is not None for item in taken) == 3
    (drop,) = full.drops()
    address = asked.agent.address
    assert drop == (f"7 records lost: traffic came in faster than it could be written (7 of {address})", 7)
    assert list(full.drops()) == []
    for item in taken:
        if item:
            full.remove(item)
    assert full.add(long, None, {})


@pytest.mark.parametrize("names", [True, False])
def test_the_node_that_has_most_waiting_loses_first(names: bool) -> None:
    (file,) = talk(content("app/large", b"x" * 5000))
    assert isinstance(file, Exchange)

    def of(certname: str) -> Exchange:
        return dataclasses.replace(file, identity=Identity("files", certname))

    weight = backlog._weight(of("bad.example"))
    full = Backlog(16 * weight, "written", names=names)
    taken = []
    for number in range(200):
        taken.append(full.add(of("bad.example"), None, {}))
        if number % 66 == 65:
            whole = full.add(of("good.example"), None, {})
            assert whole, number
            assert whole.record == of("good.example"), "not even its body is dropped"
            taken.append(whole)
    assert full.waiting <= (16 * 2 + 16 // backlog.RESERVE + 1) * weight
    ((text, number),) = [drop for drop in full.drops() if drop[1]]
    assert number > 150
    assert text == backlog.DROPS["file"].format(number, "written") + f" ({number} of bad.example)" * names
    while full.add(of(f"other{len(taken)}.example"), None, {}):
        taken.append(None)
    assert full.waiting <= (16 * 2 + 16 // backlog.RESERVE + 1) * weight, "it is bounded, whoever sends"


def test_who_has_nothing_waiting_is_forgotten() -> None:
    full = Backlog(10**6, "written")
    items = [full.add(talk(catalog())[0], None, {}) for _ in range(3)]
    for item in items:
        assert item
        full.remove(item)
    assert (full.waiting, len(full._nodes)) == (0, 0)


def test_large_bodies_stay_on_the_disk_unless_their_record_is_lost(tmp_path: Path) -> None:
    (file,) = talk(content("app/large", b"x" * 5000))
    large = spool.Spool(tmp_path)
    large.add(b"x" * (spool.MEMORY + 1))
    full = Backlog(backlog._weight(file) * 3 // 2, "written")
    assert full.add(file, None, {})
    item = full.add(file, None, {"request": large})
    assert item
    assert item.spools == {"request": large}
    assert [text.partition(" (")[0] for text, _ in full.drops()] == [backlog.DROPS["body"].format(1, "written")]
    while full.add(talk(catalog())[0], None, {}):
        pass
    assert full.add(file, None, {"request": large}) is None
    with pytest.raises(AssertionError):
        next(large.chunks())
