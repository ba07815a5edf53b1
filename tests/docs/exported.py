"""The pictures in docs/share.md, drawn from what is exported: ``python -m tests.docs.exported``.

They are no pictures of Perfetto, a collector's view or Grafana, which are not here, and say so: each draws what is in
the exported file as those show it, so that a reader knows what to expect. Only tshark is the program itself.
"""

from __future__ import annotations

import json
import re
import tempfile
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from inspector.formats import exporting
from tests.docs.pictures import write
from tests.support.places import DOCS, SAMPLES
from tests.support.programs import tshark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SAMPLE = SAMPLES / "compile-error.sqlite"
WIDTH, MARGIN, LABELS = 1000, 12, 190
"""Of a picture, around it, and of what stands at the left of an axis, in pixels."""
ROW = 22
LETTER = 6.3
"""Width of a letter, about."""
COLOURS = {
    "run": "#37474f", "phase": "#78909c", "request": "#1e6fb8", "connection": "#8e6bb0", "part": "#8fbfe8",
    "SERVER": "#1e6fb8", "CLIENT": "#c77d22", "INTERNAL": "#78909c",
}  # fmt: skip
LIGHT = frozenset({"part"})
"""Those that are written on in black."""
RED = "#b3261e"
STYLE = (
    "text{font:11.5px Liberation Sans,Arial,sans-serif;fill:#222}.b{font-weight:bold}.light{fill:#fff}"
    f".tick{{fill:#667;text-anchor:middle}}path.tick{{stroke:#dde}}.mark{{fill:{RED};font-weight:bold}}"
    ".end{fill:#667;text-anchor:end}.code{font:10.5px Liberation Mono,monospace;fill:#345}"
    ".flow{stroke:#333;stroke-dasharray:2 2;fill:none}.panel{fill:#f4f6f9;stroke:#c5ccd6}"
)
COLUMNS = 96
"""Of the terminal."""


