"""Every screen of the inspector, of a recorded site: ``python -m tests.real.real_site.screens CAPTURE FOLDER``.

Pictures at 80x24 and 120x40, to look at, and one page that shows them all.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs import pictures

SIZES = ((80, 24), (120, 40))
RUN = ("r", "home", "enter")
"""Opens the last run."""
SCREENS: dict[str, tuple[str, ...]] = {
    "causes": (),
    "runs": ("r",),
    "findings": ("F",),
    "bootstrap": ("B",),
    "run": RUN,
    "sequence": (*RUN, "w"),
    "catalog": (*RUN, "C"),
    "catalog-tree": (*RUN, "C", "w"),
    "relations": (*RUN, "C", *["down"] * 6, "r"),
    "files": (*RUN, "F"),
    "connections": (*RUN, "O"),
    "exchange": (*RUN, *["down"] * 5, "enter"),
    "differences": (*RUN, "d"),
    "help": (*RUN, "question_mark"),
}


def main() -> None:
    """Draw them."""
    capture, folder = (Path(word).resolve() for word in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    pictures.indexed(capture)
    drawn = []
    for columns, lines in SIZES:
        for name, keys in SCREENS.items():
            (svg,) = pictures.shots(capture, [keys], (columns, lines), "dark", f"{name} {columns}x{lines}")
            pictures.write(folder / f"{name}-{columns}.svg", svg)
            drawn.append(f'<img src="{name}-{columns}.svg" width="{columns * 8}">')
    (folder / "all.html").write_text("\n".join(drawn))


if __name__ == "__main__":
    main()
