"""The command ``puppet-inspector``: one function a command, each imports what it needs when it runs."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import difflib
import gc
import heapq
import itertools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import __version__
from inspector.errors import InspectorError
from inspector.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from inspector.analysis.analyzer import Analyzer, Step
    from inspector.analysis.ruleset import Ruleset
    from inspector.model import Finding
    from inspector.runs.run import Run

DESCRIPTION = "See what a Puppet or OpenVox agent and its master really say to each other."
EPILOG = """\
first steps:
  puppet-inspector demo                          an embedded lab, recorded and explained
  puppet-inspector run -- puppet agent -t        this host's agent, once, through the proxy
  mitmdump -s "$(puppet-inspector addon)"        the proxy, between agents and their master
  puppet-inspector follow                        what happens, while the proxy records it
  puppet-inspector runs captures/FILE.sqlite     what happened
  puppet-inspector check captures/FILE.sqlite    what was wrong, and what to do

exit status: 0 all is well, 1 findings that reach --fail-on, 2 a mistake that the message explains.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if threading.current_thread() is threading.main_thread():
        # Like Ctrl-C: what was started (a proxy that holds keys) must end with us.
        signal.signal(signal.SIGTERM, _terminated)
    try:
        status: int = arguments.command(arguments)
        sys.stdout.flush()
        return status
    except InspectorError as error:
        print(f"puppet-inspector: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _terminated(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "puppet-inspector",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"puppet-inspector {__version__}")
    parser.set_defaults(command=_open, capture=None, ascii=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, act: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        each = commands.add_parser(name, help=text, description=(act.__doc__ or text).split("\n\n")[0])
        each.set_defaults(command=act)
        return each

    opens = command("open", _open, "look into a capture on the whole terminal (also: no command at all)")
    opens.add_argument("capture", type=Path, nargs="?", help="default: the latest in captures/")
    opens.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")

    demo = command("demo", _demo, "record an embedded lab and tell what happened")
    demo.add_argument("-o", "--output", metavar="CAPTURE", help="record here (default: captures/<UTC time>.sqlite)")
    demo.add_argument("--fault", metavar="NAME", help="break one thing; `help` lists what can be broken")
    demo.add_argument("--json", action="store_true", help="the runs as JSON")

    proxy = command("proxy", _proxy, "the proxy, between agents and their master")
    proxy.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="as for mitmdump (README)")
    proxy.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes on the port, each for some addresses (default: 1)",
    )
    proxy.add_argument("--user", metavar="NAME", help="started as root: go on as this user, before anything is read")

    run = command("run", _run, "run this host's agent once through the proxy")
    run.add_argument("-o", "--output", metavar="CAPTURE", help="record here (default: captures/<UTC time>.sqlite)")
    run.add_argument("--master", metavar="HOST[:PORT]", help="the master (default: puppet.conf's)")
    run.add_argument("--ssldir", metavar="DIR", help="the agent's ssldir (default: puppet.conf's)")
    run.add_argument("--confdir", metavar="DIR", help="where puppet.conf is (default: the usual places)")
    run.add_argument("--listen", metavar="HOST[:PORT]", help="where to listen (default: where the certname leads to)")
    run.add_argument("--json", action="store_true", help="the runs as JSON, after the agent's own output")
    run.add_argument("agent", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="e.g. -- puppet agent -t")

    runs = command("runs", _runs, "the runs of a capture")
    runs.add_argument("capture", type=Path)
    runs.add_argument("--json", action="store_true", help="as JSON (docs/json/runs.schema.json)")
    _add_filter(runs)

    listing = command("list", _list, "the exchanges of a capture, a line each")
    listing.add_argument("capture", type=Path)
    listing.add_argument("--json", action="store_true", help="as JSON (docs/json/list.schema.json)")
    _add_filter(listing)

    follow = command("follow", _follow, "the lines of a capture while a proxy writes it; ends with Ctrl-C")
    follow.add_argument("capture", type=Path, nargs="?", help="default: the latest in captures/, then every new one")
    follow.add_argument("--all", action="store_true", help="from its beginning, not from its end")
    _add_filter(follow)

    show = command("show", _show, "one exchange or handshake in full")
    show.add_argument("capture", type=Path)
    show.add_argument("seq", type=int, help="its number, as `runs` and `check` give it")
    show.add_argument("--json", action="store_true", help="as JSON (docs/json/show.schema.json)")
    show.add_argument("--with-secrets", action="store_true", help="as they were on the wire, not masked")

    check = command("check", _check, "what deviates from the protocol, why, and what to do")
    check.add_argument("capture", type=Path, nargs="+")
    check.add_argument("--format", choices=("text", "json", "sarif", "junit"), default="text")
    check.add_argument("--json", action="store_true", help="--format json (docs/json/check.schema.json)")
    check.add_argument("--rules", type=Path, metavar="YAML", help="severities, thresholds and what to ignore")
    check.add_argument("--baseline", type=Path, metavar="JSON", help="an earlier check --json: show only what is new")
    check.add_argument(
        "--fail-on",
        choices=("error", "warning", "notice", "never"),
        default="error",
        help="exit with 1 when a finding is at least this bad (default: error)",
    )

    doctor = command("doctor", _doctor, "what is wrong and what to do: in a capture, a directory, at a live master")
    doctor.add_argument("capture", type=Path, nargs="?", help="the verdicts of its runs, worst first")
    doctor.add_argument("--ssldir", type=Path, metavar="DIR", help="look into an agent's ssldir (nothing is changed)")
    doctor.add_argument("--cadir", type=Path, metavar="DIR", help="look into a CA's directory (nothing is changed)")
    doctor.add_argument("--certname", metavar="NAME", help="whose keys, where an ssldir holds several")
    doctor.add_argument("--live", metavar="HOST[:PORT]", help="ask a running master as this host's agents would")
    doctor.add_argument("--cert", type=Path, metavar="PEM", help="with --live: show this certificate")
    doctor.add_argument("--key", type=Path, metavar="PEM", help="with --live: its key")
    doctor.add_argument("--json", action="store_true", help="as JSON (docs/json/doctor.schema.json)")

    bootstrap = command("bootstrap", _bootstrap, "the certificate bootstrap of an agent, rung by rung")
    bootstrap.add_argument("capture", type=Path)
    bootstrap.add_argument("certname", nargs="?", help="the agent, or its address if it said no name (default: all)")
    bootstrap.add_argument("--at", metavar="DATE", help="judge as of this day or moment, 2027-03-02 (default: now)")
    bootstrap.add_argument("--json", action="store_true", help="as JSON (docs/json/bootstrap.schema.json)")

    exports = command("export", _export, "a capture for other tools: mitmproxy's flows, HAR or jsonl")
    exports.add_argument("capture", type=Path)
    exports.add_argument("--format", choices=("flows", "har", "jsonl"), help="default: by FILE's ending, or jsonl")
    exports.add_argument("-o", "--output", type=Path, metavar="FILE", help="a new file (default: standard output)")
    exports.add_argument("--with-secrets", action="store_true", help="as they were on the wire, not masked")
    _add_filter(exports)

    shares = command("share", _share, "a capture to give away: without secrets and names, with the same findings")
    shares.add_argument("capture", type=Path)
    shares.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: CAPTURE-shared.sqlite, beside it")
    shares.add_argument("--json", action="store_true", help="say what was made as JSON")

    imports = command("import", _import, "make a capture from mitmproxy flow files, HAR or jsonl")
    imports.add_argument("files", type=Path, nargs="+", metavar="FILE")
    imports.add_argument("-o", "--output", metavar="CAPTURE", help="default: captures/<UTC time>.sqlite")
    imports.add_argument("--json", action="store_true", help="say what was made as JSON")

    held = command("captures", _captures, "the captures in a directory: when, how large, whose runs, what was found")
    held.add_argument("directory", type=Path, nargs="?", metavar="DIR", help="default: captures/")
    held.add_argument("--json", action="store_true", help="as JSON (docs/json/captures.schema.json)")

    merge = command("merge", _merge, "make one capture of several")
    merge.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE")
    merge.add_argument("-o", "--output", type=Path, required=True, metavar="CAPTURE", help="the new one")
    merge.add_argument("--json", action="store_true", help="say what was made as JSON")

    vacuum = command("vacuum", _vacuum, "make a capture as small as it can be")
    vacuum.add_argument("capture", type=Path)
    vacuum.add_argument("--json", action="store_true", help="say what was saved as JSON")

    provision = command("provision", _provision, "get a certificate that agents trust for the proxy")
    provision.add_argument("name", nargs="?", help="the name that agents will use for the proxy")
    provision.add_argument("--alt-name", action="append", default=[], metavar="NAME", help="further names")
    provision.add_argument("--cadir", type=Path, help="make the certificate with this CA directory's key")
    provision.add_argument("--ca", type=Path, help="preflight: the agents' CA bundle (default: the ssldir's)")
    provision.add_argument("--crl", type=Path, help="preflight: the agents' CRLs (default: the ssldir's)")
    provision.add_argument("--cert", type=Path, help="preflight only: a PEM file with key and certificate")
    provision.add_argument("--execute", action="store_true", help="run this CA host's command, not only print it")
    provision.add_argument("-o", "--output", type=Path, metavar="PEM", help="where to write key and certificate")
    provision.add_argument("--json", action="store_true", help="the preflight as JSON")

    explain = command("explain", _explain, "what an endpoint, a rule or an error message is about")
    explain.add_argument("what", nargs="+", help="a rule (B23), an endpoint (file_metadatas), a request path, or an "
                         "error message as the agent printed it")  # fmt: skip
    explain.add_argument("--json", action="store_true", help="as JSON")

    command("addon", _addon, "print the path of the mitmproxy addon").add_argument(
        "--json", action="store_true", help="as JSON"
    )
    return parser


