"""How words look that are bad, doubtful, good, or worth a look, and the colours of phases and of what takes time.

``tui.hues`` replaces what could not be read on another theme.
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
