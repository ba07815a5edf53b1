"""Tests of inspector.explain.authorization."""
