"""Recorded agents against another master: what it would answer them."""
