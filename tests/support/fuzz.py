"""Every reader of files, played with files of strangers: ``play(reader, number)`` is always the same mutant.

A reader is fed as users feed it, by a command in this process. Whatever the file, there is one sentence, a partial
result with a warning or a result: no exception, no time without end, no memory without end, and no control character
on any output.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import random
import shutil
import signal
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import errors
from inspector.cli.main import main
from inspector.host import puppetconf
from inspector.lab.ca import LabCA
from inspector.runs.examples import ca, catalog, content, issued, metadata, plugins, report, talk
from tests.support import mutants
from tests.support.captures import save
from tests.support.hostile import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

CPU = 20.0
"""Seconds of CPU after which a play hangs; a play takes some milliseconds."""
WALL = 30.0
"""Seconds after which a play waits for ever."""
MEMORY = 600_000
"""KB that a play may need."""
NAME = "node1.example"


class Hang(BaseException):
    """Nothing catches it but the player."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A kind of file and what reads it."""

    make: Callable[[Path], None]
    """Writes valid files into a directory."""
    files: tuple[str, ...]
    """The patterns of the files that are changed, one at a time."""
    change: Callable[[random.Random, Path], None]
    uses: tuple[tuple[str, ...], ...]
    """The commands that read it; ``{}`` is the directory."""
    call: Callable[[Path], object] | None = None
    """Reads it without a command."""


def _changing(change: mutants.Change) -> Callable[[random.Random, Path], None]:
    def apply(chance: random.Random, path: Path) -> None:
        path.write_bytes(change(chance, path.read_bytes()))

    return apply


def _by_name(chance: random.Random, path: Path) -> None:
    if path.suffix != ".pem":
        return _changing(mutants.lines_changed)(chance, path)
    return _changing(mutants.pem_changed)(chance, path)


# -- valid files ------------------------------------------------------------------------------------------

RECORDS = talk(ca(), issued(), plugins(), catalog(), metadata("modules/demo/a"), content("modules/demo/a"),
               report(status=500), shown="foreign")  # fmt: skip


def _capture(folder: Path) -> None:
    save(folder / "c.sqlite", *RECORDS)
    _quietly(["captures", "vacuum", str(folder / "c.sqlite")])


def _packed(folder: Path) -> None:
    save(folder / "c.sqlite", *RECORDS * 6)


def _index(folder: Path) -> None:
    _capture(folder)
    _quietly(["captures", str(folder)])
    assert (folder / "c.sqlite.index").exists()


def _notes(folder: Path) -> None:
    from inspector.capture.notes import Notes

    _capture(folder)
    notes = Notes.open(folder / "c.sqlite")
    notes.set_note("record", 1, "what is this?")
    notes.toggle("run", 1)
    notes.toggle("record", 3)


def _exported(form: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _capture(folder)
        _quietly(["export", str(folder / "c.sqlite"), "-o", str(folder / f"in.{form}")])

    return make


def _baseline(folder: Path) -> None:
    _capture(folder)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["check", str(folder / "c.sqlite"), "--json"])
    (folder / "in.json").write_text(out.getvalue())


def _rules(folder: Path) -> None:
    _capture(folder)
    (folder / "in.yaml").write_text(
        "rules:\n  B45: off\n  B39: {severity: warning}\n  S08: {warning_s: 20}\nignore:\n"
        "- rules: [B01, B03]\n  certname: 'build*.example'\n  until: 2027-01-31\n  why: rebuilt\n"
        "- {rules: S02, certname: [a, 'b?']}\n"
    )


def _ssldir(folder: Path) -> None:
    authority = LabCA("ca.example")
    authority.enrol(folder / "ssl", NAME)


def _cadir(folder: Path) -> None:
    from inspector.host import pki

    authority = LabCA("ca.example")
    authority.submit(NAME, pki.pem(pki.make_csr(NAME, pki.new_key())))
    pem = authority.sign(NAME)
    authority.submit("waiting.example", pki.pem(pki.make_csr("waiting.example", pki.new_key())))
    place = folder / "ca"
    authority.write_cadir(place)
    (place / "serial").write_text("0009")
    (place / "inventory.txt").write_text(
        f"0x0001 2026-01-01T00:00:00UTC 2031-01-01T00:00:00UTC /CN={NAME}\n"
        f"0x{pem.serial_number:04x} 2026-01-01T00:00:00UTC 2031-01-01T00:00:00UTC /CN={NAME}\n"
    )
    for name, data in (("signed", pki.pem(pem)), ("requests", authority.request("waiting.example") or b"")):
        (place / name).mkdir(exist_ok=True)
        (place / name / f"{NAME if name == 'signed' else 'waiting.example'}.pem").write_bytes(data)