def _add_filter(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--filter",
        default="",
        metavar="TERMS",
        help="only what all of these hold for: 'phase:catalog status:>=400 agent:web* !rule:B01 words' (README)",
    )


# -- commands -----------------------------------------------------------------------------------------


def _open(arguments: argparse.Namespace) -> int:
    """The terminal inspector: runs, exchanges, findings and the certificate bootstrap of a capture, also while a
    proxy writes it. All keys are under `?`. Marks and notes are kept in a file beside the capture, and an index that
    can be thrown away."""
    from inspector.capture import paths

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InspectorError("This is no terminal.", "Without one: `puppet-inspector runs`, `list`, `check` (--help).")
    # Nothing of what is loaded now is ever garbage: not to look for it saves a tenth of the time to the first screen.
    gc.disable()
    from inspector.tui import app

    return app.run(arguments.capture or paths.newest(), ascii_only=arguments.ascii)


def _demo(arguments: argparse.Namespace) -> int:
    """Start an embedded lab (a master with a real CA, an agent) and the real proxy between them, on
    loopback; then tell the runs and findings of the capture."""
    from inspector import demo

    if arguments.fault == "help":
        _print_rows(("fault", "what it shows"), demo.faults())
        return 0
    capture = demo.record(_output(arguments), arguments.fault, quiet=arguments.json)
    return _tell(capture, as_json=arguments.json)


