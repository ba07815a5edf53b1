"""Draws docs/console.svg from a real demonstration: ``python docs/picture.py``."""

from __future__ import annotations

import re
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from inspector.cli import demo


def main() -> None:
    """Record, leave out what differs from machine to machine, draw."""
    out = StringIO()
    with tempfile.TemporaryDirectory() as directory, redirect_stdout(out):
        demo.record(Path(directory) / "demo.sqlite", "cloned-certname")
    lines = [line for line in out.getvalue().splitlines() if re.match(r"[0-9:.]{12} |== |run [0-9]+: ", line)]
    keep = [line for line in lines if not re.search(r" (plugins|files) +GET", line)]
    console = Console(record=True, width=150, file=StringIO())
    for line in keep:
        told = re.match(r"== |run ", line)
        text = Text(line, no_wrap=not told)
        text.highlight_regex(r"\b[BT][0-9]{2}\b", "bold red")
        text.highlight_regex(r"(4|5)[0-9]{2}(?= +[0-9.]+ k?B)", "yellow")
        text.highlight_regex(r"^(==|run).*", "bold")
        console.print(text, overflow="fold" if told else "ellipsis", crop=True)
    svg = console.export_svg(title='mitmdump -s "$(puppet-inspector addon)"')
    # No fonts from elsewhere: a picture must not fetch anything.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    (Path(__file__).parent / "console.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
