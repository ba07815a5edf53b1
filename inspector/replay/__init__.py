"""A recorded master answers a real agent: no upstream, a CA of its own, and what was not recorded is said."""
