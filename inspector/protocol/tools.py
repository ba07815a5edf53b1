"""Responses for tools and monitoring (docs/protocol.md#endpoints-for-tools), typed as far as their fields are read."""

from __future__ import annotations

from typing import Any

import msgspec


class Environment(msgspec.Struct, frozen=True):
    settings: dict[str, Any] = {}


class Environments(msgspec.Struct, frozen=True):
    environments: dict[str, Environment]
    search_paths: list[str] = []


class ClassParameter(msgspec.Struct, frozen=True):
    name: str
    type: str | None = None
    default_literal: Any = None
    default_source: str | None = None


class PuppetClass(msgspec.Struct, frozen=True):
    name: str
    params: list[ClassParameter] = []


class ClassFile(msgspec.Struct, frozen=True):
    path: str
    classes: list[PuppetClass] = []
    error: str | None = None
    """Why the file could not be parsed; replaces the classes."""


class EnvironmentClasses(msgspec.Struct, frozen=True):
    name: str
    files: list[ClassFile] = []


class MasterStatus(msgspec.Struct, frozen=True):
    """``status/any``: of a Ruby master."""

    is_alive: bool
    version: str | None = None


class CertificateStatus(msgspec.Struct, frozen=True):
    """A certificate or a signing request, as listed by the CA."""

    name: str
    state: str | None = None
    """``requested``, ``signed`` or ``revoked``."""
    fingerprint: str | None = None
    fingerprints: dict[str, str] = {}
    dns_alt_names: list[str] | None = None
    subject_alt_names: list[str] | None = None
    authorization_extensions: dict[str, Any] | None = None
    serial_number: int | str | None = None
    not_before: str | None = None
    not_after: str | None = None


class CertificateStatuses(msgspec.Struct, frozen=True):
    certificates: list[CertificateStatus]


class DesiredState(msgspec.Struct, frozen=True):
    """A tool's request to change the state of a certificate at the CA."""

    desired_state: str
    cert_ttl: int | str | None = None