def _proxy(arguments: argparse.Namespace) -> int:
    """The addon with the same options in a mitmproxy of our own, which has only the parts that a Puppet proxy needs:
    about half of what `mitmdump -w` costs. It has no scripts and no user interface."""
    from inspector.host import privileges
    from inspector.proxy import options
    from inspector.proxy.fast import workers

    given = options.chosen(arguments.set)
    if arguments.user:
        privileges.drop(arguments.user)
    return workers.run(given, arguments.workers)


def _run(arguments: argparse.Namespace) -> int:
    """Start the proxy with this host's own certificate, run the agent through it, pass its output and exit
    status on, and tell what happened."""
    from inspector import wrap

    command = arguments.agent[1:] if arguments.agent[:1] == ["--"] else arguments.agent
    status, capture = wrap.run(
        command,
        output=_output(arguments),
        master=arguments.master,
        ssldir=arguments.ssldir,
        confdir=arguments.confdir,
        listen=arguments.listen,
    )
    _tell(capture, as_json=arguments.json)
    return status


def _runs(arguments: argparse.Namespace) -> int:
    """The runs of a capture: who, which versions, how it ended, phases and findings."""
    return _tell(arguments.capture, as_json=arguments.json, filtered=arguments.filter)


def _list(arguments: argparse.Namespace) -> int:
    """Every exchange, failed handshake and gap of a capture as the proxy prints them, each with its number (for
    `show`) and with all findings that it proves."""
    from inspector.summaries import follow

    found = follow.listed(arguments.capture, arguments.filter)
    if arguments.json:
        _print_json([follow.row(each, run) for each, run, _ in found])
        return 0
    for each, _, line in found:
        print(follow.numbered(each.seq, line))
    return 0


