"""What certificates and CRLs the nodes of a fleet depend on, and what happens if one ends, is revoked or is missing."""
