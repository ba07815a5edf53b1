"""``puppet-inspector run --on HOST -- puppet agent -t``: the same on another node, over OpenSSH's own client.

One connection does all of it. A script for ``sh`` reads the program from its input, runs it, and sends back what it
prints and a copy of the capture; whatever ends it, it removes its directory. What comes from there is hostile data: it
is bounded, cleaned for the terminal, and written to the one file that is named here.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import platform
import secrets
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TextIO

from inspector import __version__, inputs, installation, regex
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.cli.relay import same, signals
from inspector.errors import InspectorError
from inspector.formats import files
from inspector.text import as_json, beginning, brief, clean, clean_lines, size

if TYPE_CHECKING:
    from collections.abc import Sequence

SSH = ("ssh", "-T", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "ServerAliveInterval=15", "-o",
       "ServerAliveCountMax=4", "--")  # fmt: skip
_HOST = regex.compile(r"(?:ssh://)?(?:[A-Za-z0-9_.+\\][A-Za-z0-9_.+\\-]*@)?[A-Za-z0-9_.:%\[\]][A-Za-z0-9_.:%\[\]-]*")
"""A destination that ssh takes; none that it could take for an option, or a shell for more than a word."""
_DIRECTORY = regex.compile(r"/[\w./+-]+/puppet-inspector-on\.\d+\.\w+")

PRINTED, CAPTURE = 256 << 20, 2 << 30
"""Bytes that the node may print, and send as a capture."""
LINE, PIECE = 16 << 10, 64 << 10
"""Bytes of a line that are waited for, and that are read at once."""
REASON = 400
"""Characters of why a program cannot be used there."""
BEAT, SILENCE = 10, 60
"""Seconds between two signs of life that are sent, and without one after which the node ends the run."""
PATIENCE = 60.0
"""Seconds in which the node may end a run that Ctrl-C ended, and what it began."""
_NUMBER, _MACHINE = regex.compile(r"\d{1,12}"), regex.compile(r"\w{1,32}")
_BUILT_FOR = regex.compile(r"-linux-(\w+)$")
"""The machine in the name of a build."""
_PAYLOAD = b"\n\x1f\x8b\x08"
"""Where the archive begins in a build that unpacks itself."""
_COLOUR = regex.compile(r"\x1b\[(?:[01](?:;3[1-7])?)?m")
"""Puppet's colours, which are passed on."""

_READ = "sh -c 'eval \"$(dd bs=1 count={} 2>/dev/null)\"' puppet-inspector-on"
"""Starts a script of so many bytes that comes through standard input: any login shell reads this in the same way, and
nothing of the script is on a command line, which others of the node could see and sudo would log."""

_AS_ROOT = """\
if [ "$(id -u)" = 0 ]; then exec {read}
elif sudo -n sh -c : </dev/null >/dev/null 2>&1; then exec sudo -n {read}
fi
printf '%s stranger %s\\n' {nonce} "$(id -un)"
exit 2"""

