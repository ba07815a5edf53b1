"""Captures and findings in other formats, in and out."""
