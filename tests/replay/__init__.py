"""Tests of inspector.replay."""