_SCRIPT = r"""mask=$(umask)
umask 077
say() { printf '%s %s\n' @NONCE@ "$*"; }
fail() { say "failed $1 $(printf %s "$2" | head -c 1000 | tr '\n' ' ')"; exit 2; }
dir='' watcher=''
clean() {
    trap '' HUP INT TERM PIPE
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    [ -z "$dir" ] || rm -rf "$dir"
    [ -e "$dir" ] || say gone 2>/dev/null
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 141' PIPE
exec 3<&0 </dev/null

# What was killed together with its watcher, or by a reboot, is removed now. -O: nobody else can have made it.
for place in "${TMPDIR:-/var/cache}" /var/cache /var/tmp /tmp; do
    for old in "$place"/puppet-inspector-on.*.*; do
        [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] || continue
        pid=${old##*/puppet-inspector-on.}
        pid=${pid%%.*}
        grep -q puppet-inspector-on "/proc/$pid/cmdline" 2>/dev/null || rm -rf "$old"
    done
done
# A place where programs may be executed (/tmp often is not), with room for a few bytes at least.
for place in "${TMPDIR:-/var/cache}" /var/cache /var/tmp /tmp; do
    dir=$(mktemp -d "$place/puppet-inspector-on.$$.XXXXXXXX" 2>/dev/null) || { dir=''; continue; }
    { printf '#!/bin/sh\n' >"$dir/try" && chmod 700 "$dir/try" && "$dir/try"; } 2>/dev/null && rm "$dir/try" && break
    rm -rf "$dir"
    dir=''
done
[ -n "$dir" ] || fail place ''

say "ready $(uname -m) $dir $(getconf GNU_LIBC_VERSION 2>/dev/null || echo 'no glibc')"
IFS= read -r size <&3 && [ -n "$size" ] || exit 2
error=$({ timeout 3600 head -c "$size" <&3 | gzip -dc | tar -xof - -C "$dir"; } 2>&1) || fail unpack "$error"
program=$dir/puppet-inspector
error=$("$program" --version 2>&1 >/dev/null) || fail start "$error"

stop() { kill "$(cat "$dir/pid")" 2>/dev/null; }
watch() {
    while :; do
        case $(timeout @SILENCE@ dd bs=1 count=1 2>/dev/null) in
            .) ;;
            q) stop ;;
            *) break ;;
        esac
    done
    # The connection is lost. The script is ended first, so that it sends nothing when its run is over. If it was
    # killed, this is what is left to clean up.
    kill $$ 2>/dev/null
    stop
    for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        kill -0 "$(cat "$dir/pid" 2>/dev/null)" 2>/dev/null || break
        sleep 1
    done
    kill -KILL "$(cat "$dir/pid")" 2>/dev/null
    rm -rf "$dir"
}
watch <&3 >/dev/null 2>&1 &
watcher=$!
# Packages of Puppet's own have their programs where only login shells look.
PATH=$PATH:/opt/puppetlabs/bin
sh -c 'echo $$ >"$0/pid"; umask "$1"; shift; exec "$@"' "$dir" "$mask" \
    "$program" run -o "$dir/run.sqlite" @WORDS@ 3<&- @STREAMS@
status=$?
rm -f "$dir/pid"
size=none
if [ -e "$dir/run.sqlite" ]; then
    size=failed
    @COPY@ && size=$(wc -c <"$dir/@COPIED@")
fi
say "done $status" $size
case $size in none | failed) ;; *) cat "$dir/@COPIED@" ;; esac
exit "$status" """
_SHARE = '"$program" share -o "$dir/shared.sqlite" "$dir/run.sqlite" >/dev/null 3<&-'


class Wanted(NamedTuple):
    """What is to be done on a node."""

    host: str
    program: Path | None
    """The build to bring there; None: the one that runs, or one in dist/."""
    words: Sequence[str]
    """The options and the command for ``run`` there."""
    output: Path
    """The copy to write here."""
    raw: bool
    """Whether that is the capture itself instead of a shared copy."""
    as_json: bool


def run(wanted: Wanted) -> int:
    """Do a run on another node; return its exit status. Raises InspectorError."""
    if not _HOST.fullmatch(wanted.host):
        raise InspectorError(
            f"{wanted.host!r} is no destination for ssh.", "Name a host as for ssh: --on HOST, or --on USER@HOST."
        )
    files.must_be_new(wanted.output, files.OPTION)
    if wanted.program:
        inputs.opened(wanted.program).close()  # before anything is connected
    if shutil.which(SSH[0]) is None:
        raise InspectorError(
            "OpenSSH's client ssh is not installed on this host.", "Install it: openssh-client, or openssh-clients."
        )
    return _Session(wanted).run()


class _Lost(Exception):
    """The connection ended before what was to come."""


