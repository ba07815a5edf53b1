"""Limits for all peers, on both roads. Those for peers without a verified certificate are in ``admission``."""

HEAD = 256 * 2**10
"""Bytes of a message's head: a master's own limit is 8 to 64 kB."""
LINES = 1000
"""Headers of a head."""
LINE = 64 * 2**10
"""Bytes of a line between the chunks of a body, and of its trailers."""
INTERIM = 16
"""Interim answers (100, 103) that a master may send before the answer itself."""
HANDSHAKE = 30.0
"""Seconds that an agent has for its TLS handshake."""
HEAD_TIME, BODY_TIME = 30.0, 60.0
"""Seconds within which an agent must send a complete head, and the next piece of a body. Between requests it may be
silent for as long as the master allows."""
READ = 2**18
"""Bytes that are read from a connection at a time."""
PIECE = 2**15
"""The same where many may wait for their turn: of an agent whose certificate is not verified, or that causes much work.
OpenSSL's buffers stay as large as the largest piece that they were given as long as the connection lives."""
RECORDS, CHUNKS = 128, 256
"""Records of TLS, and chunks of a body, that are read in a turn: each costs the same, however small it is."""
FRAMING = 4096
"""Bytes by which the framing of a body in chunks may exceed the body itself."""
IDLE = 30.0
"""Seconds without a request after which a connection is closed, if the master has none that would show how long it
waits: as long as Jetty."""
FULL = 2**16
"""Unsent bytes above which the other end is not read: asyncio's own limit."""
BUSY = "too many requests without a verified certificate are under way"
"""Why a request is refused with 503."""
