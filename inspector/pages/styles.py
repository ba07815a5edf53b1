"""How words look that are bad, doubtful, good, or worth a look, and the colours of phases and of what takes time.

``tui.themes`` replaces what could not be read on another theme.
"""

BAD = "bold #ff6b81"
DOUBT = "#e6a700"
GOOD = "#3fb950"
NOTE = "#6cb6ff"

VIOLET = "#c792ea"
CYAN = "#89ddff"
BLUE = "#82aaff"
YELLOW = "#ffcb6b"
GREEN = "#c3e88d"
ORANGE = "#f78c6c"
GREY = "#a0a0a0"
SLATE = "#8fa3bf"

COMMAND = f"bold {CYAN}"
"""A command to paste."""

KEY = CYAN
STRING = GREEN
NUMBER = ORANGE
BOOLEAN = VIOLET
NULL = f"italic {GREY}"
REFERENCE = BLUE
"""A resource, and a type."""
SECRET = f"bold {YELLOW}"
"""A value that is hidden, or was until somebody asked for it."""
KEYWORD = f"bold {VIOLET}"
VARIABLE = YELLOW
COMMENT = f"italic {SLATE}"
ADDED = GOOD
REMOVED = BAD.removeprefix("bold ")
HEADING = f"bold {CYAN}"
"""What names the files of a diff, or the sections of a file."""