class _Screen:
    """One of our outputs, for what a node prints: in whole lines, as they come, and clean."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = b""
        self.names: Sequence[tuple[bytes, bytes]] = ()
        """What is there, and what is written in its place."""

    def write(self, data: bytes) -> None:
        self._rest += data
        end = self._rest.rfind(b"\n") + 1
        if len(self._rest) - end > LINE:
            end = len(self._rest)
        self._print(self._rest[:end])
        self._rest = self._rest[end:]

    def finish(self) -> None:
        """Print what no end of a line follows."""
        self._print(self._rest)
        self._rest = b""

    def _print(self, data: bytes) -> None:
        for there, here in self.names:
            data = data.replace(there, here)
        text, done = self._decoder.decode(data), 0
        for part in _COLOUR.finditer(text):
            self._stream.write(clean_lines(text[done : part.start()]) + part[0])
            done = part.end()
        self._stream.write(clean_lines(text[done:]))
        self._stream.flush()


class _Session:
    """One connection, and the script at its other end."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        nonce = secrets.token_hex(16)
        self._marker = f"{nonce} ".encode()
        """Begins a line of the script's: what the run prints cannot have it."""
        self._script = _scripts(wanted, nonce)
        self._buffer = bytearray()
        self._directory, self._there, self._made = "", "", ""
        self._printed, self._stopped = 0, 0
        self._running, self._over = False, threading.Event()
        self._deadline = threading.Timer(PATIENCE, self._hang_up)
        self._deadline.daemon = True
        self._out, self._err = _Screen(sys.stdout), _Screen(sys.stderr)
        sys.stdout.flush()
        # ssh would end with the terminal's Ctrl-C, and nothing could be brought back.
        self._ssh = subprocess.Popen(
            ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *SSH, wanted.host, _READ.format(len(self._script[0]))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        self._input, self._output, self._errors = (
            each.fileno() for each in (self._ssh.stdin, self._ssh.stdout, self._ssh.stderr) if each
        )

    def run(self) -> int:
        """Do it all; return the exit status. Raises InspectorError."""
        errors = threading.Thread(target=self._pass_errors, name="errors of ssh", daemon=True)
        errors.start()
        with signals(self._stop):
            try:
                status = self._status()
            except _Lost:
                status = None
            finally:
                self._end(errors)
        if self._made:
            print(f"puppet-inspector: {self._made}", file=sys.stderr)
        if status is None and not self._stopped:
            raise self._explained()
        return self._stopped or status or 0

    def _status(self) -> int:
        """Do it, up to its end; return the exit status of the run. Raises _Lost, InspectorError."""
        self._send(b"".join(self._script))
        match self._next(self._err):
            case ["ready", machine, directory, *libc]:
                self._there = brief(f"{machine}, {' '.join(libc)}")
                self._directory = directory if _DIRECTORY.fullmatch(directory) else ""
            case ["stranger", *user]:
                raise InspectorError(
                    f"{brief(' '.join(user))} is not root on {self._wanted.host}, and sudo asks for a password there.",
                    "Log in as root (--on root@HOST), or allow `sudo -n sh` there.",
                )
            case words:
                raise self._failed(words, "")
        program = _build_for(machine, self._wanted)
        with contextlib.closing(_packed(program)) as packed:
            self._bring(packed)
        self._translate()
        words = self._next(self._out)
        if words == ["gone"]:  # it was ended there
            raise _Lost
        if words[:1] != ["done"]:
            raise self._failed(words, program.name)
        return self._receive(words[1:])

    # -- what goes there -----------------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        with contextlib.suppress(OSError):  # whoever does not read it any more says why
            while rest:
                rest = rest[os.write(self._input, rest) :]

    def _bring(self, packed: IO[bytes]) -> None:
        """Send the program, and then signs of life until it is over."""
        begin = packed.tell()
        count = packed.seek(0, os.SEEK_END) - begin
        packed.seek(begin)
        if count > PIECE:
            print(f"puppet-inspector: brings {size(count)} to {self._wanted.host}", file=sys.stderr, flush=True)
        self._send(b"%d\n" % count)
        while data := packed.read(PIECE):
            self._send(data)
        self._running = True
        threading.Thread(target=self._live, name="signs of life", daemon=True).start()

    def _live(self) -> None:
        while not self._over.wait(BEAT):
            self._send(b".")

    def _stop(self, number: int, _frame: object) -> None:
        """End the run there as a signal ends it here: what it printed and recorded until then still comes. Another
        signal, or one before it began, ends the connection, and with it what is there."""
        if self._stopped or not self._running:
            self._stopped = self._stopped or 128 + number
            self._hang_up()
            return
        self._stopped = 128 + number  # first: another signal may interrupt this
        self._send(b"q")
        self._deadline.start()

    def _hang_up(self) -> None:
        self._ssh.terminate()

    def _end(self, errors: threading.Thread) -> None:
        """End the connection, if it is not over, and wait for it."""
        self._over.set()
        self._deadline.cancel()
        with contextlib.suppress(OSError):
            self._ssh.stdin.close()  # type: ignore[union-attr]
        self._ssh.stdout.close()  # type: ignore[union-attr]
        try:
            self._ssh.wait(BEAT)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            self._ssh.wait()
        errors.join(1)  # a connection that ssh shares with others (ControlPersist) may leave it open
        if not errors.is_alive():
            self._ssh.stderr.close()  # type: ignore[union-attr]
        self._out.finish()
        self._err.finish()

    # -- what comes from there -----------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Whether more has come."""
        data = os.read(self._output, PIECE)
        self._buffer += data
        return bool(data)

    def _pass_on(self, screen: _Screen, data: bytes) -> None:
        self._printed += len(data)
        if self._printed > PRINTED:
            self._hang_up()
        else:
            screen.write(data)

    def _next(self, screen: _Screen) -> list[str]:
        """Pass on what is printed up to the script's next line; return its words. Raises _Lost, InspectorError."""
        buffer, marker, more = self._buffer, self._marker, True
        while (at := buffer.find(marker)) < 0:
            # What could be the beginning of the line waits.
            held = next((n for n in range(len(marker) - 1, 0, -1) if more and buffer.endswith(marker[:n])), 0)
            end = len(buffer) - held
            self._pass_on(screen, bytes(buffer[:end]))
            del buffer[:end]
            if not more:
                raise _Lost
            more = self._more()
        self._pass_on(screen, bytes(buffer[:at]))
        del buffer[: at + len(marker)]
        while (end := buffer.find(b"\n")) < 0:
            if len(buffer) > LINE:
                raise self._strange()
            if not self._more():
                raise _Lost
        line = bytes(buffer[:end])
        del buffer[: end + 1]
        return clean(line.decode("utf-8", "backslashreplace")).split()

    def _pass_errors(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._errors, PIECE):
                self._pass_on(self._err, data)

    def _translate(self) -> None:
        """Let what the run prints name what is here in place of what was there."""
        if self._directory:
            output = str(self._wanted.output)
            copy = as_json(output)[1:-1] if self._wanted.as_json else shlex.quote(output)
            names = {"puppet-inspector": installation.typed(), "run.sqlite": copy}
            for screen in (self._out, self._err):
                screen.names = [
                    (f"{self._directory}/{there}".encode(), here.encode(errors="surrogateescape"))
                    for there, here in names.items()
                ]

    def _receive(self, words: list[str]) -> int:
        """Write the copy that follows; return the status of the run. Raises _Lost, InspectorError."""
        match words:
            case [status, "none"] if _NUMBER.fullmatch(status):  # the run did not begin, and said why
                return min(int(status), 255)
            case [status, "failed"]:
                raise InspectorError(
                    f"No copy of the capture could be made on {self._wanted.host}.", "It said why; --raw needs no room."
                )
            case [status, count] if _NUMBER.fullmatch(status) and _NUMBER.fullmatch(count):
                self._write(int(count))
            case _:
                raise self._strange()
        if self._next(self._err) != ["gone"]:
            raise self._strange()
        return min(int(status), 255)

    def _write(self, rest: int) -> None:
        """Write what follows as a capture. Raises _Lost, InspectorError."""
        output = self._wanted.output
        if rest > CAPTURE:
            raise InspectorError(
                f"The capture of {self._wanted.host} has {size(rest)}; no more than {size(CAPTURE)} are taken.",
                "Record there: `puppet-inspector run`.",
            )
        paths.make_folder(output.parent)
        with files.created(output) as file:
            while rest:
                if not self._buffer and not self._more():
                    raise _Lost
                data = bytes(self._buffer[:rest])
                del self._buffer[:rest]
                file.write(data)
                rest -= len(data)
            file.flush()
            Capture.open(output).close()  # raises what every command says of a file that is none
        what = "capture, with its secrets and names," if self._wanted.raw else "copy without secrets and names"
        self._made = f"the {what} is {clean(str(output))}"

    # -- what went wrong -----------------------------------------------------------------------------------------

    def _failed(self, words: list[str], program: str) -> InspectorError:
        host = self._wanted.host
        match words:
            case ["failed", "place", *_]:
                return InspectorError(
                    f"No directory of {host} can take a program: $TMPDIR or /var/cache, /var/tmp, /tmp.",
                    "Free some space in one that is not mounted noexec.",
                )
            case ["failed", "unpack", *text]:
                return InspectorError(
                    f"The program cannot be unpacked on {host}: {beginning(' '.join(text), REASON)}.",
                    f"Free 150 MB in {Path(self._directory).parent}.",
                )
            case ["failed", "start", *text]:
                return InspectorError(
                    f"{program} does not start on {host} ({self._there}): {beginning(' '.join(text), REASON)}.",
                    "Build it on a host like that one (`make onefile`), and pass it: --program FILE.",
                )
        return self._strange()

    def _strange(self) -> InspectorError:
        return InspectorError(f"{self._wanted.host} sent what its script cannot have sent.", "Is it sound?")

    def _explained(self) -> InspectorError:
        """Return why the connection ended."""
        host = self._wanted.host
        if self._printed > PRINTED:
            return InspectorError(f"{host} printed more than {size(PRINTED)}.", "The run there is ended.")
        if not self._there:
            status = self._ssh.returncode
            return InspectorError(
                f"ssh could start nothing on {host}: exit status {status}.", f"First make `ssh {host} id` work."
            )
        return InspectorError(
            f"The connection with {host} was lost.",
            "Within a minute the node ends the run, and removes what was brought. What a kill or a reboot leaves there "
            f"(puppet-inspector-on.*), the next `run --on {host}` removes.",
        )


def _scripts(wanted: Wanted, nonce: str) -> tuple[bytes, bytes]:
    """Return what a node reads first: how it becomes root, and what it does then."""
    values = {
        "NONCE": nonce, "SILENCE": str(SILENCE), "STREAMS": "2>&1" if same(1, 2) else "",
        "COPIED": "run.sqlite" if wanted.raw else "shared.sqlite", "COPY": ":" if wanted.raw else _SHARE,
        "WORDS": shlex.join(wanted.words),
    }  # fmt: skip
    text = _SCRIPT
    for name, value in values.items():  # the words last: they may have anything
        text = text.replace(f"@{name}@", value)
    script = text.encode(errors="surrogateescape")
    return _AS_ROOT.format(read=_READ.format(len(script)), nonce=nonce).encode(), script


def _build_for(machine: str, wanted: Wanted) -> Path:
    """Return the build to bring to a machine of this kind: a file, or the directory of the one that runs. Raises
    InspectorError."""
    if wanted.program:
        built_for = _BUILT_FOR.search(wanted.program.name)
        if built_for and built_for[1] != machine:
            raise InspectorError(
                f"{wanted.program.name} is for {built_for[1]}, but {wanted.host} is {brief(machine)}.",
                "Build it on a host like that one (`make onefile`), and pass it: --program FILE.",
            )
        return wanted.program
    if installation.ONE_FILE and machine == platform.machine():
        return Path(sys.executable).parent
    built = installation.PACKAGE.parent / "dist" / f"puppet-inspector-{__version__}-linux-{machine}"
    if _MACHINE.fullmatch(machine) and built.is_file():
        return built
    raise InspectorError(
        f"There is no build here for {wanted.host}, which is {brief(machine)}.",
        "Build it on a host like that one (`make onefile`), and pass it: --program FILE.",
    )


def _packed(program: Path) -> IO[bytes]:
    """Return the archive of a program, at its beginning. Raises OSError."""
    if program.is_file():
        file = inputs.opened(program)
        if (at := file.read(PIECE).find(_PAYLOAD)) > 0:
            file.seek(at + 1)
            return file
        file.close()
    made = tempfile.TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1, format=tarfile.GNU_FORMAT) as tar:
        if program.is_dir():
            tar.add(program, ".")
        else:
            tar.add(program, "puppet-inspector")
    made.seek(0)
    return made
