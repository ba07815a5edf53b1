"""Tests of inspector.rehearsal."""
