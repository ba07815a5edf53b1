"""Mistakes of our user: a sentence that says what is wrong, and a hint that says what to do.

Traffic never raises these (hostile bytes become ``Undecodable``); our own bugs neither.
"""


class InspectorError(Exception):
    """What the user did or has cannot work; ``hint`` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class CaptureError(InspectorError):
    """A capture can't be opened, read or written."""


class IdentityError(InspectorError):
    """A certificate, key or CA that was given can't be used."""
