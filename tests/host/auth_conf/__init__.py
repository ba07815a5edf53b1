"""Tests of inspector.host.auth_conf."""
