"""Write what README.md and docs/ hold of the program anew: ``make docs``.

The known messages, compiled; the pages of endpoints and rules, the manual page, the quoted output, the pictures. Look
at what changed before it is committed.
"""

from __future__ import annotations

import subprocess
import sys

from inspector.explain import reference
from tests.docs import columns, commands_page, exported, man_page, queries, quotes, readiness, report_picture, schemas
from tests.docs.markdown import pages
from tests.support import messages
from tests.support.places import DOCS, ROOT


def main() -> None:
    """Write them."""
    (messages.FOLDER / "compiled.json").write_bytes(messages.compiled())
    for name, page in reference.PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    man_page.PLACE.write_text(man_page.page(), encoding="utf-8")
    commands_page.PLACE.write_text(commands_page.page(), encoding="utf-8")
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (renewed := queries.renewed(columns.renewed(readiness.renewed(quotes.renewed(text))))) != text:
            path.write_text(renewed, encoding="utf-8")
    schemas.write()
    subprocess.run([sys.executable, "-m", "tests.docs.pictures"], cwd=ROOT, check=True)
    exported.draw(DOCS)
    for name in report_picture.PAGES:
        report_picture.draw(name)


if __name__ == "__main__":
    main()