def _follow(arguments: argparse.Namespace) -> int:
    """The proxy's lines while it records: each exchange with its number, and each run that is over with its
    verdict. Also through a pipe, and on another terminal than the proxy's."""
    from inspector.summaries import follow

    for line in follow.follow(arguments.capture, arguments.filter, everything=arguments.all):
        print(line, flush=True)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    """One exchange or failed handshake in full: both TLS legs, headers, bodies, decoded documents. Secrets are
    masked."""
    from inspector.analysis.analyzer import retrace
    from inspector.capture.store import Capture
    from inspector.formats import export, json_output
    from inspector.pages import plain, tabs

    steps: list[Step] = []
    judging: list[int] = []

    def look(step: Step) -> None:
        if step.record.seq == arguments.seq:
            steps.append(step)
        elif step.match and step.match.endpoint.name in tabs.RELATED and step.record.seq < arguments.seq:
            judging.append(step.record.seq)

    _analyze(arguments.capture, look)
    if not steps:
        raise InspectorError(
            f"{arguments.capture} has no record {arguments.seq}.", "`puppet-inspector runs` gives the numbers."
        )
    step = steps[0] if arguments.with_secrets else export.masked(steps[0])
    findings = [each for each in (step.run.findings if step.run else []) if arguments.seq in each.seqs]
    if arguments.json:
        _print_json(json_output.show(step, findings))
        return 0
    own = set(step.run.seqs if step.run else ())
    before = [seq for seq in judging if seq in own][-tabs.MOST_RELATED :]
    with Capture.open(arguments.capture) as capture:
        related = retrace(record for seq in before if (record := capture.record(seq)))
        lines = plain.lines(step, findings, related)
    for line in lines:
        print(line)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    """Every deviation from the protocol, the worst first: what, where, why, and what to do."""
    from inspector.analysis.ruleset import load
    from inspector.formats import formats, json_output
    from inspector.summaries import wording

    ruleset = load(arguments.rules, time.time())
    for warning in ruleset.warnings:
        print(f"puppet-inspector: {warning}", file=sys.stderr)
    runs = _together(arguments.capture, ruleset)
    found = [(capture, run, each) for capture, run in runs for each in run.findings]
    if arguments.baseline:
        found = formats.new(found, formats.baseline(arguments.baseline))
    limit = None if arguments.fail_on == "never" else Severity(arguments.fail_on)
    match "json" if arguments.json else arguments.format:
        case "json":
            _print_json(json_output.check(found))
        case "sarif":
            _print_json(formats.sarif(found))
        case "junit":
            print(formats.junit(found, runs, limit))
        case _:
            known = sum(len(run.findings) for _, run in runs) - len(found)
            ignored = sum(run.ignored for _, run in runs)
            if not known and _print_verdicts([run for _, run in runs]):
                print()
            _print_findings(found, several=len(arguments.capture) > 1)
            told = wording.counts([finding for _, _, finding in found])
            told = told or (
                "nothing new" if known else "no findings" if ignored else "nothing deviates from the protocol"
            )
            told += f"; {known} in {arguments.baseline}, not shown" if known else ""
            print(told + (f"; {ignored} ignored by {arguments.rules}" if ignored else ""))
    return int(limit is not None and any(finding.severity.rank >= limit.rank for _, _, finding in found))


def _doctor(arguments: argparse.Namespace) -> int:
    """What is wrong, why, and what to do now: the verdicts of a capture's runs, the state of an agent's or a CA's
    directory, what a running master would be for this host's agents; or several of them joined. Reads only.
    The exit status is 1 when a run's outcome or anything found is an error (`check` goes by --fail-on, and by its
    findings only)."""
    from inspector.doctor import report
    from inspector.formats import json_output

    capture, directories = arguments.capture, arguments.ssldir or arguments.cadir
    if not (capture or directories or arguments.live):
        raise InspectorError(
            "There is nothing to look at.", "Name a capture, --ssldir DIR, --cadir DIR or --live HOST."
        )
    ailing, number, keys = report.of_capture(capture) if capture else ([], 0, [])
    found = report.of_directories(arguments.ssldir, arguments.cadir, arguments.certname, keys) if directories else []
    if arguments.live:
        found += report.of_master(arguments.live, arguments.ssldir, arguments.cert, arguments.key)
    if arguments.json:
        verdicts = [{"run": each.run.number, "certname": each.run.certname, "runs": each.times,
                     **(json_output.verdict(each.run) or {})} for each in ailing]  # fmt: skip
        _print_json({"verdicts": verdicts, "diagnoses": report.plain(found)})
    else:
        for line in report.lines(ailing, number) if capture else ():
            print(line)
        for line in report.diagnosed(found) if directories or arguments.live else ():
            print(line)
    grave = any(each.rank == Severity.ERROR.rank for each in ailing)
    return int(grave or any(each.severity is Severity.ERROR for each in found))


