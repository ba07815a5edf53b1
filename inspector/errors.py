"""Errors of the user: one sentence about what is wrong, and a hint about what to do.

Neither traffic (hostile bytes become ``Undecodable``) nor a bug of this program raises these.
"""


class InspectorError(Exception):
    """Wrong usage or unusable input; ``hint`` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class CaptureError(InspectorError):
    """A capture can't be opened, read or written."""


class IdentityError(InspectorError):
    """A certificate, key or CA can't be used."""
