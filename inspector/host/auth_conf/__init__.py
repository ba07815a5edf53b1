"""An auth.conf: puppetserver's (HOCON) or the Ruby master's, read into rules. Decisions: ``explain.authorization``."""
