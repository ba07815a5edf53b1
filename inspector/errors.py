"""Errors of the user: one sentence about what is wrong, and a hint about how to fix it.

Traffic never raises them (hostile bytes become ``Undecodable``), nor does a bug of this program.
"""


class InspectorError(Exception):
    """Wrong usage or unusable input; ``hint`` says how to fix it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class CaptureError(InspectorError):
    """A capture cannot be opened, read or written."""


class IdentityError(InspectorError):
    """A certificate, key or CA cannot be used."""