def trace() -> str:
    """What ``export -o run.trace.json`` wrote, as viewers of trace events lay it out."""
    events = _exported("trace")["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    axis = Axis.of([(event["ts"] / 1e3, (event["ts"] + event["dur"]) / 1e3) for event in slices], LABELS)
    names = {(event["name"], event["tid"]): event["args"]["name"] for event in events if event["ph"] == "M"
             and "name" in event["args"]}  # fmt: skip
    order = {event["tid"]: event["args"]["sort_index"] for event in events if event["name"] == "thread_sort_index"}
    drawn, y = [], 30
    tops: dict[int, int] = {}
    bottoms: dict[int, int] = {}
    for process in sorted({event["pid"] for event in slices}):
        drawn.append(_text(MARGIN, y + 15, f"process {_of(names, 'process_name', events, process)}", "b"))
        y += ROW
        threads = {event["tid"] for event in slices if event["pid"] == process}
        for thread in sorted(threads, key=lambda thread: (order.get(thread, 0), thread)):
            tops[thread] = y
            drawn.append(_text(MARGIN + 10, y + 15, names["thread_name", thread]))
            within: list[float] = []
            deepest = 0
            for event in sorted((e for e in slices if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"])):
                begin, end = event["ts"], event["ts"] + event["dur"]
                within = [other for other in within if other > begin]
                depth, within = len(within), [*within, end]
                deepest = max(deepest, depth)
                kind = event["cat"].partition(",")[0]
                drawn.append(_bar(axis, (begin / 1e3, end / 1e3), y + depth * ROW, kind, event["name"]))
            bottoms[thread] = y + (deepest + 1) * ROW
            y += (deepest + 1) * ROW + (14 if any(e["ph"] == "i" and e["tid"] == thread for e in events) else 6)
    marks: dict[tuple[int, float], list[str]] = {}
    for event in events:
        if event["ph"] == "i" and event["tid"] in tops:
            marks.setdefault((event["tid"], event["ts"] / 1e3), []).append(event["name"].split()[0])
        if event["ph"] == "s":
            end = next(e for e in events if e["ph"] == "f" and e["id"] == event["id"])
            x = axis.x(event["ts"] / 1e3)
            drawn.append(f'<path class="flow" d="M{x:.1f} {tops[event["tid"]] + ROW}V{tops[end["tid"]] - 2}"/>')
    drawn += [_mark(axis.x(at), bottoms[thread], " ".join(rules)) for (thread, at), rules in marks.items()]
    return _picture("Trace events of one run, drawn from the exported file", y, [*axis.drawn(y), *drawn])


def spans() -> str:
    """What ``export -o run.otlp.json`` wrote, as collectors show a trace."""
    (resource,) = _exported("otlp")["resourceSpans"]
    ((*found,),) = (scope["spans"] for scope in resource["scopeSpans"])
    left = 400
    times = {span["spanId"]: (int(span["startTimeUnixNano"]) / 1e6, int(span["endTimeUnixNano"]) / 1e6)
             for span in found}  # fmt: skip
    axis = Axis.of(times.values(), left)
    drawn, y = [], 30
    for span, depth in _tree(found):
        kind = {2: "SERVER", 3: "CLIENT"}.get(span["kind"], "INTERNAL")
        begin, end = times[span["spanId"]]
        label = span["name"] if kind == "INTERNAL" else f"{kind} {span['name']}"
        drawn.append(_text(MARGIN + 14 * depth, y + 15, _cut(label, left - 14 * depth - MARGIN)))
        drawn.append(_bar(axis, (begin, end), y, kind, f"{end - begin:.0f} ms"))
        rules: dict[float, list[str]] = {}
        for event in span.get("events", ()):
            about = {each["key"]: each["value"].get("stringValue") for each in event["attributes"]}
            rules.setdefault(int(event["timeUnixNano"]) / 1e6, []).append(str(about["puppet.rule"]))
        drawn += [_mark(axis.x(at) + 8, y + 5, " ".join(names)) for at, names in rules.items()]
        y += ROW
    return _picture("Spans of one run, drawn from the exported file", y + 6, [*axis.drawn(y), *drawn])


def dashboard() -> str:
    """The panels of docs/examples/grafana.json where Grafana puts them, with the metrics that each shows."""
    board = json.loads((DOCS / "examples" / "grafana.json").read_text(encoding="utf-8"))
    cell, height, drawn, bottom = (WIDTH - 2 * MARGIN) / 24, 9, [], 0
    for panel in board["panels"]:
        place = panel["gridPos"]
        x, y = MARGIN + place["x"] * cell, 34 + place["y"] * height
        width, tall = place["w"] * cell - 6, place["h"] * height - 6
        bottom = max(bottom, int(y + tall))
        drawn.append(f'<rect class="panel" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{tall}" rx="4"/>')
        drawn.append(_text(x + 9, y + 18, panel["title"], "b"))
        drawn.append(_text(x + width - 9, y + 18, panel["type"], "end"))
        asked = " ".join(target["expr"] for target in panel["targets"])
        metrics = dict.fromkeys(re.findall(r"\b(?:puppet_inspector|process)_\w+", asked))
        drawn += [_text(x + 9, y + 33 + 13 * at, metric, "code") for at, metric in enumerate(metrics)]
    return _picture(board["title"], bottom + MARGIN, [_text(MARGIN, 22, board["title"], "b"), *drawn])


def packets() -> str:
    """What tshark prints of ``export -o run.pcapng``."""
    names = ("frame.time_relative", "http.response.code", "http.request.method", "frame.comment",
             "http.request.uri.path")  # fmt: skip
    asked = [word for name in names for word in ("-e", name)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pcapng"
        exporting.Chosen.by(SAMPLE).write("pcapng", path)
        lines = tshark(path, "-Y", "http", "-T", "fields", *asked).expandtabs(8).splitlines()
    command = f"# tshark -r run.pcapng -Y http -T fields {' '.join(asked)}"
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text(command, style="bold"))
    for line in lines:
        console.print(Text(line, style="bold #ff5370" if " 500" in line else "#82aaff"))
    return console.export_svg(title="tshark", unique_id="packets")


PICTURES: dict[str, Callable[[], str]] = {
    "share-trace": trace,
    "share-spans": spans,
    "share-dashboard": dashboard,
    "share-packets": packets,
}
"""By the name of the file."""


# -- parts of pictures ------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """Milliseconds, from left to right."""

    begin: float
    end: float
    left: float

    @classmethod
    def of(cls, times: Iterable[tuple[float, float]], left: float) -> Axis:
        """An axis on which all these are."""
        times = list(times)
        return cls(min(begin for begin, _ in times), max(end for _, end in times), left)

    def x(self, at: float) -> float:
        return self.left + (WIDTH - MARGIN - self.left) * (at - self.begin) / (self.end - self.begin)

    def drawn(self, bottom: float) -> list[str]:
        """Draw lines at every 100 milliseconds."""
        made = []
        for number in range(int((self.end - self.begin) / 100) + 1):
            x = self.x(self.begin + number * 100)
            made.append(f'<path class="tick" d="M{x:.1f} 24V{bottom}"/>')
            made.append(_text(min(x, WIDTH - 26), 18, f"{number * 100} ms", "tick"))
        return made


def _bar(axis: Axis, times: tuple[float, float], y: float, kind: str, name: str) -> str:
    x, end = map(axis.x, times)
    shown = _cut(name, end - x - 6)
    text = _text(x + 3, y + 14, shown, "dark" if kind in LIGHT else "light") if shown else ""
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{max(1.0, end - x - 0.5):.1f}" height="{ROW - 2}" rx="2" '
        f'fill="{COLOURS[kind]}"/>{text}'
    )


def _mark(x: float, y: float, name: str) -> str:
    return f'<path fill="{RED}" d="M{x:.1f} {y}l5 9h-10z"/>' + _text(x + 7, y + 9, name, "mark")


def _text(x: float, y: float, text: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _cut(text: str, room: float) -> str:
    """Return as much of a text as there is room for; nothing if that is no use."""
    most = int(room / LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…" if most > 3 else ""


def _picture(title: str, height: float, drawn: Sequence[str]) -> str:
    size = f"0 0 {WIDTH} {height:.0f}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" aria-label="{escape(title)}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>',
            *drawn,
            "</svg>",
            "",
        ]
    )


def _exported(kind: str) -> Any:
    return json.loads("".join(exporting.Chosen.by(SAMPLE).lines(kind)))


def _of(names: dict[tuple[str, int], str], what: str, events: list[dict[str, Any]], process: int) -> str:
    thread = next(event["tid"] for event in events if event["name"] == what and event["pid"] == process)
    return names[what, thread]


def _tree(found: Sequence[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], int]]:
    """Yield spans, those within another one below it, with how deep they are."""
    inner: dict[str, list[dict[str, Any]]] = {}
    for span in found:
        inner.setdefault(span.get("parentSpanId", ""), []).append(span)
    waiting = [(span, 0) for span in reversed(inner[""])]
    while waiting:
        span, depth = waiting.pop()
        yield span, depth
        below = sorted(inner.get(span["spanId"], ()), key=lambda each: int(each["startTimeUnixNano"]))
        waiting += [(each, depth + 1) for each in reversed(below)]


def draw(folder: Path) -> None:
    """Draw them all."""
    for name, drawn in PICTURES.items():
        write(folder / f"{name}.svg", drawn())


if __name__ == "__main__":
    draw(DOCS)