def _bootstrap(arguments: argparse.Namespace) -> int:
    """The agent's SSL state machine as the wire shows it, a rung a state: what was seen, where it hangs and since
    when, whose keys are whose, and until when what was served will do."""
    from inspector.analysis.analyzer import Analyzer
    from inspector.capture.store import Capture
    from inspector.explain import bootstrap_text
    from inspector.explain.bootstrap import Ladders
    from inspector.summaries import wording

    analyzer, ladders = Analyzer(), Ladders()
    with Capture.open(arguments.capture) as records:
        for record in records.records():
            ladders.add(analyzer.feed(record))
    analyzer.finish()
    names = ladders.names()
    if arguments.certname and arguments.certname not in names:
        near = difflib.get_close_matches(arguments.certname, names, 3) or names[:10]
        raise InspectorError(
            f"{arguments.capture} shows no bootstrap of {arguments.certname!r}.",
            f"It shows {', '.join(map(wording.clean, near))}." if near else "It shows no certificate requests at all.",
        )
    at = _moment(arguments.at) if arguments.at else time.time()
    told = [ladders.of(name, at) for name in ([arguments.certname] if arguments.certname else names)]
    if arguments.json:
        _print_json([bootstrap_text.plain(each) for each in told])
        return 0
    for each in told:
        for line in bootstrap_text.lines(each):
            print(line)
    if not told:
        print("There is no bootstrap in it.")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    """Write the records of a capture for other tools: flows that mitmproxy opens, an HTTP archive (HAR) that browsers
    open, or a line of JSON each (docs/json/export.schema.json). Secrets are masked. `import` reads all of them."""
    from inspector.formats import exporting

    output = arguments.output
    kind = arguments.format or (exporting.format_of(output) if output else "jsonl")
    if kind == "flows" and output is None:
        raise InspectorError("Flows are no text.", "Name a file for them: -o FILE.mitm")
    chosen = exporting.Chosen.by(arguments.capture, arguments.filter)
    if output is None:
        for line in chosen.lines(kind, secrets=arguments.with_secrets):
            print(line)
    else:
        number = chosen.write(kind, output, secrets=arguments.with_secrets)
        masked = "" if arguments.with_secrets else ", with secrets masked (--with-secrets keeps them)"
        print(f"{number} records are in {output}{masked}")
    for note in chosen.notes(kind):
        print(f"puppet-inspector: {note}", file=sys.stderr)
    return 0


def _share(arguments: argparse.Namespace) -> int:
    """Make a capture that says nothing of whose it is and analyses to the same findings. Secrets are masked; certnames,
    host names, addresses, fingerprints, SSH keys and serial numbers replaced, the same by the same everywhere;
    certificates made anew. Names of environments, modules, resources and users stay, and so does what manifests and
    files say otherwise: look through it before you give it away."""
    from inspector.formats.share import share

    capture = arguments.capture
    target = arguments.output or capture.with_name(f"{capture.stem}-shared.sqlite")
    number = share(capture, target, lambda told: print(f"puppet-inspector: {told}", file=sys.stderr))
    if arguments.json:
        _print_json({"capture": str(target), "records": number})
    else:
        print(f"{number} records are in {target}, without secrets and by other names: look through it all the same")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    """Make a capture from mitmproxy's flows, HTTP archives (HAR) and what `export` wrote. What is cut off is taken up
    to there. Flows and foreign archives hold no failed handshakes and no empty connections."""
    from inspector.formats import importing

    target = _output(arguments)
    loaded = importing.load(arguments.files, target)
    if arguments.json:
        _print_json({"capture": str(target), **loaded.counts})
    elif loaded.kinds:
        print(f"{loaded.words} are in {target}")
    for trouble in loaded.troubles:
        print(f"puppet-inspector: {trouble.message}\n  {trouble.hint}", file=sys.stderr)
    return 2 if loaded.troubles else 0


