"""How words look that are bad, doubtful, good, or worth a look. ``tui.hues`` turns what could not be read."""

BAD = "bold #ff5370"
DOUBT = "#e6a700"
GOOD = "#3fb950"
NOTE = "#4c9be8"
