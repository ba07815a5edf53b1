"""Directories, live masters and proxy certificates, examined without changing them."""