def _captures(arguments: argparse.Namespace) -> int:
    """The captures in a directory, the latest at the end; `open` is one that a proxy is writing, or was killed while
    it wrote. What no index tells yet is read first, which may take a while."""
    from inspector.capture import paths
    from inspector.summaries import inventory, wording

    folder = arguments.directory or paths.FOLDER
    held = [inventory.look(path, _progress) for path in inventory.captures_in(folder)]
    if arguments.json:
        _print_json([each.plain() for each in held])
        return 0
    if held:
        _print_rows(inventory.COLUMNS, [each.row() for each in held])
    size = wording.size(sum(each.size for each in held))
    print(f"{len(held)} capture{'' if len(held) == 1 else 's'} in {folder}, {size}")
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    """Make one capture of several (of one proxy, or of proxies side by side): all records in the order in which they
    ended, each once, numbered anew. A run that several captures show parts of is one run in it."""
    from inspector.capture import merge

    merged = merge.merge(arguments.captures, arguments.output)
    if arguments.json:
        _print_json({"capture": str(arguments.output), **merged._asdict()})
    else:
        twice = f" ({merged.twice} were in several)" if merged.twice else ""
        print(f"{merged.records} records are in {arguments.output}{twice}")
    return 0


def _vacuum(arguments: argparse.Namespace) -> int:
    """Make a capture as small as it can be, without what nothing in it refers to and what a killed proxy left beside
    it. Records keep their numbers, so marks and notes stay good. Not while a proxy writes it."""
    from inspector.capture import merge
    from inspector.summaries import wording

    saved = merge.vacuum(arguments.capture)
    if arguments.json:
        _print_json({"capture": str(arguments.capture), **saved._asdict()})
    else:
        dropped = f"; {saved.dropped} bodies were nobody's" if saved.dropped else ""
        print(f"{arguments.capture}: {wording.size(saved.before)} before, {wording.size(saved.after)} now{dropped}")
    return 0


def _provision(arguments: argparse.Namespace) -> int:
    """Get a certificate for the proxy that agents trust: the right command for this host's CA, or one made
    with a CA directory; then a preflight, the command to try, and how to take it back."""
    from inspector import provision

    result = provision.provision(
        arguments.name,
        alt_names=arguments.alt_name,
        cadir=arguments.cadir,
        ca=arguments.ca,
        crl=arguments.crl,
        cert=arguments.cert,
        output=arguments.output,
        execute=arguments.execute,
    )
    if arguments.json:
        _print_json(result.json())
    else:
        for line in result.lines():
            print(line)
    return 0 if result.ok else 1


def _explain(arguments: argparse.Namespace) -> int:
    """What an endpoint is for, who calls it, who may; what a rule means and what to do; or what an error message
    means that an agent printed."""
    from inspector.explain import reference

    found = reference.explain(" ".join(arguments.what))
    if arguments.json:
        _print_json(found)
    else:
        for title, text in found.items():
            print(f"{title + ':':<10} {text}")
    return 0


def _addon(arguments: argparse.Namespace) -> int:
    """Print the path of the mitmproxy addon: mitmdump -s "$(puppet-inspector addon)"."""
    from inspector import installation

    path = installation.addon()
    print(json.dumps({"addon": str(path)}) if arguments.json else path)
    return 0


# -- shared -------------------------------------------------------------------------------------------


def _progress(line: str) -> None:
    """Say on a terminal why it takes a while; what is printed is not mixed with it."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _moment(text: str) -> float:
    """A day or a moment in ISO 8601 (UTC unless it says otherwise), in seconds since the epoch."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InspectorError(f"{text!r} is no date.", "Write it as 2027-03-02 or 2027-03-02T07:00:00Z.") from error


def _output(arguments: argparse.Namespace) -> Path:
    from inspector.proxy.options import capture_path

    return capture_path(arguments.output or "")


def _analyze(capture: Path, look: Callable[[Step], None]) -> Analyzer:
    from inspector.analysis.analyzer import Analyzer
    from inspector.capture.store import Capture

    analyzer = Analyzer()
    with Capture.open(capture) as records:
        for record in records.records():
            look(analyzer.feed(record))
    analyzer.finish()
    return analyzer


