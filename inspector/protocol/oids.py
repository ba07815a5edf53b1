"""Puppet's names of object identifiers (docs/protocol.md#extensions-and-attributes)."""

from __future__ import annotations

PUPPET_OIDS = {
    "1.3.6.1.4.1.34380.1.1": (
        "", "pp_uuid", "pp_instance_id", "pp_image_name", "pp_preshared_key", "pp_cost_center", "pp_product",
        "pp_project", "pp_application", "pp_service", "pp_employee", "pp_created_by", "pp_environment",
        "pp_role", "pp_software_version", "pp_department", "pp_cluster", "pp_provisioner", "pp_region",
        "pp_datacenter", "pp_zone", "pp_network", "pp_securitypolicy", "pp_cloudplatform", "pp_apptier",
        "pp_hostname", "pp_owner",
    ),
}  # fmt: skip
"""Registered extensions by their last arc."""
AUTHORIZATION_OIDS = {
    "1.3.6.1.4.1.34380.1.3.1": "pp_authorization",
    "1.3.6.1.4.1.34380.1.3.2": "pp_auth_auto_renew",
    "1.3.6.1.4.1.34380.1.3.13": "pp_auth_role",
    "1.3.6.1.4.1.34380.1.3.39": "pp_cli_auth",
    "1.2.840.113549.1.9.7": "challengePassword",
    "2.16.840.1.113730.1.13": "nsComment",
}
AUTHORIZATION = "1.3.6.1.4.1.34380.1.3."
"""Extensions that give rights: a CA signs them only if it is configured to."""
REQUESTED_EXTENSIONS = frozenset({"1.2.840.113549.1.9.14", "1.3.6.1.4.1.311.2.1.14"})
"""The attributes of a signing request that contain its extensions: the one of PKCS#9 and Microsoft's."""


def oid_name(dotted: str) -> str:
    """Puppet's short name of an OID, or the OID itself."""
    arc, _, last = dotted.rpartition(".")
    names = PUPPET_OIDS.get(arc, ())
    if last.isdigit() and 0 < int(last) < len(names):
        return names[int(last)]
    return AUTHORIZATION_OIDS.get(dotted, dotted)


def authorizing(name: str) -> bool:
    """True for an extension below Puppet's authorization arc, by its name or OID."""
    return name.startswith(AUTHORIZATION) or any(
        known == name and dotted.startswith(AUTHORIZATION) for dotted, known in AUTHORIZATION_OIDS.items()
    )
