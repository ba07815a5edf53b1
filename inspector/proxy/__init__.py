"""On the wire: the mitmproxy addon, both TLS legs, identities, the recorder, and the process that analyses."""