def _conf(folder: Path) -> None:
    _ssldir(folder)
    (folder / "puppet.conf").write_text(
        "# ours\n[main]\nserver = puppet.example\nvardir = /x\nssldir = $vardir/ssl\ncertname = node1.example\n"
        "[agent]\nserver_list = a.example:8140,b.example\nreport_port = 8141\nuse_srv_records = false {owner = root}\n"
        "ca_server = ca.example\nhttp_proxy_host = none\n[server]\ncadir = ${confdir}/ca\n"
    )


def _read_conf(folder: Path) -> object:
    return puppetconf.read(confdir=folder)


def _read_notes(folder: Path) -> object:
    from inspector.capture.notes import Notes

    notes = Notes.open(folder / "c.sqlite")
    if notes.error:
        raise notes.error
    return [notes.all(), notes.toggle("record", 2)]


def _read_index(folder: Path) -> object:
    from inspector.capture.store import Capture
    from inspector.summaries import index
    from tests.support.briefs import all_briefs

    found = index.Index.open(folder / "c.sqlite.index")
    if found is None:
        return None
    with contextlib.closing(found), Capture.open(folder / "c.sqlite") as capture:
        briefs = [*found.briefs([1, 2, 3]), *all_briefs(found)]
        return [found.fits(capture), found.state(), found.runs(), briefs]


def _read_identity(folder: Path) -> object:
    from inspector.host.pki import SslDirPaths
    from inspector.proxy import identity, tls

    place = SslDirPaths(folder / "ssl", NAME)
    trust = tls.SiteTrust(place.ca, place.crl)
    return [trust.problems(0.0), identity.load(place.certificate, place.key)]


_READ = ("runs", "list", "check", "doctor", "bootstrap")
_OF_CAPTURE: tuple[tuple[str, ...], ...] = (
    *((command, "{}/c.sqlite") for command in _READ), *((command, "{}/c.sqlite", "--json") for command in _READ),
    ("show", "{}/c.sqlite", "2"), ("show", "{}/c.sqlite", "4", "--json"),
    ("captures", "{}"), ("captures", "{}", "--json"),
    ("export", "{}/c.sqlite", "-o", "{}/out.jsonl"), ("export", "{}/c.sqlite", "-o", "{}/out.har"),
    ("export", "{}/c.sqlite", "-o", "{}/out.mitm"), ("share", "{}/c.sqlite", "-o", "{}/out.sqlite"),
    ("captures", "merge", "{}/c.sqlite", "{}/c.sqlite", "-o", "{}/out.sqlite"), ("captures", "vacuum", "{}/c.sqlite"),
    ("check", "{}/c.sqlite", "--format", "sarif"), ("check", "{}/c.sqlite", "--format", "junit"),
)  # fmt: skip


def _imports(name: str) -> tuple[tuple[str, ...], ...]:
    words = ("import", f"{{}}/{name}", "-o", "{}/out.sqlite")
    return words, (*words, "--json")


_DOCTOR = tuple(("doctor", "--ssldir", "{}/ssl", *more) for more in ((), ("--json",), ("--certname", NAME)))
_CAPTURES: tuple[tuple[str, ...], ...] = (("captures", "{}"), ("captures", "{}", "--json"))
READERS: dict[str, Reader] = {
    "capture": Reader(_capture, ("c.sqlite",), mutants.database_changed, _OF_CAPTURE),
    "packed capture": Reader(_packed, ("c.sqlite",), mutants.database_changed, _OF_CAPTURE),
    "index": Reader(_index, ("c.sqlite.index",), mutants.database_changed, _CAPTURES, _read_index),
    "notes": Reader(_notes, ("c.sqlite.notes.json",), _changing(mutants.json_changed), (), _read_notes),
    "flows": Reader(_exported("mitm"), ("in.mitm",), _changing(mutants.flows_changed), _imports("in.mitm")),
    "HAR": Reader(_exported("har"), ("in.har",), _changing(mutants.json_changed), _imports("in.har")),
    "jsonl": Reader(_exported("jsonl"), ("in.jsonl",), _changing(mutants.json_changed), _imports("in.jsonl")),
    "baseline": Reader(
        _baseline,
        ("in.json",),
        _changing(mutants.json_changed),
        (("check", "{}/c.sqlite", "--baseline", "{}/in.json"),),
    ),
    "rules file": Reader(
        _rules, ("in.yaml",), _changing(mutants.yaml_changed), (("check", "{}/c.sqlite", "--rules", "{}/in.yaml"),)
    ),
    "ssldir (PEM, CRL, keys)": Reader(_ssldir, ("ssl/**/*.pem",), _by_name, _DOCTOR),
    "trust and keys of the proxy": Reader(_ssldir, ("ssl/**/*.pem",), _by_name, (), _read_identity),
    "cadir": Reader(
        _cadir, ("ca/**/*",), _by_name, (("doctor", "--cadir", "{}/ca"), ("doctor", "--cadir", "{}/ca", "--json"))
    ),
    "puppet.conf": Reader(_conf, ("puppet.conf",), _changing(mutants.lines_changed), (), _read_conf),
}