def _together(captures: Sequence[Path], ruleset: Ruleset) -> list[tuple[Path, Run]]:
    """The runs of several captures. One memory for all of them, so that what only several show is seen."""
    from inspector.analysis.analyzer import Analyzer
    from inspector.capture.store import Capture
    from inspector.runs.history import Ledger

    ledger = Ledger()
    analyzers = [Analyzer(ruleset.rules, ruleset.ignores, ledger) for _ in captures]
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Capture.open(path)) for path in captures]
        told = [
            zip(itertools.repeat(analyzer), capture.records())
            for analyzer, capture in zip(analyzers, opened, strict=True)
        ]
        for analyzer, record in heapq.merge(*told, key=lambda each: each[1].ended):
            analyzer.feed(record)
    return [(path, run) for path, analyzer in zip(captures, analyzers, strict=True) for run in analyzer.finish()]


def _tell(capture: Path, *, as_json: bool, filtered: str = "") -> int:
    from inspector.formats import json_output
    from inspector.summaries import filters, follow, wording

    chosen = filters.parse(filtered, follow.latest(capture))
    marked: set[int] = set()

    def mark(step: Step) -> None:
        if chosen.marks(filters.look(step)):
            marked.add(step.record.seq)

    analyzer = _analyze(capture, mark)
    runs = [
        run
        for run in analyzer.runs
        if chosen.matches_run(run, wording.words(run, wording.verdict(run)), marked=not marked.isdisjoint(run.seqs))
    ]
    if as_json:
        numbers = {run.number for run in runs}
        _print_json([each for each in json_output.runs(analyzer) if each["run"] in numbers])
        return 0
    if not runs:
        print(f"No run in {capture} is such." if analyzer.runs else f"There are no runs in {capture}.")
        return 0
    _print_rows(wording.RUN_COLUMNS, [wording.run_row(run) for run in runs], below="phases")
    findings: list[Finding] = [finding for run in runs for finding in run.findings]
    _print_verdicts(runs)
    print(f"{wording.counts(findings)}: puppet-inspector check {capture}" if findings else f"no findings: {capture}")
    return 0


def _print_findings(found: Sequence[tuple[Path, Run, Finding]], *, several: bool) -> None:
    """The worst first; what follows from a run's cause, and what was explained already, in brief."""
    from inspector.analysis import verdicts
    from inspector.rules import rule_of
    from inspector.summaries import wording

    def follows(run: Run, finding: Finding) -> bool:
        verdict = verdicts.verdict(run)
        return verdict is not None and finding.rule in verdict.symptoms

    told = set()
    for capture, run, finding in sorted(found, key=lambda each: (-each[2].severity.rank, follows(each[1], each[2]))):
        rule = rule_of(finding.rule)
        said = rule.id, rule.remedy_for(run)
        where = f"{capture.name} " if several else ""
        for line in wording.finding(finding, rule, run, where, brief=follows(run, finding) or said in told):
            print(line)
        told.add(said)


def _print_verdicts(runs: Iterable[Run]) -> int:
    """Returns how many there are."""
    from inspector.summaries import wording

    told = 0
    for run in runs:
        if (verdict := wording.verdict(run)) is not None:
            told += 1
            print(f"run {run.number}: {verdict[0]}")
            print(f"  do: {verdict[1]}")
    return told


def _print_json(value: Any) -> None:
    from inspector.summaries import wording

    print(wording.as_json(value))


def _print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], below: str = "") -> None:
    """A table: drawn on a terminal, tab-separated in a pipe. The long column ``below`` gets lines of its own."""
    if not sys.stdout.isatty():
        print("\t".join(columns))
        for row in rows:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    shown = [at for at, column in enumerate(columns) if column != below]
    for at in shown:
        table.add_column(columns[at], no_wrap=at != shown[-1], overflow="ellipsis" if at != shown[-1] else "fold")
    for row in rows:
        table.add_row(*(Text(row[at]) for at in shown))
    console = Console()
    console.print(table)
    for row in rows if below else ():
        console.print(Text(f"run {row[0]}: {row[columns.index(below)]}", style="dim"), soft_wrap=False)


if __name__ == "__main__":
    raise SystemExit(main())