# -- playing ----------------------------------------------------------------------------------------------


def play(reader: Reader, number: int, template: Path, folder: Path) -> str | None:
    """Play one mutant of the files in ``template``; return what is wrong, None if all is well."""
    chance = random.Random(number)  # noqa: S311 - the same mutants on every day
    shutil.copytree(template, folder, symlinks=True)
    try:
        files = sorted(path for pattern in reader.files for path in folder.glob(pattern) if path.is_file())
        path = chance.choice(files)
        if chance.randrange(25):
            reader.change(chance, path)
        else:
            mutants.misplaced(chance, path)
        uses = [*reader.uses, *([None] if reader.call else [])]
        use = chance.choice(uses)
        wrong = _watched(reader, use, folder)
        return f"mutant {number} of {path.name}, {' '.join(use) if use else 'read'}: {wrong}" if wrong else None
    finally:
        shutil.rmtree(folder)


def _watched(reader: Reader, use: tuple[str, ...] | None, folder: Path) -> str | None:
    texts = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(text, "utf-8", write_through=True) for text in texts)
    # What other tests of this process needed hides nothing: the peak begins anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    status = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _limits():
            if use is None:
                assert reader.call
                try:
                    reader.call(folder)
                except errors.InspectorError as error:
                    if not error.message:
                        return "an error without words"
            else:
                status = main([word.format(folder) for word in use])
    except Hang as error:
        return f"hangs ({error}): {_where(error)}"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"{error!r:.200}: {_where(error)}"
    grown = _peak() - before
    if grown > MEMORY:
        return f"needs {grown // 1024} MB"
    output, complaint = (text.getvalue().decode() for text in texts)
    return _judged(status, output, complaint, as_json=bool(use and "--json" in use))


def _peak() -> int:
    """The most memory in use so far, KB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _judged(status: int, output: str, complaint: str, *, as_json: bool) -> str | None:
    if status not in (0, 1, 2):
        return f"status {status}"
    for line in (output + "\n" + complaint).split("\n"):
        if not harmless(line.replace("\t", "")):
            return f"prints {line!r:.300}"
    for phrase in ("Traceback", "object at 0x", "internal error"):
        if phrase in output + complaint:
            return f"prints {phrase}"
    if status == 2 and not complaint.startswith("puppet-inspector: "):
        return f"says {complaint!r:.300}"
    if any(len(line) > 2000 for line in complaint.splitlines()):
        return f"says {len(complaint)} characters: {complaint!r:.300}"
    if as_json and status < 2 and output:
        json.loads(output, parse_constant=_no_json)
    return None


def _no_json(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    def expired(number: int, _frame: FrameType | None) -> None:
        raise Hang(f"{CPU:g} s of CPU" if number == signal.SIGPROF else f"{WALL:g} s")

    alarms = ((signal.SIGPROF, signal.ITIMER_PROF, CPU), (signal.SIGALRM, signal.ITIMER_REAL, WALL))
    previous = [(number, signal.signal(number, expired)) for number, _, _ in alarms]
    previous.append((signal.SIGTERM, signal.getsignal(signal.SIGTERM)))  # main sets its own
    for _, timer, seconds in alarms:
        signal.setitimer(timer, seconds)
    # SQLite waits for a pipe again after each signal: that hang cannot be ended, only shown.
    faulthandler.dump_traceback_later(2 * WALL, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        for _, timer, _ in alarms:
            signal.setitimer(timer, 0)
        for number, handler in previous:
            signal.signal(number, handler)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/inspector/" in frame.filename] or list(frames)
    return " < ".join(f"{frame.filename.rpartition('inspector/')[2]}:{frame.lineno}" for frame in reversed(ours[-3:]))


def _quietly(words: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(words)


def faults(name: str, numbers: range, folder: Path) -> Iterator[str]:
    """Play some mutants of one reader's files; yield what is wrong."""
    reader, template = READERS[name], folder / "valid"
    template.mkdir()
    reader.make(template)
    for number in numbers:
        if wrong := play(reader, number, template, folder / "played"):
            yield f"{name}: {wrong}"
